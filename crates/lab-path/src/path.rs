//! `path`: from a tick to an order at a venue.
//!
//! ```text
//!   feed process        trader process: strategy + OMS            venue process
//!   tick ──topic──> seen ─> T0 ─lane─> T1 ─risk, journal─> T2 ──lane──> arrived
//!                     acked, accepted <── reports log <── reported <──lane──┘
//!   generator's CPU     system's CPU                                its own, if one is named
//! ```
//! A tick is due at its intended time: `lateness` ends when the feed sends it, `service` leads from there to `seen`. A
//! venue without a CPU of its own is an agent of the feed's thread, polled between ticks. The strategy sends a limit
//! IOC at the touch on every tick, buying and selling in turn. In `inline` strategy and OMS are one thread; in `split`
//! and `mutex` the core has the system's CPU and the strategy shares the generator's. A strategy in another language,
//! and ours beside it, is a process of its own that logs on to the OMS (`external.rs`), in `split`. `rules.rs` decides
//! whether a run is valid.

mod external;
mod feed;
mod rules;

pub use external::StrategyRole;
pub use feed::{FeedRole, TickSource};

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Clock, Priority, SchedulingGap, Wait, cpu_ns};
use tickpath_oms_runtime::Layout;

use crate::analyse;
use crate::clients::TradingClient;
use crate::decision::{FIRST_ID, QUANTITY};
use crate::orders::group::PATH_GROUP;
use crate::orders::{LANES_SCHEME, USER, login_at, write_users};
use crate::strategy::{StrategyResult, TraderRole};
use crate::trade::{ExchangeRole, OmsRole, SYMBOL, ServerRole};
use external::{SCRIPT, add_sent_times};
use feed::FeedResult;
use tickpath_lab_harness::attribution::{
    attribute_common_stops, clip_gaps, drop_attribution, note_stalls, void_attribution,
};
use tickpath_lab_harness::rules::{add_lateness, add_receiver_cpu};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::targets::TopicGuard;
use tickpath_lab_harness::{Child, Lab, LabError, StabilityCheck, ThreadConfig};
use tickpath_lab_result::{Run, Stage};

/// Settings of `path`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The transport of the ticks, as a URL.
    pub target: String,
    /// The client of a strategy that logs on to the OMS from a process of its own; our own strategy in the OMS's
    /// process if there is none.
    pub external_client: Option<TradingClient>,
    /// The assignment of work to threads.
    pub layout: Layout,
    /// The strategy's wait mode for ticks.
    pub wait: Wait,
    /// The generator's and the system's CPU.
    pub cpus: [usize; 2],
    /// The venue's CPU; the feed polls the venue on the generator's CPU if there is none.
    pub venue_cpu: Option<usize>,
    /// The wait mode of feed and venue; if there is none, it depends on the other threads on their CPUs.
    pub generator_wait: Option<Wait>,
    /// The priority of the core's thread.
    pub priority: Priority,
    /// The ticks.
    pub ticks: TickSource,
    /// The number of this repetition.
    pub repeat: u32,
}

/// The error for a strategy outside in another layout.
const NEEDS_SPLIT: &str = "the strategies of --client are processes of their own beside an OMS whose core has a thread and a \
                           CPU to itself; use --layout split";

/// Returns the requested layouts, or the default; refuses layouts that a strategy outside does not support.
pub fn layouts(asked: &[Layout], is_outside: bool) -> Result<Vec<Layout>, LabError> {
    match asked {
        [] if is_outside => Ok(vec![Layout::Split]),
        [] => Ok(vec![Layout::Inline]),
        _ if is_outside && asked.iter().any(|layout| *layout != Layout::Split) => {
            Err(LabError::Setting(NEEDS_SPLIT.to_owned()))
        }
        _ => Ok(asked.to_vec()),
    }
}

