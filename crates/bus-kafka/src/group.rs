//! A puller's share of a queue: the partitions that its group has assigned to it, and its progress in each.
//!
//! ```text
//!   offsets of a partition   │   done    │ handed over │ fetched │ …
//!                            0      committed     handed_over  fetched
//! ```
//! The server keeps the offset `committed`, with a note for the next puller of the partition:
//!
//! | note | messages that the next puller marks as redelivered |
//! |---|---|
//! | none, and no offset | none: no puller has ever pulled from the partition |
//! | a number | those below this offset, which the last puller had reached when it gave the partition away in order |
//! | `open`, or anything else | all pushed before it got the partition: the last puller may have had them |
//!
//! `open` is committed before the first message of a partition is handed over.
//!
//! The offsets of a partition start over, or at a lower one, where its end was lost or its topic was recreated. A
//! record after that is a duplicate if it lies below `handed_over`, and below the partition's end when the cut was
//! noticed, and is no newer than the records handed over. All others are new. Design: `docs/design/kafka-queues.md`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::BorrowedMessage;
use rdkafka::util::Timeout;
use rdkafka::{ClientContext, Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::DeliveryGuarantee;
use tickpath_clock::utc_ns;

use crate::cluster::Cluster;
use crate::deadline::CallDeadline;
use crate::partition_state::{NoteState, OPEN, PartitionState};
use crate::partitions::{Assignment, OffsetCommit};
use crate::reasons::OutageReasons;
use crate::record::FetchedRecord;

/// Size of the fetched records that are not handed over, in bytes, from which on fetching is paused.
const MAX_BUFFERED_BYTES: usize = 16 << 20;

/// Time for which a check that the topic is the same stays valid: no client removes and recreates a topic so fast.
const TOPIC_CHECK_VALIDITY: Duration = Duration::from_millis(5);

/// State of a puller, updated by its consumer's callbacks.
pub(crate) struct GroupMember {
    pub reasons: OutageReasons,
    cluster: Arc<Cluster>,
    topic: String,
    delivery: DeliveryGuarantee,
    state: Mutex<Assignment>,
    /// Time until which the last check of the topic is valid.
    topic_check: Mutex<Option<CallDeadline>>,
    /// The puller has made its last check of the topic, and leaves.
    is_leaving: AtomicBool,
}

impl GroupMember {
    /// Creates the state of a puller without partitions.
    pub fn new(cluster: Arc<Cluster>, topic: &str, delivery: DeliveryGuarantee) -> Self {
        Self {
            reasons: OutageReasons::default(),
            cluster,
            topic: topic.to_owned(),
            delivery,
            state: Mutex::default(),
            topic_check: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Returns the number of records that are fetched and not handed over.
    pub fn buffered_count(&self) -> usize {
        self.state().records.len()
    }

    /// Returns whether fetching must pause, because enough records are buffered.
    pub fn is_full(&self) -> bool {
        self.state().buffered_bytes >= MAX_BUFFERED_BYTES
    }

    /// Keeps a fetched record. If it lies below records fetched before, calls `end` for the partition's next offset at
    /// the server.
    pub fn buffer_record(&self, message: &BorrowedMessage<'_>, end: impl FnOnce(i32) -> Option<i64>) {
        let record = FetchedRecord {
            partition: message.partition(),
            offset: message.offset(),
            made_ms: message.timestamp().to_millis(),
            value: message.payload().unwrap_or_default(),
        };
        let is_below = !self.state().buffer(record);
        if is_below {
            let end = end(record.partition);
            self.state().buffer_rewound(record, end, self.delivery, (utc_ns() / 1_000_000) as i64);
        }
    }

    /// Returns whether the next pull has a loss to report.
    pub fn has_loss(&self) -> bool {
        let state = self.state();
        state.is_truncated || state.is_recreated || state.unknown > 0 && self.delivery == DeliveryGuarantee::AtMostOnce
    }

    /// Returns the state for the member that replaces this one after the topic was recreated.
    pub fn for_recreated_topic(&self) -> Self {
        let group = Self::new(self.cluster.clone(), &self.topic, self.delivery);
        *group.state() = self.state().for_recreated_topic();
        group
    }

    /// Returns whether the queue's topic is still the one that this puller's offsets belong to; if not, forgets all
    /// state. Checked before each commit: in a recreated topic a commit would skip messages that no puller has had.
    ///
    /// The client library does not offer Kafka's topic id. But the server drops a group's offsets with the topic, and
    /// for no other reason while the group has members. So a missing offset that this puller has committed, or read
    /// from the server, means that the topic was removed or recreated. As no puller commits offsets of the old topic,
    /// this stays true for the next check.
    ///
    /// A topic recreated between check and commit is not noticed. That is a moment, unless the server is away and the
    /// client library retries the commit: then it lasts until the server refuses this member as silent for too long.
    pub fn is_same_topic(&self, consumer: &BaseConsumer<Self>, deadline: &CallDeadline) -> KafkaResult<bool> {
        if self.topic_check().is_some_and(|sure| !sure.is_expired()) {
            return Ok(true);
        }
        let partitions = self.state().committed_partitions();
        if partitions.is_empty() {
            return Ok(true);
        }
        let sure = self.cluster.deadline_after(TOPIC_CHECK_VALIDITY);
        let found = consumer.committed_offsets(self.partition_list(partitions), deadline.remaining())?;
        for committed in found.elements() {
            committed.error()?;
            if committed.offset() == Offset::Invalid {
                self.state().clear_topic();
                return Ok(false);
            }
        }
        *self.topic_check() = Some(sure);
        Ok(true)
    }

    /// Marks that the consumer leaves, right after the topic check, because it cannot ask the server any more.
    pub fn start_leaving(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub fn note_committed(&self, offsets: &[OffsetCommit]) {
        self.reasons.clear();
        self.state().note_committed(offsets);
    }

    /// Takes in the overdue answer; `is_done` if it was a success.
    pub fn note_late_answer(&self, is_done: bool) {
        if is_done {
            self.reasons.clear();
        }
        self.state().note_late_answer(is_done);
    }

    /// Returns this puller's partitions if at least `least` done messages still take disk, and resets their count.
    pub fn deletable(&self, least: u64) -> Option<TopicPartitionList> {
        let mut state = self.state();
        if state.done < least || state.by_partition.is_empty() {
            return None;
        }
        state.done = 0;
        Some(self.partition_list(state.by_partition.keys().copied()))
    }

    /// Converts offsets and notes to the client library's list.
    pub fn offset_list(&self, offsets: &[OffsetCommit]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for committed in offsets {
            let mut entry = list.add_partition(&self.topic, committed.partition);
            entry.set_offset(Offset::Offset(committed.offset)).expect("offsets are not negative");
            entry.set_metadata(&committed.note);
        }
        list
    }

    /// Converts partitions to the client library's list.
    fn partition_list(&self, partitions: impl IntoIterator<Item = i32>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&self.topic, partition);
        }
        list
    }

    /// Takes in assigned partitions. If the server does not return the notes in time, all messages are marked.
    fn on_assigned(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) {
        if partitions.count() == 0 {
            return;
        }
        let unknown = match self.delivery {
            DeliveryGuarantee::AtMostOnce => 0,
            DeliveryGuarantee::AtLeastOnce => i64::MAX,
        };
        let deadline = self.cluster.deadline();
        let kept = consumer.committed_offsets(partitions.clone(), deadline.remaining());
        let kept = kept.as_ref().ok();
        for entry in partitions.elements() {
            let partition = entry.partition();
            let kept = kept.and_then(|kept| kept.find_partition(&self.topic, partition));
            let share = match kept.filter(|kept| kept.error().is_ok()) {
                None => PartitionState::at(0, unknown, NoteState::Unknown),
                Some(kept) => match kept.offset() {
                    Offset::Offset(committed) => {
                        let redelivered = self.redelivered(consumer, partition, kept.metadata(), &deadline);
                        let kept = if kept.metadata() == OPEN { NoteState::Open } else { NoteState::Previous };
                        PartitionState::at(committed, redelivered, kept)
                    }
                    _ => PartitionState::at(0, self.state().take_old_offset(partition), NoteState::Unknown),
                },
            };
            self.state().by_partition.insert(partition, share);
        }
    }

    /// Returns the offset below which messages are marked as redelivered.
    fn redelivered(&self, consumer: &BaseConsumer<Self>, partition: i32, note: &str, deadline: &CallDeadline) -> i64 {
        match (self.delivery, note.parse::<i64>()) {
            (DeliveryGuarantee::AtMostOnce, _) => 0,
            (DeliveryGuarantee::AtLeastOnce, Ok(below)) => below,
            (DeliveryGuarantee::AtLeastOnce, Err(_)) => {
                let marks = consumer.fetch_watermarks(&self.topic, partition, deadline.remaining());
                marks.map_or(i64::MAX, |(_low, high)| high)
            }
        }
    }

    /// Gives partitions away, with notes for their next pullers, which mark more messages without them.
    fn on_revoked(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) {
        let partitions: Vec<i32> = partitions.elements().iter().map(|entry| entry.partition()).collect();
        let may_commit = self.delivery == DeliveryGuarantee::AtLeastOnce
            && !consumer.assignment_lost()
            && self.reasons.outage().is_none()
            && (self.is_leaving() || matches!(self.is_same_topic(consumer, &self.cluster.deadline()), Ok(true)));
        let offsets = self.state().revoke(&partitions);
        if may_commit && !offsets.is_empty() {
            // The commit is sent before the partitions are given up, over the same connection.
            let _sent = consumer.commit(&self.offset_list(&offsets), CommitMode::Async);
        }
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    fn topic_check(&self) -> MutexGuard<'_, Option<CallDeadline>> {
        self.topic_check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state, which the consumer's callbacks lock, too.
    pub fn state(&self) -> MutexGuard<'_, Assignment> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for GroupMember {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _line: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.reasons.note(&error, reason);
    }
}

impl ConsumerContext for GroupMember {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => self.on_assigned(consumer, partitions),
            Rebalance::Revoke(partitions) => self.on_revoked(consumer, partitions),
            Rebalance::Error(_) => {}
        }
    }

    /// Disables the library's polling of other queues, because one queue holds all events.
    fn main_queue_min_poll_interval(&self) -> Timeout {
        Timeout::Never
    }
}
