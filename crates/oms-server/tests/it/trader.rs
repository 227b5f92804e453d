//! A desk: an exchange and an OMS in processes that can be killed, and trading clients that record the reports they
//! receive.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use tempfile::TempDir;
use tickpath_clock::{Clock, HostClock, end_with_parent, sleep_ns};
use tickpath_log::{LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, NewOrder, OrdStatus, OrderType, Price, Quantity, Request, Side,
    SymbolId,
};
use tickpath_oms_client::{Client, ClientEvent, Config, Since};
use tickpath_oms_server::settings::{Settings, init};

/// Environment variables: the role of this process, OMS or exchange, and the folder of its files.
const ROLE: &str = "TICKPATH_TEST_ROLE";
const FOLDER: &str = "TICKPATH_TEST_FOLDER";
/// Environment variable of a process that may end by itself.
const FULL: &str = "TICKPATH_TEST_FULL";

/// BTCUSDT in the initial table of instruments, its offer in the initial exchange.toml, and a price far below the
/// market.
const SYMBOL: SymbolId = SymbolId(1);
pub(crate) const ASK: &str = "61800.1";
pub(crate) const LOW: &str = "60000";

/// Max orders in flight.
const OPEN: usize = 12;
/// Max time to wait for a condition.
const PATIENCE_NS: i64 = 120_000_000_000;

/// Runs the process of a role. Does nothing unless a test started this program for that purpose.
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
    std::thread::spawn(move || received.into_iter().for_each(|event| eprintln!("{event}")));
    let topic = LogPath::shared_memory(settings.ticks.as_deref().expect("it has ticks")).expect("a good name");
    let mut ticks = None;
    while ticks.is_none() {
        ticks = Reader::open(&topic, ReaderStart::Oldest, Registration::Registered).ok();
        sleep_ns(1_000_000);
    }
    let (config, server) = (settings.config(), settings.server(events));
    let full = std::env::var(FULL).ok();
    let ran = tickpath_oms_server::run(clock, &config, &server, ticks, &AtomicBool::new(false), || {});
    if let (Some(_), Err(e)) = (full, &ran) {
        eprintln!("{e}");
        std::process::exit(1);
    }
    panic!("nobody stops it: {:?}", ran.err().map(|e| e.to_string()));
}

/// Files of a desk as written by `init`, except for names that must be unique on this host, and for the desk's lines.
pub(crate) struct ProcessFixture {
    name: String,
    pub(crate) folder: TempDir,
    /// Addresses of the exchange, and of the OMS beside its Unix socket.
    pub(crate) url: String,
    pub(crate) oms: String,
}

