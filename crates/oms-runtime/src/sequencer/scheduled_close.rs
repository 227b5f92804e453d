//! Ends the trading day at the time of the calendar: with the name of its local date, by the path of the admin command.
//!
//! A start that comes after an end of the calendar ends the day at once. Several missed days end as one, under the name
//! of the last: the journal has one day open at a time.

use tickpath_clock::Clock;
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_journal::journal::time_of;
use zerocopy::IntoBytes;

use super::Sequencer;
use crate::OmsError;
use crate::calendar::Calendar;
use crate::notice::Notice;

/// Nanoseconds behind the calendar from which an end counts as missed.
const LATE_NS: u64 = 60_000_000_000;

impl<C: Clock> Sequencer<C> {
    /// Ends each trading day by this calendar from now on, and ends at once the day whose end has passed while no OMS
    /// ran.
    pub fn set_calendar(&mut self, calendar: Calendar) -> Result<(), OmsError> {
        // Time of the second record: the first carries the calibration's stamp.
        let first = self.journal.log().first_sequence() + 1;
        let began_ns = time_of(&self.journal_place(), first).unwrap_or_else(|| self.utc_ns());
        self.day.set_calendar(calendar, began_ns);
        self.end_due_day()?;
        Ok(())
    }

    /// Ends the day if it is over by the calendar. Returns the number of attempted ends.
    pub(crate) fn end_due_day(&mut self) -> Result<usize, OmsError> {
        // A failed disk may lose a day's end, and the next start would not know of it.
        if self.day.calendar.is_none() || self.has_disk_failed() {
            return Ok(0);
        }
        let now_ns = self.utc_ns();
        let Some(close) = self.day.due_close(now_ns) else { return Ok(0) };
        let end = DayEnd { day: close.day, ..DayEnd::default() };
        match self.accept_command(self.clock.ticks(), RecordKind::DayEnd.code(), end.as_bytes())? {
            Ok(_) => {
                let is_late = now_ns.saturating_sub(close.utc_ns) > LATE_NS;
                self.notices.add(Notice::DayEnded { day: close.day, is_late });
                self.day.await_next_close(now_ns);
            }
            Err(why) if self.day.note_refusal(close.day, now_ns) => {
                self.notices.add(Notice::DayNotEnded { day: close.day, why: why.to_string() });
            }
            Err(_) => {}
        }
        Ok(1)
    }

    /// Returns the current time, in nanoseconds since the Unix epoch.
    pub(crate) fn utc_ns(&self) -> u64 {
        self.clock.calibration().utc_ns_of(self.clock.ticks())
    }
}
