//! `docs/peers.md`, made from a result file alone: a pure function.

use std::collections::BTreeMap;

use tickpath_lab_compare::value;
use tickpath_lab_report::{NONE, duration, figure, safe};
use tickpath_lab_result::{Comparison, ResultFile, Run, median};

use crate::bench::{ratio_name, runs_of, values};
use crate::plan::{KINDS, Kind, OURS};

/// What each system is here, in the shape that its own manual has for latency.
const SHAPES: &[(&str, &str)] = &[
    (
        OURS,
        "our log, `shm://`: between processes; its reader is registered, reads in place and loses nothing; `overwrite` where \
         the cost of many readers is asked for",
    ),
    ("rtrb", "a bare ring between two threads of one process; batches are chunks; one reader"),
    (
        "ringfire",
        "a ring in shared memory, slots of one size up to 1,024 B, an arena for what is longer; its own `push_batch`",
    ),
    ("iceoryx2", "`publish_subscribe` over `ipc::Service`, samples loaned, written once and read in place; no batches"),
    (
        "aeron",
        "`aeron:ipc` in Java, exclusive publication, `tryClaim`; both ends spin, and for want of a third CPU the \
         publisher's thread drives the embedded media driver (`INVOKER`); no batches",
    ),
    (
        "chronicle",
        "Chronicle Queue in Java on `/dev/shm`, one appender, tailers that spin, no pretoucher; keeps everything",
    ),
    (
        "zeromq",
        "`ipc`, publish and subscribe at a rate, push and pull at full speed; its I/O threads need the CPUs too, so \
         both ends sleep",
    ),
];

/// The page.
pub fn page(result: &ResultFile) -> String {
    let mut text = head(result);
    text += &systems(result);
    for kind in &KINDS {
        text += &table(result, kind);
    }
    text += &lines(result);
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
        Some(level) if level > 0.0 => format!("they hold for all lines of the file at once in {level:.0} % of cases"),
        _ => "these are too few rounds to say how often all of them hold together".to_owned(),
    };
    format!(
        "<!-- Made by `make peers-page` from docs/results/peers.json.gz. -->\n\n\
         # Beside other people's systems\n\n\
         Measured in turn with ours, round after round, each in the shape that its own manual has for latency:\n\
         `make bench-peers` does it on your machine, `make peers-page` makes this page. Peers in Rust run in the\n\
         loop of `tickpath bench pubsub`; those in Java in one of their own, by the words of\n\
         [clients.md](clients.md), warmed up before. A peer's message is its payload alone, with the stamp in it;\n\
         ours has its header besides.\n\n\
         Here: {rounds} rounds on two CPUs of {} ({} of them, Linux {}). Before and after each run a cache line\n\
         took {} to {} from one CPU to the other; a run whose floor moved says so in the file.\n\n\
         A figure is the median of the runs that kept the rules; † marks one of which none did. Behind it stands\n\
         how many times ours it is, as the median of the ratios within each round, which need not be the ratio of\n\
         the medians, and its interval: {level}. Above 1 the peer takes longer, or, in the throughput, carries more.\n\
         **Bold is a peer that is ahead of us by that median;** where the interval holds 1, the rounds do not decide it.\n\n\
         While they spin with nothing to do, both ends of ours rehearse (`--warm on`, as it comes; the publisher calls\n\
         `idle()`), and the loop keeps its own code warm for all; the peers have no such call. At a rate means\n\
         10,000 messages a second, a thousand for who cannot keep that.\n",
        safe(&host.cpu),
        host.cores,
        safe(&host.kernel),
        duration(least),
        duration(most),
    )
}

