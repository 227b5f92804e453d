//! The OMS between its clients and a venue, through its public interface: the path of an order, restarts at every
//! point, layouts on threads, and hostile neighbours.

mod admission;
mod calendar;
mod conditional;
mod config_changes;
mod days;
mod drop_copy;
mod failure_guarantees;
mod fixture;
mod history;
mod hostile;
mod identity;
mod layouts;
mod lines;
mod meter;
mod order_path;
mod positions;
mod recover;
mod refused_journals;
mod scripted_venue;
mod silent_venue;
mod venue_questions;
mod warm_up;

use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::{Clock, SimulatedClock};
use tickpath_log::{
    Config as LogConfig, LogPath, LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer,
};
use tickpath_market::{
    CancelOrder, ClientOrderId, ExecType, ExecutionReport, Kind, NewOrder, OrdStatus, OrderDenied, Price, Quantity,
    ReplaceOrder, Request, Side, SymbolId,
};
use tickpath_oms_core::{Core, Input, Instrument, Output, VenueRules};
use tickpath_oms_runtime::layout::Inline;
use tickpath_oms_runtime::{
    AckLevel, Agent, Config, LaneKind, Layout, Notice, OmsError, RequestRate, SessionLanes, TradingDefinitions,
    VenueLanes, journal,
};
use tickpath_venue_sim::{Config as VenueConfig, SimVenue, VenueEngine};
use zerocopy::{FromBytes, IntoBytes};

use fixture::{ClientRequest, ReceivedMessage, SECOND, SLOW, TIGHT, VENUE, WIDE, config, limit, top};

/// Start time of every test, in ticks of a nanosecond.
const MORNING: u64 = 1_000;

/// Max turns: a path that is still busy then never becomes idle.
const MAX_TURNS: usize = 100_000;

/// Lanes, market and journal of one test, removed at its end.
struct Scene {
    config: Config,
    clock: SimulatedClock,
    market: LogConfig,
    feed: Writer,
    _folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        static SCENES: AtomicU64 = AtomicU64::new(0);
        let name = format!("oms-test-{}-{}", std::process::id(), SCENES.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let clock = SimulatedClock::at(MORNING);
        let place = LogPath::shared_memory(&format!("{name}.market")).expect("the name is good");
        let market = LogConfig::topic(place, OverflowPolicy::Overwrite);
        let feed = Writer::open(&market, clock.calibration()).expect("the topic is new");
        Self { config: config(&name, folder.path(), 2), clock, market, feed, _folder: folder }
    }

    /// Opens the OMS on this thread, with prices from the market.
    fn oms(&self) -> Inline<SimulatedClock> {
        self.try_oms().unwrap_or_else(|e| panic!("the OMS does not open: {e}"))
    }

    fn try_oms(&self) -> Result<Inline<SimulatedClock>, OmsError> {
        Inline::open(self.clock.clone(), &self.config, Some(self.ticks()))
    }

    fn ticks(&self) -> Reader {
        Reader::open(&self.market.path, ReaderStart::Oldest, Registration::Registered).expect("the topic is there")
    }

    /// Joins a venue that makes its market from the same ticks. The OMS must have made the lanes.
    fn venue(&self) -> VenueEngine<SimulatedClock> {
        let VenueLanes { requests, reports } = self.venue_lanes();
        let venue = SimVenue::new(VenueConfig { venue: VENUE, symbols: 2, expected_orders: 4_096 });
        VenueEngine::new(self.clock.clone(), venue, requests, reports, Some(self.ticks()))
    }

    /// Joins the venue's ends of its lanes.
    fn venue_lanes(&self) -> VenueLanes {
        self.config.lanes.join_venue(VENUE, self.clock.calibration()).expect("the OMS has made them")
    }

    /// Joins a client of a session. The OMS must have made the lanes.
    fn client(&self, session: u16) -> Client {
        let joined = self.config.lanes.join_session(session, self.clock.calibration());
        let SessionLanes { requests, reports } = joined.expect("the OMS has made them");
        Client { clock: self.clock.clone(), requests, reports }
    }

    /// Returns the configuration of a lane's log.
    fn lane(&self, kind: LaneKind) -> LogConfig {
        self.config.lanes.lane(kind).expect("a good name")
    }

    /// Moves the market of the first symbol: ten at each side.
    fn tick(&mut self, bid: i64, ask: i64) {
        let tick = top(bid, ask);
        let published = self.feed.publish(self.clock.ticks(), Kind::TopOfBook.code(), tick.as_bytes());
        published.expect("an overwrite topic takes all");
    }

    /// Returns all frames of the lane to the venue: kind and bytes.
    fn to_venue(&self) -> Vec<(u8, Vec<u8>)> {
        frames(&self.lane(LaneKind::VenueRequests(VENUE)))
    }

    /// Returns all frames of a session's report log: kind and bytes.
    fn to_client(&self, session: u16) -> Vec<(u8, Vec<u8>)> {
        frames(&self.lane(LaneKind::Reports(session)))
    }

