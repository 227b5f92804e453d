//! Days that end by a calendar: across a clock change, holidays, restarts, and a full disk.

use std::fs;

use jiff::Timestamp;
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_runtime::CommandError;
use tickpath_oms_runtime::calendar::{Calendar, DayClose};

use super::*;

/// Idle turns after which the OMS has read the clock.
const TURNS: usize = 64;

/// Converts a UTC time such as 2026-03-06T23:00:00Z to nanoseconds since the Unix epoch.
fn ns(utc: &str) -> u64 {
    let at: Timestamp = utc.parse().expect("a time");
    u64::try_from(at.as_nanosecond()).expect("a time since 1970")
}

fn calendar(ends: &str, days: &str, holidays: &[&str]) -> Calendar {
    Calendar {
        zone: "America/Chicago".parse().expect("the system has a database of time zones"),
        end_time: ends.parse().expect("a time of a day"),
        weekdays: days.parse().expect("weekdays"),
        holidays: holidays.iter().map(|date| date.parse().expect("a date")).collect(),
    }
}

/// Returns the calendar of a desk at the exchange in Chicago: the day ends at 17:00 there, with no trading at
/// Christmas.
fn chicago() -> Calendar {
    calendar("17:00", "mon-fri", &["2026-12-25"])
}

#[test]
fn a_day_ends_at_a_local_time_on_a_trading_weekday() {
    let night = calendar("02:30", "sun", &[]);
    let early = calendar("01:30", "sat,sun", &[]);
    let sunday_to_thursday = calendar("17:00", "sun-thu", &[]);
    for (what, calendar, after, day, end) in [
        ("in winter", chicago(), "2026-03-05T00:00:00Z", 20_260_305, "2026-03-05T23:00:00Z"),
        ("to the nanosecond", chicago(), "2026-03-05T23:00:00Z", 20_260_306, "2026-03-06T23:00:00Z"),
        ("in summer", chicago(), "2026-03-06T23:00:00Z", 20_260_309, "2026-03-09T22:00:00Z"),
        ("in winter again", chicago(), "2026-10-30T22:00:00Z", 20_261_102, "2026-11-02T23:00:00Z"),
        ("over a holiday and a weekend", chicago(), "2026-12-24T23:00:00Z", 20_261_228, "2026-12-28T23:00:00Z"),
        ("at a time that does not exist", night, "2026-03-07T00:00:00Z", 20_260_308, "2026-03-08T08:30:00Z"),
        ("at a time that comes twice", early.clone(), "2026-11-01T00:00:00Z", 20_261_101, "2026-11-01T06:30:00Z"),
        ("and then not again", early, "2026-11-01T06:30:00Z", 20_261_107, "2026-11-07T07:30:00Z"),
        ("over a span of weekdays", sunday_to_thursday, "2026-03-05T23:00:00Z", 20_260_308, "2026-03-08T22:00:00Z"),
    ] {
        let close = DayClose { day, utc_ns: ns(end) };
        assert_eq!(calendar.next_close(ns(after)), Some(close), "{what}");
        assert_eq!(calendar.last_close(ns(end)), Some(close), "{what}");
        assert_ne!(calendar.last_close(ns(end) - 1), Some(close), "{what}");
    }
    assert_eq!(chicago().today(ns("2026-03-07T03:00:00Z")), 20_260_306);
    let text = chicago().describe(&DayClose { day: 20_260_309, utc_ns: ns("2026-03-09T22:00:00Z") });
    assert_eq!(text, "2026-03-09 17:00 America/Chicago (2026-03-09T22:00:00Z)");
}

#[test]
fn an_invalid_part_of_a_calendar_is_refused() {
    use tickpath_oms_runtime::calendar::{EndTime, Holiday, Weekdays, Zone};
    for text in ["17", "24:00", "17:60", "5:00", "17:00:00", "", "-1:00"] {
        assert!(text.parse::<EndTime>().is_err(), "{text}");
    }
    for text in ["", "monday", "mon-", "mon..fri", "mon,"] {
        assert!(text.parse::<Weekdays>().is_err(), "{text}");
    }
    for text in ["2026-02-29", "26-12-25", "2026-12-25-", "20261225", ""] {
        assert!(text.parse::<Holiday>().is_err(), "{text}");
    }
    let why = "Chicago/Nowhere".parse::<Zone>().expect_err("there is no such place").to_string();
    assert!(why.contains("'Chicago/Nowhere' is no time zone") && why.contains("America/Chicago"), "{why}");
}

/// Returns a scene whose clock shows this time.
fn scene_at(utc: &str) -> Scene {
    let mut scene = Scene::new();
    scene.clock = SimulatedClock::at(ns(utc));
    scene
}

impl Scene {
    /// Opens an OMS whose days end by the calendar.
    fn by_calendar(&self) -> Inline<SimulatedClock> {
        let mut oms = self.oms();
        oms.sequencer().set_calendar(chicago()).expect("the disk is sound");
        oms
    }

    /// Advances the clock to this time.
    fn pass(&self, oms: &mut Inline<SimulatedClock>, utc: &str) {
        self.clock.advance(ns(utc) - self.clock.ticks());
        for _ in 0..TURNS {
            poll(oms);
        }
    }

    /// Returns the days whose ends are in the journal.
    fn ended(&self) -> Vec<u32> {
        let (_, inputs, _) = self.replay();
        let day = |input: &Input| match input {
            Input::DayEnd(end) => Some(end.day),
            _ => None,
        };
        inputs.iter().filter_map(day).collect()
    }
}

