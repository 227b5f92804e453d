//! A message and its answer, in turn: a closed loop by nature, and reported as such.
//!
//! ```text
//!   ping (generator's CPU) ── topic ──> pong (receiver's CPU)
//!     └──────────<── topic.answer ───────┘        round_trip = publish call begins → answer copied
//! ```
//! A message without an answer breaks the run off.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Gap as Loss, Publisher, StartPosition, Subscriber, SubscriptionEvent, connect};
use tickpath_clock::{Clock, HostClock};

use super::processes::{SequenceTracker, read_u64};
use super::role::{KIND, SubscriberResult, topic_config, topic_name};
use super::settings::{Settings, check, policy, run_of_settings};
use tickpath_lab_harness::rules::note_reconnects;
use tickpath_lab_harness::samples::{Samples, load, save};
use tickpath_lab_harness::targets::TopicGuard;
use tickpath_lab_harness::{Lab, LabError, Parent, ProcessRole, StabilityCheck, ThreadConfig};
use tickpath_lab_result::Run;

/// Max time of an answer.
const ANSWER_TIMEOUT_NS: i64 = 5_000_000_000;

/// Role of the end that sends a message and waits for its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PingRole {
    /// The transport's URL.
    pub target: String,
    /// The topic that it publishes.
    pub to: String,
    /// The topic that it subscribes to.
    pub from: String,
    /// `overwrite`, `fail` or `keep`.
    pub policy: String,
    /// Bytes of a message.
    pub size: usize,
    /// Max number of messages, if the time suffices.
    pub count: u64,
    /// Max duration of the whole run, in nanoseconds.
    pub duration_ns: u64,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of its samples.
    pub out: PathBuf,
}

/// Role of the other end, which answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PongRole(pub PingRole);

impl ProcessRole for PingRole {
    const NAME: &'static str = "ping";

    /// Runs the ping process: sends, waits for the answer, and sends again.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let (mut to, mut from) = open_topics(self)?;
        let mut payload = vec![0; self.size];
        let mut rows: Vec<[u64; 2]> = Vec::with_capacity(self.count as usize);
        parent.ready();
        if parent.receive().is_none() {
            return Ok(());
        }
        let end = clock.ticks() + clock.calibration().ticks_of_ns(self.duration_ns);
        let mut tracker = SequenceTracker::default();
        let (mut sent, mut last) = (0, 0);
        while sent < self.count && clock.ticks() < end {
            payload[8..16].copy_from_slice(&sent.to_le_bytes());
            let start = clock.ticks();
            publish(to.as_mut(), start, &payload)?;
            last = await_answer(from.as_mut(), &mut tracker, sent, start, &clock)?;
            rows.push([start, last]);
            sent += 1;
        }
        save(&self.out, &rows)?;
        let mut received =
            SubscriberResult { reconnects: from.reconnects(), ..SequenceTracker::received(&[tracker], last) };
        received.count_withheld(&*from);
        parent.result(&(received, to.reconnects()));
        Ok(())
    }
}

impl ProcessRole for PongRole {
    const NAME: &'static str = "pong";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        pong(&self.0, parent)
    }
}

/// Sends messages and awaits answers for `seconds`, or until the count is reached.
pub fn round_trip(lab: &Lab<'_>, settings: &Settings, seconds: f64) -> Result<Run, LabError> {
    lab.step(&format!("pubsub {} round trips", tickpath_bus::url::redact_logins(&settings.target)), seconds)?;
    check(settings, Some("round-trip"))?;
    let settings = &Settings { rate: Some(1.0), readers: 1, batch: 1, ..settings.clone() };
    let settings = &Settings { policy: Some(policy(settings)?), ..settings.clone() };
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let to = topic_name(lab, &settings.target);
    let from = format!("{to}.answer");
    let _removed = [&to, &from].map(|topic| TopicGuard { target: &settings.target, topic });
    let ping = PingRole {
        target: settings.target.clone(),
        to: to.clone(),
        from: from.clone(),
        policy: settings.policy.expect("resolved").to_string(),
        size: settings.size,
        count: settings.count,
        duration_ns: (seconds * 1e9) as u64,
        thread: ThreadConfig::new(settings.cpus[0], settings.wait, settings.priority),
        out: lab.folder().join("ping"),
    };
    let thread = ThreadConfig::new(settings.cpus[1], settings.wait, settings.priority);
    let pong = PongRole(PingRole { to: from.clone(), from: to.clone(), thread, ..ping.clone() });
    // Both ends open their publisher before either subscribes: some transports need the topic to exist.
    let connection = connect(&settings.target)?;
    connection.remove_topic(&to)?;
    connection.remove_topic(&from)?;
    let pong = lab.spawn(&pong)?;
    let mut ping = lab.spawn(&ping)?;
    ping.send("go")?;
    let (mut received, sent): (SubscriberResult, Option<u64>) = ping.result(seconds + 10.0)?;
    let (reconnects, answered): (Option<u64>, Option<u64>) = pong.stop()?;
    received.reconnects = [received.reconnects, reconnects].into_iter().sum();
    let mut run = assemble(lab, settings, &received)?;
    note_reconnects(&mut run, "sender", [sent, answered].into_iter().sum());
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

/// Runs the pong process: answers until the parent stops it, then reports its reconnects.
pub(crate) fn pong(role: &PingRole, parent: &Parent) -> Result<(), LabError> {
    let (mut to, mut from) = open_topics(role)?;
    let stop = parent.stop_flag();
    let mut answer = Vec::new();
    parent.ready();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let mut stamp = None;
        let polled = from.poll(1, &mut |event| match event {
            SubscriptionEvent::Message(message) => {
                answer.clear();
                answer.extend_from_slice(message.payload);
                stamp = Some(message.stamp);
            }
            // A message that is missed here gets no answer.
            SubscriptionEvent::Gap(_) | SubscriptionEvent::Foreign(_) => {}
        });
        polled.map_err(|e| LabError::Failed(format!("receiving failed: {e}")))?;
        match stamp {
            Some(stamp) => publish(to.as_mut(), stamp, &answer)?,
            None => from.wait(10_000_000),
        }
    }
    parent.result(&(from.reconnects(), to.reconnects()));
    Ok(())
}

