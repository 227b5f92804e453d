//! A desk: an OMS and a simulated exchange, each in a process that can be killed, with the files that `init` creates.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use tempfile::TempDir;
use tickpath_bus::conformance::wait_until;
use tickpath_clock::{HostClock, end_with_parent, sleep_ns, utc_ns};
use tickpath_log::{LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId, TimeInForce,
};
use tickpath_oms_client::{Client, ClientEvent, Config};
use tickpath_oms_server::settings::Settings;

use crate::detail_line::DetailLine;

/// Variables that make this program an OMS or an exchange, and name the folder of its files.
const ROLE: &str = "TICKPATH_TEST_ROLE";
const FOLDER: &str = "TICKPATH_TEST_FOLDER";
/// Role of an OMS whose venue is reached by a line with details.
pub(crate) const WITH_DETAILS: &str = "oms-with-details";

/// BTCUSDT in the initial table of instruments.
pub(crate) const SYMBOL: u32 = 1;
/// The offer in the initial exchange.toml, in 10⁻⁸.
pub(crate) const ASK: i64 = 6_180_010_000_000;
/// A price far below the market, which trades with no order, in 10⁻⁸.
pub(crate) const LOW: i64 = 6_100_000_000_000;
/// A quantity of one, in 10⁻⁸.
pub(crate) const ONE: i64 = 100_000_000;

/// The user who may trade, and the password.
pub(crate) const USER: &str = "trader";
pub(crate) const PASSWORD: &str = "a password";

/// Entry point of a desk's processes; without a role the test does nothing.
#[test]
fn process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    assert!(end_with_parent(std::os::unix::process::parent_id()));
    let folder = PathBuf::from(std::env::var(FOLDER).expect("the parent has set it"));
    let clock = HostClock::get().expect("a clock");
    if role == "exchange" {
        let settings = tickpath_venue_sim::Settings::read(&folder.join("exchange.toml")).expect("it is good");
        let ran = tickpath_venue_sim::run(clock, settings, &tickpath_venue_sim::VenueControl::default(), &mut |_| {});
        panic!("nobody stops it: {:?}", ran.err().map(|e| e.to_string()));
    }
    let settings = Settings::read(&folder.join("oms.toml")).unwrap_or_else(|faults| panic!("{faults}"));
    let (events, received) = sync_channel(4096);
    std::thread::spawn(move || received.into_iter().for_each(drop));
    let topic = LogPath::shared_memory(settings.ticks.as_deref().expect("it has ticks")).expect("a good name");
    let mut ticks = None;
    while ticks.is_none() {
        ticks = Reader::open(&topic, ReaderStart::Oldest, Registration::Registered).ok();
        sleep_ns(1_000_000);
    }
    let (mut config, server) = (settings.config(), settings.server(events));
    if role == WITH_DETAILS {
        config.lanes.venues.clear();
        config.lanes.lines = vec![DetailLine::default().config()];
    }
    let ran = tickpath_oms_server::run(clock, &config, &server, ticks, &AtomicBool::new(false), || {});
    panic!("nobody stops it: {:?}", ran.err().map(|e| e.to_string()));
}

