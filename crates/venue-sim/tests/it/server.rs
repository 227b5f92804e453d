//! A venue that serves an OMS, which connects, exits, restarts, and loses its lanes. Bare logs play the OMS.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{DumpableBehavior, dumpable_behavior};
use tempfile::TempDir;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_log::{
    Config as LogConfig, LogOpenError, LogOwner, LogPath, Next, OverflowPolicy, Reader, ReaderStart, Registration,
    Writer, remove_stale,
};
use tickpath_market::{ExecType, ExecutionReport, Kind, Price, Quantity, Request, Side, SymbolId, TopOfBook};
use tickpath_venue_sim::{Settings, VenueControl, VenueEvent, VenueServerError, run};
use zerocopy::{FromBytes, IntoBytes};

use crate::script::order;

/// Checks before a test gives up, and the pause between two: a minute in total.
const LOOKS: u32 = 6_000;
const PAUSE_NS: u64 = 10_000_000;

/// The symbol in the table.
const SYMBOL: u32 = 2;

#[test]
fn an_order_fills_against_a_quote_and_the_venue_stops_on_request() {
    let scene = Scene::new("[[quote]]\nsymbol = 'A'\nbid = 99.5\nask = 100.5\nquantity = 10\n");
    let venue = scene.start();
    venue.await_words("waiting for the OMS");
    let dumps = dumpable_behavior().expect("Linux reports it");
    assert_eq!(dumps, DumpableBehavior::NotDumpable, "the password of its lines is in its memory");
    let mut oms = scene.make_oms(1);
    oms.send(1, 25);
    oms.await_filled(1, 25);
    let events = venue.stop();
    let counts = ["waiting for", "serving the OMS", "stopped; no order rests"].map(|words| count(&events, words));
    assert_eq!((counts, events.len()), ([1, 1, 1], 3), "{events:?}");
}

#[test]
fn an_oms_that_returns_gets_the_reports_of_its_absence() {
    let scene = Scene::new("ticks = '$oms.feed'\n");
    let mut feed = scene.feed();
    feed.tick(99, 101);
    let mut oms = scene.make_oms(1);
    let venue = scene.start();
    oms.send(1, 5);
    oms.await_reports(1);
    for life in 1..4 {
        drop(oms);
        venue.await_count("has exited; 1 order rests", life);
        feed.tick(90, 99);
        // The OMS resumes with its lanes.
        oms = scene.take_up_oms();
        venue.await_count("serving the OMS", life + 1);
        oms.await_filled(life as u64, 5);
        // The next order rests, too: ticks before a request are read before it.
        feed.tick(90, 101);
        oms.send(1 + life as u64, 5);
        oms.await_reports(oms.received.len() + 1);
    }
    assert_eq!(count(&venue.stop(), "stopped; 1 order rests"), 1);
}

#[test]
fn a_venue_joins_recreated_lanes() {
    let scene = Scene::new("");
    let mut oms = scene.make_oms(1);
    let venue = scene.start();
    oms.send(1, 5);
    oms.await_reports(1);
    for incarnation in 2..5 {
        drop(oms);
        // New lanes cannot be made while the venue reads the old ones: it must have released them.
        until(|| remove_stale(&scene.lane("requests")).is_ok(), "the lane's end");
        remove_stale(&scene.lane("reports")).expect("nobody reads it");
        oms = scene.make_oms(incarnation);
        oms.send(incarnation, 5);
        oms.await_reports(1);
        venue.await_count("serving the OMS", incarnation as usize);
    }
    // Removed under a running OMS.
    for what in ["requests", "reports"] {
        scene.lane(what).remove().expect("it is there");
    }
    venue.await_count("were removed or replaced", 1);
    venue.await_count("waiting for the OMS", 1);
    let mut oms = scene.make_oms(5);
    oms.send(5, 5);
    oms.await_reports(1);
    // Replaced in one step.
    for what in ["requests", "reports"] {
        scene.lane(what).remove().expect("it is there");
    }
    let mut oms = scene.make_oms(6);
    oms.send(6, 5);
    oms.await_reports(1);
    assert_eq!(count(&venue.stop(), "stopped; 6 orders rest"), 1);
}