/// Runs once.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    check(settings)?;
    lab.step(&format!("path {} {}", settings.target, settings.wait), settings.seconds())?;
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let idle = tickpath_lab_harness::host::idle_gaps(&lab.clock, settings.cpus[1])?;
    let roles = PathRoles::of(lab, settings)?;
    let _removed = [(settings.target.as_str(), &roles.topic), ("shm://", &roles.market)]
        .map(|(target, topic)| TopicGuard { target, topic });
    let outcome = match &settings.external_client {
        None => run_inline(lab, &roles)?,
        Some(client) => run_external(lab, &roles, client)?,
    };
    let run = assemble(lab, settings, &roles.journal, &outcome, &idle);
    let _ = std::fs::remove_dir_all(&roles.journal);
    roles.lanes.remove()?;
    let mut run = match (run, &outcome.fed.broke_off) {
        // No tick had led to an order by then.
        (Err(_), Some(why)) => return Err(LabError::Failed(why.clone())),
        (run, _) => run?,
    };
    add_receiver_cpu(&mut run, outcome.used_ns);
    run.notes.extend(outcome.oms_messages);
    around.end(lab, std::slice::from_mut(&mut run))?;
    match outcome.fed.broke_off {
        None => Ok(run),
        Some(why) => {
            let sent = run.counts.sent;
            Err(LabError::aborted(vec![run], sent, settings.ticks.count, "ticks", why))
        }
    }
}

struct PathReports {
    fed: FeedResult,
    traded: StrategyResult,
    /// CPU time of the strategy's process while ticks arrived.
    used_ns: u64,
    /// The OMS's messages to its operator.
    oms_messages: Vec<String>,
}

/// Runs the strategy with its OMS in one process, which makes the lanes.
fn run_inline(lab: &Lab<'_>, roles: &PathRoles) -> Result<PathReports, LabError> {
    let trader = lab.spawn(&roles.trader)?;
    let (exchange, mut feed, planned_ns) = roles.spawn_feed(lab)?;
    let used_ns = publish(&mut feed, planned_ns, &trader)?;
    let traded: StrategyResult = trader.stop()?;
    let fed: FeedResult = feed.stop()?;
    exchange.map_or(Ok(()), Child::stop::<()>)?;
    Ok(PathReports { fed, traded, used_ns, oms_messages: Vec::new() })
}

/// Starts the OMS, its venue, and then the strategy, which logs on: a logged-on client would be notified of a venue
/// that comes up.
fn run_external(lab: &Lab<'_>, roles: &PathRoles, client: &TradingClient) -> Result<PathReports, LabError> {
    let mut oms = lab.spawn(&roles.trader.oms)?;
    let url: Option<String> = oms.result(1.0)?;
    let url = url.ok_or_else(|| LabError::Failed("the OMS listens nowhere".to_owned()))?;
    let (exchange, mut feed, planned_ns) = roles.spawn_feed(lab)?;
    let mut strategy = client.spawn(lab, &roles.strategy(lab, &url), SCRIPT)?;
    let used_ns = publish(&mut feed, planned_ns, &strategy)?;
    // The strategy may have exited; its result then has the reason.
    let _ = strategy.send("ended");
    let traded: StrategyResult = strategy.result(10.0)?;
    let of_oms: Vec<String> = oms.stop()?;
    let fed: FeedResult = feed.stop()?;
    exchange.map_or(Ok(()), Child::stop::<()>)?;
    Ok(PathReports { fed, traded, used_ns, oms_messages: of_oms })
}

/// Makes the feed publish; returns the strategy process's CPU time meanwhile.
fn publish(feed: &mut Child, planned_ns: u64, strategy: &Child) -> Result<u64, LabError> {
    let before_ns = cpu_ns(strategy.id());
    feed.send("go")?;
    feed.result::<()>(planned_ns as f64 / 1e9 * 2.0)?;
    Ok(cpu_ns(strategy.id()).saturating_sub(before_ns))
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let TickSource { rate, speed, count, .. } = &settings.ticks;
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
    if settings.cpus[0] == settings.cpus[1] && settings.wait.spins() {
        return wrong(
            "feed and trader would both spin on one CPU; name two with --cpus, or use --wait block".to_owned(),
        );
    }
    layouts(&[settings.layout], settings.external_client.is_some()).map(|_| ())
}

