//! The partitions that the group has assigned to a puller, and the records fetched from them.

use std::collections::{BTreeMap, VecDeque};

use tickpath_bus_api::DeliveryGuarantee;

use crate::partition_state::{NoteState, OPEN, PartitionState};
use crate::record::{BufferedRecord, FetchedRecord};

#[derive(Default)]
pub(crate) struct Assignment {
    pub by_partition: BTreeMap<i32, PartitionState>,
    /// Records fetched and not handed over yet.
    pub records: VecDeque<BufferedRecord>,
    /// Memory taken by `records`, in bytes.
    pub buffered_bytes: usize,
    /// Number of messages that are done and still take disk.
    pub done: u64,
    /// Number of messages that were handed over and not acknowledged when their partition was given away; not reported
    /// yet.
    pub revoked: u64,
    /// Number of messages that were in doubt (done or not) when their partition was given away; not reported yet.
    pub unknown: u64,
    /// A partition was found to start over, or at a lower offset; not reported yet.
    pub is_truncated: bool,
    /// The topic was found to be recreated, and the puller has not rejoined yet.
    pub is_recreated: bool,
    /// Offset by partition up to which this puller had read the removed topic, where it had not acknowledged
    /// everything. As the replacement is detected late, it may have had as much of the new topic.
    old_offsets: BTreeMap<i32, i64>,
    /// Commits whose answer is outstanding, without those of partitions that were given away or cut since.
    overdue: Vec<OffsetCommit>,
}

/// An offset of a partition for the server to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffsetCommit {
    pub partition: i32,
    pub offset: i64,
    /// Note for the partition's next puller.
    pub note: String,
}

impl Assignment {
    /// Keeps a record, unless its partition is not ours any more. Returns false if it lies below records fetched
    /// before.
    pub fn buffer(&mut self, record: FetchedRecord<'_>) -> bool {
        let Some(share) = self.by_partition.get_mut(&record.partition) else { return true };
        if share.is_rewound(&record) {
            return false;
        }
        if let Some(redelivered) = share.fetch(&record) {
            let FetchedRecord { partition, offset, made_ms, value } = record;
            let record = BufferedRecord { partition, offset, made_ms, value: value.to_vec(), redelivered };
            self.buffered_bytes += record.bytes();
            self.records.push_back(record);
        }
        true
    }

    /// Keeps a record below the ones fetched before, if the partition starts over there, which drops its fetched
    /// records. Otherwise the record is a duplicate from the client library around a rebalance, and is dropped.
    pub fn buffer_rewound(
        &mut self,
        record: FetchedRecord<'_>,
        end: Option<i64>,
        delivery: DeliveryGuarantee,
        now_ms: i64,
    ) {
        let Some(share) = self.by_partition.get_mut(&record.partition) else { return };
        let Some(restarted) = share.restarted(&record, end, delivery, now_ms) else { return };
        *share = restarted;
        self.drop_records(&[record.partition]);
        self.is_truncated = true;
        self.buffer(record);
    }

    /// Drops the fetched records of partitions, and their part of an outstanding commit answer.
    fn drop_records(&mut self, partitions: &[i32]) {
        self.overdue.retain(|commit| !partitions.contains(&commit.partition));
        self.records.retain(|record| !partitions.contains(&record.partition));
        self.buffered_bytes = self.records.iter().map(BufferedRecord::bytes).sum();
    }

    /// Returns the offsets to commit before the next records, at most `limit`, are handed over.
    pub fn offsets_before(&self, limit: usize, delivery: DeliveryGuarantee) -> Vec<OffsetCommit> {
        let next = self.records.iter().take(limit);
        let mut offsets = BTreeMap::new();
        for record in next {
            let Some(share) = self.by_partition.get(&record.partition) else { continue };
            match delivery {
                DeliveryGuarantee::AtMostOnce => offsets.insert(record.partition, record.offset + 1),
                DeliveryGuarantee::AtLeastOnce if share.note_state == NoteState::Open => None,
                DeliveryGuarantee::AtLeastOnce => offsets.insert(record.partition, share.committed),
            };
        }
        offsets
            .into_iter()
            .map(|(partition, offset)| OffsetCommit { partition, offset, note: OPEN.to_owned() })
            .collect()
    }

