//! The trader process of `path`: a strategy, and the OMS that takes its orders.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_bus::{Gap as Loss, Message, StartPosition, Subscriber, SubscriptionEvent as BusEvent, connect};
use tickpath_clock::{
    AdaptiveWait, Clock, GapDetector, HostClock, IdleAction, SchedulingGap, Wait, WakeUpCost, yield_now,
};
use tickpath_log::{LogPublishError, Next, Reader, WarmUpLog, Writer};
use tickpath_market::{AccountId, ClientOrderId, ExecType, ExecutionReport, Kind, NewOrder, OrdStatus, OrderDenied};
use tickpath_oms_runtime::layout::Inline;
use tickpath_oms_runtime::{Agent, Layout, SessionLanes};
use zerocopy::{FromBytes, IntoBytes};

use crate::decision::{Decision, SeenTick};
use crate::orders::is_from_venue;
use crate::send_log::SendLog;
use crate::trade::{OmsRole, oms_config};
use tickpath_lab_harness::quiet_timer::QuietTimer;
use tickpath_lab_harness::samples::{preallocated_rows, save, save_gaps};
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};

/// Role of the strategy with its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TraderRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// The OMS.
    pub oms: OmsRole,
    /// The number of orders expected.
    pub count: u64,
    /// The strategy's CPU and priority; in `inline` also the OMS's.
    pub thread: ThreadConfig,
    /// The file of its samples.
    pub out: PathBuf,
}

impl ProcessRole for TraderRole {
    const NAME: &'static str = "trader";

    /// Runs the trader's process.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let config = oms_config(&self.oms, &SendLog::default())?;
        let wait = self.thread.wait()?;
        // A single thread waits for ticks and reports, so the topic must not choose the wait's length.
        let of_topic = if (config.layout, wait) == (Layout::Inline, Wait::Adaptive) { Wait::Block } else { wait };
        if wait == Wait::Adaptive {
            // Measured here, so that it does not delay the first ticks.
            WakeUpCost::of_this_host();
        }
        let mut topic = connect(&self.target)?.subscriber(&self.topic, StartPosition::Now, of_topic)?;
        topic.set_warm_up(self.thread.warm);
        let (mut strategy, gaps) = match config.layout {
            Layout::Inline => {
                let mut oms = Inline::open(clock, &config, None).map_err(LabError::other)?;
                let mut strategy = LaneStrategy::new(self, &clock)?;
                self.thread.apply()?;
                parent.ready();
                let gaps = GapDetector::new(clock).with_kernel_calls(!is_log(&self.target));
                let gaps = trade_inline(&mut oms, &mut strategy, topic.as_mut(), wait, gaps, parent)?;
                oms.sequencer().stop().map_err(LabError::other)?;
                (strategy, gaps)
            }
            Layout::Split | Layout::Mutex => trade_split(self, &clock, &config, topic.as_mut(), parent)?,
        };
        strategy.result.record_topic(&*topic);
        save(&self.out, &strategy.rows)?;
        save(&self.out.with_extension("ticks"), &strategy.ticks)?;
        save_gaps(&self.out.with_extension("gaps"), &gaps)?;
        parent.result(&strategy.result);
        Ok(())
    }
}

/// Time without news after which everything in flight has arrived.
pub(crate) const QUIET_TIMEOUT_NS: i64 = 100_000_000;

/// Empty turns between two turns with idle work of the topic: in every turn it would delay ticks by its pause.
const TOPIC_IDLE_EVERY: u32 = 8;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct StrategyResult {
    pub missed: u64,
    /// The number of reconnects to the ticks, where the client reports it.
    pub reconnects: Option<u64>,
    /// Duplicate ticks, and late ticks that had been reported as missed: the strategy received neither.
    #[serde(default)]
    pub duplicates: u64,
    #[serde(default)]
    pub late: u64,
    pub orders: u64,
    pub denied: u64,
    /// The number of reports that it missed.
    pub lapped: u64,
    /// The number of times that it could not hand an order over and stamped its T0 anew, as other clients do.
    #[serde(default)]
    pub restamped: u64,
}

impl StrategyResult {
    /// Records its subscription's counts of reconnects, duplicates and late ticks.
    pub fn record_topic(&mut self, topic: &dyn Subscriber) {
        self.reconnects = topic.reconnects();
        (self.duplicates, self.late) = (topic.duplicates().unwrap_or(0), topic.out_of_order().unwrap_or(0));
    }
}

