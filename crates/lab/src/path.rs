//! `path`: from a tick to an order at a venue.
//!
//! ```text
//!   feed process        trader process: strategy + OMS            venue process
//!   tick ──topic──> seen ─> T0 ─lane─> T1 ─risk, journal─> T2 ──lane──> arrived
//!                     acked, accepted <── reports log <── reported <──lane──┘
//!   generator's CPU    system's CPU                                shares the generator's
//! ```
//! The strategy sends a limit IOC at the touch on every tick, buying and selling in turn. In `inline` strategy and OMS
//! are one thread; in `split` and `mutex` the core has the system's CPU and the strategy shares the generator's. Valid
//! only if the feed kept its times.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, Publisher, TopicConfig, connect};
use tickpath_clock::Gap;
use tickpath_clock::{Clock, HostClock, Lateness, Pacer, Priority, Wait};
use tickpath_market::replay::{Event, Pace, Recording, Tally};
use tickpath_oms::Layout;

use crate::analyse;
use crate::orders::group::PATH_GROUP;
use crate::strategy::Traded;
use crate::strategy::TraderRole;
use crate::trade::{ExchangeRole, OmsRole};
use tickpath_harness::Parent;
use tickpath_harness::attribution::{tell_standstills, void_attribution};
use tickpath_harness::rules::{refuse_loss, tell_reconnects};
use tickpath_harness::samples::{Samples, load, load_gaps, save, touched_rows};
use tickpath_harness::{Around, Lab, LabError};
use tickpath_harness::{Role, Thread};
use tickpath_result::{Counts, Run, Stage, StageKind};

/// Publishes ticks of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// A topic in shared memory for those who need the ticks but are not measured; none if the first one serves them.
    pub mirror: Option<String>,
    /// What it publishes.
    pub ticks: Ticks,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

impl Role for FeedRole {
    const NAME: &'static str = "feed";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        feed(self, parent)
    }
}

/// Where ticks come from and how fast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ticks {
    /// A recording; made up from the seed if there is none.
    pub file: Option<PathBuf>,
    /// What made-up ticks depend on.
    pub seed: u64,
    /// Ticks a second; the recording's own times if there is none.
    pub rate: Option<f64>,
    /// How much faster than its own times.
    pub speed: f64,
    /// Ticks to publish; the recording is looped for as many.
    pub count: u64,
}

/// Ticks that are made up where no recording is given.
const SYNTHETIC: usize = 20_000;

/// How `path` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What carries the ticks: a transport's URL.
    pub target: String,
    /// Which thread does what.
    pub layout: Layout,
    /// How the strategy waits for ticks.
    pub wait: Wait,
    /// Generator's and system's CPU.
    pub cpus: [usize; 2],
    /// The venue's CPU; it shares the generator's if there is none.
    pub venue_cpu: Option<usize>,
    /// Of the core's thread.
    pub priority: Priority,
    /// The ticks.
    pub ticks: Ticks,
    /// Which repetition this is.
    pub repeat: u32,
}

/// What the feed tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fed {
    sent: u64,
    first: u64,
    last: u64,
    planned_ns: u64,
    late_share: f64,
    skipped: u64,
    bad: u64,
    bad_lines: Vec<(u64, String)>,
    truncated: bool,
}

