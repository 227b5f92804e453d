//! `pubsub`: messages from one process to another over a transport.
//!
//! ```text
//!   publisher (generator's CPU)                 subscriber (receiver's CPU)
//!   intended ─ publish ──── topic ───────────── payload copied
//!      │  └ actual                                 │
//!      └──────────────── one_way ──────────────────┤      service = actual → copied
//! ```
//! A message carries its intended time as its stamp, and in its payload when it was really sent and its number. Valid
//! only if the generator kept its rate and was punctual, and both processes had a CPU of their own.

use std::path::Path;

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use tickpath_bus::{Event, Gap as Loss, Policy, PublishError, Start, Subscriber, TopicConfig, connect};

use tickpath_clock::{Clock, HostClock, Lateness, Pacer, Priority, Wait, relax};
use tickpath_oms::{Gap, Gaps};

use crate::result::{Counts, Run};
use crate::role::{PublisherRole, Role, SubscriberRole, Thread};
use crate::samples::{Samples, load, load_gaps, save, save_gaps, touched_rows};
use crate::{Lab, LabError, host};

/// The kind of a benchmark's messages.
const KIND: u8 = 200;

/// A payload holds at least when it was sent and its number.
const LEAST_BYTES: usize = 16;

/// Messages that one turn of a counting reader takes.
const TURN: usize = 256;

/// Gaps of a spinning thread from here on count as the host's.
const HOST_GAP_NS: u64 = 2_000;

/// After the last message is sent, the subscriber may take so long for what is still on its way.
const DRAIN_NS: u64 = 2_000_000_000;

/// How `pubsub` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The transport's URL.
    pub target: String,
    /// Bytes of a message.
    pub size: usize,
    /// Messages a second; as fast as it goes if there is none.
    pub rate: Option<f64>,
    /// Messages.
    pub count: u64,
    /// Messages that share a stamp.
    pub batch: usize,
    /// What a full topic does.
    pub policy: Policy,
    /// Subscriptions; they take turns on the receiver's CPU.
    pub readers: usize,
    /// How the subscriber waits.
    pub wait: Wait,
    /// The generator's and the receiver's CPU.
    pub cpus: [usize; 2],
    /// Of both processes.
    pub priority: Priority,
    /// Which repetition this is.
    pub repeat: u32,
}

/// What the publisher tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Published {
    sent: u64,
    refused: u64,
    first: u64,
    last: u64,
    late_share: f64,
}

/// What the subscriber tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Received {
    received: u64,
    reordered: u64,
    duplicated: u64,
    last: u64,
}

/// Runs once, with the floor of the same run.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    check(settings)?;
    let seconds = settings.rate.map_or(2.0, |rate| settings.count as f64 / rate);
    let what = format!("pubsub {} {} B", settings.target, settings.size);
    lab.progress.step(&what, seconds + 1.0);
    let transfer = host::transfer_ns(lab, settings.cpus)?.unwrap_or(0.0);
    let idle = host::idle_gaps(&lab.clock, settings.cpus[1], 200_000_000, HOST_GAP_NS)?;
    let topic = topic_name(lab, &settings.target);
    let (publisher, subscriber) = roles(lab, settings, &topic);
    // The publisher makes the topic, so that a `fail` topic has its reader before the first message.
    let mut publisher = lab.spawn(&Role::Publisher(publisher))?;
    let mut subscriber = lab.spawn(&Role::Subscriber(subscriber))?;
    publisher.tell("go")?;
    // As slowly as a message of this size can reasonably go.
    let slowest = settings.count as f64 * (1e-5 + settings.size as f64 * 1e-8);
    let published: Published = publisher.result(seconds * 3.0 + slowest)?;
    // It may have everything already, and be gone.
    let _ = subscriber.tell("ended");
    let received: Received = subscriber.result(10.0)?;
    let _ = connect(&settings.target)?.remove(&topic);
    assemble(lab, settings, transfer, &idle, &published, &received)
}

/// On somebody's server a name says whose it is.
fn topic_name(lab: &Lab<'_>, target: &str) -> String {
    match target.split("://").next() {
        Some("shm" | "file") => format!("{}.pubsub", lab.name),
        _ => format!("tickpath:{}:pubsub", lab.name),
    }
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: String| Err(LabError::Setting(what));
    if settings.size < LEAST_BYTES || settings.size > 16 << 20 {
        return wrong(format!("a size of {} bytes is not possible; use {LEAST_BYTES} to 16777216", settings.size));
    }
    if settings.count == 0 || settings.batch == 0 || settings.readers == 0 || settings.readers > 256 {
        return wrong("counts, batches and readers start at 1; readers end at 256".to_owned());
    }
    if settings.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
        return wrong("--rate takes a number above 0, up to 100000000, or max".to_owned());
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait == Wait::Busy {
        return wrong(format!(
            "publisher and subscriber would both spin on CPU {}; name two with --cpus, or use --wait yield or block",
            settings.cpus[0]
        ));
    }
    Ok(())
}

