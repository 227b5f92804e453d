//! The demo's text: the path as a picture, its hops, and the ratios beside it.

use std::collections::BTreeSet;

use tickpath_lab_harness::busy_processes::describe_busy;
use tickpath_lab_report::{duration, path_picture, wrapped};
use tickpath_lab_result::{Comparison, ResultFile, Run, RunPhase};

use super::findings::{COMPARED_RATE, DemoChange, DemoFindings};

/// Time from tick to order that the trade asks for, in nanoseconds.
const INDUSTRY_LIMIT_NS: f64 = 5_000.0;

/// Columns of the text.
const WIDTH: usize = 80;

/// Renders what the demo found, in lines of up to 80 columns.
pub fn text(result: &ResultFile, found: &DemoFindings) -> String {
    wrap_lines(&full_text(result, found))
}

/// Returns the most important sentences for the reader of the page: the trade's demand and the path's answer, the
/// cost of a broker in the path, and the cause of the tail.
pub fn findings(result: &ResultFile, found: &DemoFindings) -> Vec<String> {
    let path = path_alone(result);
    let mut sentences: Vec<String> = path.and_then(industry_verdict).into_iter().collect();
    let (first, others) = found.changes.split_at(found.changes.len().min(1));
    sentences.extend(first.iter().map(|change| change_sentence(result, change)));
    sentences.extend(path.into_iter().flat_map(tail_sentences));
    // A change with a pair is reported by its comparison.
    let without_pair = others.iter().filter(|change| comparison(result, change).is_none());
    sentences.extend(without_pair.map(|change| change_sentence(result, change)));
    sentences.extend(one_process(result));
    sentences.extend(venue(result));
    sentences
}

/// Returns whether each part has a valid figure: a comparison leaves out pairs that broke a rule.
pub fn is_complete(result: &ResultFile, found: &DemoFindings) -> bool {
    let mut alone = path_alone(result).into_iter().chain(one_process_run(result));
    alone.all(|run| run.valid) && found.changes.iter().all(|change| comparison(result, change).is_some())
}

/// Wraps lines that are too long; continuation lines keep their line's indentation.
fn wrap_lines(text: &str) -> String {
    let fit = |line: &str| match line.chars().count() > WIDTH {
        true => wrapped(line, WIDTH, line.len() - line.trim_start().len()),
        false => vec![line.to_owned()],
    };
    text.split('\n').flat_map(fit).collect::<Vec<_>>().join("\n")
}

/// Returns the text, with lines of any length.
fn full_text(result: &ResultFile, found: &DemoFindings) -> String {
    let mut out = String::new();
    if let Some(run) = path_alone(result) {
        if !run.valid {
            out.push_str(&format!(
                "\nNOT VALID: {} The figures of the path are shown as measured.\n",
                disturbed(found)
            ));
        }
        out.push_str("\nFrom a tick to an order at a venue on this machine: a feed, a strategy with its OMS and journal, a venue\n\n");
        out.push_str(&path_picture(run, WIDTH));
        out.push_str(LEGEND);
        out.push_str(&hops(run));
        out.push('\n');
        let sentences = industry_verdict(run).into_iter().chain(tail_sentences(run));
        sentences.for_each(|sentence| out.push_str(&format!("{sentence}\n")));
    }
    out.push_str(&changes(result, found));
    out.extend(one_process(result).map(|sentence| format!("\n{sentence}\n")));
    venue(result).iter().for_each(|sentence| out.push_str(&format!("{sentence}\n")));
    out.push_str(&invalid(result, found));
    out.push_str("\nOutside of this measurement: the network card, the network, and a real venue's own time.\n");
    for missing in &found.missing {
        out.push_str(&format!("Not run: {missing}\n"));
    }
    out
}

fn path_alone(result: &ResultFile) -> Option<&Run> {
    result.runs.iter().find(|run| run.hops.contains_key("tick_to_order"))
}

fn tail_sentences(run: &Run) -> impl Iterator<Item = String> {
    tail_cause(run).into_iter().chain(stall_notes(run)).chain(host_share(run))
}

