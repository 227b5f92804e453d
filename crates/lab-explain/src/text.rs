//! Formats the result for a terminal: the stages of a message as a waterfall, the gain of each change, and the
//! findings.

use super::findings::{change, gain};
use super::gain::change_words;
use super::stages::{StageGroup, stage_definition};
use tickpath_lab_compare::entry_or_default;
use tickpath_lab_report::{duration, figure, invalid};
use tickpath_lab_result::{ResultFile, Run, RunPhase, Software, Stage, StageKind};

/// Min number of columns of the output.
const MIN_WIDTH: usize = 72;

/// Columns of a change's words, and of each of its two times.
const CHANGE_WIDTH: usize = 18;
const TIME_WIDTH: usize = 9;

/// Columns of a stage's label, its time, its share, and the mark of its kind.
const LABEL_WIDTH: usize = 40;
const STAGE_TIME_WIDTH: usize = 10;
const SHARE_WIDTH: usize = 6;
const MARK_WIDTH: usize = 3;

/// Figures that get a line below the stages, with their labels.
const FIGURES: [(&str, &str); 9] = [
    ("stages_sum_percent", "stages, measured and bounded, of the whole"),
    ("connect_commands", "commands of the handshake"),
    ("subscribe_ns", "subscribe call until its confirmation"),
    ("empty_polls_per_message", "empty get_message calls a message"),
    ("reader_pause_ns", "pause before it asks again"),
    ("subscriber_cpu_percent", "processor of the subscriber"),
    ("message_by_payload_clock_ns", "by the clock in the payload"),
    ("hook_cost_per_message_ns", "cost of the stamps a message"),
    ("hook_cost_per_process_ns", "cost of the stamps a process"),
];

/// Formats the result for a terminal of `width` columns.
pub fn text(result: &ResultFile, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let mut out = section("", &[result.command.clone(), machine(result)], width);
    let explained: Vec<&Run> = result.runs.iter().filter(|run| !run.stages.is_empty()).collect();
    for run in &explained {
        out += &section("\n", &[title(run)], width);
        out += &waterfall(run, width);
        out += &figures(run);
    }
    if !explained.is_empty() {
        out += &section("\n", &LEGEND.map(str::to_owned), width);
    }
    out += &gains(result, width);
    let findings: Vec<String> = invalid(result).into_iter().chain(result.findings.iter().cloned()).collect();
    out += &section("\nFindings\n", &findings, width);
    out + &section("\nNotes\n", &notes(result), width)
}

const LEGEND: [&str; 2] = [
    "~ is bounded: it has no stamps of its own, but is what bare sockets, or on a log a cache line, need for the same \
     message elsewhere, what the server reports, or a share; its bounds stand below.",
    "? is what remains of the whole. What was had elsewhere may make the sum more than the whole.",
];

fn machine(result: &ResultFile) -> String {
    let host = &result.host;
    let software = result.runs.iter().map(|run| &run.software).find(|software| !software.is_unknown());
    let mut parts = vec![format!("{}, {} processors, {}", host.cpu, host.cores, result.started_at)];
    parts.extend(software.into_iter().flat_map(Software::names));
    parts.join(" · ")
}

fn title(run: &Run) -> String {
    let call = run.params.text("call");
    let is_message = run.timed_from.as_deref() == Some("read");
    let phase = match run.phase {
        RunPhase::Cold if call.is_some() => "cold: the first call of a process".to_owned(),
        RunPhase::Steady if is_message => "each message".to_owned(),
        RunPhase::Steady if call.is_some() => "steady: the further calls of a process".to_owned(),
        RunPhase::Cold => "cold: the first message of a process".to_owned(),
        RunPhase::Idle => {
            let pause = run.params.whole("idle_ns");
            format!("idle: the first message after {}", pause.map_or("a pause".to_owned(), |ns| duration(ns as f64)))
        }
        RunPhase::Steady => match run.params.text("rate_per_s") {
            Some(rate) => format!("steady: {rate} messages a second"),
            None => "steady: the further messages of a process".to_owned(),
        },
    };
    let invalid = if run.valid { "" } else { "  NOT VALID, see the notes" };
    let receive = run.params.text("receive").map_or(String::new(), |how| format!(", {how}"));
    let unit = if call.is_some() && !is_message { "calls" } else { "messages" };
    let call = call.map_or(String::new(), |name| format!(" {name}"));
    format!("{} {}{call}{receive}, {phase} ({} {unit}){invalid}", run.target, run.client, run.counts.received)
}