fn roles(lab: &Lab<'_>, settings: &Settings, topic: &str) -> (PublisherRole, SubscriberRole) {
    let Settings { target, size, rate, count, batch, policy, readers, wait, cpus, priority, .. } = settings.clone();
    // Readers that share the publisher's core need it to give way.
    let pace = if cpus[0] == cpus[1] { Wait::Yield } else { Wait::Busy };
    let publisher = PublisherRole {
        target: target.clone(),
        topic: topic.to_owned(),
        policy: policy.to_string(),
        size,
        count,
        rate,
        batch,
        thread: Thread::new(cpus[0], pace, priority),
        out: lab.folder().join("publisher"),
    };
    let subscriber = SubscriberRole {
        target,
        topic: topic.to_owned(),
        count,
        stamps: rate.is_some(),
        readers,
        thread: Thread::new(cpus[1], wait, priority),
        out: lab.folder().join("subscriber"),
    };
    (publisher, subscriber)
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    transfer: f64,
    idle: &[Gap],
    published: &Published,
    received: &Received,
) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let elapsed = calibration.ns_between(published.first, received.last).max(0) as u64;
    let mut run = Run {
        target: settings.target.clone(),
        client: "rust".to_owned(),
        repeat: settings.repeat,
        valid: true,
        batch: Some((settings.batch as u64).into()),
        counts: counts(settings, published, received),
        elapsed_ns: Some(elapsed),
        throughput_per_s: (elapsed > 0).then(|| received.received as f64 * 1e9 / elapsed as f64),
        ..Run::default()
    };
    parameters(&mut run, settings);
    if transfer > 0.0 {
        run.figures.insert("cache_line_transfer_ns".to_owned(), transfer);
    }
    let gaps = load_gaps(&lab.folder().join("subscriber.gaps"))?;
    publish_hop(&mut run, &lab.folder().join("publisher"), lab, &gaps)?;
    if settings.rate.is_some() {
        latency_hops(&mut run, &lab.folder().join("subscriber"), lab, &gaps, transfer)?;
        judge(&mut run, settings, published, idle, &gaps, lab);
    }
    if published.refused > 0 {
        run.notes.push(format!("the topic was full {} times; the publisher tried again", published.refused));
    }
    if run.counts.lost > 0 && settings.policy != Policy::Overwrite {
        run.valid = false;
        run.notes.push(format!("{} messages were lost on a topic that promises to keep them", run.counts.lost));
    }
    Ok(run)
}

fn counts(settings: &Settings, published: &Published, received: &Received) -> Counts {
    let expected = published.sent * settings.readers as u64;
    Counts {
        sent: published.sent,
        received: received.received,
        lost: expected.saturating_sub(received.received),
        duplicated: received.duplicated,
        reordered: received.reordered,
        left: 0,
        errors: 0,
    }
}

fn parameters(run: &mut Run, settings: &Settings) {
    run.params.set("size_bytes", settings.size as u64);
    run.params.set("wait", settings.wait.name());
    run.params.set("policy", settings.policy.name());
    run.params.set("readers", settings.readers as u64);
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("count", settings.count);
    match settings.rate {
        Some(rate) => run.params.set("rate_per_s", rate),
        None => run.params.set("rate_per_s", "max"),
    }
}

fn publish_hop(run: &mut Run, out: &Path, lab: &Lab<'_>, gaps: &[Gap]) -> Result<(), LabError> {
    let rows = load::<3>(out)?;
    if rows.is_empty() {
        return Ok(());
    }
    let calibration = lab.clock.calibration();
    let calls = Samples(rows.iter().map(|&[_, actual, done]| (actual, done)).collect());
    let late = Samples(rows.iter().map(|&[intended, actual, _]| (intended, actual)).collect());
    run.hops.insert("publish".to_owned(), calls.hop(calibration, gaps));
    run.figures.insert("writer_cost_ns".to_owned(), calls.p50_ns(calibration));
    let late = late.hop(calibration, gaps);
    let lateness = [("lateness_p50_ns", late.percentiles()[0]), ("lateness_p99_ns", late.percentiles()[3])];
    run.figures.extend(lateness.into_iter().filter_map(|(name, ns)| Some((name.to_owned(), ns? as f64))));
    Ok(())
}