/// Takes an event off the topic, if there is any; returns the number of events, and the tick if the event was a tick.
#[inline(always)]
fn poll_tick(topic: &mut dyn Subscriber, strategy: &mut LaneStrategy) -> Result<(usize, Option<SeenTick>), LabError> {
    let mut found = None;
    let polled = topic.poll(1, &mut |event| match event {
        BusEvent::Message(message) => found = Some(strategy.receive_tick(&message)),
        BusEvent::Gap(Loss::Missed(missed)) => strategy.result.missed += missed,
        // A foreign message is not a tick to trade on.
        BusEvent::Gap(Loss::Reconnected) | BusEvent::Foreign(_) => {}
    });
    let events = polled.map_err(|e| LabError::Failed(format!("receiving ticks failed: {e}")))?;
    Ok((events, found))
}

/// Runs strategy and OMS as one thread.
fn trade_inline(
    oms: &mut Inline<HostClock>,
    strategy: &mut LaneStrategy,
    topic: &mut dyn Subscriber,
    wait: Wait,
    mut gaps: GapDetector<HostClock>,
    parent: &Parent,
) -> Result<Vec<SchedulingGap>, LabError> {
    let clock = strategy.clock;
    let (stop, mut quiet) = (parent.stop_flag(), QuietTimer::new(&clock, QUIET_TIMEOUT_NS));
    let mut idle_turns = 0u32;
    let mut rests = (wait == Wait::Adaptive).then(|| AdaptiveWait::new(clock));
    loop {
        let (events, tick) = poll_tick(topic, strategy)?;
        if let Some(tick) = tick {
            if let Some(top) = &tick.top {
                oms.sequencer().apply_top_of_book(tick.stamp, top).map_err(LabError::other)?;
            }
            strategy.on_tick(&tick)?;
            oms.poll().map_err(LabError::other)?;
            gaps.found_work(tick.seen);
            rests.iter_mut().for_each(AdaptiveWait::note_work);
            quiet.restart();
            continue;
        }
        if events + oms.poll().map_err(LabError::other)? + strategy.receive_reports()? > 0 {
            gaps.busy_turn();
            quiet.restart();
            continue;
        }
        if stop.load(Ordering::Relaxed) && quiet.is_over(parent) {
            return Ok(gaps.into_gaps());
        }
        // A report of the venue does not wake a thread that sleeps for ticks, so the thread polls after a millisecond.
        const CHECK_INTERVAL_NS: u64 = 1_000_000;
        match rests.as_mut().map(|rests| rests.next_action(CHECK_INTERVAL_NS)) {
            None if wait != Wait::Busy => {
                topic.wait(CHECK_INTERVAL_NS);
                continue;
            }
            Some(IdleAction::Sleep(ns)) => {
                topic.wait(ns);
                rests.iter_mut().for_each(AdaptiveWait::note_wake_up);
                gaps.busy_turn();
                oms.note_sleep();
                continue;
            }
            _ => {}
        }
        idle_turns = idle_turns.wrapping_add(1);
        let of_topic = idle_turns.is_multiple_of(TOPIC_IDLE_EVERY) && topic.idle();
        let of_oms = oms.idle();
        if of_oms {
            strategy.warm_up();
        }
        // Time in our own code is not a gap.
        if of_topic || of_oms {
            gaps.busy_turn();
        } else {
            gaps.empty_turn();
        }
    }
}

/// Runs the strategy beside an OMS that has threads of its own.
fn trade_split(
    role: &TraderRole,
    clock: &HostClock,
    config: &tickpath_oms_runtime::Config,
    topic: &mut dyn Subscriber,
    parent: &Parent,
) -> Result<(LaneStrategy, Vec<SchedulingGap>), LabError> {
    let ticks = crate::trade::market(&role.oms.market, clock)?;
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let end = &end;
        let oms = scope.spawn(move || {
            tickpath_oms_runtime::layout::run(*clock, config, ticks, end, || {
                let _ = ready.send(());
            })
        });
        // If the OMS ends instead, its error is returned below.
        let opened = is_ready.recv().is_ok();
        let traded = if opened { run_beside_oms(role, clock, topic, parent) } else { Ok(None) };
        end.store(true, Ordering::Release);
        let gaps = oms.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(LabError::other)?;
        let strategy = traded?.ok_or_else(|| LabError::Failed("the OMS ended at once".to_owned()))?;
        Ok((strategy, gaps))
    })
}

fn run_beside_oms(
    role: &TraderRole,
    clock: &HostClock,
    topic: &mut dyn Subscriber,
    parent: &Parent,
) -> Result<Option<LaneStrategy>, LabError> {
    role.thread.apply()?;
    let mut strategy = LaneStrategy::new(role, clock)?;
    let (stop, mut quiet) = (parent.stop_flag(), QuietTimer::new(clock, QUIET_TIMEOUT_NS));
    parent.ready();
    loop {
        match poll_tick(topic, &mut strategy)?.1 {
            Some(tick) => {
                strategy.on_tick(&tick)?;
                quiet.restart();
            }
            None if strategy.receive_reports()? > 0 => quiet.restart(),
            None if stop.load(Ordering::Relaxed) && quiet.is_over(parent) => return Ok(Some(strategy)),
            None => topic.wait(1_000_000),
        }
    }
}

