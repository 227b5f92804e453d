//! Distributions of latencies: percentile curves, a chart per hop, phase and size, and a line per target. The leading
//! hop is open, the others are folded.

use std::collections::BTreeSet;

use super::chart::{LineEnd, LineLabels, drawing, line_classes};
use super::curve::{self, CurvePoints, HEIGHT};
use super::markup::escaped;
use super::names::{grouped, labels, phase, setting};
use super::page::{PageSection, figure, folded, table};
use super::quantity::{count, duration_or_none, size};
use super::sentence::{leading_hop, own_hops};
use tickpath_lab_result::{HOPS, Hop, OWN_HOP, PERCENTILES, ResultFile, Run, distinct};

/// Returns the charts of every hop with a curve.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let leading = leading_hop(result);
    let own = own_hops(result).into_iter().map(|name| (name, OWN_HOP.1));
    let mut hops: Vec<(&str, &str)> = HOPS.iter().copied().chain(own).collect();
    hops.sort_by_key(|(name, _)| Some(*name) != leading);
    let mut body = String::new();
    for (name, sentence) in hops {
        let charts = charts(result, name);
        let sentence = format!("<b>{name}</b> {}", escaped(sentence));
        body += &match (charts.len(), Some(name) == leading) {
            (0, _) => String::new(),
            (_, true) => format!("<p class=\"about\">{sentence}</p>\n{}", folded(&charts, OPEN, "charts")),
            (number, false) => {
                let number = if number == 1 { "1 chart".to_owned() } else { format!("{number} charts") };
                format!(
                    "<details><summary>{sentence} <small>{number}</small></summary>\n{}</details>\n",
                    charts.concat()
                )
            }
        };
    }
    let lead = "The latency that a share of the messages stays under; further right, rarer. Thin: without the samples \
                that gaps of the host explain, where that makes a difference.";
    PageSection::new("The spread", lead, &body)
}

/// Max charts of the leading hop that are not folded.
const OPEN: usize = 4;

/// Max lines of a chart, and the settings by which a larger chart is split, the first that differs first.
const MAX_LINES: usize = 10;
const SPLIT_SETTINGS: [&str; 9] =
    ["command", "depth", "batch", "transport", "rtt_ms", "workers", "pullers", "pull", "wait"];

/// Max lines of a chart whose repeats get separate labels.
const MAX_SEPARATE_LABELS: usize = 6;

/// The share of the raw latency below which the curve without the host's gaps counts as different.
const DIFFERENT_SHARE: f64 = 0.9;

/// The percentiles of a chart's table; the runs have them all.
const SHOWN: [usize; 5] = [0, 2, 3, 4, 5];

/// Min end of a chart's longest curve: 1/(1−q) of the 90th percentile.
const MIN_ODDS: f64 = 9.99;

/// Returns a chart for each phase, size, and split of a crowded chart.
fn charts(result: &ResultFile, hop: &str) -> Vec<String> {
    let having = result.runs.iter().filter(|run| run.hops.contains_key(hop));
    let groups = grouped(having, |run| (phase(run), run.params.number("size_bytes").map(size).unwrap_or_default()));
    let pieces = groups.into_iter().flat_map(|((phase, size), runs)| {
        split_group(runs).into_iter().map(move |(piece, runs)| (label_list(&[&phase, &size, &piece]), runs))
    });
    pieces.filter_map(|(caption, runs)| chart(hop, &caption, &runs)).collect()
}

/// Splits a crowded group, each part with the value that its runs share.
fn split_group(runs: Vec<&Run>) -> Vec<(String, Vec<&Run>)> {
    let names: BTreeSet<String> = labels(&runs).into_iter().collect();
    let differs = |name: &&str| runs.iter().any(|run| value(run, name) != value(runs[0], name));
    let Some(name) = SPLIT_SETTINGS.into_iter().find(differs).filter(|_| names.len() > MAX_LINES) else {
        return vec![(String::new(), runs)];
    };
    let pieces = grouped(runs, |run| value(run, name)).into_iter();
    pieces
        .flat_map(|(common, runs)| {
            split_group(runs).into_iter().map(move |(piece, runs)| (label_list(&[&common, &piece]), runs))
        })
        .collect()
}

fn value(run: &Run, name: &str) -> String {
    let found = if name == "batch" { run.batch.as_ref() } else { run.params.0.get(name) };
    found.map(|value| setting(name, value)).unwrap_or_default()
}

fn label_list(parts: &[&String]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// The curve of a run, and the curve without the host's gaps if it is different.
struct RunCurve<'a> {
    label: &'a str,
    hop: &'a Hop,
    raw: CurvePoints,
    unstalled: Option<CurvePoints>,
}