fn latency_hops(run: &mut Run, out: &Path, lab: &Lab<'_>, gaps: &[Gap], transfer: f64) -> Result<(), LabError> {
    let rows = load::<3>(out)?;
    let calibration = lab.clock.calibration();
    let one_way = Samples(rows.iter().map(|&[intended, _, copied]| (intended, copied)).collect());
    let service = Samples(rows.iter().map(|&[_, actual, copied]| (actual, copied)).collect());
    run.hops.insert("one_way".to_owned(), one_way.hop(calibration, gaps));
    run.hops.insert("service".to_owned(), service.hop(calibration, gaps));
    if transfer > 0.0 && !rows.is_empty() {
        run.figures.insert("one_way_over_transfer_ratio".to_owned(), one_way.p50_ns(calibration) / transfer);
    }
    Ok(())
}

/// The run's own rules: rate, punctuality, and whether the host was calmer than while it idled.
fn judge(run: &mut Run, settings: &Settings, published: &Published, idle: &[Gap], gaps: &[Gap], lab: &Lab<'_>) {
    let calibration = lab.clock.calibration();
    let planned = settings.count.saturating_sub(1) as f64 / settings.rate.unwrap_or(f64::INFINITY);
    let took = calibration.ns_between(published.first, published.last) as f64 / 1e9;
    if took > 0.0 && planned / took < 0.99 && settings.count > 1 {
        run.valid = false;
        run.notes
            .push(format!("the generator reached {:.1} % of its rate; use a lower --rate", 100.0 * planned / took));
    }
    if published.late_share > 0.01 {
        run.valid = false;
        let share = 100.0 * published.late_share;
        run.notes
            .push(format!("{share:.1} % of sends came late by more than the interval or 10 µs; use a lower --rate"));
    }
    void_attribution(run, idle, gaps, took);
}

/// The host's share of the tail is told only if the host behaved as it does when idle.
pub(crate) fn void_attribution(run: &mut Run, idle: &[Gap], gaps: &[Gap], seconds: f64) {
    /// How long the idle floor was watched; a run watches one thread too.
    const IDLE_SECONDS: f64 = 0.2;
    /// Fewer gaps than this make no rate.
    const LEAST: usize = 20;
    let floor = (idle.len().max(1)) as f64 / IDLE_SECONDS;
    let rate = gaps.len() as f64 / seconds.max(1e-3);
    if gaps.len() > LEAST && rate > 2.0 * floor {
        drop_attribution(run);
        run.notes.push(format!(
            "host gaps came {rate:.0} times a second, more than twice the idle floor of {floor:.0}: what the host took of \
             the tail cannot be told, raw figures stand"
        ));
    }
}

/// Raw figures alone.
pub(crate) fn drop_attribution(run: &mut Run) {
    for hop in run.hops.values_mut() {
        hop.unstalled = None;
        hop.host_stall_share_p999 = None;
    }
}

// --- the two processes -----------------------------------------------------------------------------------------------

/// The publisher's life.
pub(crate) fn publisher(role: &PublisherRole, parent: &crate::child::Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let policy = Policy::ALL.into_iter().find(|p| p.name() == role.policy);
    let policy = policy.ok_or_else(|| LabError::Setting(format!("'{}' is no policy", role.policy)))?;
    let connection = connect(&role.target)?;
    let _ = connection.remove(&role.topic);
    let config = match policy {
        Policy::Keep => TopicConfig { capacity_bytes: 16 << 20, ..TopicConfig::new(policy) },
        // A ring holds at least sixteen messages, however long they are.
        _ => TopicConfig { capacity_bytes: (1 << 20).max(16 * (role.size + 64)), ..TopicConfig::new(policy) },
    };
    let mut topic = connection.publisher(&role.topic, &config)?;
    role.thread.settle()?;
    let mut rows = touched_rows(if role.rate.is_some() { role.count as usize } else { 0 });
    parent.ready();
    if parent.hear().is_none() {
        return Ok(());
    }
    let published = match role.rate {
        Some(rate) => paced(role, rate, &clock, topic.as_mut(), &mut rows, &parent.stop_flag())?,
        None => flood(role, &clock, topic.as_mut(), &parent.stop_flag())?,
    };
    save(&role.out, &rows)?;
    parent.result(&published);
    Ok(())
}