/// The files of a desk, under a name that is unique on this host.
pub(crate) struct Desk {
    name: String,
    folder: TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        static DESKS: AtomicU64 = AtomicU64::new(0);
        let name = format!("c-desk-{}-{}", std::process::id(), DESKS.fetch_add(1, Ordering::Relaxed));
        let desk = Self { name, folder: tempfile::tempdir().expect("a temporary folder can be made") };
        let folder = desk.folder.path();
        tickpath_oms_server::settings::init(folder, || PASSWORD.to_owned()).expect("the folder is empty");
        tickpath_venue_sim::init(folder).expect("the folder is empty");
        desk.change("oms.toml", "name = \"oms\"", &format!("name = \"{}\"", desk.name));
        desk.change("oms.toml", "127.0.0.1:7001", "127.0.0.1:0");
        desk.change("exchange.toml", "oms = \"oms\"", &format!("oms = \"{}\"", desk.name));
        for file in ["oms.toml", "exchange.toml"] {
            desk.change(file, "\"oms.ticks\"", &format!("\"{}\"", desk.ticks()));
        }
        desk
    }

    /// The topic of the market data.
    pub(crate) fn ticks(&self) -> String {
        format!("{}.ticks", self.name)
    }

    /// The URL of the OMS with this scheme.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.folder.path().join("oms.sock").display())
    }

    /// The path of the user's password file.
    pub(crate) fn password_file(&self) -> String {
        self.folder.path().join(format!("{USER}.password")).display().to_string()
    }

    /// Starts the exchange and the OMS; returns once an order has passed.
    pub(crate) fn start_all(&self) -> (Process, Process) {
        let running = (self.start("exchange"), self.start("oms"));
        self.await_orders();
        running
    }

    /// Starts a process of this role, which is killed when dropped.
    pub(crate) fn start(&self, role: &str) -> Process {
        let mut this = Command::new(std::env::current_exe().expect("this program has a path"));
        this.args(["desk::process", "--exact", "--nocapture"]).env(ROLE, role).env(FOLDER, self.folder.path());
        this.stdin(Stdio::null()).stdout(Stdio::null());
        Process(this.spawn().expect("this program can be started again"))
    }

    /// Reads the new orders that the exchange received from the OMS.
    pub(crate) fn orders(&self) -> Vec<NewOrder> {
        let place = LogPath::folder(self.folder.path().join("exchange-journal"));
        let mut reader = Reader::open(&place, ReaderStart::Oldest, Registration::Unregistered).expect("it is there");
        let mut orders = Vec::new();
        while let Next::Message(message) = reader.next().expect("it is sound") {
            let request = message.payload.get(8..).map(|bytes| Request::read(message.kind, bytes));
            if let Some(Ok(Request::New(order))) = request {
                orders.push(order);
            }
        }
        orders
    }

    /// Waits until the OMS listens and has a reference price: before that it denies orders.
    pub(crate) fn await_orders(&self) {
        let mut connected = None;
        wait_until(|| {
            let config = Config { session: Some(3), ..Config::new(self.url("unix"), USER, PASSWORD) };
            connected = Client::connect(config).ok();
            connected.is_some()
        });
        let mut client = connected.expect("it was waited for");
        let mut has_passed = false;
        wait_until(|| {
            let order = NewOrder {
                client_order_id: ClientOrderId(utc_ns()),
                price: Price(LOW),
                quantity: Quantity(ONE / 1000),
                symbol: SymbolId(SYMBOL),
                account: AccountId(1),
                side: Side::Buy.code(),
                order_type: OrderType::Limit.code(),
                time_in_force: TimeInForce::ImmediateOrCancel.code(),
                ..NewOrder::default()
            };
            client.send(&Request::New(order)).expect("it is connected");
            client.wait(50_000_000);
            let polled = client.poll(|event| {
                let is_it = |code: u8| [ExecType::Expired, ExecType::Trade].map(ExecType::code).contains(&code);
                has_passed |= matches!(event, ClientEvent::Report { report, .. } if is_it(report.exec_type));
            });
            polled.expect("it is connected");
            has_passed
        });
        client.close();
    }

    fn change(&self, file: &str, from: &str, to: &str) {
        let file = self.folder.path().join(file);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{} has no {from}", file.display());
        fs::write(file, text.replacen(from, to, 1)).expect("the folder is ours");
    }
}

impl Drop for Desk {
    /// Removes the desk's files in shared memory, which carry its name.
    fn drop(&mut self) {
        let of_this = format!("tickpath.{}.", self.name);
        for found in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if found.file_name().to_string_lossy().starts_with(&of_this) {
                let _ = fs::remove_dir_all(found.path()).or_else(|_| fs::remove_file(found.path()));
            }
        }
    }
}

/// A process of a desk.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}
