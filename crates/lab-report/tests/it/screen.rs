//! Output for a terminal: a screen of headlines, and every run on demand.

use tickpath_lab_report::{TerminalOptions, html, terminal};
use tickpath_lab_result::{MessageCounts, ResultFile, Run};

use crate::example::{example, hop, minimal, workloads};

/// Lines of a screen.
const LINES: usize = 40;

fn shown(result: &ResultFile, width: usize, all: bool) -> String {
    terminal(result, &TerminalOptions { width, colour: false, all })
}

/// Builds a bench with many phases and repeats.
fn many() -> ResultFile {
    let mut result = ResultFile::new("pubsub", "tickpath bench pubsub --repeat 3", "2026-01-01T00:00:00Z");
    for repeat in 1..=3 {
        for target in ["shm://", "redis://h:1", "redis://h:1?streams", "nats://h:1", "kafka://h:1"] {
            for size in [64, 1024, 65_536] {
                let mut run = Run { target: target.to_owned(), client: "rust".to_owned(), repeat, ..Run::default() };
                run.valid = true;
                run.params.set("size_bytes", size);
                run.params.set("readers", 1);
                run.params.set("wait", "block");
                run.hops.insert("one_way".to_owned(), hop(if size == 64 { 5 } else { 2_000 }, 500 + size, 3));
                run.hops.insert("publish".to_owned(), hop(2_000, 90, 3));
                run.figures.insert("writer_cost_ns".to_owned(), 9_630.0);
                result.runs.push(run);
            }
        }
    }
    result
}

#[test]
fn many_runs_fit_a_screen_and_few_are_shown_in_full() {
    for (name, result, fits) in [
        ("many", many(), true),
        ("workloads", workloads(), true),
        ("example", example(), true),
        ("minimal", minimal(), false),
    ] {
        for width in [60, 80, 120] {
            let text = shown(&result, width, false);
            let count = text.lines().count();
            assert!(!fits || count <= LINES, "{name} at {width}: {count} lines\n{text}");
            assert_eq!(text.contains("--all"), shown(&result, width, true) != text, "{name} at {width}\n{text}");
        }
    }
    let mut one = many();
    one.runs.truncate(1);
    assert_eq!(shown(&one, 80, false), shown(&one, 80, true), "one run is shown as it is");
}

#[test]
fn lines_fit_and_colours_come_only_if_asked() {
    for (name, result) in [("many", many()), ("workloads", workloads()), ("example", example()), ("minimal", minimal())]
    {
        for (width, all) in [(80, false), (80, true), (120, false), (120, true)] {
            let bare = shown(&result, width, all);
            for line in bare.lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
            let coloured = terminal(&result, &TerminalOptions { width, colour: true, all });
            assert_eq!(uncoloured(&coloured), bare, "{name}");
            assert_ne!(coloured, bare, "{name}");
        }
    }
}

#[test]
fn targets_are_side_by_side_and_marks_are_explained() {
    let text = shown(&many(), 80, false);
    let header = text.lines().find(|line| line.contains("redis-streams")).expect("a column a target");
    for target in ["log", "redis", "nats", "kafka"] {
        assert!(header.contains(target), "{header}");
    }
    let mark = text.lines().position(|line| line.contains("ns*")).expect("three times five samples carry no median");
    let rest: Vec<&str> = text.lines().skip(mark).take(4).collect();
    assert!(rest.iter().any(|line| line.contains("* too few samples")), "{text}");
}

#[test]
fn a_loss_names_its_run_and_an_invalid_run_its_reason() {
    let mut result = many();
    result.runs[7].counts = MessageCounts { sent: 100, received: 36, lost: 64, ..MessageCounts::default() };
    result.runs[7].valid = false;
    result.runs[7].notes.push("64 messages were lost on a topic that promises to keep them".to_owned());
    for findings in [vec![], vec!["Redis takes longer.".to_owned()]] {
        result.findings = findings;
        let text = shown(&result, 80, false);
        let line_of_loss = text.lines().find(|line| line.contains("Messages lost")).expect("the loss is told");
        assert!(line_of_loss.contains("64, in redis://h:1?streams"), "{line_of_loss}");
        assert!(text.contains("not valid: redis://h:1?streams"), "{text}");
    }
    result.runs[8].counts.lost = 6;
    assert!(shown(&result, 120, false).contains("70 in 2 runs, 64 of them in redis"));
}

