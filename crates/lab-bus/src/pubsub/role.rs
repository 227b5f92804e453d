//! What the two ends are told, and what they tell.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, Subscriber, TopicConfig};
use tickpath_harness::arrivals::Arrivals;
use tickpath_harness::rules::{refuse_disorder, refuse_loss, tell_reconnects};
use tickpath_harness::targets::is_log;
use tickpath_harness::{Lab, LabError, Thread};
use tickpath_result::{Counts, Run};

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
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Published {
    pub sent: u64,
    pub refused: u64,
    pub first: u64,
    pub last: u64,
    /// From the first message's intended time to the last one's.
    pub planned_ns: u64,
    pub late_share: f64,
    pub own_p99_ns: u32,
    /// How often its connection was lost and made again, where the client tells; as below.
    pub reconnects: Option<u64>,
    /// Why it sent no more than that, if it was to send more.
    #[serde(default)]
    pub broke_off: Option<String>,
}

/// What a publisher tells that connects for one message, in ticks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct First {
    pub go: u64,
    pub connected: u64,
    pub published: u64,
}

/// What the subscriber tells at its end.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Received {
    pub received: u64,
    pub reordered: u64,
    pub duplicated: u64,
    pub reconnects: Option<u64>,
    pub last: u64,
    /// How long it waited for its CPU while messages came, by the kernel's account; zero where that is not known, as of
    /// a client in another language.
    #[serde(default)]
    pub waited_ns: u64,
    /// Processor time of its process meanwhile, from when it was ready; zero where it is not told.
    #[serde(default)]
    pub cpu_ns: u64,
}

impl Received {
    /// Counts what came and was not handed over: what came twice, and what came late and had been told as missed.
    pub fn withheld(&mut self, topic: &dyn Subscriber) {
        let (duplicates, late) = (topic.duplicates().unwrap_or(0), topic.late().unwrap_or(0));
        self.received += duplicates + late;
        self.duplicated += duplicates;
        self.reordered += late;
    }

    /// What a run counts, of so many that were sent to each of so many readers.
    pub fn counts(&self, sent: u64, readers: u64) -> Counts {
        Counts {
            sent,
            received: self.received,
            lost: (sent * readers).saturating_sub(self.received - self.duplicated),
            duplicated: self.duplicated,
            reordered: self.reordered,
            ..Counts::default()
        }
    }

    /// Holds what came against what was sent to one reader, of which nothing may be lost.
    pub fn hold(&self, run: &mut Run, sent: u64) {
        run.counts = self.counts(sent, 1);
        tell_reconnects(run, "receiver", self.reconnects);
        refuse_disorder(run);
        refuse_loss(run);
    }
}

/// What the topic is called. On somebody's server a name says whose it is.
pub(super) fn topic_name(lab: &Lab<'_>, target: &str) -> String {
    match is_log(target) {
        true => format!("{}.pubsub", lab.name),
        false => format!("tickpath:{}:pubsub", lab.name),
    }
}

/// How a topic for messages of so many bytes is made.
pub(super) fn topic_config(policy: &str, size: usize) -> Result<TopicConfig, LabError> {
    let found = Policy::ALL.into_iter().find(|known| known.name() == policy);
    let policy = found.ok_or_else(|| LabError::Setting(format!("'{policy}' is no policy")))?;
    Ok(match policy {
        Policy::Keep => TopicConfig { capacity_bytes: 16 << 20, ..TopicConfig::new(policy) },
        // Several messages a segment, however long they are: at a segment's end a writer cannot be ready for the next.
        _ => TopicConfig { capacity_bytes: (1 << 20).max(64 * (size + 64)), ..TopicConfig::new(policy) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_doubled_or_swapped_makes_a_run_invalid_by_its_number() {
        let all = Received { received: 20, reconnects: Some(0), ..Received::default() };
        for (received, note) in [
            (Received { received: 17, ..all.clone() }, Some("3 of 20 messages were lost")),
            (Received { received: 22, duplicated: 2, ..all.clone() }, Some("2 of 20 messages came twice")),
            (Received { reordered: 1, ..all.clone() }, Some("1 of 20 messages came behind a later one")),
            // As many came as were sent.
            (Received { duplicated: 5, ..all.clone() }, Some("5 of 20 messages were lost")),
            (all.clone(), None),
        ] {
            let mut run = Run { valid: true, ..Run::default() };
            received.hold(&mut run, 20);
            assert_eq!(run.valid, note.is_none(), "{received:?}");
            assert!(note.is_none_or(|note| run.notes.iter().any(|told| told.contains(note))), "{:?}", run.notes);
        }
        let mut run = Run { valid: true, ..Run::default() };
        Received { reconnects: Some(2), ..all }.hold(&mut run, 20);
        assert!(run.valid && run.notes[0].contains("made again 2 times"), "{:?}", run.notes);
    }
}
