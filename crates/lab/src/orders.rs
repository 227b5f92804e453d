//! `orders`: batches of orders through an OMS to a venue, in the form of the f9omstw benchmark.
//!
//! ```text
//!   client process ──lane──> OMS process ──lane──> venue process
//!   T0 before the send       T1 seen  T2 released
//!   generator's CPU          system's CPU          shares the generator's
//! ```
//! Groups g1 … g6 are 1 to 100,000 new orders as fast as they go, d1 … d6 as many cancels, s1 … s3 new orders 1 s, 0.5 s
//! and 0.1 s apart, and e1 … e3 the same with the system's caches walked full before each. Valid only if the OMS has a
//! CPU of its own.

mod client;

pub(crate) use client::{client, evictor, is_of_venue};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, Priority, Wait};
use tickpath_oms::Layout;

use crate::analyse;
use crate::child::Child;
use crate::result::{Counts, Phase, Run};
use crate::role::{ClientRole, EvictorRole, ExchangeRole, OmsRole, Role, Thread};
use crate::samples::{Samples, load, load_gaps, save};
pub use crate::trade::OrderSpec;
use crate::{Lab, LabError, memory};

/// Sizes of the groups g1 … g6 and d1 … d6.
const SIZES: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

/// Pauses of the slow runs, in nanoseconds.
const PAUSES: [u64; 3] = [1_000_000_000, 500_000_000, 100_000_000];

/// Orders of a memory step.
const STEP: u64 = 1_000_000;

/// Bytes of an order in the journal, at most; for reserving.
const JOURNAL_BYTES: u64 = 256;

/// Lanes hold a whole burst, so that they are never what is measured.
const REQUEST_BYTES: usize = 16 << 20;
const REPORT_BYTES: usize = 64 << 20;

/// Marks a row whose request the OMS denied.
const DENIED: u64 = u64::MAX;

/// How `orders` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which thread does what.
    pub layout: Layout,
    /// How the core's thread waits.
    pub wait: Wait,
    /// Generator's and system's CPU.
    pub cpus: [usize; 2],
    /// The venue's CPU; it shares the generator's if there is none.
    pub venue_cpu: Option<usize>,
    /// Of the core's thread.
    pub priority: Priority,
    /// The order.
    pub order: OrderSpec,
    /// One group alone, of so many orders.
    pub count: Option<u64>,
    /// Orders a second of that group; as fast as they go if there is none.
    pub rate: Option<f64>,
    /// 60 orders in slow runs and five memory steps.
    pub full: bool,
    /// The journal's folder; one of the run if there is none.
    pub journal: Option<PathBuf>,
    /// Which repetition this is.
    pub repeat: u32,
}

/// One group of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Its number: the high half of its client order ids.
    number: u32,
    count: u64,
    /// Nanoseconds between two.
    interval_ns: Option<u64>,
    /// Cancels the orders of this group instead of sending new ones.
    cancels: Option<u32>,
    /// The system's caches are walked full before each request.
    evict: bool,
    /// Number of the first request in its group.
    first: u64,
}

/// What the client tells of one batch.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Answered {
    denied: u64,
    missed: u64,
    unanswered: u64,
    last_report: u64,
    /// Requests of a paced batch that went out late.
    late: u64,
}

/// The name of a group by its number.
pub fn group_name(number: u32) -> String {
    match number {
        1..=6 => format!("g{number}"),
        11..=16 => format!("d{}", number - 10),
        21..=23 => format!("s{}", number - 20),
        31..=33 => format!("e{}", number - 30),
        40 => "paced".to_owned(),
        41 => "burst".to_owned(),
        51..=55 => format!("m{}", number - 50),
        60 => "path".to_owned(),
        other => other.to_string(),
    }
}

impl Batch {
    fn burst(number: u32, count: u64) -> Self {
        Self { number, count, interval_ns: None, cancels: None, evict: false, first: 0 }
    }

    fn name(&self) -> String {
        group_name(self.number)
    }

    /// The first order of a new system, orders one by one, or orders in a row.
    fn phase(&self) -> Phase {
        match self.number {
            1 => Phase::Cold,
            21..=33 => Phase::Idle,
            _ => Phase::Steady,
        }
    }

