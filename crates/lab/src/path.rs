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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_bus::{Event as BusEvent, Gap as Loss, Policy, Publisher, Start, Subscriber, TopicConfig, connect};
use tickpath_clock::{Clock, HostClock, Lateness, Pacer, Priority, Wait, relax, yield_now};
use tickpath_log::{Next, PublishError, Reader, Registration, Start as From, Writer};
use tickpath_market::replay::{Event, Pace, Recording, Tally};
use tickpath_market::{
    AccountId, ClientOrderId, ExecutionReport, Kind, NewOrder, OrderDenied, OrderType, Price, Quantity, Side,
    TimeInForce, TopOfBook,
};
use tickpath_oms::layout::Inline;
use tickpath_oms::{Agent, Gap, Gaps, Layout};
use zerocopy::{FromBytes, IntoBytes};

use crate::analyse;
use crate::child::Parent;
use crate::orders::is_of_venue;
use crate::result::{Counts, Run, Stage, StageKind};
use crate::role::{ExchangeRole, FeedRole, OmsRole, Role, Thread, Ticks, TraderRole};
use crate::samples::{Samples, load, load_gaps, save, save_gaps};
use crate::trade::{SYMBOL, lanes, oms_config};
use crate::{Lab, LabError};

/// The group of the strategy's orders.
const GROUP: u32 = 60;

/// Each order's quantity: small beside what stands at the touch.
const QUANTITY: Quantity = Quantity(100_000);

/// Gaps of a spinning thread from here on count as the host's.
const HOST_GAP_NS: u64 = 2_000;

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
    /// Of the strategy's and the OMS's threads.
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
}

/// What the trader tells at its end.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Traded {
    seen: u64,
    missed: u64,
    orders: u64,
    denied: u64,
    last_report: u64,
}

