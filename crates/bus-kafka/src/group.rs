//! A puller's share of a queue: the partitions that its group has given it, and how far it has come in each.
//!
//! ```text
//!   offsets of a partition   │ done with │ handed over │ fetched │ …
//!                            0      committed     handed_over  fetched
//! ```
//! The place `committed` is kept by the server, with a note that says what the next puller of the partition must know:
//!
//! | note | who has the partition next marks as redelivered |
//! |---|---|
//! | none, and no place | nothing: nobody has ever pulled from it |
//! | a number | what lies below this offset: so far its last puller had come, which then gave it away in order |
//! | `open`, or anything else | all that was pushed before it got the partition: its last puller may have had it |
//!
//! `open` stands there before the first message of a partition is handed over.
//!
//! The offsets of a partition begin anew, or further down, where its end was lost or its topic was made anew. What
//! comes then is old where it lies below `handed_over` and below the end that the partition had when that was noticed,
//! and was made no later than what was handed over. All else is new.

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

/// With so many bytes that are fetched and not handed over, nothing more is fetched.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// Nobody removes a topic and makes it anew in so short a time: whoever has just looked does not look again.
const SURE: Duration = Duration::from_millis(5);

/// What a puller knows, and its consumer tells it.
pub(crate) struct Group {
    /// Why there is no server, should there be none.
    pub reasons: Reasons,
    cluster: Arc<Cluster>,
    /// The queue's topic, as it is called on the server.
    topic: String,
    delivery: Delivery,
    state: Mutex<Shares>,
    /// Until then the topic is surely the same.
    sure: Mutex<Option<Deadline>>,
    /// The puller has looked for the last time whether it is, and leaves.
    is_leaving: AtomicBool,
}

impl Group {
    /// A puller's that has no partition yet.
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

    /// How many records are fetched and not handed over.
    pub fn fetched(&self) -> usize {
        self.state().records.len()
    }

    /// So much is fetched and not handed over that nothing more is to be fetched.
    pub fn is_full(&self) -> bool {
        self.state().kept_bytes >= MOST_KEPT_BYTES
    }

    /// Keeps a record that has been fetched. Where it lies below what was fetched before, `end` is asked for the offset
    /// that comes next in its partition at the server.
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

    /// Whether a partition was found to begin anew, or further down; told once.
    pub fn take_cut(&self) -> bool {
        std::mem::take(&mut self.state().is_cut)
    }

    /// Whether the next pull has a loss to tell.
    pub fn has_loss(&self) -> bool {
        let state = self.state();
        state.is_cut || state.is_anew || state.unknown > 0 && self.delivery == Delivery::AtMostOnce
    }

    /// Whether the topic was found to be another one, and the puller has not begun anew yet.
    pub fn is_anew(&self) -> bool {
        self.state().is_anew
    }

    /// Of the member that takes this one's place then.
    pub fn anew(&self) -> Self {
        let group = Self::new(self.cluster.clone(), &self.topic, self.delivery);
        *group.state() = self.state().anew();
        group
    }

    /// Whether the queue's topic is still the one that this puller has its places of. Where it is not, all is forgotten
    /// that is known of it. Asked before each place that is told to the server: in a topic that was made anew it would
    /// pass over messages that nobody has had.
    ///
    /// Kafka's own id of a topic is not to be had here. But with a topic the server drops the places of its groups, and
    /// it drops none for another reason as long as the group has members. So where it keeps no place any more that it
    /// has told this puller, or acknowledged to it, the topic was removed, and one that is there is another one. That
    /// nobody who has places of the old one tells them to the server keeps this true for the next look.
    ///
    /// What is removed and made anew between the look and the place that it is for is not seen. That is a moment, but
    /// where the server is away and the client library sends the place again: then it lasts until the server refuses
    /// this member, as it does when that was silent for too long.
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

    /// The consumer is about to leave, and has just looked whether the topic is the same: it cannot ask any more.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// What the server must know before the next records, up to so many, are handed over.
    pub fn places_before(&self, limit: usize) -> Vec<Place> {
        self.state().places_before(limit, self.delivery)
    }

    /// What the server must know when all that was handed over is done with.
    pub fn places_done(&self) -> Vec<Place> {
        self.state().places_done()
    }

    /// The server knows these places now.
    pub fn committed(&self, places: &[Place]) {
        self.reasons.forget();
        self.state().committed(places);
    }

    /// These places were sent, and no answer came: the server may know them.
    pub fn unanswered(&self, places: &[Place]) {
        self.state().unanswered(places);
    }

    /// These places were sent, and their answer did not come in time: it is still to come.
    pub fn late(&self, places: &[Place]) {
        self.state().late(places);
    }

    /// That answer has come; true if all is well.
    pub fn came_late(&self, is_done: bool) {
        if is_done {
            self.reasons.forget();
        }
        self.state().came_late(is_done);
    }

    /// Of how many messages nobody knows whether the server counts them as done with.
    pub fn in_doubt(&self) -> u64 {
        self.state().in_doubt()
    }

    /// Of how many messages nobody knew that when they were given away; told once.
    pub fn take_unknown(&self) -> u64 {
        std::mem::take(&mut self.state().unknown)
    }

    /// The next records, up to so many, which are handed over now.
    pub fn hand_over(&self, limit: usize) -> Vec<Record> {
        self.state().hand_over(limit)
    }

    /// How many messages were handed over that can be acknowledged no more; told once.
    pub fn take_given_away(&self) -> u64 {
        std::mem::take(&mut self.state().given_away)
    }

    /// The group goes on without this puller, which is told so: it has nothing until it is given partitions again.
    pub fn give_up(&self) {
        self.state().give_up();
    }

    /// This puller's partitions, if so many messages are done with that they are to be freed.
    pub fn to_free(&self, least: u64) -> Option<TopicPartitionList> {
        let mut state = self.state();
        if state.done < least || state.by_partition.is_empty() {
            return None;
        }
        state.done = 0;
        Some(self.partitions(state.by_partition.keys().copied()))
    }

    /// Places as the client library wants them.
    pub fn list(&self, places: &[Place]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for place in places {
            let mut entry = list.add_partition(&self.topic, place.partition);
            entry.set_offset(Offset::Offset(place.offset)).expect("offsets are not negative");
            entry.set_metadata(&place.note);
        }
        list
    }

    /// Partitions as the client library wants them.
    fn partitions(&self, partitions: impl IntoIterator<Item = i32>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&self.topic, partition);
        }
        list
    }

    /// Takes partitions in. Where the server does not say what to mark in time, all is marked.
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

    /// The offset below which messages are marked.
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

    /// Gives partitions away, with a note for who gets them. Without it, that one marks more.
    fn revoked(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) {
        let partitions: Vec<i32> = partitions.elements().iter().map(|entry| entry.partition()).collect();
        let is_ours = self.delivery == Delivery::AtLeastOnce
            && !consumer.assignment_lost()
            && self.reasons.outage().is_none()
            && (self.is_leaving() || matches!(self.is_same_topic(consumer, &self.cluster.deadline()), Ok(true)));
        let places = self.state().give_away(&partitions);
        if is_ours && !places.is_empty() {
            // It leaves before the partitions do, over the same connection.
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

    /// One queue holds all: no other needs a look in between.
    fn main_queue_min_poll_interval(&self) -> Timeout {
        Timeout::Never
    }
}
