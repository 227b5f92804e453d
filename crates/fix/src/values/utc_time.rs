//! Dates and times: `YYYYMMDD-HH:MM:SS`, with up to twelve decimals of a second, and the checks of their kin.
//!
//! Times are nanoseconds since the Unix epoch. A leap second, `SS` of 60, is the first second of the next minute.

use std::ops::Range;

use crate::digits::{PAIRS, write_padded};

const SECONDS_PER_DAY: u64 = 86_400;
const NS_PER_SECOND: u64 = 1_000_000_000;
/// Days from 1 March of the year 0 to the Unix epoch.
const EPOCH_DAY: u64 = 719_468;
/// Days of 400 years.
const DAYS_PER_ERA: u64 = 146_097;
/// Length of `YYYYMMDD-HH:MM:SS`.
const SECOND_LENGTH: usize = 17;
/// Max length of a time in bytes, with nanoseconds.
pub(crate) const TIME_ROOM: usize = SECOND_LENGTH + 10;
/// Max decimals of a second: picoseconds.
const MAX_DECIMALS: usize = 12;

/// Decimals of the seconds that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimePrecision {
    /// `20240229-23:59:59`
    Seconds,
    /// `20240229-23:59:59.123`
    #[default]
    Millis,
    /// `20240229-23:59:59.123456`
    Micros,
    /// `20240229-23:59:59.123456789`
    Nanos,
}

/// Reads `YYYYMMDD-HH:MM:SS` with up to twelve decimals as nanoseconds since the Unix epoch; decimals behind the ninth
/// are dropped. `None` before 1970, and from July 2554 on.
///
/// ```
/// use tickpath_fix::values::parse_utc_timestamp;
///
/// assert_eq!(parse_utc_timestamp(b"19700102-00:00:01.5"), Some(86_401_500_000_000));
/// assert_eq!(parse_utc_timestamp(b"19700230-00:00:01"), None);
/// ```
#[inline]
pub fn parse_utc_timestamp(value: &[u8]) -> Option<u64> {
    let (date, rest) = value.split_first_chunk::<8>()?;
    let day = parse_date(date)?.days_since_epoch()?;
    let (second, ns) = parse_time(rest.strip_prefix(b"-")?)?;
    (day * SECONDS_PER_DAY + second).checked_mul(NS_PER_SECOND)?.checked_add(ns)
}

/// Appends a time in nanoseconds since the Unix epoch as `YYYYMMDD-HH:MM:SS` with the decimals of the precision.
pub fn write_utc_timestamp(out: &mut Vec<u8>, ns: u64, precision: TimePrecision) {
    out.extend_from_slice(&second_text(ns / NS_PER_SECOND));
    let mut fraction = [0; TIME_ROOM - SECOND_LENGTH];
    let length = write_fraction(&mut fraction, (ns % NS_PER_SECOND) as u32, precision);
    out.extend_from_slice(&fraction[..length]);
}

/// Returns whether the bytes are a UTCTimestamp of the years 0 to 9999.
#[inline]
pub fn is_utc_timestamp(value: &[u8]) -> bool {
    value.split_first_chunk::<8>().is_some_and(|(date, rest)| {
        parse_date(date).is_some() && rest.strip_prefix(b"-").is_some_and(|time| parse_time(time).is_some())
    })
}

/// Returns whether the bytes are a UTCTimeOnly: `HH:MM:SS` with up to twelve decimals.
#[inline]
pub fn is_utc_time(value: &[u8]) -> bool {
    parse_time(value).is_some()
}

/// Returns whether the bytes are a date `YYYYMMDD`: UTCDateOnly, LocalMktDate, and Date of old versions.
#[inline]
pub fn is_utc_date(value: &[u8]) -> bool {
    <&[u8; 8]>::try_from(value).is_ok_and(|date| parse_date(date).is_some())
}

/// Returns whether the bytes are a MonthYear: `YYYYMM`, `YYYYMMDD` or `YYYYMMwN` with a week from 1 to 5.
pub fn is_month_year(value: &[u8]) -> bool {
    match value {
        [month @ .., b'w', b'1'..=b'5'] => is_month(month),
        _ => is_month(value) || is_utc_date(value),
    }
}

