//! Checks around a run, on planted facts: the machine stayed the same, and its processors show the same time.

use tickpath_clock::{Calibration, ClockOffset, SimulatedClock};
use tickpath_lab_harness::busy_processes::BusyProcess;
use tickpath_lab_harness::host::TransferTiming;
use tickpath_lab_harness::rules::refuse_negative;
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::stability::{judge, note_busy_processes};
use tickpath_lab_result::Run;

/// The result of round trips of 100 ns each way to a counter that is `ahead_ns` ahead at each trip.
fn crossing(transfer_ns: f64, ahead_ns: impl Fn(usize) -> i64) -> TransferTiming {
    let trips = SimulatedClock::at(1_000_000).round_trips(&[(100, 100); 20], ahead_ns);
    TransferTiming {
        transfer_ns,
        offset: ClockOffset::of(&trips, &Calibration::nanoseconds()).expect("there are trips"),
    }
}

/// Returns a run with these samples, after it was judged.
fn judged(crossings: [TransferTiming; 2], samples: &[(u64, u64)]) -> Run {
    let mut run = Run { valid: true, ..Run::default() };
    run.figures.insert("one_way_over_transfer_ratio".to_owned(), 3.0);
    for name in ["one_way", "in_queue"] {
        run.hops.insert(name.to_owned(), Samples(samples.to_vec()).hop(&Calibration::nanoseconds(), &[]));
    }
    judge(&mut run, crossings, Some(0.0));
    refuse_negative(&mut run);
    run
}

fn check(before: TransferTiming, after: TransferTiming, samples: &[(u64, u64)], valid: bool, words: &[&str]) {
    let run = judged([before, after], samples);
    assert_eq!((run.valid, run.notes.len()), (valid, words.len()), "{:?}", run.notes);
    for (note, word) in run.notes.iter().zip(words) {
        assert!(note.contains(word), "'{note}' does not say '{word}'");
    }
}

#[test]
fn a_wrong_clock_invalidates_a_run_with_a_note() {
    let good = || crossing(100.0, |_| 0);
    check(good(), good(), &[(0, 500)], true, &[]);
    // Within the resolution of the check, which is half a round trip.
    check(good(), good(), &[(500, 450)], true, &[]);
    check(good(), good(), &[(5_000, 500)], false, &["ended before they began"]);
    let ahead = crossing(100.0, |_| 2_000);
    check(ahead, good(), &[(0, 500)], false, &["1900 to 2100 ns ahead"]);
    check(good(), ahead, &[(0, 500)], false, &["1900 to 2100 ns ahead"]);
    let back = crossing(100.0, |trip| if trip < 10 { 0 } else { -1_000 });
    check(good(), back, &[(0, 500)], false, &["stepped back"]);
}

#[test]
fn a_moved_floor_is_noted_and_excluded_from_ratios() {
    let at = |transfer_ns| crossing(transfer_ns, |_| 0);
    check(at(52.0), at(205.0), &[(0, 500)], true, &["52 ns before the run and 205 ns after it"]);
    check(at(205.0), at(52.0), &[(0, 500)], true, &["moved its CPUs"]);
    let has_ratio = |after| judged([at(100.0), at(after)], &[]).figures.contains_key("one_way_over_transfer_ratio");
    assert_eq!([140.0, 160.0].map(has_ratio), [true, false]);
    let floor = judged([at(100.0), at(140.0)], &[]).floor.expect("it is written down");
    assert_eq!((floor.cache_line_transfer_before_ns, floor.cache_line_transfer_after_ns), (100.0, 140.0));
    assert_eq!(floor.counter_offset_ns, 100);
}

#[test]
fn busy_processes_are_noted_by_name() {
    let mut run = Run { valid: true, ..Run::default() };
    note_busy_processes(&mut run, &[]);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    note_busy_processes(&mut run, &[BusyProcess { pid: 77, name: "hog".to_owned(), percent: 87.0 }]);
    assert_eq!((run.valid, run.notes), (true, vec!["process 77 (hog) took 87 % of a CPU meanwhile".to_owned()]));
}
