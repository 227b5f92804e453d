//! A history that lags its journal: the process was killed between the roll of the journal and the roll of the history.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use tickpath_log::LogMessage;
use tickpath_market::Side;
use tickpath_oms_core::{CORE_VERSION, DayEnd, RecordKind};
use tickpath_oms_runtime::drop_copy::{DropCopyReader, DropCopyStart};
use tickpath_oms_runtime::snapshot;

use super::*;

/// A state that a kill leaves of an ended day's history. The history lies in this folder; beside it lies a copy, made
/// before the day's last reports were written.
type KillPoint = (&'static str, fn(&Path));

/// The number of states, from the first, with a whole history; the next state lacks reports, and the others cannot be
/// resumed.
const WHOLE: usize = 3;

const KILLS: [KillPoint; 9] = [
    ("before anything was made ready", |history| {
        bring_back(history, &["control", "data"]);
        fs::remove_dir_all(history.join("archive")).expect("it is there");
    }),
    ("before anything moved", |history| bring_back(history, &["control", "data"])),
    ("between control and data", |history| {
        fs::remove_file(history.join("control")).expect("it is there");
        bring_back(history, &["data"]);
    }),
    ("before the last reports of the day were said", |history| {
        fs::remove_dir_all(history.join("archive")).expect("it is there");
        bring_early(history);
    }),
    ("before there was a new log", |history| {
        for name in ["control", "data"] {
            fs::remove_file(history.join(name)).expect("it is there");
        }
    }),
    ("before the new log had its first frame", |history| {
        let mut data = fs::read(history.join("data")).expect("it is there");
        data[1024..].fill(0);
        fs::write(history.join("data"), data).expect("it is ours");
    }),
    ("with the power, which tore it", |history| {
        fs::remove_dir_all(history.join("archive")).expect("it is there");
        bring_early(history);
        let mut data = fs::read(history.join("data")).expect("it is there");
        data[5_000..5_100].fill(0);
        fs::write(history.join("data"), data).expect("it is ours");
    }),
    ("with the power, which left nothing of it that can be read", |history| {
        fs::remove_dir_all(history.join("archive")).expect("it is there");
        bring_early(history);
        let data = fs::OpenOptions::new().write(true).open(history.join("data")).expect("it is there");
        data.set_len(5_000).expect("it is ours");
    }),
    ("with the power, and again while what was torn was set aside", |history| {
        let archive = history.join("archive");
        fs::rename(archive.join("00000000000000000000"), archive.join("00000000000000000000.aside"))
            .expect("it is there");
        for name in ["control", "data"] {
            fs::remove_file(history.join(name)).expect("it is there");
        }
    }),
];

#[test]
fn an_absent_client_gets_the_reports_of_a_day_killed_as_it_ended() {
    for (at, (when, kill)) in KILLS.into_iter().enumerate() {
        for has_snapshot in [false, true] {
            let scene = HistoryScene::new();
            let (mut oms, day) = scene.a_day_that_ends();
            drop(oms);
            if has_snapshot {
                snapshot::make(scene.journal()).expect("the journal is sound");
            }
            kill(&scene.history());
            oms = scene.start();
            assert_eq!(is_reported_lost(&mut oms), at > WHOLE, "{when}");
            scene.check(&mut oms, &day, when);
            drop(oms);
            oms = scene.start();
            scene.check(&mut oms, &day, &format!("{when}, and once more"));
            scene.order(&mut oms, 20);
            scene.end_day(&mut oms);
            scene.order(&mut oms, 21);
            let reports = scene.reports();
            let yesterday = oms.sequencer().history_index().expect("it has one").oldest(0);
            assert!(yesterday > 0, "{when}: the day before is another one now");
            assert_eq!(replayed_reports(&mut oms, yesterday), reports[yesterday as usize..], "{when}: and another day");
        }
    }
}

#[test]
fn reports_without_records_are_missed_and_the_operator_is_notified() {
    let scene = HistoryScene::new();
    let mut oms = scene.start();
    scene.order(&mut oms, 1);
    scene.end_day(&mut oms);
    let first_day = scene.reports();
    scene.order(&mut oms, 2);
    scene.keep_early();
    let lost = scene.places(DropCopyStart::Day);
    scene.end_day(&mut oms);
    let reports = scene.reports().len() as u64;
    drop(oms);
    snapshot::make(scene.journal()).expect("the journal is sound");
    let second = second_day(&scene.history());
    fs::remove_dir_all(scene.journal().dir().join("archive")).expect("it is there");
    fs::remove_dir_all(second).expect("it is there");
    bring_early(&scene.history());
    oms = scene.start();
    assert!(is_reported_lost(&mut oms));
    scene.order(&mut oms, 3);
    let (before, since) = (replayed_reports(&mut oms, 0), replayed_reports(&mut oms, reports));
    assert_eq!(before, [&first_day[..], &since].concat(), "the day before that, and this one");
    assert_eq!((since[0].0, since.len()), (reports, 2), "each report has its own number");
    let today = scene.places(DropCopyStart::Day);
    assert_eq!((today[0].0 > lost[1].0, today.len()), (true, 2), "no place is given out again: {today:?}, {lost:?}");
    for (place, _) in lost {
        assert_eq!(scene.places(DropCopyStart::Place { place, last_sum: 0 }), today, "place {place} is nowhere");
    }
}

#[test]
fn a_day_written_by_another_version_prevents_no_start() {
    for (at, (when, kill)) in KILLS.into_iter().enumerate() {
        let scene = HistoryScene::new();
        let mut oms = scene.start();
        scene.order(&mut oms, 1);
        scene.keep_early();
        scene.order(&mut oms, 2);
        let kept = scene.reports();
        oms.sequencer().stop().expect("the disk is sound");
        drop(oms);
        snapshot::make(scene.journal()).expect("the journal is sound");
        days::as_written_by(&scene.0, CORE_VERSION - 1);
        drop(scene.start());
        kill(&scene.history());
        let mut oms = scene.start();
        let is_lost = is_reported_lost(&mut oms);
        assert_eq!(is_lost, at >= WHOLE, "killed {when}: what is not there is told");
        assert!(is_lost || replayed_reports(&mut oms, 0) == kept, "killed {when}");
        scene.order(&mut oms, 3);
        assert_eq!(replayed_reports(&mut oms, kept.len() as u64).len(), 2, "killed {when}: and it goes on");
    }
}

/// A report: its number, its kind and the checksum of its bytes.
type ReportSum = (u64, u8, u32);

/// An OMS whose session has no lanes.
struct HistoryScene(Scene, Cell<u64>);

/// All reports of a day.
struct DayReports {
    reports: Vec<ReportSum>,
    /// Place and number of each report.
    places: Vec<(u64, u64)>,
    /// Reports before the last ones.
    early: usize,
}

impl HistoryScene {
    fn new() -> Self {
        let mut scene = Scene::new();
        (scene.config.history, scene.config.lanes.sessions) = (true, 0);
        Self(scene, Cell::new(0))
    }

    fn journal(&self) -> &LogPath {
        &self.0.config.journal.path
    }

    fn history(&self) -> PathBuf {
        self.journal().dir().join("reports")
    }

    fn start(&self) -> Inline<SimulatedClock> {
        let mut oms = Inline::open(self.0.clock.clone(), &self.0.config, None).expect("it opens");
        oms.sequencer().apply_top_of_book(self.0.clock.ticks(), &top(99, 101)).expect("nothing waits for it");
        oms
    }

    /// Sends an order that waits for its venue, and an order that is denied.
    fn order(&self, oms: &mut Inline<SimulatedClock>, id: u64) {
        for (id, quantity) in [(id, 1), (1_000 + id, 10_000_000)] {
            let (now, number) = (self.0.clock.ticks(), self.1.replace(self.1.get() + 1));
            let order = Request::New(limit(Side::Buy, id, 90, quantity));
            oms.sequencer().accept_request(0, number, now, now, order).expect("the disk is sound");
        }
    }

    fn end_day(&self, oms: &mut Inline<SimulatedClock>) {
        let (kind, end) = (RecordKind::DayEnd.code(), DayEnd::default());
        let word = LogMessage { sequence: 0, stamp: 0, kind, payload: end.as_bytes() };
        oms.sequencer().accept_control_frame(self.0.clock.ticks(), &word).expect("the disk is sound");
    }

    /// Runs a day to its end, at which its orders expire.
    fn a_day_that_ends(&self) -> (Inline<SimulatedClock>, DayReports) {
        let mut oms = self.start();
        (1..=5).for_each(|id| self.order(&mut oms, id));
        let early = self.reports().len();
        self.keep_early();
        self.end_day(&mut oms);
        let reports = self.reports();
        assert!(reports.len() > early && early > 4, "{early} reports, {} with the last ones", reports.len());
        let places = self.places(DropCopyStart::Place { place: 1, last_sum: 0 });
        assert_eq!(places.len(), reports.len());
        (oms, DayReports { reports, places, early })
    }

    /// Copies the history as it is.
    fn keep_early(&self) {
        let aside = self.history().with_extension("early");
        fs::create_dir(&aside).expect("it is ours");
        for name in ["control", "data"] {
            fs::copy(self.history().join(name), aside.join(name)).expect("it is there");
        }
    }

    /// Returns all reports in the journal.
    fn reports(&self) -> Vec<ReportSum> {
        let frames = client_frames(&self.0.replay().2, 0);
        (0..).zip(frames).map(|(number, (kind, bytes))| (number, kind, crc32c::crc32c(&bytes))).collect()
    }

    /// Returns the place and number of each report that a drop copy reads.
    fn places(&self, from: DropCopyStart) -> Vec<(u64, u64)> {
        let mut copy = DropCopyReader::open(self.journal(), from).expect("there is a history").expect("no day ends");
        let (mut places, mut quiet) = (Vec::new(), 0);
        // The reader checks only now and then whether another day has begun.
        while quiet < 100 {
            let before = places.len();
            let read = copy.read_frames(64, |place, report, _| {
                places.push((place, report.number));
                true
            });
            read.expect("the history is sound");
            quiet = if places.len() == before { quiet + 1 } else { 0 };
        }
        places
    }

    /// Checks that a session that resumes within the day receives the rest of it once, and the later reports.
    fn check(&self, oms: &mut Inline<SimulatedClock>, day: &DayReports, when: &str) {
        self.order(oms, 10 + self.reports().len() as u64);
        let reports = self.reports();
        assert_eq!(reports[..day.reports.len()], day.reports, "{when}: the journal has not changed");
        for from in [0, 2, day.early - 1, day.early, day.reports.len()] {
            assert_eq!(replayed_reports(oms, from as u64), reports[from..], "{when}: from report {from}");
        }
        let from = day.early / 2;
        let (place, _) = day.places[from];
        let (.., last_sum) = day.reports[from - 1];
        let places = self.places(DropCopyStart::Place { place, last_sum });
        let (old, new) = places.split_at(day.places.len() - from);
        assert_eq!(old, &day.places[from..], "{when}: each report keeps its place");
        let next = |list: &[(u64, u64)]| list.last().map(|&(place, number)| (place + 2, number + 1));
        assert_eq!(new.first().copied(), next(old), "{when}: behind the day's last place the next day begins");
        assert_eq!(old.len() + new.len(), reports.len() - from, "{when}: each report once");
    }
}

fn is_reported_lost(oms: &mut Inline<SimulatedClock>) -> bool {
    oms.sequencer().notices().any(|notice| matches!(notice, Notice::HistoryLost(_)))
}

/// Returns the reports that a session receives if it resumes with this number.
fn replayed_reports(oms: &mut Inline<SimulatedClock>, from: u64) -> Vec<ReportSum> {
    let marks = oms.sequencer().history_index().expect("it has one");
    let (mut received, mut next) = (Vec::new(), from);
    loop {
        let mut reading = marks.read(0, next).expect("the history is sound");
        let mut take = |reading: &mut tickpath_oms_runtime::history::SessionReader| {
            reading.read_frames(64, |report| {
                received.push((report.number, report.kind, crc32c::crc32c(report.message)));
                next = report.number + 1;
                true
            })
        };
        while take(&mut reading).expect("the history is sound") {}
        if !reading.is_over() {
            return received;
        }
        // Reports missing from the day before are nowhere.
        next = next.max(marks.first(0));
    }
}

/// Returns the folder of the archived second day.
fn second_day(history: &Path) -> PathBuf {
    let days = fs::read_dir(history.join("archive")).expect("it is there").map(|day| day.expect("it is there").path());
    days.max().expect("there are some")
}

/// Moves these files back from the archive.
fn bring_back(history: &Path, names: &[&str]) {
    for name in names {
        fs::rename(history.join("archive/00000000000000000000").join(name), history.join(name)).expect("it is there");
    }
}

/// Restores the early copy.
fn bring_early(history: &Path) {
    for name in ["control", "data"] {
        fs::copy(history.with_extension("early").join(name), history.join(name)).expect("it is there");
    }
}
