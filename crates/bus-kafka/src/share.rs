//! How far a puller has come in the partitions that its group has given it, and what it has fetched of them.

use std::collections::{BTreeMap, VecDeque};

use tickpath_bus_api::Delivery;

use crate::record::{Fetched, Record};

/// The note while somebody pulls.
pub(crate) const OPEN: &str = "open";

/// The partitions of one puller.
#[derive(Default)]
pub(crate) struct Shares {
    /// By partition.
    pub by_partition: BTreeMap<i32, Share>,
    /// Fetched, and not handed over yet.
    pub records: VecDeque<Record>,
    /// What these take.
    pub kept_bytes: usize,
    /// Messages that are done with and still take disk.
    pub done: u64,
    /// Messages that were handed over and not acknowledged when their partition was given away; not told yet.
    pub given_away: u64,
    /// Messages of which nobody knew whether the server counts them as done with, when their partition was given away;
    /// not told yet.
    pub unknown: u64,
    /// A partition begins anew, or further down; not told yet.
    pub is_cut: bool,
    /// The topic was found to be another one, and the puller has not begun anew yet.
    pub is_anew: bool,
    /// By partition: how far this puller had come in the topic that is not there any more, where it had not
    /// acknowledged all. That it is another one shows late: it may have had so much of the new one.
    had: BTreeMap<i32, i64>,
    /// Places that were sent to the server, and whose answer is still to come, but for those of partitions that were
    /// given away or cut since.
    late: Vec<Place>,
}

/// How far this puller has come in a partition. Each is the offset that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// The place that the server keeps.
    committed: i64,
    handed_over: i64,
    fetched: i64,
    /// What lies below may have been handed over by another puller.
    redelivered: i64,
    /// When the newest record was made that was fetched.
    newest_ms: Option<i64>,
    /// When the newest record was made that was handed over.
    newest_had_ms: Option<i64>,
    /// What was handed over before the partition was cut, if it was.
    old: Option<Old>,
    /// The highest place that was sent to the server since, and that no answer came for.
    unanswered: i64,
    kept: Kept,
}

/// What the server keeps of how far the group has come in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing that this puller knows of.
    Unknown,
    /// A place, with the note of who had the partition before.
    Place,
    /// A place, with the note `open`.
    Open,
}

/// Records that may be there once more behind a cut, and are no messages any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Old {
    /// They lie below this offset: what was not handed over before the cut, or was stored since, lies behind it.
    end: i64,
    /// They are no newer.
    made_ms: i64,
}

/// A place in a partition that the server is to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Of which partition.
    pub partition: i32,
    /// What comes next.
    pub offset: i64,
    /// For who has the partition next.
    pub note: String,
}

