//! Catch-up: a client that lacks reports, or reads them too slowly, is sent them from the history.
//!
//! One client has a turn at a time, and the rest of the thread's time between two turns belongs to all others.

use tickpath_clock::Clock;
use tickpath_oms_runtime::OmsError;
use tickpath_oms_runtime::front_end::InputSink;

use super::connection::{DisconnectReason, ReportSource};
use super::gateway::{Gateway, mark, next_number};

/// Max frames of the history read per turn.
const MAX_CATCH_UP_FRAMES: usize = 256;
/// Rest between two turns, in durations of the turn before: catch-up gets at most a quarter of the thread, however many
/// clients ask for their whole day.
const REST_FACTOR: u64 = 3;

impl<C: Clock> Gateway<C> {
    /// Gives a turn to the client that has waited longest to catch up. Returns how many clients had one.
    pub(super) fn catch_up(&mut self, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        if self.catching_up.is_empty() {
            return Ok(0);
        }
        let from = self.clock.ticks();
        if from < self.catch_up_at {
            return Ok(0);
        }
        let Some(place) = self.catching_up.pop_front() else { return Ok(0) };
        if let Err(end) = self.catch_up_client(place) {
            self.disconnect(place, end, sink)?;
        }
        let to = self.clock.ticks();
        self.catch_up_at = to + REST_FACTOR * to.saturating_sub(from);
        Ok(1)
    }

    /// Sends a client the next reports of the history, as far as its buffer has room, or makes it live again.
    fn catch_up_client(&mut self, place: usize) -> Result<(), DisconnectReason> {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(()) };
        if matches!(connection.source, ReportSource::Live) || !connection.has_room() {
            return Ok(());
        }
        let mut here = match std::mem::replace(&mut connection.source, ReportSource::History(None)) {
            ReportSource::History(Some(reading)) => reading,
            ReportSource::History(None) | ReportSource::Live => {
                match self.history.read(connection.session, connection.next_report) {
                    Ok(reading) => Box::new(reading),
                    Err(e) => return Err(DisconnectReason::ByServer(format!("the history cannot be read: {e}"))),
                }
            }
        };
        let more = here.read_frames(MAX_CATCH_UP_FRAMES, |report| {
            if report.number >= connection.next_report {
                connection.report(report);
            }
            connection.has_room()
        });
        match more {
            Ok(true) => connection.source = ReportSource::History(Some(here)),
            // Reports of the history that are not live yet are sent live later.
            Ok(false) if connection.next_report >= next_number(&self.next_report, connection.session) => {
                connection.source = ReportSource::Live;
            }
            Ok(false) => {
                // No log has the reports that an archived day lacks: the client counts them as a gap.
                if let Some(end) = here.end() {
                    connection.next_report = connection.next_report.max(end);
                }
                connection.source = ReportSource::History(None);
            }
            Err(e) => return Err(DisconnectReason::ByServer(format!("the history cannot be read: {e}"))),
        }
        connection.flush()?;
        mark(&mut self.unfinished, place);
        Ok(())
    }
}
