//! `tickpath exchange` as a process, beside an OMS process: either is killed, and the other continues.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::{Clock, HostClock, Priority, Wait, end_with_parent};
use tickpath_log::{Config as LogConfig, LogPath, LogPublishError, Next, Reader, ReaderStart, Registration};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, Kind, MassCancel, MassCancelType, NewOrder, Notional,
    OrdStatus, OrderDenied, OrderType, Price, Quantity, Request, Side, SymbolId, VenueId,
};
use tickpath_oms_core::{ALL_ACCOUNTS, AccountLimits, Denial, Instrument, VenueRules};
use tickpath_oms_runtime::{
    AckLevel, Config, LanesConfig, Layout, RequestRate, SessionConfig, SessionLanes, TradingDefinitions,
};
use zerocopy::FromBytes;

use crate::logs::{Running, until};
use crate::program::{Ran, tickpath};

const VENUE: VenueId = VenueId(1);
const ACCOUNT: AccountId = AccountId(1);
/// BTCUSDT in the first table of instruments.
const SYMBOL: SymbolId = SymbolId(1);
/// Ask of the first exchange.toml, and a price that no quote crosses.
const ASK: &str = "61800.1";
const LOW: &str = "60000";

/// Variables that make this program an OMS: the name of its lanes, and the folder of its journal.
const NAME: &str = "TICKPATH_TEST_OMS";
const FOLDER: &str = "TICKPATH_TEST_FOLDER";

#[test]
fn the_first_files_of_oms_and_exchange_match_and_an_order_fills() {
    let scene = Scene::new();
    let ran = scene.tickpath("exchange --config @/exchange.toml --check");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert!(ran.out.contains("2 symbols, it quotes 2"), "{}", ran.out);
    let exchange = scene.exchange();
    exchange.await_words("waiting for the OMS");
    let _oms = scene.oms();
    let mut client = scene.client();
    client.buy(1, ASK);
    // More than the quoted quantity.
    client.buy(25, ASK);
    client.buy(1, LOW);
    client.await_all();
    let ran = exchange.interrupt();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    assert!(ran.err.trim_end().ends_with("stopped; 1 order rests"), "{}", ran.err);
}

#[test]
fn an_exchange_killed_under_load_restarts_in_the_same_state() {
    let scene = Scene::new();
    let mut exchange = scene.exchange();
    let _oms = scene.oms();
    let mut client = scene.client();
    for round in 0..12 {
        exchange.await_words("serving the OMS");
        client.trade(40 + 7 * round);
        // SIGKILL; some of the sent orders do not reach the exchange.
        drop(exchange);
        client.trade(5 * round);
        exchange = scene.exchange();
    }
    client.await_all();
    drop(exchange);
    let exchange = scene.exchange();
    exchange.await_words(&format!("serving the OMS '{}'; {} orders rest", scene.name, client.resting()));
    client.cancel_all();
    client.await_all();
    let ran = exchange.interrupt();
    assert!(ran.err.trim_end().ends_with("stopped; no order rests"), "{}", ran.err);
}

#[test]
fn a_killed_oms_reconnects_to_the_exchange() {
    let scene = Scene::new();
    let exchange = scene.exchange();
    let mut oms = scene.oms();
    let mut client = scene.client();
    client.buy(1, ASK);
    for round in 0..6 {
        client.await_all();
        client.trade(50);
        let before = times(&exchange, "has exited");
        drop(oms);
        if round % 2 == 0 {
            await_times(&exchange, "has exited", before + 1);
        }
        // Otherwise the OMS may be back before the exchange has noticed its absence.
        client.trade(5);
        oms = scene.oms();
    }
    client.await_all();
    drop(oms);
    let ran = exchange.interrupt();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains(&format!("{} orders rest", client.resting())), "{}", ran.err);
}

#[test]
fn an_oms_with_another_journal_gets_other_lanes_from_a_running_exchange() {
    let scene = Scene::new();
    let exchange = scene.exchange();
    for round in 0..3 {
        drop(trade_in_life(&scene, round));
        await_times(&exchange, "has exited", round as usize + 1);
        fs::remove_dir_all(scene.folder.path().join("oms-journal")).expect("it is there");
    }
    // The lanes are removed, too: as after a restart of the host, but for the exchange.
    scene.lanes().remove().expect("they are there");
    exchange.await_words("waiting for the OMS");
    drop(trade_in_life(&scene, 3));
    assert_eq!(exchange.interrupt().code, Some(0));
}