/// Returns `None` if no curve reaches the 90th percentile.
fn chart(hop: &str, caption: &str, runs: &[&Run]) -> Option<String> {
    let labels = label_repeats(runs, labels(runs));
    let named = runs.iter().zip(&labels);
    let lines: Vec<RunCurve<'_>> = named.filter_map(|(run, label)| RunCurve::of(label, run.hops.get(hop)?)).collect();
    if !lines.iter().any(|line| line.raw.last().is_some_and(|(odds, _)| *odds > MIN_ODDS)) {
        return None;
    }
    let names: Vec<&str> = distinct(lines.iter().map(|line| line.label));
    let line_labels = LineLabels(names.iter().map(|name| (*name).to_owned()).collect());
    let curves = lines.iter().flat_map(|line| std::iter::once(&line.raw).chain(&line.unstalled));
    let frame = curve::frame(curves, line_labels.line_end())?;
    let mut body = curve::grid(&frame);
    let mut ends: Vec<Option<LineEnd>> = names.iter().map(|_| None).collect();
    for line in &lines {
        let number = names.iter().position(|name| *name == line.label).unwrap_or(0);
        let thin =
            line.unstalled.iter().map(|points| frame.line(points, &format!("{} thin", line_classes(number)), ""));
        body += &thin.collect::<String>();
        body += &frame.line(&line.raw, &line_classes(number), &line.words());
        let last = line.raw.last();
        ends[number] = last.map(|(odds, ns)| LineEnd { number, x: Some(frame.x(*odds)), y: frame.y(*ns) });
    }
    body += &line_labels.draw_beside(&frame, &ends.into_iter().flatten().collect::<Vec<_>>());
    let description = "Along, the share of the messages; up, the latency; both logarithmic. The table has the figures.";
    let drawing = drawing(HEIGHT, &format!("{hop}, {caption}"), description, &body) + &line_labels.legend();
    Some(figure(hop, caption, &drawing, &rows(hop, runs, &labels)))
}

/// Gives repeats their own labels, and so their own colours, in a chart with few lines.
fn label_repeats(runs: &[&Run], labels: Vec<String>) -> Vec<String> {
    if runs.len() > MAX_SEPARATE_LABELS {
        return labels;
    }
    let several = |label: &String| labels.iter().filter(|other| *other == label).count() > 1;
    let name = |(run, label): (&&Run, &String)| match several(label) {
        true => format!("{label} #{}", run.repeat),
        false => label.clone(),
    };
    runs.iter().zip(&labels).map(name).collect()
}

impl<'a> RunCurve<'a> {
    /// Returns `None` for a hop with no more than a point.
    fn of(label: &'a str, hop: &'a Hop) -> Option<Self> {
        let raw = curve::raw(hop);
        let differs = |rest: &[Option<u64>; 6]| {
            let pairs = rest.iter().zip(hop.percentiles());
            pairs
                .filter_map(|(rest, raw)| (*rest).zip(raw))
                .any(|(rest, raw)| (rest as f64) < DIFFERENT_SHARE * raw as f64)
        };
        let told_apart = hop.unstalled.as_ref().is_some_and(|rest| differs(&rest.percentiles()));
        let unstalled = curve::unstalled(hop).filter(|_| told_apart);
        (raw.len() > 1).then_some(Self { label, hop, raw, unstalled })
    }

    fn words(&self) -> String {
        let [p50, p99] = [self.hop.p50_ns, self.hop.p99_ns].map(duration_or_none);
        format!("{}: 50% {p50}, 99% {p99}", self.label)
    }
}

/// Returns the table of the same runs, with numbered repeats.
fn rows(hop: &str, runs: &[&Run], labels: &[String]) -> String {
    let percentiles = SHOWN.map(|index| PERCENTILES[index].label);
    let header: Vec<&str> = ["", "count"].into_iter().chain(percentiles).chain(["max"]).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (run, label) in runs.iter().zip(labels) {
        let Some(hop) = run.hops.get(hop) else { continue };
        let repeated = labels.iter().filter(|other| *other == label).count() > 1;
        let name = if repeated { format!("{label} #{}", run.repeat) } else { label.clone() };
        let percentiles = hop.percentiles();
        let times = SHOWN.map(|index| percentiles[index]).into_iter().chain([hop.max_ns]).map(duration_or_none);
        rows.push([escaped(&name), count(hop.count)].into_iter().chain(times).collect());
    }
    table("spread", &header, &rows)
}
