//! The strategy's process: feed, strategy, OMS and line on one thread, with a stamp behind each step.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, GapDetector, HostClock, SchedulingGap, sleep_ns};
use tickpath_feed::{Feed, FeedEvent, MarketEvent};
use tickpath_lab_harness::quiet_timer::QuietTimer;
use tickpath_lab_harness::samples::{preallocated_rows, save, save_gaps};
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};
use tickpath_lab_path::{Decision, OmsRole, SeenTick, VENUE, is_from_venue};
use tickpath_log::Next;
use tickpath_market::{AccountId, ClientOrderId, ExecutionReport, Kind, OrderDenied, Request, TopOfBook};
use tickpath_oms_runtime::layout::Inline;
use tickpath_oms_runtime::{Agent, LineFactory, LineId, Notice, OmsLineConfig, SessionLanes};
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};
use zerocopy::{FromBytes, IntoBytes};

use crate::protocol::{ExchangeLine, ViaExchange, tick_of};

/// Role of the strategy with its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebTraderRole {
    /// The exchange.
    pub via: ViaExchange,
    /// The address of the exchange: host and port.
    pub address: String,
    /// The file of the authority's certificate.
    pub ca: PathBuf,
    /// The OMS.
    pub oms: OmsRole,
    /// The number of orders expected.
    pub orders: u64,
    /// The number of ticks of which the first is answered.
    pub ticks_per_order: u64,
    /// The CPU and priority of the thread.
    pub thread: ThreadConfig,
    /// The file of a row for each order.
    pub out: PathBuf,
}

/// Stamps of an order, in ticks of the clock, behind the number of its tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OrderStamps {
    pub tick: u64,
    /// The kernel had the packet.
    pub wire: u64,
    /// The call that read it has returned.
    pub read: u64,
    /// The message was decrypted and without its frame.
    pub framed: u64,
    /// The message was typed.
    pub parsed: u64,
    /// T0.
    pub sent: u64,
    /// The core has handed the order to its line.
    pub handed: u64,
    /// The order's message was written as text.
    pub encoded: u64,
    /// Its bytes were framed and encrypted.
    pub ready: u64,
    /// The call that sends them has returned.
    pub written: u64,
    /// The client had the first report.
    pub acked: u64,
    /// The client had the first report of the exchange.
    pub accepted: u64,
}

/// The number of stamps, with the number of the tick.
pub(crate) const STAMPS: usize = 12;

/// Time without news after which everything has arrived.
const QUIET_NS: i64 = 1_000_000_000;
/// Max time until feed and line are up.
const UP_NS: i64 = 15_000_000_000;

impl ProcessRole for WebTraderRole {
    const NAME: &'static str = "trader at an exchange";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let sends = SendRows::with_capacity(self.orders as usize);
        let config = self.oms.config_over(self.line(clock, sends.clone()))?;
        let mut trader = Trader {
            clock,
            oms: Inline::open(clock, &config, None).map_err(LabError::other)?,
            feed: self.via.feed(&self.address, &self.ca)?,
            lanes: self.oms.strategy_lanes(&clock)?,
            decision: Decision::new(AccountId(self.oms.account)),
            rows: Vec::with_capacity(self.orders as usize),
            ticks_per_order: self.ticks_per_order,
            last: None,
            ticks: 0,
            result: WebTraderResult::default(),
        };
        self.thread.apply()?;
        trader.connect()?;
        parent.ready();
        let gaps = trader.trade(parent)?;
        trader.oms.sequencer().stop().map_err(LabError::other)?;
        let sends = sends.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trader.result.ticks = trader.ticks;
        save(&self.out, &joined(&trader.rows, &sends))?;
        save_gaps(&self.out.with_extension("gaps"), &gaps)?;
        parent.result(&trader.result);
        Ok(())
    }
}

impl WebTraderRole {
    fn line(&self, clock: HostClock, sends: SendRows) -> OmsLineConfig {
        let (via, address, ca) = (self.via, self.address.clone(), self.ca.clone());
        let open = LineFactory::new(move || {
            let line = via.line(&address, &ca, VENUE).map_err(|e| e.to_string())?;
            Ok(Box::new(StampedLine { line, clock, sends: sends.clone() }) as Box<dyn Line>)
        });
        let id = LineId { venue: VENUE, line: 0 };
        OmsLineConfig { id, open, rate_per_second: 0, window: u32::MAX, lost_after_ns: 30_000_000_000 }
    }
}