/// The publisher to one topic, and the subscriber to the other.
type TopicPair = (Box<dyn Publisher>, Box<dyn Subscriber>);

/// Opens both topics: one to publish, and a subscription to the other.
fn open_topics(role: &PingRole) -> Result<TopicPair, LabError> {
    let connection = connect(&role.target)?;
    let to = connection.publisher(&role.to, &topic_config(&role.policy, role.size)?)?;
    let from = connection.subscriber(&role.from, StartPosition::Now, role.thread.wait()?)?;
    role.thread.apply()?;
    Ok((to, from))
}

fn publish(to: &mut dyn Publisher, stamp: u64, payload: &[u8]) -> Result<(), LabError> {
    to.publish(stamp, KIND, payload).map_err(|e| LabError::Failed(format!("publishing failed: {e}")))
}

/// Returns the arrival time of this message's answer; any other message is only counted.
fn await_answer(
    from: &mut dyn Subscriber,
    tracker: &mut SequenceTracker,
    number: u64,
    start: u64,
    clock: &HostClock,
) -> Result<u64, LabError> {
    let mut answered = None;
    let mut turns = 0u32;
    while answered.is_none() {
        let polled = from.poll(1, &mut |event| match event {
            SubscriptionEvent::Message(message) => {
                let answer = read_u64(message.payload, 8);
                answered = (answer == number).then(|| clock.ticks());
                tracker.message(answer);
            }
            SubscriptionEvent::Gap(Loss::Missed(missed)) => tracker.gap(missed),
            SubscriptionEvent::Gap(Loss::Reconnected) | SubscriptionEvent::Foreign(_) => {}
        });
        let found = polled.map_err(|e| LabError::Failed(format!("receiving failed: {e}")))?;
        if found == 0 {
            from.wait(10_000_000);
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(64) && clock.ns_between(start, clock.ticks()) > ANSWER_TIMEOUT_NS {
                return Err(LabError::Failed(format!("message {number} had no answer within 5 s")));
            }
        }
    }
    Ok(answered.expect("answered"))
}

fn assemble(lab: &Lab<'_>, settings: &Settings, received: &SubscriberResult) -> Result<Run, LabError> {
    let rows = load::<2>(&lab.folder().join("ping"))?;
    let mut run = run_of_settings(lab, settings);
    run.notes.push("closed loop: each message waits for the answer to the one before".to_owned());
    run.params.0.remove("rate_per_s");
    let round_trips = Samples(rows.iter().map(|&[start, answered]| (start, answered)).collect());
    run.hops.insert("round_trip".to_owned(), round_trips.unwatched_hop(lab.clock.calibration()));
    received.check_counts(&mut run, rows.len() as u64);
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_bus::{Message, PublisherState, ReceiveError};

    /// Numbers of the planted answers; `None` is a reconnect.
    struct Planted(Vec<Option<u64>>);

    impl Subscriber for Planted {
        fn poll(
            &mut self,
            _limit: usize,
            handler: &mut dyn FnMut(SubscriptionEvent<'_>),
        ) -> Result<usize, ReceiveError> {
            match self.0.remove(0) {
                Some(number) => {
                    let payload = [[0; 8], number.to_le_bytes()].concat();
                    let message = Message { sequence: None, stamp: 0, kind: KIND, payload: &payload, id: None };
                    handler(SubscriptionEvent::Message(message));
                }
                None => handler(SubscriptionEvent::Gap(Loss::Reconnected)),
            }
            Ok(1)
        }

        fn wait(&mut self, _timeout_ns: u64) {}

        fn enable_bridge_mode(&mut self) {}

        fn publisher_state(&self) -> PublisherState {
            PublisherState::Unknown
        }

        fn reconnects(&self) -> Option<u64> {
            Some(1)
        }
    }

    #[test]
    fn duplicate_answers_invalidate_a_run_and_reconnects_are_noted() {
        let clock = HostClock::get().expect("the host has a clock");
        let mut from = Planted(vec![Some(0), Some(0), Some(1), None, Some(1), Some(2)]);
        let mut tracker = SequenceTracker::default();
        for number in 0..3 {
            await_answer(&mut from, &mut tracker, number, 0, &clock).expect("it is answered");
        }
        let mut run = Run { valid: true, ..Run::default() };
        let received = SequenceTracker::received(&[tracker], 0);
        SubscriberResult { reconnects: from.reconnects(), ..received }.check_counts(&mut run, 3);
        assert_eq!((run.valid, run.counts.received, run.counts.duplicated), (false, 5, 2), "{run:?}");
        assert_eq!((run.counts.lost, run.figures.get("reconnects")), (0, Some(&1.0)), "{run:?}");
    }
}
