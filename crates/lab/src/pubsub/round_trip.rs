//! A message and its answer, one after the other: closed by nature, and called so.
//!
//! ```text
//!   ping (generator's CPU) ── topic ──> pong (receiver's CPU)
//!     └──────────<── topic.answer ───────┘        round_trip = publish call begins → answer copied
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Event, Publisher, Start, Subscriber, TopicConfig, connect};
use tickpath_clock::{Clock, HostClock};

use super::ends::word;
use super::role::{KIND, topic_name};
use super::settings::{Settings, check, parameters, policy, refuse_go};
use crate::removed::Removed;
use tickpath_harness::Parent;
use tickpath_harness::samples::{Samples, load, save};
use tickpath_harness::{Lab, LabError};
use tickpath_harness::{Role, Thread};
use tickpath_result::{Counts, Run};

/// How long an answer may take.
const PATIENCE_NS: i64 = 5_000_000_000;

/// Sends a message and waits for its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PingRole {
    /// The transport's URL.
    pub target: String,
    /// Where it publishes.
    pub to: String,
    /// Where it listens.
    pub from: String,
    /// `overwrite`, `fail` or `keep`.
    pub policy: String,
    /// Bytes of a message.
    pub size: usize,
    /// Messages, if the time suffices.
    pub count: u64,
    /// The longest that all may take, in nanoseconds.
    pub duration_ns: u64,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// The other end: it answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PongRole(pub PingRole);

impl Role for PingRole {
    const NAME: &'static str = "ping";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        ping(self, parent)
    }
}

impl Role for PongRole {
    const NAME: &'static str = "pong";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        pong(&self.0, parent)
    }
}

/// Messages and answers for so many seconds, or until the count is reached.
pub fn round_trip(lab: &Lab<'_>, settings: &Settings, seconds: f64) -> Result<Run, LabError> {
    lab.step(&format!("pubsub {} round trips", tickpath_result::without_login(&settings.target)), seconds)?;
    check(settings)?;
    refuse_go(settings, "round-trip")?;
    let settings = &Settings { rate: Some(1.0), readers: 1, batch: 1, ..settings.clone() };
    let settings = &Settings { policy: Some(policy(settings)?), ..settings.clone() };
    let to = topic_name(lab, &settings.target);
    let from = format!("{to}.answer");
    let _removed = [&to, &from].map(|topic| Removed { target: &settings.target, topic });
    let ping = PingRole {
        target: settings.target.clone(),
        to: to.clone(),
        from: from.clone(),
        policy: settings.policy.expect("resolved").to_string(),
        size: settings.size,
        count: settings.count,
        duration_ns: (seconds * 1e9) as u64,
        thread: Thread::new(settings.cpus[0], settings.wait, settings.priority),
        out: lab.folder().join("ping"),
    };
    let thread = Thread::new(settings.cpus[1], settings.wait, settings.priority);
    let pong = PongRole(PingRole { to: from.clone(), from: to.clone(), thread, ..ping.clone() });
    // Both publish before either listens: a topic that must be there is there.
    let connection = connect(&settings.target)?;
    connection.remove(&to)?;
    connection.remove(&from)?;
    let _pong = lab.spawn(&pong)?;
    let mut ping = lab.spawn(&ping)?;
    ping.tell("go")?;
    let sent: u64 = ping.result(seconds + 10.0)?;
    assemble(lab, settings, sent)
}

/// Sends, waits for the answer, and sends again.
pub(crate) fn ping(role: &PingRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let (mut to, mut from) = open(role)?;
    let mut payload = vec![0; role.size];
    let mut rows: Vec<[u64; 2]> = Vec::with_capacity(role.count as usize);
    parent.ready();
    if parent.hear().is_none() {
        return Ok(());
    }
    let end = clock.ticks() + clock.calibration().ticks_of_ns(role.duration_ns);
    let mut sent = 0;
    while sent < role.count && clock.ticks() < end {
        payload[8..16].copy_from_slice(&sent.to_le_bytes());
        let start = clock.ticks();
        publish(to.as_mut(), start, &payload)?;
        let answered = await_answer(from.as_mut(), sent, start, &clock)?;
        rows.push([start, answered]);
        sent += 1;
    }
    save(&role.out, &rows)?;
    parent.result(&sent);
    Ok(())
}

