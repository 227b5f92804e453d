//! Position of a stream subscription, and where it resumes after the stream or the server has changed.
//!
//! ```text
//!   entries ever added    0 … 7 │ 8 … 11 │ 12 … 20        added = 21, length = 9: gone = 12
//!                          read │  lost  │ still there    read = 8: gone – read = 4 are missed
//! ```

use tickpath_bus_api::{ConnectError, Gap, OriginTracker, ResumeToken};

use crate::info::{Kept, Run};
use crate::stream::{Extent, Id};

/// Name of this transport in resume tokens.
const TOKEN: &str = "redis+streams";

/// Count in a token that stands for an unknown count.
const UNKNOWN: u64 = u64::MAX;

/// Position of a subscription in its stream.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// Id of the last received entry, or of the start of the subscription.
    place: Id,
    /// Furthest entry ever received: a server that went back may later recover what it had lost.
    furthest: Id,
    /// Number of entries ever added up to this place; none if unknown.
    read: Option<u64>,
    /// Part of `read` that only publishers' numbers show; some of these entries may never have been added.
    doubtful: u64,
    /// Identity of the server that the position belongs to.
    server: Witness,
    /// Gap to report before anything else.
    gap: Option<Gap>,
}

/// Earlier knowledge about a server.
#[derive(Debug, Clone)]
enum Witness {
    /// Identity and mark that the server reported; none and 0 if it reports none.
    Run(Option<Run>, u64),
    /// The server's [mark](Run::mark), from a token.
    Mark(u64),
}

/// State of the server and the stream when a subscription comes back.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Identity of the server; none if it reports none.
    pub run: Option<Run>,
    /// Extent of the stream; none if the stream does not exist.
    pub extent: Option<Extent>,
    /// True if the entry at the subscription's place exists.
    pub has_place: bool,
    /// True if that entry was never received before: the stream is another one.
    pub is_another: bool,
    /// True if the furthest received entry exists.
    pub has_furthest: bool,
}

/// Error: the stream is not the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anew;

impl Witness {
    fn of(run: Option<Run>) -> Self {
        let mark = run.as_ref().map_or(0, Run::mark);
        Self::Run(run, mark)
    }

    fn mark(&self) -> u64 {
        match self {
            Self::Run(_, mark) | Self::Mark(mark) => *mark,
        }
    }

    fn kept(&self, now: Option<&Run>) -> Kept {
        match self {
            Self::Run(before, _) => Run::kept(before.as_ref(), now),
            Self::Mark(mark) => now.map_or(Kept::Unknown, |now| now.kept_of(*mark)),
        }
    }
}

impl Progress {
    /// Creates the position of a subscription that starts after `place`, up to which the stream had `read` entries.
    pub fn begin(place: Id, read: Option<u64>, run: Option<Run>) -> Self {
        Self { place, furthest: place, read, doubtful: 0, server: Witness::of(run), gap: None }
    }

    /// Restores the position from a token, with the numbers of the messages already received.
    pub fn after(token: &ResumeToken) -> Result<(Self, OriginTracker), ConnectError> {
        let ([ms, number, count, mark], tracker) = token.read(TOKEN)?;
        let place = Id::new(ms, number);
        let read = Some(count).filter(|&read| read != UNKNOWN);
        let server = Witness::Mark(mark);
        Ok((Self { place, furthest: place, read, doubtful: 0, server, gap: None }, tracker))
    }

    /// Returns a token that resumes here. A gap that is not reported yet is found again after resuming.
    pub fn token(&self, tracker: &OriginTracker) -> ResumeToken {
        if let Some(furthest) = self.furthest() {
            // Entries after the place may have been recovered by then. No server has this mark.
            let [ms, number] = furthest.numbers();
            return ResumeToken::new(TOKEN, [ms, number, UNKNOWN, 0], tracker);
        }
        let [ms, number] = self.place.numbers();
        let (untold, mark) = match self.gap {
            Some(Gap::Missed(untold)) => (untold, self.server.mark()),
            // No server has this mark.
            Some(Gap::Reconnected) => (0, 0),
            None => (0, self.server.mark()),
        };
        let read = self.read.map_or(UNKNOWN, |read| read.saturating_sub(untold));
        ResumeToken::new(TOKEN, [ms, number, read, mark], tracker)
    }

    /// Returns the id of the last received entry, or of the start of the subscription.
    pub fn place(&self) -> Id {
        self.place
    }

    /// Returns the furthest entry ever received, if the place now lies before it.
    pub fn furthest(&self) -> Option<Id> {
        Some(self.furthest).filter(|&furthest| furthest > self.place)
    }

