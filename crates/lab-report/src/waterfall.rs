//! The breakdown of a message's time: its parts as bars, each beginning where the previous part ended, and below their
//! sum the hops that cover the whole.

use super::markup::escaped;
use super::names::RunTitles;
use super::page::{PageSection, class, folded, verdict};
use super::path::{is_way, path_drawing, path_ways, spans_within};
use super::quantity::{duration, share};
use super::sentence::median_figure;
use tickpath_lab_result::{ResultFile, Run, StageKind};

/// Returns the path and the parts of each kind of run.
pub(super) fn section(result: &ResultFile, titles: &RunTitles) -> Option<PageSection> {
    let figures: Vec<String> =
        titles.first_runs(result).into_iter().filter_map(|run| figure(run, &titles.title(run))).collect();
    let lead = "What each part of one message’s time takes, beginning where the one before ended. Solid: measured \
                between two stamps. Hatched: bounded, as what \
                bare sockets, or on a log a cache line, need elsewhere, or by a share; the bounds stand beside it. Dashed outline: \
                what remains unexplained. Parts do not add up exactly: what was measured as a whole stands below their sum.";
    PageSection::new("Where the time goes", lead, &folded(&figures, OPEN, "runs"))
}

/// Max figures that are not folded.
const OPEN: usize = 4;

/// Stages of a process before its call: hops that cover the whole begin after them.
const BEFORE_THE_CALL: [&str; 3] = ["interpreter_start", "import_redis", "script_until_call"];

/// Hops that cover a whole message, in order of preference.
const WHOLES: [&str; 3] = ["one_way", "round_trip", "publish"];

/// A part of a message's time.
struct WaterfallPart {
    name: String,
    label: String,
    ns: f64,
    bounds_ns: Option<[f64; 2]>,
    kind: StageKind,
}

/// The parts of a run, and its measurements of the whole.
struct Waterfall {
    parts: Vec<WaterfallPart>,
    wholes: Vec<(String, f64)>,
    /// The sum of the parts from the call on.
    sum_ns: f64,
    /// The total that shares refer to: the measured message, or otherwise the sum.
    shared_ns: f64,
}

impl Waterfall {
    /// Returns `None` for fewer than two parts.
    fn of(run: &Run) -> Option<Self> {
        let parts = parts(run);
        if parts.len() < 2 {
            return None;
        }
        let sum_ns = parts.iter().filter(|part| !is_before(&part.name)).map(|part| part.ns).sum::<f64>();
        let message_ns = run.figures.get("message_ns").copied().filter(|ns| *ns > 0.0);
        let wholes = message_ns.map_or_else(|| wholes(run, &parts), |ns| vec![(timed_from(run), ns)]);
        Some(Self { parts, wholes, sum_ns, shared_ns: message_ns.unwrap_or(sum_ns).max(1.0) })
    }

    fn table(&self) -> String {
        let mut from_ns = 0.0;
        let mut body = String::new();
        for WaterfallPart { name, label, ns, bounds_ns, kind } in &self.parts {
            let known = match bounds_ns {
                Some([min, max]) => escaped(&format!("{}, {} to {}", kind.name(), duration(*min), duration(*max))),
                None => kind.name().to_owned(),
            };
            // A process pays this time only once: on the same scale no part of a message would be visible.
            if is_before(name) {
                body += &row(label, &escaped(&duration(*ns)), "", &known);
                continue;
            }
            body += &self.row(label, kind.name(), &known, from_ns, *ns);
            from_ns += ns;
        }
        let mut foot = self.row("sum of the parts", "sum", "", 0.0, self.sum_ns);
        for (name, ns) in &self.wholes {
            foot += &self.row(&format!("{}, whole", name.replace('_', " ")), "whole", "measured", 0.0, *ns);
        }
        format!(
            "<div class=\"scroll\"><table class=\"waterfall\">\n<thead><tr><th>part</th><th class=\"flow\">one after \
             the other</th><th>share</th><th class=\"kind\">known as</th></tr></thead>\n<tbody>\n{body}</tbody>\n\
             <tfoot>\n{foot}</tfoot>\n</table></div>\n"
        )
    }

