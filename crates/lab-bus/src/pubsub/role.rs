//! Settings that the two ends receive, and the results that they report.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, Subscriber, TopicConfig};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::rules::{note_reconnects, refuse_loss, refuse_reordered};
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{Lab, LabError, ThreadConfig};
use tickpath_lab_result::{MessageCounts, Run};

/// The kind of a benchmark's messages.
pub(super) const KIND: u8 = 200;

/// Role of the publisher: publishes messages at intended times.
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
    /// The number of messages.
    pub count: u64,
    /// Messages a second; full speed if there is none.
    pub rate: Option<f64>,
    /// The distribution of the intended times.
    pub arrivals: ArrivalProcess,
    /// Messages that share a stamp.
    pub batch: usize,
    /// Whether the first message's time includes connecting; another process then makes the topic.
    pub cold: bool,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of its samples.
    pub out: PathBuf,
}

/// Role of the subscriber: receives the messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubscriberRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// The number of messages to wait for.
    pub count: u64,
    /// Whether each message is stamped, or only counted.
    pub stamps: bool,
    /// Subscriptions, read in turn.
    pub readers: usize,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of its samples.
    pub out: PathBuf,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct PublisherResult {
    pub sent: u64,
    pub refused: u64,
    pub first: u64,
    pub last: u64,
    /// The time from the first message's intended time to the last message's.
    pub planned_ns: u64,
    pub late_share: f64,
    pub own_p99_ns: u32,
    /// The number of reconnects, where the client reports it; likewise below.
    pub reconnects: Option<u64>,
    /// The reason for stopping early, if the publisher did.
    #[serde(default)]
    pub broke_off: Option<String>,
}

/// The result of a publisher that connects for one message, in ticks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ColdPublishResult {
    pub go: u64,
    pub connected: u64,
    pub published: u64,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct SubscriberResult {
    pub received: u64,
    pub reordered: u64,
    pub duplicated: u64,
    pub reconnects: Option<u64>,
    pub last: u64,
    /// Its wait for its CPU while messages arrived, by the kernel's account; zero where unknown, as for a client in
    /// another language.
    #[serde(default)]
    pub waited_ns: u64,
    /// CPU time of its process from the moment it was ready; zero where it is not reported.
    #[serde(default)]
    pub cpu_ns: u64,
}

impl SubscriberResult {
    /// Counts messages that arrived and were not delivered: duplicates, and late messages that had been reported as
    /// missed.
    pub fn count_withheld(&mut self, topic: &dyn Subscriber) {
        let (duplicates, late) = (topic.duplicates().unwrap_or(0), topic.out_of_order().unwrap_or(0));
        self.received += duplicates + late;
        self.duplicated += duplicates;
        self.reordered += late;
    }

    /// Returns the counts of a run in which each of `readers` was sent `sent` messages.
    pub fn counts(&self, sent: u64, readers: u64) -> MessageCounts {
        MessageCounts {
            sent,
            received: self.received,
            lost: (sent * readers).saturating_sub(self.received - self.duplicated),
            duplicated: self.duplicated,
            reordered: self.reordered,
            ..MessageCounts::default()
        }
    }

    /// Checks the received against the sent messages of one reader, which may lose none.
    pub fn check_counts(&self, run: &mut Run, sent: u64) {
        run.counts = self.counts(sent, 1);
        note_reconnects(run, "receiver", self.reconnects);
        refuse_reordered(run);
        refuse_loss(run);
    }
}

/// Returns the topic's name. On a shared server the prefix shows that it is ours.
pub(super) fn topic_name(lab: &Lab<'_>, target: &str) -> String {
    match is_log(target) {
        true => format!("{}.pubsub", lab.name),
        false => format!("tickpath:{}:pubsub", lab.name),
    }
}

/// Returns the configuration of a topic for messages of `size` bytes.
pub(super) fn topic_config(policy: &str, size: usize) -> Result<TopicConfig, LabError> {
    let found = Policy::ALL.into_iter().find(|known| known.name() == policy);
    let policy = found.ok_or_else(|| LabError::Setting(format!("'{policy}' is no policy")))?;
    Ok(match policy {
        Policy::Keep => TopicConfig { capacity_bytes: 16 << 20, ..TopicConfig::new(policy) },
        // Several messages a segment, whatever their length: at a segment's end a writer cannot prepare the next
        // message.
        _ => TopicConfig { capacity_bytes: (1 << 20).max(64 * (size + 64)), ..TopicConfig::new(policy) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_duplicate_and_reordered_messages_invalidate_a_run() {
        let all = SubscriberResult { received: 20, reconnects: Some(0), ..SubscriberResult::default() };
        for (received, note) in [
            (SubscriberResult { received: 17, ..all.clone() }, Some("3 of 20 messages were lost")),
            (SubscriberResult { received: 22, duplicated: 2, ..all.clone() }, Some("2 of 20 messages came twice")),
            (SubscriberResult { reordered: 1, ..all.clone() }, Some("1 of 20 messages came behind a later one")),
            // The number received equals the number sent.
            (SubscriberResult { duplicated: 5, ..all.clone() }, Some("5 of 20 messages were lost")),
            (all.clone(), None),
        ] {
            let mut run = Run { valid: true, ..Run::default() };
            received.check_counts(&mut run, 20);
            assert_eq!(run.valid, note.is_none(), "{received:?}");
            assert!(note.is_none_or(|note| run.notes.iter().any(|found| found.contains(note))), "{:?}", run.notes);
        }
        let mut run = Run { valid: true, ..Run::default() };
        SubscriberResult { reconnects: Some(2), ..all }.check_counts(&mut run, 20);
        assert!(run.valid && run.notes[0].contains("made again 2 times"), "{:?}", run.notes);
    }
}
