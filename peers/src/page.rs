//! The page `docs/peers.md`, as a pure function of a result file.

use std::collections::BTreeMap;

use tickpath_lab_compare::value;
use tickpath_lab_report::{NONE, duration, figure, safe};
use tickpath_lab_result::{Comparison, ResultFile, Run, median};

use crate::bench::{distinct_values, ratio_name, runs_of};
use crate::plan::{CaseKind, KINDS, OURS};

/// Configuration of each system: the one that its own manual recommends for latency.
const CONFIGURATIONS: &[(&str, &str)] = &[
    (
        OURS,
        "our log, `shm://`, between processes; the reader is registered, reads in place and loses nothing; `overwrite` \
         where the cost of many readers is measured",
    ),
    ("rtrb", "a bare ring between two threads of one process; a batch is a chunk; one reader"),
    (
        "ringfire",
        "a ring in shared memory with slots of one size up to 1,024 B, and an arena for longer messages; its own \
         `push_batch`",
    ),
    (
        "iceoryx2",
        "`publish_subscribe` over `ipc::Service`; samples are loaned, written once and read in place; no batches",
    ),
    (
        "aeron",
        "`aeron:ipc` in Java, exclusive publication, `tryClaim`; both ends spin, and because there is no third CPU the \
         publisher's thread drives the embedded media driver (`INVOKER`); no batches",
    ),
    (
        "chronicle",
        "Chronicle Queue in Java on `/dev/shm`, one appender, spinning tailers, no pretoucher; keeps every message",
    ),
    (
        "zeromq",
        "`ipc`, publish and subscribe at a rate, push and pull at full speed; its I/O threads need the CPUs too, so \
         both ends sleep",
    ),
];

/// Renders the page.
pub fn page(result: &ResultFile) -> String {
    let mut text = head(result);
    text += &systems(result);
    for kind in &KINDS {
        text += &case_table(result, kind);
    }
    text += &cache_line_comparison(result);
    text += &processor_time(result);
    text + &foot(result)
}

fn head(result: &ResultFile) -> String {
    let host = &result.host;
    let floors = result.runs.iter().filter_map(|run| run.floor);
    let transfers: Vec<f64> =
        floors.flat_map(|f| [f.cache_line_transfer_before_ns, f.cache_line_transfer_after_ns]).collect();
    let least = transfers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = transfers.iter().copied().fold(0.0, f64::max);
    let rounds = result.runs.iter().map(|run| run.repeat).max().unwrap_or(0);
    let level = match result.comparisons.iter().find_map(|line| line.level_percent) {
        Some(level) if level > 0.0 => format!("all intervals of the file hold together in {level:.0} % of cases"),
        _ => "there are too few rounds to state how often all intervals hold together".to_owned(),
    };
    format!(
        "<!-- Made by `make peers-page` from docs/results/peers.json.gz. -->\n\n\
         # Systems of other projects beside our log\n\n\
         Each system is measured in turn with our log, round after round, in the configuration that its own manual\n\
         recommends for latency. `make bench-peers` measures on your machine, and `make peers-page` makes this page.\n\
         Peers in Rust run in the loop of `tickpath bench pubsub`. Peers in Java run in a loop of their own, which\n\
         follows the protocol of [clients.md](clients.md) and is warmed up before. A message of a peer is its payload\n\
         alone, with the stamp in it; a message of our log also has a header.\n\n\
         Here: {rounds} rounds on two CPUs of {} ({} of them, Linux {}). Before and after each run a cache line\n\
         took {} to {} from one CPU to the other; a run whose floor moved is marked in the file.\n\n\
         A figure is the median of the valid runs; † marks a figure without any valid run. Behind a figure stands its\n\
         ratio to ours: the median of the ratios within each round, which need not be the ratio of the medians, and\n\
         its interval; {level}. Above 1 the peer takes longer, or, for throughput, carries more. **A bold figure is\n\
         ahead of ours by that median;** where the interval contains 1, the rounds do not decide.\n\n\
         While both ends of our log spin without work, they run the warm-up (`--warm on`, the default; the publisher\n\
         calls `idle()`), and the loop keeps its own code warm for every system; the peers have no such call. \"At a\n\
         rate\" means 10,000 messages a second, or 1,000 for a system that cannot sustain that rate.\n",
        safe(&host.cpu),
        host.cores,
        safe(&host.kernel),
        duration(least),
        duration(most),
    )
}