/// A strategy that sends an order at the touch for every tick.
struct LaneStrategy {
    clock: HostClock,
    requests: Writer,
    reports: Reader,
    decision: Decision,
    /// The stamp of each tick, in order of arrival.
    ticks: Vec<[u64; 1]>,
    /// A row per order: tick, seen, sent, first report, first report of the venue.
    rows: Vec<[u64; 5]>,
    result: StrategyResult,
    /// A second strategy on private lanes for the warm-up, and the writer of its reports.
    warm_up: Option<Box<(LaneStrategy, Writer)>>,
}

impl LaneStrategy {
    fn new(role: &TraderRole, clock: &HostClock) -> Result<Self, LabError> {
        let lanes = role.oms.strategy_lanes(clock)?;
        let mut strategy = Self::with_lanes(lanes, AccountId(role.oms.account), role.count as usize, clock);
        if role.thread.warm && matches!(role.thread.wait()?, Wait::Busy | Wait::Adaptive) {
            // Without it, perhaps for lack of memory, a tick after a silence takes longer.
            strategy.warm_up = strategy.warm_up_copy().ok().map(Box::new);
        }
        Ok(strategy)
    }

    /// Makes a strategy that expects `count` ticks.
    fn with_lanes(lanes: SessionLanes, account: AccountId, count: usize, clock: &HostClock) -> Self {
        Self {
            clock: *clock,
            requests: lanes.requests,
            reports: lanes.reports,
            decision: Decision::new(account),
            ticks: preallocated_rows(count),
            rows: preallocated_rows(count),
            result: StrategyResult::default(),
            warm_up: None,
        }
    }

    /// Makes a strategy for the warm-up and the writer of its reports, with room for an order of each side.
    fn warm_up_copy(&self) -> std::io::Result<(Self, Writer)> {
        let requests = self.requests.warm_up_log()?.writer;
        let WarmUpLog { writer, reader: reports } = self.reports.warm_up_log()?;
        Ok((Self::with_lanes(SessionLanes { requests, reports }, self.decision.account, 2, &self.clock), writer))
    }

    /// Warms up: answers the last tick again on private lanes and receives its report, and touches the memory of the
    /// next answer.
    #[inline(never)]
    fn warm_up(&mut self) {
        let Self { requests, decision, ticks, rows, warm_up: rehearsal, .. } = self;
        let Some((second, reports)) = rehearsal.as_deref_mut() else { return };
        requests.warm_up(size_of::<NewOrder>());
        let _ = ticks.spare_capacity_mut().first_mut().map(|next| next.write([0]));
        let _ = rows.spare_capacity_mut().first_mut().map(|next| next.write([0; 5]));
        second.ticks.clear();
        if second.rows.len() == second.rows.capacity() {
            second.rows.clear();
        }
        let (stamp, client_order_id) = (second.clock.ticks(), ClientOrderId(second.rows.len() as u64));
        let (kind, payload) = (Kind::TopOfBook.code(), decision.quote());
        let tick = second.receive_tick(&Message { sequence: None, stamp, kind, payload, id: None });
        let _ = second.on_tick(&tick);
        let (exec_type, status) = (ExecType::New.code(), OrdStatus::New.code());
        let report = ExecutionReport { client_order_id, exec_type, status, ..ExecutionReport::default() };
        let _ = reports.publish(stamp, Kind::ExecutionReport.code(), report.as_bytes());
        let _ = second.receive_reports();
    }

    /// Takes a message off the topic.
    // Real and warm-up messages share this function and the two below: a copy would keep nothing warm.
    #[inline(never)]
    fn receive_tick(&mut self, message: &Message<'_>) -> SeenTick {
        let seen = self.clock.ticks();
        self.ticks.push([message.stamp]);
        SeenTick::of(message, seen)
    }

    /// Decides, and sends the order.
    #[inline(never)]
    fn on_tick(&mut self, tick: &SeenTick) -> Result<(), LabError> {
        let Some(order) = self.decision.on_tick(tick, self.rows.len() as u64) else { return Ok(()) };
        let sent = self.clock.ticks();
        loop {
            match self.requests.publish(sent, Kind::NewOrder.code(), order.as_bytes()) {
                Ok(_) => {
                    self.rows.push([tick.stamp, tick.seen, sent, 0, 0]);
                    self.result.orders += 1;
                    return Ok(());
                }
                Err(LogPublishError::Full) => yield_now(),
                Err(e) => return Err(LabError::Failed(format!("the OMS's lane: {e}"))),
            }
        }
    }

