//! Trading days that end by a calendar: at a local time, on the weekdays that trade, except on holidays.
//!
//! A day bears its local date. If the clocks are put forward over the end time, which then does not exist, the day ends
//! at the instant that the clocks before the change would have shown: 02:30 becomes 03:30. If the clocks are put back
//! and the end time comes twice, the day ends at the first.

use std::iter::successors;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

/// Max dates that are searched for an end: a calendar without an end among them ends no day.
const MAX_DATES: usize = 2_000;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Rules for the ends of trading days.
#[derive(Debug, Clone)]
pub struct Calendar {
    /// The time zone of the end time.
    pub zone: Zone,
    /// The local time at which a day ends.
    pub end_time: EndTime,
    /// The weekdays that trade.
    pub weekdays: Weekdays,
    /// Dates that do not trade.
    pub holidays: Vec<Holiday>,
}

/// The end of a trading day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayClose {
    /// The day's local date, as 20261122.
    pub day: u32,
    /// The time of the end, in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
}

/// A time zone of the system's database, by its IANA name.
#[derive(Debug, Clone)]
pub struct Zone {
    pub(crate) name: String,
    time_zone: TimeZone,
}

/// A local time, written like 17:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTime(Time);

/// Weekdays, written like mon-fri or mon,wed,fri.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weekdays([bool; 7]);

/// A date that does not trade, written like 2026-12-25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holiday(Date);

/// Reason why a text is no part of a calendar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// The system does not know the time zone.
    #[error("'{name}' is no time zone of this system's database ({reason}); write an IANA name like America/Chicago")]
    Zone {
        /// The text.
        name: String,
        /// The system's reason.
        reason: String,
    },
    /// The text is no time.
    #[error("'{0}' is no time of a day; write hours and minutes like 17:00")]
    Time(String),
    /// The text names no weekdays.
    #[error("'{0}' names no weekdays; write them like mon-fri or mon,wed,fri")]
    Weekdays(String),
    /// The text is no date.
    #[error("'{0}' is no date; write it like 2026-12-25")]
    Date(String),
}

impl Calendar {
    /// Returns the local date at this time, as 20261122.
    pub fn today(&self, utc_ns: u64) -> u32 {
        number(self.date(utc_ns))
    }

    /// Returns the first end of a day after this time; `None` if there is none within years.
    pub fn next_close(&self, utc_ns: u64) -> Option<DayClose> {
        // An end that a clock change moves past midnight belongs to the date before.
        let dates = successors(self.date(utc_ns).yesterday().ok(), |date| date.tomorrow().ok()).take(MAX_DATES);
        dates.filter_map(|date| self.close_on(date)).find(|close| close.utc_ns > utc_ns)
    }

    /// Returns the last end of a day at or before this time; `None` if there is none within years.
    pub fn last_close(&self, utc_ns: u64) -> Option<DayClose> {
        let dates = successors(Some(self.date(utc_ns)), |date| date.yesterday().ok()).take(MAX_DATES);
        dates.filter_map(|date| self.close_on(date)).find(|close| close.utc_ns <= utc_ns)
    }

    /// Returns an end as text: local time, time zone, and UTC.
    pub fn describe(&self, close: &DayClose) -> String {
        let end = timestamp(close.utc_ns);
        let local = end.to_zoned(self.zone.time_zone.clone());
        format!("{} {:02}:{:02} {} ({end})", local.date(), local.hour(), local.minute(), self.zone.name)
    }

    /// Returns the end of the day with this local date, if the date trades.
    fn close_on(&self, date: Date) -> Option<DayClose> {
        let Weekdays(trades) = self.weekdays;
        let weekday = usize::try_from(date.weekday().to_monday_zero_offset()).ok()?;
        if !trades[weekday] || self.holidays.contains(&Holiday(date)) {
            return None;
        }
        let end = self.zone.time_zone.to_ambiguous_timestamp(date.to_datetime(self.end_time.0)).compatible().ok()?;
        Some(DayClose { day: number(date), utc_ns: u64::try_from(end.as_nanosecond()).ok()? })
    }

    fn date(&self, utc_ns: u64) -> Date {
        timestamp(utc_ns).to_zoned(self.zone.time_zone.clone()).date()
    }
}

/// Returns a timestamp: 64 bits of nanoseconds never exceed its range.
fn timestamp(utc_ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(utc_ns)).unwrap_or(Timestamp::MAX)
}

/// Returns whether a number like 20261122 is a date.
pub fn is_date(day: u32) -> bool {
    let (year, month, of_month) = (day / 10_000, day / 100 % 100, day % 100);
    let year = i16::try_from(year).ok().filter(|&year| year > 0);
    year.is_some_and(|year| Date::new(year, month as i8, of_month as i8).is_ok())
}

/// Returns a date as a number like 20261122.
fn number(date: Date) -> u32 {
    let day = i32::from(date.year()) * 10_000 + i32::from(date.month()) * 100 + i32::from(date.day());
    u32::try_from(day).unwrap_or_default()
}

impl FromStr for Zone {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let name = text.to_owned();
        match TimeZone::get(text) {
            Ok(time_zone) => Ok(Self { name, time_zone }),
            Err(e) => Err(CalendarError::Zone { name, reason: e.to_string() }),
        }
    }
}

impl FromStr for EndTime {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let parts = text.split_once(':').and_then(|(hour, minute)| Some((digits(hour, 2)?, digits(minute, 2)?)));
        let time =
            parts.and_then(|(hour, minute)| Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok());
        time.map(Self).ok_or_else(|| CalendarError::Time(text.to_owned()))
    }
}

impl FromStr for Weekdays {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let wrong = || CalendarError::Weekdays(text.to_owned());
        let weekday = |text: &str| WEEKDAYS.iter().position(|name| *name == text.trim()).ok_or_else(wrong);
        let mut days = [false; 7];
        for item in text.split(',') {
            let (from, to) = item.split_once('-').unwrap_or((item, item));
            let (mut day, last) = (weekday(from)?, weekday(to)?);
            days[day] = true;
            // A range may wrap around the end of the week.
            while day != last {
                day = (day + 1) % WEEKDAYS.len();
                days[day] = true;
            }
        }
        Ok(Self(days))
    }
}

impl FromStr for Holiday {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let date = || {
            let mut parts = text.split('-');
            let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
            let whole = parts.next().is_none();
            let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
            let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
            whole.then_some(Self(date))
        };
        date().ok_or_else(|| CalendarError::Date(text.to_owned()))
    }
}

/// Returns a number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<i16> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

impl Default for Weekdays {
    /// Returns Monday to Friday.
    fn default() -> Self {
        Self([true, true, true, true, true, false, false])
    }
}