#[test]
fn a_second_venue_is_refused() {
    let scene = Scene::new("");
    let mut oms = scene.make_oms(1);
    let venue = scene.start();
    oms.send(1, 5);
    oms.await_reports(1);
    let second = || run(HostClock::get().expect("a clock"), scene.settings(), &VenueControl::default(), &mut |_| {});
    let e = second().expect_err("the journal is written");
    assert!(matches!(e, VenueServerError::AlreadyRunning { pid, .. } if pid == std::process::id()), "{e}");
    // Even with a journal of its own it has no lanes.
    scene.rewrite("journal = 'journal'", "journal = 'other'");
    let e = second().expect_err("the lane is written");
    assert!(matches!(e, VenueServerError::Open(LogOpenError::HasWriter { .. })), "{e}");
    venue.stop();
}

#[test]
fn a_venue_that_never_had_an_oms_stops() {
    let scene = Scene::new("");
    let venue = scene.start();
    venue.await_words("waiting for");
    assert_eq!(count(&venue.stop(), "stopped"), 1);
    // Lanes of an OMS that was there.
    drop(scene.make_oms(1));
    let venue = scene.start();
    venue.await_words("exist; waiting for it");
    venue.stop();
}

#[test]
fn a_tick_topic_may_appear_later_and_be_replaced() {
    let scene = Scene::new("ticks = '$oms.feed'\n");
    let mut oms = scene.make_oms(1);
    let venue = scene.start();
    venue.await_words("serving the OMS");
    scene.feed().tick(99, 100);
    oms.send(1, 5);
    oms.await_filled(1, 5);
    scene.ticks.remove().expect("the topic is there");
    scene.feed().tick(89, 99);
    oms.send(2, 5);
    venue.await_count("was recreated", 1);
    oms.await_filled(2, 5);
    venue.stop();
}

#[test]
fn a_running_venue_reloads_its_faults() {
    let scene = Scene::new("[faults]\nhalt = true\n");
    let mut oms = scene.make_oms(1);
    let venue = scene.start();
    venue.await_words("injected faults: no request is taken");
    venue.await_words("serving the OMS");
    oms.send(1, 5);
    scene.rewrite("halt = true", "double = 2");
    venue.orders.reload.store(true, Ordering::Release);
    venue.await_words("the file was not applied: ");
    scene.rewrite("double = 2", "double = 1");
    venue.orders.reload.store(true, Ordering::Release);
    venue.await_words("injected faults: 1 of the reports are doubled");
    oms.await_reports(2);
    venue.stop();
}

#[test]
fn quotes_are_published() {
    let scene = Scene::new("publish = '$oms.feed'\n[[quote]]\nsymbol = 'A'\nbid = 99.5\nask = 100.5\nquantity = 10\n");
    let venue = scene.start();
    venue.await_words("waiting for");
    let mut market =
        Reader::open(&scene.ticks, ReaderStart::Oldest, Registration::Registered).expect("the topic is there");
    let mut published = Vec::new();
    // The quote is sent again: a price that is not repeated is stale.
    until(
        || {
            let tick = |next: Next<'_>| match next {
                Next::Message(message) => published.extend(TopOfBook::read_from_bytes(message.payload)),
                _ => panic!("nothing is missed"),
            };
            market.drain(16, tick).expect("the topic is sound");
            published.len() >= 2
        },
        "two ticks",
    );
    let same = |tick: &TopOfBook| (tick.symbol, tick.bid.to_string(), tick.ask.to_string(), tick.ask_quantity);
    assert_eq!(same(&published[0]), same(&published[1]));
    assert_eq!(same(&published[0]).0, SymbolId(SYMBOL));
    venue.stop();
}

