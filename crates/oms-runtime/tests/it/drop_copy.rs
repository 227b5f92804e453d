//! Readers of the whole history while days end.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_clock::yield_now;
use tickpath_log::{LogMessage, LogOpenError, LogPath};
use tickpath_market::{Request, Side};
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_runtime::drop_copy::{DropCopyReader, DropCopyStart};
use zerocopy::IntoBytes;

use crate::{Clock, Scene, limit};

/// Days of the run, of which the last does not end, and reports of each day.
const DAYS: u64 = 61;
const REPORTS: u64 = 3;

#[test]
fn a_reader_misses_nothing_while_days_end() {
    let mut scene = Scene::new();
    (scene.config.history, scene.config.lanes.sessions) = (true, 0);
    let mut oms = scene.oms();
    let (journal, is_over) = (&scene.config.journal.path, &AtomicBool::new(false));
    let received = std::thread::scope(|scope| {
        // Opened before the first day ends: from then on, a day's beginning is that of a later one.
        let (next, copy) = (open(journal, DropCopyStart::Day).next(), open(journal, DropCopyStart::Day));
        let readers = [
            scope.spawn(move || read_anew(journal, next, is_over)),
            scope.spawn(move || read_on(copy, is_over)),
            scope.spawn(move || read_days(journal, is_over)),
        ];
        for day in 0..DAYS {
            for request in day * REPORTS..(day + 1) * REPORTS {
                // The quantity is too large: the order is denied, which is one report.
                let order = Request::New(limit(Side::Buy, request + 1, 90, 10_000_000));
                let now = scene.clock.ticks();
                oms.sequencer().accept_request(0, request, now, now, order).expect("the disk is sound");
            }
            if day + 1 == DAYS || readers.iter().any(|reader| reader.is_finished()) {
                break;
            }
            let (kind, end) = (RecordKind::DayEnd.code(), DayEnd::default());
            let command = LogMessage { sequence: day, stamp: 0, kind, payload: end.as_bytes() };
            oms.sequencer().accept_control_frame(scene.clock.ticks(), &command).expect("the disk is sound");
        }
        is_over.store(true, Ordering::SeqCst);
        readers.map(|reader| reader.join().expect("it misses nothing"))
    });
    assert_eq!(received[..2], [DAYS * REPORTS; 2], "each report, once");
    assert!(received[2] > 0, "no day was seen");
}

/// The disk may be busy for any time while a day is archived.
#[test]
fn an_absent_day_is_awaited_while_its_writer_lives() {
    let mut scene = Scene::new();
    (scene.config.history, scene.config.lanes.sessions) = (true, 0);
    let oms = scene.oms();
    let journal = &scene.config.journal.path;
    let data = journal.dir().join("reports").join("data");
    let away = data.with_extension("away");
    fs::rename(&data, &away).expect("the history is ours");
    assert!(matches!(DropCopyReader::open(journal, DropCopyStart::Day), Ok(None)), "its writer is there");
    fs::rename(&away, &data).expect("the history is ours");
    assert!(matches!(DropCopyReader::open(journal, DropCopyStart::Day), Ok(Some(_))));
    fs::rename(&data, &away).expect("the history is ours");
    drop(oms);
    assert!(
        matches!(DropCopyReader::open(journal, DropCopyStart::Day), Err(LogOpenError::NotFound(_))),
        "nobody begins another one"
    );
}

/// Reopens the history after every few reports, at the report after the last one read.
fn read_anew(journal: &LogPath, mut next: u64, is_over: &AtomicBool) -> u64 {
    let mut received = 0;
    loop {
        let was_over = is_over.load(Ordering::SeqCst);
        let mut copy = open(journal, DropCopyStart::Place { place: next, last_sum: 0 });
        assert_eq!(copy.next(), next, "it begins where it was told to");
        let before = received;
        turn(&mut copy, &mut received);
        next = copy.next();
        if was_over && received == before {
            return received;
        }
    }
}

/// Reads the whole history with a single reader.
fn read_on(mut copy: DropCopyReader, is_over: &AtomicBool) -> u64 {
    let mut received = 0;
    let mut quiet = 0;
    while quiet < 100 {
        let (was_over, before) = (is_over.load(Ordering::SeqCst), received);
        turn(&mut copy, &mut received);
        // The reader checks only now and then whether another day has begun.
        quiet = if was_over && received == before { quiet + 1 } else { 0 };
        yield_now();
    }
    received
}

/// Reads the beginning of each day.
fn read_days(journal: &LogPath, is_over: &AtomicBool) -> u64 {
    let mut received = 0;
    loop {
        let was_over = is_over.load(Ordering::SeqCst);
        let mut copy = open(journal, DropCopyStart::Day);
        // Each day has a base frame before its reports.
        let first = copy.next();
        assert_eq!(first % (REPORTS + 1), 0, "it begins with a day");
        let read = copy.read_frames(2, |place, report, _| {
            assert_eq!((place, report.number % REPORTS), (first + 1, 0), "a day begins with its first report");
            received += 1;
            true
        });
        read.expect("the history is sound");
        if was_over {
            return received;
        }
    }
}

fn open(journal: &LogPath, from: DropCopyStart) -> DropCopyReader {
    loop {
        if let Some(copy) = DropCopyReader::open(journal, from).unwrap_or_else(|e| panic!("while a day ends: {e}")) {
            return copy;
        }
        yield_now();
    }
}

/// Reads the available reports; all belong to one session.
fn turn(copy: &mut DropCopyReader, received: &mut u64) {
    let read = copy.read_frames(64, |place, report, _| {
        assert_eq!(report.number, *received, "at place {place}");
        *received += 1;
        true
    });
    read.expect("the history is sound");
}