/// Trades at an OMS with a new journal. Its ids begin with an epoch that no earlier journal has used: that of its
/// minute, plus one for each start.
fn trade_in_life(scene: &Scene, life: u64) -> OmsProcess {
    for _ in 0..life {
        let _oms = scene.oms();
        scene.client();
    }
    let oms = scene.oms();
    let mut client = scene.client();
    client.trade(10);
    client.await_all();
    oms
}

#[test]
fn a_second_exchange_and_bad_files_are_refused_with_an_error() {
    let scene = Scene::new();
    let exchange = scene.exchange();
    exchange.await_words("waiting for the OMS");
    let ran = scene.tickpath("exchange --config @/exchange.toml");
    assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{}", ran.err);
    assert!(ran.err.contains("this exchange runs already"), "{}", ran.err);
    drop(exchange);
    for (line, code, words) in [
        ("exchange init --folder @", 2, "exchange.toml exists already"),
        ("exchange --config @/none.toml", 2, "tickpath exchange init"),
        ("exchange --config @/instruments.csv --check", 2, "no TOML"),
        ("exchange --config @ --check", 2, "cannot be read"),
        ("exchange init --check", 2, "unexpected argument"),
    ] {
        let ran = scene.tickpath(line);
        assert!(ran.code == Some(code) && ran.err.contains(words), "{line}: {:?} {}", ran.code, ran.err);
    }
    scene.change("exchange.toml", "quantity = 10\n", "quantity = 0\nsize = 10\n");
    let ran = scene.tickpath("exchange --config @/exchange.toml");
    assert_eq!((ran.code, ran.err.lines().count()), (Some(2), 2), "{}", ran.err);
    scene.change("exchange.toml", "quantity = 0\nsize = 10\n", "quantity = 10\n");
    // The exchange's journal is replaced by another file.
    fs::remove_dir_all(scene.folder.path().join("exchange-journal")).expect("it is there");
    fs::create_dir(scene.folder.path().join("exchange-journal")).expect("it is ours");
    fs::write(scene.folder.path().join("exchange-journal/data"), "no log").expect("it is ours");
    let ran = scene.tickpath("exchange --config @/exchange.toml");
    assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{}", ran.err);
    assert!(ran.err.contains("exchange-journal is damaged or no log"), "{}", ran.err);
}

/// Does nothing, unless a test started this program anew to have an OMS to kill.
#[test]
fn oms_process() {
    let Ok(name) = std::env::var(NAME) else { return };
    assert!(end_with_parent(std::os::unix::process::parent_id()));
    let folder = PathBuf::from(std::env::var(FOLDER).expect("the parent has set it"));
    let topic = LogPath::shared_memory(&format!("{name}.ticks")).expect("a good name");
    let mut ticks = None;
    until(
        || {
            ticks = Reader::open(&topic, ReaderStart::Oldest, Registration::Registered).ok();
            ticks.is_some()
        },
        || "the exchange's quotes".to_owned(),
    );
    let clock = HostClock::get().expect("a clock");
    let ran = tickpath_oms_runtime::layout::run(clock, &config(&name, folder), ticks, &AtomicBool::new(false), || {});
    panic!("nobody stops it: {:?}", ran.err().map(|e| e.to_string()));
}

/// The files of an exchange, in the folder of an OMS.
struct Scene {
    name: String,
    folder: TempDir,
}

impl Scene {
    /// Makes the files like `init` of both, but with unique names in shared memory.
    fn new() -> Self {
        static SCENES: AtomicU64 = AtomicU64::new(0);
        let name = format!("cli-exchange-{}-{}", std::process::id(), SCENES.fetch_add(1, Ordering::Relaxed));
        let scene = Self { name, folder: tempfile::tempdir().expect("a temporary folder can be made") };
        for who in ["exchange", "oms"] {
            let ran = scene.tickpath(&format!("{who} init --folder @"));
            assert_eq!(ran.code, Some(0), "{}", ran.err);
        }
        scene.change("exchange.toml", "oms = \"oms\"", &format!("oms = \"{}\"", scene.name));
        scene.change("exchange.toml", "\"oms.ticks\"", &format!("\"{}.ticks\"", scene.name));
        scene
    }

