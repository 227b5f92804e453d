//! The path of a message, station by station, with p50 and p99 between the stations: as text and as a picture.
//!
//! A way between two neighbouring stations is a hop or, if the contract has no such hop, the stage named `FROM_to_TO`.
//! Longer ways span several stations and appear below. Ways that were not measured are drawn broken, never subtracted:
//! a difference of percentiles is no percentile.

use super::markup::{escaped, plain};
use super::quantity::{NONE, duration, duration_or_none};
use tickpath_lab_result::{Hop, Run};

/// The stations in the order of the path, each with the name of its stamp.
const STATIONS: [(&str, &str); 9] = [
    ("tick", ""),
    ("seen", ""),
    ("sent", "T0"),
    ("received", "T1"),
    ("released", "T2"),
    ("arrived", ""),
    ("reported", ""),
    ("acked", ""),
    ("accepted", ""),
];

/// Hops between neighbouring stations: the hop, and its first station.
const LINKS: [(&str, usize); 3] = [("one_way", 0), ("t0_t1", 2), ("t1_t2", 3)];

/// Hops over several stations: the hop, its first and its last station.
const SPANS: [(&str, usize, usize); 5] = [
    ("tick_to_order", 0, 4),
    ("tick_to_venue", 0, 5),
    ("t0_t2", 2, 4),
    ("order_ack", 2, 7),
    ("order_round_trip", 2, 8),
];

/// Returns the path of a run for a terminal of `width` columns; empty if the run measured no part of it.
pub fn path_picture(run: &Run, width: usize) -> String {
    let Some(path) = MeasuredPath::of(run) else { return String::new() };
    let stations: Vec<usize> = (path.first..=path.last).collect();
    let a_row = (width / (BOX + ARROW)).max(1);
    let mut text: String = stations.chunks(a_row).map(|row| path.text_row(row)).collect();
    for span in &path.spans {
        let ends = format!("{} → {}", STATIONS[span.from].0, STATIONS[span.to].0);
        let line = format!("{:<17} {:<22} p50 {:<9} p99 {}", span.name, ends, span.time.p50, span.time.p99);
        text += &format!("{}\n", line.trim_end());
    }
    text + &threads(run).map(|threads| format!("{threads}\n")).unwrap_or_default()
}

/// Returns the threads and their CPUs in words: stations on the same thread wait for each other.
fn threads(run: &Run) -> Option<String> {
    run.params.text("threads").map(|threads| format!("Threads: {}.", plain(&threads)))
}

/// Returns the path of a run as a drawing for a page; `None` if the run has no more than a single time of it.
pub(super) fn path_drawing(run: &Run) -> Option<String> {
    let (width, height, body) = draw_path(run)?;
    Some(format!(
        "<div class=\"scroll\"><svg class=\"path\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         style=\"min-width:{:.0}px;max-width:{width:.0}px\" role=\"img\">{body}</svg></div>\n{}",
        width * 0.8,
        MeasuredPath::of(run)?.list()
    ))
}

/// Returns the path as a self-contained picture.
pub fn path_svg(run: &Run) -> Option<String> {
    let (width, height, body) = draw_path(run)?;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\">\n<style>{STYLE}</style>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    ))
}

