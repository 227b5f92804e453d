//! The layouts on their threads, beside a venue on its own thread: every request is answered, the journals end alike,
//! and a stop ends every thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tickpath_clock::SchedulingGap;
use tickpath_clock::{HostClock, Wait, sleep_ns, yield_now};
use tickpath_log::{LogPath, Reader, ReaderStart, Registration};
use tickpath_market::{OrdStatus, OrderId, Quantity, Request, Side};
use tickpath_oms_core::Output;
use tickpath_oms_runtime::{Layout, OmsError, layout};

use crate::{Client, ClientRequest, Clock, Scene, cancel, limit};

/// Orders of a run; two of three are canceled again.
const ORDERS: u64 = 2_000;

/// Max duration of a run.
const DEADLINE_NS: i64 = 60_000_000_000;

/// Pause of a loop that waits for threads.
const PAUSE_NS: u64 = 100_000;

/// Wait strategies with which the threads of every layout fit on two processors.
const WAITS: [Wait; 2] = [Wait::Yield, Wait::Block];

#[test]
fn every_layout_answers_all_requests_and_ends_alike() {
    let wanted: BTreeMap<_, _> = (1..=ORDERS).map(|id| (id, (end_of(id), Quantity::ZERO))).collect();
    each_layout(|scene, name| {
        let beside = ThreadedOms::start(scene);
        let mut client = scene.client(0);
        let mut answers = 0;
        for request in requests() {
            while client.try_send(request).is_err() {
                answers += client.receive_reports().len();
                beside.deadline.check("room in the lane");
                yield_now();
            }
        }
        // Each request has two answers: from the OMS, and from the venue.
        while answers < 2 * requests().count() {
            let report_count = client.receive_reports().len();
            answers += report_count;
            beside.deadline.check("all answers");
            if report_count == 0 {
                sleep_ns(PAUSE_NS);
            }
        }
        beside.end();
        assert_eq!(answers, 2 * requests().count(), "{name}");
        let (core, _, outputs) = scene.replay();
        let mut ends = BTreeMap::new();
        for output in &outputs {
            if let Output::Venue { request: Request::New(order), .. } = output {
                let view = core.order(OrderId(order.client_order_id.0)).expect("the venue was sent it");
                ends.insert(view.client_order_id.0, (view.status, view.cumulative));
            }
        }
        assert!(ends == wanted, "{name}: the journal ends with other states");
    });
}

#[test]
fn a_stop_ends_every_thread_while_a_client_keeps_sending() {
    /// More orders than all lanes hold together.
    const FLOOD: u64 = 30_000;
    each_layout(|scene, name| {
        let beside = ThreadedOms::start(scene);
        let mut client = scene.client(0);
        for id in 1..=FLOOD {
            if id == FLOOD / 8 {
                beside.flags.stop.store(true, Ordering::Release);
            }
            while client.try_send(limit(Side::Buy, id, 90, 1)).is_err() && !beside.oms.is_finished() {
                beside.deadline.check("room in the lane after the stop");
                yield_now();
            }
            if beside.oms.is_finished() {
                break;
            }
        }
        beside.end();
        let (core, inputs, _) = scene.replay();
        assert!(core.counts().sending + core.counts().working > 0, "{name}");
        let defined = definitions(scene);
        assert!(inputs.len() as u64 >= defined as u64 + FLOOD / 8 - 1, "{name}: what was sent before the stop is lost");
    });
}

#[test]
fn an_idle_run_stops_too() {
    each_layout(|scene, name| {
        ThreadedOms::start(scene).end();
        let (_, inputs, outputs) = scene.replay();
        assert_eq!((inputs.len(), outputs.len()), (1 + definitions(scene), 0), "{name}");
        for lane in ["core.clients", "core.venues"] {
            let inner = LogPath::shared_memory(&format!("{}.{lane}", scene.config.lanes.name)).expect("a good name");
            assert!(!inner.exists(), "{name} leaves {inner} behind");
        }
    });
}

/// Runs a check on a scene of every layout with every wait strategy, after the market has moved once.
pub fn each_layout(check: impl Fn(&Scene, &str)) {
    for layout in Layout::ALL {
        for wait in WAITS {
            let mut scene = Scene::new();
            scene.config.layout = layout;
            scene.config.wait = wait;
            scene.tick(99, 101);
            check(&scene, &format!("{layout}, {wait}"));
        }
    }
}

