//! The trader process of `path`: a strategy, and the OMS that takes its orders.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_bus::{Event as BusEvent, Gap as Loss, Start, Subscriber, connect};
use tickpath_clock::{Clock, Gap, Gaps, HostClock, Wait, relax, yield_now};
use tickpath_log::{Next, PublishError, Reader, Writer};
use tickpath_market::{
    AccountId, ClientOrderId, ExecutionReport, Kind, NewOrder, OrderDenied, OrderType, Price, Quantity, Side,
    TimeInForce, TopOfBook,
};
use tickpath_oms::layout::Inline;
use tickpath_oms::{Agent, Layout, SessionLanes};
use zerocopy::{FromBytes, IntoBytes};

use crate::orders::group::PATH_GROUP;
use crate::orders::is_of_venue;
use crate::trade::{OmsRole, SYMBOL, lanes, oms_config};
use tickpath_harness::quiet::Quiet;
use tickpath_harness::samples::{save, save_gaps, touched_rows};
use tickpath_harness::targets::is_log;
use tickpath_harness::{LabError, Parent, Role, Thread};

/// Strategy and OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TraderRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// The OMS.
    pub oms: OmsRole,
    /// Orders expected.
    pub count: u64,
    /// Where the strategy runs; in `inline` also the OMS.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

impl Role for TraderRole {
    const NAME: &'static str = "trader";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        trader(self, parent)
    }
}

/// With nothing new for so long, what was on its way is there.
const QUIET_NS: i64 = 100_000_000;

/// Each order's quantity: small beside what stands at the touch.
const QUANTITY: Quantity = Quantity(100_000);

/// What the trader tells at its end.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Traded {
    pub missed: u64,
    /// How often its connection to the ticks was made again, where the client tells.
    pub reconnects: Option<u64>,
    pub orders: u64,
    pub denied: u64,
    /// Reports that it missed.
    pub lapped: u64,
}

/// The trader's life.
pub(crate) fn trader(role: &TraderRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let config = oms_config(&role.oms)?;
    let wait = role.thread.wait()?;
    let mut topic = connect(&role.target)?.subscriber(&role.topic, Start::Now, wait)?;
    let (mut strategy, gaps) = match config.layout {
        Layout::Inline => {
            let mut oms = Inline::open(clock, &config, None).map_err(LabError::other)?;
            let mut strategy = Strategy::new(role, &clock)?;
            role.thread.settle()?;
            parent.ready();
            let gaps = Gaps::new(clock).of_calls(!is_log(&role.target));
            let gaps = trade_inline(&mut oms, &mut strategy, topic.as_mut(), wait, gaps, parent)?;
            oms.sequencer().stop().map_err(LabError::other)?;
            (strategy, gaps)
        }
        Layout::Split | Layout::Mutex => trade_beside(role, &clock, &config, topic.as_mut(), wait, parent)?,
    };
    strategy.traded.reconnects = topic.reconnects();
    save(&role.out, &strategy.rows)?;
    save(&role.out.with_extension("ticks"), &strategy.ticks)?;
    save_gaps(&role.out.with_extension("gaps"), &gaps)?;
    parent.result(&strategy.traded);
    Ok(())
}

/// A tick that was just seen.
struct Tick {
    stamp: u64,
    seen: u64,
    top: Option<TopOfBook>,
}

/// Takes one event off the topic, if there is one: how many there were, and the tick if it was one.
#[inline(always)]
fn take_tick(topic: &mut dyn Subscriber, strategy: &mut Strategy) -> Result<(usize, Option<Tick>), LabError> {
    let Strategy { clock, ticks, traded, .. } = strategy;
    let mut found = None;
    let polled = topic.poll(1, &mut |event| match event {
        BusEvent::Message(message) => {
            let seen = clock.ticks();
            ticks.push([message.stamp]);
            let is_top = message.kind == Kind::TopOfBook.code();
            let top = if is_top { TopOfBook::read_from_bytes(message.payload).ok() } else { None };
            found = Some(Tick { stamp: message.stamp, seen, top });
        }
        BusEvent::Gap(Loss::Missed(missed)) => traded.missed += missed,
        // What is no tick of ours is nothing to trade on.
        BusEvent::Gap(Loss::Reconnected) | BusEvent::Foreign(_) => {}
    });
    let events = polled.map_err(|e| LabError::Failed(format!("receiving ticks failed: {e}")))?;
    Ok((events, found))
}

/// Strategy and OMS as one thread.
fn trade_inline(
    oms: &mut Inline<HostClock>,
    strategy: &mut Strategy,
    topic: &mut dyn Subscriber,
    wait: Wait,
    mut gaps: Gaps<HostClock>,
    parent: &Parent,
) -> Result<Vec<Gap>, LabError> {
    let clock = strategy.clock;
    let (stop, mut quiet) = (parent.stop_flag(), Quiet::new(&clock, QUIET_NS));
    loop {
        let (events, tick) = take_tick(topic, strategy)?;
        if let Some(tick) = tick {
            if let Some(top) = &tick.top {
                oms.sequencer().tick(tick.stamp, top).map_err(LabError::other)?;
            }
            strategy.on_tick(&tick)?;
            oms.poll().map_err(LabError::other)?;
            gaps.found_work(tick.seen);
            quiet.ends();
            continue;
        }
        if events + oms.poll().map_err(LabError::other)? + strategy.hear()? > 0 {
            gaps.busy_turn();
            quiet.ends();
            continue;
        }
        if stop.load(Ordering::Relaxed) && quiet.is_over(parent) {
            return Ok(gaps.into_found());
        }
        match wait {
            Wait::Busy => {
                if oms.idle() {
                    gaps.busy_turn()
                } else {
                    gaps.empty_turn()
                }
            }
            Wait::Yield => yield_now(),
            // A report of the venue does not wake a thread that sleeps for ticks: look after a millisecond.
            Wait::Block => topic.wait(1_000_000),
        }
    }
}

