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
//! comes then below `fetched` is new if it was made after all that was seen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::util::Timeout;
use rdkafka::{ClientContext, Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::Delivery;
use tickpath_clock::utc_ns;

use crate::cluster::Cluster;
use crate::deadline::Deadline;
use crate::reasons::Reasons;

/// The note while somebody pulls.
const OPEN: &str = "open";

/// With so many bytes that are fetched and not handed over, nothing more is fetched.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// What a puller knows, and its consumer tells it.
pub(crate) struct Group {
    /// Why there is no server, should there be none.
    pub reasons: Reasons,
    cluster: Arc<Cluster>,
    /// The queue's topic, as it is called on the server.
    topic: String,
    delivery: Delivery,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By partition.
    shares: BTreeMap<i32, Share>,
    /// Fetched, and not handed over yet.
    records: VecDeque<Record>,
    /// What these take.
    kept_bytes: usize,
    /// Messages that are done with and still take disk.
    done: u64,
    /// Messages that were handed over and not acknowledged when their partition was given away; not told yet.
    given_away: u64,
    /// A partition begins anew, or further down; not told yet.
    is_cut: bool,
}

/// A message as it was fetched.
#[derive(Debug, Clone, Copy)]
struct Fetched<'a> {
    partition: i32,
    offset: i64,
    /// When it was made, if that is known; UTC, in milliseconds.
    made_ms: Option<i64>,
    value: &'a [u8],
}

/// A message as it lies in its partition.
pub(crate) struct Record {
    partition: i32,
    offset: i64,
    /// Its bytes.
    pub value: Vec<u8>,
    /// Another puller may have had it.
    pub redelivered: bool,
}

/// How far this puller has come in a partition. Each is the offset that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    committed: i64,
    handed_over: i64,
    fetched: i64,
    /// What lies below may have been handed over by another puller.
    redelivered: i64,
    /// When the newest record was made that was fetched.
    newest_ms: Option<i64>,
    /// What is no newer was in the partition before it was cut, and is no message any more.
    old_ms: Option<i64>,
    /// The note `open` stands at the server.
    is_open: bool,
}

/// A place in a partition that the server is to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    partition: i32,
    offset: i64,
    note: String,
}

