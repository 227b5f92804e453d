//! Connection hours and reset times of a session. Both are local times of IANA zones, and they are independent: a
//! session may be open all week and be reset every day, or be open by day and be reset once a week.
//!
//! ```text
//!   hours    mon-fri 08:30-13:45 Asia/Taipei             each weekday
//!            mon-fri 17:00-16:00 America/Chicago         each weekday, until 16:00 of the next day
//!            sun 17:00 - fri 16:00 America/Chicago       once a week
//!            mon-fri 08:00-12:00 UTC; sat 09:00-10:00 UTC
//!            always
//!   resets   daily 22:00 UTC; or mon-fri 08:00 Asia/Taipei; or sun 16:30 America/New_York; or never
//! ```
//!
//! A local time that a clock change skips becomes the instant that the clocks before the change would have shown: 02:30
//! becomes 03:30. If a local time comes twice, the first one counts.

use std::str::FromStr;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use weekdays::Weekdays;

mod weekdays;

/// Days that are searched before and after a time. Hours and the pause between two resets last a week at most.
const MAX_DAYS: i64 = 8;

/// Connection hours and reset times of a session.
///
/// ```
/// use tickpath_fix::SessionSchedule;
///
/// let schedule = SessionSchedule::parse("mon-fri 08:30-13:45 Asia/Taipei", "daily 22:00 UTC")?;
/// let monday_9_00 = 1_796_000_400_000_000_000; // 2026-11-30 01:00:00 UTC
/// assert!(schedule.is_open(monday_9_00));
/// # Ok::<(), tickpath_fix::ScheduleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSchedule {
    /// None of them: always open.
    hours: Vec<Hours>,
    resets: Vec<ResetTime>,
}

/// Reason why a text is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The text is not of the form of connection hours.
    #[error(
        "'{0}' are no connection hours; write weekdays, times and a zone like 'mon-fri 08:30-13:45 Asia/Taipei', \
         'sun 17:00 - fri 16:00 America/Chicago' for a week, or 'always'"
    )]
    Hours(String),
    /// The text is not of the form of a reset time.
    #[error("'{0}' is no reset time; write weekdays, a time and a zone like 'daily 22:00 UTC', or 'never'")]
    Reset(String),
    /// The text names no weekdays.
    #[error("'{0}' names no weekdays; write them like mon-fri, mon,wed,fri or daily")]
    Weekdays(String),
    /// The text is no time of a day.
    #[error("'{0}' is no time of a day; write it like 17:00 or 17:00:30")]
    Time(String),
    /// The system does not know the time zone.
    #[error("'{name}' is no time zone of this system's database ({reason}); write an IANA name like America/Chicago")]
    Zone {
        /// The text.
        name: String,
        /// The system's reason.
        reason: String,
    },
}

/// Connection hours that begin at a local time of some weekdays.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hours {
    days: Weekdays,
    from: Time,
    to: Time,
    /// Days from the date of the begin to the date of the end, 0 to 7.
    nights: i64,
    zone: TimeZone,
}

/// A local time of some weekdays at which the sequence numbers are reset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResetTime {
    days: Weekdays,
    at: Time,
    zone: TimeZone,
}

impl SessionSchedule {
    /// Returns the schedule of a session that is always open and is never reset by time.
    pub fn always() -> Self {
        Self { hours: Vec::new(), resets: Vec::new() }
    }

    /// Reads connection hours and reset times, each a list with `;` between its items.
    pub fn parse(hours: &str, resets: &str) -> Result<Self, ScheduleError> {
        let hours = match hours.trim() {
            "always" => Vec::new(),
            text => text.split(';').map(Hours::from_str).collect::<Result<_, _>>()?,
        };
        let resets = match resets.trim() {
            "never" => Vec::new(),
            text => text.split(';').map(ResetTime::from_str).collect::<Result<_, _>>()?,
        };
        Ok(Self { hours, resets })
    }

    /// Returns whether the session may be connected at this time, in nanoseconds since the Unix epoch.
    pub fn is_open(&self, now_ns: u64) -> bool {
        self.hours.is_empty() || self.hours.iter().any(|hours| hours.contains(now_ns))
    }

    /// Returns the first time after this one at which [`Self::is_open`] changes; none if the session is always open.
    pub fn next_change(&self, now_ns: u64) -> Option<u64> {
        let spans = self.hours.iter().flat_map(|hours| hours.spans(now_ns));
        let mut ends: Vec<u64> = spans.flat_map(<[u64; 2]>::from).collect();
        ends.sort_unstable();
        let is_open = self.is_open(now_ns);
        ends.into_iter().find(|&end_ns| end_ns > now_ns && self.is_open(end_ns) != is_open)
    }

    /// Returns whether the sequence numbers are due for a reset: a reset time lies after their last use or reset, and
    /// not after now.
    pub fn reset_between(&self, last_ns: u64, now_ns: u64) -> bool {
        self.last_reset(now_ns).is_some_and(|reset_ns| reset_ns > last_ns)
    }