impl Settings {
    /// Estimates the duration of a run; a guess for a recording at its own pace.
    pub fn seconds(&self) -> f64 {
        /// Seconds to start and end the processes.
        const SETUP_S: f64 = 1.5;
        SETUP_S + self.ticks.rate.map_or(10.0, |rate| self.ticks.count as f64 / rate)
    }

    /// Returns the venue's CPU, if it is not the feed's.
    fn own_venue_cpu(&self) -> Option<usize> {
        self.venue_cpu.filter(|cpu| *cpu != self.cpus[0])
    }

    /// Returns the wait mode of feed and venue: a thread that shares its CPU yields it. With an adaptive strategy they
    /// wait as with a spinning one: the OMS would have to wake a sleeping venue, which is not part of the strategy's
    /// wait.
    fn generator_wait(&self) -> Wait {
        let [generator, system] = self.cpus;
        let is_alone = self.layout == Layout::Inline && self.target == "shm://" && generator != system;
        match (self.generator_wait, self.wait) {
            (Some(wait), _) => wait,
            (None, Wait::Block) => Wait::Block,
            (None, _) if is_alone && self.venue_cpu != Some(system) => Wait::Busy,
            (None, _) => Wait::Yield,
        }
    }

    fn threads(&self) -> String {
        let [generator, system] = self.cpus;
        let (beside, core) = match (self.layout, &self.external_client) {
            (Layout::Inline, _) => ("", "strategy and OMS in turn"),
            (Layout::Split | Layout::Mutex, None) => (", strategy beside", "the OMS's core"),
            (Layout::Split | Layout::Mutex, Some(_)) => {
                (", strategy beside, in a process of its own", "the OMS's core")
            }
        };
        match self.own_venue_cpu() {
            Some(venue) => format!("feed{beside} on CPU {generator}; {core} on CPU {system}; venue on CPU {venue}"),
            None => format!("feed and venue in turn on one thread{beside} on CPU {generator}; {core} on CPU {system}"),
        }
    }
}

struct PathRoles {
    /// The exchange's process; `None` if the feed is the venue too.
    exchange: Option<ExchangeRole>,
    trader: TraderRole,
    feed: FeedRole,
    journal: PathBuf,
    topic: String,
    market: String,
    lanes: tickpath_oms_runtime::LanesConfig,
}

impl PathRoles {
    fn of(lab: &Lab<'_>, settings: &Settings) -> Result<Self, LabError> {
        static RUN: AtomicU64 = AtomicU64::new(0);
        let name = format!("{}.path{}", lab.name, RUN.fetch_add(1, Ordering::Relaxed));
        let Settings { target, layout, wait, cpus, priority, ticks, .. } = settings.clone();
        let in_shared_memory = target == "shm://";
        let market = format!("{name}.market");
        let topic = if in_shared_memory { market.clone() } else { format!("tickpath:{name}") };
        let generator_wait = settings.generator_wait();
        let journal = lab.folder().join(format!("{name}.journal"));
        let (request_bytes, report_bytes, account) = (1 << 20, 4 << 20, 1);
        let is_outside = settings.external_client.is_some();
        let users = is_outside.then(|| write_users(lab.folder(), account, &[(USER, 0..1)])).transpose()?;
        let door = |users| ServerRole { unix: Some(lab.folder().join("oms.sock")), tcp: None, users };
        let oms = OmsRole {
            lanes: name.clone(),
            request_bytes,
            report_bytes,
            journal: journal.clone(),
            // An order that trades has three or four reports.
            reserve_bytes: ticks.count * 768,
            symbol: "BTCUSDT".to_owned(),
            account,
            expected_orders: ticks.count as usize,
            layout: layout.to_string(),
            thread: ThreadConfig::new(cpus[1], wait, priority).with_warm_up(lab.runs_warm_up),
            other_cpu: Some(cpus[0]),
            market: (layout != Layout::Inline).then(|| market.clone()),
            level: "os".to_owned(),
            snapshot_every: 0,
            line: None,
            server: users.map(door),
            out: lab.folder().join("oms.gaps"),
        };
        let strategy_cpu = if layout == Layout::Inline { cpus[1] } else { cpus[0] };
        // Beside the feed the strategy must yield.
        let strategy_priority = if strategy_cpu == cpus[1] { priority } else { Priority::Normal };
        let beside_wait = if wait.sleeps() { Wait::Block } else { Wait::Yield };
        let strategy_wait = if layout == Layout::Inline { wait } else { beside_wait };
        let trader = TraderRole {
            target: target.clone(),
            topic: topic.clone(),
            oms,
            count: ticks.count,
            thread: ThreadConfig::new(strategy_cpu, strategy_wait, strategy_priority).with_warm_up(lab.runs_warm_up),
            out: lab.folder().join("trader"),
        };
        let lanes = crate::trade::lanes(&name, u16::from(!is_outside), request_bytes, report_bytes);
        let exchange = ExchangeRole {
            lanes: name,
            request_bytes,
            report_bytes,
            market: Some(market.clone()),
            expected_orders: ticks.count as usize,
            sockets: None,
            thread: ThreadConfig::new(settings.venue_cpu.unwrap_or(cpus[0]), generator_wait, Priority::Normal),
        };
        let (venue, exchange) = match settings.own_venue_cpu() {
            Some(_) => (None, Some(exchange)),
            None => (Some(exchange), None),
        };
        let feed = FeedRole {
            target,
            topic: topic.clone(),
            mirror: (!in_shared_memory).then(|| market.clone()),
            ticks,
            venue,
            thread: ThreadConfig::new(cpus[0], generator_wait, Priority::Normal).with_warm_up(lab.runs_warm_up),
            out: lab.folder().join("feed"),
        };
        Ok(Self { exchange, trader, feed, journal, topic, market, lanes })
    }