/// Answers until it is told to stop.
pub(crate) fn pong(role: &PingRole, parent: &Parent) -> Result<(), LabError> {
    let (mut to, mut from) = open(role)?;
    let stop = parent.stop_flag();
    let mut answer = Vec::new();
    parent.ready();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let mut stamp = None;
        let polled = from.poll(1, &mut |event| {
            if let Event::Message(message) = event {
                answer.clear();
                answer.extend_from_slice(message.payload);
                stamp = Some(message.stamp);
            }
        });
        polled.map_err(|e| LabError::Failed(format!("receiving failed: {e}")))?;
        match stamp {
            Some(stamp) => publish(to.as_mut(), stamp, &answer)?,
            None => from.wait(10_000_000),
        }
    }
    Ok(())
}

/// Where one publishes, and where one listens.
type Ends = (Box<dyn Publisher>, Box<dyn Subscriber>);

/// Both topics: the one to publish, and a subscription to the other.
fn open(role: &PingRole) -> Result<Ends, LabError> {
    let policy = tickpath_bus::Policy::ALL.into_iter().find(|p| p.name() == role.policy);
    let policy = policy.ok_or_else(|| LabError::Setting(format!("'{}' is no policy", role.policy)))?;
    let connection = connect(&role.target)?;
    let capacity_bytes = (1 << 20).max(16 * (role.size + 64));
    let to = connection.publisher(&role.to, &TopicConfig { capacity_bytes, ..TopicConfig::new(policy) })?;
    let from = connection.subscriber(&role.from, Start::Now, role.thread.wait()?)?;
    role.thread.settle()?;
    Ok((to, from))
}

fn publish(to: &mut dyn Publisher, stamp: u64, payload: &[u8]) -> Result<(), LabError> {
    to.publish(stamp, KIND, payload).map_err(|e| LabError::Failed(format!("publishing failed: {e}")))
}

fn await_answer(from: &mut dyn Subscriber, number: u64, start: u64, clock: &HostClock) -> Result<u64, LabError> {
    let mut answered = None;
    let mut turns = 0u32;
    while answered.is_none() {
        let polled = from.poll(1, &mut |event| {
            if let Event::Message(message) = event
                && word(message.payload, 8) == number
            {
                answered = Some(clock.ticks());
            }
        });
        let found = polled.map_err(|e| LabError::Failed(format!("receiving failed: {e}")))?;
        if found == 0 {
            from.wait(10_000_000);
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(64) && clock.ns_between(start, clock.ticks()) > PATIENCE_NS {
                return Err(LabError::Failed(format!("message {number} had no answer within 5 s")));
            }
        }
    }
    Ok(answered.expect("answered"))
}

fn assemble(lab: &Lab<'_>, settings: &Settings, sent: u64) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let rows = load::<2>(&lab.folder().join("ping"))?;
    let answers = rows.len() as u64;
    let mut run = Run {
        target: settings.target.clone(),
        client: "rust".to_owned(),
        software: lab.software(&settings.target),
        repeat: settings.repeat,
        valid: true,
        counts: Counts { sent, received: answers, lost: sent.saturating_sub(answers), ..Counts::default() },
        notes: vec!["closed loop: each message waits for the answer to the one before".to_owned()],
        ..Run::default()
    };
    parameters(&mut run, settings);
    run.params.0.remove("rate_per_s");
    let round_trips = Samples(rows.iter().map(|&[start, answered]| (start, answered)).collect());
    run.hops.insert("round_trip".to_owned(), round_trips.hop(calibration, &[]));
    tickpath_harness::attribution::drop_attribution(&mut run);
    Ok(run)
}
