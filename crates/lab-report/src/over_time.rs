//! Changes during a run: the rates of its processes as lines, and below them backlogs, each on its own axis.

use super::axis::Axis;
use super::chart::{ChartFrame, LineEnd, LineLabels, drawing, line_classes};
use super::markup::escaped;
use super::names::labels;
use super::page::{self, PageSection, folded, table};
use super::quantity::{NONE, bytes, count, duration, figure, short};
use tickpath_lab_result::{Actor, ResultFile, Run, Series, median};

/// Returns a chart per run with a series, with a table of its processes.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let runs: Vec<&Run> = result.runs.iter().filter(|run| !panels(run).is_empty()).collect();
    let names = labels(&runs);
    let several = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let figures: Vec<String> = runs
        .iter()
        .zip(&names)
        .map(|(run, name)| {
            let name = if several(name) { format!("{name} #{}", run.repeat) } else { name.clone() };
            let invalid = (!run.valid).then(|| "not valid".to_owned());
            let remark: Vec<String> = invalid.into_iter().chain(run.finding.clone()).collect();
            let figure = page::figure(&name, &remark.join(", "), &chart(run, &name), &actors(run));
            if run.valid { figure } else { format!("<div class=\"broken\">{figure}</div>\n") }
        })
        .collect();
    if figures.is_empty() {
        return None;
    }
    let lead = "What changed during each run: rates, and beneath them what was waiting.";
    let body = format!("<div class=\"many\">\n{}</div>\n", folded(&figures, OPEN, "runs"));
    PageSection::new("Over time", lead, &body)
}

/// Max charts that are not folded.
const OPEN: usize = 8;

/// Sizes in units of the drawing: the first panel, each further panel, and the space between two panels.
const TOP: f64 = 32.0;
const FIRST: f64 = 150.0;
const FURTHER: f64 = 70.0;
const BETWEEN: f64 = 44.0;
const BENEATH: f64 = 26.0;

/// The unit of a series, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeriesUnit {
    Rate,
    Time,
    Memory,
    Number,
}

/// Series on the same axis: lines, or a single area for a plain number.
struct Panel<'a> {
    unit: SeriesUnit,
    series: Vec<&'a Series>,
}

impl SeriesUnit {
    fn of(series: &Series) -> Self {
        [("_per_s", Self::Rate), ("_ns", Self::Time), ("_bytes", Self::Memory)]
            .into_iter()
            .find_map(|(ending, unit)| series.name.ends_with(ending).then_some(unit))
            .unwrap_or(Self::Number)
    }

    const fn print(self) -> fn(f64) -> String {
        match self {
            Self::Rate | Self::Number => short,
            Self::Time => duration,
            Self::Memory => bytes,
        }
    }
}

impl Panel<'_> {
    /// Returns the name of the vertical axis.
    fn name(&self) -> String {
        match self.unit {
            SeriesUnit::Rate => "messages a second".to_owned(),
            SeriesUnit::Time | SeriesUnit::Memory => String::new(),
            SeriesUnit::Number => self.series.first().map(|series| name(series)).unwrap_or_default(),
        }
    }

    fn axis(&self) -> Option<Axis> {
        let values = self.series.iter().flat_map(|series| series.value.iter().copied());
        match self.unit {
            SeriesUnit::Time => Axis::logarithmic(values),
            SeriesUnit::Rate | SeriesUnit::Memory | SeriesUnit::Number => Some(Axis::linear(values)),
        }
    }

    /// Draws lines from the number `first` on, with labels at their usual height; or the area.
    fn draw(&self, frame: &ChartFrame, labels: &LineLabels, first: usize) -> String {
        let mut drawn = String::new();
        let mut ends = Vec::new();
        for (number, series) in (first..).zip(&self.series) {
            let points = points(series, self.unit);
            if self.unit == SeriesUnit::Number {
                drawn += &area(frame, &points);
                continue;
            }
            drawn += &frame.line(&points, &line_classes(number), &name(series));
            ends.extend(positive_median(&points).map(|value| LineEnd { number, x: None, y: frame.y(value) }));
        }
        drawn + &labels.draw_beside(frame, &ends)
    }
}