/// Returns the width, the height, and the contents.
fn draw_path(run: &Run) -> Option<(f64, f64, String)> {
    let path = MeasuredPath::of(run).filter(|path| path.known_times() > 1)?;
    let width = MARGIN * 2.0 + STEP * (path.last - path.first) as f64;
    let threads = threads(run);
    let foot = if threads.is_some() { FOOT } else { 0.0 };
    let height = SPANS_TOP + SPAN_STEP * path.spans.len() as f64 + foot;
    let threads_text = threads.map(|threads| {
        let (x, y) = (MARGIN / 2.0, height - FOOT / 2.0);
        format!("<text class=\"threads\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(&threads))
    });
    let threads_text = threads_text.unwrap_or_default();
    let links: String = (path.first..path.last).map(|from| path.drawn_link(from)).collect();
    let stations: String = (path.first..=path.last).map(|station| path.drawn_station(station)).collect();
    let spans: String = path.spans.iter().enumerate().map(|(row, span)| path.drawn_span(row, span)).collect();
    let body = format!(
        "<title>The path, station by station</title><desc>The median of each way, and under it the 99th percentile; a \
         thicker line is a slower way, a dotted one was not measured.</desc>\n{links}{stations}{spans}{threads_text}"
    );
    Some((width, height, body))
}

/// Returns the measured ways between neighbouring stations, each as `FROM_to_TO` with its median in nanoseconds; empty
/// for a single way, which makes no path.
pub(super) fn path_ways(run: &Run) -> Vec<(String, f64)> {
    let link = |from: usize| {
        let time = link_time(run, from).filter(|time| time.p50_ns > 0.0)?;
        Some((link_name(from), time.p50_ns))
    };
    let links: Vec<(String, f64)> = (0..STATIONS.len() - 1).filter_map(link).collect();
    if links.len() > 1 { links } else { Vec::new() }
}

/// Returns the hops over several stations that begin where the first way begins and end no later than the last: their
/// names and medians in nanoseconds.
pub(super) fn spans_within(run: &Run, first: &str, last: &str) -> Vec<(&'static str, f64)> {
    let Some((begin, end)) = start_of(first).zip(start_of(last)) else { return Vec::new() };
    let spans = SPANS.into_iter().filter(|(_, from, to)| *from == begin && *to <= end + 1);
    spans.filter_map(|(name, _, _)| Some((name, run.hops.get(name)?.p50_ns? as f64))).collect()
}

/// Returns whether a stage lies between two neighbouring stations.
pub(super) fn is_way(stage: &str) -> bool {
    start_of(stage).is_some()
}

/// Columns of a station's box, and of the arrow between two boxes.
const BOX: usize = 12;
const ARROW: usize = 13;

/// The colours and sizes of the picture; `report.css` has the same for the page.
const STYLE: &str = "
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #16191e }
.way { stroke: #0b5cad } .unknown { stroke: #59616d; stroke-dasharray: 2 6 }
.station { fill: #ffffff; stroke: #0b5cad; stroke-width: 2 }
.name { font-weight: 600 } .stamp { font-size: 11px; fill: #0b5cad; font-weight: 650 }
.p50 { font-size: 15px; font-weight: 620 } .p99 { font-size: 12px; fill: #59616d }
.span { fill: none; stroke: #59616d } .total { fill: #59616d } .total .p50 { font-size: 14px; fill: #16191e }
.threads { text-anchor: start; fill: #59616d }
";

/// Sizes in units of the drawing.
const MARGIN: f64 = 80.0;
const STEP: f64 = 132.0;
const LINE: f64 = 72.0;
const SPANS_TOP: f64 = 136.0;
const SPAN_STEP: f64 = 44.0;
const FOOT: f64 = 24.0;

/// The measured part of the path.
struct MeasuredPath {
    first: usize,
    last: usize,
    /// The time from each station to the next.
    links: [Option<HopTime>; STATIONS.len() - 1],
    spans: Vec<Span>,
}

struct Span {
    name: &'static str,
    from: usize,
    to: usize,
    time: HopTime,
}

/// A time as text, and its median in nanoseconds for the width of its line.
struct HopTime {
    p50: String,
    p99: String,
    p50_ns: f64,
}

impl MeasuredPath {
    fn of(run: &Run) -> Option<Self> {
        let links: [Option<HopTime>; STATIONS.len() - 1] = std::array::from_fn(|from| link_time(run, from));
        let spans: Vec<Span> = SPANS
            .into_iter()
            .filter_map(|(name, from, to)| Some(Span { name, from, to, time: HopTime::of(run.hops.get(name)?) }))
            .collect();
        let linked = links.iter().enumerate().filter(|(_, time)| time.is_some()).map(|(from, _)| (from, from + 1));
        let ends: Vec<(usize, usize)> = linked.chain(spans.iter().map(|span| (span.from, span.to))).collect();
        let first = ends.iter().map(|(from, _)| *from).min()?;
        let last = ends.iter().map(|(_, to)| *to).max()?;
        Some(Self { first, last, links, spans })
    }

    /// Returns a row of boxes; each station but the path's first has the way to it on its left.
    fn text_row(&self, row: &[usize]) -> String {
        let mut lines = [String::new(), String::new(), String::new()];
        for &station in row {
            if station > self.first {
                let (above, line, below) = match &self.links[station - 1] {
                    Some(time) => (format!("p50 {}", time.p50), "─".repeat(ARROW - 2), format!("p99 {}", time.p99)),
                    None => (String::new(), "╌".repeat(ARROW - 2), String::new()),
                };
                lines[0] += &format!(" {above:<width$}", width = ARROW - 1);
                lines[1] += &format!(" {line}→");
                lines[2] += &format!(" {below:<width$}", width = ARROW - 1);
            }
            let (name, stamp) = STATIONS[station];
            lines[0] += &format!("┌{stamp:─^width$}┐", width = BOX - 2);
            lines[1] += &format!("│{name:^width$}│", width = BOX - 2);
            lines[2] += &format!("└{:─^width$}┘", "", width = BOX - 2);
        }
        lines.map(|line| format!("{}\n", line.trim_end())).concat()
    }

    /// Returns the path from top to bottom, for a page that is too narrow for the drawing.
    fn list(&self) -> String {
        let time = |time: &HopTime| match time.p99.as_str() {
            NONE => format!("<b>{}</b>", escaped(&time.p50)),
            p99 => format!("<b>{}</b> · p99 {}", escaped(&time.p50), escaped(p99)),
        };
        let way = |from: usize| {
            self.links
                .get(from)
                .map_or("not measured".to_owned(), |link| link.as_ref().map_or("not measured".to_owned(), time))
        };
        let station = |station: usize| {
            let (name, stamp) = STATIONS[station];
            let stamp = if stamp.is_empty() { String::new() } else { format!(" <small>{stamp}</small>") };
            let on = if station < self.last { format!("<span>{}</span>", way(station)) } else { String::new() };
            format!("<li>{name}{stamp}{on}</li>\n")
        };
        let stations: String = (self.first..=self.last).map(station).collect();
        let span = |span: &Span| {
            let (from, to) = (STATIONS[span.from].0, STATIONS[span.to].0);
            format!("<li>{} <small>{from} → {to}</small><span>{}</span></li>\n", span.name, time(&span.time))
        };
        let spans: String = self.spans.iter().map(span).collect();
        format!("<ol class=\"stations\">\n{stations}</ol>\n<ul class=\"spans\">\n{spans}</ul>\n")
    }

    /// Returns the number of ways and spans with a known median.
    fn known_times(&self) -> usize {
        let times = self.links.iter().flatten().chain(self.spans.iter().map(|span| &span.time));
        times.filter(|time| time.p50_ns > 0.0).count()
    }

    fn x(&self, station: usize) -> f64 {
        MARGIN + STEP * (station - self.first) as f64
    }

    fn drawn_link(&self, from: usize) -> String {
        let (left, right) = (self.x(from) + 13.0, self.x(from + 1) - 13.0);
        let middle = (left + right) / 2.0;
        match &self.links[from] {
            Some(time) => format!(
                "<line class=\"way\" x1=\"{left:.1}\" y1=\"{LINE}\" x2=\"{right:.1}\" y2=\"{LINE}\" \
                 style=\"stroke-width:{:.1}\"/>\n<text class=\"p50\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\n{}",
                self.thickness(time),
                LINE - 32.0,
                escaped(&time.p50),
                time.drawn_p99(middle)
            ),
            None => format!(
                "<line class=\"unknown way\" x1=\"{left:.1}\" y1=\"{LINE}\" x2=\"{right:.1}\" y2=\"{LINE}\"/>\n"
            ),
        }
    }

    /// Returns the thickness of a line: the slowest way is the thickest, so that it stands out.
    fn thickness(&self, time: &HopTime) -> f64 {
        let slowest = self.links.iter().flatten().map(|link| link.p50_ns).fold(0.0, f64::max);
        if slowest > 0.0 { 2.0 + 8.0 * time.p50_ns / slowest } else { 2.0 }
    }

    fn drawn_station(&self, station: usize) -> String {
        let x = self.x(station);
        let (name, stamp) = STATIONS[station];
        format!(
            "<circle class=\"station\" cx=\"{x:.1}\" cy=\"{LINE}\" r=\"13\"/>\n\
             <text class=\"stamp\" x=\"{x:.1}\" y=\"{:.1}\">{stamp}</text>\n\
             <text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{name}</text>\n",
            LINE + 4.0,
            LINE + 34.0
        )
    }

    fn drawn_span(&self, row: usize, span: &Span) -> String {
        let y = SPANS_TOP + SPAN_STEP * row as f64;
        let (left, right) = (self.x(span.from), self.x(span.to));
        format!(
            "<path class=\"span\" d=\"M{left:.1} {:.1} V{y:.1} H{right:.1} V{:.1}\"/>\n\
             <text class=\"total\" x=\"{:.1}\" y=\"{:.1}\">{} <tspan class=\"p50\">{}</tspan> · p99 {}</text>\n",
            y - 8.0,
            y - 8.0,
            (left + right) / 2.0,
            y + 17.0,
            span.name,
            escaped(&span.time.p50),
            escaped(&span.time.p99)
        )
    }
}

impl HopTime {
    fn of(hop: &Hop) -> Self {
        Self {
            p50: duration_or_none(hop.p50_ns),
            p99: duration_or_none(hop.p99_ns),
            p50_ns: hop.p50_ns.map_or(0.0, |ns| ns as f64),
        }
    }

    /// Returns nothing if the percentile is unknown.
    fn drawn_p99(&self, middle: f64) -> String {
        if self.p99 == NONE {
            return String::new();
        }
        let y = LINE - 15.0;
        format!("<text class=\"p99\" x=\"{middle:.1}\" y=\"{y:.1}\">p99 {}</text>\n", escaped(&self.p99))
    }
}

fn link_time(run: &Run, from: usize) -> Option<HopTime> {
    let hop = LINKS.into_iter().find(|(_, start)| *start == from).and_then(|(name, _)| run.hops.get(name));
    if let Some(hop) = hop {
        return Some(HopTime::of(hop));
    }
    let name = link_name(from);
    let p50_ns = run.stages.iter().find(|stage| stage.name == name)?.p50_ns?;
    Some(HopTime { p50: duration(p50_ns), p99: NONE.to_owned(), p50_ns: p50_ns.max(0.0) })
}

/// Returns the station at which a way begins.
fn start_of(way: &str) -> Option<usize> {
    (0..STATIONS.len() - 1).find(|from| link_name(*from) == way)
}

/// Returns the name of the stage between a station and the next.
fn link_name(from: usize) -> String {
    format!("{}_to_{}", STATIONS[from].0, STATIONS[from + 1].0)
}