/// Returns whether the bytes are a TZTimeOnly: `HH:MM` or `HH:MM:SS` with up to twelve decimals, and an optional zone,
/// `Z`, `+HH`, `-HH`, `+HH:MM` or `-HH:MM`.
pub fn is_tz_time(value: &[u8]) -> bool {
    let zone = value.iter().position(|byte| matches!(byte, b'Z' | b'+' | b'-')).unwrap_or(value.len());
    let (time, zone) = value.split_at(zone);
    is_zone(zone) && (parse_time(time).is_some() || parse_minutes(time).is_some())
}

/// Returns whether the bytes are a TZTimestamp: a date, `-`, and a TZTimeOnly.
pub fn is_tz_timestamp(value: &[u8]) -> bool {
    value
        .split_first_chunk::<8>()
        .is_some_and(|(date, rest)| parse_date(date).is_some() && rest.strip_prefix(b"-").is_some_and(is_tz_time))
}

/// The text of a second, kept while the second lasts.
#[derive(Debug, Clone)]
pub(crate) struct SecondText {
    /// Seconds since the Unix epoch.
    second: u64,
    text: [u8; SECOND_LENGTH],
}

impl Default for SecondText {
    fn default() -> Self {
        Self { second: 0, text: second_text(0) }
    }
}

impl SecondText {
    /// Writes a time in nanoseconds since the Unix epoch at the begin of `room`, and returns its length in bytes.
    #[inline]
    pub fn write(&mut self, room: &mut [u8; TIME_ROOM], ns: u64, precision: TimePrecision) -> usize {
        let second = ns / NS_PER_SECOND;
        if second != self.second {
            *self = Self { second, text: second_text(second) };
        }
        let (date, fraction) = room.split_at_mut(SECOND_LENGTH);
        date.copy_from_slice(&self.text);
        SECOND_LENGTH + write_fraction(fraction, (ns % NS_PER_SECOND) as u32, precision)
    }
}

/// Writes a part of a second with its point at the begin of `room`, and returns its length in bytes.
#[inline]
fn write_fraction(room: &mut [u8], ns: u32, precision: TimePrecision) -> usize {
    let (digits, units) = match precision {
        TimePrecision::Seconds => return 0,
        TimePrecision::Millis => (3, ns / 1_000_000),
        TimePrecision::Micros => (6, ns / 1_000),
        TimePrecision::Nanos => (9, ns),
    };
    room[0] = b'.';
    write_padded(&mut room[1..=digits], u64::from(units));
    digits + 1
}

/// A day of the years 0 to 9999.
#[derive(Debug, Clone, Copy)]
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

impl Date {
    /// Returns the days since the Unix epoch; `None` for a day before it.
    ///
    /// Years begin in March here, so that the leap day is the last day of its year.
    fn days_since_epoch(self) -> Option<u64> {
        let year = if self.month <= 2 { self.year.checked_sub(1)? } else { self.year };
        let (era, year_of_era) = (year / 400, year % 400);
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        (era * DAYS_PER_ERA + day_of_era).checked_sub(EPOCH_DAY)
    }

    /// Returns the date of a day, in days since the Unix epoch.
    fn of_day(days: u64) -> Self {
        let days = days + EPOCH_DAY;
        let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_of_year = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_of_year + 2) / 5 + 1;
        let month = if month_of_year < 10 { month_of_year + 3 } else { month_of_year - 9 };
        Self { year: era * 400 + year_of_era + u64::from(month <= 2), month, day }
    }
}

