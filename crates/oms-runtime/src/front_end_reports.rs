//! Reports to the sessions without lanes: the history, which the front end reads, and the reports that wait for the
//! disk in front of it.

use std::collections::VecDeque;

use tickpath_clock::Clock;
use tickpath_oms_core::{DetailRecord, Output};
use tickpath_oms_journal::history::{History, HistoryIndex};
use tickpath_oms_journal::{JournalError, NextNumbers};

use crate::outbound::PendingOutput;

/// Waker of a sleeping front end.
pub type FrontEndWaker = Box<dyn Fn() + Send + Sync>;

/// Message to a session without lanes.
#[derive(Clone, Copy)]
pub(crate) enum SessionMessage {
    /// Report or denial.
    Report(Output),
    /// Detail of a report.
    Detail(DetailRecord),
}

impl SessionMessage {
    /// Appends the message to the history.
    pub fn append_to(&self, history: &mut History, stamp: u64) -> Result<(), JournalError> {
        match self {
            Self::Report(output) => history.append(stamp, output),
            Self::Detail(record) => history.append_detail(stamp, record),
        }
    }
}

/// Report log of the sessions without lanes.
#[derive(Default)]
pub(crate) struct FrontEndReports {
    pub history: Option<History>,
    held: VecDeque<PendingOutput<SessionMessage>>,
    /// `None` for a front end that never sleeps.
    pub waker: Option<FrontEndWaker>,
}

impl FrontEndReports {
    /// Wakes the front end if it sleeps, because there may be new reports.
    #[inline]
    pub fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker();
        }
    }

    /// Returns whether a report may be published at once: nothing is held.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.held.is_empty()
    }

    /// Publishes a report, ahead of which nothing of its level is held. Without a history the session was removed, and
    /// receives nothing.
    #[inline]
    pub fn publish(&mut self, stamp: u64, output: &Output) -> Result<(), JournalError> {
        match &mut self.history {
            Some(history) => history.append(stamp, output),
            None => Ok(()),
        }
    }

    /// Publishes the detail of a report, ahead of which nothing of its level is held.
    pub fn publish_detail(&mut self, stamp: u64, record: &DetailRecord) -> Result<(), JournalError> {
        match &mut self.history {
            Some(history) => history.append_detail(stamp, record),
            None => Ok(()),
        }
    }

    /// Holds a report or a detail until it is durable. Returns the number of messages that this has added: none without
    /// a history.
    pub fn hold(&mut self, report: PendingOutput<SessionMessage>) -> usize {
        if self.history.is_none() {
            return 0;
        }
        self.held.push_back(report);
        1
    }

    /// Publishes the held reports that are durable by now. Returns their number.
    pub fn release_held(&mut self, synced: u64, disk_failed: bool, clock: &impl Clock) -> Result<usize, JournalError> {
        let Some(history) = &mut self.history else { return Ok(0) };
        let mut done = 0;
        while let Some(held) = self.held.pop_front_if(|held| held.may_leave(synced, disk_failed)) {
            held.output.append_to(history, clock.ticks())?;
            done += 1;
        }
        Ok(done)
    }

    /// Begins the reports of the next day, whose journal log begins with this record.
    pub fn begin_day(&mut self, first: u64) -> Result<(), JournalError> {
        self.history.as_mut().map_or(Ok(()), |history| history.begin_day(first))
    }

    /// Returns the index by which the history is read; `None` without a history.
    pub fn index(&self) -> Option<HistoryIndex> {
        self.history.as_ref().map(History::index)
    }

    /// Returns the numbers of each session's next report and detail; none without a history.
    pub fn next_numbers(&self) -> Option<&NextNumbers> {
        self.history.as_ref().map(History::next_numbers)
    }

    /// Returns the number of bytes in the last segment of the history; `None` without a history.
    pub fn offset(&self) -> Option<u64> {
        self.history.as_ref().map(History::offset)
    }
}