#[test]
fn a_search_beyond_the_highest_rate_is_no_problem() {
    let mut result = many();
    result.findings = vec!["log keeps one_way.p99 < 50us up to 118 000/s.".to_owned()];
    for run in &mut result.runs {
        run.valid = false;
        run.notes.push("the generator reached 79.9 % of its rate".to_owned());
        run.params.set("slo", "one_way.p99 < 50us");
    }
    let text = shown(&result, 80, false);
    assert!(!text.contains("are not valid") && !text.contains("79.9"), "{text}");
    result.runs[0].params = Run::default().params;
    assert!(shown(&result, 80, false).contains("1 of 45 runs is not valid"), "{text}");
}

#[test]
fn figures_have_one_unit() {
    let text = shown(&many(), 80, true);
    assert!(text.contains("writer cost: 9.63 µs") && !text.contains("_ns"), "{text}");
}

#[test]
fn cpu_time_of_the_waiting_side_is_beside_the_latency() {
    let mut result = many();
    for run in &mut result.runs {
        run.figures.insert("receiver_cpu_per_message_ns".to_owned(), 45_000.0);
    }
    let text = shown(&result, 80, true);
    let (_, table) = text.split_once("the receiver's processor time a message\n").expect("it has a table");
    assert!(table.lines().nth(1).is_some_and(|row| row.contains("45 µs")), "{text}");
    // Without phases the table has a row per kind of run.
    result.runs.iter_mut().for_each(|run| run.params = Run::default().params);
    let text = shown(&result, 120, false);
    assert!(text.contains("CPU a message") && text.contains("45 µs"), "{text}");
}

#[test]
fn a_search_is_a_curve_of_latency_over_rate_with_a_line_a_target() {
    for (targets, words) in [(vec!["shm://"], vec!["log"]), (vec!["shm://", "redis://h:1"], vec!["log", "redis"])] {
        let mut result = ResultFile::new("pubsub", "", "");
        for target in targets {
            for rate in [10_000.0, 40_000.0, 20_000.0] {
                let mut run = Run { target: target.to_owned(), client: "rust".to_owned(), repeat: 1, ..Run::default() };
                run.params.set("slo", "one_way.p99 < 50us");
                run.params.set("rate_per_s", rate);
                run.hops.insert("one_way".to_owned(), hop(2_000, rate as u64, 3));
                result.runs.push(run);
            }
        }
        let page = html(&result);
        let section = page.split("<h2>Latency over rate</h2>").nth(1).expect("it is a section");
        let chart = section.split("</svg>").next().expect("a chart ends");
        assert_eq!(chart.matches("<polyline").count(), 2 * words.len(), "a tail and a middle each");
        for word in words {
            assert!(chart.contains(&format!(">{word}</text>")), "no line is called {word}: {chart}");
        }
    }
}

#[test]
fn a_page_has_a_chart_before_many_sentences() {
    let mut result = workloads();
    result.findings = (1..=12).map(|number| format!("Finding {number}.")).collect();
    let page = html(&result);
    let chart = page.find("<svg").expect("there is a chart");
    let folded = page.find("<details><summary>8 more</summary>").expect("the others are folded");
    assert!(folded < chart && page.find("Finding 4.").is_some_and(|place| place < folded));
    assert!(page.find("Finding 5.").is_some_and(|place| place > folded), "four stand open");
    assert!(page.find("<h2>The machine</h2>").is_some_and(|place| place > chart), "the machine comes after the charts");
}

fn uncoloured(text: &str) -> String {
    let mut bare = String::new();
    for (index, piece) in text.split('\u{1b}').enumerate() {
        bare += if index == 0 { piece } else { piece.split_once('m').map_or("", |(_, rest)| rest) };
    }
    bare
}