    /// Starts the venue and the feed, which reports its planned duration.
    fn spawn_feed(&self, lab: &Lab<'_>) -> Result<(Option<Child>, Child, u64), LabError> {
        let exchange = self.exchange.as_ref().map(|exchange| lab.spawn(exchange)).transpose()?;
        let mut feed = lab.spawn(&self.feed)?;
        let planned_ns = feed.result(600.0)?;
        Ok((exchange, feed, planned_ns))
    }

    /// Returns the role of the strategy that logs on to the OMS at this socket, and gets its lanes there.
    fn strategy(&self, lab: &Lab<'_>, url: &str) -> StrategyRole {
        let TraderRole { target, topic, oms, count, thread, .. } = self.trader.clone();
        StrategyRole {
            target,
            topic,
            login: login_at(lab.folder(), format!("{LANES_SCHEME}{url}")),
            symbol: SYMBOL.0,
            account: oms.account,
            quantity: QUANTITY.0,
            first_id: FIRST_ID,
            count,
            thread,
            out: lab.folder().join("strategy"),
            out_ticks: lab.folder().join("strategy.ticks"),
        }
    }
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    journal: &std::path::Path,
    PathReports { fed, traded, .. }: &PathReports,
    idle: &[SchedulingGap],
) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let read = analyse::read(journal)?;
    let Some(group) = read.groups.get(&PATH_GROUP) else {
        return Err(LabError::Failed("no tick led to an order; check that the recording has quotes".to_owned()));
    };
    let file = |name: &str| lab.folder().join(name);
    // Tick, seen, sent, first report, first report of the venue.
    let (who, rows, ticks) = match settings.external_client {
        None => ("trader", load::<5>(&file("trader"))?, load::<1>(&file("trader.ticks"))?),
        Some(_) => ("OMS", add_sent_times(&load::<4>(&file("strategy"))?, group), load::<1>(&file("strategy.ticks"))?),
    };
    let last = rows.iter().flatten().copied().max().unwrap_or(fed.last);
    let found = |name: &str| load_gaps(&file(name)).map(|gaps| clip_gaps(&gaps, fed.first, last));
    let watched = if settings.external_client.is_some() { "oms.gaps" } else { "trader.gaps" };
    let (own, feeds) = (found(watched)?, found("feed.gaps")?);
    let (gaps, feeds) = (attribute_common_stops(&own, &[&feeds]), attribute_common_stops(&feeds, &[&own]));
    let mut run = group.run(&read.calibration, &gaps);
    describe(&mut run, settings, fed);
    let pairs = |from: usize, to: usize| {
        Samples(rows.iter().filter(|row| row[from] != 0 && row[to] != 0).map(|row| (row[from], row[to])).collect())
    };
    let published = load::<2>(&file("feed"))?;
    let late = Samples(published.iter().map(|&[intended, actual]| (intended, actual)).collect());
    let late = late.hop(calibration, &feeds);
    add_lateness(&mut run, &late);
    run.hops.insert("lateness".to_owned(), late);
    let (one_way, service) = (pairs(0, 1), send_to_seen(&published, &rows));
    let hops =
        [("one_way", one_way), ("service", service), ("order_ack", pairs(2, 3)), ("order_round_trip", pairs(2, 4))];
    run.hops.extend(hops.map(|(name, samples)| (name.to_owned(), samples.hop(calibration, &gaps))));
    let [arrival, report] = group.venue_stages();
    let stages = [("seen_to_sent", pairs(1, 2)), ("released_to_arrived", arrival), ("arrived_to_reported", report)];
    run.stages.extend(stages.into_iter().filter(|(_, samples)| !samples.0.is_empty()).map(|(name, samples)| Stage {
        name: name.to_owned(),
        p50_ns: Some(samples.p50_ns(calibration)),
        ..Stage::default()
    }));
    let took_ns = lab.clock.ns_between(fed.first, fed.last) as f64;
    rules::count_ticks(&mut run, &published, &ticks);
    rules::apply_rules(&mut run, fed, traded, group.len() as u64, took_ns);
    match settings.wait {
        Wait::Busy => void_attribution(&mut run, idle, &gaps, took_ns / 1e9),
        // No thread spun on the trader's CPU, so the host's share is unknown.
        _ => drop_attribution(&mut run),
    }
    for (who, gaps) in [("feed", &feeds), (who, &gaps)] {
        note_stalls(&mut run, who, gaps, took_ns.max(0.0) as u64, calibration);
    }
    Ok(run)
}

