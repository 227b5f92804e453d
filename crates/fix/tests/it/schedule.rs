//! Connection hours and reset times: zones, clock changes, nights, weeks, and texts with mistakes.

use jiff::Timestamp;
use proptest::prelude::*;
use tickpath_fix::{ScheduleError, SessionSchedule};

const MINUTE_NS: u64 = 60_000_000_000;
const DAY_MINUTES: u64 = 24 * 60;
/// Monday, 2026-11-30, at midnight in Taipei, which has no clock changes.
const TAIPEI_MONDAY: &str = "2026-11-29T16:00:00Z";

fn utc(text: &str) -> u64 {
    let timestamp: Timestamp = text.parse().unwrap();
    u64::try_from(timestamp.as_nanosecond()).unwrap()
}

fn open(hours: &str) -> SessionSchedule {
    SessionSchedule::parse(hours, "never").unwrap()
}

fn reset(resets: &str) -> SessionSchedule {
    SessionSchedule::parse("always", resets).unwrap()
}

/// Checks that the session opens and closes at exactly these times, one after the other, from the first on.
#[track_caller]
fn check_changes(hours: &str, changes: &[(&str, bool)]) {
    let schedule = open(hours);
    let mut now_ns = utc(changes[0].0) - 1;
    assert_eq!(schedule.is_open(now_ns), !changes[0].1, "{hours}: before {}", changes[0].0);
    for (text, is_open) in changes {
        let found_ns = schedule.next_change(now_ns).unwrap();
        assert_eq!(found_ns, utc(text), "{hours}: expected {text}, found {}", written(found_ns));
        assert_eq!(schedule.is_open(found_ns), *is_open, "{hours} at {text}");
        assert_eq!(schedule.is_open(found_ns - 1), !is_open, "{hours} before {text}");
        now_ns = found_ns;
    }
}

fn written(utc_ns: u64) -> String {
    Timestamp::from_nanosecond(i128::from(utc_ns)).unwrap().to_string()
}

#[test]
fn hours_of_weekdays_leave_the_weekend_out() {
    check_changes(
        "mon-fri 08:30-13:45 Asia/Taipei",
        &[
            ("2026-11-27T00:30:00Z", true),
            ("2026-11-27T05:45:00Z", false),
            ("2026-11-30T00:30:00Z", true),
            ("2026-11-30T05:45:00Z", false),
            ("2026-12-01T00:30:00Z", true),
        ],
    );
}

#[test]
fn hours_run_past_midnight() {
    check_changes(
        "mon-fri 17:00-16:00 America/Chicago",
        &[
            ("2026-11-27T23:00:00Z", true),
            ("2026-11-28T22:00:00Z", false),
            ("2026-11-30T23:00:00Z", true),
            ("2026-12-01T22:00:00Z", false),
        ],
    );
}

#[test]
fn a_week_begins_on_sunday_and_ends_on_friday() {
    check_changes(
        "sun 17:00 - fri 16:00 America/Chicago",
        &[
            ("2026-03-01T23:00:00Z", true),
            ("2026-03-06T22:00:00Z", false),
            // On this Sunday the clocks are put forward.
            ("2026-03-08T22:00:00Z", true),
            ("2026-03-13T21:00:00Z", false),
        ],
    );
}

#[test]
fn a_week_may_end_on_the_day_of_its_begin() {
    check_changes(
        "mon 07:00 - mon 06:59:30 UTC",
        &[("2026-11-30T06:59:30Z", false), ("2026-11-30T07:00:00Z", true), ("2026-12-07T06:59:30Z", false)],
    );
    check_changes("mon 07:00 - mon 08:00 UTC", &[("2026-11-30T07:00:00Z", true), ("2026-11-30T08:00:00Z", false)]);
}

#[test]
fn hours_follow_the_clocks_of_their_zone() {
    check_changes(
        "mon-fri 08:00-17:00 America/New_York",
        &[
            ("2026-03-06T13:00:00Z", true),
            ("2026-03-06T22:00:00Z", false),
            ("2026-03-09T12:00:00Z", true),
            ("2026-03-09T21:00:00Z", false),
        ],
    );
}