impl ProcessFixture {
    pub(crate) fn new(lines: usize, more: &str, is_unix: bool) -> Self {
        static DESKS: AtomicU64 = AtomicU64::new(0);
        let name = format!("server-lines-{}-{}", std::process::id(), DESKS.fetch_add(1, Ordering::Relaxed));
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port is free");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let url = match is_unix {
            true => format!("unix://{}", folder.path().join("exchange.sock").display()),
            false => format!("tcp://{}", free()),
        };
        let oms = free();
        let desk = Self { name, folder, url, oms: format!("tcp://{oms}") };
        init(desk.folder.path(), || "a password".to_owned()).expect("the folder is empty");
        tickpath_venue_sim::init(desk.folder.path()).expect("the folder is empty");
        let url = &desk.url;
        desk.change("exchange.toml", "\noms = \"oms\"\n", &format!("\nlisten = [\"{url}\"]\n"));
        let lines = vec![format!("{{ url = \"{url}\"{more} }}"); lines].join(", ");
        desk.change("oms.toml", "name = \"SIM\"\n", &format!("name = \"SIM\"\nlines = [{lines}]\n"));
        desk.change("oms.toml", "name = \"oms\"", &format!("name = \"{}\"", desk.name));
        desk.change("oms.toml", "127.0.0.1:7001", &oms.to_string());
        for file in ["oms.toml", "exchange.toml"] {
            desk.change(file, "\"oms.ticks\"", &format!("\"{}.ticks\"", desk.name));
        }
        // Disables the age limit and the message rate limit: requests may wait for a killed process.
        desk.change("accounts.csv", "1,1000,1000000000,", "1,,1000000000,");
        desk.change("accounts.csv", "60000000000,5000000000,1000", "60000000000,,1000");
        desk
    }

    pub(crate) fn change(&self, file: &str, from: &str, to: &str) {
        let file = self.folder.path().join(file);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{} has no {from}", file.display());
        fs::write(file, text.replacen(from, to, 1)).expect("the folder is ours");
    }

    /// Returns the address of the exchange.
    pub(crate) fn exchange(&self) -> String {
        self.url.trim_start_matches("tcp://").to_owned()
    }

    /// Sets the thread layout of the OMS.
    pub(crate) fn lay_out(&self, layout: &str) {
        let core = format!("layout = \"{layout}\"\nwait = \"yield\"");
        self.change("oms.toml", "#layout = \"split\"", &core);
    }

    /// Starts the exchange, the OMS, and a client.
    pub(crate) fn start_all(&self) -> (Process, Process, Trader) {
        let (exchange, oms) = (self.start("exchange"), self.start("oms"));
        (exchange, oms, Trader::new(self))
    }

    /// Lets a client trade while the OMS and the exchange are killed in turn, after each of these numbers of fills, and
    /// restarted. At the end all its orders are filled.
    pub(crate) fn trade_over_kills(&self, fills: impl IntoIterator<Item = usize>) -> Trader {
        let (exchange, oms, mut trader) = self.start_all();
        let mut running = [("oms", Some(oms)), ("exchange", Some(exchange))];
        for (kill, more) in fills.into_iter().enumerate() {
            let filled = trader.fills.len() + more;
            trader.trade("orders fill again", |trader| trader.fills.len() >= filled);
            let (role, process) = &mut running[kill % 2];
            drop(process.take());
            *process = Some(self.start(role));
        }
        trader.until("all are filled", |trader| trader.open.is_empty());
        trader
    }

    /// Starts a process of this role that is killed on drop.
    pub(crate) fn start(&self, role: &str) -> Process {
        Process(self.command(role).spawn().expect("this program can be started again"))
    }

    /// Starts an OMS with its events in a file.
    pub(crate) fn start_oms_with_log(&self, log: &Path) -> Process {
        let log = fs::File::create(log).expect("the folder is ours");
        Process(self.command("oms").stderr(log).spawn().expect("this program can be started again"))
    }

    fn command(&self, role: &str) -> Command {
        let mut this = Command::new(std::env::current_exe().expect("this program has a path"));
        this.args(["trader::process", "--exact", "--nocapture"]).env(ROLE, role).env(FOLDER, self.folder.path());
        this.stdin(Stdio::null()).stdout(Stdio::null());
        this
    }

    /// Starts an OMS whose files are limited to this many blocks of 512 bytes, with its output in a file.
    pub(crate) fn start_full(&self, blocks: u64, log: &Path) -> Process {
        self.start_limited(&format!("-f {blocks}"), log)
    }

    /// Starts an OMS under this limit in the form of `ulimit`, with its output in a file.
    pub(crate) fn start_limited(&self, limit: &str, log: &Path) -> Process {
        let mut this = Command::new("sh");
        let run = format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" trader::process --exact --nocapture");
        this.args(["-c", &run]).arg(std::env::current_exe().expect("this program has a path"));
        this.env(ROLE, "oms").env(FOLDER, self.folder.path()).env(FULL, "1");
        this.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(log).expect("the folder is ours"));
        Process(this.spawn().expect("this program can be started again"))
    }

    /// Returns the requests in the exchange's journal, each with its line and its stamp in ticks.
    pub(crate) fn journal(&self) -> Vec<(u32, u64, Request)> {
        let place = LogPath::folder(self.folder.path().join("exchange-journal"));
        let mut reader = Reader::open(&place, ReaderStart::Oldest, Registration::Unregistered).expect("it is there");
        let (mut way, mut requests) = (0, Vec::new());
        while let Next::Message(message) = reader.next().expect("it is sound") {
            if message.kind == 106 {
                way = u32::from_le_bytes(message.payload.try_into().expect("a way has four bytes"));
            }
            if let Some(Ok(request)) = message.payload.get(8..).map(|bytes| Request::read(message.kind, bytes)) {
                requests.push((way, message.stamp, request));
            }
        }
        requests
    }

    /// Returns the new orders in the journal with their lines; each must appear once.
    pub(crate) fn orders(&self) -> BTreeMap<u64, u32> {
        let mut orders = BTreeMap::new();
        for (way, _, request) in self.journal() {
            if let Request::New(new) = request {
                let id = new.client_order_id.0;
                assert!(orders.insert(id, way).is_none(), "order {id} came twice to the exchange");
            }
        }
        orders
    }
}