/// Runs once.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    check(settings)?;
    let seconds = settings.ticks.rate.map_or(10.0, |rate| settings.ticks.count as f64 / rate);
    lab.progress.step(&format!("path {} {}", settings.target, settings.wait), seconds + 1.5);
    let around = Around::begin(lab, settings.cpus)?;
    let idle = tickpath_harness::host::idle_gaps(&lab.clock, settings.cpus[1], 200_000_000)?;
    let roles = Roles::of(lab, settings);
    // The OMS in the trader makes the lanes.
    let trader = lab.spawn(&roles.trader)?;
    let exchange = lab.spawn(&roles.exchange)?;
    let mut feed = lab.spawn(&roles.feed)?;
    let planned_ns: u64 = feed.result(600.0)?;
    feed.tell("go")?;
    let fed: Fed = feed.result(planned_ns as f64 / 1e9 * 2.0)?;
    let traded: Traded = trader.stop()?;
    exchange.stop::<()>()?;
    let run = assemble(lab, settings, &roles.journal, &fed, &traded, &idle);
    let _ = std::fs::remove_dir_all(&roles.journal);
    let _ = connect(&settings.target)?.remove(&roles.topic);
    let _ = connect("shm://")?.remove(&roles.market);
    roles.lanes.remove()?;
    let mut run = run?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let Ticks { rate, speed, count, .. } = &settings.ticks;
    let wrong = |what: String| Err(LabError::Setting(what));
    if *count == 0 || *count > 100_000_000 {
        return wrong("--count takes 1 to 100000000 ticks".to_owned());
    }
    if rate.is_some_and(|rate| !(rate > 0.0 && rate <= 10e6)) {
        return wrong("--rate takes 0.001 to 10000000 ticks a second".to_owned());
    }
    if !(*speed > 0.0 && speed.is_finite()) {
        return wrong(format!("--speed {speed} is not possible; use a number above zero"));
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait == Wait::Busy {
        return wrong(
            "feed and trader would both spin on one CPU; name two with --cpus, or use --wait block".to_owned(),
        );
    }
    Ok(())
}

/// The processes of one run.
struct Roles {
    exchange: ExchangeRole,
    trader: TraderRole,
    feed: FeedRole,
    journal: PathBuf,
    topic: String,
    market: String,
    lanes: tickpath_oms::LanesConfig,
}

impl Roles {
    fn of(lab: &Lab<'_>, settings: &Settings) -> Self {
        static RUN: AtomicU64 = AtomicU64::new(0);
        let name = format!("{}.path{}", lab.name, RUN.fetch_add(1, Ordering::Relaxed));
        let Settings { target, layout, wait, cpus, priority, ticks, .. } = settings.clone();
        let in_shared_memory = target == "shm://";
        let market = format!("{name}.market");
        let topic = if in_shared_memory { market.clone() } else { format!("tickpath:{name}") };
        let shared = if wait == Wait::Block { Wait::Block } else { Wait::Yield };
        let journal = lab.folder().join(format!("{name}.journal"));
        let (request_bytes, report_bytes) = (1 << 20, 4 << 20);
        let oms = OmsRole {
            lanes: name.clone(),
            request_bytes,
            report_bytes,
            journal: journal.clone(),
            // An order that trades has three or four reports.
            reserve_bytes: ticks.count * 768,
            symbol: "BTCUSDT".to_owned(),
            account: 1,
            expected_orders: ticks.count as usize,
            layout: layout.to_string(),
            thread: Thread::new(cpus[1], wait, priority),
            other_cpu: Some(cpus[0]),
            market: (layout != Layout::Inline).then(|| market.clone()),
            level: "os".to_owned(),
            snapshot_every: 0,
            line: None,
            server: None,
            out: lab.folder().join("oms.gaps"),
        };
        let strategy_cpu = if layout == Layout::Inline { cpus[1] } else { cpus[0] };
        let strategy_wait = if layout == Layout::Inline || wait == Wait::Block { wait } else { Wait::Yield };
        let trader = TraderRole {
            target: target.clone(),
            topic: topic.clone(),
            oms,
            count: ticks.count,
            // Beside the feed it must give way.
            thread: Thread::new(
                strategy_cpu,
                strategy_wait,
                if strategy_cpu == cpus[1] { priority } else { Priority::Normal },
            ),
            out: lab.folder().join("trader"),
        };
        let lanes = crate::trade::lanes(&name, 1, request_bytes, report_bytes);
        let exchange = ExchangeRole {
            lanes: name,
            request_bytes,
            report_bytes,
            market: Some(market.clone()),
            expected_orders: ticks.count as usize,
            sockets: None,
            thread: Thread::new(settings.venue_cpu.unwrap_or(cpus[0]), shared, Priority::Normal),
        };
        let feed = FeedRole {
            target,
            topic: topic.clone(),
            mirror: (!in_shared_memory).then(|| market.clone()),
            ticks,
            thread: Thread::new(cpus[0], shared, Priority::Normal),
            out: lab.folder().join("feed"),
        };
        Self { exchange, trader, feed, journal, topic, market, lanes }
    }
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    journal: &std::path::Path,
    fed: &Fed,
    traded: &Traded,
    idle: &[Gap],
) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let gaps = load_gaps(&lab.folder().join("trader.gaps"))?;
    let (told, _) = analyse::read(journal, 0)?;
    let Some(group) = told.groups.get(&PATH_GROUP) else {
        return Err(LabError::Failed("no tick came to an order; is a quote in the recording?".to_owned()));
    };
    let mut run = group.run(&told.calibration, &gaps);
    describe(&mut run, settings, fed);
    // Tick, seen, sent, first report, first report of the venue.
    let rows = load::<5>(&lab.folder().join("trader"))?;
    let pairs = |from: usize, to: usize| {
        Samples(rows.iter().filter(|row| row[from] != 0 && row[to] != 0).map(|row| (row[from], row[to])).collect())
    };
    run.hops.insert("order_ack".to_owned(), pairs(2, 3).hop(calibration, &gaps));
    run.hops.insert("order_round_trip".to_owned(), pairs(2, 4).hop(calibration, &gaps));
    let stage = |name: &str, samples: Samples| {
        (!samples.0.is_empty()).then(|| Stage {
            name: name.to_owned(),
            p50_ns: Some(samples.p50_ns(calibration)),
            kind: StageKind::Measured,
            ..Stage::default()
        })
    };
    run.stages.extend(stage("tick_to_seen", pairs(0, 1)));
    run.stages.extend(stage("seen_to_sent", pairs(1, 2)));
    let [arrival, report] = group.venue_stages();
    run.stages.extend(stage("released_to_arrived", arrival));
    run.stages.extend(stage("arrived_to_reported", report));
    let lateness = Samples(load::<2>(&lab.folder().join("feed"))?.iter().map(|&[a, b]| (a, b)).collect());
    let late = lateness.hop(calibration, &gaps);
    for (name, ns) in [("lateness_p50_ns", late.percentiles()[0]), ("lateness_p99_ns", late.percentiles()[3])] {
        run.figures.extend(ns.map(|ns| (name.to_owned(), ns as f64)));
    }
    run.counts = Counts {
        sent: fed.sent,
        received: traded.seen,
        lost: fed.sent.saturating_sub(traded.seen) + traded.orders.saturating_sub(group.len() as u64),
        left: run.counts.left,
        ..Counts::default()
    };
    judge(&mut run, fed, traded, lab, idle, &gaps);
    tell_reconnects(&mut run, traded.reconnects);
    refuse_loss(&mut run);
    Ok(run)
}