/// Returns `YYYYMMDD-HH:MM:SS` of a second since the Unix epoch.
fn second_text(second: u64) -> [u8; SECOND_LENGTH] {
    let (date, time) = (Date::of_day(second / SECONDS_PER_DAY), second % SECONDS_PER_DAY);
    let mut text = *b"00000000-00:00:00";
    let parts = [
        (0, date.year / 100),
        (2, date.year % 100),
        (4, date.month),
        (6, date.day),
        (9, time / 3_600),
        (12, time / 60 % 60),
        (15, time % 60),
    ];
    for (at, number) in parts {
        text[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    }
    text
}

/// Reads `YYYYMMDD` of a day that exists.
#[inline]
fn parse_date(date: &[u8; 8]) -> Option<Date> {
    let (year, month, day) = (number(&date[..4])?, number(&date[4..6])?, number(&date[6..])?);
    let is_leap_year = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u64::from(is_leap_year),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(Date { year, month, day })
}

/// Reads `HH:MM:SS` with up to twelve decimals: the seconds of the day, and the nanoseconds behind them.
#[inline]
fn parse_time(time: &[u8]) -> Option<(u64, u64)> {
    let (minutes, rest) = (parse_minutes(time.get(..5)?)?, time.get(5..)?);
    let seconds = number_in(rest.strip_prefix(b":")?.get(..2)?, 0..61)?;
    let ns = match rest.get(3..)? {
        [] => 0,
        [b'.', decimals @ ..] => parse_decimals(decimals)?,
        _ => return None,
    };
    Some((minutes * 60 + seconds, ns))
}

/// Reads `HH:MM` as minutes of the day.
#[inline]
fn parse_minutes(time: &[u8]) -> Option<u64> {
    match time {
        [_, _, b':', _, _] => Some(number_in(&time[..2], 0..24)? * 60 + number_in(&time[3..], 0..60)?),
        _ => None,
    }
}

/// Reads the decimals of a second as nanoseconds.
#[inline]
fn parse_decimals(decimals: &[u8]) -> Option<u64> {
    if decimals.is_empty() || decimals.len() > MAX_DECIMALS || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = decimals.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    Some(digits.fold(0, |ns, digit| ns * 10 + u64::from(digit - b'0')))
}

fn is_month(value: &[u8]) -> bool {
    value.len() == 6 && number(&value[..4]).is_some() && number_in(&value[4..], 1..13).is_some()
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        [] | [b'Z'] => true,
        [b'+' | b'-', hours @ ..] if hours.len() == 2 => number_in(hours, 0..24).is_some(),
        [b'+' | b'-', time @ ..] => parse_minutes(time).is_some(),
        _ => false,
    }
}

/// Reads digits, and nothing else, as a number in a range.
#[inline]
fn number_in(digits: &[u8], range: Range<u64>) -> Option<u64> {
    number(digits).filter(|number| range.contains(number))
}