fn systems(result: &ResultFile) -> String {
    let mut text = "\n## Systems\n\n\
                    | system | version | configuration | policy at a rate | policy at full speed | wait |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for name in distinct_values(&result.runs, "system") {
        let runs: Vec<&Run> = result.runs.iter().filter(|run| has_param(run, "system", &name)).collect();
        let param = |name: &str, at_full_speed: bool| {
            let of = runs.iter().filter(|run| has_param(run, "rate_per_s", "max") == at_full_speed);
            of.filter_map(|run| run.params.text(name)).next().unwrap_or(NONE.to_owned())
        };
        let software = runs.iter().find(|run| run.software.client_version.is_some()).map(|run| &run.software);
        let version: Vec<String> =
            software.iter().flat_map(|s| [s.client_version.clone(), s.runtime.clone()]).flatten().collect();
        let configuration = CONFIGURATIONS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        let (rate, full, wait) = (param("policy", false), param("policy", true), param("wait", false));
        text += &format!("| {name} | {} | {configuration} | {rate} | {full} | {wait} |\n", safe(&version.join(", ")));
    }
    text
}

/// Renders the cases of a kind, with a column for each system that has any of them.
fn case_table(result: &ResultFile, kind: &CaseKind) -> String {
    let cases: Vec<String> =
        distinct_values(&result.runs, "case").into_iter().filter(|case| case.starts_with(kind.prefix)).collect();
    if cases.is_empty() {
        return String::new();
    }
    table(result, kind.title, &cases, |system, case| {
        let value = median_of(result, system, case, kind.figure)?;
        let name = ratio_name(system, case);
        Some(match result.comparisons.iter().find(|line| line.name == name) {
            None => value,
            Some(line) => with_ratio(&value, line, kind.more_is_better),
        })
    })
}

/// Compares a small message of ours with a longer one of rtrb, where both use a cache line per message.
fn cache_line_comparison(result: &ResultFile) -> String {
    let prefix = format!("{OURS}_32_B_to_rtrb_64_B ");
    let found = result.comparisons.iter().filter_map(|line| Some((line.name.strip_prefix(&prefix)?, line)));
    let parts: Vec<String> = found
        .filter_map(|(batch, line)| {
            let values = format!("{} and {}", value_text(&line.figure, line.a?), value_text(&line.figure, line.b?));
            Some(format!("{batch} {values}, a ratio of {}", ratio_text(line)?))
        })
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("\nWith a cache line per message in both, 32 B of our log beside 64 B of rtrb: {}.\n", parts.join("; "))
}

fn processor_time(result: &ResultFile) -> String {
    let wanted = |case: &String| case.starts_with("throughput") || case.as_str() == "one way 64 B";
    let cases: Vec<String> = distinct_values(&result.runs, "case").into_iter().filter(wanted).collect();
    let text = table(result, "Processor time of both ends per message", &cases, |system, case| {
        median_of(result, system, case, "cpu_per_message_ns")
    });
    text + "\nAt a rate the figure shows the wait strategy: two spinning CPUs use all of their time. The kernel counts \
            in hundredths of a second.\n"
}

/// Renders a table of cells; a column without any cell is omitted.
fn table(result: &ResultFile, title: &str, cases: &[String], cell: impl Fn(&str, &str) -> Option<String>) -> String {
    let has_any = |system: &String| cases.iter().any(|case| cell(system, case).is_some());
    let systems: Vec<String> = distinct_values(&result.runs, "system").into_iter().filter(has_any).collect();
    let mut text = format!("\n## {title}\n\n| | {} |\n|---|{}\n", systems.join(" | "), "--:|".repeat(systems.len()));
    for case in cases {
        let cells: Vec<String> = systems.iter().map(|system| cell(system, case).unwrap_or(NONE.to_owned())).collect();
        text += &format!("| {case} | {} |\n", cells.join(" | "));
    }
    text
}

