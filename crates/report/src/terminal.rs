//! Text for a terminal: headlines first, then what many runs came to, each run, comparisons, and what the marks mean.

use super::group;
use super::ink::{Ink, wrapped};
use super::markup::plain;
use super::names::Titles;
use super::overview::overviews;
use super::plain_table::PlainTable;
use super::quantity::{count, duration_or_none};
use super::sentence::{comparison, facts, footnote, headlines, hop_remark, host, samples_needed};
use tickpath_result::{Hop, PERCENTILES, ResultFile, Run};

/// The least columns that a table can be read in.
const NARROWEST: usize = 60;

/// Columns of a hop's name, of its count, and of a time.
const NAME: usize = 20;
const COUNT: usize = 12;
const TIME: usize = 10;

/// The percentiles that a narrow terminal goes without, the first to go first; the file has them all.
const DISPENSABLE: [usize; 3] = [1, 2, 4];

/// The result for a terminal of `width` columns; orders come in blocks, as the order systems of exchanges print them.
pub fn terminal(result: &ResultFile, width: usize, colour: bool) -> String {
    let (ink, width, titles) = (Ink::new(colour), width.max(NARROWEST), Titles::of(result));
    let mut text = head(result, width, ink);
    for table in overviews(result) {
        text += &overview(&table, width, ink);
    }
    for run in &result.runs {
        text += "\n";
        text += &match group::name(run) {
            Some(name) => group::block(run, &name, width, ink),
            None => run_block(run, &titles.numbered(run), width, ink),
        };
        text += &notes(run, width, ink);
    }
    text += &comparisons(result, width, ink);
    text + &foot(result, width, ink)
}

fn head(result: &ResultFile, width: usize, ink: Ink) -> String {
    let title = format!("{}, {}", result.workload, result.started_at);
    let mut text = paragraph(&title, width, 2, |line| ink.accent(line));
    let machine: Vec<String> = host(result).into_iter().map(|(label, value)| format!("{label} {value}")).collect();
    text += &paragraph(&machine.join(" · "), width, 0, |line| ink.faint(line));
    text += &paragraph(&result.command, width, 4, |line| ink.faint(line));
    text += "\n";
    for sentence in headlines(result) {
        text += &paragraph(&sentence, width, 2, |line| ink.strong(line));
    }
    text
}

/// A table of as many columns as fit, the name on the left.
fn overview(table: &PlainTable, width: usize, ink: Ink) -> String {
    let header: Vec<String> = table.header.iter().map(|name| (*name).to_owned()).collect();
    let longest = |column: usize| {
        let cells = std::iter::once(&header).chain(&table.rows).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0) + 2
    };
    let widths: Vec<usize> = (0..header.len()).map(longest).collect();
    let name = widths[0].min(width / 2);
    let mut used = name;
    let fits = |column: &usize| {
        used += widths[*column];
        used <= width
    };
    let columns: Vec<usize> = (1..widths.len()).take_while(fits).collect();
    let line = |row: &[String]| {
        let first: String = plain(&row[0]).chars().take(name - 2).collect();
        let cells = columns.iter().map(|column| format!("{:>wide$}", plain(&row[*column]), wide = widths[*column]));
        format!("  {first:<wide$}{}", cells.collect::<String>(), wide = name - 2)
    };
    let mut text = format!("\n{}\n{}\n", ink.accent(table.title), ink.faint(&line(&header)));
    for row in &table.rows {
        text += &format!("{}\n", line(row));
    }
    text
}

fn run_block(run: &Run, title: &str, width: usize, ink: Ink) -> String {
    let mut text = paragraph(title, width, 2, |line| ink.accent(line));
    let shown = shown_percentiles(width);
    if !run.hops.is_empty() {
        let labels = shown.iter().map(|index| format!("{:>TIME$}", PERCENTILES[*index].label)).collect::<String>();
        let header = format!("  {:<NAME$}{:>COUNT$}{labels}{:>TIME$}", "hop", "count", "max");
        text += &format!("{}\n", ink.faint(&header));
    }
    for (name, hop) in run.hops_in_path_order() {
        text += &hop_rows(name, hop, &shown, width, ink);
    }
    for (label, value) in facts(run) {
        text += &paragraph(&format!("  {label}: {value}"), width, 4, str::to_owned);
    }
    text
}

fn hop_rows(name: &str, hop: &Hop, shown: &[usize], width: usize, ink: Ink) -> String {
    let mut text = format!("{}\n", row(name, hop.count, hop.percentiles(), hop.max_ns, shown));
    if let Some(rest) = &hop.unstalled {
        let line = row("  unstalled", rest.count, rest.percentiles(), rest.max_ns, shown);
        text += &format!("{}\n", ink.faint(&line));
    }
    if let Some(remark) = hop_remark(hop) {
        text += &paragraph(&format!("    {remark}"), width, 4, |line| ink.faint(line));
    }
    text
}

fn row(name: &str, samples: u64, percentiles: [Option<u64>; 6], max_ns: Option<u64>, shown: &[usize]) -> String {
    let name: String = plain(name).chars().take(NAME).collect();
    let times = shown.iter().map(|index| percentiles[*index]).chain([max_ns]);
    let times: String = times.map(|ns| format!("{:>TIME$}", duration_or_none(ns))).collect();
    format!("  {name:<NAME$}{:>COUNT$}{times}", count(samples))
}

fn shown_percentiles(width: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..PERCENTILES.len()).collect();
    for dispensable in DISPENSABLE {
        if 2 + NAME + COUNT + TIME * (shown.len() + 1) > width {
            shown.retain(|index| *index != dispensable);
        }
    }
    shown
}

fn notes(run: &Run, width: usize, ink: Ink) -> String {
    let verdict = (!run.valid).then(|| paragraph("  not valid", width, 4, |line| ink.alarm(line)));
    let notes = run.notes.iter().map(|note| paragraph(&format!("  {note}"), width, 4, str::to_owned));
    verdict.into_iter().chain(notes).collect()
}

fn comparisons(result: &ResultFile, width: usize, ink: Ink) -> String {
    if result.comparisons.is_empty() {
        return String::new();
    }
    let lines = result.comparisons.iter().map(|one| format!("  {}", comparison(one)));
    let text: String = lines.map(|line| paragraph(&line, width, 4, str::to_owned)).collect();
    format!("\n{}\n{text}", ink.accent("comparisons"))
}

/// What the marks mean, where one was printed: a block of orders marks the nearest rank, a table leaves a gap.
fn foot(result: &ResultFile, width: usize, ink: Ink) -> String {
    let lacking = |run: &&Run| run.hops.values().any(|hop| hop.percentiles().contains(&None));
    let gaps = result.runs.iter().filter(lacking).any(|run| group::name(run).is_none());
    let missing = footnote(result).filter(|_| gaps);
    let starred = result.runs.iter().filter(|run| group::name(run).is_some()).any(group::has_nearest_rank);
    let nearest = starred.then(|| format!("* too few samples, so the nearest rank: {}.", samples_needed()));
    let notes = missing.into_iter().chain(nearest);
    let text: String = notes.map(|note| paragraph(&note, width, 2, |line| ink.faint(line))).collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn paragraph(text: &str, width: usize, indent: usize, paint: impl Fn(&str) -> String) -> String {
    wrapped(text, width, indent).iter().map(|line| format!("{}\n", paint(line))).collect()
}
