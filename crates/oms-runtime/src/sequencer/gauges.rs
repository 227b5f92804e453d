//! Levels of the OMS for the readers of its counters.

use tickpath_clock::Clock;
use tickpath_oms_journal::meter::GaugeValues;

use super::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Publishes the current levels to the readers of the counters.
    pub(crate) fn publish_gauges(&mut self) {
        let levels = self.current_gauges();
        if let Some(meter) = &mut self.meter {
            meter.update_gauges(&levels, &self.notices.by_kind, &self.core);
        }
    }

    /// Returns the levels that the counters show beside requests and reports.
    pub(crate) fn current_gauges(&self) -> GaugeValues {
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
            ("strangers", counts.unknown_order_reports),
            ("mismatched", counts.mismatched),
            ("contradictions", counts.contradictions),
            ("malformed", counts.malformed),
            ("ignored", counts.ignored),
            ("refused", self.invalid_messages),
            ("held", self.held() as u64),
            ("disk_failed", self.has_disk_failed().into()),
            ("journal_records", tail.sequence),
            ("journal_bytes", self.journal.bytes()),
        ]
    }

    /// Publishes the number of sessions that are logged in.
    pub fn note_sessions(&mut self, sessions: u64) {
        if let Some(meter) = &mut self.meter {
            meter.set_sessions(sessions);
        }
    }
}
