//! Catch-up: a client that lacks reports, or reads them too slowly, is sent them from the history.
//!
//! One client has a turn at a time, and the rest of the thread's time between two turns belongs to all others.

use tickpath_clock::Clock;
use tickpath_oms_runtime::OmsError;
use tickpath_oms_runtime::front::Take;

use super::connection::{End, Hears};
use super::gateway::{Gateway, get, mark};

/// Max frames of the history read per turn.
const READ_TURN: usize = 256;
/// Rest between two turns, in durations of the turn before: catch-up gets at most a quarter of the thread, however many
/// clients ask for their whole day.
const READ_REST: u64 = 3;

impl<C: Clock> Gateway<C> {
    /// Gives a turn to the client that has waited longest to catch up. Returns how many clients had one.
    pub(super) fn read_on(&mut self, take: &mut impl Take) -> Result<usize, OmsError> {
        if self.reading.is_empty() {
            return Ok(0);
        }
        let from = self.clock.ticks();
        if from < self.read_at {
            return Ok(0);
        }
        let Some(place) = self.reading.pop_front() else { return Ok(0) };
        if let Err(end) = self.read_turn(place) {
            self.end(place, end, take)?;
        }
        let to = self.clock.ticks();
        self.read_at = to + READ_REST * to.saturating_sub(from);
        Ok(1)
    }

    /// Sends a client the next reports of the history, as far as its buffer has room, or makes it live again.
    fn read_turn(&mut self, place: usize) -> Result<(), End> {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(()) };
        if matches!(connection.hears, Hears::Live) || !connection.has_room() {
            return Ok(());
        }
        let mut here = match std::mem::replace(&mut connection.hears, Hears::Reading(None)) {
            Hears::Reading(Some(reading)) => reading,
            Hears::Reading(None) | Hears::Live => match self.marks.read(connection.session, connection.next_report) {
                Ok(reading) => Box::new(reading),
                Err(e) => return Err(End::Ended(format!("the history cannot be read: {e}"))),
            },
        };
        let more = here.turn(READ_TURN, |report| {
            if report.number >= connection.next_report {
                connection.report(report);
            }
            connection.has_room()
        });
        match more {
            Ok(true) => connection.hears = Hears::Reading(Some(here)),
            // Reports of the history that are not live yet are sent live later.
            Ok(false) if connection.next_report >= get(&self.next_report, connection.session) => {
                connection.hears = Hears::Live;
            }
            Ok(false) => {
                // No log has the reports that an archived day lacks: the client counts them as a gap.
                if let Some(end) = here.end() {
                    connection.next_report = connection.next_report.max(end);
                }
                connection.hears = Hears::Reading(None);
            }
            Err(e) => return Err(End::Ended(format!("the history cannot be read: {e}"))),
        }
        connection.flush()?;
        mark(&mut self.unfinished, place);
        Ok(())
    }
}