fn foot(result: &ResultFile) -> String {
    let invalid: Vec<&Run> = result.runs.iter().filter(|run| !run.valid).collect();
    let mut text = format!("\n## Invalid runs\n\n{} of {} runs are not valid.\n", invalid.len(), result.runs.len());
    // Reasons that differ only in their figures share an entry, with the text of the first.
    let mut entries: BTreeMap<String, (&str, BTreeMap<String, usize>)> = BTreeMap::new();
    for run in invalid {
        let why = run.notes.first().map_or("", String::as_str);
        let kind = why.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect();
        let name = |key: &str| run.params.text(key).unwrap_or_default();
        let case = format!("{}, {}", name("system"), name("case"));
        *entries.entry(kind).or_insert((why, BTreeMap::new())).1.entry(case).or_default() += 1;
    }
    for (why, cases) in entries.values() {
        let cases: Vec<String> = cases.iter().map(|(case, count)| format!("{case} ({count})")).collect();
        text += &format!("* {}\n  Runs: {}.\n", safe(why), cases.join("; "));
    }
    for finding in &result.findings {
        text += &format!("* {}\n", safe(finding));
    }
    text + &format!("\nCommand: `{}`, {}.\n", result.command, result.started_at)
}

/// Returns a value with its ratio to ours, in bold if it is ahead of ours.
fn with_ratio(value: &str, line: &Comparison, more_is_better: bool) -> String {
    let is_ahead = line.ratio.is_some_and(|ratio| if more_is_better { ratio > 1.0 } else { ratio < 1.0 });
    let text = match ratio_text(line) {
        Some(ratio) => format!("{value}; {ratio}"),
        None => format!("{value}; no ratio"),
    };
    if is_ahead { format!("**{text}**") } else { text }
}

/// Formats a ratio with its interval: `0.83 × (0.76 to 0.99)`.
fn ratio_text(line: &Comparison) -> Option<String> {
    let two = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let interval = line.low.zip(line.high).map(|(low, high)| format!(" ({} to {})", two(low), two(high)));
    Some(format!("{} ×{}", two(line.ratio?), interval.unwrap_or_default()))
}

/// Returns the median of the valid runs; without any valid run that of all runs, marked.
fn median_of(result: &ResultFile, system: &str, case: &str, name: &str) -> Option<String> {
    let of = |valid_only: bool| {
        let runs = runs_of(&result.runs, system, case).filter(move |run| run.valid || !valid_only);
        median(runs.filter_map(|run| value(run, name)).collect())
    };
    of(true).map(|value| value_text(name, value)).or_else(|| Some(value_text(name, of(false)?) + " †"))
}

/// Formats a figure with its unit, and rates in millions.
fn value_text(name: &str, value: f64) -> String {
    if name.ends_with("_per_s") { format!("{:.3} M/s", value / 1e6) } else { figure(name, value) }
}

fn has_param(run: &Run, name: &str, value: &str) -> bool {
    run.params.text(name).is_some_and(|found| found == value)
}

#[cfg(test)]
mod tests {
    use tickpath_lab_compare::{RatioLine, ratio_table};

    use super::*;

    fn run(system: &str, repeat: u32, per_s: f64, valid: bool) -> Run {
        let mut run = Run { repeat, valid, throughput_per_s: Some(per_s), ..Run::default() };
        run.params.set("system", system);
        run.params.set("case", "throughput 64 B by 32");
        run
    }

    fn page_of(peer_per_s: f64, valid: bool) -> String {
        let ours = [run(OURS, 1, 5e7, true), run(OURS, 2, 5e7, true)];
        let theirs = [run("rtrb", 1, peer_per_s, valid), run("rtrb", 2, peer_per_s, valid)];
        let name = ratio_name("rtrb", "throughput 64 B by 32");
        let comparisons = ratio_table([RatioLine::of_runs(&name, "throughput_per_s", &theirs, &ours)]);
        page(&ResultFile { runs: ours.into_iter().chain(theirs).collect(), comparisons, ..ResultFile::default() })
    }

    #[test]
    fn a_peer_that_is_ahead_is_bold() {
        assert!(page_of(1e8, true).contains("| 50.000 M/s | **100.000 M/s; 2.00 × (2.00 to 2.00)** |"));
        assert!(page_of(2e7, true).contains("| 50.000 M/s | 20.000 M/s; 0.40 × (0.40 to 0.40) |"));
    }

    #[test]
    fn a_figure_without_valid_runs_is_marked_and_has_no_ratio() {
        let page = page_of(1e8, false);
        assert!(page.contains("| 100.000 M/s † |") && page.contains("2 of 4 runs are not valid"), "{page}");
    }
}
