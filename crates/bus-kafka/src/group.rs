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
//! noticed, and is no newer than the records handed over. All others are new.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::BorrowedMessage;
use rdkafka::util::Timeout;
use rdkafka::{ClientContext, Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::Delivery;
use tickpath_clock::utc_ns;

use crate::cluster::Cluster;
use crate::deadline::Deadline;
use crate::reasons::Reasons;
use crate::record::{Fetched, Record};
use crate::share::{Kept, OPEN, Place, Share, Shares};

/// Size of the fetched records that are not handed over, in bytes, from which on fetching is paused.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// Time for which a check that the topic is the same stays valid: no client removes and recreates a topic so fast.
const SURE: Duration = Duration::from_millis(5);

/// State of a puller, updated by its consumer's callbacks.
pub(crate) struct Group {
    /// Reasons for an outage, if there is one.
    pub reasons: Reasons,
    cluster: Arc<Cluster>,
    /// Name of the queue's topic on the server.
    topic: String,
    delivery: Delivery,
    state: Mutex<Shares>,
    /// Time until which the last check of the topic is valid.
    sure: Mutex<Option<Deadline>>,
    /// The puller has made its last check of the topic, and leaves.
    is_leaving: AtomicBool,
}

impl Group {
    /// Creates the state of a puller without partitions.
    pub fn new(cluster: Arc<Cluster>, topic: &str, delivery: Delivery) -> Self {
        Self {
            reasons: Reasons::default(),
            cluster,
            topic: topic.to_owned(),
            delivery,
            state: Mutex::default(),
            sure: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Returns the number of records that are fetched and not handed over.
    pub fn fetched(&self) -> usize {
        self.state().records.len()
    }

    /// Returns whether fetching must pause, because enough records are buffered.
    pub fn is_full(&self) -> bool {
        self.state().kept_bytes >= MOST_KEPT_BYTES
    }

    /// Keeps a fetched record. If it lies below records fetched before, calls `end` for the partition's next offset at
    /// the server.
    pub fn keep(&self, message: &BorrowedMessage<'_>, end: impl FnOnce(i32) -> Option<i64>) {
        let record = Fetched {
            partition: message.partition(),
            offset: message.offset(),
            made_ms: message.timestamp().to_millis(),
            value: message.payload().unwrap_or_default(),
        };
        let is_below = !self.state().keep(record);
        if is_below {
            let end = end(record.partition);
            self.state().keep_below(record, end, self.delivery, (utc_ns() / 1_000_000) as i64);
        }
    }

    /// Returns, once, whether a partition was found to start over, or at a lower offset.
    pub fn take_cut(&self) -> bool {
        std::mem::take(&mut self.state().is_cut)
    }

    /// Returns whether the next pull has a loss to report.
    pub fn has_loss(&self) -> bool {
        let state = self.state();
        state.is_cut || state.is_anew || state.unknown > 0 && self.delivery == Delivery::AtMostOnce
    }

    /// Returns whether the topic was found to be recreated, and the puller has not rejoined yet.
    pub fn is_anew(&self) -> bool {
        self.state().is_anew
    }

    /// Returns the state for the member that replaces this one after the topic was recreated.
    pub fn anew(&self) -> Self {
        let group = Self::new(self.cluster.clone(), &self.topic, self.delivery);
        *group.state() = self.state().anew();
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
    pub fn is_same_topic(&self, consumer: &BaseConsumer<Self>, deadline: &Deadline) -> KafkaResult<bool> {
        if self.sure().is_some_and(|sure| !sure.is_over()) {
            return Ok(true);
        }
        let partitions = self.state().kept();
        if partitions.is_empty() {
            return Ok(true);
        }
        let sure = self.cluster.deadline_after(SURE);
        let found = consumer.committed_offsets(self.partitions(partitions), deadline.left())?;
        for place in found.elements() {
            place.error()?;
            if place.offset() == Offset::Invalid {
                self.state().forget_topic();
                return Ok(false);
            }
        }
        *self.sure() = Some(sure);
        Ok(true)
    }

    /// Marks that the consumer leaves, right after the topic check, because it cannot ask the server any more.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Returns the offsets to commit before the next records, at most `limit`, are handed over.
    pub fn places_before(&self, limit: usize) -> Vec<Place> {
        self.state().places_before(limit, self.delivery)
    }

    /// Returns the offsets to commit when all records handed over are done.
    pub fn places_done(&self) -> Vec<Place> {
        self.state().places_done()
    }

    /// Records that the server has committed these offsets.
    pub fn committed(&self, places: &[Place]) {
        self.reasons.forget();
        self.state().committed(places);
    }

    /// Records that these offsets were sent and not answered: the server may have committed them.
    pub fn unanswered(&self, places: &[Place]) {
        self.state().unanswered(places);
    }

    /// Records that these offsets were sent and their answer is overdue, but may still come.
    pub fn late(&self, places: &[Place]) {
        self.state().late(places);
    }

    /// Takes in the overdue answer; `is_done` if it was a success.
    pub fn came_late(&self, is_done: bool) {
        if is_done {
            self.reasons.forget();
        }
        self.state().came_late(is_done);
    }

    /// Returns the number of messages in doubt: the server may or may not count them as done.
    pub fn in_doubt(&self) -> u64 {
        self.state().in_doubt()
    }

    /// Returns, once, the number of messages that were in doubt when their partition was given away.
    pub fn take_unknown(&self) -> u64 {
        std::mem::take(&mut self.state().unknown)
    }

    /// Hands over the next records, at most `limit`.
    pub fn hand_over(&self, limit: usize) -> Vec<Record> {
        self.state().hand_over(limit)
    }

    /// Returns, once, the number of messages that were handed over and can no longer be acknowledged.
    pub fn take_given_away(&self) -> u64 {
        std::mem::take(&mut self.state().given_away)
    }

    /// Drops everything when the group has excluded this puller, until partitions are assigned again.
    pub fn give_up(&self) {
        self.state().give_up();
    }

    /// Returns this puller's partitions if at least `least` done messages still take disk, and resets their count.
    pub fn to_free(&self, least: u64) -> Option<TopicPartitionList> {
        let mut state = self.state();
        if state.done < least || state.by_partition.is_empty() {
            return None;
        }
        state.done = 0;
        Some(self.partitions(state.by_partition.keys().copied()))
    }

    /// Converts offsets and notes to the client library's list.
    pub fn list(&self, places: &[Place]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for place in places {
            let mut entry = list.add_partition(&self.topic, place.partition);
            entry.set_offset(Offset::Offset(place.offset)).expect("offsets are not negative");
            entry.set_metadata(&place.note);
        }
        list
    }

    /// Converts partitions to the client library's list.
    fn partitions(&self, partitions: impl IntoIterator<Item = i32>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&self.topic, partition);
        }
        list
    }

    /// Takes in assigned partitions. If the server does not return the notes in time, all messages are marked.
    fn assigned(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) {
        if partitions.count() == 0 {
            return;
        }
        let unknown = match self.delivery {
            Delivery::AtMostOnce => 0,
            Delivery::AtLeastOnce => i64::MAX,
        };
        let deadline = self.cluster.deadline();
        let kept = consumer.committed_offsets(partitions.clone(), deadline.left());
        let kept = kept.as_ref().ok();
        for entry in partitions.elements() {
            let partition = entry.partition();
            let kept = kept.and_then(|kept| kept.find_partition(&self.topic, partition));
            let share = match kept.filter(|kept| kept.error().is_ok()) {
                None => Share::at(0, unknown, Kept::Unknown),
                Some(kept) => match kept.offset() {
                    Offset::Offset(committed) => {
                        let redelivered = self.redelivered(consumer, partition, kept.metadata(), &deadline);
                        let kept = if kept.metadata() == OPEN { Kept::Open } else { Kept::Place };
                        Share::at(committed, redelivered, kept)
                    }
                    _ => Share::at(0, self.state().take_had(partition), Kept::Unknown),
                },
            };
            self.state().by_partition.insert(partition, share);
        }
    }

    /// Returns the offset below which messages are marked as redelivered.
    fn redelivered(&self, consumer: &BaseConsumer<Self>, partition: i32, note: &str, deadline: &Deadline) -> i64 {
        match (self.delivery, note.parse::<i64>()) {
            (Delivery::AtMostOnce, _) => 0,
            (Delivery::AtLeastOnce, Ok(below)) => below,
            (Delivery::AtLeastOnce, Err(_)) => {
                let marks = consumer.fetch_watermarks(&self.topic, partition, deadline.left());
                marks.map_or(i64::MAX, |(_low, high)| high)
            }
        }
    }

    /// Gives partitions away, with notes for their next pullers, which mark more messages without them.
    fn revoked(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) {
        let partitions: Vec<i32> = partitions.elements().iter().map(|entry| entry.partition()).collect();
        let is_ours = self.delivery == Delivery::AtLeastOnce
            && !consumer.assignment_lost()
            && self.reasons.outage().is_none()
            && (self.is_leaving() || matches!(self.is_same_topic(consumer, &self.cluster.deadline()), Ok(true)));
        let places = self.state().give_away(&partitions);
        if is_ours && !places.is_empty() {
            // The commit is sent before the partitions are given up, over the same connection.
            let _sent = consumer.commit(&self.list(&places), CommitMode::Async);
        }
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    fn sure(&self) -> MutexGuard<'_, Option<Deadline>> {
        self.sure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, Shares> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Group {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _line: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.reasons.note(&error, reason);
    }
}

impl ConsumerContext for Group {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => self.assigned(consumer, partitions),
            Rebalance::Revoke(partitions) => self.revoked(consumer, partitions),
            Rebalance::Error(_) => {}
        }
    }

    /// Disables the library's polling of other queues, because one queue holds all events.
    fn main_queue_min_poll_interval(&self) -> Timeout {
        Timeout::Never
    }
}