    /// Returns the last reset time at or before this time; none if there are no reset times.
    pub fn last_reset(&self, now_ns: u64) -> Option<u64> {
        self.reset_times(now_ns).filter(|&reset_ns| reset_ns <= now_ns).max()
    }

    /// Returns the first reset time after this time; none if there are no reset times.
    pub fn next_reset(&self, now_ns: u64) -> Option<u64> {
        self.reset_times(now_ns).filter(|&reset_ns| reset_ns > now_ns).min()
    }

    /// Returns the reset times of the days around this time.
    fn reset_times(&self, now_ns: u64) -> impl Iterator<Item = u64> {
        self.resets.iter().flat_map(move |reset| {
            let dates = dates_around(now_ns, &reset.zone).filter(move |date| reset.days.contains(*date));
            dates.filter_map(move |date| instant(date, reset.at, &reset.zone))
        })
    }
}

impl Hours {
    fn contains(&self, now_ns: u64) -> bool {
        self.spans(now_ns).any(|(begin_ns, end_ns)| (begin_ns..end_ns).contains(&now_ns))
    }

    /// Returns begin and end of the hours of the days around this time.
    fn spans(&self, now_ns: u64) -> impl Iterator<Item = (u64, u64)> {
        let begins = dates_around(now_ns, &self.zone).filter(move |date| self.days.contains(*date));
        begins.filter_map(move |date| {
            let last_date = date.checked_add(self.nights.days()).ok()?;
            Some((instant(date, self.from, &self.zone)?, instant(last_date, self.to, &self.zone)?))
        })
    }
}

impl FromStr for Hours {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [days, times, zone] => {
                let (from, to) = times.split_once('-').ok_or_else(|| ScheduleError::Hours(text.trim().to_owned()))?;
                let (from, to) = (parse_time(from)?, parse_end_time(to)?);
                let (days, nights) = (parse_weekdays(days)?, i64::from(to <= from));
                Ok(Self { days, from, to, nights, zone: parse_zone(zone)? })
            }
            [first_day, from, "-", last_day, to, zone] => {
                let days = parse_weekdays(first_day)?;
                let (from, to) = (parse_time(from)?, parse_time(to)?);
                let nights = parse_weekdays(last_day)?.days_after(days);
                let nights = nights.ok_or_else(|| ScheduleError::Hours(text.trim().to_owned()))?;
                let is_whole_week = nights == 0 && to <= from;
                Ok(Self { days, from, to, nights: if is_whole_week { 7 } else { nights }, zone: parse_zone(zone)? })
            }
            _ => Err(ScheduleError::Hours(text.trim().to_owned())),
        }
    }
}

impl FromStr for ResetTime {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [days, at, zone] = words[..] else { return Err(ScheduleError::Reset(text.trim().to_owned())) };
        Ok(Self { days: parse_weekdays(days)?, at: parse_time(at)?, zone: parse_zone(zone)? })
    }
}

fn parse_weekdays(text: &str) -> Result<Weekdays, ScheduleError> {
    Weekdays::parse(text).ok_or_else(|| ScheduleError::Weekdays(text.to_owned()))
}

fn parse_zone(name: &str) -> Result<TimeZone, ScheduleError> {
    TimeZone::get(name).map_err(|e| ScheduleError::Zone { name: name.to_owned(), reason: e.to_string() })
}

/// Reads a time like 17:00 or 17:00:30.
fn parse_time(text: &str) -> Result<Time, ScheduleError> {
    let parts: Option<Vec<i8>> = text.split(':').map(two_digits).collect();
    let time = match parts.as_deref() {
        Some([hour, minute]) => Time::new(*hour, *minute, 0, 0).ok(),
        Some([hour, minute, second]) => Time::new(*hour, *minute, *second, 0).ok(),
        _ => None,
    };
    time.ok_or_else(|| ScheduleError::Time(text.to_owned()))
}

/// Reads a time at which the hours of a day end. 24:00 is the midnight that ends a day.
fn parse_end_time(text: &str) -> Result<Time, ScheduleError> {
    if text == "24:00" { Ok(Time::midnight()) } else { parse_time(text) }
}

fn two_digits(text: &str) -> Option<i8> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns the local dates around a time, earliest first.
fn dates_around(now_ns: u64, zone: &TimeZone) -> impl Iterator<Item = Date> + use<> {
    // 64 bits of nanoseconds never exceed the range of a timestamp.
    let now = Timestamp::from_nanosecond(i128::from(now_ns)).unwrap_or(Timestamp::MAX);
    let today = zone.to_datetime(now).date();
    (-MAX_DAYS..=MAX_DAYS).filter_map(move |offset| today.checked_add(offset.days()).ok())
}

/// Returns a local time in nanoseconds since the Unix epoch; none if it lies outside of 64 bits.
fn instant(date: Date, time: Time, zone: &TimeZone) -> Option<u64> {
    let timestamp = zone.to_ambiguous_timestamp(date.to_datetime(time)).compatible().ok()?;
    u64::try_from(timestamp.as_nanosecond()).ok()
}