fn describe(run: &mut Run, settings: &Settings, fed: &Fed) {
    let Ticks { file, rate, speed, count, seed } = &settings.ticks;
    run.target = settings.target.clone();
    run.repeat = settings.repeat;
    run.layout = Some(settings.layout.to_string());
    run.params.set("wait", settings.wait.name());
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("count", *count);
    run.params.set("priority", settings.priority.to_string());
    if settings.wait == Wait::Block {
        run.notes.push(
            "a venue's report does not wake a strategy that sleeps for ticks: order_round_trip holds up to 1 ms of that sleep"
                .to_owned(),
        );
    }
    match file {
        Some(file) => run.params.set("ticks", file.display().to_string()),
        None => run.params.set("ticks", format!("made up from seed {seed}")),
    }
    match rate {
        Some(rate) => run.params.set("rate_per_s", *rate),
        None => run.params.set("speed_ratio", *speed),
    }
    if fed.skipped > 0 {
        run.notes.push(format!("{} depth updates and other messages of the recording were skipped", fed.skipped));
    }
    if fed.truncated {
        run.notes
            .push("the recording is cut off before the end of its gzip stream; what came before was used".to_owned());
    }
    if fed.bad > 0 {
        let first: Vec<String> = fed.bad_lines.iter().map(|(line, why)| format!("line {line}: {why}")).collect();
        run.notes.push(format!("{} lines of the recording are no messages ({})", fed.bad, first.join("; ")));
    }
}