impl Drop for ProcessFixture {
    fn drop(&mut self) {
        // Everything in shared memory has the desk's name.
        for found in fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .chain(fs::read_dir("/dev/shm/tickpath").into_iter().flatten())
        {
            if let Ok(found) = found
                && found.file_name().to_string_lossy().contains(&format!("{}.", self.name))
            {
                let _ = fs::remove_dir_all(found.path()).or_else(|_| fs::remove_file(found.path()));
            }
        }
    }
}

pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// A client with its own record of orders and fills.
pub(crate) struct Trader {
    pub(crate) clock: HostClock,
    pub(crate) client: Client,
    pub(crate) next_id: u64,
    /// Open orders with their last reported status; none before the first report.
    pub(crate) open: BTreeMap<u64, u8>,
    /// Requests that the OMS did not receive, to be sent again.
    again: Vec<Request>,
    /// Order id of each fill, by execution id.
    pub(crate) fills: BTreeMap<u64, u64>,
    /// Rejected orders, if rejections are allowed.
    pub(crate) refused: Option<BTreeSet<u64>>,
    /// Number of reports that put an order in doubt.
    pub(crate) doubted: u64,
    /// Number of too large orders in each eight, and the denied orders.
    pub(crate) too_large: u64,
    pub(crate) denied: BTreeSet<u64>,
}

impl Trader {
    pub(crate) fn new(desk: &ProcessFixture) -> Self {
        Self::of(&format!("unix://{}", desk.folder.path().join("oms.sock").display()), 0)
    }

    /// Connects to the OMS in this session, at this address.
    pub(crate) fn of(url: &str, session: u16) -> Self {
        let clock = HostClock::get().expect("a clock");
        let config = Config { session: Some(session), since: Since::Start, ..Config::new(url, "trader", "a password") };
        let began = clock.ticks();
        let client = loop {
            match Client::connect(config.clone()) {
                Ok(client) => break client,
                Err(e) => assert!(clock.ns_between(began, clock.ticks()) < PATIENCE_NS, "no OMS: {e}"),
            }
            sleep_ns(10_000_000);
        };
        Self {
            clock,
            client,
            next_id: 1,
            open: BTreeMap::new(),
            again: Vec::new(),
            fills: BTreeMap::new(),
            refused: None,
            doubted: 0,
            too_large: 0,
            denied: BTreeSet::new(),
        }
    }