const LEGEND: &str = "
T0: the order is sent. T1: the order system (OMS) sees it. T2: risk checks and
journal are done and it has gone to the venue. p50 is the median; an arrow
without p99 has a median only. busy spins, yield gives way, block sleeps,
adaptive sleeps until shortly before it has to be there.
";

/// Returns what disturbed the demo, and the remedy.
fn disturbed(found: &DemoFindings) -> String {
    match describe_busy(&found.others) {
        Some(others) => {
            format!("{others}. End what is busy, or leave it other CPUs with --cpus, and run the demo again.")
        }
        None => "no other process was busy, so the host may have stalled this machine. Run the demo again; the \
                 notes in the report say what each run broke."
            .to_owned(),
    }
}

/// Returns the number of runs that broke a rule of honest measuring, with the reason if the path's own run has not
/// given it above.
fn invalid(result: &ResultFile, found: &DemoFindings) -> String {
    let (all, invalid) = (result.runs.len(), result.runs.iter().filter(|run| !run.valid).count());
    let why = match path_alone(result) {
        Some(run) if !run.valid => ".".to_owned(),
        _ => format!(": {}", disturbed(found)),
    };
    match invalid {
        0 => String::new(),
        _ => format!("\n{invalid} of {all} runs did not keep the rules and are in no ratio{why}\n"),
    }
}

/// Formats a ratio with two digits.
fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

/// Returns a row for each hop, p50 to p99.99.
fn hops(run: &Run) -> String {
    let mut out =
        format!("\n{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}\n", "", "50%", "90%", "99%", "99.9%", "99.99%", "worst");
    for (name, hop) in run.hops_in_path_order() {
        if name.ends_with("_gap") {
            continue;
        }
        let [p50, _, p90, p99, p999, p9999] = hop.percentiles();
        let cell = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| duration(ns as f64));
        out.push_str(&format!(
            "{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}\n",
            name,
            cell(p50),
            cell(p90),
            cell(p99),
            cell(p999),
            cell(p9999),
            cell(hop.max_ns)
        ));
    }
    out
}

/// Returns whether the path is within the time that the trade asks for.
fn industry_verdict(run: &Run) -> Option<String> {
    let [Some(p50), _, _, Some(p99), ..] = run.hops.get("tick_to_order")?.percentiles() else { return None };
    let verdict = |ns: u64| if (ns as f64) <= INDUSTRY_LIMIT_NS { "within" } else { "above" };
    Some(format!(
        "The trade asks for {} from tick to order. Here: {} at the median ({}), {} at 99 % ({}).",
        duration(INDUSTRY_LIMIT_NS),
        duration(p50 as f64),
        verdict(p50),
        duration(p99 as f64),
        verdict(p99),
    ))
}

/// Returns the part that causes the tail: each part's time beyond its median, on average, because averages add up and
/// percentiles do not.
fn tail_cause(run: &Run) -> Option<String> {
    const PARTS: [(&str, &str, &str); 3] = [
        ("lateness", "before the feed sent", "the feed's, which was late"),
        ("service", "from there until the strategy had the tick", "the way's to the strategy, or its thread's"),
        ("t0_t2", "in the order system", "the order system's"),
    ];
    let beyond = |name: &str| {
        let hop = run.hops.get(name)?;
        Some(hop.mean_ns? - hop.p50_ns? as f64)
    };
    let parts = PARTS.map(|(name, ..)| beyond(name));
    let whole = beyond("tick_to_order").filter(|ns| *ns > 0.0);
    let (Some(whole), [Some(late), Some(way), Some(oms)]) = (whole, parts) else { return None };
    let shares = [late, way, oms].map(|ns| 100.0 * ns / whole);
    let parts = || PARTS.into_iter().zip(shares);
    let shares_text: Vec<String> = parts().map(|((_, when, _), share)| format!("{share:.0} % {when}")).collect();
    let largest = parts().find(|(_, share)| *share > 50.0);
    let whose = largest.map_or("of no part alone", |((.., whose), _)| whose);
    Some(format!(
        "On average an order takes {} longer than the median: {}. The tail is {whose}.",
        duration(whole),
        shares_text.join(", ")
    ))
}