    fn seconds(&self) -> f64 {
        self.interval_ns.map_or(self.count as f64 * 2e-6, |ns| self.count as f64 * ns as f64 / 1e9)
    }
}

/// The groups that these settings ask for.
fn plan(settings: &Settings) -> Vec<Batch> {
    if let Some(count) = settings.count {
        let alone = match settings.rate {
            Some(rate) => Batch { interval_ns: Some((1e9 / rate) as u64), ..Batch::burst(40, count) },
            None => Batch::burst(SIZES.iter().position(|&size| size == count).map_or(41, |i| i as u32 + 1), count),
        };
        return vec![alone];
    }
    let mut plan: Vec<Batch> = (1..).zip(SIZES).map(|(number, count)| Batch::burst(number, count)).collect();
    plan.extend((1..).zip(SIZES).map(|(g, count)| Batch { cancels: Some(g), ..Batch::burst(10 + g, count) }));
    let slow = if settings.full { 60 } else { 10 };
    for (base, evict) in [(20u32, false), (30, true)] {
        let run = |(i, ns): (u32, u64)| Batch { interval_ns: Some(ns), evict, ..Batch::burst(base + i, slow) };
        plan.extend((1..).zip(PAUSES).map(run));
    }
    plan.extend((1..=if settings.full { 5 } else { 1 }).map(|step| Batch::burst(50 + step, STEP)));
    plan
}

/// Runs all groups with one layout and one way to wait.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Vec<Run>, LabError> {
    check(settings)?;
    let plan = plan(settings);
    let seconds: f64 = plan.iter().map(Batch::seconds).sum();
    let what = format!("orders {} {}", settings.layout, settings.wait);
    lab.progress.step(&what, seconds + 3.0);
    let idle = crate::host::idle_gaps(&lab.clock, settings.cpus[1], 200_000_000)?;
    let mut system = System::start(lab, settings, &plan)?;
    let mut measured = Vec::new();
    for batch in &plan {
        let before = memory::of(system.oms.id());
        let answered = system.batch(batch)?;
        measured.push((answered, before, memory::of(system.oms.id())));
    }
    let journal = system.journal.clone();
    system.stop()?;
    let gaps = load_gaps(&lab.folder().join("oms.gaps"))?;
    let (told, _) = analyse::read(&journal, 0)?;
    let mut runs = Vec::new();
    for (batch, (answered, before, after)) in plan.iter().zip(measured) {
        let Some(group) = told.groups.get(&batch.number) else {
            return Err(LabError::Failed(format!("the journal holds nothing of {}", group_name(batch.number))));
        };
        let window = (group.first_sent(), answered.last_report.max(group.last_released()));
        let own: Vec<_> = gaps.iter().filter(|g| g.to >= window.0 && g.from <= window.1).copied().collect();
        let mut run = group.run(&told.calibration, &own);
        describe(&mut run, settings, batch);
        run.memory = Some(memory::between(before, after));
        let growth = after.orders_bytes.saturating_sub(before.orders_bytes) as f64;
        // Memory comes in pages: a few orders would be charged with a whole one.
        if batch.cancels.is_none() && batch.count >= 100_000 {
            run.figures.insert("bytes_per_order".to_owned(), growth / batch.count as f64);
        }
        run.figures.insert("journal_bytes_per_order".to_owned(), group.bytes as f64 / group.len() as f64);
        client_hops(&mut run, lab, batch, &answered, group.last_released(), &own)?;
        let lasted = lab.clock.ns_between(window.0, window.1) as f64 / 1e9;
        match batch.evict {
            // The evictor's walks would pass for the host's gaps.
            true => crate::pubsub::drop_attribution(&mut run),
            false => crate::pubsub::void_attribution(&mut run, &idle, &own, lasted),
        }
        runs.push(run);
    }
    if let Some(last) = runs.last_mut() {
        let rate = replay_rate(lab, &journal, total(&plan))?;
        last.figures.insert("replay_inputs_per_s".to_owned(), rate);
    }
    if settings.journal.is_none() {
        let _ = std::fs::remove_dir_all(&journal);
    }
    Ok(runs)
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: &str| Err(LabError::Setting(what.to_owned()));
    if settings.count == Some(0) || settings.count.is_some_and(|count| count > 50_000_000) {
        return wrong("--count takes 1 to 50000000 orders");
    }
    if settings.rate.is_some() && settings.count.is_none() {
        return wrong("--rate paces one group; say how many orders with --count");
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait == Wait::Busy {
        return wrong("client and core would both spin on one CPU; name two with --cpus, or use --wait block");
    }
    settings.order.order().map(|_| ()).map_err(LabError::Setting)
}

