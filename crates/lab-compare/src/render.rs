//! A judgement as text, as Markdown and as a result file.

use super::judge::{Judgement, MAX_SAME_CHANGE, MetricChange, Verdict};
use super::limit::Ruling;
use super::noise::{Design, LEVEL};
use super::ratio::{CONFIDENCE, table_level};
use super::sample::{BuildSide, ComparedResults};
use tickpath_lab_report::{NONE, figure, plain, safe, table};
use tickpath_lab_result::{Comparison, ResultFile, Run};

const HEADER: [&str; 7] = ["what", "metric", "old", "new", "new/old", "interval", "verdict"];

/// The columns of [`HEADER`] that hold numbers.
const NUMBERS: std::ops::Range<usize> = 2..5;

/// Renders for a terminal: the changes, the possible changes, a count of the rest, and the notes.
pub fn text(judgement: &Judgement, rulings: &[Ruling]) -> String {
    let mut text = format!("{}\n\n", plain(&title(judgement)));
    let rows: Vec<Vec<String>> = listed(judgement).into_iter().map(row).collect();
    if !rows.is_empty() {
        text += &aligned(&rows);
        text += "\n";
    }
    for sentence in sentences(judgement, rulings) {
        text += &format!("{}\n", plain(&sentence));
    }
    text
}

/// Renders as Markdown, for a comment on a change.
pub fn markdown(judgement: &Judgement, rulings: &[Ruling]) -> String {
    let mut text = format!("## {}\n\n", safe(&title(judgement)));
    let rows: Vec<Vec<String>> = listed(judgement).into_iter().map(row).collect();
    if !rows.is_empty() {
        text += &table(&HEADER, &rows);
        text += "\n";
    }
    for sentence in sentences(judgement, rulings) {
        text += &format!("- {}\n", safe(&sentence));
    }
    text
}

/// Returns the runs of both sides, each with the setting `side`, and every ratio: `a` is new, `b` is old. `started_at`
/// is in RFC 3339.
pub fn result_file(
    measured: &ComparedResults,
    changes: &[MetricChange],
    command: &str,
    started_at: &str,
) -> ResultFile {
    let pairs = measured.pairs();
    let workload = pairs.first().map_or("", |pair| pair.new.workload.as_str());
    let mut result = ResultFile::new(workload, command, started_at);
    result.host = pairs.first().map(|pair| pair.new.host.clone()).unwrap_or_default();
    let runs = pairs.iter().flat_map(|pair| &pair.old.runs).chain(pairs.iter().flat_map(|pair| &pair.new.runs));
    let repeats = runs.map(|run| run.repeat).max().unwrap_or(0);
    for side in BuildSide::BOTH {
        for (before, pair) in (0u32..).zip(pairs) {
            result
                .runs
                .extend(pair.of(side).runs.iter().map(|run| with_side(run, side, before.saturating_mul(repeats))));
        }
    }
    let lines = changes.iter().filter(|change| change.interval.is_some()).count();
    result.comparisons = changes.iter().map(|change| comparison(change, lines)).collect();
    result.published = pairs.last().map(|pair| pair.new.published.clone()).unwrap_or_default();
    result
}

/// Returns the changes, the largest first; then the movements that may be noise.
fn listed(judgement: &Judgement) -> Vec<&MetricChange> {
    let size = |change: &MetricChange| change.ratio.map_or(f64::INFINITY, |ratio| ratio.ln().abs());
    let moved = judgement.changes.iter().filter(|change| change.is_real() || is_open(change));
    let mut listed: Vec<&MetricChange> = moved.collect();
    listed.sort_by(|a, b| b.is_real().cmp(&a.is_real()).then(size(b).total_cmp(&size(a))));
    listed
}

/// Returns whether the metric moved without a verdict.
fn is_open(change: &MetricChange) -> bool {
    change.verdict == Verdict::Unknown && change.exceeds_floor()
}

