//! Messages between processes as a table: a row per target, a column per phase, so that cold, idle and steady stay
//! separate figures.

use std::collections::BTreeSet;

use super::axis::Axis;
use super::markup::escaped;
use super::names::grouped;
use super::page::{PageSection, table};
use super::plain_table::PlainTable;
use super::quantity::{NONE, duration, duration_or_none, size};
use super::sentence::median_figure;
use tickpath_lab_result::{Hop, ResultFile, Run, RunPhase, median, short_name};

/// Returns a table for `one_way` and `round_trip`, and another for the publish call.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let matrix = PhaseMatrix::of(result)?;
    let mut body = matrix.html("one_way, and round_trip for there and back", PhaseColumn::whole_hop);
    body +=
        &matrix.html("publish, the call itself", |column| (column.kind != PhaseKind::RoundTrip).then_some("publish"));
    let lead = "For each target and phase the median, a bar from there to the 99th percentile, and that. Phases are \
                different results, and never averaged.";
    PageSection::new("Cold, idle, steady", lead, &body)
}

/// Returns the same as text, a column per target: the medians, the 99th percentiles, the receiver's CPU time, and the
/// publish call's medians.
pub(super) fn overview(result: &ResultFile) -> Vec<PlainTable> {
    let Some(matrix) = PhaseMatrix::of(result) else { return Vec::new() };
    let p99 = |hop: &Hop| duration_or_none(hop.p99_ns);
    let tables = [
        matrix.table("cold, idle, steady: 50% of one_way, and of round_trip", PhaseColumn::whole_hop, median_text),
        matrix.table("cold, idle, steady: 99% of the same", PhaseColumn::whole_hop, p99),
        matrix.plain("the receiver's processor time a message", |target, column| matrix.receiver_cpu(target, column)),
        matrix.table("the publish call: 50%", |_| Some("publish"), median_text),
    ];
    tables.into_iter().flatten().collect()
}

/// The bar's ends in a cell, in percent of its width.
const FIRST: f64 = 2.0;
const LAST: f64 = 98.0;

/// The subject of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PhaseKind {
    Cold,
    Idle,
    Steady,
    RoundTrip,
}

/// The key of a column, in sorting order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PhaseColumn {
    kind: PhaseKind,
    idle_ns: u64,
    size_bytes: u64,
    readers: u64,
    wait: String,
}

impl PhaseColumn {
    /// Returns the column of a paced run of messages to readers; `None` for other runs.
    fn of(run: &Run) -> Option<Self> {
        let (size_bytes, readers) = (run.params.whole("size_bytes")?, run.params.whole("readers")?);
        let is_special = ["stall_ns", "slo"].iter().any(|name| run.params.0.contains_key(*name));
        let kind = match (run.phase, run.hops.contains_key("one_way"), run.hops.contains_key("round_trip")) {
            _ if is_special => return None,
            (RunPhase::Cold, true, _) => PhaseKind::Cold,
            (RunPhase::Idle, true, _) => PhaseKind::Idle,
            (RunPhase::Steady, true, _) => PhaseKind::Steady,
            (RunPhase::Steady, false, true) => PhaseKind::RoundTrip,
            (RunPhase::Cold | RunPhase::Idle, false, _) | (RunPhase::Steady, false, false) => return None,
        };
        let idle_ns = if kind == PhaseKind::Idle { run.params.whole("idle_ns").unwrap_or(0) } else { 0 };
        Some(Self { kind, idle_ns, size_bytes, readers, wait: run.params.text("wait").unwrap_or_default() })
    }

    /// Returns the hop of a message's whole way.
    fn whole_hop(&self) -> Option<&'static str> {
        Some(if self.kind == PhaseKind::RoundTrip { "round_trip" } else { "one_way" })
    }

    fn name(&self) -> String {
        match self.kind {
            PhaseKind::Cold => "cold".to_owned(),
            PhaseKind::Idle => format!("idle {}", duration(self.idle_ns as f64)),
            PhaseKind::Steady => "steady".to_owned(),
            PhaseKind::RoundTrip => "there and back".to_owned(),
        }
    }

    /// Returns the further differences from the other columns.
    fn details(&self, all: &[Self]) -> String {
        let details = [
            (all.iter().any(|other| other.size_bytes != self.size_bytes), size(self.size_bytes as f64)),
            (all.iter().any(|other| other.readers != self.readers), format!("{} readers", self.readers)),
            (all.iter().any(|other| other.wait != self.wait), self.wait.clone()),
        ];
        details.into_iter().filter(|(differs, _)| *differs).map(|(_, words)| words).collect::<Vec<_>>().join(", ")
    }

    fn words(&self, all: &[Self]) -> String {
        format!("{} {}", self.name(), self.details(all)).trim_end().to_owned()
    }
}