fn stall_notes(run: &Run) -> impl Iterator<Item = String> {
    run.notes.iter().filter(|note| note.contains("was stalled for")).map(|note| format!("Note: {note}."))
}

fn host_share(run: &Run) -> Option<String> {
    let hop = run.hops.get("tick_to_order")?;
    let (Some(share), Some(calm)) = (hop.host_stall_share_p999, &hop.unstalled) else {
        return Some("The host's share of the tail is unknown for this run; see the notes in the report.".to_owned());
    };
    if share < 0.005 {
        return Some("No stall of the host explains any of the slowest thousandth.".to_owned());
    }
    let [.., raw, _] = hop.percentiles();
    let [.., without, _] = calm.percentiles();
    let duration_text = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| duration(ns as f64));
    Some(format!(
        "Stalls of the host explain at least {:.0} % of the slowest thousandth: 99.9 % is {} as measured, {} without \
         the stalled orders.",
        100.0 * share,
        duration_text(raw),
        duration_text(without)
    ))
}

/// Returns the path with a single change at a time, and in Python: each change in its own words, with its ratio or the
/// reason for having none.
fn changes(result: &ResultFile, found: &DemoFindings) -> String {
    if found.changes.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\nThe path at {} ticks a second, tick_to_order p50; behind a ratio its interval, and how often such a one \
         holds:\n",
        COMPARED_RATE
    );
    for change in &found.changes {
        out.push_str(&format!("  {}:\n    {}\n", change.what, figures(result, change)));
    }
    out
}

fn change_sentence(result: &ResultFile, change: &DemoChange) -> String {
    format!("{}: {}.", change.what, figures(result, change))
}

/// Returns both sides of a change, and its ratio or the reason for having none.
fn figures(result: &ResultFile, change: &DemoChange) -> String {
    let duration_text = |ns: Option<f64>| ns.map_or("–".to_owned(), duration);
    let [a, b] = change.sides;
    let Some(of) = comparison(result, change) else {
        let [a_ns, b_ns] = change.raw_ns.map(duration_text);
        return format!("no valid pair, so no ratio; as measured, not valid: {a_ns} {a}, {b_ns} {b}");
    };
    let [a_ns, b_ns] = [of.a, of.b].map(duration_text);
    let ratio = of.ratio.map_or(String::new(), |ratio| format!(": {} times ({})", times(ratio), interval(of)));
    let note = of.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
    let cpu = match change.cpu_ns {
        [Some(a_ns), Some(b_ns)] => format!("; processor time a tick {} {a}, {} {b}", duration(a_ns), duration(b_ns)),
        _ => String::new(),
    };
    format!("{a_ns} {a}, {b_ns} {b}{ratio}{note}{cpu}")
}

fn comparison<'a>(result: &'a ResultFile, change: &DemoChange) -> Option<&'a Comparison> {
    result.comparisons.iter().find(|comparison| comparison.name == change.name)
}

fn interval(of: &Comparison) -> String {
    let Some((low, high)) = of.low.zip(of.high) else { return "one valid pair, no spread".to_owned() };
    let level = match of.level_percent {
        // Rounded down, so that the text never exceeds the level.
        Some(level) if level >= 1.0 => format!("{} %", level.floor()),
        _ => "too few pairs for a level".to_owned(),
    };
    format!("{} to {}, {level}", times(low), times(high))
}

fn one_process_run(result: &ResultFile) -> Option<&Run> {
    result.runs.iter().find(|run| run.phase == RunPhase::Cold)
}

