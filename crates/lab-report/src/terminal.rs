//! Text for a terminal: a screen of headlines, findings, ratios and a table; or, if that is no longer or was requested,
//! every run too.

use super::ink::{TerminalStyle, percentiles_in, wrapped};
use super::markup::plain;
use super::names::RunTitles;
use super::overview::overviews;
use super::plain_table::PlainTable;
use super::quantity::{NONE, count, duration_or_none};
use super::sentence::{
    NEAREST_RANK, comparison, facts, footnote, headlines, hop_remark, host, invalid_runs, unreported_comparisons,
};
use super::{group, runs};
use tickpath_lab_result::{Hop, PERCENTILES, ResultFile, Run};

/// Properties of a terminal.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    /// The width in columns.
    pub width: usize,
    /// Whether colours are enabled.
    pub colour: bool,
    /// Whether to show every run, however many screens that takes.
    pub all: bool,
}

/// Renders the result for a terminal; orders come in blocks, in the form of exchanges' order systems.
pub fn terminal(result: &ResultFile, screen: &TerminalOptions) -> String {
    let width = screen.width.max(MIN_WIDTH);
    let ink = TerminalStyle { colour: screen.colour };
    let page = TerminalPage { result, titles: RunTitles::of(result), width, ink };
    let whole = page.whole();
    if screen.all || lines(&whole) <= LINES { whole } else { page.overview() }
}

/// Lines of a screen.
const LINES: usize = 40;

/// Max lines of parts of the overview: headlines, reasons for invalid runs, ratios.
const HEADLINES: usize = 14;
const REASONS: usize = 4;
const RATIOS: usize = 8;

/// The facts of the machine in the overview: they bound every figure.
const FLOOR: [&str; 4] = ["processor", "processors", "one cache line takes", "spin gap, 99.99%"];

/// Min width of a readable table.
const MIN_WIDTH: usize = 60;

/// Columns of a hop's name (unless a name is longer), of its count, and of a time.
const NAME: usize = 20;
const COUNT: usize = 12;
const TIME: usize = 10;

/// Min percentiles, however narrow the terminal is.
const MIN_PERCENTILES: usize = 3;

/// A result, and its format.
struct TerminalPage<'a> {
    result: &'a ResultFile,
    titles: RunTitles,
    width: usize,
    ink: TerminalStyle,
}