impl Shares {
    /// Keeps a record, but for what is not of our partitions any more. False if it lies below what was fetched before.
    pub fn keep(&mut self, record: Fetched<'_>) -> bool {
        let Some(share) = self.by_partition.get_mut(&record.partition) else { return true };
        if record.offset < share.fetched {
            return false;
        }
        let is_old = share.old.is_some_and(|old| old.holds(&record));
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
            let Fetched { partition, offset, made_ms, value } = record;
            let record = Record { partition, offset, made_ms, value: value.to_vec(), redelivered };
            self.kept_bytes += record.bytes();
            self.records.push_back(record);
        }
        true
    }

    /// Keeps a record that lies below what was fetched before, if the partition begins anew there; then what was
    /// fetched of it is gone. Else it is one that the client library brings twice around a rebalance, and dropped.
    pub fn keep_below(&mut self, record: Fetched<'_>, end: Option<i64>, delivery: Delivery, now_ms: i64) {
        let Some(share) = self.by_partition.get(&record.partition).copied() else { return };
        let is_newer = match share.newest_ms {
            Some(newest_ms) => record.made_ms.is_some_and(|made_ms| made_ms > newest_ms),
            // Nothing came before that could come twice.
            None => true,
        };
        if !is_newer && end.is_none_or(|end| end >= share.fetched) {
            return;
        }
        let marked = if is_newer { 0 } else { share.redelivered.min(end.unwrap_or(i64::MAX)) };
        let (old_ms, redelivered) = match (share.newest_had_ms, delivery) {
            // Of who makes records in the future, the present is all that can be believed.
            (Some(newest_had_ms), _) => (Some(newest_had_ms.min(now_ms)), marked),
            (None, Delivery::AtMostOnce) => (Some(now_ms), 0),
            (None, Delivery::AtLeastOnce) => (None, end.unwrap_or(i64::MAX)),
        };
        let old_end = end.unwrap_or(i64::MAX).min(share.handed_over);
        let anew = Share {
            newest_ms: share.newest_ms,
            newest_had_ms: share.newest_had_ms,
            old: old_ms.map(|made_ms| Old { end: old_end, made_ms }),
            ..Share::at(record.offset, redelivered, Kept::Unknown)
        };
        self.by_partition.insert(record.partition, anew);
        self.forget(&[record.partition]);
        self.is_cut = true;
        self.keep(record);
    }

    /// Drops what is fetched of partitions, and what an answer that is still to come would say of them.
    fn forget(&mut self, partitions: &[i32]) {
        self.late.retain(|place| !partitions.contains(&place.partition));
        self.records.retain(|record| !partitions.contains(&record.partition));
        self.kept_bytes = self.records.iter().map(Record::bytes).sum();
    }

    /// What the server must know before the next records, up to so many, are handed over.
    pub fn places_before(&self, limit: usize, delivery: Delivery) -> Vec<Place> {
        let next = self.records.iter().take(limit);
        let mut places = BTreeMap::new();
        for record in next {
            let Some(share) = self.by_partition.get(&record.partition) else { continue };
            match delivery {
                Delivery::AtMostOnce => places.insert(record.partition, record.offset + 1),
                Delivery::AtLeastOnce if share.kept == Kept::Open => None,
                Delivery::AtLeastOnce => places.insert(record.partition, share.committed),
            };
        }
        places.into_iter().map(|(partition, offset)| Place { partition, offset, note: OPEN.to_owned() }).collect()
    }

    /// What the server must know when all that was handed over is done with.
    pub fn places_done(&self) -> Vec<Place> {
        let handed_over = self.by_partition.iter().filter(|(_, share)| share.committed < share.handed_over);
        handed_over
            .map(|(&partition, share)| Place { partition, offset: share.handed_over, note: OPEN.to_owned() })
            .collect()
    }

    /// The server knows these places now.
    pub fn committed(&mut self, places: &[Place]) {
        for place in places {
            let Some(share) = self.by_partition.get_mut(&place.partition) else { continue };
            self.done += (place.offset - share.committed).max(0) as u64;
            share.committed = place.offset;
            share.unanswered = 0;
            share.kept = Kept::Open;
        }
    }

    /// These places were sent, and no answer came: the server may know them.
    pub fn unanswered(&mut self, places: &[Place]) {
        for place in places {
            let Some(share) = self.by_partition.get_mut(&place.partition) else { continue };
            share.unanswered = share.unanswered.max(place.offset);
        }
    }

    /// These places were sent, and their answer did not come in time: it is still to come.
    pub fn late(&mut self, places: &[Place]) {
        self.unanswered(places);
        self.late = places.to_vec();
    }

    /// That answer has come. Where it says that all is well, the server knows these places now. What lies before them
    /// and is not handed over stays in doubt all the same: at most once, it may never be.
    pub fn came_late(&mut self, is_done: bool) {
        let mut places = std::mem::take(&mut self.late);
        if is_done {
            let had = |partition: i32| self.by_partition.get(&partition).map_or(0, |share| share.handed_over);
            places.retain(|place| place.offset <= had(place.partition));
            self.committed(&places);
        }
    }

    /// Of how many messages nobody knows whether the server counts them as done with.
    pub fn in_doubt(&self) -> u64 {
        self.by_partition.values().map(Share::in_doubt).sum()
    }

    /// The next records, up to so many, which are handed over now.
    pub fn hand_over(&mut self, limit: usize) -> Vec<Record> {
        let count = limit.min(self.records.len());
        let records: Vec<Record> = self.records.drain(..count).collect();
        self.kept_bytes -= records.iter().map(Record::bytes).sum::<usize>();
        for record in &records {
            if let Some(share) = self.by_partition.get_mut(&record.partition) {
                share.handed_over = record.offset + 1;
                share.newest_had_ms = share.newest_had_ms.max(record.made_ms);
            }
        }
        records
    }

    /// Forgets partitions; gives what their next puller must know.
    pub fn give_away(&mut self, partitions: &[i32]) -> Vec<Place> {
        self.forget(partitions);
        let mut places = Vec::new();
        for &partition in partitions {
            let Some(share) = self.by_partition.remove(&partition) else { continue };
            let in_doubt = share.in_doubt();
            self.unknown += in_doubt;
            self.given_away += ((share.handed_over - share.committed).max(0) as u64).saturating_sub(in_doubt);
            if share.kept == Kept::Open {
                places.push(Place { partition, offset: share.committed, note: share.note() });
            }
        }
        places
    }

    /// The group goes on without this puller, which is told so: it has nothing until it is given partitions again.
    pub fn give_up(&mut self) {
        let all: Vec<i32> = self.by_partition.keys().copied().collect();
        self.give_away(&all);
        (self.given_away, self.unknown) = (0, 0);
    }

    /// The partitions of which the server keeps a place, as far as this puller knows.
    pub fn kept(&self) -> Vec<i32> {
        let kept = self.by_partition.iter().filter(|(_, share)| share.kept != Kept::Unknown);
        kept.map(|(&partition, _)| partition).collect()
    }

    /// The topic is another one: nothing that is known is of it.
    pub fn forget_topic(&mut self) {
        let held = self.by_partition.iter().filter(|(_, share)| share.committed < share.handed_over);
        self.had.extend(held.map(|(&partition, share)| (partition, share.handed_over)));
        self.give_up();
        self.is_anew = true;
    }

    /// What is known by who takes this one's place then.
    pub fn anew(&self) -> Self {
        Self { had: self.had.clone(), ..Self::default() }
    }

    /// The offset below which this puller may have had messages of a partition that nobody else had any of.
    pub fn take_had(&mut self, partition: i32) -> i64 {
        self.had.remove(&partition).unwrap_or(0)
    }
}