    pub(crate) fn send_new(&mut self, price: &str) {
        let order = NewOrder {
            client_order_id: ClientOrderId(self.next_id),
            price: price.parse::<Price>().expect("a price"),
            quantity: Quantity::from_whole(if self.is_too_large(self.next_id) { 1_000 } else { 1 }),
            symbol: SYMBOL,
            account: AccountId(1),
            side: if self.next_id.is_multiple_of(2) { Side::Buy.code() } else { Side::Sell.code() },
            order_type: OrderType::Limit.code(),
            ..NewOrder::default()
        };
        let (side, price) = match price {
            LOW => (Side::Buy, LOW),
            _ if self.next_id.is_multiple_of(2) => (Side::Buy, ASK),
            _ => (Side::Sell, "61800"),
        };
        let order = NewOrder { side: side.code(), price: price.parse().expect("a price"), ..order };
        self.open.insert(self.next_id, u8::MAX);
        self.next_id += 1;
        self.send(Request::New(order));
    }

    /// Returns whether an order is too large; the first eight never are.
    pub(crate) fn is_too_large(&self, id: u64) -> bool {
        id > 8 && id % 8 < self.too_large
    }

    pub(crate) fn cancel_all(&mut self) {
        for original in self.open.keys().copied().collect::<Vec<_>>() {
            let (client_order_id, original) = (ClientOrderId(self.next_id), ClientOrderId(original));
            self.next_id += 1;
            let (symbol, account) = (SYMBOL, AccountId(1));
            self.send(Request::Cancel(CancelOrder {
                client_order_id,
                original,
                symbol,
                account,
                ..CancelOrder::default()
            }));
        }
    }

    pub(crate) fn send(&mut self, request: Request) {
        if let Err(e) = self.client.send(&request) {
            self.again.push(e.into_inner());
        }
    }

    /// Keeps orders in flight until the condition holds.
    pub(crate) fn trade(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.go_on(what, true, is_so);
    }

    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.go_on(what, false, is_so);
    }

    pub(crate) fn go_on(&mut self, what: &str, trades: bool, is_so: impl Fn(&Self) -> bool) {
        let began = self.clock.ticks();
        while !is_so(self) {
            for request in std::mem::take(&mut self.again) {
                self.send(request);
            }
            while trades && self.open.len() < OPEN && self.again.is_empty() {
                self.send_new(ASK);
            }
            self.hear();
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(
                waited < PATIENCE_NS,
                "in vain waited until {what}: {} fills, open {:?}",
                self.fills.len(),
                self.open
            );
        }
    }

    pub(crate) fn hear(&mut self) {
        self.client.wait(2_000_000);
        let Self { client, open, again, fills, refused, doubted, too_large, denied, .. } = self;
        let heard = client.poll(|event| match event {
            ClientEvent::Report { report, .. } => {
                let id = report.client_order_id.0;
                if report.exec_type == ExecType::Trade.code() {
                    assert!(fills.insert(report.exec_id.0, id).is_none(), "a fill came twice: {report:?}");
                }
                let is_over = [OrdStatus::Filled, OrdStatus::Canceled, OrdStatus::Rejected];
                *doubted += u64::from(report.status == OrdStatus::Unknown.code());
                if is_over.iter().any(|over| over.code() == report.status) {
                    if report.status == OrdStatus::Rejected.code() {
                        refused.as_mut().unwrap_or_else(|| panic!("nothing of this is refused: {report:?}")).insert(id);
                    }
                    open.retain(|&order, _| order != id && report.exec_type != ExecType::Canceled.code());
                } else if let Some(status) = open.get_mut(&id) {
                    *status = report.status;
                }
            }
            ClientEvent::NotTaken { request, .. } => again.push(request),
            ClientEvent::Denied { denial, .. } => {
                let id = denial.client_order_id.0;
                assert!(id > 8 && id % 8 < *too_large, "nothing of this is denied: {denial:?}");
                assert!(open.remove(&id).is_some() && denied.insert(id), "denied twice: {denial:?}");
            }
            ClientEvent::Connected(_)
            | ClientEvent::Disconnected { .. }
            | ClientEvent::Failed { .. }
            | ClientEvent::InDoubt { .. } => {}
            other => panic!("this is not right: {other:?}"),
        });
        heard.expect("it comes back by itself");
    }
}
