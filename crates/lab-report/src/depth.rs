//! Throughput over the depth of a pipeline: a chart per command, a line per client, and the costs of each depth.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::chart::{BOTTOM_SPACE, ChartFrame, LineEnd, LineLabels, drawing, line_classes};
use super::markup::escaped;
use super::names::{grouped, labels_by};
use super::page::{self, PageSection, table};
use super::plain_table::PlainTable;
use super::quantity::{NONE, count, figure, multiple, short};
use tickpath_lab_result::{ResultFile, Run, median};

/// Returns a chart and a table per command; commands with a single depth share a table of their own.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let (charted, single): (Vec<CommandSweep>, Vec<CommandSweep>) =
        sweeps(result).into_iter().partition(CommandSweep::has_depths);
    let mut body: String = charted.iter().map(CommandSweep::figure).collect();
    let rows: Vec<Vec<String>> = single.iter().flat_map(CommandSweep::rows).map(|row| cells(&row)).collect();
    if !rows.is_empty() {
        body += &format!("<h3>At one depth</h3>\n{}", table("depth", &HEADER, &rows));
    }
    let lead = "Commands a second over the commands that are sent together; at the end of a line its best against one \
                by one. The ring, and ◂ in the table, mark the least depth that reaches 90 % of the best.";
    PageSection::new("Pipeline depth", lead, &body)
}

/// Returns the same as text, a row per command, client and depth.
pub(super) fn overview(result: &ResultFile) -> Option<PlainTable> {
    let sweeps = sweeps(result);
    let named = |row: Vec<String>| -> Vec<String> {
        let name = format!("{} {}", row[0], row[1]);
        std::iter::once(name).chain(row.into_iter().skip(2)).collect()
    };
    let rows: Vec<Vec<String>> = sweeps.iter().flat_map(CommandSweep::rows).map(named).collect();
    PlainTable::new("pipeline depth", &HEADER[1..], rows)
}

const HEADER: [&str; 8] =
    ["command", "client", "depth", "commands", "to depth 1", "system calls", "switches", "memory"];

/// The height of a chart, and the space above for the unit.
const HEIGHT: f64 = 300.0;
const TOP: f64 = 32.0;

/// Settings that distinguish lines, beside client and target.
const DISTINGUISHING_SETTINGS: [&str; 4] = ["connections", "transport", "rtt_ms", "loop"];

/// The part that needs no name.
const DEFAULT_PART: &str = "sweep";

/// A command at every depth.
struct CommandSweep {
    name: String,
    lines: Vec<DepthLine>,
}

/// A client, the shallowest point first.
struct DepthLine {
    label: String,
    points: Vec<DepthPoint>,
}

/// The medians of the repeats at a depth.
struct DepthPoint {
    depth: u64,
    per_s: f64,
    syscalls: Option<f64>,
    switches: Option<f64>,
    memory_bytes: Option<f64>,
    is_knee: bool,
}

fn sweeps(result: &ResultFile) -> Vec<CommandSweep> {
    let deep = result.runs.iter().filter(|run| depth_of(run).is_some() && run.throughput_per_s.is_some());
    let groups = grouped(deep, |run| (run.params.text("command"), run.params.text("part")));
    let sweep = |((command, part), runs): ((Option<String>, Option<String>), Vec<&Run>)| {
        let part = part.filter(|part| part != DEFAULT_PART);
        let name = command.into_iter().chain(part).collect::<Vec<_>>().join(", ");
        CommandSweep { name, lines: lines(&runs) }
    };
    groups.into_iter().map(sweep).collect()
}

fn lines(runs: &[&Run]) -> Vec<DepthLine> {
    let labelled = labels_by(runs, &DISTINGUISHING_SETTINGS).into_iter().zip(runs);
    let groups = grouped(labelled, |(label, _)| label.clone());
    let line = |(label, members): (String, Vec<(String, &&Run)>)| {
        let mut depths: BTreeMap<u64, Vec<&Run>> = BTreeMap::new();
        for (_, run) in members {
            depths.entry(depth_of(run).unwrap_or(0)).or_default().push(run);
        }
        DepthLine { label, points: depths.iter().filter_map(|(depth, runs)| DepthPoint::of(*depth, runs)).collect() }
    };
    groups.into_iter().map(line).collect()
}

fn depth_of(run: &Run) -> Option<u64> {
    run.params.whole("depth").filter(|depth| *depth > 0)
}

