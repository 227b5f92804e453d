//! `orders`: batches of orders through an OMS to a venue, in the form of the f9omstw benchmark.
//!
//! ```text
//!   client process ──lane or sockets──> OMS process ──lane──> venue process
//!   T0 before the send                  T1 seen  T2 released
//!   generator's CPU                     system's CPU          shares the generator's
//! ```
//! Groups g1 … g6 are 1 to 100,000 new orders as fast as they go, d1 … d6 as many cancels, s1 … s3 new orders 1 s, 0.5 s
//! and 0.1 s apart, and e1 … e3 the same with the system's caches walked full before each. Valid only if the OMS has a
//! CPU of its own.
//!
//! | file         | what it holds                                                                  |
//! |--------------|--------------------------------------------------------------------------------|
//! | `system.rs`  | the processes of a run                                                         |
//! | `plan.rs`    | the groups, and who sends what when                                            |
//! | `group.rs`   | groups by number and by name                                                   |
//! | `client.rs`  | the client's, with one session or a thousand                                   |
//! | `way.rs`     | a lane or a socket                                                             |
//! | `day.rs`     | whole days: one that a client asks for, one behind which an OMS is killed      |
//! | `floor.rs`   | what one `send` costs                                                          |
//! | `compare.rs` | what is set against what                                                       |

mod client;
mod compare;
mod day;
mod floor;
pub(crate) mod group;
mod plan;
mod system;
mod way;

pub(crate) use client::is_of_venue;
pub use compare::comparisons;
pub use day::{Beside, BesideRole, restart, resume};
pub use floor::SenderRole;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::Gap;
use tickpath_clock::{Clock, Priority, Wait};
use tickpath_oms::{AckLevel, Layout};

use crate::analyse::{self, Group};
pub use crate::trade::OrderSpec;
pub use client::{ClientRole, EvictorRole};
use plan::{Batch, plan};
use system::{Load, System};
use tickpath_harness::attribution::{drop_attribution, tell_standstills, void_attribution, within};
use tickpath_harness::memory::{self, Resident};
use tickpath_harness::samples::{Samples, load, load_gaps};
use tickpath_harness::{Around, Lab, LabError};
use tickpath_result::{Counts, Run};
pub use way::Login;

/// Marks a row whose request the OMS denied.
const DENIED: u64 = u64::MAX;

/// A burst of fewer orders than this has no rate.
const LEAST_RATED: u64 = 100;

/// The sessions that one client has, at most.
pub const MOST_SESSIONS: u16 = 10_000;

/// Where the orders go in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An OMS of the run without sessions, by lanes that are there from the start.
    Lanes,
    /// An OMS of the run, by lanes that a logon over a Unix socket gives.
    LogonLanes,
    /// An OMS of the run, by a Unix socket.
    Unix,
    /// An OMS of the run, by TCP on this host.
    Tcp,
    /// Somebody's own OMS, which is running.
    Running(Running),
}

/// An OMS that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// What it is called.
    pub name: String,
    /// How to log in.
    pub login: Login,
    /// The number that it knows the order's instrument by.
    pub symbol: u32,
    /// Its journal, if it is on this host.
    pub journal: PathBuf,
}

/// How an OMS of the run reaches its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VenueWay {
    /// By lanes in shared memory.
    #[default]
    Lanes,
    /// By a line over TCP on this host.
    Tcp,
}

impl VenueWay {
    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lanes => "lanes",
            Self::Tcp => "tcp",
        }
    }
}

/// How `orders` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the orders go in.
    pub target: Target,
    /// How the orders go out.
    pub venue: VenueWay,
    /// Sessions that are logged in.
    pub sessions: u16,
    /// Sessions that send; no more than there are.
    pub active: u16,
    /// Orders of a session without a report, at most; as many as there are if there is none.
    pub in_flight: Option<u32>,
    /// What must hold a request before anything of it leaves.
    pub level: AckLevel,
    /// A client beside those that are measured.
    pub beside: Option<Beside>,
    /// Orders in that client's day.
    pub day: u64,
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

/// One group, when it has run.
struct Measured {
    batch: Batch,
    answered: Answered,
    before: Resident,
    after: Resident,
}