/// Reads four digits at most, and nothing else.
#[inline]
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| number * 10 + u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON_NS: u64 = 1_709_208_000_000_000_000;
    const PRECISIONS: [(TimePrecision, u64); 4] = [
        (TimePrecision::Seconds, 1_000_000_000),
        (TimePrecision::Millis, 1_000_000),
        (TimePrecision::Micros, 1_000),
        (TimePrecision::Nanos, 1),
    ];

    fn written(ns: u64, precision: TimePrecision) -> String {
        let mut out = Vec::new();
        write_utc_timestamp(&mut out, ns, precision);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_read_with_any_number_of_decimals() {
        for (text, ns) in [
            ("19700101-00:00:00", Some(0)),
            ("20240229-12:00:00", Some(NOON_NS)),
            ("20240229-12:00:00.1", Some(NOON_NS + 100_000_000)),
            ("20240229-12:00:00.123", Some(NOON_NS + 123_000_000)),
            ("20240229-12:00:00.123456", Some(NOON_NS + 123_456_000)),
            ("20240229-12:00:00.123456789", Some(NOON_NS + 123_456_789)),
            ("20240229-12:00:00.123456789999", Some(NOON_NS + 123_456_789)),
            ("20240229-11:59:60", Some(NOON_NS)),
            ("20161231-23:59:60.5", Some(1_483_228_800_500_000_000)),
            ("25540721-23:34:33.709551615", Some(u64::MAX)),
            ("25540721-23:34:33.709551616", None),
            ("99991231-23:59:59", None),
            ("19691231-23:59:59", None),
            ("00000101-00:00:00", None),
            ("20230229-12:00:00", None),
            ("20241301-12:00:00", None),
            ("20240001-12:00:00", None),
            ("20240100-12:00:00", None),
            ("20240229-24:00:00", None),
            ("20240229-12:60:00", None),
            ("20240229-12:00:61", None),
            ("20240229-12:00:00.", None),
            ("20240229-12:00:00.1234567890123", None),
            ("20240229-12:00:00.12x", None),
            ("20240229-12:00", None),
            ("20240229 12:00:00", None),
            ("20240229-12-00:00", None),
            ("20240229-12:00-00", None),
            ("20040415", None),
            ("", None),
        ] {
            assert_eq!(parse_utc_timestamp(text.as_bytes()), ns, "'{text}'");
        }
    }

    #[test]
    fn formats_are_checked_without_a_range_of_years() {
        let check = |is_valid: fn(&[u8]) -> bool, valid: &[&str], invalid: &[&str]| {
            for (texts, expected) in [(valid, true), (invalid, false)] {
                for text in texts {
                    assert_eq!(is_valid(text.as_bytes()), expected, "'{text}'");
                }
            }
        };
        check(
            is_utc_timestamp,
            &["00000101-00:00:00", "99991231-23:59:59.999", "20161231-23:59:60"],
            &["20040415", "20040415-", "20040415-24:00:00", "2004041-12:00:00"],
        );
        check(is_utc_time, &["12:00:00", "23:59:60.000"], &["12:00", "24:00:00", "12:00:00.", ""]);
        check(is_utc_date, &["20240229", "19000228"], &["20230229", "19000229", "2024022", "202402290", ""]);
        check(
            is_month_year,
            &["202402", "20240229", "202402w1", "202402w5"],
            &["202413", "202402w6", "2024", "w1", ""],
        );
        check(
            is_tz_time,
            &["07:39", "07:39Z", "15:39+08", "13:09+05:30", "07:39:12.000Z", "02:39:01-05"],
            &["7:39", "07:39+5", "07:39+24", "07:39Z+01", "Z", "", "07:39+05:3"],
        );
        check(
            is_tz_timestamp,
            &["20060901-07:39Z", "20060901-02:39-05", "20060901-13:09:01.5+05:30", "20060901-07:39"],
            &["20060901", "20060901-", "20061301-07:39Z", "20060901-07:39-5"],
        );
    }

    #[test]
    fn a_kept_second_is_written_as_a_fresh_one() {
        let mut kept = SecondText::default();
        for ns in [0, 999_999_999, NOON_NS, NOON_NS + 1, NOON_NS + 1_000_000_000, NOON_NS, u64::MAX, 5] {
            for (precision, _) in PRECISIONS {
                let mut room = [b'x'; TIME_ROOM];
                let length = kept.write(&mut room, ns, precision);
                assert_eq!(room[..length], *written(ns, precision).as_bytes());
            }
        }
    }

    #[test]
    fn every_day_of_a_century_is_the_day_behind_the_day_before() {
        let mut last = String::new();
        for day in 0..36_525 {
            let text = written(day * SECONDS_PER_DAY * NS_PER_SECOND, TimePrecision::Seconds);
            assert!(text > last, "{text} is not behind {last}");
            assert_eq!(parse_utc_timestamp(text.as_bytes()), Some(day * SECONDS_PER_DAY * NS_PER_SECOND), "{text}");
            last = text;
        }
        assert_eq!(last, "20691231-00:00:00");
    }

    proptest! {
        #[test]
        fn a_written_time_is_read_again(ns: u64) {
            for (precision, unit) in PRECISIONS {
                let text = written(ns, precision);
                prop_assert_eq!(parse_utc_timestamp(text.as_bytes()), Some(ns - ns % unit), "{}", text);
                prop_assert!(is_utc_timestamp(text.as_bytes()) && is_tz_timestamp(text.as_bytes()));
            }
        }

        #[test]
        fn no_bytes_panic(value in proptest::collection::vec(any::<u8>(), 0..32)) {
            let checks = [is_utc_timestamp, is_utc_time, is_utc_date, is_month_year, is_tz_time, is_tz_timestamp];
            let accepted = checks.iter().filter(|check| check(value.as_slice())).count();
            prop_assert!(accepted <= checks.len());
            prop_assert!(parse_utc_timestamp(&value).is_none() || is_utc_timestamp(&value));
        }
    }
}