impl DepthPoint {
    /// Uses the valid repeats, or all repeats if none is valid.
    fn of(depth: u64, runs: &[&Run]) -> Option<Self> {
        let valid = runs.iter().any(|run| run.valid);
        let counted: Vec<&Run> = runs.iter().copied().filter(|run| run.valid == valid).collect();
        let figure = |name: &str| median(counted.iter().filter_map(|run| run.figures.get(name).copied()).collect());
        Some(Self {
            depth,
            per_s: median(counted.iter().filter_map(|run| run.throughput_per_s).collect())?,
            syscalls: figure("syscalls_per_command"),
            switches: figure("context_switches_per_command"),
            memory_bytes: figure("reply_memory_bytes"),
            is_knee: figure("knee_depth") == Some(depth as f64),
        })
    }
}

impl DepthLine {
    /// Returns the throughput as a multiple of the throughput at depth 1.
    fn gain(&self, point: &DepthPoint) -> Option<f64> {
        let one = self.points.iter().find(|point| point.depth == 1)?;
        Some(point.per_s / one.per_s).filter(|gain| gain.is_finite())
    }

    /// Returns the label with the best gain.
    fn label_with_gain(&self) -> String {
        let best = self.points.iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s));
        match best.and_then(|best| self.gain(best)) {
            Some(gain) => format!("{} {}", self.label, multiple(gain)),
            None => self.label.clone(),
        }
    }

    fn draw(&self, frame: &ChartFrame, number: usize) -> String {
        let points: Vec<(f64, f64)> = self.points.iter().map(|point| (point.depth as f64, point.per_s)).collect();
        let classes = line_classes(number);
        let mut drawn = frame.line(&points, &classes, &self.label);
        for point in self.points.iter().filter(|point| point.is_knee) {
            let (x, y) = (frame.x(point.depth as f64), frame.y(point.per_s));
            let title = format!("{}: 90 % of the best at depth {}", self.label, count(point.depth));
            drawn += &format!(
                "<circle class=\"knee {classes}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}</title></circle>\n",
                escaped(&title)
            );
        }
        drawn
    }

    /// Returns plain text in the columns of [`HEADER`].
    fn row(&self, command: &str, point: &DepthPoint) -> Vec<String> {
        let known = |name: &str, value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| figure(name, value));
        let knee = if point.is_knee { " ◂" } else { "" };
        vec![
            command.to_owned(),
            self.label.clone(),
            format!("{}{knee}", count(point.depth)),
            figure("throughput_per_s", point.per_s),
            self.gain(point).map_or_else(|| NONE.to_owned(), multiple),
            known("syscalls_per_command", point.syscalls),
            known("context_switches_per_command", point.switches),
            known("reply_memory_bytes", point.memory_bytes),
        ]
    }
}

impl CommandSweep {
    /// Returns whether there is a line to draw.
    fn has_depths(&self) -> bool {
        self.lines.iter().any(|line| line.points.len() > 1)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let rows = |line: &DepthLine| line.points.iter().map(|point| line.row(&self.name, point)).collect::<Vec<_>>();
        self.lines.iter().flat_map(rows).collect()
    }

    fn figure(&self) -> String {
        let rows: Vec<Vec<String>> = self.rows().iter().map(|row| cells(&row[1..])).collect();
        page::figure(&self.name, "", &self.chart(), &table("depth", &HEADER[1..], &rows))
    }

    fn chart(&self) -> String {
        let labels = LineLabels(self.lines.iter().map(DepthLine::label_with_gain).collect());
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let along = Axis::logarithmic(points().map(|point| point.depth as f64));
        let up = Axis::logarithmic(points().map(|point| point.per_s));
        let Some((along, up)) = along.zip(up) else { return String::new() };
        let frame =
            ChartFrame { right: labels.line_end(), top: TOP, bottom: HEIGHT - BOTTOM_SPACE, x_axis: along, y_axis: up };
        let mut body = frame.y_marks(short, "commands a second") + &frame.x_marks(short, "commands sent together");
        let mut ends = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            body += &line.draw(&frame, number);
            let last = line.points.last();
            ends.extend(last.map(|last| LineEnd {
                number,
                x: Some(frame.x(last.depth as f64)),
                y: frame.y(last.per_s),
            }));
        }
        body += &labels.draw_beside(&frame, &ends);
        let title = format!("{}: throughput over depth", self.name);
        drawing(HEIGHT, &title, "Both axes are logarithmic; the table has the figures.", &body) + &labels.legend()
    }
}

fn cells(row: &[String]) -> Vec<String> {
    row.iter().map(|cell| escaped(cell)).collect()
}
