//! Foreign processes that took CPU time from a run, from the kernel's records.

use tickpath_lab_harness::busy_processes::{BusyProcess, ProcessTable, describe_busy};

const SECOND: u64 = 1_000_000_000;

/// A line of `/proc/PID/stat`: id, name, parent, hundredths of a second of its own and of ended children, last CPU.
fn stat((pid, name, parent, own, children, cpu): (u32, &str, u32, u64, u64, usize)) -> String {
    let between = vec!["0"; 21].join(" ");
    format!("{pid} ({name}) R {parent} 1 1 0 -1 4194560 0 0 0 0 {own} 0 {children} 0 {between} {cpu} 0 0")
}

type Stat = (u32, &'static str, u32, u64, u64, usize);

/// Returns the processes that were busy on CPU 0 or 1 in a second with these records, where process 10 is ours.
fn busy(before: &[Stat], after: &[Stat]) -> Vec<BusyProcess> {
    let at = |ns, stats: &[Stat]| {
        let stats: Vec<String> = stats.iter().copied().map(stat).collect();
        ProcessTable::of(ns, stats.iter().map(String::as_str))
    };
    at(SECOND, after).busy_since(&at(0, before), 10, &[0, 1])
}

fn named(pid: u32, name: &str, percent: f64) -> BusyProcess {
    BusyProcess { pid, name: name.to_owned(), percent }
}

#[test]
fn a_busy_process_is_named_with_its_share() {
    let quiet = [(1, "init", 0, 500, 9_000, 0), (10, "tickpath", 1, 100, 0, 0)];
    let hog = |ticks| (77, "a (mad) hog", 1, ticks, 0, 1);
    let named = |percent| [named(77, "a (mad) hog", percent)];
    assert_eq!(busy(&[quiet[0], quiet[1], hog(1_000)], &[quiet[0], quiet[1], hog(1_087)]), named(87.0));
    assert_eq!(busy(&quiet, &[quiet[0], quiet[1], hog(50)]), named(50.0), "it began meanwhile");
    assert_eq!(busy(&[hog(1_000)], &[hog(1_009)]), [], "what takes 9 % disturbs nobody");
    assert_eq!(busy(&quiet, &[(88, "far", 1, 100, 0, 2)]), [], "it ran on another CPU");
}

#[test]
fn the_busiest_is_named_and_the_others_are_counted() {
    let sentence = |busy: &[BusyProcess]| describe_busy(busy).unwrap_or_default();
    let found = busy(&[], &[(5, "low", 1, 12, 0, 0), (6, "high", 1, 80, 0, 1), (7, "middle", 1, 30, 0, 1)]);
    assert_eq!(sentence(&found), "process 6 (high) took 80 % of a CPU, 2 others 42 %");
    assert_eq!(sentence(&found[..2]), "process 6 (high) took 80 % of a CPU, another one 30 %");
    assert_eq!(sentence(&found[..1]), "process 6 (high) took 80 % of a CPU");
    assert_eq!(describe_busy(&[]), None);
}

#[test]
fn own_processes_are_not_reported() {
    let after = [(10, "tickpath", 1, 90, 0, 0), (11, "feed", 10, 100, 0, 0), (12, "redis-server", 11, 100, 0, 1)];
    assert_eq!(busy(&[], &after), []);
}

#[test]
fn cpu_time_of_ended_children_counts_for_their_parent() {
    let named = |percent| [named(70, "make", percent)];
    let make = |children| (70, "make", 1, 0, children, 0);
    assert_eq!(busy(&[make(500)], &[make(560)]), named(60.0));
    // A child with 400 ticks before is reaped after 30 more.
    assert_eq!(busy(&[make(500), (71, "cc", 70, 400, 0, 0)], &[make(930)]), named(30.0));
}
