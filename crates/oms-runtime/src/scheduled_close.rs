//! Ends the trading day when the calendar says so: with the name of its local date, by the path of the admin command.
//!
//! A start that comes after an end of the calendar ends the day at once. Several missed days end as one, under the name
//! of the last: the journal has one day open at a time.

use tickpath_clock::Clock;
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_journal::journal::time_of;
use zerocopy::IntoBytes;

use crate::OmsError;
use crate::calendar::{Calendar, DayClose, DaySchedule};
use crate::notice::Notice;
use crate::sequencer::Sequencer;

/// Nanoseconds between two attempts to end a day whose end was refused.
const RETRY_NS: u64 = 60_000_000_000;
/// Nanoseconds behind the calendar from which an end counts as missed.
const LATE_NS: u64 = 60_000_000_000;

impl<C: Clock> Sequencer<C> {
    /// Ends each trading day by this calendar from now on, and ends at once the day whose end has passed while no OMS
    /// ran.
    pub fn set_calendar(&mut self, calendar: Calendar) -> Result<(), OmsError> {
        // Time of the record behind the log's first one, whose stamp is that of the calibration.
        let first = self.journal.log().first_sequence() + 1;
        let began_ns = time_of(&self.journal_place(), first).unwrap_or_else(|| self.utc_ns());
        self.day_schedule = DaySchedule { calendar: Some(calendar), began_ns, next_check_ns: 0, refused: 0 };
        self.end_due_day()?;
        Ok(())
    }

    /// Ends the day if the calendar says that it is over. Returns the number of attempted ends.
    pub(crate) fn end_due_day(&mut self) -> Result<usize, OmsError> {
        let Some(calendar) = &self.day_schedule.calendar else { return Ok(0) };
        let now_ns = self.utc_ns();
        // A later start would not know the part of a day's end that a failed disk holds.
        if now_ns < self.day_schedule.next_check_ns || self.disk_failed {
            return Ok(0);
        }
        let next_ns = calendar.next_close(now_ns).map_or(u64::MAX, |close| close.utc_ns);
        // A last day in the future was named by mistake, and blocks no other day.
        let last_day = if self.last_day > calendar.today(now_ns) { 0 } else { self.last_day };
        let is_due =
            |close: &DayClose| close.day > last_day && (self.last_day > 0 || close.utc_ns > self.day_schedule.began_ns);
        let Some(close) = calendar.last_close(now_ns).filter(is_due) else {
            self.day_schedule.next_check_ns = next_ns;
            return Ok(0);
        };
        let end = DayEnd { day: close.day, ..DayEnd::default() };
        match self.accept_command(self.clock.ticks(), RecordKind::DayEnd.code(), end.as_bytes())? {
            Ok(_) => {
                let is_late = now_ns.saturating_sub(close.utc_ns) > LATE_NS;
                self.notices.add(Notice::DayEnded { day: close.day, is_late });
                self.day_schedule.next_check_ns = next_ns;
            }
            Err(why) => {
                if self.day_schedule.refused != close.day {
                    self.notices.add(Notice::DayNotEnded { day: close.day, why: why.to_string() });
                }
                (self.day_schedule.refused, self.day_schedule.next_check_ns) = (close.day, now_ns + RETRY_NS);
            }
        }
        Ok(1)
    }

    fn utc_ns(&self) -> u64 {
        self.clock.calibration().utc_ns_of(self.clock.ticks())
    }
}