fn describe(run: &mut Run, settings: &Settings, batch: &Batch) {
    run.target = "shm://".to_owned();
    run.repeat = settings.repeat;
    run.layout = Some(settings.layout.to_string());
    run.batch = Some(batch.name().into());
    run.phase = batch.phase();
    run.params.set("orders", batch.count);
    run.params.set("wait", settings.wait.name());
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("priority", settings.priority.to_string());
    run.params.set("order", settings.order.to_string());
    run.params.set("caches", if batch.evict { "evicted" } else { "warm" });
    if let Some(ns) = batch.interval_ns {
        run.params.set("interval_ns", ns);
        // Walking the caches full comes on top of the pause.
        if !batch.evict {
            run.params.set("rate_per_s", 1e9 / ns as f64);
        }
    }
}

fn client_hops(
    run: &mut Run,
    lab: &Lab<'_>,
    batch: &Batch,
    answered: &Answered,
    last_released: u64,
    gaps: &[tickpath_oms::Gap],
) -> Result<(), LabError> {
    let calibration = lab.clock.calibration();
    let rows = load::<3>(&rows_of(lab, batch.number))?;
    for (name, column) in [("order_ack", 1), ("order_round_trip", 2)] {
        let samples = Samples(
            rows.iter()
                .filter(|row| row[0] != 0 && row[column] != 0 && row[column] != DENIED)
                .map(|row| (row[0], row[column]))
                .collect(),
        );
        if !samples.0.is_empty() {
            run.hops.insert(name.to_owned(), samples.hop(calibration, gaps));
        }
    }
    let after = calibration.ns_between(last_released, answered.last_report).max(0);
    run.figures.insert("last_t2_to_last_report_ns".to_owned(), after as f64);
    let received = run.counts.received;
    run.counts = Counts { sent: batch.count, lost: batch.count.saturating_sub(received), ..run.counts };
    if answered.missed > 0 {
        run.notes.push(format!("the client was lapped and missed {} reports", answered.missed));
    }
    if batch.interval_ns.is_some() && answered.late * 100 > batch.count {
        run.valid = false;
        run.notes.push(format!("{} of {} orders went out more than 10 µs late", answered.late, batch.count));
    }
    if answered.denied > 0 {
        run.notes.push(format!("{} orders were denied by the risk checks", answered.denied));
    }
    if answered.unanswered > 0 {
        run.valid = false;
        run.notes.push(format!("{} orders had no answer of the venue in time", answered.unanswered));
    }
    Ok(())
}

fn rows_of(lab: &Lab<'_>, number: u32) -> PathBuf {
    lab.folder().join(format!("client.{number}"))
}

/// How fast a restart replays this journal.
fn replay_rate(lab: &Lab<'_>, journal: &std::path::Path, expected: usize) -> Result<f64, LabError> {
    let place = tickpath_log::Place::folder(journal);
    let mut core = tickpath_orders::Core::new(tickpath_orders::Config { expected_orders: expected, key: 0 });
    let from = lab.clock.ticks();
    let replayed = tickpath_oms::journal::replay(&place, &mut core, |_, _| {})?;
    let ns = lab.clock.ns_between(from, lab.clock.ticks());
    Ok(replayed.inputs as f64 * 1e9 / ns as f64)
}

/// Orders and cancels of all groups.
fn total(plan: &[Batch]) -> usize {
    plan.iter().map(|batch| batch.count as usize).sum()
}

/// The processes of a run.
struct System {
    oms: Child,
    exchange: Child,
    client: Child,
    evictor: Option<Child>,
    journal: PathBuf,
    folder: PathBuf,
}