fn systems(result: &ResultFile) -> String {
    let mut text =
        "\n## Who takes part\n\n| system | version | what it is here | at a rate | at full speed | waits |\n\
                    |---|---|---|---|---|---|\n"
            .to_owned();
    for name in values(&result.runs, "system") {
        let runs: Vec<&Run> = result.runs.iter().filter(|run| is(run, "system", &name)).collect();
        let told = |name: &str, at_full_speed: bool| {
            let of = runs.iter().filter(|run| is(run, "rate_per_s", "max") == at_full_speed);
            of.filter_map(|run| run.params.text(name)).next().unwrap_or(NONE.to_owned())
        };
        let software = runs.iter().find(|run| run.software.client_version.is_some()).map(|run| &run.software);
        let version: Vec<String> =
            software.iter().flat_map(|s| [s.client_version.clone(), s.runtime.clone()]).flatten().collect();
        let shape = SHAPES.iter().find(|(known, _)| *known == name).map_or("", |(_, shape)| shape);
        let (rate, full, waits) = (told("policy", false), told("policy", true), told("wait", false));
        text += &format!("| {name} | {} | {shape} | {rate} | {full} | {waits} |\n", safe(&version.join(", ")));
    }
    text
}

/// The cases of a kind in rows, whoever has one of them in columns.
fn table(result: &ResultFile, kind: &Kind) -> String {
    let cases: Vec<String> =
        values(&result.runs, "case").into_iter().filter(|case| case.starts_with(kind.begins)).collect();
    if cases.is_empty() {
        return String::new();
    }
    rows(result, kind.title, &cases, |system, case| {
        let value = median_of(result, system, case, kind.figure)?;
        let name = ratio_name(system, case);
        Some(match result.comparisons.iter().find(|line| line.name == name) {
            None => value,
            Some(line) => beside(&value, line, kind.more_is_better),
        })
    })
}

/// What a line of ours takes beside a bare one, a cache line a message in both.
fn lines(result: &ResultFile) -> String {
    let begin = format!("{OURS}_32_B_to_rtrb_64_B ");
    let found = result.comparisons.iter().filter_map(|line| Some((line.name.strip_prefix(&begin)?, line)));
    let sentences: Vec<String> = found
        .filter_map(|(how, line)| {
            let told = format!("{how} {} and {}", shown(&line.figure, line.a?), shown(&line.figure, line.b?));
            Some(format!("{told}, which is {}", ratio(line)?))
        })
        .collect();
    if sentences.is_empty() {
        return String::new();
    }
    format!("\nA cache line a message in both, 32 B of ours beside 64 B of rtrb: {}.\n", sentences.join("; "))
}

fn processor_time(result: &ResultFile) -> String {
    let wanted = |case: &String| case.starts_with("throughput") || case.as_str() == "one way 64 B";
    let cases: Vec<String> = values(&result.runs, "case").into_iter().filter(wanted).collect();
    let text = rows(result, "Processor time of both ends a message", &cases, |system, case| {
        median_of(result, system, case, "cpu_per_message_ns")
    });
    text + "\nAt a rate this is how they wait: two CPUs that spin use all of their time. The kernel counts hundredths \
            of a second.\n"
}

/// A table of cells; a column without any is left out.
fn rows(result: &ResultFile, title: &str, cases: &[String], cell: impl Fn(&str, &str) -> Option<String>) -> String {
    let has_any = |system: &String| cases.iter().any(|case| cell(system, case).is_some());
    let systems: Vec<String> = values(&result.runs, "system").into_iter().filter(has_any).collect();
    let mut text = format!("\n## {title}\n\n| | {} |\n|---|{}\n", systems.join(" | "), "--:|".repeat(systems.len()));
    for case in cases {
        let cells: Vec<String> = systems.iter().map(|system| cell(system, case).unwrap_or(NONE.to_owned())).collect();
        text += &format!("| {case} | {} |\n", cells.join(" | "));
    }
    text
}

