//! The strategy of `path` outside its OMS's process: it logs on like a desk's strategy. A strategy in another language
//! receives the same settings, and writes the same rows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Event as BusEvent, Gap as Loss, Start, Subscriber, connect};
use tickpath_clock::{Clock, HostClock, yield_now};
use tickpath_market::{AccountId, Request};
use tickpath_oms_client::{SendError, Since};

use crate::analyse::Group;
use crate::decision::{Decision, Tick};
use crate::orders::{Login, ReportKind, hear_socket, log_in};
use crate::strategy::{QUIET_NS, Traded};
use tickpath_lab_harness::quiet::Quiet;
use tickpath_lab_harness::samples::{save, touched_rows};
use tickpath_lab_harness::{LabError, Parent, Role, Thread};

/// The same strategy in Python.
pub(super) const SCRIPT: (&str, &str) = ("bench_strategy.py", include_str!("../python/bench_strategy.py"));

/// Max delay of a report where no ticks arrive: a report does not wake a thread that sleeps for ticks.
const LOOK_NS: u64 = 1_000_000;

/// Role of a strategy that logs on to its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StrategyRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// The login of the strategy.
    pub login: Login,
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
    pub thread: Thread,
    /// The file of the rows of its orders.
    pub out: PathBuf,
    /// The file of the stamps of the ticks.
    pub out_ticks: PathBuf,
}

impl Role for StrategyRole {
    const NAME: &'static str = "strategy";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        strategy(self, parent)
    }
}

/// Runs the strategy's process. It ends when the feed has ended and everything in flight has arrived.
fn strategy(role: &StrategyRole, parent: &Parent) -> Result<(), LabError> {
    let (clock, wait) = (HostClock::get()?, role.thread.wait()?);
    let mut topic = connect(&role.target)?.subscriber(&role.topic, Start::Now, wait)?;
    topic.keep_warm(role.thread.warm);
    let mut strategy = Strategy {
        clock,
        client: log_in(&role.login, Since::Now)?,
        decision: Decision::new(AccountId(role.account)),
        ticks: touched_rows(role.count as usize),
        rows: touched_rows(role.count as usize),
        traded: Traded::default(),
    };
    role.thread.settle()?;
    parent.ready();
    let mut quiet = Quiet::new(&clock, QUIET_NS);
    loop {
        let came = strategy.take_tick(topic.as_mut())?;
        if came + strategy.hear()? > 0 {
            quiet.ends();
        } else if quiet.is_over_after(wait, parent) {
            break;
        } else {
            topic.wait(LOOK_NS);
        }
    }
    let Strategy { client, ticks, rows, mut traded, .. } = strategy;
    client.close();
    save(&role.out, &rows)?;
    save(&role.out_ticks, &ticks)?;
    traded.is_done_with(&*topic);
    parent.result(&traded);
    Ok(())
}

struct Strategy {
    clock: HostClock,
    client: Box<tickpath_oms_client::Client>,
    decision: Decision,
    /// The stamp of each tick, in order of arrival.
    ticks: Vec<[u64; 1]>,
    /// A row per order: tick, seen, first report, first report of the venue. T0 is in the journal.
    rows: Vec<[u64; 4]>,
    traded: Traded,
}

impl Strategy {
    /// Takes an event off the topic, if there is any, and answers it if it is a tick; returns the number of events.
    fn take_tick(&mut self, topic: &mut dyn Subscriber) -> Result<usize, LabError> {
        let (mut tick, mut missed) = (None, 0);
        let clock = self.clock;
        let polled = topic.poll(1, &mut |event| match event {
            BusEvent::Message(message) => tick = Some(Tick::of(&message, clock.ticks())),
            BusEvent::Gap(Loss::Missed(more)) => missed += more,
            // A foreign message is not a tick to trade on.
            BusEvent::Gap(Loss::Reconnected) | BusEvent::Foreign(_) => {}
        });
        let events = polled.map_err(|e| LabError::Failed(format!("receiving ticks failed: {e}")))?;
        self.traded.missed += missed;
        if let Some(tick) = tick {
            self.ticks.push([tick.stamp]);
            self.on_tick(&tick)?;
        }
        Ok(events)
    }

    fn on_tick(&mut self, tick: &Tick) -> Result<(), LabError> {
        let Some(order) = self.decision.on_tick(tick, self.rows.len() as u64) else { return Ok(()) };
        self.rows.push([tick.stamp, tick.seen, 0, 0]);
        self.traded.orders += 1;
        let (request, sent) = (Request::New(order), self.clock.ticks());
        loop {
            match self.client.send_at(&request, sent) {
                Ok(_) => return Ok(()),
                // The next poll of the reports returns the reason of a lost connection.
                Err(SendError::Full(_) | SendError::Disconnected(_)) => {
                    if self.hear()? == 0 {
                        yield_now();
                    }
                }
                Err(e) => return Err(LabError::Failed(e.to_string())),
            }
        }
    }

    /// Takes the OMS's reports.
    fn hear(&mut self) -> Result<usize, LabError> {
        let Self { clock, client, rows, traded, .. } = self;
        let (heard, missed) = hear_socket(client, |id, told| {
            traded.denied += u64::from(told == ReportKind::Denied);
            let Some([_, _, acked, accepted]) = rows.get_mut(id.0 as u32 as usize) else { return };
            let now = clock.ticks();
            if *acked == 0 {
                *acked = now;
            }
            if told == ReportKind::OfVenue && *accepted == 0 {
                *accepted = now;
            }
        })?;
        traded.lapped += missed;
        Ok(heard)
    }
}

/// Returns the rows of a strategy outside, completed with each order's T0 from the journal: tick, seen, sent, first
/// report, first report of the venue.
pub(super) fn with_sent(rows: &[[u64; 4]], group: &Group) -> Vec<[u64; 5]> {
    let mut whole: Vec<[u64; 5]> = rows.iter().map(|&[tick, seen, acked, told]| [tick, seen, 0, acked, told]).collect();
    for (number, sent) in group.sent() {
        if let Some(row) = whole.get_mut(number as usize) {
            row[2] = sent;
        }
    }
    whole
}