/// Runs all groups with one target, one layout and one way to wait.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Vec<Run>, LabError> {
    check(settings)?;
    let plan = plan(settings);
    let seconds: f64 = plan.iter().map(Batch::seconds).sum();
    lab.step(&settings.title(), seconds + if settings.target.has_socket() { 6.0 } else { 3.0 })?;
    let around = Around::begin(lab, settings.cpus)?;
    let idle = tickpath_harness::host::idle_gaps(&lab.clock, settings.cpus[1], 200_000_000)?;
    let mut floor = Samples::default();
    let mut measure_floor = || match settings.target {
        Target::LogonLanes | Target::Unix | Target::Tcp => {
            floor.0.extend(floor::sends(lab, settings, settings.shared_wait())?.0);
            Ok::<_, LabError>(())
        }
        Target::Lanes | Target::Running(_) => Ok(()),
    };
    measure_floor()?;
    let load = Load { expected: total(&plan), evicts: plan.iter().any(|batch| batch.evict), snapshot_every: 0 };
    let mut system = System::start(lab, settings, load)?;
    let mut measured = Vec::new();
    for &batch in &plan {
        let before = system.memory();
        let answered = system.batch(&batch).map_err(|e| settings.may_be_open(e))?;
        measured.push(Measured { batch, answered, before, after: system.memory() });
    }
    let connected = std::mem::take(&mut system.connected);
    let (told, heard_beside) = system.stop()?;
    measure_floor()?;
    let mut runs = evaluate(lab, settings, &measured, &idle)?;
    if let Some(first) = runs.first_mut() {
        first.figures.extend(connected.into_iter().map(|(name, value)| (name.to_owned(), value)));
        first.figures.extend(heard_beside.map(|heard| ("beside_reports".to_owned(), heard as f64)));
    }
    if !floor.0.is_empty() {
        let send_ns = floor.p50_ns(lab.clock.calibration());
        runs.iter_mut().for_each(|run| run.figures.extend([("send_ns".to_owned(), send_ns)]));
    }
    if let Some(last) = runs.last_mut() {
        last.notes.extend(told);
    }
    around.end(lab, &mut runs)?;
    Ok(runs)
}

/// Makes runs of what the journal, the client and the OMS have written down.
fn evaluate(lab: &Lab<'_>, settings: &Settings, measured: &[Measured], idle: &[Gap]) -> Result<Vec<Run>, LabError> {
    let is_ours = !matches!(settings.target, Target::Running(_));
    let gaps = if is_ours { load_gaps(&lab.folder().join("oms.gaps"))? } else { Vec::new() };
    let journal = settings.journal_in(lab);
    let read = match analyse::read(&journal) {
        Err(e) if is_ours => return Err(e),
        read => read,
    };
    let mut runs = Vec::new();
    for Measured { batch, answered, before, after } in measured {
        let group = read.as_ref().ok().and_then(|read| read.groups.get(&batch.number));
        let Some(group) = group else {
            let why =
                read.as_ref().err().map_or_else(|| "it holds nothing of this run".to_owned(), LabError::to_string);
            if is_ours {
                return Err(LabError::Failed(format!("the journal holds nothing of {}", batch.name())));
            }
            let mut run = bare_run(settings, batch);
            run.notes.push(format!("T1 and T2 are not known: the OMS's journal cannot be read here ({why})"));
            client_hops(&mut run, lab, batch, answered, None, &[])?;
            runs.push(run);
            continue;
        };
        let window = (group.first_sent(), answered.last_report.max(group.last_released()));
        let own = within(&gaps, window.0, window.1);
        let mut run = group.run(lab.clock.calibration(), &own);
        describe(&mut run, settings, batch);
        run.figures.insert("journal_bytes_per_order".to_owned(), group.bytes as f64 / group.len() as f64);
        client_hops(&mut run, lab, batch, answered, Some(group), &own)?;
        if settings.level == AckLevel::Disk {
            without_release(&mut run);
        }
        if is_ours {
            memory_of(&mut run, batch, *before, *after);
        }
        let lasted_ns = lab.clock.ns_between(window.0, window.1);
        match batch.evict || !is_ours || settings.wait != Wait::Busy {
            // The evictor's walks would pass for the host's gaps; those of another's OMS are not known, nor those of one
            // that does not spin.
            true => drop_attribution(&mut run),
            false => void_attribution(&mut run, idle, &own, lasted_ns as f64 / 1e9),
        }
        tell_standstills(&mut run, "OMS", &own, lasted_ns.unsigned_abs(), lab.clock.calibration());
        runs.push(run);
    }
    if let Some(last) = runs.last_mut().filter(|_| is_ours) {
        let expected = measured.iter().map(|measured| measured.batch.count as usize).sum();
        last.figures.insert("replay_inputs_per_s".to_owned(), replay_rate(lab, &journal, expected)?);
    }
    if is_ours && settings.journal.is_none() {
        let _ = std::fs::remove_dir_all(&journal);
    }
    Ok(runs)
}

/// T2 is stamped before the disk has an order: it is not when that left, and each had to wait.
fn without_release(run: &mut Run) {
    for hop in ["t1_t2", "t0_t2", "t2_gap", "tick_to_order", "t0_t2_denied", "t0_t2_kept"] {
        run.hops.remove(hop);
    }
    let of_release = ["first_t0_to_last_t2_ns", "last_order_t2_ns", "last_t2_to_last_report_ns"];
    for figure in of_release.into_iter().chain(["orders_sending", "orders_queued"]) {
        run.figures.remove(figure);
    }
}