/// Returns the notices about ends of days: the day, and whether it ended late; none if it did not end.
fn day_notices(oms: &mut Inline<SimulatedClock>) -> Vec<(u32, Option<bool>)> {
    let day_notice = |notice: &Notice| match notice {
        Notice::DayEnded { day, is_late } => Some((*day, Some(*is_late))),
        Notice::DayNotEnded { day, .. } => Some((*day, None)),
        _ => None,
    };
    oms.sequencer().notices().filter_map(day_notice).collect()
}

#[test]
fn each_day_ends_once_at_its_time_across_clock_changes() {
    let scene = scene_at("2026-03-06T15:00:00Z");
    let mut oms = scene.by_calendar();
    scene.pass(&mut oms, "2026-03-06T22:59:59Z");
    assert!(scene.ended().is_empty());
    scene.pass(&mut oms, "2026-03-06T23:00:00Z");
    assert_eq!(scene.ended(), [20_260_306]);
    scene.pass(&mut oms, "2026-03-06T23:00:01Z");
    // Saturday and Sunday have no end, and on Monday it is an hour earlier in UTC.
    scene.pass(&mut oms, "2026-03-09T21:59:59Z");
    assert_eq!(scene.ended(), [20_260_306]);
    scene.pass(&mut oms, "2026-03-09T22:00:00Z");
    scene.pass(&mut oms, "2026-03-10T12:00:00Z");
    assert_eq!(scene.ended(), [20_260_306, 20_260_309]);
    assert_eq!(day_notices(&mut oms), [(20_260_306, Some(false)), (20_260_309, Some(false))]);
}

#[test]
fn a_start_ends_a_missed_day_once_and_notifies_the_operator() {
    let scene = scene_at("2026-12-24T15:00:00Z");
    drop(scene.by_calendar());
    // Killed across the end of the day, and started on the Saturday after the holiday.
    scene.clock.advance(ns("2026-12-26T12:00:00Z") - scene.clock.ticks());
    let mut oms = scene.by_calendar();
    assert_eq!(scene.ended(), [20_261_224], "at once");
    assert_eq!(day_notices(&mut oms), [(20_261_224, Some(true))]);
    drop(oms);
    // Twice more in the same minute.
    for second in ["2026-12-26T12:00:10Z", "2026-12-26T12:00:20Z"] {
        scene.clock.advance(ns(second) - scene.clock.ticks());
        let mut oms = scene.by_calendar();
        scene.pass(&mut oms, &second.replace("0Z", "5Z"));
        assert_eq!((scene.ended(), day_notices(&mut oms)), (vec![20_261_224], vec![]), "{second}");
    }
    let mut oms = scene.by_calendar();
    scene.pass(&mut oms, "2026-12-28T23:00:00Z");
    assert_eq!(scene.ended(), [20_261_224, 20_261_228]);
    drop(oms);
    // Several days that pass without an OMS end as one.
    scene.clock.advance(ns("2026-12-31T12:00:00Z") - scene.clock.ticks());
    drop(scene.by_calendar());
    drop(scene.by_calendar());
    assert_eq!(scene.ended(), [20_261_224, 20_261_228, 20_261_230]);
}

#[test]
fn a_new_journal_has_missed_no_day() {
    let scene = scene_at("2026-12-24T23:30:00Z");
    let mut oms = scene.by_calendar();
    scene.pass(&mut oms, "2026-12-24T23:59:00Z");
    assert!(scene.ended().is_empty());
    scene.pass(&mut oms, "2026-12-28T23:00:00Z");
    assert_eq!(scene.ended(), [20_261_228]);
}

#[test]
fn a_day_that_an_admin_ended_does_not_end_again_by_the_calendar() {
    let scene = scene_at("2026-03-06T22:00:00Z");
    let mut oms = scene.by_calendar();
    let mut end = |day: u32| {
        let end = DayEnd { day, ..DayEnd::default() };
        let ended = oms.sequencer().accept_command(scene.clock.ticks(), RecordKind::DayEnd.code(), end.as_bytes());
        ended.expect("the disk is sound").map(drop)
    };
    // In UTC the next day has begun by then.
    scene.clock.advance(ns("2026-03-06T22:59:00Z") - scene.clock.ticks());
    end(20_260_306).expect("it is that day");
    scene.clock.advance(ns("2026-03-07T03:00:00Z") - scene.clock.ticks());
    let Err(CommandError::DayAhead { today: 20_260_306, zone, .. }) = end(20_260_307) else {
        panic!("Saturday has not begun in Chicago");
    };
    assert_eq!(zone, "America/Chicago");
    scene.pass(&mut oms, "2026-03-07T04:00:00Z");
    assert_eq!(scene.ended(), [20_260_306]);
}

#[test]
fn a_refused_day_end_is_reported_once_and_retried_every_minute() {
    let scene = scene_at("2026-03-06T22:00:00Z");
    let mut oms = scene.by_calendar();
    // The folder takes the place of a file that reserves space.
    let obstacle = scene.config.journal.path.dir().join("ballast.reports");
    fs::create_dir(&obstacle).expect("the folder is ours");
    for time in ["2026-03-06T23:00:00Z", "2026-03-06T23:00:30Z", "2026-03-06T23:01:00Z", "2026-03-06T23:03:00Z"] {
        scene.pass(&mut oms, time);
        assert_eq!(day_notices(&mut oms), [(20_260_306, None)], "{time}");
    }
    fs::remove_dir(&obstacle).expect("it is empty");
    scene.pass(&mut oms, "2026-03-06T23:03:59Z");
    assert!(scene.ended().is_empty(), "within the minute");
    scene.pass(&mut oms, "2026-03-06T23:04:00Z");
    assert_eq!(scene.ended(), [20_260_306]);
    assert_eq!(day_notices(&mut oms), [(20_260_306, None), (20_260_306, Some(true))]);
}