fn foot(result: &ResultFile) -> String {
    let invalid: Vec<&Run> = result.runs.iter().filter(|run| !run.valid).collect();
    let mut text = format!("\n## What was left out\n\n{} of {} runs broke a rule.\n", invalid.len(), result.runs.len());
    // Reasons that differ in their figures only are one, told by the first of them.
    let mut told: BTreeMap<String, (&str, BTreeMap<String, usize>)> = BTreeMap::new();
    for run in invalid {
        let why = run.notes.first().map_or("", String::as_str);
        let kind = why.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect();
        let name = |key: &str| run.params.text(key).unwrap_or_default();
        let place = format!("{}, {}", name("system"), name("case"));
        *told.entry(kind).or_insert((why, BTreeMap::new())).1.entry(place).or_default() += 1;
    }
    for (why, places) in told.values() {
        let places: Vec<String> = places.iter().map(|(place, count)| format!("{place} ({count})")).collect();
        text += &format!("* {}\n  Runs: {}.\n", safe(why), places.join("; "));
    }
    for finding in &result.findings {
        text += &format!("* {}\n", safe(finding));
    }
    text + &format!("\nCommand: `{}`, {}.\n", result.command, result.started_at)
}

/// A value with its ratio to ours; bold if that is ahead of ours.
fn beside(value: &str, line: &Comparison, more_is_better: bool) -> String {
    let is_ahead = line.ratio.is_some_and(|ratio| if more_is_better { ratio > 1.0 } else { ratio < 1.0 });
    let text = match ratio(line) {
        Some(ratio) => format!("{value}; {ratio}"),
        None => format!("{value}; no ratio"),
    };
    if is_ahead { format!("**{text}**") } else { text }
}

/// `0.83 × (0.76 to 0.99)`.
fn ratio(line: &Comparison) -> Option<String> {
    let two = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let interval = line.low.zip(line.high).map(|(low, high)| format!(" ({} to {})", two(low), two(high)));
    Some(format!("{} ×{}", two(line.ratio?), interval.unwrap_or_default()))
}

/// The median of the runs that kept the rules; of all of them, marked, if none did.
fn median_of(result: &ResultFile, system: &str, case: &str, name: &str) -> Option<String> {
    let of = |valid_only: bool| {
        let runs = runs_of(&result.runs, system, case).filter(move |run| run.valid || !valid_only);
        median(runs.filter_map(|run| value(run, name)).collect())
    };
    of(true).map(|value| shown(name, value)).or_else(|| Some(shown(name, of(false)?) + " †"))
}

/// A figure with its unit; rates in millions.
fn shown(name: &str, value: f64) -> String {
    if name.ends_with("_per_s") { format!("{:.3} M/s", value / 1e6) } else { figure(name, value) }
}

fn is(run: &Run, name: &str, value: &str) -> bool {
    run.params.text(name).is_some_and(|found| found == value)
}

#[cfg(test)]
mod tests {
    use tickpath_lab_compare::{Line, table};

    use super::*;

    fn run(system: &str, repeat: u32, per_s: f64, valid: bool) -> Run {
        let mut run = Run { repeat, valid, throughput_per_s: Some(per_s), ..Run::default() };
        run.params.set("system", system);
        run.params.set("case", "throughput 64 B by 32");
        run
    }

    fn file(peer_per_s: f64, valid: bool) -> String {
        let ours = [run(OURS, 1, 5e7, true), run(OURS, 2, 5e7, true)];
        let theirs = [run("rtrb", 1, peer_per_s, valid), run("rtrb", 2, peer_per_s, valid)];
        let name = ratio_name("rtrb", "throughput 64 B by 32");
        let comparisons = table([Line::of_runs(&name, "throughput_per_s", &theirs, &ours)]);
        page(&ResultFile { runs: ours.into_iter().chain(theirs).collect(), comparisons, ..ResultFile::default() })
    }

    #[test]
    fn a_peer_that_is_ahead_is_bold() {
        assert!(file(1e8, true).contains("| 50.000 M/s | **100.000 M/s; 2.00 × (2.00 to 2.00)** |"));
        assert!(file(2e7, true).contains("| 50.000 M/s | 20.000 M/s; 0.40 × (0.40 to 0.40) |"));
    }

    #[test]
    fn what_broke_a_rule_is_marked_and_has_no_ratio() {
        let page = file(1e8, false);
        assert!(page.contains("| 100.000 M/s † |") && page.contains("2 of 4 runs broke a rule"), "{page}");
    }
}