fn memory_of(run: &mut Run, batch: &Batch, before: Resident, after: Resident) {
    run.memory = Some(memory::between(before, after));
    let growth = after.orders_bytes.saturating_sub(before.orders_bytes) as f64;
    // Memory comes in pages: a few orders would be charged with a whole one.
    if batch.cancels.is_none() && batch.count >= 100_000 {
        run.figures.insert("bytes_per_order".to_owned(), growth / batch.count as f64);
    }
}

impl Target {
    /// The name of its runs.
    pub fn url(&self) -> &str {
        match self {
            Self::Lanes => "shm://",
            Self::LogonLanes => "shm+unix://",
            Self::Unix => "unix://",
            Self::Tcp => "tcp://",
            Self::Running(running) => &running.login.url,
        }
    }

    fn symbol(&self) -> u32 {
        match self {
            Self::Running(running) => running.symbol,
            _ => crate::trade::SYMBOL.0,
        }
    }

    fn has_socket(&self) -> bool {
        *self != Self::Lanes
    }
}

impl Settings {
    /// How client and venue wait, who share a CPU.
    fn shared_wait(&self) -> Wait {
        if self.wait == Wait::Block || self.beside.is_some() { Wait::Block } else { Wait::Yield }
    }

    fn journal_in(&self, lab: &Lab<'_>) -> PathBuf {
        match (&self.target, &self.journal) {
            (Target::Running(running), _) => running.journal.clone(),
            (_, Some(journal)) => journal.clone(),
            (_, None) => lab.folder().join("journal"),
        }
    }

    /// Who breaks off at somebody's own OMS leaves something behind there.
    fn may_be_open(&self, error: LabError) -> LabError {
        match self.target {
            Target::Running(_) => LabError::Failed(format!(
                "{error}; orders of this run may still be open at the venue, `tickpath orders` tells"
            )),
            _ => error,
        }
    }

    /// Groups of somebody's own OMS have the numbers of their moment.
    fn group_name(&self, batch: &Batch) -> String {
        match (&self.target, batch.cancels) {
            (Target::Running(_), Some(_)) => "cancels".to_owned(),
            (Target::Running(_), None) => "orders".to_owned(),
            _ => batch.name(),
        }
    }