    /// Returns the offsets to commit when all records handed over are done.
    pub fn offsets_done(&self) -> Vec<OffsetCommit> {
        let handed_over = self.by_partition.iter().filter(|(_, share)| share.has_unacknowledged());
        handed_over
            .map(|(&partition, share)| OffsetCommit { partition, offset: share.handed_over, note: OPEN.to_owned() })
            .collect()
    }

    pub fn note_committed(&mut self, offsets: &[OffsetCommit]) {
        for commit in offsets {
            let Some(share) = self.by_partition.get_mut(&commit.partition) else { continue };
            self.done += share.commit(commit.offset);
        }
    }

    /// Records that these offsets were sent and not answered: the server may have committed them.
    pub fn note_unanswered(&mut self, offsets: &[OffsetCommit]) {
        for commit in offsets {
            let Some(share) = self.by_partition.get_mut(&commit.partition) else { continue };
            share.note_unanswered(commit.offset);
        }
    }

    /// Records that these offsets were sent and their answer is overdue, but may still come.
    pub fn note_overdue(&mut self, offsets: &[OffsetCommit]) {
        self.note_unanswered(offsets);
        self.overdue = offsets.to_vec();
    }

    /// Takes in the overdue answer; on success the offsets count as committed. Records before them that are not handed
    /// over stay in doubt all the same: at most once, they may never be.
    pub fn note_late_answer(&mut self, is_done: bool) {
        let mut offsets = std::mem::take(&mut self.overdue);
        if is_done {
            let had = |partition: i32| self.by_partition.get(&partition).map_or(0, |share| share.handed_over);
            offsets.retain(|commit| commit.offset <= had(commit.partition));
            self.note_committed(&offsets);
        }
    }

    /// Returns the number of messages in doubt: the server may or may not count them as done.
    pub fn in_doubt(&self) -> u64 {
        self.by_partition.values().map(PartitionState::in_doubt).sum()
    }

    /// Hands over the next records, at most `limit`.
    pub fn hand_over(&mut self, limit: usize) -> Vec<BufferedRecord> {
        let count = limit.min(self.records.len());
        let records: Vec<BufferedRecord> = self.records.drain(..count).collect();
        self.buffered_bytes -= records.iter().map(BufferedRecord::bytes).sum::<usize>();
        for record in &records {
            if let Some(share) = self.by_partition.get_mut(&record.partition) {
                share.hand_over(record);
            }
        }
        records
    }

    /// Forgets partitions, and returns the offsets and notes for their next pullers.
    pub fn revoke(&mut self, partitions: &[i32]) -> Vec<OffsetCommit> {
        self.drop_records(partitions);
        let mut offsets = Vec::new();
        for &partition in partitions {
            let Some(share) = self.by_partition.remove(&partition) else { continue };
            let in_doubt = share.in_doubt();
            self.unknown += in_doubt;
            self.revoked += ((share.handed_over - share.committed).max(0) as u64).saturating_sub(in_doubt);
            if share.note_state == NoteState::Open {
                offsets.push(OffsetCommit { partition, offset: share.committed, note: share.note() });
            }
        }
        offsets
    }

    /// Drops everything when the group has excluded this puller, until partitions are assigned again; nothing is
    /// reported later, because the caller reports the exclusion.
    pub fn drop_all(&mut self) {
        let all: Vec<i32> = self.by_partition.keys().copied().collect();
        self.revoke(&all);
        (self.revoked, self.unknown) = (0, 0);
    }

    /// Returns the partitions for which the server keeps an offset, as far as this puller knows.
    pub fn committed_partitions(&self) -> Vec<i32> {
        let kept = self.by_partition.iter().filter(|(_, share)| share.note_state != NoteState::Unknown);
        kept.map(|(&partition, _)| partition).collect()
    }

    /// Forgets everything of a topic that was found to be recreated.
    pub fn clear_topic(&mut self) {
        let held = self.by_partition.iter().filter(|(_, share)| share.has_unacknowledged());
        self.old_offsets.extend(held.map(|(&partition, share)| (partition, share.handed_over)));
        self.drop_all();
        self.is_recreated = true;
    }

    /// Returns the state for the member that replaces this one after a topic was recreated.
    pub fn for_recreated_topic(&self) -> Self {
        Self { old_offsets: self.old_offsets.clone(), ..Self::default() }
    }

