//! The strategy of `path` outside its OMS's process: it logs on like a desk's strategy. A strategy in another language
//! receives the same settings, and writes the same rows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Gap as Loss, StartPosition, Subscriber, SubscriptionEvent as BusEvent, connect};
use tickpath_clock::{Clock, HostClock, yield_now};
use tickpath_market::{AccountId, Request};
use tickpath_oms_client::{ClientSendError, Since};

use crate::analyse::RequestGroup;
use crate::decision::{Decision, SeenTick};
use crate::orders::{BenchLogin, ClientReportKind, log_in, receive_socket};
use crate::strategy::{QUIET_TIMEOUT_NS, StrategyResult};
use tickpath_lab_harness::quiet_timer::QuietTimer;
use tickpath_lab_harness::samples::{preallocated_rows, save};
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};

/// The same strategy in Python.
pub(super) const SCRIPT: (&str, &str) = ("bench_strategy.py", include_str!("../python/bench_strategy.py"));

/// Max delay of a report where no ticks arrive: a report does not wake a thread that sleeps for ticks.
const MAX_REPORT_DELAY_NS: u64 = 1_000_000;

/// Role of a strategy that logs on to its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StrategyRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// The login of the strategy.
    pub login: BenchLogin,
    /// The number of its instrument.
    pub symbol: u32,
    /// Its account.
    pub account: u32,
    /// Each order's quantity, in units of 10⁻⁸.
    pub quantity: i64,
    /// The id of its first order; ids count up from it.
    pub first_id: u64,
    /// The number of ticks expected.
    pub count: u64,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of the rows of its orders.
    pub out: PathBuf,
    /// The file of the stamps of the ticks.
    pub out_ticks: PathBuf,
}

impl ProcessRole for StrategyRole {
    const NAME: &'static str = "strategy";

    /// Runs the strategy's process. It ends when the feed has ended and everything in flight has arrived.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let (clock, wait) = (HostClock::get()?, self.thread.wait()?);
        let mut topic = connect(&self.target)?.subscriber(&self.topic, StartPosition::Now, wait)?;
        topic.set_warm_up(self.thread.warm);
        let mut strategy = ExternalStrategy {
            clock,
            client: log_in(&self.login, Since::Now)?,
            decision: Decision::new(AccountId(self.account)),
            ticks: preallocated_rows(self.count as usize),
            rows: preallocated_rows(self.count as usize),
            result: StrategyResult::default(),
        };
        self.thread.apply()?;
        parent.ready();
        let mut quiet = QuietTimer::new(&clock, QUIET_TIMEOUT_NS);
        loop {
            let polled = strategy.poll_tick(topic.as_mut())?;
            if polled + strategy.receive_reports()? > 0 {
                quiet.restart();
            } else if quiet.is_over_after(wait, parent) {
                break;
            } else {
                topic.wait(MAX_REPORT_DELAY_NS);
            }
        }
        let ExternalStrategy { client, ticks, rows, result: mut traded, .. } = strategy;
        client.close();
        save(&self.out, &rows)?;
        save(&self.out_ticks, &ticks)?;
        traded.record_topic(&*topic);
        parent.result(&traded);
        Ok(())
    }
}

struct ExternalStrategy {
    clock: HostClock,
    client: Box<tickpath_oms_client::Client>,
    decision: Decision,
    /// The stamp of each tick, in order of arrival.
    ticks: Vec<[u64; 1]>,
    /// A row per order: tick, seen, first report, first report of the venue. T0 is in the journal.
    rows: Vec<[u64; 4]>,
    result: StrategyResult,
}

impl ExternalStrategy {
    /// Takes an event off the topic, if there is any, and answers it if it is a tick; returns the number of events.
    fn poll_tick(&mut self, topic: &mut dyn Subscriber) -> Result<usize, LabError> {
        let (mut tick, mut missed) = (None, 0);
        let clock = self.clock;
        let polled = topic.poll(1, &mut |event| match event {
            BusEvent::Message(message) => tick = Some(SeenTick::of(&message, clock.ticks())),
            BusEvent::Gap(Loss::Missed(more)) => missed += more,
            // A foreign message is not a tick to trade on.
            BusEvent::Gap(Loss::Reconnected) | BusEvent::Foreign(_) => {}
        });
        let events = polled.map_err(|e| LabError::Failed(format!("receiving ticks failed: {e}")))?;
        self.result.missed += missed;
        if let Some(tick) = tick {
            self.ticks.push([tick.stamp]);
            self.on_tick(&tick)?;
        }
        Ok(events)
    }

    fn on_tick(&mut self, tick: &SeenTick) -> Result<(), LabError> {
        let Some(order) = self.decision.on_tick(tick, self.rows.len() as u64) else { return Ok(()) };
        self.rows.push([tick.stamp, tick.seen, 0, 0]);
        self.result.orders += 1;
        let (request, sent) = (Request::New(order), self.clock.ticks());
        loop {
            match self.client.send_at(&request, sent) {
                Ok(_) => return Ok(()),
                // The next poll of the reports returns the reason of a lost connection.
                Err(ClientSendError::Full(_) | ClientSendError::Disconnected(_)) => {
                    if self.receive_reports()? == 0 {
                        yield_now();
                    }
                }
                Err(e) => return Err(LabError::Failed(e.to_string())),
            }
        }
    }

    fn receive_reports(&mut self) -> Result<usize, LabError> {
        let Self { clock, client, rows, result: traded, .. } = self;
        let (received, missed) = receive_socket(client, |id, kind| {
            traded.denied += u64::from(kind == ClientReportKind::Denied);
            let Some([_, _, acked, accepted]) = rows.get_mut(id.0 as u32 as usize) else { return };
            let now = clock.ticks();
            if *acked == 0 {
                *acked = now;
            }
            if kind == ClientReportKind::Venue && *accepted == 0 {
                *accepted = now;
            }
        })?;
        traded.lapped += missed;
        Ok(received)
    }
}

/// Returns the rows of a strategy outside, completed with each order's T0 from the journal: tick, seen, sent, first
/// report, first report of the venue.
pub(super) fn add_sent_times(rows: &[[u64; 4]], group: &RequestGroup) -> Vec<[u64; 5]> {
    let mut whole: Vec<[u64; 5]> =
        rows.iter().map(|&[tick, seen, acked, accepted]| [tick, seen, 0, acked, accepted]).collect();
    for (number, sent) in group.sent() {
        if let Some(row) = whole.get_mut(number as usize) {
            row[2] = sent;
        }
    }
    whole
}
