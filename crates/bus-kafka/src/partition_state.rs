//! A puller's progress in one partition, also across a cut: the partition then starts over, or at a lower offset.

use tickpath_bus_api::DeliveryGuarantee;

use crate::record::{BufferedRecord, FetchedRecord};

/// Note of a partition that a puller is pulling from.
pub(crate) const OPEN: &str = "open";

/// A puller's progress in one partition. Each position is the next offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionState {
    /// Offset committed at the server.
    pub committed: i64,
    pub handed_over: i64,
    fetched: i64,
    /// Offset below which another puller may have had the messages.
    redelivered: i64,
    /// Timestamp of the newest record that was fetched.
    newest_ms: Option<i64>,
    /// Timestamp of the newest record that was handed over.
    newest_handed_ms: Option<i64>,
    /// Records that were handed over before the partition was cut, if it was.
    duplicates: Option<DuplicateRange>,
    /// Highest offset sent to the server since the last answered commit and not answered.
    unanswered: i64,
    pub note_state: NoteState,
}

/// The server's committed state of the group in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteState {
    /// No offset that this puller knows of.
    Unknown,
    /// An offset, with the note of the partition's previous puller.
    Previous,
    /// An offset, with the note `open`.
    Open,
}

/// Bounds of the records that may be seen again after a cut, and are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DuplicateRange {
    /// Exclusive upper offset: records not handed over before the cut, or stored since, lie at or above it.
    end: i64,
    /// Latest timestamp of such a record.
    made_ms: i64,
}

impl PartitionState {
    /// Creates the progress of a partition committed at this offset, with nothing fetched yet.
    pub fn at(offset: i64, redelivered: i64, note_state: NoteState) -> Self {
        Self {
            committed: offset,
            handed_over: offset,
            fetched: offset,
            redelivered,
            newest_ms: None,
            newest_handed_ms: None,
            duplicates: None,
            unanswered: 0,
            note_state,
        }
    }

    /// Returns true if the record lies below records fetched before.
    pub fn is_rewound(&self, record: &FetchedRecord<'_>) -> bool {
        record.offset < self.fetched
    }

    /// Moves behind a fetched record. Returns whether another puller may have had it; none if it is a duplicate.
    pub fn fetch(&mut self, record: &FetchedRecord<'_>) -> Option<bool> {
        let is_duplicate = self.duplicates.is_some_and(|old| old.contains(record));
        let next = record.offset + 1;
        if self.fetched == self.committed {
            // Offsets in between are not in the log any more.
            let done = if is_duplicate { next } else { record.offset };
            (self.committed, self.handed_over) = (done, done);
        }
        self.fetched = next;
        if is_duplicate {
            return None;
        }
        self.newest_ms = self.newest_ms.max(record.made_ms);
        Some(record.offset < self.redelivered)
    }

    /// Returns the progress of a partition that starts over at a record below the ones fetched before. Returns none if
    /// the record is a duplicate instead, from the client library around a rebalance.
    pub fn restarted(
        &self,
        record: &FetchedRecord<'_>,
        end: Option<i64>,
        delivery: DeliveryGuarantee,
        now_ms: i64,
    ) -> Option<Self> {
        let is_newer = match self.newest_ms {
            Some(newest_ms) => record.made_ms.is_some_and(|made_ms| made_ms > newest_ms),
            // No earlier record exists that could be a duplicate.
            None => true,
        };
        if !is_newer && end.is_none_or(|end| end >= self.fetched) {
            return None;
        }
        let marked = if is_newer { 0 } else { self.redelivered.min(end.unwrap_or(i64::MAX)) };
        let (old_ms, redelivered) = match (self.newest_handed_ms, delivery) {
            // A pusher's clock may be ahead: a timestamp counts up to the present at most.
            (Some(newest_had_ms), _) => (Some(newest_had_ms.min(now_ms)), marked),
            (None, DeliveryGuarantee::AtMostOnce) => (Some(now_ms), 0),
            (None, DeliveryGuarantee::AtLeastOnce) => (None, end.unwrap_or(i64::MAX)),
        };
        let old_end = end.unwrap_or(i64::MAX).min(self.handed_over);
        Some(Self {
            newest_ms: self.newest_ms,
            newest_handed_ms: self.newest_handed_ms,
            duplicates: old_ms.map(|made_ms| DuplicateRange { end: old_end, made_ms }),
            ..Self::at(record.offset, redelivered, NoteState::Unknown)
        })
    }

    /// Moves behind a record that is handed over.
    pub fn hand_over(&mut self, record: &BufferedRecord) {
        self.handed_over = record.offset + 1;
        self.newest_handed_ms = self.newest_handed_ms.max(record.made_ms);
    }

    /// Records that the server has committed this offset; returns the number of messages that are done by it.
    pub fn commit(&mut self, offset: i64) -> u64 {
        let done = (offset - self.committed).max(0) as u64;
        self.committed = offset;
        self.unanswered = 0;
        self.note_state = NoteState::Open;
        done
    }

    /// Records that this offset was sent and not answered.
    pub fn note_unanswered(&mut self, offset: i64) {
        self.unanswered = self.unanswered.max(offset);
    }

    /// Returns true if messages were handed over and not acknowledged.
    pub fn has_unacknowledged(&self) -> bool {
        self.committed < self.handed_over
    }

    /// Returns the number of messages in doubt: the server may or may not count them as done.
    pub fn in_doubt(&self) -> u64 {
        (self.unanswered - self.committed).max(0) as u64
    }

    /// Returns the note for the partition's next puller.
    pub fn note(&self) -> String {
        match self.redelivered.max(self.handed_over) {
            i64::MAX => OPEN.to_owned(),
            below => below.to_string(),
        }
    }
}

impl DuplicateRange {
    fn contains(&self, record: &FetchedRecord<'_>) -> bool {
        record.offset < self.end && record.made_ms.is_some_and(|made_ms| made_ms <= self.made_ms)
    }
}
