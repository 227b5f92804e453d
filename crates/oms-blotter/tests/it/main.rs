//! Blotters of journals that a real OMS wrote, between a client and a simulated venue.

mod cost;
mod day;
#[expect(dead_code, reason = "the tests of the OMS use more of this file")]
#[path = "../../../oms-runtime/tests/it/fixture.rs"]
mod fixture;
mod random;
mod rows;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::{Clock, SimulatedClock};
use tickpath_log::{Config as LogConfig, LogPath, OverflowPolicy, Reader, ReaderStart, Registration, Writer};
use tickpath_market::{
    ClientOrderId, Kind, NewOrder, Price, Quantity, Request, Side, SymbolId, TimeInForce, TopOfBook,
};
use tickpath_oms_blotter::{BlotterFill, BlotterOrder, BlotterPosition, BlotterView, DayBlotter, DayChoice};
use tickpath_oms_core::{DayEnd, EnterPosition, RecordKind};
use tickpath_oms_runtime::layout::Inline;
use tickpath_oms_runtime::{Agent, Config, SessionLanes, TradingDefinitions, VenueLanes};
use tickpath_venue_sim::{Config as VenueConfig, SimVenue, VenueEngine};
use zerocopy::IntoBytes;

use fixture::{VENUE, WIDE as ACCOUNT, limit, top};

const SYMBOL: SymbolId = SymbolId(0);
/// Currency units per point of the instrument.
const MULTIPLIER: i64 = 5;

/// Time at which every test begins, in ticks of a nanosecond.
const MORNING: u64 = 1_000;

/// Turns after which a path that still has work never becomes idle.
const MAX_TURNS: usize = 100_000;

/// One whole unit of money, in units of 10⁻¹⁶.
const MONEY: i128 = 10_000_000_000_000_000;

/// An OMS, its venue, and its client.
struct Scene {
    oms: Option<Inline<SimulatedClock>>,
    venue: VenueEngine<SimulatedClock>,
    requests: Writer,
    clock: SimulatedClock,
    config: Config,
    market: LogConfig,
    feed: Writer,
    _folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        static SCENES: AtomicU64 = AtomicU64::new(0);
        let name = format!("blotter-test-{}-{}", std::process::id(), SCENES.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let clock = SimulatedClock::at(MORNING);
        let place = LogPath::shared_memory(&format!("{name}.market")).expect("the name is good");
        let market = LogConfig::topic(place, OverflowPolicy::Overwrite);
        let feed = Writer::open(&market, clock.calibration()).expect("the topic is new");
        let config = config(&name, folder.path());
        let ticks =
            || Reader::open(&market.path, ReaderStart::Oldest, Registration::Registered).expect("the topic is there");
        let oms = Inline::open(clock.clone(), &config, Some(ticks())).unwrap_or_else(|e| panic!("no OMS: {e}"));
        let lanes = config.lanes.join_venue(VENUE, clock.calibration()).expect("the OMS has made them");
        let VenueLanes { requests, reports } = lanes;
        let venue = SimVenue::new(VenueConfig { venue: VENUE, symbols: 1, expected_orders: 4_096 });
        let venue = VenueEngine::new(clock.clone(), venue, requests, reports, Some(ticks()));
        let lanes = config.lanes.join_session(0, clock.calibration()).expect("the OMS has made them");
        let SessionLanes { requests, .. } = lanes;
        let mut scene = Self { oms: Some(oms), venue, requests, clock, config, market, feed, _folder: folder };
        scene.tick(99, 101);
        scene
    }

    fn journal(&self) -> &LogPath {
        &self.config.journal.path
    }

    /// Moves the market, with a quantity of a thousand on each side.
    fn tick(&mut self, bid: i64, ask: i64) {
        let quantity = Quantity::from_whole(1_000);
        let tick = TopOfBook { bid_quantity: quantity, ask_quantity: quantity, ..top(bid, ask) };
        let published = self.feed.publish(self.clock.ticks(), Kind::TopOfBook.code(), tick.as_bytes());
        published.expect("an overwrite topic takes all");
        self.settle();
    }

    fn send(&mut self, request: Request) {
        let published = self.requests.publish(self.clock.ticks(), request.kind().code(), request.as_bytes());
        published.expect("the OMS reads this lane, and it has room");
        self.settle();
    }

    fn order(&mut self, side: Side, id: u64, price: i64, quantity: i64) {
        self.send(Request::New(limit(side, id, price, quantity)));
    }

    /// Polls both until neither has work.
    fn settle(&mut self) {
        for _ in 0..MAX_TURNS {
            let oms = self.oms.as_mut().map_or(0, |oms| oms.poll().unwrap_or_else(|e| panic!("the OMS stopped: {e}")));
            if oms + self.venue.poll().expect("the venue's lanes are sound") == 0 {
                return;
            }
        }
        panic!("the path does not come to rest");
    }

    fn end_day(&mut self, day: u32) {
        self.venue.end_of_day().expect("the venue's lanes are sound");
        self.settle();
        let end = DayEnd { day, ..DayEnd::default() };
        self.command(RecordKind::DayEnd, end.as_bytes());
    }

    /// Enters a position as an admin does.
    fn enter(&mut self, entered: &EnterPosition) {
        self.command(RecordKind::EnterPosition, entered.as_bytes());
    }

    fn command(&mut self, kind: RecordKind, record: &[u8]) {
        let mut operator = self.config.lanes.join_control(self.clock.calibration()).expect("the OMS has made it");
        operator.publish(self.clock.ticks(), kind.code(), record).expect("the OMS reads it");
        self.settle();
    }

    fn read(&self, which: DayChoice) -> DayBlotter {
        DayBlotter::open(self.journal(), which).unwrap_or_else(|e| panic!("no blotter: {e}"))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A failed test may have left only a part of it.
        let _ = self.config.lanes.remove();
        let _ = self.market.path.remove();
    }
}

/// Returns the order rows of a blotter.
fn orders(blotter: &DayBlotter, view: &BlotterView) -> Vec<BlotterOrder> {
    blotter.orders(view).cloned().collect()
}

fn fills(blotter: &DayBlotter) -> Vec<BlotterFill> {
    blotter.fills(&BlotterView::default()).cloned().collect()
}

/// Returns the only position of a blotter, valued by a view.
fn position(blotter: &DayBlotter, view: &BlotterView) -> BlotterPosition {
    let rows: Vec<BlotterPosition> = blotter.positions(view).collect();
    let [row] = &rows[..] else { panic!("one position was expected: {rows:?}") };
    row.clone()
}

/// Returns the configuration of an OMS with one instrument, one account and one session.
fn config(name: &str, folder: &Path) -> Config {
    let mut config = Config { warm_up: false, ..fixture::config(name, folder, 1) };
    let TradingDefinitions { instruments, accounts, sessions, .. } = &mut config.trading;
    instruments.truncate(1);
    instruments[0].multiplier = MULTIPLIER;
    accounts.truncate(1);
    (accounts[0].max_order_quantity, accounts[0].collar) = (Quantity::from_whole(1_000), 5_000);
    sessions.truncate(1);
    config
}