    /// Calls the binary; @ stands for the folder.
    fn tickpath(&self, line: &str) -> Ran {
        tickpath(&self.line(line))
    }

    fn line(&self, line: &str) -> String {
        line.replace('@', &self.folder.path().display().to_string())
    }

    fn change(&self, file: &str, from: &str, to: &str) {
        let file = self.folder.path().join(file);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{} has no {from}", file.display());
        fs::write(file, text.replacen(from, to, 1)).expect("the folder is ours");
    }

    fn exchange(&self) -> Running {
        Running::start(&self.line("exchange --config @/exchange.toml"))
    }

    /// Starts an OMS that can be killed.
    fn oms(&self) -> OmsProcess {
        let mut this = Command::new(std::env::current_exe().expect("this program has a path"));
        this.args(["exchange::oms_process", "--exact", "--nocapture"]).env(NAME, &self.name);
        this.env(FOLDER, self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        OmsProcess(this.spawn().expect("this program can be started again"))
    }

    fn lanes(&self) -> LanesConfig {
        config(&self.name, PathBuf::new()).lanes
    }

    /// Returns the client of the session, once its lanes are free.
    fn client(&self) -> Client {
        let clock = HostClock::get().expect("a clock");
        let mut lanes = None;
        until(
            || {
                lanes = self.lanes().join_session(0, clock.calibration()).ok();
                lanes.as_ref().is_some_and(|lanes| lanes.requests.readers() > 0)
            },
            || "the lanes of the client".to_owned(),
        );
        Client::new(clock, lanes.expect("just joined"))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.lanes().remove();
        let _ = LogPath::shared_memory(&format!("{}.ticks", self.name)).map(|ticks| ticks.remove());
    }
}

/// An OMS with a session and a venue that is killed when it is dropped.
struct OmsProcess(Child);

impl Drop for OmsProcess {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// A client with its own list of sent orders and received reports.
struct Client {
    clock: HostClock,
    lanes: SessionLanes,
    next: u64,
    /// Sent orders by client order id.
    sent: BTreeMap<u64, Sent>,
    /// Client order ids by the OMS's order ids.
    ids: BTreeMap<u64, u64>,
    /// Ids of reported executions.
    fills: BTreeSet<u64>,
}

struct Sent {
    quantity: Quantity,
    fills: bool,
    filled: i64,
    status: u8,
}

impl Client {
    fn new(clock: HostClock, lanes: SessionLanes) -> Self {
        let (sent, ids) = (BTreeMap::new(), BTreeMap::new());
        Self { clock, lanes, next: 1, sent, ids, fills: BTreeSet::new() }
    }

    fn buy(&mut self, quantity: i64, price: &str) {
        let quantity = Quantity::from_whole(quantity);
        let order = NewOrder {
            client_order_id: ClientOrderId(self.next),
            price: price.parse::<Price>().expect("a price"),
            quantity,
            symbol: SYMBOL,
            account: ACCOUNT,
            side: Side::Buy.code(),
            order_type: OrderType::Limit.code(),
            ..NewOrder::default()
        };
        self.send(&Request::New(order));
        self.sent.insert(self.next, Sent { quantity, fills: price == ASK, filled: 0, status: 0 });
        self.next += 1;
    }

    /// Sends orders that fill, and every third one that does not.
    fn trade(&mut self, orders: u64) {
        for order in 0..orders {
            self.buy(1, if order % 3 == 0 { LOW } else { ASK });
        }
        self.read();
    }

    fn cancel_all(&mut self) {
        let all = MassCancel {
            client_order_id: ClientOrderId(self.next),
            account: ACCOUNT,
            cancel_type: MassCancelType::All.code(),
            ..MassCancel::default()
        };
        self.send(&Request::MassCancel(all));
        self.next += 1;
        until(
            || {
                self.read();
                self.resting() == 0
            },
            || "the end of all orders".to_owned(),
        );
    }

    fn send(&mut self, request: &Request) {
        until(
            || match self.lanes.requests.publish(self.clock.ticks(), request.kind().code(), request.as_bytes()) {
                Ok(_) => true,
                Err(LogPublishError::NoReader | LogPublishError::Full) => false,
                Err(e) => panic!("{e}"),
            },
            || "an OMS that takes requests".to_owned(),
        );
    }