#[test]
fn a_skipped_time_moves_and_a_repeated_time_counts_once() {
    // 02:30 does not exist on 2026-03-08; the clocks show 03:30 then.
    let spring = [("2026-03-07T07:30:00Z", true), ("2026-03-07T09:00:00Z", false), ("2026-03-08T07:30:00Z", true)];
    check_changes("daily 02:30-04:00 America/New_York", &spring);
    // 01:30 comes at 05:30 and 06:30 UTC on 2026-11-01.
    let autumn = [("2026-11-01T05:30:00Z", true), ("2026-11-01T08:00:00Z", false), ("2026-11-02T06:30:00Z", true)];
    check_changes("daily 01:30-03:00 America/New_York", &autumn);
}

#[test]
fn hours_that_touch_are_one_span() {
    check_changes(
        "mon-fri 08:00-12:00 UTC; mon-fri 12:00-17:00 UTC; sat 09:00-10:00 UTC",
        &[
            ("2026-11-27T08:00:00Z", true),
            ("2026-11-27T17:00:00Z", false),
            ("2026-11-28T09:00:00Z", true),
            ("2026-11-28T10:00:00Z", false),
            ("2026-11-30T08:00:00Z", true),
        ],
    );
}

#[test]
fn a_session_that_is_always_open_has_no_change() {
    let at = utc("2026-11-30T00:00:00Z");
    let whole_days = [open("daily 00:00-24:00 UTC"), open("daily 06:00-06:00 UTC")];
    for schedule in [SessionSchedule::always(), open("always")].into_iter().chain(whole_days) {
        assert!(schedule.is_open(at), "{schedule:?}");
        assert_eq!(schedule.next_change(at), None, "{schedule:?}");
    }
}

#[test]
fn reset_times_are_independent_of_the_hours() {
    let schedule = SessionSchedule::parse("mon-fri 08:30-13:45 Asia/Taipei", "sun 17:00 America/New_York").unwrap();
    let friday = utc("2026-11-27T05:45:00Z");
    let monday = utc("2026-11-30T00:30:00Z");
    assert_eq!(schedule.next_reset(friday), Some(utc("2026-11-29T22:00:00Z")));
    assert!(!schedule.is_open(utc("2026-11-29T22:00:00Z")), "the reset falls into the closed hours");
    assert!(schedule.reset_between(friday, monday));
    assert!(!schedule.reset_between(monday, utc("2026-12-04T05:45:00Z")), "the week has no other reset");
}

#[test]
fn a_reset_is_due_once() {
    let schedule = reset("daily 22:00 UTC");
    let at = utc("2026-11-30T22:00:00Z");
    assert!(!schedule.reset_between(at - 2, at - 1));
    assert!(schedule.reset_between(at - 1, at));
    assert!(!schedule.reset_between(at, at + 1), "the numbers are from the reset itself");
    assert!(!schedule.reset_between(at + 10, at - 10), "the clock was put back");
    assert!(schedule.reset_between(0, at), "the session was down for years");
    assert_eq!(schedule.last_reset(at), Some(at));
    assert_eq!(schedule.next_reset(at), Some(utc("2026-12-01T22:00:00Z")));
}

#[test]
fn several_resets_and_none() {
    let schedule = reset("mon-fri 08:00 Asia/Taipei; sat 12:00 UTC");
    assert_eq!(schedule.next_reset(utc("2026-11-27T00:00:00Z")), Some(utc("2026-11-28T12:00:00Z")));
    assert_eq!(schedule.next_reset(utc("2026-11-28T12:00:00Z")), Some(utc("2026-11-30T00:00:00Z")));
    let never = reset("never");
    assert_eq!((never.last_reset(utc("2026-11-27T00:00:00Z")), never.next_reset(0)), (None, None));
    assert!(!never.reset_between(0, u64::MAX));
}