    /// Replays the journal and returns the core, its inputs, and all outputs that were sent.
    fn replay(&self) -> (Core, Vec<Input>, Vec<Output>) {
        let mut core = Core::new(tickpath_oms_core::Config { expected_orders: 0, key: 0 });
        let (mut inputs, mut sent_outputs) = (Vec::new(), Vec::new());
        let replayed = journal::replay(&self.config.journal.path, &mut core, |input, outputs| {
            inputs.push(*input);
            // A request that was returned from its lane was never sent.
            if let Input::UnsentRequest(returned) = input {
                let sent = returned.request();
                let is_it = |output: &Output| matches!(output, Output::Venue { request, .. } if Some(*request) == sent);
                sent_outputs.remove(sent_outputs.iter().rposition(is_it).expect("what comes back was said"));
            }
            sent_outputs.extend_from_slice(outputs);
        });
        if let Err(e) = replayed {
            panic!("the journal does not replay: {e}");
        }
        (core, inputs, sent_outputs)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A failed test may have left only some of the files.
        let _ = self.config.lanes.remove();
        let _ = self.market.path.remove();
    }
}

/// One session's ends of its lanes.
struct Client {
    clock: SimulatedClock,
    requests: Writer,
    reports: Reader,
}

impl Client {
    fn send(&mut self, request: impl Into<ClientRequest>) {
        self.try_send(request).expect("the OMS reads this lane, and it has room");
    }

    fn try_send(&mut self, request: impl Into<ClientRequest>) -> Result<u64, LogPublishError> {
        let ClientRequest(request) = request.into();
        self.requests.publish(self.clock.ticks(), request.kind().code(), request.as_bytes())
    }

    /// Returns all messages since the last call.
    fn receive(&mut self) -> Vec<ReceivedMessage> {
        let mut received = Vec::new();
        let drained = self.reports.drain(usize::MAX, |next| match next {
            Next::Message(message) => received.push(ReceivedMessage::read(message.kind, message.payload)),
            other => panic!("a client that keeps up finds {other:?}"),
        });
        drained.expect("the report log is sound");
        received
    }

    /// Returns the reports since the last call, none of them a denial: request, report type, and the order's status.
    fn receive_reports(&mut self) -> Vec<(u64, ExecType, OrdStatus)> {
        self.receive().iter().map(ReceivedMessage::summary).collect()
    }
}

impl ReceivedMessage {
    fn read(kind: u8, payload: &[u8]) -> Self {
        if kind == Kind::OrderDenied.code() {
            return Self::Denied(OrderDenied::read_from_bytes(payload).expect("a whole denial"));
        }
        Self::Report(ExecutionReport::read(kind, payload).expect("a sound report"))
    }
}

fn cancel(id: u64, original: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        account: WIDE,
        ..CancelOrder::default()
    })
}

fn replace(id: u64, original: u64, price: i64, quantity: i64) -> Request {
    Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(id),
        original: ClientOrderId(original),
        price: Price::from_whole(price),
        quantity: Quantity::from_whole(quantity),
        account: WIDE,
        ..ReplaceOrder::default()
    })
}

/// Polls both until neither has anything to do.
fn settle(oms: &mut Inline<SimulatedClock>, venue: &mut VenueEngine<SimulatedClock>) {
    for _ in 0..MAX_TURNS {
        if poll(oms) + venue.poll().expect("the venue's lanes are sound") == 0 {
            return;
        }
    }
    panic!("the path does not come to rest");
}

fn poll(oms: &mut Inline<SimulatedClock>) -> usize {
    oms.poll().unwrap_or_else(|e| panic!("the OMS stopped: {e}"))
}

/// Returns all frames of a log that was never overwritten: kind and bytes.
fn frames(config: &LogConfig) -> Vec<(u8, Vec<u8>)> {
    let mut log =
        Reader::open(&config.path, ReaderStart::Oldest, Registration::Unregistered).expect("the log is there");
    let mut frames = Vec::new();
    loop {
        match log.next().expect("the log is sound") {
            Next::Message(message) => frames.push((message.kind, message.payload.to_vec())),
            Next::Gap(missed) => panic!("{missed} frames of {} are gone", config.path),
            Next::Empty => return frames,
        }
    }
}

/// Returns a core's outputs to the venue as frames.
fn venue_frames(outputs: &[Output]) -> Vec<(u8, Vec<u8>)> {
    let of = |output: &Output| match output {
        Output::Venue { request, .. } => Some((request.kind().code(), request.as_bytes().to_vec())),
        Output::Report { .. } | Output::Denied { .. } | Output::Extension { .. } => None,
    };
    outputs.iter().filter_map(of).collect()
}

/// Returns a core's outputs to one session as frames.
fn client_frames(outputs: &[Output], to: u16) -> Vec<(u8, Vec<u8>)> {
    let of = |output: &Output| match output {
        Output::Report { session, report } if *session == to => {
            Some((Kind::ExecutionReport.code(), report.as_bytes().to_vec()))
        }
        Output::Denied { session, denied } if *session == to => {
            Some((Kind::OrderDenied.code(), denied.as_bytes().to_vec()))
        }
        Output::Extension { session, extension } if *session == to => {
            Some((Kind::OrderExtension.code(), extension.as_bytes().to_vec()))
        }
        Output::Venue { .. } | Output::Report { .. } | Output::Denied { .. } | Output::Extension { .. } => None,
    };
    outputs.iter().filter_map(of).collect()
}

/// A xorshift generator: the same seed gives the same script.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }
}

/// Returns the seed of this run and prints it for a failure; `TICKPATH_SEED` repeats the run.
fn seed() -> u64 {
    let seed = std::env::var("TICKPATH_SEED").map_or(1, |text| text.parse().expect("TICKPATH_SEED is a number"));
    eprintln!("TICKPATH_SEED={seed}");
    seed
}