    /// Takes the offset below which this puller, and no other, may have had messages of a partition.
    pub fn take_old_offset(&mut self, partition: i32) -> i64 {
        self.old_offsets.remove(&partition).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = usize::MAX;

    /// Returns a puller with one partition that begins at this offset.
    fn state(offset: i64, redelivered: i64) -> Assignment {
        let by_partition = BTreeMap::from([(3, PartitionState::at(offset, redelivered, NoteState::Unknown))]);
        Assignment { by_partition, ..Assignment::default() }
    }

    /// Fetches records with ascending timestamps, from a partition that was not cut.
    fn fetch(state: &mut Assignment, offsets: impl IntoIterator<Item = i64>) {
        offsets
            .into_iter()
            .for_each(|offset| fetch_one(state, offset, offset, i64::MAX, DeliveryGuarantee::AtLeastOnce));
    }

    fn fetch_one(state: &mut Assignment, offset: i64, made_ms: i64, end: i64, delivery: DeliveryGuarantee) {
        let record = FetchedRecord { partition: 3, offset, made_ms: Some(made_ms), value: b"value" };
        if !state.buffer(record) {
            state.buffer_rewound(record, Some(end), delivery, 1_000);
        }
    }

    fn handed_over(state: &mut Assignment, limit: usize) -> Vec<(i64, bool)> {
        state.hand_over(limit).into_iter().map(|record| (record.offset, record.redelivered)).collect()
    }

    fn commit(offset: i64, note: &str) -> Vec<OffsetCommit> {
        vec![OffsetCommit { partition: 3, offset, note: note.to_owned() }]
    }

    #[test]
    fn at_least_once_commits_before_the_first_message_is_handed_over() {
        let mut state = state(5, 7);
        fetch(&mut state, 5..15);
        assert_eq!(state.offsets_before(ALL, DeliveryGuarantee::AtLeastOnce), commit(5, OPEN));
        state.note_committed(&commit(5, OPEN));
        assert!(state.offsets_before(ALL, DeliveryGuarantee::AtLeastOnce).is_empty());
        assert_eq!(handed_over(&mut state, 4), [(5, true), (6, true), (7, false), (8, false)]);
        assert_eq!(state.offsets_done(), commit(9, OPEN));
        state.note_committed(&commit(9, OPEN));
        assert_eq!((state.offsets_done(), state.done), (Vec::new(), 4));
        assert_eq!(handed_over(&mut state, 1), [(9, false)]);
        assert_eq!(state.revoke(&[3]), commit(9, "10"));
        assert!(state.records.is_empty() && state.offsets_done().is_empty());
    }

    #[test]
    fn unacknowledged_messages_of_a_revoked_partition_are_counted_once() {
        let mut state = state(5, 0);
        fetch(&mut state, 5..15);
        state.note_committed(&commit(5, OPEN));
        state.hand_over(7);
        state.note_committed(&commit(8, OPEN));
        state.revoke(&[3]);
        assert_eq!(state.revoked, 4);
        state.revoke(&[3]);
        assert_eq!(state.revoked, 4);
    }

    #[test]
    fn an_unanswered_commit_is_in_doubt_until_the_answer() {
        let mut state = state(5, 0);
        fetch(&mut state, 5..15);
        let offsets = state.offsets_before(ALL, DeliveryGuarantee::AtLeastOnce);
        state.note_unanswered(&offsets);
        assert_eq!(state.in_doubt(), 0);
        state.note_committed(&commit(5, OPEN));
        state.hand_over(7);
        let offsets = state.offsets_done();
        state.note_unanswered(&offsets);
        state.hand_over(ALL);
        assert_eq!(state.in_doubt(), 7);
        state.revoke(&[3]);
        assert_eq!((state.unknown, state.revoked, state.in_doubt()), (7, 3, 0));
    }

    #[test]
    fn a_late_answer_applies_to_its_own_commit_only() {
        let pulled = || {
            let mut state = state(5, 0);
            fetch(&mut state, 5..15);
            state.note_committed(&commit(5, OPEN));
            state.hand_over(4);
            state.note_overdue(&commit(9, OPEN));
            state.hand_over(3);
            state
        };
        for (is_done, rest) in [(true, 0), (false, 4)] {
            let mut state = pulled();
            assert_eq!(state.in_doubt(), 4);
            state.note_late_answer(is_done);
            assert_eq!((state.in_doubt(), state.offsets_done()), (rest, commit(12, OPEN)));
            // A second late answer changes nothing.
            state.note_committed(&commit(12, OPEN));
            state.note_late_answer(true);
            assert_eq!((state.done, state.offsets_done()), (7, Vec::new()));
        }
        // The partition was given away and assigned again.
        let mut state = pulled();
        state.revoke(&[3]);
        let restarted = PartitionState::at(2, 0, NoteState::Unknown);
        state.by_partition.insert(3, restarted);
        state.note_late_answer(true);
        assert_eq!(state.by_partition[&3], restarted);
    }

    #[test]
    fn at_most_once_a_late_answer_hands_nothing_over() {
        let mut state = state(0, 0);
        fetch(&mut state, 0..10);
        state.note_overdue(&state.offsets_before(4, DeliveryGuarantee::AtMostOnce));
        state.note_late_answer(true);
        assert_eq!(state.in_doubt(), 4);
        state.revoke(&[3]);
        assert_eq!(state.unknown, 4);
    }

    #[test]
    fn at_most_once_counts_messages_that_may_be_lost_unseen() {
        for (is_answered, unknown) in [(false, 4), (true, 0)] {
            let mut state = state(0, 0);
            fetch(&mut state, 0..10);
            state.note_committed(&commit(2, OPEN));
            state.hand_over(2);
            let offsets = state.offsets_before(4, DeliveryGuarantee::AtMostOnce);
            state.note_unanswered(&offsets);
            if is_answered {
                state.note_committed(&offsets);
                state.hand_over(4);
            }
            state.revoke(&[3]);
            assert_eq!((state.unknown, state.revoked), (unknown, 0), "{is_answered}");
        }
    }

    #[test]
    fn at_most_once_commits_the_next_messages_first() {
        let mut state = state(0, 0);
        fetch(&mut state, 0..10);
        assert_eq!(state.offsets_before(4, DeliveryGuarantee::AtMostOnce), commit(4, OPEN));
        state.note_committed(&commit(4, OPEN));
        assert_eq!(handed_over(&mut state, 4).len(), 4);
        assert_eq!(state.offsets_before(ALL, DeliveryGuarantee::AtMostOnce), commit(10, OPEN));
    }

    #[test]
    fn a_note_never_falls_below_earlier_pullers_offsets() {
        for (redelivered, note) in [(100, "100"), (0, "2"), (i64::MAX, OPEN)] {
            let mut state = state(0, redelivered);
            fetch(&mut state, 0..2);
            state.note_committed(&commit(0, OPEN));
            state.hand_over(ALL);
            assert_eq!(state.revoke(&[3]), commit(0, note));
        }
    }

    #[test]
    fn an_untouched_partition_gets_no_note() {
        let mut state = state(0, 0);
        fetch(&mut state, 0..2);
        assert!(state.revoke(&[3, 4]).is_empty());
    }

    #[test]
    fn records_come_once_and_from_assigned_partitions_only() {
        let mut state = state(20, 0);
        assert!(state.buffer(FetchedRecord { partition: 4, offset: 0, made_ms: None, value: b"of another partition" }));
        fetch(&mut state, [22, 23, 22, 23, 24]);
        state.note_committed(&commit(22, OPEN));
        assert_eq!(handed_over(&mut state, ALL), [(22, false), (23, false), (24, false)]);
        assert_eq!(state.offsets_done(), commit(25, OPEN));
        fetch(&mut state, [24, 30]);
        assert_eq!(handed_over(&mut state, ALL), [(30, false)]);
        assert_eq!(state.offsets_done(), commit(31, OPEN));
    }

    #[test]
    fn a_truncated_partition_continues_with_new_records() {
        // The end behind offset 8 is lost, and two messages were pushed since; or the topic was recreated, and has more
        // by now.
        for (end, newer, then) in [(10, [(8, 500), (9, 501)], 8), (40, [(0, 500), (1, 501)], 0)] {
            let mut state = state(5, 7);
            fetch(&mut state, 5..15);
            state.note_committed(&commit(5, OPEN));
            state.hand_over(6);
            state.note_committed(&commit(11, OPEN));
            for offset in 0..then {
                fetch_one(&mut state, offset, offset, end, DeliveryGuarantee::AtLeastOnce);
            }
            for (offset, made_ms) in newer {
                fetch_one(&mut state, offset, made_ms, end, DeliveryGuarantee::AtLeastOnce);
            }
            assert!(std::mem::take(&mut state.is_truncated), "{end}");
            // The lower offset is committed first.
            assert_eq!(state.offsets_before(ALL, DeliveryGuarantee::AtLeastOnce), commit(then, OPEN));
            state.note_committed(&commit(then, OPEN));
            assert_eq!(handed_over(&mut state, ALL), newer.map(|(offset, _)| (offset, false)));
            assert_eq!(state.offsets_done(), commit(then + 2, OPEN));
            fetch_one(&mut state, then + 2, 502, end, DeliveryGuarantee::AtLeastOnce);
            assert!(!state.is_truncated && handed_over(&mut state, ALL) == [(then + 2, false)]);
        }
    }

    #[test]
    fn a_removed_topic_leaves_only_its_old_offsets() {
        for (done, had) in [(5, 12), (12, 0)] {
            let mut state = state(5, 7);
            assert!(state.committed_partitions().is_empty(), "the server may keep nothing");
            fetch(&mut state, 5..15);
            state.note_committed(&commit(5, OPEN));
            state.hand_over(7);
            state.note_committed(&commit(done, OPEN));
            state.note_overdue(&commit(12, OPEN));
            assert_eq!(state.committed_partitions(), [3]);
            state.clear_topic();
            assert!(state.is_recreated && state.records.is_empty() && state.committed_partitions().is_empty());
            assert!(state.offsets_done().is_empty() && state.revoke(&[3]).is_empty());
            assert_eq!((state.revoked, state.unknown), (0, 0));
            // A late answer to an earlier commit does not bring anything back.
            state.note_late_answer(true);
            assert!(state.committed_partitions().is_empty());
            let mut restarted = state.for_recreated_topic();
            assert_eq!(
                (restarted.is_recreated, restarted.take_old_offset(3), restarted.take_old_offset(3)),
                (false, had, 0)
            );
        }
    }

    #[test]
    fn records_not_handed_over_are_new_after_a_truncation() {
        // All records have the same timestamp, or ascending ones.
        let times: [fn(i64) -> i64; 2] = [|_| 7, |offset| offset];
        for made_ms in times {
            let mut state = state(0, 60);
            (0..100).for_each(|offset| {
                fetch_one(&mut state, offset, made_ms(offset), i64::MAX, DeliveryGuarantee::AtLeastOnce)
            });
            state.note_committed(&commit(0, OPEN));
            state.hand_over(50);
            state.note_committed(&commit(50, OPEN));
            // The end behind offset 80 is lost, and a host whose clock is behind has pushed one message since.
            (0..80)
                .for_each(|offset| fetch_one(&mut state, offset, made_ms(offset), 81, DeliveryGuarantee::AtLeastOnce));
            fetch_one(&mut state, 80, 3, 81, DeliveryGuarantee::AtLeastOnce);
            fetch_one(&mut state, 81, 4, 82, DeliveryGuarantee::AtLeastOnce);
            assert!(state.is_truncated);
            assert_eq!(state.offsets_before(ALL, DeliveryGuarantee::AtLeastOnce), commit(50, OPEN));
            state.note_committed(&commit(50, OPEN));
            let expected: Vec<(i64, bool)> = (50..82).map(|offset| (offset, offset < 60)).collect();
            assert_eq!(handed_over(&mut state, ALL), expected);
            assert_eq!(state.offsets_done(), commit(82, OPEN));
        }
    }

    #[test]
    fn a_partition_truncated_before_its_assignment_marks_its_old_records() {
        for (delivery, expected) in [
            (DeliveryGuarantee::AtLeastOnce, vec![(0, true), (1, true), (2, false)]),
            (DeliveryGuarantee::AtMostOnce, vec![(2, false)]),
        ] {
            let mut state = state(110, 0);
            for (offset, made_ms) in [(0, 999), (1, 1_000), (2, 1_001)] {
                fetch_one(&mut state, offset, made_ms, 2, delivery);
            }
            assert!(state.is_truncated);
            assert_eq!(handed_over(&mut state, ALL), expected);
        }
    }

    #[test]
    fn buffered_records_are_counted_in_bytes() {
        let mut state = state(0, 0);
        let one = size_of::<BufferedRecord>() + b"value".len();
        fetch(&mut state, 0..10);
        assert_eq!(state.buffered_bytes, 10 * one);
        state.hand_over(4);
        assert_eq!(state.buffered_bytes, 6 * one);
        state.revoke(&[3]);
        assert_eq!(state.buffered_bytes, 0);
    }
}