#[test]
fn a_weekly_reset_follows_the_clocks_of_its_zone() {
    let schedule = reset("sun 17:00 America/New_York");
    assert_eq!(schedule.next_reset(utc("2026-03-02T00:00:00Z")), Some(utc("2026-03-08T21:00:00Z")));
    assert_eq!(schedule.last_reset(utc("2026-03-08T20:59:59Z")), Some(utc("2026-03-01T22:00:00Z")));
}

#[test]
fn a_text_with_a_mistake_is_refused_with_a_remedy() {
    let hours = |text: &str| ScheduleError::Hours(text.to_owned());
    let time = |text: &str| ScheduleError::Time(text.to_owned());
    let cases = [
        ("", hours("")),
        ("mon-fri 08:30 Asia/Taipei", hours("mon-fri 08:30 Asia/Taipei")),
        ("mon-fri 08:30-13:45", hours("mon-fri 08:30-13:45")),
        ("mon,tue 08:00 - fri 09:00 UTC", hours("mon,tue 08:00 - fri 09:00 UTC")),
        ("mon-fri 08:00-12:00 UTC;", hours("")),
        ("mon-fri 8:30-13:45 Asia/Taipei", time("8:30")),
        ("mon-fri 24:00-08:00 UTC", time("24:00")),
        ("mon-fri 08:00-25:00 UTC", time("25:00")),
        ("mon-fri 08:00-08:60 UTC", time("08:60")),
        ("weekdays 08:00-09:00 UTC", ScheduleError::Weekdays("weekdays".to_owned())),
        ("mon-fry 08:00-09:00 UTC", ScheduleError::Weekdays("mon-fry".to_owned())),
    ];
    for (text, expected) in cases {
        assert_eq!(SessionSchedule::parse(text, "never"), Err(expected), "{text}");
    }
    for text in ["", "22:00 UTC", "daily 22:00", "daily at 22:00 UTC"] {
        assert_eq!(SessionSchedule::parse("always", text), Err(ScheduleError::Reset(text.to_owned())), "{text}");
    }
    let unknown_zone = SessionSchedule::parse("always", "daily 22:00 Mars/Olympus").unwrap_err().to_string();
    assert!(unknown_zone.contains("'Mars/Olympus' is no time zone"), "{unknown_zone}");
    assert!(unknown_zone.contains("write an IANA name"), "{unknown_zone}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Hours of a day in a zone without clock changes, against the minutes of a week counted by hand.
    #[test]
    fn hours_agree_with_a_count_of_minutes(
        first_day in 0..7_u64,
        days in 1..=7_u64,
        from in 0..DAY_MINUTES,
        to in 0..DAY_MINUTES,
        minute in 0..7 * DAY_MINUTES,
    ) {
        const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let members: Vec<u64> = (0..days).map(|day| (first_day + day) % 7).collect();
        let names: Vec<&str> = members.iter().map(|day| NAMES[*day as usize]).collect();
        let clock = |minutes: u64| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let schedule = open(&format!("{} {}-{} Asia/Taipei", names.join(","), clock(from), clock(to)));

        let length = if to > from { to - from } else { to + DAY_MINUTES - from };
        let begins: Vec<u64> = members.iter().map(|day| day * DAY_MINUTES + from).collect();
        // Minutes since the last begin, around the end of the week.
        let week = 7 * DAY_MINUTES;
        let is_open_at = |minute: u64| begins.iter().any(|begin| (minute + week - begin) % week < length);

        let monday_ns = utc(TAIPEI_MONDAY);
        let now_ns = monday_ns + minute * MINUTE_NS;
        prop_assert_eq!(schedule.is_open(now_ns), is_open_at(minute));
        let change = (1..=week).find(|after| is_open_at((minute + after) % week) != is_open_at(minute));
        prop_assert_eq!(schedule.next_change(now_ns), change.map(|after| now_ns + after * MINUTE_NS));
    }
}