/// Returns the time from each tick's actual send until the strategy saw it. For ticks of the same time the first tick's
/// send counts.
fn send_to_seen(published: &[[u64; 2]], rows: &[[u64; 5]]) -> Samples {
    let sample = |row: &[u64; 5]| {
        let sent = published.get(published.partition_point(|[intended, _]| *intended < row[0]))?;
        (sent[0] == row[0]).then_some((sent[1], row[1]))
    };
    Samples(rows.iter().filter_map(sample).collect())
}

fn describe(run: &mut Run, settings: &Settings, fed: &FeedResult) {
    let TickSource { file, rate, arrivals, speed, count, seed } = &settings.ticks;
    run.target = settings.target.clone();
    run.repeat = settings.repeat;
    run.layout = Some(settings.layout.to_string());
    if let Some(client) = &settings.external_client {
        client.describe_client(run);
        run.params.set("entry", format!("{LANES_SCHEME}unix://"));
    }
    run.params.set("wait", settings.wait.name());
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("threads", settings.threads());
    run.params.set("generator_wait", settings.generator_wait().name());
    run.params.set("count", *count);
    run.params.set("priority", settings.priority.to_string());
    if settings.wait.sleeps() {
        run.notes.push(
            "a venue's report does not wake a strategy that sleeps for ticks: order_round_trip holds up to 1 ms of that sleep"
                .to_owned(),
        );
    }
    let ticks = file.as_ref().map_or_else(|| format!("made up from seed {seed}"), |file| file.display().to_string());
    run.params.set("ticks", ticks);
    match rate {
        Some(rate) => run.params.set("rate_per_s", *rate),
        None => run.params.set("speed_ratio", *speed),
    }
    arrivals.describe(&mut run.params);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_one_time_are_timed_from_the_first_send() {
        let published = [[10, 11], [20, 25], [20, 26], [30, 90]];
        let seen = |tick, at| [tick, at, 0, 0, 0];
        // 25 is no tick of the feed.
        let rows = [seen(10, 15), seen(20, 27), seen(20, 28), seen(25, 29), seen(30, 95)];
        assert_eq!(send_to_seen(&published, &rows).0, [(11, 15), (25, 27), (25, 28), (90, 95)]);
    }
}