    fn title(&self) -> String {
        format!("orders {} {} {}", self.target.url(), self.layout, self.wait)
    }
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: &str| Err(LabError::Setting(what.to_owned()));
    let Settings { target, layout, wait, sessions, active, .. } = settings;
    if settings.count == Some(0) || settings.count.is_some_and(|count| count > 50_000_000) {
        return wrong("--count takes 1 to 50000000 orders");
    }
    if (settings.rate.is_some() || settings.in_flight.is_some()) && settings.count.is_none() {
        return wrong("--rate and --in-flight are of one group; say how many orders with --count");
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait == Wait::Busy {
        return wrong("client and core would both spin on one CPU; name two with --cpus, or use --wait block");
    }
    if target.has_socket() && *layout == Layout::Mutex {
        return wrong("the layout 'mutex' serves no sockets; use --layout inline or split");
    }
    if target.has_socket() && (*layout, *wait) == (Layout::Inline, Wait::Block) {
        return wrong("one thread cannot sleep for sockets and for lanes at once; use --layout split, or --wait busy");
    }
    if !target.has_socket() && (*sessions != 1 || settings.beside.is_some()) {
        return wrong("--sessions and --beside are of clients over sockets; use --target unix:// or tcp://");
    }
    if *sessions == 0 || *sessions > MOST_SESSIONS || *active == 0 || active > sessions {
        return wrong("--sessions takes 1 to 10000, and --active 1 to as many");
    }
    settings.order.order().map(|_| ()).map_err(LabError::Setting)
}

/// A run without what the journal tells.
fn bare_run(settings: &Settings, batch: &Batch) -> Run {
    let mut run = Run { client: "rust".to_owned(), valid: true, ..Run::default() };
    describe(&mut run, settings, batch);
    run
}

fn describe(run: &mut Run, settings: &Settings, batch: &Batch) {
    run.target = settings.target.url().to_owned();
    run.repeat = settings.repeat;
    run.batch = Some(settings.group_name(batch).into());
    run.phase = batch.phase();
    run.params.set("orders", batch.count);
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("order", settings.order.to_string());
    if let Target::Running(running) = &settings.target {
        // What it is like inside it alone knows.
        run.params.set("oms", running.name.as_str());
    } else {
        run.layout = Some(settings.layout.to_string());
        run.params.set("wait", settings.wait.name());
        run.params.set("priority", settings.priority.to_string());
        if settings.venue != VenueWay::Lanes {
            run.params.set("venue", settings.venue.name());
        }
        run.params.set("caches", if batch.evict { "evicted" } else { "warm" });
    }
    if settings.target.has_socket() {
        run.params.set("sessions", u64::from(settings.sessions));
        run.params.set("active", u64::from(settings.active));
    }
    if settings.level == AckLevel::Disk {
        run.params.set("ack", "disk");
    }
    if let Some(most) = batch.in_flight {
        run.params.set("in_flight", u64::from(most));
    }
    if let Some(beside) = settings.beside {
        run.params.set("beside", beside.name());
        run.params.set("day_orders", settings.day);
    }
    if let Some(ns) = batch.interval_ns {
        run.params.set("interval_ns", ns);
        // Walking the caches full comes on top of the pause.
        if !batch.evict {
            run.params.set("rate_per_s", 1e9 / ns as f64);
        }
    }
}

/// Adds what the client saw.
fn client_hops(
    run: &mut Run,
    lab: &Lab<'_>,
    batch: &Batch,
    answered: &Answered,
    group: Option<&Group>,
    gaps: &[Gap],
) -> Result<(), LabError> {
    let calibration = lab.clock.calibration();
    let rows = load::<3>(&rows_of(lab, batch.number))?;
    for (name, column) in [("order_ack", 1), ("order_round_trip", 2)] {
        let told = rows.iter().filter(|row| row[0] != 0 && row[column] != 0 && row[column] != DENIED);
        let samples = Samples(told.map(|row| (row[0], row[column])).collect());
        if !samples.0.is_empty() {
            run.hops.insert(name.to_owned(), samples.hop(calibration, gaps));
        }
    }
    let acked = rows.iter().filter(|row| row[1] != 0);
    let received = match group {
        Some(group) => group.len() as u64,
        None => acked.clone().count() as u64,
    };
    run.counts = Counts { sent: batch.count, received, lost: batch.count.saturating_sub(received), ..run.counts };
    if let Some(group) = group {
        let after = calibration.ns_between(group.last_released(), answered.last_report).max(0);
        run.figures.insert("last_t2_to_last_report_ns".to_owned(), after as f64);
    }
    if !run.figures.contains_key("last_order_t2_ns") {
        // The journal of an OMS that runs tells the T2 of its last request with the next one.
        for figure in ["first_t0_to_last_t2_ns", "last_t2_to_last_report_ns"] {
            run.figures.remove(figure);
        }
    }
    let (first, last) = (rows.iter().map(|row| row[0]).min(), acked.map(|row| row[1]).max());
    let is_burst = batch.interval_ns.is_none() && batch.count >= LEAST_RATED;
    if let (true, Some((first, last))) = (is_burst, first.zip(last)) {
        let ns = calibration.ns_between(first, last).max(1) as f64;
        run.figures.insert("acked_per_s".to_owned(), received as f64 * 1e9 / ns);
    }
    told_of(run, batch, answered);
    Ok(())
}

/// Says what was not as it should be.
fn told_of(run: &mut Run, batch: &Batch, answered: &Answered) {
    if answered.missed > 0 {
        run.notes.push(format!("the client was lapped and missed {} reports", answered.missed));
    }
    if batch.interval_ns.is_some() && answered.late * 100 > batch.count {
        run.valid = false;
        let late_us = batch.late_ns / 1_000;
        run.notes.push(format!("{} of {} orders went out more than {late_us} µs late", answered.late, batch.count));
    }
    if answered.denied > 0 {
        run.notes.push(format!("{} orders were denied by the risk checks", answered.denied));
    }
    if answered.unanswered > 0 {
        run.valid = false;
        run.notes.push(format!("{} orders had no answer of the venue in time", answered.unanswered));
    }
}

fn rows_of(lab: &Lab<'_>, number: u32) -> PathBuf {
    lab.folder().join(format!("client.{number}"))
}

/// How fast a restart replays this journal.
fn replay_rate(lab: &Lab<'_>, journal: &std::path::Path, expected: usize) -> Result<f64, LabError> {
    let place = tickpath_log::Place::folder(journal);
    let mut core = tickpath_orders::Core::new(tickpath_orders::Config { expected_orders: expected, key: 0 });
    let from = lab.clock.ticks();
    let replayed = tickpath_oms::journal::replay(&place, &mut core, |_, _| {}).map_err(LabError::other)?;
    let ns = lab.clock.ns_between(from, lab.clock.ticks());
    Ok(replayed.inputs as f64 * 1e9 / ns as f64)
}

/// Orders and cancels of all groups.
fn total(plan: &[Batch]) -> usize {
    plan.iter().map(|batch| batch.count as usize).sum()
}