#[test]
fn the_first_request_finds_a_published_quote() {
    let scene = Scene::new("publish = '$oms.feed'\n[[quote]]\nsymbol = 'A'\nbid = 99.5\nask = 100.5\nquantity = 10\n");
    let _oms = scene.make_oms(1);
    let (control, mut published) = (VenueControl::default(), None);
    let ran = run(scene.clock, scene.settings(), &control, &mut |event| {
        if matches!(event, VenueEvent::Serving { .. }) {
            let mut market =
                Reader::open(&scene.ticks, ReaderStart::Oldest, Registration::Registered).expect("the topic is there");
            published = Some(market.drain(16, |_: Next<'_>| {}).expect("the topic is sound"));
            control.stop.store(true, Ordering::Release);
        }
    });
    ran.expect("nothing ends it but the test");
    assert_eq!(published, Some(1));
}

/// Files of a venue and the places of its lanes.
struct Scene {
    clock: HostClock,
    oms: String,
    ticks: LogPath,
    file: PathBuf,
    _folder: TempDir,
}

impl Scene {
    /// Makes a scene with more lines in its file, in which `$oms` stands for the name of its OMS.
    fn new(more: &str) -> Self {
        static SCENES: AtomicU64 = AtomicU64::new(0);
        let oms = format!("venue-server-{}-{}", std::process::id(), SCENES.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("exchange.toml");
        let text = format!("venue = 3\noms = '$oms'\njournal = 'journal'\ninstruments = 'table.csv'\n{more}");
        fs::write(&file, text.replace("$oms", &oms)).expect("the folder is ours");
        let table = format!("symbol,number,venue\nB,0,4\nA,{SYMBOL},3\n");
        fs::write(folder.path().join("table.csv"), table).expect("the folder is ours");
        let ticks = LogPath::shared_memory(&format!("{oms}.feed")).expect("a good name");
        Self { clock: HostClock::get().expect("a clock"), oms, ticks, file, _folder: folder }
    }

    fn rewrite(&self, from: &str, to: &str) {
        let text = fs::read_to_string(&self.file).expect("it is there");
        assert!(text.contains(from), "{text}");
        fs::write(&self.file, text.replace(from, to)).expect("it is ours");
    }

    fn settings(&self) -> Settings {
        Settings::read(&self.file).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// Starts the venue on a thread of its own.
    fn start(&self) -> Running {
        let (settings, orders, events) = (self.settings(), VenueControl::default(), Arc::new(Mutex::new(Vec::new())));
        let (clock, their_orders, sink) = (self.clock, orders.clone(), events.clone());
        let thread = std::thread::spawn(move || {
            run(clock, settings, &their_orders, &mut |event| {
                sink.lock().expect("nobody panics with it").push(event.to_string());
            })
        });
        Running { orders, events, thread: Some(thread) }
    }

    fn lane(&self, what: &str) -> LogPath {
        LogPath::shared_memory(&format!("{}.v3.{what}", self.oms)).expect("a good name")
    }

    /// Makes the lanes of an OMS with this incarnation; its reader of reports comes last.
    fn make_oms(&self, incarnation: u64) -> Oms {
        let owner = LogOwner { journal: 7, incarnation, base: 0 };
        let make = |what| {
            let topic = LogConfig::topic(self.lane(what), OverflowPolicy::Fail);
            let config = LogConfig { owner, mandatory: true, segment_bytes: 128 << 10, ..topic };
            Writer::open(&config, self.clock.calibration()).expect("the lane is new")
        };
        let requests = make("requests");
        drop(make("reports"));
        self.oms(requests)
    }

    /// Starts an OMS that resumes with its lanes.
    fn take_up_oms(&self) -> Oms {
        let config = LogConfig { mandatory: true, ..LogConfig::topic(self.lane("requests"), OverflowPolicy::Fail) };
        self.oms(Writer::open(&config, self.clock.calibration()).expect("nobody else writes it"))
    }

    fn oms(&self, requests: Writer) -> Oms {
        let reports = Reader::open(&self.lane("reports"), ReaderStart::Cursor, Registration::Mandatory);
        let reports = reports.expect("the lane is there, and nobody else reads it");
        Oms { clock: self.clock, requests, reports, received: Vec::new() }
    }

    fn feed(&self) -> Feed {
        let topic = LogConfig::topic(self.ticks.clone(), OverflowPolicy::Overwrite);
        let log = Writer::open(&topic, self.clock.calibration()).expect("nobody else writes it");
        Feed { clock: self.clock, log }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Most scenes have only some of them.
        for path in [self.lane("requests"), self.lane("reports"), self.ticks.clone()] {
            let _ = path.remove();
        }
    }
}

/// A running venue and its log lines; dropping it stops the venue.
struct Running {
    orders: VenueControl,
    events: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<Result<(), VenueServerError>>>,
}

impl Running {
    fn events(&self) -> Vec<String> {
        self.events.lock().expect("nobody panics with it").clone()
    }

    fn await_words(&self, words: &str) {
        self.await_count(words, 1);
    }

    fn await_count(&self, words: &str, wanted: usize) {
        until(
            || {
                let is_over = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
                assert!(!is_over || count(&self.events(), words) >= wanted, "it ended: {:?}", self.events());
                count(&self.events(), words) >= wanted
            },
            &format!("'{words}' {wanted} times; events: {:?}", self.events()),
        );
    }

    /// Stops the venue and returns all its log lines.
    fn stop(mut self) -> Vec<String> {
        self.orders.stop.store(true, Ordering::Release);
        let ended = self.thread.take().expect("it is stopped once").join().expect("it does not panic");
        ended.unwrap_or_else(|e| panic!("it ended: {e}; {:?}", self.events()));
        self.events()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The OMS's ends of the lanes.
struct Oms {
    clock: HostClock,
    requests: Writer,
    reports: Reader,
    received: Vec<ExecutionReport>,
}

impl Oms {
    /// Sends a buy of this quantity at 100.5, once the venue is there.
    fn send(&mut self, id: u64, quantity: i64) {
        let limit = Price::from_whole(100).0 + Price::from_whole(1).0 / 2;
        let order = order(Side::Buy, id, Quantity::from_whole(quantity).0, limit);
        let request = Request::New(tickpath_market::NewOrder { symbol: SymbolId(SYMBOL), ..order });
        let kind = request.kind().code();
        until(|| self.requests.publish(self.clock.ticks(), kind, request.as_bytes()).is_ok(), "a venue that reads");
    }

    fn await_reports(&mut self, wanted: usize) {
        until(
            || {
                self.read();
                self.received.len() >= wanted
            },
            "the reports",
        );
    }

    /// Waits until exactly this quantity of an order is filled.
    fn await_filled(&mut self, id: u64, quantity: i64) {
        let mut filled = 0;
        until(
            || {
                self.read();
                let fills = self.received.iter().filter(|report| report.order_id.0 == id);
                let fills = fills.filter(|report| report.exec_type == ExecType::Trade.code());
                filled = fills.map(|fill| fill.last_quantity.0).sum();
                filled >= Quantity::from_whole(quantity).0
            },
            "the fills",
        );
        assert_eq!(filled, Quantity::from_whole(quantity).0, "order {id}");
    }

    fn read(&mut self) {
        let received = &mut self.received;
        let take = |next: Next<'_>| match next {
            Next::Message(message) => received.extend(ExecutionReport::read_from_bytes(message.payload)),
            _ => panic!("a lane with a mandatory reader loses nothing"),
        };
        self.reports.drain(64, take).expect("the lane is sound");
    }
}

/// Publisher of ticks.
struct Feed {
    clock: HostClock,
    log: Writer,
}

impl Feed {
    /// Publishes a tick with ten at each side.
    fn tick(&mut self, bid: i64, ask: i64) {
        let size = Quantity::from_whole(10);
        let (bid, ask) = (Price::from_whole(bid), Price::from_whole(ask));
        let sizes = TopOfBook { bid_quantity: size, ask_quantity: size, ..TopOfBook::default() };
        let tick = TopOfBook { bid, ask, symbol: SymbolId(SYMBOL), ..sizes };
        let published = self.log.publish(self.clock.ticks(), Kind::TopOfBook.code(), tick.as_bytes());
        published.expect("an overwrite topic takes all");
    }
}

fn count(events: &[String], words: &str) -> usize {
    events.iter().filter(|sentence| sentence.contains(words)).count()
}

/// Polls until the condition holds, with a time limit.
fn until(mut is_so: impl FnMut() -> bool, what: &str) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        sleep_ns(PAUSE_NS);
    }
    panic!("it never came to {what}");
}