fn row(change: &MetricChange) -> Vec<String> {
    let [old, new] = [change.old, change.new].map(|value| figure(&change.metric, value));
    let ratio = change.ratio.map_or_else(|| NONE.to_owned(), ratio);
    let name = change.name().to_owned();
    vec![change.setting.clone(), name, old, new, ratio, interval(change), change.verdict.name().to_owned()]
}

fn interval(change: &MetricChange) -> String {
    match (change.ratio, change.interval) {
        (None, _) => NONE.to_owned(),
        (Some(_), None) => "one run each, so the noise is unknown".to_owned(),
        (Some(_), Some(interval)) => {
            let ends = format!("{} to {}", ratio(interval.low), ratio(interval.high));
            let level = interval.level * 100.0;
            if interval.level < CONFIDENCE { format!("{ends} ({level:.0} %)") } else { ends }
        }
    }
}

/// Formats a ratio, with three decimals near 1, where a percent matters.
fn ratio(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.3}×") } else { figure("_ratio", ratio) }
}

fn title(judgement: &Judgement) -> String {
    let [old, new] = judgement.samples;
    let samples = match judgement.design {
        Design::InTurn => format!("{old} {} of calls in turn", if old == 1 { "pair" } else { "pairs" }),
        Design::Apart => {
            format!("OLD has {old} {}, NEW {new}, measured apart", if old == 1 { "repeat" } else { "repeats" })
        }
    };
    format!("{}: NEW beside OLD ({samples})", judgement.workload)
}

/// Returns the count of unlisted metrics, the explanation of the verdicts, the rulings and the notes.
fn sentences(judgement: &Judgement, rulings: &[Ruling]) -> Vec<String> {
    let count = |which: &dyn Fn(&MetricChange) -> bool| judgement.changes.iter().filter(|change| which(change)).count();
    let changed = count(&MetricChange::is_real);
    let same = count(&|change: &MetricChange| change.verdict == Verdict::Same);
    let open = count(&is_open);
    let quiet = judgement.changes.len() - changed - same - open;
    let within = MAX_SAME_CHANGE * 100.0;
    let mut first =
        format!("{changed} changed, {same} are the same within {within:.0} %, {} are not known", open + quiet);
    if quiet > 0 {
        first += &format!(" ({quiet} of those moved by less than their noise floor and are not listed)");
    }
    let level = LEVEL * 100.0;
    let claim = match judgement.design {
        Design::InTurn => format!("Of identical builds at most {level:.0} % of such tables call any changed."),
        Design::Apart => {
            "For two files the rate of false alarms is unknown; run both programs in turn to get one.".to_owned()
        }
    };
    let mut sentences = vec![format!("{first}. {claim}")];
    sentences.extend(judgement.losses.iter().chain(&judgement.missing).cloned());
    sentences.extend(rulings.iter().map(|ruling| ruling.sentence.clone()));
    sentences.extend(judgement.notes.iter().map(|note| format!("note: {note}")));
    sentences
}

/// Pads columns to their widest cell; numbers are aligned on the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let header = HEADER.map(str::to_owned).to_vec();
    let shown = |cells: &Vec<String>| cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = std::iter::once(&header).chain(rows).map(shown).collect();
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    let mut text = String::new();
    for cells in &lines {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if NUMBERS.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

fn with_side(run: &Run, side: BuildSide, before: u32) -> Run {
    let mut run = run.clone();
    run.repeat = run.repeat.saturating_add(before);
    run.params.set("side", side.name().to_lowercase());
    run
}

/// Returns a change as a comparison whose level accounts for all `lines` lines.
fn comparison(change: &MetricChange, lines: usize) -> Comparison {
    Comparison {
        name: format!("new_to_old {}", change.setting),
        figure: change.metric.clone(),
        a: Some(change.new),
        b: Some(change.old),
        ratio: change.ratio,
        low: change.interval.map(|interval| interval.low),
        high: change.interval.map(|interval| interval.high),
        level_percent: change.interval.map(|interval| table_level(1.0 - interval.level, lines)),
        ..Comparison::default()
    }
}