impl Group {
    /// A puller's that has no partition yet.
    pub fn new(cluster: Arc<Cluster>, topic: &str, delivery: Delivery) -> Self {
        let (reasons, state) = (Reasons::default(), Mutex::default());
        Self { reasons, cluster, topic: topic.to_owned(), delivery, state }
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

    /// Whether that is to be told.
    pub fn is_cut(&self) -> bool {
        self.state().is_cut
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
        let mut state = self.state();
        let all: Vec<i32> = state.shares.keys().copied().collect();
        state.give_away(&all);
        state.given_away = 0;
    }

    /// Where this puller's partitions can be freed up to, if so many messages are done with.
    pub fn to_free(&self, least: u64) -> Option<TopicPartitionList> {
        let mut state = self.state();
        if state.done < least || state.shares.is_empty() {
            return None;
        }
        state.done = 0;
        let place =
            |(&partition, share): (&i32, &Share)| (self.topic.clone(), partition, Offset::Offset(share.committed));
        Some(state.shares.iter().map(place).collect())
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
                None => Share::at(0, unknown, false),
                Some(kept) => match kept.offset() {
                    Offset::Offset(committed) => {
                        let redelivered = self.redelivered(consumer, partition, kept.metadata(), &deadline);
                        Share::at(committed, redelivered, kept.metadata() == OPEN)
                    }
                    _ => Share::at(0, 0, false),
                },
            };
            self.state().shares.insert(partition, share);
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
        let places = self.state().give_away(&partitions);
        let is_ours = !consumer.assignment_lost() && self.reasons.outage().is_none();
        if self.delivery == Delivery::AtLeastOnce && is_ours && !places.is_empty() {
            // It leaves before the partitions do, over the same connection.
            let _sent = consumer.commit(&self.list(&places), CommitMode::Async);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
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

impl State {
    /// Keeps a record, but for what is not of our partitions any more. False if it lies below what was fetched before.
    fn keep(&mut self, record: Fetched<'_>) -> bool {
        let Some(share) = self.shares.get_mut(&record.partition) else { return true };
        if record.offset < share.fetched {
            return false;
        }
        let is_old = record.made_ms.zip(share.old_ms).is_some_and(|(made_ms, old_ms)| made_ms <= old_ms);
        let next = record.offset + 1;
        if share.fetched == share.committed {
            // What lies between is not there any more.
            let done = if is_old { next } else { record.offset };
            (share.committed, share.handed_over) = (done, done);
        }
        share.fetched = next;
        if !is_old {
            share.newest_ms = share.newest_ms.max(record.made_ms);
            let redelivered = record.offset < share.redelivered;
            let Fetched { partition, offset, value, .. } = record;
            let record = Record { partition, offset, value: value.to_vec(), redelivered };
            self.kept_bytes += record.bytes();
            self.records.push_back(record);
        }
        true
    }

    /// Keeps a record that lies below what was fetched before, if the partition begins anew there; then what was
    /// fetched of it is gone. Else it is one that the client library brings twice around a rebalance, and dropped.
    fn keep_below(&mut self, record: Fetched<'_>, end: Option<i64>, delivery: Delivery, now_ms: i64) {
        let Some(share) = self.shares.get(&record.partition).copied() else { return };
        let is_newer = match share.newest_ms {
            Some(newest_ms) => record.made_ms.is_some_and(|made_ms| made_ms > newest_ms),
            // Nothing came before that could come twice.
            None => true,
        };
        if !is_newer && end.is_none_or(|end| end >= share.fetched) {
            return;
        }
        let (old_ms, redelivered) = match (share.newest_ms, delivery) {
            // Of who makes records in the future, the present is all that can be believed.
            (Some(newest_ms), _) => (Some(newest_ms.min(now_ms)), 0),
            (None, Delivery::AtMostOnce) => (Some(now_ms), 0),
            (None, Delivery::AtLeastOnce) => (None, end.unwrap_or(i64::MAX)),
        };
        let anew = Share { newest_ms: share.newest_ms, old_ms, ..Share::at(record.offset, redelivered, false) };
        self.shares.insert(record.partition, anew);
        self.forget(&[record.partition]);
        self.is_cut = true;
        self.keep(record);
    }

    /// Drops what is fetched of partitions.
    fn forget(&mut self, partitions: &[i32]) {
        self.records.retain(|record| !partitions.contains(&record.partition));
        self.kept_bytes = self.records.iter().map(Record::bytes).sum();
    }

    fn places_before(&self, limit: usize, delivery: Delivery) -> Vec<Place> {
        let next = self.records.iter().take(limit);
        let mut places = BTreeMap::new();
        for record in next {
            let Some(share) = self.shares.get(&record.partition) else { continue };
            match delivery {
                Delivery::AtMostOnce => places.insert(record.partition, record.offset + 1),
                Delivery::AtLeastOnce if share.is_open => None,
                Delivery::AtLeastOnce => places.insert(record.partition, share.committed),
            };
        }
        places.into_iter().map(|(partition, offset)| Place { partition, offset, note: OPEN.to_owned() }).collect()
    }

    fn places_done(&self) -> Vec<Place> {
        let handed_over = self.shares.iter().filter(|(_, share)| share.committed < share.handed_over);
        handed_over
            .map(|(&partition, share)| Place { partition, offset: share.handed_over, note: OPEN.to_owned() })
            .collect()
    }

    fn committed(&mut self, places: &[Place]) {
        for place in places {
            let Some(share) = self.shares.get_mut(&place.partition) else { continue };
            self.done += (place.offset - share.committed).max(0) as u64;
            share.committed = place.offset;
            share.is_open = true;
        }
    }

    fn hand_over(&mut self, limit: usize) -> Vec<Record> {
        let count = limit.min(self.records.len());
        let records: Vec<Record> = self.records.drain(..count).collect();
        self.kept_bytes -= records.iter().map(Record::bytes).sum::<usize>();
        for record in &records {
            if let Some(share) = self.shares.get_mut(&record.partition) {
                share.handed_over = record.offset + 1;
            }
        }
        records
    }

    /// Forgets partitions; gives what their next puller must know.
    fn give_away(&mut self, partitions: &[i32]) -> Vec<Place> {
        self.forget(partitions);
        let mut places = Vec::new();
        for &partition in partitions {
            let Some(share) = self.shares.remove(&partition) else { continue };
            self.given_away += (share.handed_over - share.committed).max(0) as u64;
            if share.is_open {
                places.push(Place { partition, offset: share.committed, note: share.note() });
            }
        }
        places
    }
}

impl Record {
    /// What it takes, about.
    fn bytes(&self) -> usize {
        self.value.len() + size_of::<Self>()
    }
}

impl Share {
    fn at(offset: i64, redelivered: i64, is_open: bool) -> Self {
        Self {
            committed: offset,
            handed_over: offset,
            fetched: offset,
            redelivered,
            newest_ms: None,
            old_ms: None,
            is_open,
        }
    }

    fn note(&self) -> String {
        match self.redelivered.max(self.handed_over) {
            i64::MAX => OPEN.to_owned(),
            below => below.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = usize::MAX;

    /// A puller that has one partition, which begins at this offset.
    fn state(offset: i64, redelivered: i64) -> State {
        let shares = BTreeMap::from([(3, Share::at(offset, redelivered, false))]);
        State { shares, ..State::default() }
    }

    /// Records that were made one after the other, of a partition that has not been cut.
    fn fetch(state: &mut State, offsets: impl IntoIterator<Item = i64>) {
        offsets.into_iter().for_each(|offset| fetch_one(state, offset, offset, i64::MAX, Delivery::AtLeastOnce));
    }

    fn fetch_one(state: &mut State, offset: i64, made_ms: i64, end: i64, delivery: Delivery) {
        let record = Fetched { partition: 3, offset, made_ms: Some(made_ms), value: b"value" };
        if !state.keep(record) {
            state.keep_below(record, Some(end), delivery, 1_000);
        }
    }

    fn handed_over(state: &mut State, limit: usize) -> Vec<(i64, bool)> {
        state.hand_over(limit).into_iter().map(|record| (record.offset, record.redelivered)).collect()
    }

    fn place(offset: i64, note: &str) -> Vec<Place> {
        vec![Place { partition: 3, offset, note: note.to_owned() }]
    }

    #[test]
    fn at_least_once_the_server_learns_of_a_puller_before_its_first_message() {
        let mut state = state(5, 7);
        fetch(&mut state, 5..15);
        assert_eq!(state.places_before(ALL, Delivery::AtLeastOnce), place(5, OPEN));
        state.committed(&place(5, OPEN));
        assert!(state.places_before(ALL, Delivery::AtLeastOnce).is_empty());
        assert_eq!(handed_over(&mut state, 4), [(5, true), (6, true), (7, false), (8, false)]);
        assert_eq!(state.places_done(), place(9, OPEN));
        state.committed(&place(9, OPEN));
        assert_eq!((state.places_done(), state.done), (Vec::new(), 4));
        assert_eq!(handed_over(&mut state, 1), [(9, false)]);
        assert_eq!(state.give_away(&[3]), place(9, "10"));
        assert!(state.records.is_empty() && state.places_done().is_empty());
    }

    #[test]
    fn what_is_given_away_before_it_is_acknowledged_is_counted_once() {
        let mut state = state(5, 0);
        fetch(&mut state, 5..15);
        state.committed(&place(5, OPEN));
        state.hand_over(7);
        state.committed(&place(8, OPEN));
        state.give_away(&[3]);
        assert_eq!(state.given_away, 4);
        state.give_away(&[3]);
        assert_eq!(state.given_away, 4);
    }

    #[test]
    fn at_most_once_the_server_learns_what_is_handed_over_next() {
        let mut state = state(0, 0);
        fetch(&mut state, 0..10);
        assert_eq!(state.places_before(4, Delivery::AtMostOnce), place(4, OPEN));
        state.committed(&place(4, OPEN));
        assert_eq!(handed_over(&mut state, 4).len(), 4);
        assert_eq!(state.places_before(ALL, Delivery::AtMostOnce), place(10, OPEN));
    }

    #[test]
    fn a_note_never_falls_below_what_earlier_pullers_may_have_had() {
        for (redelivered, note) in [(100, "100"), (0, "2"), (i64::MAX, OPEN)] {
            let mut state = state(0, redelivered);
            fetch(&mut state, 0..2);
            state.committed(&place(0, OPEN));
            state.hand_over(ALL);
            assert_eq!(state.give_away(&[3]), place(0, note));
        }
    }

    #[test]
    fn what_nobody_pulled_from_gets_no_note() {
        let mut state = state(0, 0);
        fetch(&mut state, 0..2);
        assert!(state.give_away(&[3, 4]).is_empty());
    }

    #[test]
    fn records_come_once_and_of_own_partitions_only() {
        let mut state = state(20, 0);
        assert!(state.keep(Fetched { partition: 4, offset: 0, made_ms: None, value: b"of another partition" }));
        fetch(&mut state, [22, 23, 22, 23, 24]);
        state.committed(&place(22, OPEN));
        assert_eq!(handed_over(&mut state, ALL), [(22, false), (23, false), (24, false)]);
        assert_eq!(state.places_done(), place(25, OPEN));
        fetch(&mut state, [24, 30]);
        assert_eq!(handed_over(&mut state, ALL), [(30, false)]);
        assert_eq!(state.places_done(), place(31, OPEN));
    }

    #[test]
    fn a_partition_that_was_cut_goes_on_with_what_is_new() {
        // The end is lost behind offset 8, and two were pushed since; or the topic was made anew, and has more by now.
        for (end, newer, then) in [(10, [(8, 500), (9, 501)], 8), (40, [(0, 500), (1, 501)], 0)] {
            let mut state = state(5, 7);
            fetch(&mut state, 5..15);
            state.committed(&place(5, OPEN));
            state.hand_over(6);
            state.committed(&place(11, OPEN));
            for offset in 0..then {
                fetch_one(&mut state, offset, offset, end, Delivery::AtLeastOnce);
            }
            for (offset, made_ms) in newer {
                fetch_one(&mut state, offset, made_ms, end, Delivery::AtLeastOnce);
            }
            assert!(std::mem::take(&mut state.is_cut), "{end}");
            // The lower place goes to the server first.
            assert_eq!(state.places_before(ALL, Delivery::AtLeastOnce), place(then, OPEN));
            state.committed(&place(then, OPEN));
            assert_eq!(handed_over(&mut state, ALL), newer.map(|(offset, _)| (offset, false)));
            assert_eq!(state.places_done(), place(then + 2, OPEN));
            fetch_one(&mut state, then + 2, 502, end, Delivery::AtLeastOnce);
            assert!(!state.is_cut && handed_over(&mut state, ALL) == [(then + 2, false)]);
        }
    }

    #[test]
    fn of_a_partition_that_was_cut_before_it_came_nothing_is_known() {
        for (delivery, came) in
            [(Delivery::AtLeastOnce, vec![(0, true), (1, true), (2, false)]), (Delivery::AtMostOnce, vec![(2, false)])]
        {
            let mut state = state(110, 0);
            for (offset, made_ms) in [(0, 999), (1, 1_000), (2, 1_001)] {
                fetch_one(&mut state, offset, made_ms, 2, delivery);
            }
            assert!(state.is_cut);
            assert_eq!(handed_over(&mut state, ALL), came);
        }
    }

    #[test]
    fn what_is_kept_is_counted_in_bytes() {
        let mut state = state(0, 0);
        let one = size_of::<Record>() + b"value".len();
        fetch(&mut state, 0..10);
        assert_eq!(state.kept_bytes, 10 * one);
        state.hand_over(4);
        assert_eq!(state.kept_bytes, 6 * one);
        state.give_away(&[3]);
        assert_eq!(state.kept_bytes, 0);
    }
}