    /// Returns whether a gap is to be reported.
    pub fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// Takes the gap to be reported.
    pub fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take()
    }

    /// Advances past a received entry.
    pub fn pass(&mut self, id: Id) {
        self.place = id;
        self.furthest = self.furthest.max(id);
        self.read = self.read.map(|read| read.saturating_add(1));
    }

    /// Counts `missed` entries that the publisher's numbers show as missing: they are reported already, and the
    /// server's count must not report them again.
    pub fn miss(&mut self, missed: u64) {
        self.read = self.read.map(|read| read.saturating_add(missed));
        self.doubtful = self.doubtful.saturating_add(missed);
    }

    /// Returns whether a stream of `length` entries may have lost unread ones, given that `gone` were gone before;
    /// `gone` is none if the server does not count.
    pub fn may_lack(&self, length: u64, gone: Option<u64>) -> bool {
        length == 0 || gone.is_some_and(|gone| length < self.surely_read().saturating_sub(gone))
    }

    /// Compares with the server's count, over an unbroken connection.
    pub fn count(&mut self, now: &Extent) -> Result<(), Anew> {
        // If everything up to the place is gone, at least as many entries are gone as were read.
        let lacks_some = now.lies_behind(self.place) && now.gone().is_some_and(|gone| gone < self.surely_read());
        if now.last < self.place || self.has_more_than(now) || lacks_some {
            return Err(Anew);
        }
        self.take_count(now);
        Ok(())
    }

    /// Returns the position at which the subscription resumes on this server: after the last received entry wherever
    /// that is possible, and at the beginning only of a stream that is certainly another one.
    pub fn resumed(&self, found: Found) -> Self {
        let has_kept_all = match self.server.kept(found.run.as_ref()) {
            Kept::All => true,
            // If something differs, an older copy of the disk is more likely than another stream.
            Kept::Disk => !found.has_furthest && found.extent.is_some_and(|now| !self.is_anew(&now, &found)),
            Kept::Unknown => false,
        };
        let mut next = Self { server: Witness::of(found.run.clone()), ..self.clone() };
        match found.extent {
            None => {
                next.stand(Id::START, Some(0));
                if has_kept_all {
                    next.furthest = Id::START;
                }
            }
            Some(now) if has_kept_all && self.is_anew(&now, &found) => {
                next.stand(Id::START, now.gone());
                next.furthest = Id::START;
            }
            Some(now) if has_kept_all && self.has_more_than(&now) => next.stand(self.place, now.count_to(self.place)),
            // Trimmed up to there, or further, or another stream: a server that does not count cannot show which.
            Some(now)
                if has_kept_all
                    && now.added.is_none()
                    && !found.has_place
                    && self.place != Id::START
                    && now.first.is_some_and(|first| first > self.place) =>
            {
                next.stand(self.place, None);
            }
            Some(now) if has_kept_all => next.take_count(&now),
            // The data from before the server went back has been recovered.
            Some(now) if found.has_furthest => next.stand(self.furthest, now.count_to(self.furthest)),
            // The server went back behind the place: its last entry was received already.
            Some(now) if now.last < self.place => next.stand(now.last, now.added),
            Some(now) => next.stand(self.place, now.count_to(self.place)),
        }
        next
    }

    /// Moves to a place that may not be right after the last received entry, and notes the gap.
    fn stand(&mut self, place: Id, read: Option<u64>) {
        self.place = place;
        self.furthest = self.furthest.max(place);
        (self.read, self.doubtful, self.gap) = (read, 0, Some(Gap::Reconnected));
    }

    /// Returns whether more entries were read than the stream ever had.
    fn has_more_than(&self, now: &Extent) -> bool {
        now.added.is_some_and(|added| self.surely_read() > added)
    }

    fn surely_read(&self) -> u64 {
        self.read.map_or(0, |read| read.saturating_sub(self.doubtful))
    }

    /// Returns whether a server that never went back has another stream of this name: the last received entry is
    /// neither there, nor trimmed, nor deleted by its id.
    fn is_anew(&self, now: &Extent, found: &Found) -> bool {
        if found.is_another {
            return true;
        }
        if found.has_place || self.place == Id::START || now.deleted >= self.place {
            return false;
        }
        // Trimming starts at the oldest entry.
        let is_trimmed = now.gone().is_none_or(|gone| now.lies_behind(self.place) && gone >= self.surely_read());
        now.last < self.place || self.has_more_than(now) || !is_trimmed
    }

    /// Notes the entries that are gone and were not read.
    fn take_count(&mut self, now: &Extent) {
        let is_all = now.last == self.place;
        // If the last entry was read, the count is exact; else only the entries trimmed from the beginning are known.
        let there = if is_all { now.added } else { now.gone() };
        match (there, self.read) {
            (Some(there), Some(read)) if there > read => {
                (self.read, self.doubtful) = (Some(there), 0);
                self.gap = Some(match self.gap {
                    Some(Gap::Reconnected) => Gap::Reconnected,
                    Some(Gap::Missed(untold)) => Gap::Missed(untold.saturating_add(there - read)),
                    None => Gap::Missed(there - read),
                });
            }
            // It is unknown how many of the trimmed entries were read.
            (Some(gone), None) if !is_all && now.lies_behind(self.place) => {
                (self.read, self.doubtful) = (Some(gone), 0);
                if gone > 0 {
                    self.gap = Some(Gap::Reconnected);
                }
            }
            (Some(added), _) if is_all => (self.read, self.doubtful) = (Some(added), 0),
            // A server that does not count had entries after the place, or in a stream that did not exist, and has none
            // now.
            (None, read)
                if now.first.is_none() && now.last > self.place && (read.is_some() || self.place != Id::START) =>
            {
                self.stand(now.last, None);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stream with entries of these milliseconds, of which `gone` earlier ones are gone.
    fn stream(first: u64, last: u64, gone: u64) -> Extent {
        Extent {
            first: Some(Id::new(first, 0)),
            last: Id::new(last, 0),
            length: last + 1 - first,
            added: Some(gone + last + 1 - first),
            deleted: Id::START,
        }
    }

    /// Returns a subscription that has read `read` entries, the last one of this millisecond, on a server of this mark.
    fn progress(place: u64, read: u64, mark: u64) -> Progress {
        let token = ResumeToken::new(TOKEN, [place, 0, read, mark], &OriginTracker::default());
        Progress::after(&token).unwrap().0
    }

    fn run() -> Run {
        Run::example("a")
    }

    /// Returns the place, the number of read entries and the gap to be reported.
    fn state(progress: &Progress) -> (u64, Option<u64>, Option<Gap>) {
        (progress.place.numbers()[0], progress.read, progress.gap)
    }

    #[test]
    fn it_goes_on_behind_what_came_unless_the_stream_is_another_one() {
        const RECONNECTED: Option<Gap> = Some(Gap::Reconnected);
        let (kept, disk, lost) = (run().mark(), u64::from(run().mark() as u32), 0);
        let deleted = |extent: Extent, ms| Extent { deleted: Id::new(ms, 0), ..extent };
        let old = |extent: Extent| Extent { added: None, ..extent };
        for (what, mark, extent, has_place, expected) in [
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
            let found = Found { run: Some(run()), extent, has_place, is_another: false, has_furthest: false };
            assert_eq!(state(&progress(10, 10, mark).resumed(found)), expected, "{what}");
        }
    }

    #[test]
    fn an_entry_that_never_came_at_its_place_is_another_streams_also_where_nothing_is_counted() {
        let old = Extent { added: None, ..stream(1, 20, 0) };
        for (extent, read) in [(stream(1, 20, 0), Some(0)), (old, None)] {
            let found = Found {
                run: Some(run()),
                extent: Some(extent),
                has_place: false,
                is_another: true,
                has_furthest: false,
            };
            let resumed = progress(10, 10, run().mark()).resumed(found);
            assert_eq!(state(&resumed), (0, read, Some(Gap::Reconnected)));
        }
    }

    #[test]
    fn what_came_before_a_server_went_back_comes_not_again_when_it_has_it_again() {
        let found = |extent, has_furthest| Found {
            run: None,
            extent: Some(extent),
            has_place: true,
            is_another: false,
            has_furthest,
        };
        let back = progress(10, 10, 0).resumed(found(stream(1, 6, 0), false));
        assert_eq!((back.place, back.furthest()), (Id::new(6, 0), Some(Id::new(10, 0))));
        let (behind, _) = Progress::after(&back.token(&OriginTracker::default())).unwrap();
        assert_eq!(state(&behind.resumed(found(stream(1, 12, 0), false))), (10, None, Some(Gap::Reconnected)));
        let again = back.resumed(found(stream(1, 12, 0), true));
        assert_eq!((again.place, again.furthest()), (Id::new(10, 0), None));
        let other = back.resumed(found(stream(1, 12, 0), false));
        assert_eq!(other.place, Id::new(6, 0), "these ten are others");
        let lost =
            back.resumed(Found { run: None, extent: None, has_place: false, is_another: false, has_furthest: false });
        assert_eq!(lost.resumed(found(stream(1, 12, 0), true)).place, Id::new(10, 0));
        let early = Found { run: Some(run()), has_place: false, ..found(stream(1, 6, 0), false) };
        let older = progress(10, 10, u64::from(run().mark() as u32)).resumed(early);
        let late = Found { run: Some(Run::example("b")), ..found(stream(1, 12, 0), true) };
        assert_eq!(older.resumed(late).place, Id::new(10, 0), "the newer copy of its disk");
    }

    #[test]
    fn a_count_tells_what_is_missing_once() {
        let mut reader = progress(10, 10, 0);
        // The numbers show four, of which one was never added.
        reader.miss(4);
        reader.pass(Id::new(14, 0));
        assert_eq!(reader.count(&stream(14, 14, 13)), Ok(()));
        assert_eq!(state(&reader), (14, Some(14), None), "all is read that was ever added");
        assert_eq!(reader.count(&stream(20, 24, 19)), Ok(()));
        assert_eq!(reader.count(&stream(22, 24, 21)), Ok(()));
        assert_eq!(state(&reader), (14, Some(21), Some(Gap::Missed(7))), "what is not told yet adds up");
        for anew in [stream(30, 31, 0), stream(30, 59, 0), stream(1, 9, 30)] {
            assert_eq!(reader.count(&anew), Err(Anew), "{anew:?}");
        }
    }

    #[test]
    fn where_nobody_knows_what_was_read_a_loss_is_told_and_counted_from_there() {
        let old = Extent { added: None, ..stream(15, 20, 14) };
        for (what, now, expected) in [
            ("nothing is trimmed", stream(1, 20, 0), (10, None, None)),
            ("trimmed past it", stream(15, 20, 14), (10, Some(14), Some(Gap::Reconnected))),
            ("nothing was ever there", stream(11, 20, 0), (10, Some(0), None)),
            ("all is read", stream(8, 10, 7), (10, Some(10), None)),
            ("an old server", old, (10, None, None)),
        ] {
            let mut reader = progress(10, UNKNOWN, 0);
            assert_eq!(reader.count(&now), Ok(()), "{what}");
            assert_eq!(state(&reader), expected, "{what}");
        }
        let disk = u64::from(run().mark() as u32);
        let further = Found {
            run: Some(run()),
            extent: Some(stream(1, 20, 0)),
            has_place: false,
            is_another: false,
            has_furthest: false,
        };
        assert_eq!(state(&progress(10, UNKNOWN, disk).resumed(further)), (10, None, Some(Gap::Reconnected)));
        let mut reader = progress(10, UNKNOWN, 0);
        for (now, gap) in [(stream(15, 20, 14), Gap::Reconnected), (stream(17, 20, 16), Gap::Missed(2))] {
            assert_eq!(reader.count(&now), Ok(()));
            assert_eq!(reader.take_gap(), Some(gap));
        }
    }

    #[test]
    fn what_may_be_gone_unread_shows_in_the_length() {
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
            assert_eq!(reader.may_lack(length, gone), may_lack, "{length} are there, {gone:?} were gone");
        }
        assert!(!progress(10, UNKNOWN, 0).may_lack(1, Some(4)));
    }

    #[test]
    fn of_a_server_that_does_not_count_an_end_that_moved_is_a_loss_where_nothing_is_there() {
        let none = |last| Extent { first: None, last: Id::new(last, 0), length: 0, added: None, deleted: Id::START };
        for (place, read, last, expected) in [
            (10, 10, 15, (15, None, Some(Gap::Reconnected))),
            (10, UNKNOWN, 15, (15, None, Some(Gap::Reconnected))),
            (10, 10, 10, (10, Some(10), None)),
            // The stream did not exist, and the stream existed and was empty.
            (0, 0, 15, (15, None, Some(Gap::Reconnected))),
            (0, UNKNOWN, 15, (0, None, None)),
        ] {
            let mut reader = progress(place, read, 0);
            assert_eq!(reader.count(&none(last)), Ok(()));
            assert_eq!(state(&reader), expected, "{read} read up to {place}, and the end is {last}");
        }
    }

    #[test]
    fn a_token_lies_before_a_gap_that_is_not_told() {
        let tracker = OriginTracker::default();
        let mark = run().mark();
        let mut reader = progress(10, 10, mark);
        let before = reader.token(&tracker);
        reader.count(&stream(15, 20, 14)).unwrap();
        assert_eq!(reader.token(&tracker), before);
        assert_eq!(reader.take_gap(), Some(Gap::Missed(4)));
        assert_eq!(reader.token(&tracker), ResumeToken::new(TOKEN, [10, 0, 14, mark], &tracker));
        let found = Found { run: Some(run()), extent: None, has_place: false, is_another: false, has_furthest: false };
        let mut lost = reader.resumed(found.clone());
        let (again, _) = Progress::after(&lost.token(&tracker)).unwrap();
        assert_eq!(again.resumed(found).take_gap(), Some(Gap::Reconnected));
        assert_eq!(lost.take_gap(), Some(Gap::Reconnected));
        assert_eq!(lost.token(&tracker), ResumeToken::new(TOKEN, [0, 0, 0, mark], &tracker));
    }
}
