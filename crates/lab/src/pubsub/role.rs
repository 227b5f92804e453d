//! What the two ends are told, and what they tell.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, TopicConfig};
use tickpath_harness::arrivals::Arrivals;
use tickpath_harness::targets::is_log;
use tickpath_harness::{Lab, LabError, Thread};

/// The kind of a benchmark's messages.
pub(super) const KIND: u8 = 200;

/// Publishes messages at intended times.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublisherRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// `overwrite`, `fail` or `keep`.
    pub policy: String,
    /// Bytes of a message.
    pub size: usize,
    /// Messages.
    pub count: u64,
    /// Messages a second; as fast as it goes if there is none.
    pub rate: Option<f64>,
    /// How their intended times lie.
    pub arrivals: Arrivals,
    /// Messages that share a stamp.
    pub batch: usize,
    /// Whether connecting is a part of the first message's time, and the topic somebody else's to make.
    pub cold: bool,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// Receives them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubscriberRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// Messages to wait for.
    pub count: u64,
    /// Whether each message is stamped, or only counted.
    pub stamps: bool,
    /// Subscriptions, read in turn.
    pub readers: usize,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// What the publisher tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Published {
    pub sent: u64,
    pub refused: u64,
    pub first: u64,
    pub last: u64,
    /// From the first message's intended time to the last one's.
    pub planned_ns: u64,
    pub late_share: f64,
    pub own_p99_ns: u32,
}

/// What a publisher tells that connects for one message, in ticks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct First {
    pub go: u64,
    pub connected: u64,
    pub published: u64,
}

/// What the subscriber tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Received {
    pub received: u64,
    pub reordered: u64,
    pub duplicated: u64,
    pub reconnects: u64,
    pub last: u64,
}

/// What the topic is called. On somebody's server a name says whose it is.
pub(super) fn topic_name(lab: &Lab<'_>, target: &str) -> String {
    match is_log(target) {
        true => format!("{}.pubsub", lab.name),
        false => format!("tickpath:{}:pubsub", lab.name),
    }
}

/// How the topic is made.
pub(super) fn topic_config(role: &PublisherRole) -> Result<TopicConfig, LabError> {
    let policy = Policy::ALL.into_iter().find(|p| p.name() == role.policy);
    let policy = policy.ok_or_else(|| LabError::Setting(format!("'{}' is no policy", role.policy)))?;
    Ok(match policy {
        Policy::Keep => TopicConfig { capacity_bytes: 16 << 20, ..TopicConfig::new(policy) },
        // A ring holds at least sixteen messages, however long they are.
        _ => TopicConfig { capacity_bytes: (1 << 20).max(16 * (role.size + 64)), ..TopicConfig::new(policy) },
    })
}