    fn row(&self, name: &str, class: &str, known: &str, from_ns: f64, ns: f64) -> String {
        let full_row_ns = self.wholes.iter().map(|(_, ns)| *ns).fold(self.sum_ns, f64::max).max(1.0);
        let percent = |ns: f64| 100.0 * ns / full_row_ns;
        let bar = bar(percent(from_ns), percent(ns), class, &escaped(&duration(ns)));
        row(name, &bar, &escaped(&share(100.0 * ns / self.shared_ns)), known)
    }
}

fn row(name: &str, flow: &str, share: &str, known: &str) -> String {
    format!(
        "<tr><th>{}</th><td class=\"flow\">{flow}</td><td>{share}</td><td class=\"kind\">{known}</td></tr>\n",
        escaped(name)
    )
}

/// Returns the start of a run's timed message.
fn timed_from(run: &Run) -> String {
    run.timed_from.as_ref().map_or_else(|| "one message".to_owned(), |moment| format!("from its {moment}"))
}

fn is_before(name: &str) -> bool {
    BEFORE_THE_CALL.contains(&name)
}

fn figure(run: &Run, title: &str) -> Option<String> {
    let path = path_drawing(run);
    let parts: Vec<String> = path.into_iter().chain(Waterfall::of(run).map(|waterfall| waterfall.table())).collect();
    let caption = format!("<figcaption>{}{}</figcaption>", escaped(title), verdict(run));
    (!parts.is_empty()).then(|| format!("<figure{}>\n{caption}\n{}</figure>\n", class(run), parts.concat()))
}

/// Returns a name with spaces for underscores.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Returns the ways of the path, hops among them, then the stages outside the path.
fn parts(run: &Run) -> Vec<WaterfallPart> {
    let ways = path_ways(run);
    let is_told = |name: &str| !ways.is_empty() && is_way(name);
    let stages = run.stages.iter().filter(|stage| !is_told(&stage.name));
    let stages = stages.filter_map(|stage| {
        let ns = stage.p50_ns.filter(|ns| ns.is_finite() && *ns > 0.0)?;
        let label = stage.label.clone().unwrap_or_else(|| words(&stage.name));
        Some(WaterfallPart { name: stage.name.clone(), label, ns, bounds_ns: stage.bounds_ns, kind: stage.kind })
    });
    let stages: Vec<WaterfallPart> = stages.collect();
    let kind = StageKind::Measured;
    let way = |(name, ns): (String, f64)| WaterfallPart { label: words(&name), name, ns, bounds_ns: None, kind };
    ways.into_iter().map(way).chain(stages).collect()
}

/// Returns every hop over several stations from the path's beginning to its end at the latest; for other stages the hop
/// that they are parts of.
fn wholes(run: &Run, parts: &[WaterfallPart]) -> Vec<(String, f64)> {
    let mut ways = parts.iter().filter(|part| is_way(&part.name));
    if let Some(first) = ways.next() {
        let spans = spans_within(run, &first.name, &ways.next_back().unwrap_or(first).name);
        return spans.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
    }
    let whole = WHOLES.into_iter().find_map(|name| Some((name.to_owned(), median_figure(run.hops.get(name)?)?.ns)));
    whole.into_iter().collect()
}

/// Draws a bar in a cell, with its time beside it if there is room, otherwise inside. Positions are percent of the
/// cell's width.
fn bar(from: f64, width: f64, look: &str, time: &str) -> String {
    let (end, width) = (from + width, width.max(MIN_BAR_PERCENT));
    let drawn = format!("<rect class=\"bar {look}\" x=\"{from:.2}%\" y=\"3\" width=\"{width:.2}%\" height=\"14\"/>");
    let to = from + width;
    let hatched = match look {
        "bounded" => format!("<line class=\"hatch\" x1=\"{from:.2}%\" y1=\"10\" x2=\"{to:.2}%\" y2=\"10\"/>"),
        _ => String::new(),
    };
    let (class, x, dx) = if end < 74.0 {
        ("time", end, 6)
    } else if from > 26.0 {
        ("time before", from, -6)
    } else {
        ("time before inside", end, -6)
    };
    format!(
        "<svg class=\"cell\" height=\"20\">{hatched}{drawn}<text class=\"{class} {look}\" x=\"{x:.2}%\" dx=\"{dx}\" \
         y=\"14\">{time}</text></svg>"
    )
}

/// Min width of a visible bar, in percent.
const MIN_BAR_PERCENT: f64 = 0.35;
