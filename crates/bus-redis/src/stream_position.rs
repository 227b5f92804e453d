//! Position of a stream subscription, and where it resumes after the stream or the server has changed.
//!
//! ```text
//!   entries ever added    0 … 7 │ 8 … 11 │ 12 … 20        added = 21, length = 9: gone = 12
//!                          read │  lost  │ still there    read = 8: gone – read = 4 are missed
//! ```

use tickpath_bus_api::{ConnectError, Gap, MessageIdTracker, ResumeToken};

use crate::info::{DataIdentity, RetainedData};
use crate::stream::{EntryId, StreamExtent};

/// Name of this transport in resume tokens.
const TOKEN: &str = "redis+streams";

/// Count in a token that stands for an unknown count.
const UNKNOWN: u64 = u64::MAX;

#[derive(Debug, Clone)]
pub(crate) struct StreamPosition {
    /// Id of the last received entry, or of the start of the subscription.
    last_id: EntryId,
    /// Furthest entry ever received: a server that went back may later recover what it had lost.
    furthest: EntryId,
    /// Number of entries ever added up to this position; none if unknown.
    read: Option<u64>,
    /// Part of `read` that only publishers' numbers show; some of these entries may never have been added.
    doubtful: u64,
    /// Identity of the server that the position belongs to.
    server: EarlierIdentity,
    /// Gap to report before anything else.
    gap: Option<Gap>,
}

/// Earlier knowledge about a server.
#[derive(Debug, Clone)]
enum EarlierIdentity {
    /// Identity and mark that the server reported; none and 0 if it reports none.
    Reported(Option<DataIdentity>, u64),
    /// The server's [mark](DataIdentity::fingerprint), from a token.
    FromToken(u64),
}

/// State of the server and the stream when a subscription comes back.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamResumeState {
    pub run: Option<DataIdentity>,
    pub extent: Option<StreamExtent>,
    /// True if the entry at the subscription's position exists.
    pub has_last_entry: bool,
    /// True if that entry was never received before: the stream is another one.
    pub is_replaced: bool,
    /// True if the furthest received entry exists.
    pub has_furthest: bool,
}

/// Error: the stream is not the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamReplaced;

impl EarlierIdentity {
    fn of(run: Option<DataIdentity>) -> Self {
        let mark = run.as_ref().map_or(0, DataIdentity::fingerprint);
        Self::Reported(run, mark)
    }

    fn fingerprint(&self) -> u64 {
        match self {
            Self::Reported(_, mark) | Self::FromToken(mark) => *mark,
        }
    }

    fn retained(&self, now: Option<&DataIdentity>) -> RetainedData {
        match self {
            Self::Reported(before, _) => DataIdentity::retained(before.as_ref(), now),
            Self::FromToken(mark) => now.map_or(RetainedData::Unknown, |now| now.retained_since(*mark)),
        }
    }
}

impl StreamPosition {
    /// Creates the position of a subscription that starts after `last_id`, up to which the stream had `read` entries.
    pub fn begin(position: EntryId, read: Option<u64>, run: Option<DataIdentity>) -> Self {
        Self { last_id: position, furthest: position, read, doubtful: 0, server: EarlierIdentity::of(run), gap: None }
    }

    /// Restores the position from a token, with the numbers of the messages already received.
    pub fn from_token(token: &ResumeToken) -> Result<(Self, MessageIdTracker), ConnectError> {
        let ([ms, number, count, mark], tracker) = token.read(TOKEN)?;
        let position = EntryId::new(ms, number);
        let read = Some(count).filter(|&read| read != UNKNOWN);
        let server = EarlierIdentity::FromToken(mark);
        Ok((Self { last_id: position, furthest: position, read, doubtful: 0, server, gap: None }, tracker))
    }

    /// Returns a token that resumes here. A gap that is not reported yet is found again after resuming.
    pub fn token(&self, tracker: &MessageIdTracker) -> ResumeToken {
        if let Some(furthest) = self.furthest() {
            // Entries after the position may have been recovered by then. No server has this mark.
            let [ms, number] = furthest.numbers();
            return ResumeToken::new(TOKEN, [ms, number, UNKNOWN, 0], tracker);
        }
        let [ms, number] = self.last_id.numbers();
        let (unreported, mark) = match self.gap {
            Some(Gap::Missed(unreported)) => (unreported, self.server.fingerprint()),
            // No server has this mark.
            Some(Gap::Reconnected) => (0, 0),
            None => (0, self.server.fingerprint()),
        };
        let read = self.read.map_or(UNKNOWN, |read| read.saturating_sub(unreported));
        ResumeToken::new(TOKEN, [ms, number, read, mark], tracker)
    }