/// Counts of a run.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct WebTraderResult {
    pub ticks: u64,
    pub orders: u64,
    pub denied: u64,
    /// Frames that could not be read.
    pub bad_frames: u64,
    /// Reports that the strategy has missed.
    pub missed_reports: u64,
}

struct Trader {
    clock: HostClock,
    oms: Inline<HostClock>,
    feed: Box<dyn Feed>,
    lanes: SessionLanes,
    decision: Decision,
    rows: Vec<OrderStamps>,
    ticks_per_order: u64,
    /// The last tick.
    last: Option<u64>,
    ticks: u64,
    result: WebTraderResult,
}

/// A quote with the stamps of its way here.
struct ReceivedQuote {
    quote: TopOfBook,
    wire: u64,
    read: u64,
    framed: u64,
    parsed: u64,
}

impl Trader {
    /// Connects feed and line, and waits until both are up.
    fn connect(&mut self) -> Result<(), LabError> {
        self.feed.connect();
        let (begin, mut is_up) = (self.clock.ticks(), false);
        loop {
            let polled = self.feed.poll(&mut |event| is_up |= matches!(event, FeedEvent::Up));
            polled.map_err(|lost| LabError::Failed(lost.0))?;
            self.oms.poll().map_err(LabError::other)?;
            let has_line = self.oms.sequencer().notices().any(|notice| matches!(notice, Notice::LineUp(_)));
            if is_up && has_line {
                return Ok(());
            }
            if self.clock.ns_between(begin, self.clock.ticks()) > UP_NS {
                let why = self.oms.sequencer().notices().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(LabError::Failed(format!("feed and line are not up within 15 s: {why}")));
            }
            sleep_ns(100_000);
        }
    }

    /// Trades until the exchange has ended and all answers have arrived.
    fn trade(&mut self, parent: &Parent) -> Result<Vec<SchedulingGap>, LabError> {
        let clock = self.clock;
        let (stop, mut quiet) = (parent.stop_flag(), QuietTimer::new(&clock, QUIET_NS));
        let mut gaps = GapDetector::new(self.clock).with_kernel_calls(true);
        loop {
            let quote = self.next_quote()?;
            if let Some(quote) = &quote {
                self.on_quote(quote)?;
                gaps.found_work(quote.read);
            }
            let done = self.oms.poll().map_err(LabError::other)? + self.receive_reports()?;
            if quote.is_some() || done > 0 {
                gaps.busy_turn();
                quiet.restart();
            } else if stop.load(Ordering::Relaxed) && quiet.is_over(parent) {
                return Ok(gaps.into_gaps());
            } else if self.oms.idle() {
                self.feed.warm_up();
                gaps.busy_turn();
            } else {
                gaps.empty_turn();
            }
        }
    }

    /// Takes what the feed has received, and returns the last quote.
    #[inline(never)]
    fn next_quote(&mut self) -> Result<Option<ReceivedQuote>, LabError> {
        let Self { clock, feed, result, .. } = self;
        let (mut arrival, mut framed, mut found) = (Default::default(), 0, None);
        let polled = feed.poll(&mut |event| match event {
            FeedEvent::Frame(_, at) => (arrival, framed) = (at, clock.ticks()),
            FeedEvent::Market(MarketEvent::Quote { quote, .. }) => {
                let parsed = clock.ticks();
                let tickpath_feed::Arrival { wire, read } = arrival;
                found = Some(ReceivedQuote { quote: *quote, wire, read, framed, parsed });
            }
            FeedEvent::BadFrame(_) => result.bad_frames += 1,
            FeedEvent::Up | FeedEvent::Market(_) | FeedEvent::ClockOffset { .. } => {}
        });
        polled.map_err(|lost| LabError::Failed(lost.0))?;
        Ok(found)
    }

    /// Decides, and hands the order to the OMS, which sends it.
    #[inline(never)]
    fn on_quote(&mut self, received: &ReceivedQuote) -> Result<(), LabError> {
        let ReceivedQuote { quote, wire, read, framed, parsed } = *received;
        self.oms.sequencer().apply_top_of_book(parsed, &quote).map_err(LabError::other)?;
        // The first quote is the one of before the first tick; a fill changes the quantity of a quote, and not its price.
        let Some(tick) = tick_of(quote.bid).filter(|tick| self.last != Some(*tick)) else { return Ok(()) };
        self.last = Some(tick);
        self.ticks += 1;
        if !tick.is_multiple_of(self.ticks_per_order) {
            return Ok(());
        }
        let seen = SeenTick { stamp: wire.max(1), seen: parsed, top: Some(quote) };
        let Some(order) = self.decision.on_tick(&seen, self.rows.len() as u64) else { return Ok(()) };
        let sent = self.clock.ticks();
        let published = self.lanes.requests.publish(sent, Kind::NewOrder.code(), order.as_bytes());
        published.map_err(|e| LabError::Failed(format!("the OMS's lane: {e}")))?;
        self.oms.poll().map_err(LabError::other)?;
        self.rows.push(OrderStamps { tick, wire, read, framed, parsed, sent, ..OrderStamps::default() });
        self.result.orders += 1;
        Ok(())
    }