fn judge(run: &mut Run, fed: &Fed, traded: &Traded, lab: &Lab<'_>, idle: &[Gap], gaps: &[Gap]) {
    let took = lab.clock.ns_between(fed.first, fed.last) as f64;
    if took > 0.0 && (fed.planned_ns as f64) < 0.99 * took {
        run.valid = false;
        run.notes.push(format!("the feed reached {:.1} % of its rate", 100.0 * fed.planned_ns as f64 / took));
    }
    if fed.late_share > 0.01 {
        run.valid = false;
        run.notes.push(format!("{:.1} % of ticks were published late", 100.0 * fed.late_share));
    }
    if traded.missed > 0 {
        run.notes.push(format!("the strategy was lapped and missed {} ticks", traded.missed));
    }
    if traded.lapped > 0 {
        run.notes.push(format!("the strategy was lapped and missed {} reports", traded.lapped));
    }
    if traded.denied > 0 {
        run.notes.push(format!("{} orders were denied by the risk checks", traded.denied));
    }
    void_attribution(run, idle, gaps, took / 1e9);
    tell_standstills(run, "trader", gaps, took.max(0.0) as u64, lab.clock.calibration());
}

// --- the feed process ------------------------------------------------------------------------------------------------

/// The feed's life: all ticks at their times, parsed before the first one.
pub(crate) fn feed(role: &FeedRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let recording = match &role.ticks.file {
        Some(file) => Recording::open(file)?,
        None => Recording::synthetic(role.ticks.seed, SYNTHETIC),
    };
    let plan = plan(&recording, &role.ticks)?;
    let config = TopicConfig::new(Policy::Overwrite);
    let mut topic = connect(&role.target)?.publisher(&role.topic, &config)?;
    let mut mirror = match &role.mirror {
        Some(mirror) => Some(connect("shm://")?.publisher(mirror, &config)?),
        None => None,
    };
    role.thread.settle()?;
    parent.ready();
    parent.result(&plan.last().map_or(0, |(offset, _)| *offset));
    if parent.hear().is_none() {
        return Ok(());
    }
    let stop = parent.stop_flag();
    let mut pacer = Pacer::new(clock, role.thread.wait()?);
    let start = clock.ticks() + clock.calibration().ticks_of_ns(5_000_000);
    let mut rows = touched_rows(plan.len());
    let mut lateness = Lateness::default();
    let mut before = 0;
    for (offset_ns, event) in &plan {
        let intended = start + clock.calibration().ticks_of_ns(*offset_ns);
        let actual = pacer.until(intended);
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Failed("the bench was stopped".to_owned()));
        }
        publish(topic.as_mut(), intended, event)?;
        if let Some(mirror) = &mut mirror {
            publish(mirror.as_mut(), intended, event)?;
        }
        rows.push([intended, actual]);
        let allowance_ns = (offset_ns - before).max(10_000);
        before = *offset_ns;
        let own_ticks = actual.saturating_sub(intended).saturating_sub(pacer.held_up(intended, actual));
        let late_ns = clock.calibration().ns(own_ticks as i64) as u64;
        lateness.count(late_ns, allowance_ns);
    }
    save(&role.out, &rows)?;
    let Tally { skipped_depth, skipped_other, bad, bad_lines, truncated, .. } = recording.tally;
    parent.result(&Fed {
        sent: plan.len() as u64,
        first: start,
        last: rows.last().map_or(start, |row| row[1]),
        planned_ns: plan.last().map_or(0, |(offset, _)| *offset),
        late_share: lateness.share(),
        skipped: skipped_depth + skipped_other,
        bad,
        bad_lines,
        truncated,
    });
    Ok(())
}

/// What is published when, from the start.
fn plan(recording: &Recording, ticks: &Ticks) -> Result<Vec<(u64, Event)>, LabError> {
    let pace = match ticks.rate {
        Some(per_second) => Pace::Fixed { per_second },
        None => Pace::Scaled(ticks.speed),
    };
    let schedule = recording.schedule(pace, true)?;
    Ok(schedule.take(ticks.count as usize).map(|(offset, event)| (offset, *event)).collect())
}

fn publish(topic: &mut dyn Publisher, stamp: u64, event: &Event) -> Result<(), LabError> {
    let published = topic.publish(stamp, event.kind().code(), event.as_bytes());
    published.map_err(|e| LabError::Failed(format!("publishing a tick failed: {e}")))
}
