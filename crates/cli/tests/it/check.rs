//! Planted lies: a counted fault is reported by the same number, and a delayed message is late by at least the delay,
//! however busy this machine is. Lies about the owner of lost time need an idle machine: `make check` plants those
//! too.

use crate::program::tickpath;

#[test]
fn faults_that_no_busy_machine_can_hide_are_detected() {
    let ran = tickpath(
        "check --quiet dropped doubled swapped late stalled unanswered cut gone killed starved-oms counter few-samples",
    );
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let thrice = ["doubled", "swapped"].map(|lie| (lie, 3));
    let twice = ["late", "stalled"].map(|lie| (lie, 2));
    let once = ["unanswered", "cut", "gone", "killed", "starved-oms"].map(|lie| (lie, 1));
    for (lie, times) in once.into_iter().chain(twice).chain(thrice).chain([("dropped", 5)]) {
        let rows = ran.out.lines().filter(|line| line.starts_with(lie)).count();
        assert_eq!(rows, times, "{lie}: {}", ran.out);
    }
    assert!(ran.out.contains("All 23 checks passed."), "{}", ran.out);
}

#[test]
fn an_unknown_fault_is_an_error_that_lists_the_known_ones() {
    let ran = tickpath("check white");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("'white'") && ran.err.contains("starved-publisher"), "{}", ran.err);
}