/// Runs once.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    check(settings)?;
    let seconds = settings.ticks.rate.map_or(10.0, |rate| settings.ticks.count as f64 / rate);
    lab.progress.step(&format!("path {} {}", settings.target, settings.wait), seconds + 1.5);
    let idle = crate::host::idle_gaps(&lab.clock, settings.cpus[1], 200_000_000, HOST_GAP_NS)?;
    let roles = Roles::of(lab, settings);
    let exchange = lab.spawn(&Role::Exchange(roles.exchange))?;
    let trader = lab.spawn(&Role::Trader(roles.trader))?;
    let mut feed = lab.spawn(&Role::Feed(roles.feed))?;
    feed.tell("go")?;
    let fed: Fed = feed.result(seconds * 20.0 + 600.0)?;
    let traded: Traded = trader.stop()?;
    exchange.stop::<()>()?;
    let run = assemble(lab, settings, &roles.journal, &fed, &traded, &idle);
    let _ = std::fs::remove_dir_all(&roles.journal);
    if !settings.target.starts_with("redis") {
        let _ = connect(&settings.target)?.remove(&roles.topic);
    }
    run
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
            out: lab.folder().join("oms.gaps"),
        };
        let strategy_cpu = if layout == Layout::Inline { cpus[1] } else { cpus[0] };
        let strategy_wait = if layout == Layout::Inline || wait == Wait::Block { wait } else { Wait::Yield };
        let trader = TraderRole {
            target: target.clone(),
            topic: topic.clone(),
            market: market.clone(),
            oms,
            count: ticks.count,
            thread: Thread::new(strategy_cpu, strategy_wait, priority),
            out: lab.folder().join("trader"),
        };
        let exchange = ExchangeRole {
            lanes: name,
            request_bytes,
            report_bytes,
            market: Some(market.clone()),
            expected_orders: ticks.count as usize,
            thread: Thread::new(cpus[0], shared, Priority::Normal),
        };
        let feed = FeedRole {
            target,
            topic: topic.clone(),
            mirror: (!in_shared_memory).then_some(market),
            ticks,
            thread: Thread::new(cpus[0], shared, Priority::Normal),
            out: lab.folder().join("feed"),
        };
        Self { exchange, trader, feed, journal, topic }
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
    let mut gaps = load_gaps(&lab.folder().join("trader.gaps"))?;
    gaps.extend(load_gaps(&lab.folder().join("oms.gaps")).unwrap_or_default());
    let (told, _) = analyse::read(journal, 0)?;
    let Some(group) = told.groups.get(&GROUP) else {
        return Err(LabError::Setting("no tick came to an order; is a quote in the recording?".to_owned()));
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
        lost: fed.sent.saturating_sub(traded.seen),
        left: run.counts.left,
        ..Counts::default()
    };
    judge(&mut run, fed, traded, lab, idle, &gaps);
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
    if traded.denied > 0 {
        run.figures.insert("orders_rejected".to_owned(), traded.denied as f64);
        run.notes.push(format!("{} orders were denied by the risk checks", traded.denied));
    }
    crate::pubsub::void_attribution(run, idle, gaps, took / 1e9);
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
    parent.hear();
    let pacer = Pacer::new(clock, role.thread.wait()?);
    let start = clock.ticks() + clock.calibration().ticks_of_ns(5_000_000);
    let mut rows = Vec::with_capacity(plan.len());
    let mut lateness = Lateness::default();
    let mut before = 0;
    for (offset_ns, event) in &plan {
        let intended = start + clock.calibration().ticks_of_ns(*offset_ns);
        let actual = pacer.until(intended);
        publish(topic.as_mut(), intended, event)?;
        if let Some(mirror) = &mut mirror {
            publish(mirror.as_mut(), intended, event)?;
        }
        rows.push([intended, actual]);
        let allowance_ns = (offset_ns - before).max(10_000);
        before = *offset_ns;
        lateness.count(clock.ns_between(intended, actual).max(0) as u64, allowance_ns);
    }
    save(&role.out, &rows)?;
    let Tally { skipped_depth, skipped_other, bad, bad_lines, .. } = recording.tally;
    parent.result(&Fed {
        sent: plan.len() as u64,
        first: start,
        last: rows.last().map_or(start, |row| row[1]),
        planned_ns: plan.last().map_or(0, |(offset, _)| *offset),
        late_share: lateness.share(),
        skipped: skipped_depth + skipped_other,
        bad,
        bad_lines,
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
    published.map_err(|e| LabError::Setting(format!("publishing a tick failed: {e}")))
}

// --- the trader process ----------------------------------------------------------------------------------------------

/// The trader's life.
pub(crate) fn trader(role: &TraderRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let config = oms_config(&role.oms, &clock)?;
    let wait = role.thread.wait()?;
    let topic = connect(&role.target)?.subscriber(&role.topic, Start::Now, wait)?;
    let stop = parent.stop_flag();
    let (strategy, gaps) = match config.layout {
        Layout::Inline => {
            role.thread.settle()?;
            let mut oms = Inline::open(clock, &config, None)?;
            let mut strategy = Strategy::new(role, &clock)?;
            parent.ready();
            let gaps = trade_inline(&mut oms, &mut strategy, topic, wait, &stop)?;
            oms.sequencer().stop()?;
            (strategy, gaps)
        }
        Layout::Split | Layout::Mutex => trade_beside(role, &clock, &config, topic, wait, &stop, parent)?,
    };
    save(&role.out, &strategy.rows)?;
    save_gaps(&role.out.with_extension("gaps"), &gaps)?;
    parent.result(&strategy.traded);
    Ok(())
}

/// A tick that was just seen.
struct Seen {
    stamp: u64,
    seen: u64,
    top: Option<TopOfBook>,
}

/// Takes one tick off the topic, if there is one.
#[inline(always)]
fn take_tick(topic: &mut dyn Subscriber, clock: &HostClock, traded: &mut Traded) -> Result<Option<Seen>, LabError> {
    let mut found = None;
    let polled = topic.poll(1, &mut |event| match event {
        BusEvent::Message(message) => {
            let seen = clock.ticks();
            traded.seen += 1;
            let is_top = message.kind == Kind::TopOfBook.code();
            let top = if is_top { TopOfBook::read_from_bytes(message.payload).ok() } else { None };
            found = Some(Seen { stamp: message.stamp, seen, top });
        }
        BusEvent::Gap(Loss::Missed(missed)) => traded.missed += missed,
        BusEvent::Gap(Loss::Reconnected) => {}
    });
    polled.map_err(|e| LabError::Setting(format!("receiving ticks failed: {e}")))?;
    Ok(found)
}

/// Strategy and OMS as one thread.
fn trade_inline(
    oms: &mut Inline<HostClock>,
    strategy: &mut Strategy,
    mut topic: Box<dyn Subscriber>,
    wait: Wait,
    stop: &AtomicBool,
) -> Result<Vec<Gap>, LabError> {
    let mut gaps = Gaps::new(strategy.clock, HOST_GAP_NS);
    let mut quiet = Quiet::new(strategy.clock);
    loop {
        let clock = strategy.clock;
        if let Some(seen) = take_tick(topic.as_mut(), &clock, &mut strategy.traded)? {
            if let Some(top) = &seen.top {
                oms.sequencer().tick(seen.stamp, top);
            }
            strategy.on_tick(&seen)?;
            oms.poll()?;
            gaps.busy_turn();
            quiet.news();
            continue;
        }
        if oms.poll()? + strategy.hear()? > 0 {
            gaps.busy_turn();
            quiet.news();
            continue;
        }
        if stop.load(Ordering::Relaxed) && quiet.is_long() {
            return Ok(gaps.into_found());
        }
        match wait {
            Wait::Busy => gaps.empty_turn(),
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
    mut topic: Box<dyn Subscriber>,
    wait: Wait,
    stop: &AtomicBool,
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
        let traded = if opened { beside(role, clock, topic.as_mut(), wait, stop, parent) } else { Ok(None) };
        end.store(true, Ordering::Relaxed);
        let gaps = oms.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let strategy = traded?.ok_or_else(|| LabError::Setting("the OMS ended at once".to_owned()))?;
        Ok((strategy, gaps))
    })
}

fn beside(
    role: &TraderRole,
    clock: &HostClock,
    topic: &mut dyn Subscriber,
    wait: Wait,
    stop: &AtomicBool,
    parent: &Parent,
) -> Result<Option<Strategy>, LabError> {
    role.thread.settle()?;
    let mut strategy = Strategy::new(role, clock)?;
    let mut quiet = Quiet::new(*clock);
    parent.ready();
    loop {
        match take_tick(topic, clock, &mut strategy.traded)? {
            Some(seen) => {
                strategy.on_tick(&seen)?;
                quiet.news();
            }
            None if strategy.hear()? > 0 => quiet.news(),
            None if stop.load(Ordering::Relaxed) && quiet.is_long() => return Ok(Some(strategy)),
            None if wait == Wait::Busy => relax(),
            None => topic.wait(1_000_000),
        }
    }
}

/// Knows whether nothing has happened for a while: what was on its way is there.
struct Quiet {
    clock: HostClock,
    since: Option<u64>,
}

impl Quiet {
    fn new(clock: HostClock) -> Self {
        Self { clock, since: None }
    }

    #[inline(always)]
    fn news(&mut self) {
        self.since = None;
    }

    fn is_long(&mut self) -> bool {
        const LONG_NS: i64 = 100_000_000;
        let now = self.clock.ticks();
        self.clock.ns_between(*self.since.get_or_insert(now), now) > LONG_NS
    }
}

/// Sends an order at the touch for every tick.
struct Strategy {
    clock: HostClock,
    requests: Writer,
    reports: Reader,
    top: TopOfBook,
    account: AccountId,
    /// Tick, seen, sent, first report, first report of the venue; one for each order.
    rows: Vec<[u64; 5]>,
    traded: Traded,
}

impl Strategy {
    fn new(role: &TraderRole, clock: &HostClock) -> Result<Self, LabError> {
        let lanes = lanes(&role.oms.lanes, role.oms.request_bytes, role.oms.report_bytes);
        Ok(Self {
            clock: *clock,
            requests: Writer::open(&lanes.requests(0)?, clock.calibration())?,
            reports: Reader::open(&lanes.reports(0)?.place, From::Now, Registration::Registered)?,
            top: TopOfBook::default(),
            account: AccountId(role.oms.account),
            rows: Vec::with_capacity(role.count as usize),
            traded: Traded::default(),
        })
    }

    /// The decision, and the order.
    #[inline(always)]
    fn on_tick(&mut self, seen: &Seen) -> Result<(), LabError> {
        if let Some(top) = seen.top {
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
            client_order_id: ClientOrderId(u64::from(GROUP) << 32 | number),
            price,
            quantity: QUANTITY,
            cause: seen.stamp,
            symbol: SYMBOL,
            account: self.account,
            side: side.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::ImmediateOrCancel.code(),
            ..NewOrder::default()
        };
        let sent = self.clock.ticks();
        self.rows.push([seen.stamp, seen.seen, sent, 0, 0]);
        self.traded.orders += 1;
        loop {
            match self.requests.publish(sent, Kind::NewOrder.code(), order.as_bytes()) {
                Ok(_) => return Ok(()),
                Err(PublishError::Full) => yield_now(),
                Err(e) => return Err(LabError::Setting(format!("the OMS's lane: {e}"))),
            }
        }
    }

    /// Takes what the OMS says.
    #[inline(always)]
    fn hear(&mut self) -> Result<usize, LabError> {
        let Self { reports, clock, rows, traded, .. } = self;
        let mut take = |id: ClientOrderId, of_venue: bool| {
            let Some(row) = rows.get_mut(id.0 as u32 as usize) else { return };
            let now = clock.ticks();
            if row[3] == 0 {
                row[3] = now;
            }
            if of_venue && row[4] == 0 {
                row[4] = now;
                traded.last_report = now;
            }
        };
        let mut denied = 0;
        let heard = reports.drain(8, |next| {
            let Next::Message(message) = next else { return };
            if message.kind == Kind::OrderDenied.code() {
                if let Ok(report) = OrderDenied::read_from_bytes(message.payload) {
                    denied += 1;
                    take(report.client_order_id, true);
                }
            } else if let Ok(report) = ExecutionReport::read(message.kind, message.payload) {
                take(report.client_order_id, is_of_venue(&report));
            }
        });
        self.traded.denied += denied;
        heard.map_err(|e| LabError::Setting(format!("the report log: {e}")))
    }
}