    pub fn last_id(&self) -> EntryId {
        self.last_id
    }

    /// Returns the furthest entry ever received, if the position now lies before it.
    pub fn furthest(&self) -> Option<EntryId> {
        Some(self.furthest).filter(|&furthest| furthest > self.last_id)
    }

    pub fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    pub fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take()
    }

    pub fn advance(&mut self, id: EntryId) {
        self.last_id = id;
        self.furthest = self.furthest.max(id);
        self.read = self.read.map(|read| read.saturating_add(1));
    }

    /// Counts `missed` entries that the publisher's numbers show as missing: they are reported already, and the
    /// server's count must not report them again.
    pub fn add_missed(&mut self, missed: u64) {
        self.read = self.read.map(|read| read.saturating_add(missed));
        self.doubtful = self.doubtful.saturating_add(missed);
    }

    /// Returns whether a stream of `length` entries may have lost unread ones, given that `gone` were gone before;
    /// `gone` is none if the server does not count.
    pub fn may_have_lost(&self, length: u64, gone: Option<u64>) -> bool {
        length == 0 || gone.is_some_and(|gone| length < self.certainly_read().saturating_sub(gone))
    }

    /// Compares with the server's count, over an unbroken connection.
    pub fn compare_count(&mut self, now: &StreamExtent) -> Result<(), StreamReplaced> {
        // If everything up to the position is gone, at least as many entries are gone as were read.
        let lacks_some =
            now.is_all_after(self.last_id) && now.trimmed_count().is_some_and(|gone| gone < self.certainly_read());
        if now.last < self.last_id || self.has_more_than(now) || lacks_some {
            return Err(StreamReplaced);
        }
        self.note_trimmed(now);
        Ok(())
    }

    /// Returns the position at which the subscription resumes on this server: after the last received entry wherever
    /// that is possible, and at the beginning only of a stream that is certainly another one.
    pub fn resumed_on(&self, found: StreamResumeState) -> Self {
        let has_retained_all = match self.server.retained(found.run.as_ref()) {
            RetainedData::All => true,
            // If something differs, an older copy of the disk is more likely than another stream.
            RetainedData::Disk => {
                !found.has_furthest && found.extent.is_some_and(|now| !self.is_replaced(&now, &found))
            }
            RetainedData::Unknown => false,
        };
        let mut next = Self { server: EarlierIdentity::of(found.run.clone()), ..self.clone() };
        match found.extent {
            None => {
                next.jump_with_gap(EntryId::START, Some(0));
                if has_retained_all {
                    next.furthest = EntryId::START;
                }
            }
            Some(now) if has_retained_all && self.is_replaced(&now, &found) => {
                next.jump_with_gap(EntryId::START, now.trimmed_count());
                next.furthest = EntryId::START;
            }
            Some(now) if has_retained_all && self.has_more_than(&now) => {
                next.jump_with_gap(self.last_id, now.count_up_to(self.last_id))
            }
            // Trimmed up to there, or further, or another stream: a server that does not count cannot show which.
            Some(now)
                if has_retained_all
                    && now.added.is_none()
                    && !found.has_last_entry
                    && self.last_id != EntryId::START
                    && now.first.is_some_and(|first| first > self.last_id) =>
            {
                next.jump_with_gap(self.last_id, None);
            }
            Some(now) if has_retained_all => next.note_trimmed(&now),
            // The data from before the server went back has been recovered.
            Some(now) if found.has_furthest => next.jump_with_gap(self.furthest, now.count_up_to(self.furthest)),
            // The server went back behind the position: its last entry was received already.
            Some(now) if now.last < self.last_id => next.jump_with_gap(now.last, now.added),
            Some(now) => next.jump_with_gap(self.last_id, now.count_up_to(self.last_id)),
        }
        next
    }

    /// Moves to a position that may not be right after the last received entry, and notes the gap.
    fn jump_with_gap(&mut self, position: EntryId, read: Option<u64>) {
        self.last_id = position;
        self.furthest = self.furthest.max(position);
        (self.read, self.doubtful, self.gap) = (read, 0, Some(Gap::Reconnected));
    }

    /// Returns whether more entries were read than the stream ever had.
    fn has_more_than(&self, now: &StreamExtent) -> bool {
        now.added.is_some_and(|added| self.certainly_read() > added)
    }

    fn certainly_read(&self) -> u64 {
        self.read.map_or(0, |read| read.saturating_sub(self.doubtful))
    }

    /// Returns whether a server that never went back has another stream of this name: the last received entry is
    /// neither there, nor trimmed, nor deleted by its id.
    fn is_replaced(&self, now: &StreamExtent, found: &StreamResumeState) -> bool {
        if found.is_replaced {
            return true;
        }
        if found.has_last_entry || self.last_id == EntryId::START || now.deleted >= self.last_id {
            return false;
        }
        // Trimming starts at the oldest entry.
        let is_trimmed =
            now.trimmed_count().is_none_or(|gone| now.is_all_after(self.last_id) && gone >= self.certainly_read());
        now.last < self.last_id || self.has_more_than(now) || !is_trimmed
    }

    /// Notes the entries that are gone and were not read.
    fn note_trimmed(&mut self, now: &StreamExtent) {
        let is_all = now.last == self.last_id;
        // If the last entry was read, the count is exact; else only the entries trimmed from the beginning are known.
        let known_count = if is_all { now.added } else { now.trimmed_count() };
        match (known_count, self.read) {
            (Some(known_count), Some(read)) if known_count > read => {
                (self.read, self.doubtful) = (Some(known_count), 0);
                self.gap = Some(match self.gap {
                    Some(Gap::Reconnected) => Gap::Reconnected,
                    Some(Gap::Missed(unreported)) => Gap::Missed(unreported.saturating_add(known_count - read)),
                    None => Gap::Missed(known_count - read),
                });
            }
            // It is unknown how many of the trimmed entries were read.
            (Some(gone), None) if !is_all && now.is_all_after(self.last_id) => {
                (self.read, self.doubtful) = (Some(gone), 0);
                if gone > 0 {
                    self.gap = Some(Gap::Reconnected);
                }
            }
            (Some(added), _) if is_all => (self.read, self.doubtful) = (Some(added), 0),
            // A server that does not count had entries after the position, or in a stream that did not exist, and has
            // none now.
            (None, read)
                if now.first.is_none()
                    && now.last > self.last_id
                    && (read.is_some() || self.last_id != EntryId::START) =>
            {
                self.jump_with_gap(now.last, None);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stream with entries of these milliseconds, of which `gone` earlier ones are gone.
    fn stream(first: u64, last: u64, gone: u64) -> StreamExtent {
        StreamExtent {
            first: Some(EntryId::new(first, 0)),
            last: EntryId::new(last, 0),
            length: last + 1 - first,
            added: Some(gone + last + 1 - first),
            deleted: EntryId::START,
        }
    }

    /// Returns a subscription that has read `read` entries, the last one of this millisecond, on a server of this mark.
    fn progress(position: u64, read: u64, mark: u64) -> StreamPosition {
        let token = ResumeToken::new(TOKEN, [position, 0, read, mark], &MessageIdTracker::default());
        StreamPosition::from_token(&token).unwrap().0
    }

    fn run() -> DataIdentity {
        DataIdentity::example("a")
    }

    /// Returns the position, the number of read entries and the gap to be reported.
    fn state(progress: &StreamPosition) -> (u64, Option<u64>, Option<Gap>) {
        (progress.last_id.numbers()[0], progress.read, progress.gap)
    }

    #[test]
    fn a_subscription_resumes_after_its_last_entry_in_the_same_stream() {
        const RECONNECTED: Option<Gap> = Some(Gap::Reconnected);
        let (kept, disk, lost) = (run().fingerprint(), u64::from(run().fingerprint() as u32), 0);
        let deleted = |extent: StreamExtent, ms| StreamExtent { deleted: EntryId::new(ms, 0), ..extent };
        let old = |extent: StreamExtent| StreamExtent { added: None, ..extent };
        for (what, mark, extent, has_last_entry, expected) in [
            ("as it was", kept, Some(stream(1, 10, 0)), true, (10, Some(10), None)),
            ("further", kept, Some(stream(1, 20, 0)), true, (10, Some(10), None)),
            ("trimmed up to it", kept, Some(stream(11, 20, 10)), false, (10, Some(10), None)),
            ("trimmed past it", kept, Some(stream(15, 20, 14)), false, (10, Some(14), Some(Gap::Missed(4)))),
            ("deleted by its id", kept, Some(deleted(stream(1, 20, 0), 10)), false, (10, Some(10), None)),
            ("gone", kept, None, false, (0, Some(0), RECONNECTED)),
            ("made anew, shorter", kept, Some(stream(31, 33, 0)), false, (0, Some(0), RECONNECTED)),
            ("made anew, longer", kept, Some(stream(31, 63, 0)), false, (0, Some(0), RECONNECTED)),
            ("made anew with lower ids", kept, Some(stream(1, 3, 0)), false, (0, Some(0), RECONNECTED)),
            ("made anew and read from", kept, Some(stream(8, 12, 0)), true, (10, None, RECONNECTED)),
            ("an old server", kept, Some(old(stream(1, 20, 0))), true, (10, Some(10), None)),
            ("an old server, trimmed or anew", kept, Some(old(stream(15, 20, 14))), false, (10, None, RECONNECTED)),
            ("from its disk", disk, Some(stream(1, 20, 0)), true, (10, Some(10), None)),
            ("from its disk, trimmed", disk, Some(stream(15, 20, 14)), false, (10, Some(14), Some(Gap::Missed(4)))),
            ("from an older disk", disk, Some(stream(1, 6, 0)), false, (6, Some(6), RECONNECTED)),
            ("from an older disk, and further", disk, Some(stream(1, 20, 0)), false, (10, None, RECONNECTED)),
            ("from a disk without it", disk, None, false, (0, Some(0), RECONNECTED)),
            ("another server", lost, Some(stream(1, 20, 0)), true, (10, None, RECONNECTED)),
            ("another server, trimmed", lost, Some(stream(15, 20, 14)), false, (10, Some(14), RECONNECTED)),
            ("a server that went back", lost, Some(stream(1, 6, 0)), false, (6, Some(6), RECONNECTED)),
            ("a server that lost it", lost, None, false, (0, Some(0), RECONNECTED)),
        ] {
            let found = StreamResumeState { run: Some(run()), extent, has_last_entry, ..StreamResumeState::default() };
            assert_eq!(state(&progress(10, 10, mark).resumed_on(found)), expected, "{what}");
        }
    }

    #[test]
    fn an_unseen_entry_at_the_last_id_shows_a_replaced_stream() {
        let old = StreamExtent { added: None, ..stream(1, 20, 0) };
        for (extent, read) in [(stream(1, 20, 0), Some(0)), (old, None)] {
            let (run, extent) = (Some(run()), Some(extent));
            let found = StreamResumeState { run, extent, is_replaced: true, ..StreamResumeState::default() };
            let resumed = progress(10, 10, self::run().fingerprint()).resumed_on(found);
            assert_eq!(state(&resumed), (0, read, Some(Gap::Reconnected)));
        }
    }

    #[test]
    fn entries_recovered_by_a_server_are_not_delivered_again() {
        let found = |extent, has_furthest| {
            let extent = Some(extent);
            StreamResumeState { extent, has_last_entry: true, has_furthest, ..StreamResumeState::default() }
        };
        let back = progress(10, 10, 0).resumed_on(found(stream(1, 6, 0), false));
        assert_eq!((back.last_id, back.furthest()), (EntryId::new(6, 0), Some(EntryId::new(10, 0))));
        let (behind, _) = StreamPosition::from_token(&back.token(&MessageIdTracker::default())).unwrap();
        assert_eq!(state(&behind.resumed_on(found(stream(1, 12, 0), false))), (10, None, Some(Gap::Reconnected)));
        let again = back.resumed_on(found(stream(1, 12, 0), true));
        assert_eq!((again.last_id, again.furthest()), (EntryId::new(10, 0), None));
        let other = back.resumed_on(found(stream(1, 12, 0), false));
        assert_eq!(other.last_id, EntryId::new(6, 0), "these ten are others");
        let lost = back.resumed_on(StreamResumeState::default());
        assert_eq!(lost.resumed_on(found(stream(1, 12, 0), true)).last_id, EntryId::new(10, 0));
        let early = StreamResumeState { run: Some(run()), has_last_entry: false, ..found(stream(1, 6, 0), false) };
        let older = progress(10, 10, u64::from(run().fingerprint() as u32)).resumed_on(early);
        let late = StreamResumeState { run: Some(DataIdentity::example("b")), ..found(stream(1, 12, 0), true) };
        assert_eq!(older.resumed_on(late).last_id, EntryId::new(10, 0), "the newer copy of its disk");
    }

    #[test]
    fn the_servers_count_reports_each_missing_entry_once() {
        let mut reader = progress(10, 10, 0);
        // The numbers show four, of which one was never added.
        reader.add_missed(4);
        reader.advance(EntryId::new(14, 0));
        assert_eq!(reader.compare_count(&stream(14, 14, 13)), Ok(()));
        assert_eq!(state(&reader), (14, Some(14), None), "all is read that was ever added");
        assert_eq!(reader.compare_count(&stream(20, 24, 19)), Ok(()));
        assert_eq!(reader.compare_count(&stream(22, 24, 21)), Ok(()));
        assert_eq!(state(&reader), (14, Some(21), Some(Gap::Missed(7))), "unreported losses add up");
        for anew in [stream(30, 31, 0), stream(30, 59, 0), stream(1, 9, 30)] {
            assert_eq!(reader.compare_count(&anew), Err(StreamReplaced), "{anew:?}");
        }
    }

    #[test]
    fn without_a_read_count_a_loss_is_of_unknown_size() {
        let old = StreamExtent { added: None, ..stream(15, 20, 14) };
        for (what, now, expected) in [
            ("nothing is trimmed", stream(1, 20, 0), (10, None, None)),
            ("trimmed past it", stream(15, 20, 14), (10, Some(14), Some(Gap::Reconnected))),
            ("nothing was ever there", stream(11, 20, 0), (10, Some(0), None)),
            ("all is read", stream(8, 10, 7), (10, Some(10), None)),
            ("an old server", old, (10, None, None)),
        ] {
            let mut reader = progress(10, UNKNOWN, 0);
            assert_eq!(reader.compare_count(&now), Ok(()), "{what}");
            assert_eq!(state(&reader), expected, "{what}");
        }
        let disk = u64::from(run().fingerprint() as u32);
        let (run, extent) = (Some(run()), Some(stream(1, 20, 0)));
        let further = StreamResumeState { run, extent, ..StreamResumeState::default() };
        assert_eq!(state(&progress(10, UNKNOWN, disk).resumed_on(further)), (10, None, Some(Gap::Reconnected)));
        let mut reader = progress(10, UNKNOWN, 0);
        for (now, gap) in [(stream(15, 20, 14), Gap::Reconnected), (stream(17, 20, 16), Gap::Missed(2))] {
            assert_eq!(reader.compare_count(&now), Ok(()));
            assert_eq!(reader.take_gap(), Some(gap));
        }
    }

    #[test]
    fn a_short_stream_suggests_a_loss() {
        let reader = progress(10, 10, 0);
        for (length, gone, may_lack) in [
            (10, Some(0), false),
            (30, Some(0), false),
            (9, Some(0), true),
            (6, Some(4), false),
            (5, Some(4), true),
            (0, Some(10), true),
            (1, Some(10), false),
            (5, None, false),
            (0, None, true),
        ] {
            assert_eq!(reader.may_have_lost(length, gone), may_lack, "{length} are there, {gone:?} were gone");
        }
        assert!(!progress(10, UNKNOWN, 0).may_have_lost(1, Some(4)));
    }

    #[test]
    fn without_counts_a_moved_end_of_an_empty_stream_is_a_loss() {
        let none = |last| StreamExtent {
            first: None,
            last: EntryId::new(last, 0),
            length: 0,
            added: None,
            deleted: EntryId::START,
        };
        for (position, read, last, expected) in [
            (10, 10, 15, (15, None, Some(Gap::Reconnected))),
            (10, UNKNOWN, 15, (15, None, Some(Gap::Reconnected))),
            (10, 10, 10, (10, Some(10), None)),
            // The stream did not exist, and the stream existed and was empty.
            (0, 0, 15, (15, None, Some(Gap::Reconnected))),
            (0, UNKNOWN, 15, (0, None, None)),
        ] {
            let mut reader = progress(position, read, 0);
            assert_eq!(reader.compare_count(&none(last)), Ok(()));
            assert_eq!(state(&reader), expected, "{read} read up to {position}, and the end is {last}");
        }
    }

    #[test]
    fn a_token_precedes_an_unreported_gap() {
        let tracker = MessageIdTracker::default();
        let mark = run().fingerprint();
        let mut reader = progress(10, 10, mark);
        let before = reader.token(&tracker);
        reader.compare_count(&stream(15, 20, 14)).unwrap();
        assert_eq!(reader.token(&tracker), before);
        assert_eq!(reader.take_gap(), Some(Gap::Missed(4)));
        assert_eq!(reader.token(&tracker), ResumeToken::new(TOKEN, [10, 0, 14, mark], &tracker));
        let found = StreamResumeState { run: Some(run()), ..StreamResumeState::default() };
        let mut lost = reader.resumed_on(found.clone());
        let (again, _) = StreamPosition::from_token(&lost.token(&tracker)).unwrap();
        assert_eq!(again.resumed_on(found).take_gap(), Some(Gap::Reconnected));
        assert_eq!(lost.take_gap(), Some(Gap::Reconnected));
        assert_eq!(lost.token(&tracker), ResumeToken::new(TOKEN, [0, 0, 0, mark], &tracker));
    }
}
