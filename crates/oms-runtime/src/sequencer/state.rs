//! The sequencer's state as its callers see it.

use tickpath_clock::Clock;
use tickpath_log::LogPath;
use tickpath_market::SymbolId;
use tickpath_oms_core::{Core, CoreCounts, Instrument};
use tickpath_oms_journal::commit::{GroupCommit, ManualCommit};
use tickpath_oms_journal::history::HistoryIndex;
use tickpath_oms_journal::{JournalError, NextNumbers};

use super::Sequencer;
use crate::OmsError;
use crate::notice::Notice;

impl<C: Clock> Sequencer<C> {
    /// Returns the numbers of orders by state, and of alarms.
    pub fn counts(&self) -> CoreCounts {
        self.core.counts()
    }

    /// Returns the number of requests that wait for a venue.
    pub fn queued(&self) -> usize {
        self.release.venues.numbers().map(|venue| self.core.waiting(venue)).sum()
    }

    /// Returns the number of held outputs, which wait for the disk or behind an output that does.
    pub fn held(&self) -> usize {
        self.release.held()
    }

    /// Returns the number of invalid messages on the lanes: dropped, counted, never journaled.
    pub fn invalid_messages(&self) -> u64 {
        self.invalid_messages
    }

    /// Returns the last notices to the operator.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.notices.list.iter()
    }

    /// Returns the number of all notices so far, also of those that are no longer kept.
    pub fn notice_count(&self) -> u64 {
        self.notices.count
    }

    /// Returns the index by which the history is read; `None` without a history.
    pub fn history_index(&self) -> Option<HistoryIndex> {
        self.release.front_end.index()
    }

    /// Returns the number of the next report of each session in the history; empty without a history.
    pub fn next_reports(&self) -> Vec<u64> {
        self.next_numbers().reports
    }

    /// Returns the numbers of the next report and of the next detail of each session in the history; empty without a
    /// history.
    pub fn next_numbers(&self) -> NextNumbers {
        self.release.front_end.next_numbers().cloned().unwrap_or_default()
    }

    /// Returns the journal's id.
    pub fn journal_id(&self) -> u64 {
        self.journal.id()
    }

    /// Returns the place of the journal's log.
    pub fn journal_place(&self) -> LogPath {
        self.journal.log().path().clone()
    }

    /// Returns the number of records in the journal.
    pub fn records(&self) -> u64 {
        self.journal.tail().sequence
    }

    /// Returns the number of venues that are up, and the number of all venues.
    pub fn venues_up(&self) -> (usize, usize) {
        let venues = &self.release.venues;
        (venues.configured().filter(|&venue| self.core.is_up(venue)).count(), venues.configured().count())
    }

    /// Returns whether any venue is reached by lines.
    pub(crate) fn has_lines(&self) -> bool {
        self.release.venues.line_count() > 0
    }

    /// Returns whether any line is down, but not yet for so long that its requests are in doubt.
    pub fn awaits_lines(&mut self) -> bool {
        self.release.venues.awaits_lines()
    }

    /// Returns whether the journal's disk has failed.
    pub fn has_disk_failed(&self) -> bool {
        self.release.durability.disk_failed
    }

    /// Returns the clock that stamps the inputs.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the core, for queries.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the instruments that can be traded now, from this number on, by ascending number.
    pub fn instruments_from(&self, first: SymbolId) -> impl Iterator<Item = &Instrument> {
        self.definitions.instruments_from(first)
    }

    /// Replaces the commit thread by a handle that commits on demand, for simulations. Must be called before the first
    /// input.
    pub fn commit_manually(&mut self) -> Result<ManualCommit, OmsError> {
        let (commit, handle) = GroupCommit::manual(self.journal.log()).map_err(JournalError::Disk)?;
        self.release.durability.commit = Some(commit);
        Ok(handle)
    }
}
