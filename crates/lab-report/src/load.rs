//! Latency over rate: the rates that a search for the highest rate has tried, a line per target.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::chart::{BOTTOM_SPACE, ChartFrame, LineEnd, LineLabels, drawing, line_classes};
use super::markup::escaped;
use super::names::{grouped, labels_by};
use super::page::{PageSection, figure, table};
use super::quantity::{self, count, duration, duration_or_none, short};
use tickpath_lab_result::{ResultFile, Run, short_name};

/// Returns a chart for each promise that a search tried to keep.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let searched = result.runs.iter().filter(|run| promise(run).is_some() && rate(run).is_some());
    let charts = grouped(searched, |run| promise(run).unwrap_or_default()).into_iter();
    let body: String = charts.filter_map(|(promise, runs)| chart(&promise, &runs)).collect();
    let lead = "Each rate that was tried: the 99th percentile, and thin the median. Where a line turns upward, messages \
                begin to wait for each other.";
    PageSection::new("Latency over rate", lead, &body)
}

const HEIGHT: f64 = 300.0;
const TOP: f64 = 32.0;

/// Settings that distinguish lines, beside target and client.
const DISTINGUISHING_SETTINGS: [&str; 4] = ["size_bytes", "readers", "wait", "arrivals"];

/// The hop of the charts.
const HOP: &str = "one_way";

/// Messages a second, the median and the 99th percentile.
type LoadPoint = (f64, u64, Option<u64>);

fn promise(run: &Run) -> Option<String> {
    run.params.text("slo")
}

fn rate(run: &Run) -> Option<f64> {
    run.params.number("rate_per_s")
}

fn point(run: &Run) -> Option<LoadPoint> {
    let hop = run.hops.get(HOP)?;
    Some((rate(run)?, hop.p50_ns?, hop.p99_ns))
}

/// Returns `None` if no run has a median.
fn chart(promise: &str, runs: &[&Run]) -> Option<String> {
    let mut labels = labels_by(runs, &DISTINGUISHING_SETTINGS);
    if labels.iter().all(|label| *label == labels[0]) {
        labels.fill(short_name(&runs[0].target));
    }
    let labelled = labels.into_iter().zip(runs);
    let mut lines: Vec<(String, Vec<LoadPoint>)> = Vec::new();
    let mut rows = Vec::new();
    for (label, members) in grouped(labelled, |(label, _)| label.clone()) {
        // Repeats of a rate follow each other.
        let mut points: BTreeMap<u64, Vec<LoadPoint>> = BTreeMap::new();
        for (_, run) in &members {
            if let Some(point) = point(run) {
                points.entry(point.0 as u64).or_default().push(point);
            }
        }
        let points: Vec<LoadPoint> = points.into_values().flatten().collect();
        rows.extend(points.iter().map(|(rate, p50, p99)| {
            let rate = quantity::figure("_per_s", *rate);
            vec![escaped(&label), rate, duration(*p50 as f64), duration_or_none(*p99)]
        }));
        lines.push((label, points));
    }
    let points = || lines.iter().flat_map(|(_, points)| points);
    let along = Axis::logarithmic(points().map(|point| point.0))?;
    let up = Axis::logarithmic(points().flat_map(|(_, p50, p99)| [Some(*p50), *p99]).flatten().map(|ns| ns as f64))?;
    let labels = LineLabels(lines.iter().map(|(label, _)| label.clone()).collect());
    let frame =
        ChartFrame { right: labels.line_end(), top: TOP, bottom: HEIGHT - BOTTOM_SPACE, x_axis: along, y_axis: up };
    let mut body = frame.y_marks(duration, HOP) + &frame.x_marks(short, "messages a second");
    let mut ends = Vec::new();
    for (number, (label, points)) in lines.iter().enumerate() {
        let classes = line_classes(number);
        let tail: Vec<(f64, f64)> = points.iter().filter_map(|(rate, _, p99)| Some((*rate, (*p99)? as f64))).collect();
        let middle: Vec<(f64, f64)> = points.iter().map(|(rate, p50, _)| (*rate, *p50 as f64)).collect();
        body += &frame.line(&middle, &format!("{classes} thin"), &format!("{label}, median"));
        body += &frame.line(&tail, &classes, &format!("{label}, 99%"));
        let last = tail.last().or(middle.last());
        ends.extend(last.map(|(rate, ns)| LineEnd { number, x: Some(frame.x(*rate)), y: frame.y(*ns) }));
    }
    body += &labels.draw_beside(&frame, &ends);
    let description = format!("{}; both axes are logarithmic, the table has the figures.", labels.listed());
    let drawing = drawing(HEIGHT, &format!("{HOP} over rate"), &description, &body) + &labels.legend();
    let tried = format!("{} runs", count(runs.len() as u64));
    Some(figure(promise, &tried, &drawing, &table("depth", &["", "rate", "50%", "99%"], &rows)))
}