/// The strategy beside an OMS that has threads of its own.
fn trade_beside(
    role: &TraderRole,
    clock: &HostClock,
    config: &tickpath_oms::Config,
    topic: &mut dyn Subscriber,
    wait: Wait,
    parent: &Parent,
) -> Result<(Strategy, Vec<Gap>), LabError> {
    let ticks = crate::trade::market(&role.oms.market, clock)?;
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let end = &end;
        let oms = scope.spawn(move || {
            tickpath_oms::layout::run(*clock, config, ticks, end, || {
                let _ = ready.send(());
            })
        });
        // If the OMS ends instead, its error is below.
        let opened = is_ready.recv().is_ok();
        let traded = if opened { beside(role, clock, topic, wait, parent) } else { Ok(None) };
        end.store(true, Ordering::Release);
        let gaps = oms.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(LabError::other)?;
        let strategy = traded?.ok_or_else(|| LabError::Failed("the OMS ended at once".to_owned()))?;
        Ok((strategy, gaps))
    })
}

fn beside(
    role: &TraderRole,
    clock: &HostClock,
    topic: &mut dyn Subscriber,
    wait: Wait,
    parent: &Parent,
) -> Result<Option<Strategy>, LabError> {
    role.thread.settle()?;
    let mut strategy = Strategy::new(role, clock)?;
    let (stop, mut quiet) = (parent.stop_flag(), Quiet::new(clock, QUIET_NS));
    parent.ready();
    loop {
        match take_tick(topic, &mut strategy)?.1 {
            Some(tick) => {
                strategy.on_tick(&tick)?;
                quiet.ends();
            }
            None if strategy.hear()? > 0 => quiet.ends(),
            None if stop.load(Ordering::Relaxed) && quiet.is_over(parent) => return Ok(Some(strategy)),
            None if wait == Wait::Busy => relax(),
            None => topic.wait(1_000_000),
        }
    }
}

/// Sends an order at the touch for every tick.
struct Strategy {
    clock: HostClock,
    requests: Writer,
    reports: Reader,
    top: TopOfBook,
    account: AccountId,
    /// The stamp of each tick, as they came.
    ticks: Vec<[u64; 1]>,
    /// Tick, seen, sent, first report, first report of the venue; one for each order.
    rows: Vec<[u64; 5]>,
    traded: Traded,
}

impl Strategy {
    fn new(role: &TraderRole, clock: &HostClock) -> Result<Self, LabError> {
        let lanes = lanes(&role.oms.lanes, 1, role.oms.request_bytes, role.oms.report_bytes);
        let SessionLanes { requests, reports } = lanes.join_session(0, clock.calibration())?;
        Ok(Self {
            clock: *clock,
            requests,
            reports,
            top: TopOfBook::default(),
            account: AccountId(role.oms.account),
            ticks: touched_rows(role.count as usize),
            rows: touched_rows(role.count as usize),
            traded: Traded::default(),
        })
    }

    /// The decision, and the order.
    #[inline(always)]
    fn on_tick(&mut self, tick: &Tick) -> Result<(), LabError> {
        // A recording of several instruments is traded in its first.
        if let Some(top) = tick.top.filter(|top| top.symbol == SYMBOL) {
            self.top = top;
        }
        let number = self.rows.len() as u64;
        let (side, price) =
            if number.is_multiple_of(2) { (Side::Buy, self.top.ask) } else { (Side::Sell, self.top.bid) };
        // Before the first quote there is no touch.
        if price == Price::ZERO {
            return Ok(());
        }
        let order = NewOrder {
            client_order_id: ClientOrderId(u64::from(PATH_GROUP) << 32 | number),
            price,
            quantity: QUANTITY,
            cause: tick.stamp,
            symbol: SYMBOL,
            account: self.account,
            side: side.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::ImmediateOrCancel.code(),
            ..NewOrder::default()
        };
        let sent = self.clock.ticks();
        loop {
            match self.requests.publish(sent, Kind::NewOrder.code(), order.as_bytes()) {
                Ok(_) => {
                    self.rows.push([tick.stamp, tick.seen, sent, 0, 0]);
                    self.traded.orders += 1;
                    return Ok(());
                }
                Err(PublishError::Full) => yield_now(),
                Err(e) => return Err(LabError::Failed(format!("the OMS's lane: {e}"))),
            }
        }
    }

    /// Takes what the OMS says.
    #[inline(always)]
    fn hear(&mut self) -> Result<usize, LabError> {
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
        let heard = reports.drain(8, |next| {
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
                take(report.client_order_id, is_of_venue(&report));
            }
        });
        self.traded.denied += denied;
        self.traded.lapped += lapped;
        heard.map_err(|e| LabError::Failed(format!("the report log: {e}")))
    }
}