impl System {
    fn start(lab: &Lab<'_>, settings: &Settings, plan: &[Batch]) -> Result<Self, LabError> {
        let Settings { layout, wait, cpus, priority, order, .. } = settings.clone();
        let expected = total(plan);
        let name = format!("{}.{}.{}.{}", lab.name, layout, wait, settings.repeat);
        let journal = settings.journal.clone().unwrap_or_else(|| lab.folder().join("journal"));
        let shared = if wait == Wait::Block { Wait::Block } else { Wait::Yield };
        let market = format!("{name}.market");
        let oms = OmsRole {
            lanes: name.clone(),
            request_bytes: REQUEST_BYTES,
            report_bytes: REPORT_BYTES,
            journal: journal.clone(),
            reserve_bytes: expected as u64 * JOURNAL_BYTES,
            symbol: order.symbol.clone(),
            account: order.account,
            expected_orders: expected,
            layout: layout.to_string(),
            thread: Thread::new(cpus[1], wait, priority),
            other_cpu: Some(cpus[0]),
            market: Some(market.clone()),
            out: lab.folder().join("oms.gaps"),
        };
        let exchange = ExchangeRole {
            lanes: name.clone(),
            request_bytes: REQUEST_BYTES,
            report_bytes: REPORT_BYTES,
            market: None,
            expected_orders: expected,
            thread: Thread::new(settings.venue_cpu.unwrap_or(cpus[0]), shared, Priority::Normal),
        };
        let client = ClientRole {
            lanes: name,
            request_bytes: REQUEST_BYTES,
            report_bytes: REPORT_BYTES,
            market,
            order,
            thread: Thread::new(cpus[0], shared, Priority::Normal),
            out: lab.folder().join("client"),
        };
        let oms = lab.spawn(&Role::Oms(oms))?;
        let exchange = lab.spawn(&Role::Exchange(exchange))?;
        let client = lab.spawn(&Role::Client(client))?;
        let evicts = plan.iter().any(|batch| batch.evict);
        let evictor = evicts.then(|| lab.spawn(&Role::Evictor(EvictorRole { cpu: cpus[1] }))).transpose()?;
        Ok(Self { oms, exchange, client, evictor, journal, folder: lab.folder().to_owned() })
    }

    fn batch(&mut self, batch: &Batch) -> Result<Answered, LabError> {
        let Some(evictor) = self.evictor.as_mut().filter(|_| batch.evict) else {
            return self.send(batch);
        };
        // One request at a time: walk the caches full, then wait out the rest of the pause in the client.
        let (mut all, mut rows) = (Answered::default(), Vec::new());
        for first in 0..batch.count {
            evictor.tell("evict")?;
            evictor.result::<()>(5.0)?;
            let one = Batch { first, count: 1, ..*batch };
            self.client.tell(&serde_json::to_string(&one).expect("plain data"))?;
            let answered: Answered = self.client.result(batch.seconds() + 30.0)?;
            all.denied += answered.denied;
            all.missed += answered.missed;
            all.unanswered += answered.unanswered;
            all.late += answered.late;
            all.last_report = answered.last_report;
            rows.extend(load::<3>(&self.folder.join(format!("client.{}", batch.number)))?);
        }
        save(&self.folder.join(format!("client.{}", batch.number)), &rows)?;
        Ok(all)
    }

    fn send(&mut self, batch: &Batch) -> Result<Answered, LabError> {
        self.client.tell(&serde_json::to_string(batch).expect("plain data"))?;
        self.client.result(batch.seconds() * 3.0 + 30.0)
    }

    fn stop(self) -> Result<(), LabError> {
        self.client.stop::<()>()?;
        self.oms.stop::<()>()?;
        self.exchange.stop::<()>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planned_group_has_a_name_of_its_own() {
        let settings = Settings {
            layout: Layout::Inline,
            wait: Wait::Busy,
            cpus: [0, 1],
            venue_cpu: None,
            priority: Priority::Normal,
            order: OrderSpec::default(),
            count: None,
            rate: None,
            full: true,
            journal: None,
            repeat: 1,
        };
        let names: std::collections::BTreeSet<_> = plan(&settings).iter().map(|b| group_name(b.number)).collect();
        assert_eq!(names.len(), plan(&settings).len());
        assert!(["g1", "g6", "d1", "d6", "s1", "s3", "e1", "m5"].iter().all(|name| names.contains(*name)));
    }
}