/// Returns the panels of a run: rates, times and memory together each, then every plain number by itself.
fn panels(run: &Run) -> Vec<Panel<'_>> {
    let drawable = || run.series.iter().filter(|series| series.t_ns.len().min(series.value.len()) > 1);
    let together = [SeriesUnit::Rate, SeriesUnit::Time, SeriesUnit::Memory].map(|unit| {
        let series = drawable().filter(|series| SeriesUnit::of(series) == unit).collect();
        Panel { unit, series }
    });
    let numbers = drawable().filter(|series| SeriesUnit::of(series) == SeriesUnit::Number);
    let numbers = numbers.map(|series| Panel { unit: SeriesUnit::Number, series: vec![series] });
    together.into_iter().chain(numbers).filter(|panel| !panel.series.is_empty()).collect()
}

fn chart(run: &Run, title: &str) -> String {
    let panels = panels(run);
    let lines = panels.iter().filter(|panel| panel.unit != SeriesUnit::Number);
    let labels = LineLabels(lines.flat_map(|panel| &panel.series).map(|series| name(series)).collect());
    let ends = panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.t_ns);
    let end = ends.max().map_or(1.0, |ns| *ns as f64);
    let along = Axis::linear(std::iter::once(end)).until(end);
    let (mut top, mut first, mut height) = (TOP, 0, FIRST);
    let mut body = String::new();
    for (index, panel) in panels.iter().enumerate() {
        let Some(up) = panel.axis() else { continue };
        let frame =
            ChartFrame { right: labels.line_end(), top, bottom: top + height, x_axis: along.clone(), y_axis: up };
        let is_last = index + 1 == panels.len();
        body += &frame.y_marks(panel.unit.print(), &panel.name());
        body += &frame.x_marks(|ns| moment(ns, is_last), "");
        body += &panel.draw(&frame, &labels, first);
        first += panel.series.len();
        top += height + BETWEEN;
        height = FURTHER;
    }
    let description = format!("Time along; up: {}.", labels.listed());
    drawing(top - BETWEEN + BENEATH, title, &description, &body) + &labels.legend()
}

/// Returns the name of a horizontal mark; only the lowest panel has them.
fn moment(ns: f64, is_last: bool) -> String {
    match (is_last, ns > 0.0) {
        (false, _) => String::new(),
        (true, false) => "0".to_owned(),
        (true, true) => duration(ns),
    }
}

fn area(frame: &ChartFrame, points: &[(f64, f64)]) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let line: String =
        points.iter().map(|(ns, value)| format!(" L{:.1} {:.1}", frame.x(*ns), frame.y(*value))).collect();
    let (from, to, bottom) = (frame.x(first.0), frame.x(last.0), frame.bottom);
    format!("<path class=\"area\" d=\"M{from:.1} {bottom:.1}{line} L{to:.1} {bottom:.1} Z\"/>\n")
}

/// Returns the points of a series; times of zero are dropped, because a logarithm has no zero.
fn points(series: &Series, unit: SeriesUnit) -> Vec<(f64, f64)> {
    let points = series.t_ns.iter().zip(&series.value).map(|(ns, value)| (*ns as f64, *value));
    points.filter(|(_, value)| value.is_finite() && (unit != SeriesUnit::Time || *value > 0.0)).collect()
}

/// Returns the median of the values above zero: an ended process would otherwise pull its label down.
fn positive_median(points: &[(f64, f64)]) -> Option<f64> {
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).filter(|value| *value > 0.0).collect();
    median(values).or(points.first().map(|(_, value)| *value))
}

/// Returns the name of a series without its unit: `puller1` for `puller1_rate_per_s`.
fn name(series: &Series) -> String {
    let mut name = series.name.as_str();
    for ending in ["_per_s", "_rate", "_ns", "_bytes"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    name.replace('_', " ")
}

/// Returns a table of a run's processes with their counts and rates.
fn actors(run: &Run) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| NONE.to_owned(), |rate| figure("rate_per_s", rate));
    let row =
        |actor: &Actor| vec![escaped(&actor.name), escaped(&actor.role), count(actor.count), rate(actor.rate_per_s)];
    let rows: Vec<Vec<String>> = run.actors.iter().map(row).collect();
    if rows.is_empty() { String::new() } else { table("actors", &["actor", "role", "count", "rate"], &rows) }
}