/// One message at each intended time.
fn paced(
    role: &PublisherRole,
    rate: f64,
    clock: &HostClock,
    topic: &mut dyn tickpath_bus::Publisher,
    rows: &mut Vec<[u64; 3]>,
    stop: &AtomicBool,
) -> Result<Published, LabError> {
    let calibration = clock.calibration();
    let pacer = Pacer::new(*clock, role.thread.wait()?);
    let allowance_ns = (1e9 / rate).max(10_000.0) as u64;
    let mut lateness = Lateness::default();
    let mut payload = vec![0; role.size];
    let start = clock.ticks() + calibration.ticks_of_ns(1_000_000);
    let mut refused = 0;
    for number in 0..role.count {
        let intended = start + calibration.ticks_of_ns((number as f64 * 1e9 / rate) as u64);
        let actual = pacer.until(intended);
        payload[..8].copy_from_slice(&actual.to_le_bytes());
        payload[8..16].copy_from_slice(&number.to_le_bytes());
        refused += send(topic, intended, &payload, stop)?;
        rows.push([intended, actual, clock.ticks()]);
        lateness.count(clock.ns_between(intended, actual).max(0) as u64, allowance_ns);
    }
    let last = rows.last().map_or(start, |row| row[1]);
    Ok(Published { sent: role.count, refused, first: start, last, late_share: lateness.share() })
}

/// As fast as it goes, in batches that share a stamp.
fn flood(
    role: &PublisherRole,
    clock: &HostClock,
    topic: &mut dyn tickpath_bus::Publisher,
    stop: &AtomicBool,
) -> Result<Published, LabError> {
    let mut payloads = vec![vec![0; role.size]; role.batch];
    let first = clock.ticks();
    let (mut sent, mut refused) = (0, 0);
    while sent < role.count {
        let batch = (role.count - sent).min(role.batch as u64) as usize;
        let stamp = clock.ticks();
        for (number, payload) in (sent..).zip(&mut payloads[..batch]) {
            payload[..8].copy_from_slice(&stamp.to_le_bytes());
            payload[8..16].copy_from_slice(&number.to_le_bytes());
        }
        if batch == 1 {
            refused += send(topic, stamp, &payloads[0], stop)?;
        } else {
            let slices: Vec<&[u8]> = payloads[..batch].iter().map(Vec::as_slice).collect();
            refused += send_batch(topic, stamp, &slices, stop)?;
        }
        sent += batch as u64;
    }
    Ok(Published { sent, refused, first, last: clock.ticks(), late_share: 0.0 })
}

/// Publishes one message, again and again while the topic is full; gives how often it was.
fn send(
    topic: &mut dyn tickpath_bus::Publisher,
    stamp: u64,
    payload: &[u8],
    stop: &AtomicBool,
) -> Result<u64, LabError> {
    let mut refused = 0;
    loop {
        match topic.publish(stamp, KIND, payload) {
            Ok(()) => return Ok(refused),
            Err(PublishError::Full) => {
                refused += 1;
                give_up_if(stop)?;
                relax();
            }
            Err(e) => return Err(LabError::Failed(format!("publishing failed: {e}"))),
        }
    }
}

fn send_batch(
    topic: &mut dyn tickpath_bus::Publisher,
    stamp: u64,
    payloads: &[&[u8]],
    stop: &AtomicBool,
) -> Result<u64, LabError> {
    let (mut done, mut refused) = (0, 0);
    loop {
        match topic.publish_batch(stamp, KIND, &payloads[done..]) {
            Ok(()) => return Ok(refused),
            Err(e) => {
                done += e.done;
                match e.error {
                    PublishError::Full => refused += 1,
                    error => return Err(LabError::Failed(format!("publishing failed: {error}"))),
                }
                give_up_if(stop)?;
                relax();
            }
        }
    }
}

/// A publisher whose parent is gone has nobody to publish for.
fn give_up_if(stop: &AtomicBool) -> Result<(), LabError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(LabError::Failed("the bench was stopped".to_owned())),
        false => Ok(()),
    }
}

/// What one subscription has seen.
#[derive(Default)]
struct Seen {
    received: u64,
    reordered: u64,
    duplicated: u64,
    next: u64,
    /// A bit for each number that came, to tell a message that comes again from one that comes late.
    came: Vec<u64>,
}

impl Seen {
    fn of(count: u64) -> Self {
        Self { came: vec![0; count as usize / 64 + 1], ..Self::default() }
    }