impl TerminalPage<'_> {
    fn whole(&self) -> String {
        let mut text = self.head(host(self.result));
        text += &self.paragraphs(&headlines(self.result), 2, |line| self.ink.strong(line));
        for table in overviews(self.result) {
            text += &self.table(&table, usize::MAX);
        }
        for run in &self.result.runs {
            text += "\n";
            text += &match group::name(run) {
                Some(name) => group::block(run, &name, self.width, self.ink),
                None => self.run(run),
            };
            text += &self.notes(run);
        }
        text += &self.ratios(usize::MAX);
        let note = footnote(self.result).map(|note| format!("\n{}", self.faint(&note, 2)));
        text + &note.unwrap_or_default()
    }

    fn overview(&self) -> String {
        let floor = host(self.result).into_iter().filter(|(label, _)| FLOOR.contains(&label.as_str())).collect();
        let mut text = self.head(floor);
        let headline_text = self.paragraphs(&headlines(self.result), 2, |line| self.ink.strong(line));
        text += &cut(&headline_text, HEADLINES);
        text += &cut(&self.reasons(), REASONS);
        let mut tables = overviews(self.result);
        if tables.is_empty() {
            tables.extend(runs::overview(self.result));
        }
        let (ratios, end) = (self.ratios(RATIOS), self.end());
        let mut room = LINES.saturating_sub(lines(&text) + lines(&ratios) + lines(&end));
        for (index, table) in tables.iter().enumerate() {
            let whole = self.table(table, usize::MAX);
            // The first table is always shown, the others completely or not at all.
            if lines(&whole) <= room || index == 0 {
                let shown = if lines(&whole) <= room { whole } else { self.table(table, room.max(MIN_TABLE_LINES)) };
                room = room.saturating_sub(lines(&shown));
                text += &shown;
            }
        }
        text + &ratios + &end
    }

    fn head(&self, machine: Vec<(String, String)>) -> String {
        let title = format!("{}, {}", self.result.workload, self.result.started_at);
        let machine: Vec<String> = machine.into_iter().map(|(label, value)| format!("{label} {value}")).collect();
        let mut text = self.paragraphs(&[title], 2, |line| self.ink.accent(line));
        text += &self.faint(&machine.join(" · "), 0);
        text += &self.faint(&self.result.command, 4);
        text + "\n"
    }

    /// Returns the reasons for invalid runs, each once, with the first run that has it.
    fn reasons(&self) -> String {
        let mut listed: Vec<&str> = Vec::new();
        let mut sentences = Vec::new();
        for run in invalid_runs(self.result) {
            if let Some(note) = run.notes.first().filter(|note| !listed.contains(&note.as_str())) {
                listed.push(note);
                sentences.push(format!("  not valid: {}: {note}", self.titles.numbered(run)));
            }
        }
        self.paragraphs(&sentences, 4, |line| self.ink.alarm(line))
    }

    /// Returns how to see the rest.
    fn end(&self) -> String {
        let runs = count(self.result.runs.len() as u64);
        format!("\n{}", self.faint(&format!("{runs} runs, each in full: --all. Charts of them: --html FILE."), 2))
    }

    /// Renders a table with the columns that fit and at most `max_lines` lines; the name is on the left.
    fn table(&self, table: &PlainTable, max_lines: usize) -> String {
        let longest = |column: usize| {
            let cells = std::iter::once(&table.header).chain(&table.rows).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0) + 2
        };
        // Columns without a value are omitted.
        let says = |column: &usize| *column == 0 || table.rows.iter().any(|row| row[*column] != NONE);
        let widths: Vec<usize> = (0..table.header.len()).map(longest).collect();
        let name = widths[0].min(self.width / 2);
        let mut used = name;
        let fits = |column: &usize| {
            used += widths[*column];
            used <= self.width
        };
        let columns: Vec<usize> = (1..widths.len()).filter(says).take_while(fits).collect();
        let line = |row: &[String]| {
            let first: String = plain(&row[0]).chars().take(name - 2).collect();
            let cells = columns.iter().map(|column| format!("{:>wide$}", plain(&row[*column]), wide = widths[*column]));
            format!("  {first:<wide$}{}", cells.collect::<String>(), wide = name - 2)
        };
        let mut text = format!("\n{}\n{}\n", self.ink.accent(table.title), self.ink.faint(&line(&table.header)));
        let is_cut = lines(&text) + table.rows.len() + 1 > max_lines;
        let shown = if is_cut { max_lines.saturating_sub(lines(&text) + 2) } else { table.rows.len() };
        let rows = &table.rows[..shown];
        text += &rows.iter().map(|row| format!("{}\n", line(row))).collect::<String>();
        if is_cut {
            text += &format!("  … {} more\n", count((table.rows.len() - shown) as u64));
        }
        let starred = rows.iter().any(|row| columns.iter().any(|column| row[*column].ends_with('*')));
        if starred { text + &self.faint(&format!("  {NEAREST_RANK}"), 4) } else { text }
    }

    fn run(&self, run: &Run) -> String {
        let mut text = self.paragraphs(&[self.titles.numbered(run)], 2, |line| self.ink.accent(line));
        // A long name is shown whole if there is room: its end may distinguish it from another name.
        let room = self.width.saturating_sub(2 + COUNT + TIME + MIN_PERCENTILES * TIME);
        let longest = run.hops.keys().map(|hop| hop.chars().count()).max().unwrap_or(0);
        let name = longest.min(room).max(NAME);
        let shown = percentiles_in(self.width.saturating_sub(2 + name + COUNT + TIME), TIME);
        if !run.hops.is_empty() {
            let labels = shown.iter().map(|index| format!("{:>TIME$}", PERCENTILES[*index].label)).collect::<String>();
            let header = format!("  {:<name$}{:>COUNT$}{labels}{:>TIME$}", "hop", "count", "max");
            text += &format!("{}\n", self.ink.faint(&header));
        }
        for (hop_name, hop) in run.hops_in_path_order() {
            text += &self.hop(&padded(hop_name, name), hop, &shown);
        }
        let facts: Vec<String> = facts(run).into_iter().map(|(label, value)| format!("{label}: {value}")).collect();
        text + &self.paragraphs(&[format!("  {}", facts.join(" · "))], 2, str::to_owned)
    }

    /// Renders a hop's lines; its name has the width of its column.
    fn hop(&self, name: &str, hop: &Hop, shown: &[usize]) -> String {
        let mut text = format!("{}\n", row(name, hop.count, hop.percentiles(), hop.max_ns, shown));
        if let Some(rest) = &hop.unstalled {
            let unstalled = padded("  unstalled", name.chars().count());
            let line = row(&unstalled, rest.count, rest.percentiles(), rest.max_ns, shown);
            text += &format!("{}\n", self.ink.faint(&line));
        }
        let remark = hop_remark(hop).map(|remark| self.faint(&format!("    {remark}"), 4));
        text + &remark.unwrap_or_default()
    }

    fn notes(&self, run: &Run) -> String {
        let verdict = ["  not valid".to_owned()];
        let verdict = if run.valid { &[] } else { verdict.as_slice() };
        let notes: Vec<String> = run.notes.iter().map(|note| format!("  {note}")).collect();
        self.paragraphs(verdict, 4, |line| self.ink.alarm(line)) + &self.paragraphs(&notes, 4, str::to_owned)
    }

    /// Renders at most `max_lines` lines of the comparisons that no headline reports.
    fn ratios(&self, max_lines: usize) -> String {
        let untold = unreported_comparisons(self.result);
        if untold.is_empty() {
            return String::new();
        }
        let sentences: Vec<String> = untold.iter().map(|one| format!("  {}", comparison(one))).collect();
        let text = self.paragraphs(&sentences, 4, str::to_owned);
        format!("\n{}\n{}", self.ink.accent("ratios"), cut(&text, max_lines))
    }

    fn faint(&self, text: &str, indent: usize) -> String {
        self.paragraphs(&[text.to_owned()], indent, |line| self.ink.faint(line))
    }

    fn paragraphs(&self, texts: &[String], indent: usize, paint: impl Fn(&str) -> String) -> String {
        let lines = texts.iter().flat_map(|text| wrapped(text, self.width, indent));
        lines.map(|line| format!("{}\n", paint(&line))).collect()
    }
}

/// Min lines of a cut table.
const MIN_TABLE_LINES: usize = 10;

fn row(name: &str, samples: u64, percentiles: [Option<u64>; 6], max_ns: Option<u64>, shown: &[usize]) -> String {
    let times = shown.iter().map(|index| percentiles[*index]).chain([max_ns]);
    let times: String = times.map(|ns| format!("{:>TIME$}", duration_or_none(ns))).collect();
    format!("  {name}{:>COUNT$}{times}", count(samples))
}

/// Pads or cuts a name to `columns` columns.
fn padded(name: &str, columns: usize) -> String {
    let name: String = plain(name).chars().take(columns).collect();
    format!("{name:<columns$}")
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// Returns the first lines, and the number of further ones.
fn cut(text: &str, max_lines: usize) -> String {
    let all = lines(text);
    if all <= max_lines {
        return text.to_owned();
    }
    let first: String = text.lines().take(max_lines - 1).map(|line| format!("{line}\n")).collect();
    format!("{first}  … {} more lines\n", all - max_lines + 1)
}