/// Formats a row per stage, each beginning where the previous one ends.
fn waterfall(run: &Run, width: usize) -> String {
    let is_before = |stage: &&Stage| stage_definition(&stage.name).is_some_and(|part| part.group == StageGroup::Before);
    let (before, within): (Vec<&Stage>, Vec<&Stage>) = run.stages.iter().partition(is_before);
    let whole = run.figures.get("message_ns").copied().unwrap_or(0.0);
    let columns = width - 2 - LABEL_WIDTH - STAGE_TIME_WIDTH - SHARE_WIDTH - MARK_WIDTH;
    let mut out = String::new();
    for stage in &before {
        out += &row(label(stage), stage.p50_ns.unwrap_or(0.0), String::new(), " ", "");
    }
    let mut from = 0.0;
    for stage in within {
        let ns = stage.p50_ns.unwrap_or(0.0);
        let mark = match stage.kind {
            StageKind::Measured => " ",
            StageKind::Bounded => "~",
            StageKind::Unexplained => "?",
        };
        out += &row(label(stage), ns, percent(ns, whole), mark, &bar(from, from + ns, whole, columns));
        if let Some([min, max]) = stage.bounds_ns {
            out += &format!("    {} to {}\n", duration(min), duration(max));
        }
        from += ns;
    }
    let from = run.timed_from.as_ref().map_or_else(String::new, |from| format!(", from its {from}"));
    out + &row(&format!("one message{from}"), whole, percent(whole, whole), "=", "")
}

fn row(label: &str, ns: f64, share: String, mark: &str, bar: &str) -> String {
    let line = format!("  {label:<LABEL_WIDTH$}{:>STAGE_TIME_WIDTH$}{share:>SHARE_WIDTH$} {mark} {bar}", duration(ns));
    format!("{}\n", line.trim_end())
}

fn label(stage: &Stage) -> &str {
    stage_definition(&stage.name).map_or(stage.name.as_str(), |part| part.label)
}

/// Draws a bar from one time to another on a line of `columns` columns; at least one mark.
fn bar(from: f64, to: f64, whole: f64, columns: usize) -> String {
    if whole <= 0.0 {
        return String::new();
    }
    let column_of = |ns: f64| ((ns / whole).clamp(0.0, 1.0) * columns as f64).round() as usize;
    let (first, last) = (column_of(from).min(columns.saturating_sub(1)), column_of(to));
    let length = last.saturating_sub(first).max(1);
    format!("{}{}", " ".repeat(first), "█".repeat(length))
}

fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0} %", 100.0 * part / whole) } else { String::new() }
}

fn figures(run: &Run) -> String {
    let known = FIGURES.into_iter().filter_map(|(name, words)| Some((words, figure(name, *run.figures.get(name)?))));
    known.map(|(words, value)| format!("    {words}: {value}\n")).collect()
}

/// Formats a row per change, grouped by base.
fn gains(result: &ResultFile, width: usize) -> String {
    let mut bases: Vec<(String, Vec<String>)> = Vec::new();
    for (comparison, name) in result.comparisons.iter().filter_map(|found| Some((found, change(found)?))) {
        let run = result.runs.iter().find(|run| run.params.text("gain").as_deref() == Some(name));
        let base = run.and_then(|run| run.params.text("base")).unwrap_or_default();
        let time = |ns: Option<f64>| ns.map_or("–".to_owned(), duration);
        let why = if comparison.note.is_some() { "not measured, see the findings" } else { "not measured" };
        let effect = gain(comparison).unwrap_or_else(|| why.to_owned());
        let [was, is] = [comparison.a, comparison.b].map(time);
        entry_or_default(&mut bases, base)
            .push(format!("  {:<CHANGE_WIDTH$}{was:>TIME_WIDTH$}{is:>TIME_WIDTH$}  {effect}\n", change_words(name)));
    }
    let tables = bases.into_iter().map(|(base, rows)| {
        let head = if base.is_empty() { String::new() } else { section("", &[format!("instead of: {base}")], width) };
        head + &rows.concat()
    });
    let tables: String = tables.collect();
    if tables.is_empty() {
        return tables;
    }
    let levels = result.comparisons.iter().filter(|one| change(one).is_some()).filter_map(|one| one.level_percent);
    let level = levels.reduce(f64::min).map_or(String::new(), |level| format!(" (all intervals: {} %)", level.floor()));
    format!(
        "\nWhat each change gains{level}\n  {:<CHANGE_WIDTH$}{:>TIME_WIDTH$}{:>TIME_WIDTH$}\n{tables}",
        "", "now", "then"
    )
}

/// Returns every distinct note once.
fn notes(result: &ResultFile) -> Vec<String> {
    let mut listed: Vec<String> = Vec::new();
    for note in result.runs.iter().flat_map(|run| &run.notes) {
        if !listed.contains(note) {
            listed.push(note.clone());
        }
    }
    listed
}

/// Formats sentences below a heading, broken into lines; nothing without sentences.
fn section(heading: &str, sentences: &[String], width: usize) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let lines: String = sentences.iter().map(|sentence| wrapped(sentence, width)).collect();
    format!("{heading}{lines}")
}