/// The runs by target and column.
struct PhaseMatrix<'a> {
    targets: Vec<String>,
    columns: Vec<PhaseColumn>,
    cells: Vec<((String, PhaseColumn), Vec<&'a Run>)>,
}

/// The repeats of a target in a phase.
struct PhaseCell {
    hop: Hop,
    valid: bool,
}

impl<'a> PhaseMatrix<'a> {
    /// Returns `None` for fewer than two cells: a single figure needs no table.
    fn of(result: &'a ResultFile) -> Option<Self> {
        let placed: Vec<&Run> = result.runs.iter().filter(|run| PhaseColumn::of(run).is_some()).collect();
        let columns: BTreeSet<PhaseColumn> = placed.iter().filter_map(|run| PhaseColumn::of(run)).collect();
        let key = |run: &&Run| Some((run.target.clone(), PhaseColumn::of(run)?));
        let cells: Vec<_> =
            grouped(placed.iter().copied(), key).into_iter().filter_map(|(key, runs)| Some((key?, runs))).collect();
        let targets = grouped(placed, |run| run.target.clone()).into_iter().map(|(target, _)| target).collect();
        (cells.len() > 1).then(|| Self { targets, columns: columns.into_iter().collect(), cells })
    }

    /// Returns the valid repeats, or all repeats if none is valid.
    fn repeats(&self, target: &str, column: &PhaseColumn) -> Option<(bool, impl Iterator<Item = &'a Run>)> {
        let (_, runs) = self.cells.iter().find(|((known, of), _)| known == target && of == column)?;
        let valid = runs.iter().any(|run| run.valid);
        Some((valid, runs.iter().copied().filter(move |run| run.valid == valid)))
    }

    /// Returns the repeats merged into a distribution.
    fn cell(&self, target: &str, column: &PhaseColumn, hop: &str) -> Option<PhaseCell> {
        let (valid, repeats) = self.repeats(target, column)?;
        let hops: Vec<&Hop> = repeats.filter_map(|run| run.hops.get(hop)).collect();
        Some(PhaseCell { hop: merged(&hops)?, valid })
    }

    /// Returns the receiver's CPU time per message: the median of the repeats.
    fn receiver_cpu(&self, target: &str, column: &PhaseColumn) -> Option<String> {
        receiver_cpu(self.repeats(target, column)?.1)
    }

    /// Returns a table with a row per phase and a column per target, without phases for which no target has a value.
    fn table(
        &self,
        title: &'static str,
        hop_of: fn(&PhaseColumn) -> Option<&'static str>,
        word: fn(&Hop) -> String,
    ) -> Option<PlainTable> {
        self.plain(title, |target, column| Some(word(&self.cell(target, column, hop_of(column)?)?.hop)))
    }

    /// Returns such a table for any text.
    fn plain(&self, title: &'static str, word: impl Fn(&str, &PhaseColumn) -> Option<String>) -> Option<PlainTable> {
        let cell = |target: &String, column: &PhaseColumn| word(target, column).unwrap_or_else(|| NONE.to_owned());
        let row = |column: &PhaseColumn| {
            let cells: Vec<String> = self.targets.iter().map(|target| cell(target, column)).collect();
            let has_any = cells.iter().any(|cell| cell != NONE);
            has_any.then(|| std::iter::once(column.words(&self.columns)).chain(cells).collect())
        };
        let names: Vec<String> = self.targets.iter().map(|target| short_name(target)).collect();
        let header: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
        PlainTable::new(title, &header, self.columns.iter().filter_map(row).collect())
    }