    /// Waits until each order is filled or rests, as expected.
    fn await_all(&mut self) {
        let open = |sent: &Sent| match sent.fills {
            true => sent.status != OrdStatus::Filled.code() || sent.filled != sent.quantity.0,
            false => ![OrdStatus::New.code(), OrdStatus::Canceled.code()].contains(&sent.status),
        };
        until(
            || {
                self.read();
                !self.sent.values().any(open)
            },
            || "the end of all orders".to_owned(),
        );
    }

    /// Returns the number of orders that rest.
    fn resting(&self) -> usize {
        self.sent.values().filter(|sent| sent.status == OrdStatus::New.code()).count()
    }

    fn read(&mut self) {
        let mut received = Vec::new();
        let take = |next: Next<'_>| match next {
            Next::Message(message) if message.kind == Kind::ExecutionReport.code() => {
                received.push(ExecutionReport::read_from_bytes(message.payload).expect("a report"));
            }
            Next::Message(message) => {
                let denied = OrderDenied::read_from_bytes(message.payload).expect("there are no other messages");
                panic!("{} was denied: {:?}", denied.client_order_id, Denial::from_code(denied.code));
            }
            _ => panic!("the log holds all reports of a test"),
        };
        self.lanes.reports.drain(usize::MAX, take).expect("the log is sound");
        received.iter().for_each(|report| self.note(report));
    }

    fn note(&mut self, report: &ExecutionReport) {
        let id = *self.ids.entry(report.order_id.0).or_insert(report.client_order_id.0);
        let sent = self.sent.get_mut(&id).expect("only what was sent is told of");
        if report.exec_type == ExecType::Trade.code() {
            assert!(self.fills.insert(report.exec_id.0), "fill {} is told twice", report.exec_id.0);
            sent.filled += report.last_quantity.0;
            assert!(sent.filled <= sent.quantity.0, "order {id} is filled twice");
        }
        sent.status = report.status;
    }
}

/// Returns an OMS with one session and one account without limits.
fn config(name: &str, folder: PathBuf) -> Config {
    let account = AccountLimits {
        account: ACCOUNT,
        rate_limit: 0,
        rate_window_ns: 1,
        max_order_quantity: Quantity::from_whole(1_000_000),
        max_notional: Notional::from_whole(1_000_000_000_000).0.to_le_bytes(),
        credit: [0; 16],
        collar: 2_000,
        max_open_orders: 0,
        max_reference_age_ns: 60_000_000_000,
        max_request_age_ns: 0,
        max_position: Quantity(i64::MAX),
        ..AccountLimits::default()
    };
    let name_of = "BTCUSDT".parse().expect("a good name");
    let instrument =
        Instrument { symbol: SYMBOL, venue: VENUE, reserved: 0, multiplier: 1, ..Instrument::named(name_of) };
    let session = SessionConfig {
        session: 0,
        level: AckLevel::Os,
        cancel_on_disconnect: false,
        accounts: vec![ALL_ACCOUNTS],
        withheld: 0,
        limits: Default::default(),
        rate: RequestRate::UNLIMITED,
    };
    let desk = TradingDefinitions {
        instruments: vec![instrument],
        accounts: vec![account],
        venues: vec![VenueRules::of(VENUE)],
        sessions: vec![session],
        ..TradingDefinitions::default()
    };
    Config {
        lanes: LanesConfig::new(name, 1, &[VENUE]),
        journal: LogConfig::journal(LogPath::folder(folder.join("oms-journal"))),
        trading: desk,
        expected_orders: 10_000,
        layout: Layout::Inline,
        wait: Wait::Block,
        cpu: None,
        other_cpu: None,
        priority: Priority::Normal,
        history: false,
        snapshot_every: 0,
        warm_up: true,
        seed: None,
    }
}

fn times(exchange: &Running, words: &str) -> usize {
    exchange.err().matches(words).count()
}

fn await_times(exchange: &Running, words: &str, wanted: usize) {
    until(|| times(exchange, words) >= wanted, || format!("'{words}' {wanted} times in: {}", exchange.err()));
}