    #[inline(never)]
    fn receive_reports(&mut self) -> Result<usize, LabError> {
        let Self { lanes, clock, rows, result, .. } = self;
        let mut take = |id: ClientOrderId, of_exchange: bool| {
            let Some(row) = rows.get_mut(id.0 as u32 as usize) else { return };
            let now = clock.ticks();
            if row.acked == 0 {
                row.acked = now;
            }
            if of_exchange && row.accepted == 0 {
                row.accepted = now;
            }
        };
        let received = lanes.reports.drain(8, |next| match next {
            Next::Message(message) if message.kind == Kind::OrderDenied.code() => {
                if let Ok(denied) = OrderDenied::read_from_bytes(message.payload) {
                    result.denied += 1;
                    take(denied.client_order_id, false);
                }
            }
            Next::Message(message) => {
                if let Ok(report) = ExecutionReport::read(message.kind, message.payload) {
                    take(report.client_order_id, is_from_venue(&report));
                }
            }
            Next::Gap(missed) => result.missed_reports += missed,
            Next::Empty => {}
        });
        received.map_err(|e| LabError::Failed(format!("the report log: {e}")))
    }
}

/// A row for each sent order: its price, the begin of its send, and the line's stamps.
#[derive(Clone)]
struct SendRows(Arc<Mutex<Vec<[u64; 5]>>>);

impl SendRows {
    fn with_capacity(orders: usize) -> Self {
        Self(Arc::new(Mutex::new(preallocated_rows(orders))))
    }
}

/// A line that stamps each send.
struct StampedLine {
    line: ExchangeLine,
    clock: HostClock,
    sends: SendRows,
}

impl Line for StampedLine {
    fn address(&self) -> String {
        self.line.as_line().address()
    }

    fn connect(&mut self, resume: &ResumeState) {
        self.line.line().connect(resume);
    }

    #[inline]
    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), LineSendError> {
        let begin = self.clock.ticks();
        self.line.line().send(number, stamp, request)?;
        if let Request::New(order) = request {
            let stamps = self.line.last_send();
            let row = [order.price.0 as u64, begin, stamps.encoded, stamps.ready, stamps.written];
            // Only this thread takes the lock.
            self.sends.0.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        }
        Ok(())
    }

    fn confirm(&mut self, next_report: u64) {
        self.line.line().confirm(next_report);
    }

    #[inline]
    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        self.line.line().poll(take)
    }

    fn warm_up(&mut self) {
        self.line.line().warm_up();
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.line.as_line().socket()
    }
}

/// Returns the rows of the orders with the stamps of their sends, by their ticks.
fn joined(rows: &[OrderStamps], sends: &[[u64; 5]]) -> Vec<[u64; STAMPS]> {
    let sent = |tick: u64| sends.iter().find(|row| tick_of(tickpath_market::Price(row[0] as i64)) == Some(tick));
    let mut all: Vec<[u64; STAMPS]> = Vec::with_capacity(rows.len());
    for row in rows {
        let [_, handed, encoded, ready, written] = sent(row.tick).copied().unwrap_or_default();
        all.push(OrderStamps { handed, encoded, ready, written, ..*row }.into());
    }
    all
}

impl From<OrderStamps> for [u64; STAMPS] {
    fn from(row: OrderStamps) -> Self {
        let OrderStamps { tick, wire, read, framed, parsed, sent, handed, encoded, ready, written, acked, accepted } =
            row;
        [tick, wire, read, framed, parsed, sent, handed, encoded, ready, written, acked, accepted]
    }
}

impl From<[u64; STAMPS]> for OrderStamps {
    fn from(row: [u64; STAMPS]) -> Self {
        let [tick, wire, read, framed, parsed, sent, handed, encoded, ready, written, acked, accepted] = row;
        Self { tick, wire, read, framed, parsed, sent, handed, encoded, ready, written, acked, accepted }
    }
}