    /// Returns a table of each column's hop; empty if no run has the hop.
    fn html(&self, title: &str, hop_of: fn(&PhaseColumn) -> Option<&'static str>) -> String {
        let cell = |target: &String, column: &PhaseColumn| self.cell(target, column, hop_of(column)?);
        let has_cell = |column: &&PhaseColumn| self.targets.iter().any(|target| cell(target, column).is_some());
        let columns: Vec<&PhaseColumn> = self.columns.iter().filter(has_cell).collect();
        let cells: Vec<Vec<Option<PhaseCell>>> =
            self.targets.iter().map(|target| columns.iter().map(|column| cell(target, column)).collect()).collect();
        let hops = || cells.iter().flatten().flatten().map(|cell| &cell.hop);
        let middles = hops().filter_map(|hop| Some(median_figure(hop)?.ns));
        let tails = hops().filter_map(|hop| hop.p99_ns).map(|ns| ns as f64);
        let Some(axis) = Axis::logarithmic(middles.chain(tails)) else { return String::new() };
        let heads = columns.iter().map(|column| self.head(column));
        let header: Vec<String> = std::iter::once(String::new()).chain(heads).collect();
        let named = self.targets.iter().zip(&cells);
        let rows: Vec<Vec<String>> = named.map(|(name, row)| line(name, row, &axis)).collect();
        let (low, high) = axis.ends();
        format!(
            "<h3>{title}</h3>\n<p class=\"scale\">The bars go from {} to {}, logarithmic.</p>\n{}",
            duration(low),
            duration(high),
            table("matrix", &header, &rows)
        )
    }

    fn head(&self, column: &PhaseColumn) -> String {
        let details = column.details(&self.columns);
        let details = if details.is_empty() { details } else { format!("<small>{}</small>", escaped(&details)) };
        format!("{}{details}", column.name())
    }
}

/// Returns a row of cells, behind the target's name.
fn line(target: &str, cells: &[Option<PhaseCell>], axis: &Axis) -> Vec<String> {
    let name = escaped(&short_name(target));
    let cells = cells.iter().map(|cell| cell.as_ref().map_or_else(|| NONE.to_owned(), |cell| cell.html(axis)));
    std::iter::once(name).chain(cells).collect()
}

impl PhaseCell {
    fn html(&self, axis: &Axis) -> String {
        let Some(middle) = median_figure(&self.hop) else { return NONE.to_owned() };
        let x_of = |ns: f64| FIRST + (LAST - FIRST) * axis.share(ns);
        let from = x_of(middle.ns);
        let range = self.hop.p99_ns.map(|ns| {
            let to = x_of(ns as f64);
            format!("<line class=\"range\" x1=\"{from:.1}%\" y1=\"5\" x2=\"{to:.1}%\" y2=\"5\"/>")
        });
        let class = if self.valid { "" } else { " class=\"broken\"" };
        let alarm = if self.valid { "" } else { "<abbr class=\"invalid\" title=\"not valid: see the run\">!</abbr>" };
        format!(
            "<div{class}><b>{}</b>{alarm}<svg class=\"cell\" height=\"10\" aria-hidden=\"true\"><line class=\"rail\" x1=\"0\" \
             y1=\"5\" x2=\"100%\" y2=\"5\"/>{}<line class=\"mark\" x1=\"{from:.1}%\" y1=\"0\" x2=\"{from:.1}%\" \
             y2=\"10\"/></svg><small>{}</small></div>",
            median_text(&self.hop),
            range.unwrap_or_default(),
            duration_or_none(self.hop.p99_ns)
        )
    }
}

/// Returns the receiver's CPU time per message as text: the median of these runs; `None` if it is unknown.
pub(super) fn receiver_cpu<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    median(runs.filter_map(|run| run.figures.get("receiver_cpu_per_message_ns").copied()).collect()).map(duration)
}

/// Formats the median.
pub(super) fn median_text(hop: &Hop) -> String {
    median_figure(hop).map_or_else(|| NONE.to_owned(), |middle| format!("{}{}", duration(middle.ns), middle.mark))
}

/// Merges repeats into a distribution, because percentiles are never averaged; returns the first repeat where the file
/// has no histograms.
pub(super) fn merged(hops: &[&Hop]) -> Option<Hop> {
    let [first, others @ ..] = hops else { return None };
    let add_up = || {
        let mut sum = first.histogram().ok()?;
        sum.auto(true);
        for hop in others {
            sum.add(&hop.histogram().ok()?).ok()?;
        }
        Some(sum)
    };
    let Some(sum) = (!others.is_empty()).then(add_up).flatten() else { return Some((*first).clone()) };
    let mut worst: Vec<u64> = hops.iter().flat_map(|hop| hop.worst_ns).collect();
    worst.sort_unstable_by(|a, b| b.cmp(a));
    let negative: u64 = hops.iter().map(|hop| hop.negative).sum();
    Some(Hop::from_histogram(&sum, None, negative, [worst[0], worst[1], worst[2]]))
}
