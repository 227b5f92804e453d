//! How much there is of everything, for whoever reads the counters.

use tickpath_clock::Clock;
use tickpath_meter::Levels;

use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Writes down how much there is of everything, for whoever reads the counters.
    pub(crate) fn look_at_levels(&mut self) {
        let levels = self.levels_now();
        if let Some(meter) = &mut self.meter {
            meter.look(&levels, self.notices.by_kind(), &self.core);
        }
    }

    /// What whoever reads the counters is told beside requests and reports.
    pub(crate) fn levels_now(&self) -> Levels {
        let (counts, tail) = (self.core.counts(), self.journal.tail());
        [
            ("queued", counts.queued),
            ("sending", counts.sending),
            ("working", counts.working),
            ("done", counts.done),
            ("rejected", counts.rejected),
            ("withdrawn", counts.withdrawn),
            ("unknown", counts.unknown),
            ("denied_requests", counts.denied_requests),
            ("duplicates", counts.duplicates),
            ("strangers", counts.strangers),
            ("mismatched", counts.mismatched),
            ("contradictions", counts.contradictions),
            ("malformed", counts.malformed),
            ("ignored", counts.ignored),
            ("refused", self.refused),
            ("held", self.held as u64),
            ("disk_failed", self.disk_failed.into()),
            ("journal_records", tail.sequence),
            ("journal_bytes", self.journal.bytes()),
        ]
    }

    /// Says how many sessions are logged in.
    pub fn note_sessions(&mut self, sessions: u64) {
        if let Some(meter) = &mut self.meter {
            meter.sessions(sessions);
        }
    }
}