/// Wraps a sentence to at most `width` columns, with all lines but the first indented further.
fn wrapped(sentence: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = "  ".to_owned();
    for word in sentence.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width && !line.trim().is_empty() {
            out += line.trim_end();
            out += "\n";
            line = "    ".to_owned();
        }
        line += word;
        line += " ";
    }
    out + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use tickpath_lab_result::Comparison;

    use super::super::stages::{bounded, measured, unexplained};
    use super::*;

    fn result() -> ResultFile {
        let mut run = Run {
            target: "redis://127.0.0.1:6379".to_owned(),
            client: "redis-py".to_owned(),
            phase: RunPhase::Cold,
            valid: true,
            notes: vec!["a note that is long enough to be broken into lines on a narrow terminal".to_owned(); 2],
            stages: vec![
                measured("import_redis", 120e6),
                measured("connect_tcp", 3e6),
                bounded("kernel_and_wake_up", 0.5e6, 0.4e6, 1e6),
                unexplained("unexplained", 0.5e6).unwrap(),
            ],
            ..Run::default()
        };
        run.figures.insert("message_ns".to_owned(), 4e6);
        run.figures.insert("connect_ns".to_owned(), 3e6);
        run.figures.insert("stages_sum_percent".to_owned(), 87.5);
        let mut result = ResultFile::new("explain", "tickpath explain", "2026-01-01T00:00:00Z");
        result.runs.push(run);
        result.comparisons.push(Comparison::new("gain_hiredis", "one_way.p50_ns", 120e3, 100e3, Some((1.1, 1.3))));
        result
    }

    #[test]
    fn stages_lie_one_after_the_other_and_end_with_the_whole() {
        let mut result = result();
        result.findings = super::super::findings::findings(&result);
        let printed = text(&result, 100);
        let bars: Vec<(usize, usize)> = printed
            .lines()
            .filter(|line| line.contains('█'))
            .map(|line| {
                let first = line.chars().position(|c| c == '█').unwrap();
                (first, line.chars().filter(|c| *c == '█').count())
            })
            .collect();
        assert_eq!(bars.len(), 3, "{printed}");
        assert!(bars.windows(2).all(|pair| pair[1].0 == pair[0].0 + pair[0].1), "{bars:?}\n{printed}");
        let expected = [
            "import redis",
            "75 %",
            "4 ms",
            "~",
            "?",
            "400 µs to 1 ms",
            "1.2 times faster (1.1 to 1.3)",
            "Of 4 ms, 3 ms is",
        ];
        for words in expected {
            assert!(printed.contains(words), "'{words}' is missing in:\n{printed}");
        }
    }

    #[test]
    fn lines_fit_the_terminal_and_notes_are_not_repeated() {
        for width in [0, MIN_WIDTH, 90, 160] {
            let printed = text(&result(), width);
            let widest = printed.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.max(MIN_WIDTH), "{widest} columns of {width}:\n{printed}");
            assert_eq!(printed.matches("a note that is").count(), 1);
        }
    }

    #[test]
    fn changes_are_grouped_below_their_base() {
        let mut result = result();
        for (gain, base) in [("hiredis", "a listen"), ("log", "our bus"), ("one_core", "a listen")] {
            let mut run = Run::default();
            run.params.set("gain", gain);
            run.params.set("base", base);
            result.runs.push(run);
            let one = Comparison::new(&format!("gain_{gain}"), "one_way.p50_ns", 120e3, 100e3, Some((1.1, 1.3)));
            result.comparisons.push(Comparison { level_percent: Some(93.75), ..one });
        }
        let printed = text(&result, 80);
        let rows: Vec<&str> = printed.lines().skip_while(|line| !line.starts_with("What each")).skip(2).collect();
        let begins = [
            "instead of: a listen",
            "hiredis",
            "hiredis",
            "all on one core",
            "instead of: our bus",
            "log, same client",
        ];
        for (row, begin) in rows.iter().zip(begins) {
            assert!(row.trim_start().starts_with(begin), "'{begin}' is not the beginning of '{row}' in:\n{printed}");
        }
        assert!(printed.contains("(all intervals: 93 %)"), "{printed}");
    }

    #[test]
    fn a_change_without_figures_has_a_row_and_a_finding() {
        let mut result = result();
        let (name, figure) = ("gain_import_tickpath".to_owned(), "one_way.p50_ns".to_owned());
        let note = Some("there is no package; run pip install it".to_owned());
        result.comparisons.push(Comparison { name, figure, note, ..Comparison::default() });
        result.findings = super::super::findings::findings(&result);
        let printed = text(&result, MIN_WIDTH);
        let row = printed.lines().find(|line| line.trim_start().starts_with("import tickpath")).expect("a row");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[2..], ["–", "–", "not", "measured,", "see", "the", "findings"]);
        let findings: Vec<&str> = printed.split("Findings").nth(1).expect("findings").split_whitespace().collect();
        assert!(findings.join(" ").contains("not measured: there is no package; run pip install it."), "{printed}");
        assert!(printed.lines().all(|line| line.chars().count() <= MIN_WIDTH), "{printed}");
    }

    #[test]
    fn a_result_without_stages_has_no_legend() {
        let printed = text(&ResultFile::new("explain", "tickpath explain", ""), 80);
        assert!(!printed.contains("bounded") && !printed.contains("Findings"), "{printed}");
    }
}
