//! Catch-up: a client that lacks reports, or reads them too slowly, is sent them from the history.
//!
//! One client has a turn at a time, and the rest of the thread's time between two turns belongs to all others.

use std::collections::VecDeque;
use std::fmt::Display;

use super::connection::{ClientConnection, DisconnectReason, ReportPosition, ReportSource};
use super::report_feed::ReportFeed;

/// Max frames of the history read per turn.
const MAX_CATCH_UP_FRAMES: usize = 256;
/// Rest between two turns, in durations of the turn before, so that catch-up gets at most a quarter of the thread.
const REST_FACTOR: u64 = 3;

/// Connections that catch up from the history, by slot, the longest waiting first.
pub(super) struct CatchUpQueue {
    waiting: VecDeque<usize>,
    next_at: u64,
}

impl CatchUpQueue {
    pub fn new(now: u64) -> Self {
        Self { waiting: VecDeque::new(), next_at: now }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn push(&mut self, slot: usize) {
        if !self.waiting.contains(&slot) {
            self.waiting.push_back(slot);
        }
    }

    /// Takes the connection whose turn begins now; none if none waits, or before the end of the rest.
    pub fn begin_turn(&mut self, now: u64) -> Option<usize> {
        if now < self.next_at { None } else { self.waiting.pop_front() }
    }

    /// Ends a turn, with its begin and end in ticks: the rest follows.
    pub fn end_turn(&mut self, began: u64, ended: u64) {
        self.next_at = ended + REST_FACTOR * ended.saturating_sub(began);
    }
}

/// Sends a client more of the history, or makes it live again. Returns whether the client had a turn.
pub(super) fn send_history(connection: &mut ClientConnection, reports: &ReportFeed) -> Result<bool, DisconnectReason> {
    let ClientConnection { reports: ReportPosition { next: next_report, source }, output, session, .. } = connection;
    let ReportSource::History(reader) = source else { return Ok(false) };
    if !output.has_room() {
        return Ok(false);
    }
    let reader = match reader {
        Some(reader) => reader,
        None => reader.insert(Box::new(reports.read(*session, *next_report).map_err(unreadable)?)),
    };
    let has_more = reader.read_frames(MAX_CATCH_UP_FRAMES, |report| {
        if report.number >= *next_report {
            output.write_report(report);
            *next_report = report.number + 1;
        }
        output.has_room()
    });
    if !has_more.map_err(unreadable)? {
        // Reports of the history that are not live yet are sent live later.
        let is_live = *next_report >= reports.next(*session);
        if !is_live && let Some(end) = reader.end() {
            // No log has the reports that an archived day lacks: the client counts them as a gap.
            *next_report = (*next_report).max(end);
        }
        *source = if is_live { ReportSource::Live } else { ReportSource::History(None) };
    }
    connection.flush()?;
    Ok(true)
}

fn unreadable(reason: impl Display) -> DisconnectReason {
    DisconnectReason::ByServer(format!("the history cannot be read: {reason}"))
}
