//! Catch-up: a client that lacks reports, or reads them too slowly, is sent them from the history.
//!
//! One client has a turn at a time, and the rest of the thread's time between two turns belongs to all others.

use std::collections::VecDeque;
use std::fmt::Display;

use tickpath_oms_runtime::SessionPosition;

use super::connection::{ClientConnection, DetailPosition, DisconnectReason, ReportPosition, ReportSource};
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
    let ClientConnection { reports: position, output, session, .. } = connection;
    let (next, details) = (position.next, position.details);
    let ReportSource::History(reader) = &mut position.source else { return Ok(false) };
    if !output.has_room() {
        return Ok(false);
    }
    let mut reader = match reader.take() {
        Some(reader) => reader,
        None => Box::new(reports.read(*session, next, details).map_err(unreadable)?),
    };
    let has_more = reader.read_frames(MAX_CATCH_UP_FRAMES, |report| {
        // The reader passes details to those clients only that are sent details.
        if position.next_of(report).is_none_or(|next| report.number >= next) {
            output.write_report(report);
            position.note_sent(report);
        }
        output.has_room()
    });
    if has_more.map_err(unreadable)? {
        position.source = ReportSource::History(Some(reader));
    } else {
        end_reading(position, reader.end(), reports.next(*session));
    }
    connection.flush()?;
    Ok(true)
}

/// Makes a client live that has read a log of the history to its end, if the client has all up to the next live report;
/// an archived log ends where `end` is.
fn end_reading(position: &mut ReportPosition, end: Option<SessionPosition>, live: SessionPosition) {
    // Reports of the history that are not live yet are sent live later.
    let has_details = match position.details {
        DetailPosition::Next(next) => next >= live.detail,
        // No detail lies behind the last report.
        DetailPosition::Off | DetailPosition::Behind => true,
    };
    let is_live = position.next >= live.report && has_details;
    // No log has the reports that an archived day lacks: the client counts them as a gap.
    if !is_live && let Some(end) = end {
        position.next = position.next.max(end.report);
        position.details = match position.details {
            DetailPosition::Off => DetailPosition::Off,
            DetailPosition::Behind => DetailPosition::Next(end.detail),
            DetailPosition::Next(next) => DetailPosition::Next(next.max(end.detail)),
        };
    }
    if is_live && position.details == DetailPosition::Behind {
        position.details = DetailPosition::Next(live.detail);
    }
    position.source = if is_live { ReportSource::Live } else { ReportSource::History(None) };
}

fn unreadable(reason: impl Display) -> DisconnectReason {
    DisconnectReason::ByServer(format!("the history cannot be read: {reason}"))
}