    #[inline(always)]
    fn message(&mut self, number: u64) {
        self.received += 1;
        let bit = 1 << (number % 64);
        if let Some(word) = self.came.get_mut(number as usize / 64) {
            let again = *word & bit != 0;
            *word |= bit;
            if again {
                self.duplicated += 1;
            } else if number < self.next {
                self.reordered += 1;
            }
        }
        self.next = self.next.max(number + 1);
    }
}

/// The subscriber's life.
pub(crate) fn subscriber(role: &SubscriberRole, parent: &crate::child::Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let wait = role.thread.wait()?;
    let connection = connect(&role.target)?;
    let subscribe = |_| connection.subscriber(&role.topic, Start::Now, wait);
    let mut topics = (0..role.readers).map(subscribe).collect::<Result<Vec<_>, _>>()?;
    role.thread.settle()?;
    let mut rows = touched_rows(if role.stamps { role.count as usize * role.readers } else { 0 });
    let mut gaps = Gaps::new(clock, HOST_GAP_NS);
    parent.ready();
    let (seen, last) = receive(role, &clock, wait, &mut topics, &mut rows, &mut gaps, parent)?;
    save(&role.out, &rows)?;
    save_gaps(&role.out.with_extension("gaps"), &gaps.into_found())?;
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum();
    let received = Received {
        received: sum(|seen| seen.received),
        reordered: sum(|seen| seen.reordered),
        duplicated: sum(|seen| seen.duplicated),
        last,
    };
    parent.result(&received);
    Ok(())
}

/// Receives until all is there, or nothing more comes after the publisher has ended.
#[allow(clippy::too_many_arguments, reason = "the loop of the process, whose parts these are")]
fn receive(
    role: &SubscriberRole,
    clock: &HostClock,
    wait: Wait,
    topics: &mut [Box<dyn Subscriber>],
    rows: &mut Vec<[u64; 3]>,
    gaps: &mut Gaps<HostClock>,
    parent: &crate::child::Parent,
) -> Result<(Vec<Seen>, u64), LabError> {
    let mut seen: Vec<Seen> = topics.iter().map(|_| Seen::of(role.count)).collect();
    let expected = role.count * topics.len() as u64;
    let mut copy = vec![0; 16 << 20];
    let mut end = End::new(clock);
    let (mut done, mut turns) = (0, 0u32);
    while done < expected {
        let mut found = 0;
        for (topic, seen) in topics.iter_mut().zip(&mut seen) {
            let limit = if role.stamps { 1 } else { TURN };
            let polled = topic.poll(limit, &mut |event| match event {
                Event::Message(message) => {
                    let bytes = message.payload.len();
                    copy[..bytes].copy_from_slice(message.payload);
                    if role.stamps {
                        rows.push([message.stamp, word(&copy, 0), clock.ticks()]);
                    }
                    seen.message(word(&copy, 8));
                    done += 1;
                }
                Event::Gap(Loss::Missed(missed)) => done += missed,
                Event::Gap(Loss::Reconnected) => {}
            });
            found += polled.map_err(|e| LabError::Failed(format!("receiving failed: {e}")))?;
        }
        if found > 0 {
            gaps.busy_turn();
            end.news();
            continue;
        }
        if wait == Wait::Busy && topics.len() == 1 {
            gaps.empty_turn();
        }
        topics[0].wait(10_000_000);
        turns = turns.wrapping_add(1);
        if (turns.is_multiple_of(1 << 14) || wait == Wait::Block) && end.is_reached(parent) {
            break;
        }
    }
    Ok((seen, end.last_news))
}

/// When to stop waiting: a while after the publisher has ended and the last message came.
struct End<'a> {
    clock: &'a HostClock,
    publisher_ended: bool,
    quiet_since: u64,
    last_news: u64,
}

impl<'a> End<'a> {
    fn new(clock: &'a HostClock) -> Self {
        Self { clock, publisher_ended: false, quiet_since: 0, last_news: 0 }
    }

    #[inline(always)]
    fn news(&mut self) {
        self.quiet_since = 0;
        self.last_news = self.clock.ticks();
    }

    #[cold]
    fn is_reached(&mut self, parent: &crate::child::Parent) -> bool {
        let now = self.clock.ticks();
        if self.quiet_since == 0 {
            self.quiet_since = now;
        }
        self.publisher_ended |= parent.has_spoken();
        self.publisher_ended && self.clock.ns_between(self.quiet_since, now) as u64 > DRAIN_NS
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