    #[inline(never)]
    fn receive_reports(&mut self) -> Result<usize, LabError> {
        let Self { reports, clock, rows, .. } = self;
        let mut take = |id: ClientOrderId, of_venue: bool| {
            let Some(row) = rows.get_mut(id.0 as u32 as usize) else { return };
            let now = clock.ticks();
            if row[3] == 0 {
                row[3] = now;
            }
            if of_venue && row[4] == 0 {
                row[4] = now;
            }
        };
        let (mut denied, mut lapped) = (0, 0);
        let received = reports.drain(8, |next| {
            let message = match next {
                Next::Message(message) => message,
                Next::Gap(missed) => return lapped += missed,
                Next::Empty => return,
            };
            if message.kind == Kind::OrderDenied.code() {
                if let Ok(report) = OrderDenied::read_from_bytes(message.payload) {
                    denied += 1;
                    take(report.client_order_id, false);
                }
            } else if let Ok(report) = ExecutionReport::read(message.kind, message.payload) {
                take(report.client_order_id, is_from_venue(&report));
            }
        });
        self.result.denied += denied;
        self.result.lapped += lapped;
        received.map_err(|e| LabError::Failed(format!("the report log: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use tickpath_log::{Config, LogPath, OverflowPolicy, Registration};
    use tickpath_market::{Price, TopOfBook};

    use super::*;
    use crate::trade::SYMBOL;

    /// Answers eight ticks, receives a report for every third, and warms up before each tick if `rehearses`; returns
    /// all remaining state, and the number of warm-up orders.
    fn day(rehearses: bool) -> (String, u64) {
        let clock = HostClock::get().expect("this host has a clock");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let lanes = [("requests", OverflowPolicy::Fail), ("reports", OverflowPolicy::Overwrite)];
        let [requests, mut oms] = lanes.map(|(name, policy)| {
            let config = Config::topic(LogPath::folder(folder.path().join(name)), policy);
            Writer::open(&config, clock.calibration()).expect("the folder is ours")
        });
        let [mut orders, reports] = [&requests, &oms].map(|lane| {
            let start = tickpath_log::ReaderStart::Oldest;
            Reader::open(lane.path(), start, Registration::Registered).expect("the lane is there")
        });
        let mut strategy = LaneStrategy::with_lanes(SessionLanes { requests, reports }, AccountId(7), 8, &clock);
        if rehearses {
            strategy.warm_up = Some(Box::new(strategy.warm_up_copy().expect("there is memory")));
        }
        for stamp in 1..=8 {
            (0..50).for_each(|_| strategy.warm_up());
            assert_eq!(strategy.receive_reports().expect("the lane is sound"), 0, "no report was sent");
            let [bid, ask] = [99, 100].map(|price| Price::from_whole(price + stamp as i64));
            let top = TopOfBook { bid, ask, symbol: SYMBOL, ..TopOfBook::default() };
            let (kind, payload) = (Kind::TopOfBook.code(), top.as_bytes());
            let tick = strategy.receive_tick(&Message { sequence: None, stamp, kind, payload, id: None });
            strategy.on_tick(&tick).expect("there is room");
            if stamp % 3 == 0 {
                let (exec_type, status) = (ExecType::New.code(), OrdStatus::New.code());
                let client_order_id = ClientOrderId(stamp - 1);
                let report = ExecutionReport { client_order_id, exec_type, status, ..ExecutionReport::default() };
                oms.publish(stamp, Kind::ExecutionReport.code(), report.as_bytes()).expect("it never waits");
                assert_eq!(strategy.receive_reports().expect("the lane is sound"), 1);
            }
        }
        let mut sent = Vec::new();
        let drained = orders.drain(100, |next| match next {
            Next::Message(order) => sent.push((order.kind, order.payload.to_vec())),
            other => panic!("{other:?} where an order is"),
        });
        assert_eq!(drained.expect("the lane is sound"), 8);
        let rows: Vec<_> = strategy.rows.iter().map(|row| (row[0], row[3] > 0, row[4] > 0)).collect();
        let rehearsed = strategy.warm_up.as_ref().map_or(0, |second| second.0.result.orders);
        (format!("{sent:?} {rows:?} {:?} {:?}", strategy.ticks, strategy.result), rehearsed)
    }

    #[test]
    fn a_warmed_up_strategy_trades_like_a_cold_one() {
        let [(warm, rehearsed), (cold, none)] = [true, false].map(day);
        assert_eq!(warm, cold);
        assert_eq!((rehearsed, none), (350, 0), "before the first tick there is no touch");
    }
}
