//! Settings of `pubsub`, and the rules that refuse impossible ones.

use std::rc::Rc;

use tickpath_bus::{Policy, connect};
use tickpath_clock::{Priority, Wait};

use super::client::ForeignClient;
use super::role::{PublisherRole, SubscriberRole};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::{Lab, LabError, ThreadConfig};
use tickpath_lab_result::{Run, RunPhase};

/// Min payload: the send time and the number.
const MIN_PAYLOAD_BYTES: usize = 16;

/// Settings of `pubsub`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The transport's URL.
    pub target: String,
    /// The client in another language at both ends; our own bus if there is none.
    pub foreign: Option<Rc<dyn ForeignClient>>,
    /// Bytes of a message.
    pub size: usize,
    /// Messages a second; full speed if there is none.
    pub rate: Option<f64>,
    /// The distribution of the intended times.
    pub arrivals: ArrivalProcess,
    /// The number of messages.
    pub count: u64,
    /// Messages that share a stamp.
    pub batch: usize,
    /// The behaviour of a full topic; the transport's usual policy if there is none.
    pub policy: Option<Policy>,
    /// Whether each message is the first after an idle period, or part of a stream.
    pub phase: RunPhase,
    /// Subscriptions; they take turns on the receiver's CPU.
    pub readers: usize,
    /// The subscriber's wait mode.
    pub wait: Wait,
    /// The publisher's wait mode before the next message's time; the subscriber's if there is none.
    pub pace: Option<Wait>,
    /// The generator's and the receiver's CPU.
    pub cpus: [usize; 2],
    /// The priority of both processes.
    pub priority: Priority,
    /// The number of this repetition.
    pub repeat: u32,
    /// Whether the test stalls the target at times: a publisher that waits for it then cannot keep the rate.
    pub is_stalled: bool,
}

impl Settings {
    /// Returns defaults without any message yet: 64 bytes at full speed to one subscriber, which sleeps between
    /// messages.
    pub fn new(target: &str, cpus: [usize; 2]) -> Self {
        Self {
            target: target.to_owned(),
            foreign: None,
            size: 64,
            rate: None,
            arrivals: ArrivalProcess::Steady,
            count: 0,
            batch: 1,
            policy: None,
            phase: RunPhase::Steady,
            readers: 1,
            wait: Wait::Block,
            pace: None,
            cpus,
            priority: Priority::Normal,
            repeat: 1,
            is_stalled: false,
        }
    }

    /// Returns the name of both ends' client.
    pub fn client(&self) -> &'static str {
        self.foreign.as_ref().map_or("rust", |client| client.name())
    }
}

/// Returns the policy of the settings or the transport's usual one; at full speed, where possible, the policy that
/// reports a slow subscriber to the publisher.
pub(super) fn policy(settings: &Settings) -> Result<Policy, LabError> {
    if let Some(policy) = settings.policy {
        return Ok(policy);
    }
    let policies = connect(&settings.target)?.capabilities().policies;
    let fails_when_full = policies.contains(&Policy::Fail) && settings.rate.is_none();
    Ok(if fails_when_full { Policy::Fail } else { policies[0] })
}

/// Refuses impossible settings, and any other client in a phase that only our own bus has.
pub(super) fn check(settings: &Settings, own_phase: Option<&str>) -> Result<(), LabError> {
    let wrong = |what: String| Err(LabError::Setting(what));
    if settings.size < MIN_PAYLOAD_BYTES || settings.size > 16 << 20 {
        return wrong(format!(
            "a size of {} bytes is not possible; use {MIN_PAYLOAD_BYTES} to 16777216",
            settings.size
        ));
    }
    if settings.count == 0 || settings.batch == 0 || settings.readers == 0 || settings.readers > 256 {
        return wrong("counts, batches and readers start at 1; readers end at 256".to_owned());
    }
    if settings.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
        return wrong("--rate takes a number above 0, up to 100000000, or max".to_owned());
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait.spins() {
        return wrong(format!(
            "publisher and subscriber would both spin on CPU {}; name two with --cpus, or use --wait yield or block",
            settings.cpus[0]
        ));
    }
    let usual = settings.readers == 1
        && (settings.wait == Wait::Block
            || settings.foreign.as_ref().is_some_and(|client| client.supports_wait_modes()))
        && settings.priority == Priority::Normal
        && settings.arrivals == ArrivalProcess::Steady;
    match (&settings.foreign, own_phase) {
        (Some(client), Some(phase)) => wrong(format!("--client {} has no {phase} phase; leave it out", client.name())),
        (Some(client), None) if !usual => {
            let (how, wait) =
                if client.supports_wait_modes() { ("", "") } else { (", which waits as its library does", ", --wait") };
            wrong(format!(
                "--client {}: one subscription{how}, at equal distances; leave --readers{wait}, --priority and \
                 --arrivals out",
                client.name()
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the roles of both ends, once the policy is resolved.
pub(super) fn roles(
    lab: &Lab<'_>,
    settings: &Settings,
    topic: &str,
    received: &str,
) -> (PublisherRole, SubscriberRole) {
    let Settings { target, size, rate, arrivals, count, batch, policy, readers, wait, pace, cpus, priority, .. } =
        settings.clone();
    // Readers that share the publisher's core need it to yield. An adaptive subscriber is compared with a spinning one:
    // both get the same publisher.
    let pace = pace.unwrap_or(match (wait, cpus[0] == cpus[1]) {
        (Wait::Busy | Wait::Adaptive, true) => Wait::Yield,
        (Wait::Busy | Wait::Adaptive, false) => Wait::Busy,
        _ => wait,
    });
    let publisher = PublisherRole {
        target: target.clone(),
        topic: topic.to_owned(),
        policy: policy.expect("resolved").to_string(),
        size,
        count,
        rate,
        arrivals,
        batch,
        cold: false,
        thread: ThreadConfig::new(cpus[0], pace, priority).with_warm_up(lab.runs_warm_up),
        out: lab.folder().join("publisher"),
    };
    let subscriber = SubscriberRole {
        target,
        topic: received.to_owned(),
        count,
        stamps: rate.is_some(),
        readers,
        thread: ThreadConfig::new(cpus[1], wait, priority).with_warm_up(lab.runs_warm_up),
        out: lab.folder().join("subscriber"),
    };
    (publisher, subscriber)
}

pub(super) fn run_of_settings(lab: &Lab<'_>, settings: &Settings) -> Run {
    let mut run = Run {
        target: settings.target.clone(),
        client: settings.client().to_owned(),
        software: lab.software(&settings.target),
        repeat: settings.repeat,
        phase: settings.phase,
        valid: true,
        ..Run::default()
    };
    settings.foreign.iter().for_each(|client| client.describe_client(&mut run));
    run.params.set("size_bytes", settings.size as u64);
    run.params.set("wait", settings.wait.name());
    if let Some(policy) = settings.policy {
        run.params.set("policy", policy.name());
    }
    if let (RunPhase::Idle, Some(rate)) = (settings.phase, settings.rate) {
        run.params.set("idle_ns", (1e9 / rate) as u64);
    }
    run.params.set("readers", settings.readers as u64);
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("count", settings.count);
    match settings.rate {
        Some(rate) => run.params.set("rate_per_s", rate),
        None => run.params.set("rate_per_s", "max"),
    }
    settings.arrivals.describe(&mut run.params);
    run
}