fn one_process(result: &ResultFile) -> Option<String> {
    let python = one_process_run(result)?;
    let figure = |name: &str| python.figures.get(name).map_or("–".to_owned(), |ns| duration(*ns));
    Some(format!(
        "One publish a process from Python, as scripts do it, {} of {} messages received: the publish call {} with its \
         connection, and {} from before that call until the subscriber has the message, both medians.",
        python.counts.received,
        python.counts.sent,
        figure("publish_one_process_ns"),
        figure("message_one_process_ns")
    ))
}

fn venue(result: &ResultFile) -> Vec<String> {
    let mut out = Vec::new();
    let mut listed = BTreeSet::new();
    for run in result.runs.iter().filter(|run| run.valid) {
        let (Some(connect), Some(share)) = (run.figures.get("tcp_connect_ns"), run.figures.get("path_share_percent"))
        else {
            continue;
        };
        let wait = run.params.text("wait").unwrap_or_default();
        if !listed.insert((run.target.clone(), wait.clone())) {
            continue;
        }
        out.push(format!(
            "To the venue: TCP connect {}; over {} ({wait}) our path is {share:.1} % of the way from tick to venue.",
            duration(*connect),
            run.target
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use tickpath_lab_harness::busy_processes::BusyProcess;
    use tickpath_lab_result::Hop;

    use super::*;

    /// Builds a path with a median of 789 ns, and three changes: with a ratio, without a ratio by design, and without a
    /// valid pair.
    fn planted(valid: bool, others: &[BusyProcess]) -> (ResultFile, DemoFindings) {
        let hop = Hop { count: 100, p50_ns: Some(789), ..Hop::default() };
        let hops = [("tick_to_order".to_owned(), hop)].into();
        let mut result = ResultFile::new("path", "", "");
        result.runs.push(Run { target: "shm://".to_owned(), valid, hops, ..Run::default() });
        let known = Comparison::new("known", "tick_to_order.p50_ns", 600.0, 200.0, Some((2.5, 3.5)));
        let note = Some("1 of 7 pairs was not valid on both sides".to_owned());
        result.comparisons.push(Comparison { level_percent: Some(87.5), note, ..known });
        let (a, b, note) = (Some(900.0), Some(300.0), Some("no ratio: two things differ".to_owned()));
        result.comparisons.push(Comparison { name: "beside".to_owned(), a, b, note, ..Comparison::default() });
        let change = |name, what: &str| DemoChange {
            name,
            what: what.to_owned(),
            sides: ["over A", "over B"],
            no_ratio: None,
            raw_ns: [Some(5_000.0), None],
            cpu_ns: [None; 2],
        };
        let words = [("known", "B in place of A"), ("beside", "B and A"), ("unknown", "C in place of A")];
        let mut changes = words.map(|(name, what)| change(name, what)).to_vec();
        changes[0].cpu_ns = [Some(45_000.0), Some(1e6)];
        (result, DemoFindings { changes, others: others.to_vec(), ..DemoFindings::default() })
    }

    fn printed(valid: bool, others: &[BusyProcess]) -> String {
        let (result, found) = planted(valid, others);
        let output = full_text(&result, &found);
        let fitted = wrap_lines(&output);
        assert!(fitted.lines().all(|line| line.chars().count() <= WIDTH), "{fitted}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&fitted), words(&output));
        output
    }

    #[test]
    fn a_change_without_a_valid_pair_shows_its_invalid_figures() {
        let output = printed(true, &[]);
        let words =
            "B in place of A:\n    600 ns over A, 200 ns over B: 3.0 times (2.5 to 3.5, 87 %); 1 of 7 pairs was";
        assert!(output.contains(words), "{output}");
        let words = "not valid on both sides; processor time a tick 45 µs over A, 1 ms over B\n";
        assert!(output.contains(words), "{output}");
        let words = "B and A:\n    900 ns over A, 300 ns over B; no ratio: two things differ\n";
        assert!(output.contains(words), "{output}");
        let words = "C in place of A:\n    no valid pair, so no ratio; as measured, not valid: 5 µs over A, – over B\n";
        assert!(output.contains(words) && !output.contains("NOT VALID"), "{output}");
    }

    #[test]
    fn findings_start_with_the_industry_limit_and_list_each_change() {
        let (mut result, found) = planted(true, &[]);
        let hop = Hop { p99_ns: Some(6_000), ..result.runs[0].hops["tick_to_order"].clone() };
        result.runs[0].hops.insert("tick_to_order".to_owned(), hop);
        result.findings = findings(&result, &found);
        let texts = &result.findings;
        assert!(texts[0].contains("asks for 5 µs") && texts[0].contains("789 ns at the median (within)"), "{texts:?}");
        assert!(texts[0].contains("6 µs at 99 % (above)"), "{texts:?}");
        assert!(texts[1].starts_with("B in place of A: 600 ns over A, 200 ns over B: 3.0 times"), "{texts:?}");
        assert!(texts.iter().any(|text| text.starts_with("C in place of A: no valid pair")), "{texts:?}");
    }

    #[test]
    fn the_tail_is_attributed_to_the_part_with_most_of_it() {
        let hop = |p50_ns, mean_ns| Hop { count: 100, p50_ns: Some(p50_ns), mean_ns: Some(mean_ns), ..Hop::default() };
        let printed = |lateness, service, t0_t2| {
            let hops = [("lateness", 10, lateness), ("service", 130, service), ("t0_t2", 510, t0_t2)];
            let whole = hops.iter().map(|(.., mean_ns)| mean_ns).sum::<f64>();
            let all = hops.into_iter().chain([("tick_to_order", 650, whole)]);
            let hops = all.map(|(name, p50_ns, mean_ns)| (name.to_owned(), hop(p50_ns, mean_ns))).collect();
            let notes = vec!["the feed was stalled for 50.00 ms".to_owned(), "another note".to_owned()];
            let run = Run { hops, notes, ..Run::default() };
            let tail: Vec<String> = tail_cause(&run).into_iter().chain(stall_notes(&run)).collect();
            tail.join("\n")
        };
        for (means, words) in [
            ((20_010.0, 5_130.0, 510.0), "25 µs longer than the median: 80 % before the feed sent, 20 % from there"),
            ((20_010.0, 5_130.0, 510.0), "the feed's, which was late.\nNote: the feed was stalled for 50.00 ms."),
            ((10.0, 25_130.0, 510.0), "The tail is the way's to the strategy"),
            ((10.0, 130.0, 25_510.0), "The tail is the order system's."),
            ((4_010.0, 4_130.0, 2_510.0), "The tail is of no part alone."),
        ] {
            let output = printed(means.0, means.1, means.2);
            assert!(output.contains(words) && !output.contains("another note"), "{words}\n{output}");
        }
        assert!(!printed(10.0, 130.0, 510.0).contains("longer than the median"), "there is no tail");
    }

    #[test]
    fn a_demo_with_an_invalid_part_is_not_complete() {
        let (mut result, mut found) = planted(true, &[]);
        assert!(!is_complete(&result, &found), "a change has no valid pair");
        found.changes.pop();
        // Single runs of a change with valid pairs may break a rule.
        result.runs.push(Run::default());
        assert!(is_complete(&result, &found));
        result.runs.push(Run { phase: RunPhase::Cold, ..Run::default() });
        assert!(!is_complete(&result, &found), "too few messages of one publish a process");
        let (mut result, found) = (planted(false, &[]).0, DemoFindings::default());
        assert!(!is_complete(&result, &found), "the path alone");
        result.runs[0].valid = true;
        assert!(is_complete(&result, &found));
    }

    #[test]
    fn a_disturbed_demo_names_the_process_and_shows_its_figures() {
        let output = printed(false, &[BusyProcess { pid: 77, name: "rustc".to_owned(), percent: 87.4 }]);
        assert!(output.contains("NOT VALID: process 77 (rustc) took 87 % of a CPU. End"), "{output}");
        assert!(output.contains("789 ns") && output.contains("1 of 1 runs"), "{output}");
        assert!(printed(false, &[]).contains("NOT VALID: no other process was busy"));
    }
}
