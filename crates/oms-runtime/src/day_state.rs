//! The trading day of a sequencer: which day ended last, and when the calendar ends the next one.

use tickpath_clock::utc_day;
use tickpath_oms_core::DayEnd;

use crate::calendar::{Calendar, DayClose};
use crate::command_error::CommandError;

/// Nanoseconds between two attempts to end a day whose end was refused.
const RETRY_NS: u64 = 60_000_000_000;

/// State of the current trading day, and the calendar by which days end. Times are nanoseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(crate) struct DayState {
    /// The last day that ended by name, as 20261122; zero before the first.
    last_ended: u32,
    /// `None` if no calendar ends the days.
    pub calendar: Option<Calendar>,
    /// Start of the journal's log, for a journal without a named day: earlier ends are not its own.
    began_ns: u64,
    next_check_ns: u64,
    /// The day whose end was refused and reported to the operator.
    refused: u32,
    /// Whether the operator was notified today that reports of unknown orders are dropped.
    pub notified_unknown_orders: bool,
}

impl DayState {
    /// Notes the end of a day. A day of zero has no name, and leaves the name of the last day.
    pub fn note_end(&mut self, day: u32) {
        if day > 0 {
            self.last_ended = day;
        }
    }

    /// Sets the calendar, for a journal whose log began at this time.
    pub fn set_calendar(&mut self, calendar: Calendar, began_ns: u64) {
        (self.calendar, self.began_ns) = (Some(calendar), began_ns);
        (self.next_check_ns, self.refused) = (0, 0);
    }

    /// Checks that a day may end under its name; a day of zero has no name, and passes.
    pub fn check(&self, end: &DayEnd, now_ns: u64) -> Result<(), CommandError> {
        let calendar = self.calendar.as_ref();
        let today = calendar.map_or_else(|| utc_day(now_ns), |calendar| calendar.today(now_ns));
        match (end.day, self.last_ended) {
            (0, _) => Ok(()),
            // A last day in the future was named by mistake, and blocks no other day.
            (day, last) if day <= last && last <= today => Err(CommandError::DayEnded { day, last }),
            (day, _) if day > today => {
                let zone = calendar.map_or("UTC", |calendar| calendar.zone.name.as_str()).to_owned();
                Err(CommandError::DayAhead { day, today, zone })
            }
            _ => Ok(()),
        }
    }

    /// Returns the end of a day that is over by the calendar and has not ended yet.
    pub fn due_close(&mut self, now_ns: u64) -> Option<DayClose> {
        let calendar = self.calendar.as_ref().filter(|_| now_ns >= self.next_check_ns)?;
        // A last day in the future was named by mistake, and blocks no other day.
        let last_day = if self.last_ended > calendar.today(now_ns) { 0 } else { self.last_ended };
        let is_due = |close: &DayClose| close.day > last_day && (self.last_ended > 0 || close.utc_ns > self.began_ns);
        let due = calendar.last_close(now_ns).filter(is_due);
        if due.is_none() {
            self.await_next_close(now_ns);
        }
        due
    }

    /// Sets the next check to the calendar's next end of a day.
    pub fn await_next_close(&mut self, now_ns: u64) {
        let next = self.calendar.as_ref().and_then(|calendar| calendar.next_close(now_ns));
        self.next_check_ns = next.map_or(u64::MAX, |close| close.utc_ns);
    }

    /// Notes that the end of a day was refused, which is tried again. Returns whether this is news to the operator.
    pub fn note_refusal(&mut self, day: u32, now_ns: u64) -> bool {
        let is_news = self.refused != day;
        (self.refused, self.next_check_ns) = (day, now_ns + RETRY_NS);
        is_news
    }

    /// Notes that a report of an unknown order is dropped. Returns whether the operator is to be notified, once a day.
    pub fn note_unknown_order(&mut self) -> bool {
        !std::mem::replace(&mut self.notified_unknown_orders, true)
    }
}