/// An OMS and a venue on threads of their own.
pub struct ThreadedOms {
    oms: JoinHandle<Result<Vec<SchedulingGap>, OmsError>>,
    venue: JoinHandle<()>,
    flags: StopFlags,
    pub deadline: Deadline,
}

/// Flags that end both threads when dropped, so that a failed test leaves no thread behind.
struct StopFlags {
    stop: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Drop for StopFlags {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.over.store(true, Ordering::Relaxed);
    }
}

impl ThreadedOms {
    /// Starts both, and returns when the OMS knows the market.
    pub fn start(scene: &Scene) -> Self {
        let flags = StopFlags { stop: Arc::new(AtomicBool::new(false)), over: Arc::new(AtomicBool::new(false)) };
        let ready = Arc::new(AtomicBool::new(false));
        let (clock, config, ticks) = (scene.clock.clone(), scene.config.clone(), scene.ticks());
        let (stop, is_ready) = (flags.stop.clone(), ready.clone());
        let oms = std::thread::spawn(move || {
            layout::run(clock, &config, Some(ticks), &stop, || is_ready.store(true, Ordering::Release))
        });
        let deadline = Deadline::new();
        while !ready.load(Ordering::Acquire) && !oms.is_finished() {
            deadline.check("the OMS");
            sleep_ns(PAUSE_NS);
        }
        let (mut line, over) = (scene.venue(), flags.over.clone());
        let venue = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if line.poll().expect("the venue's lanes are sound") == 0 {
                    yield_now();
                }
            }
        });
        let look = Reader::open(&scene.market.path, ReaderStart::Now, Registration::Registered).expect("it is there");
        while look.readers().iter().any(|reader| reader.cursor < scene.feed.sequence()) && !oms.is_finished() {
            deadline.check("the market to be seen");
            sleep_ns(PAUSE_NS);
        }
        Self { oms, venue, flags, deadline }
    }

    /// Stops both threads within the deadline.
    pub fn end(self) {
        self.flags.stop.store(true, Ordering::Release);
        while !self.oms.is_finished() {
            self.deadline.check("the OMS to stop");
            sleep_ns(PAUSE_NS);
        }
        let ended = self.oms.join().expect("no thread of the OMS panics");
        assert!(ended.is_ok(), "the OMS stopped by itself: {}", ended.err().map_or(String::new(), |e| e.to_string()));
        self.flags.over.store(true, Ordering::Relaxed);
        self.venue.join().expect("the venue does not panic");
    }
}

/// Returns the number of inputs that begin a new journal, after the start record: each session has its rules and its
/// grant.
fn definitions(scene: &Scene) -> usize {
    let trading = &scene.config.trading;
    trading.instruments.len() + trading.accounts.len() + trading.venues.len() + 2 * trading.sessions.len()
}

/// Time limit of a run.
pub struct Deadline {
    clock: HostClock,
    begin: u64,
}

impl Deadline {
    fn new() -> Self {
        let clock = HostClock::get().expect("this host has a clock");
        Self { clock, begin: clock.ticks() }
    }

    /// Panics if the deadline has passed.
    pub fn check(&self, awaited: &str) {
        let passed = self.clock.ns_between(self.begin, self.clock.ticks());
        assert!(passed < DEADLINE_NS, "the deadline passed while waiting for {awaited}");
    }
}

/// Waits for this many reports or denials and returns them.
pub fn await_messages(client: &mut Client, deadline: &Deadline, count: usize) -> Vec<crate::ReceivedMessage> {
    let mut received = Vec::new();
    while received.len() < count {
        deadline.check("an answer");
        received.extend(client.receive());
        sleep_ns(PAUSE_NS);
    }
    received
}

/// Returns new orders, all but every third canceled at once.
fn requests() -> impl Iterator<Item = Request> {
    (1..=ORDERS).flat_map(|id| {
        let ClientRequest(order) = limit(Side::Buy, id, 90, 1).into();
        let gone = (end_of(id) == OrdStatus::Canceled).then(|| cancel(ORDERS + id, id));
        [Some(order), gone].into_iter().flatten()
    })
}

fn end_of(id: u64) -> OrdStatus {
    if id.is_multiple_of(3) { OrdStatus::New } else { OrdStatus::Canceled }
}