impl Share {
    /// Where the place at the server is this, and nothing is fetched yet.
    pub fn at(offset: i64, redelivered: i64, kept: Kept) -> Self {
        Self {
            committed: offset,
            handed_over: offset,
            fetched: offset,
            redelivered,
            newest_ms: None,
            newest_had_ms: None,
            old: None,
            unanswered: 0,
            kept,
        }
    }

    fn in_doubt(&self) -> u64 {
        (self.unanswered - self.committed).max(0) as u64
    }

    fn note(&self) -> String {
        match self.redelivered.max(self.handed_over) {
            i64::MAX => OPEN.to_owned(),
            below => below.to_string(),
        }
    }
}

impl Old {
    fn holds(&self, record: &Fetched<'_>) -> bool {
        record.offset < self.end && record.made_ms.is_some_and(|made_ms| made_ms <= self.made_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = usize::MAX;

    /// A puller that has one partition, which begins at this offset.
    fn state(offset: i64, redelivered: i64) -> Shares {
        let by_partition = BTreeMap::from([(3, Share::at(offset, redelivered, Kept::Unknown))]);
        Shares { by_partition, ..Shares::default() }
    }

    /// Records that were made one after the other, of a partition that has not been cut.
    fn fetch(state: &mut Shares, offsets: impl IntoIterator<Item = i64>) {
        offsets.into_iter().for_each(|offset| fetch_one(state, offset, offset, i64::MAX, Delivery::AtLeastOnce));
    }

    fn fetch_one(state: &mut Shares, offset: i64, made_ms: i64, end: i64, delivery: Delivery) {
        let record = Fetched { partition: 3, offset, made_ms: Some(made_ms), value: b"value" };
        if !state.keep(record) {
            state.keep_below(record, Some(end), delivery, 1_000);
        }
    }

    fn handed_over(state: &mut Shares, limit: usize) -> Vec<(i64, bool)> {
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
    fn what_the_server_may_know_of_is_in_doubt_until_it_answers() {
        let mut state = state(5, 0);
        fetch(&mut state, 5..15);
        let places = state.places_before(ALL, Delivery::AtLeastOnce);
        state.unanswered(&places);
        assert_eq!(state.in_doubt(), 0);
        state.committed(&place(5, OPEN));
        state.hand_over(7);
        let places = state.places_done();
        state.unanswered(&places);
        state.hand_over(ALL);
        assert_eq!(state.in_doubt(), 7);
        state.give_away(&[3]);
        assert_eq!((state.unknown, state.given_away, state.in_doubt()), (7, 3, 0));
    }

    #[test]
    fn a_late_answer_is_of_what_was_sent_and_of_nothing_else() {
        let pulled = || {
            let mut state = state(5, 0);
            fetch(&mut state, 5..15);
            state.committed(&place(5, OPEN));
            state.hand_over(4);
            state.late(&place(9, OPEN));
            state.hand_over(3);
            state
        };
        for (is_done, rest) in [(true, 0), (false, 4)] {
            let mut state = pulled();
            assert_eq!(state.in_doubt(), 4);
            state.came_late(is_done);
            assert_eq!((state.in_doubt(), state.places_done()), (rest, place(12, OPEN)));
            // Only once.
            state.committed(&place(12, OPEN));
            state.came_late(true);
            assert_eq!((state.done, state.places_done()), (7, Vec::new()));
        }
        // The partition went away, and came again.
        let mut state = pulled();
        state.give_away(&[3]);
        let anew = Share::at(2, 0, Kept::Unknown);
        state.by_partition.insert(3, anew);
        state.came_late(true);
        assert_eq!(state.by_partition[&3], anew);
    }

    #[test]
    fn at_most_once_a_late_answer_hands_nothing_over() {
        let mut state = state(0, 0);
        fetch(&mut state, 0..10);
        state.late(&state.places_before(4, Delivery::AtMostOnce));
        state.came_late(true);
        assert_eq!(state.in_doubt(), 4);
        state.give_away(&[3]);
        assert_eq!(state.unknown, 4);
    }

    #[test]
    fn at_most_once_what_may_be_gone_unseen_is_counted() {
        for (is_answered, unknown) in [(false, 4), (true, 0)] {
            let mut state = state(0, 0);
            fetch(&mut state, 0..10);
            state.committed(&place(2, OPEN));
            state.hand_over(2);
            let places = state.places_before(4, Delivery::AtMostOnce);
            state.unanswered(&places);
            if is_answered {
                state.committed(&places);
                state.hand_over(4);
            }
            state.give_away(&[3]);
            assert_eq!((state.unknown, state.given_away), (unknown, 0), "{is_answered}");
        }
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
    fn of_a_topic_that_was_removed_nothing_stays_but_how_far_it_was_held() {
        for (done, had) in [(5, 12), (12, 0)] {
            let mut state = state(5, 7);
            assert!(state.kept().is_empty(), "the server may keep nothing");
            fetch(&mut state, 5..15);
            state.committed(&place(5, OPEN));
            state.hand_over(7);
            state.committed(&place(done, OPEN));
            state.late(&place(12, OPEN));
            assert_eq!(state.kept(), [3]);
            state.forget_topic();
            assert!(state.is_anew && state.records.is_empty() && state.kept().is_empty());
            assert!(state.places_done().is_empty() && state.give_away(&[3]).is_empty());
            assert_eq!((state.given_away, state.unknown), (0, 0));
            // Not even by an answer to what was sent before.
            state.came_late(true);
            assert!(state.kept().is_empty());
            let mut anew = state.anew();
            assert_eq!((anew.is_anew, anew.take_had(3), anew.take_had(3)), (false, had, 0));
        }
    }

    #[test]
    fn what_was_fetched_and_not_handed_over_is_new_behind_a_cut() {
        // All were made in the same moment, or one after the other.
        let times: [fn(i64) -> i64; 2] = [|_| 7, |offset| offset];
        for made_ms in times {
            let mut state = state(0, 60);
            (0..100).for_each(|offset| fetch_one(&mut state, offset, made_ms(offset), i64::MAX, Delivery::AtLeastOnce));
            state.committed(&place(0, OPEN));
            state.hand_over(50);
            state.committed(&place(50, OPEN));
            // The end is lost behind offset 80, and one was pushed since by a host whose clock is behind.
            (0..80).for_each(|offset| fetch_one(&mut state, offset, made_ms(offset), 81, Delivery::AtLeastOnce));
            fetch_one(&mut state, 80, 3, 81, Delivery::AtLeastOnce);
            fetch_one(&mut state, 81, 4, 82, Delivery::AtLeastOnce);
            assert!(state.is_cut);
            assert_eq!(state.places_before(ALL, Delivery::AtLeastOnce), place(50, OPEN));
            state.committed(&place(50, OPEN));
            let expected: Vec<(i64, bool)> = (50..82).map(|offset| (offset, offset < 60)).collect();
            assert_eq!(handed_over(&mut state, ALL), expected);
            assert_eq!(state.places_done(), place(82, OPEN));
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
