//! Percentile curves and their axes: along, 1/(1−q) from 50 % to 99.999 %; up, the latency; both logarithmic.
//!
//! A curve ends where fewer than ten samples lie beyond it. The distribution without the samples that overlap a gap
//! of the host is drawn dashed, through the percentiles that the file holds.

use super::markup::escaped;
use super::quantity::duration;
use crate::result::{Hop, PERCENTILES};

/// The colours that `report.css` defines for lines; more curves than that use them again.
pub(super) const COLOURS: usize = 8;

/// One line of a chart.
pub(super) struct Curve {
    colour: usize,
    dashed: bool,
    /// 1/(1−q) and nanoseconds.
    points: Vec<(f64, f64)>,
}

/// The raw curve of a hop and, where it is known, the unstalled one.
pub(super) fn curves(hop: &Hop, colour: usize) -> Vec<Curve> {
    let colour = colour % COLOURS;
    let mut curves = vec![Curve { colour, dashed: false, points: raw_points(hop) }];
    if let Some(unstalled) = &hop.unstalled {
        curves.push(Curve { colour, dashed: true, points: known_points(unstalled.percentiles()) });
    }
    curves
}

/// The chart's own width and height; a legend goes below.
pub(super) const WIDTH: f64 = 760.0;
pub(super) const HEIGHT: f64 = 400.0;

/// The lines and axes of a chart, without the `svg` element around them.
pub(super) fn chart(curves: &[Curve]) -> String {
    let Some(axis) = Axis::around(curves) else {
        let (x, y) = (WIDTH / 2.0, HEIGHT / 2.0);
        return format!("<text class=\"empty\" x=\"{x}\" y=\"{y}\">too few samples for a curve</text>\n");
    };
    let lines: String = curves.iter().map(|curve| axis.drawn(curve)).collect();
    format!("{}{}{lines}", axis.along(), axis.up())
}

const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 44.0;

/// 1/(1−q) at both ends: 50 % and 99.999 %.
const NEAREST: f64 = 2.0;
const FARTHEST: f64 = 100_000.0;
const STEPS: u32 = 120;

/// The powers of ten of a nanosecond between which the curves lie.
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn around(curves: &[Curve]) -> Option<Self> {
        let times = || curves.iter().flat_map(|curve| &curve.points).map(|(_, ns)| ns.log10());
        let low = times().reduce(f64::min)?.floor() as i32;
        let high = times().reduce(f64::max)?.ceil() as i32;
        Some(Self { low, high: high.max(low + 1) })
    }

    fn x(&self, odds: f64) -> f64 {
        let share = (odds / NEAREST).ln() / (FARTHEST / NEAREST).ln();
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, ns: f64) -> f64 {
        let share = (ns.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn drawn(&self, curve: &Curve) -> String {
        let points: Vec<String> =
            curve.points.iter().map(|(odds, ns)| format!("{:.1},{:.1}", self.x(*odds), self.y(*ns))).collect();
        let dash = if curve.dashed { " dashed" } else { "" };
        format!("<polyline class=\"line c{}{dash}\" points=\"{}\"/>\n", curve.colour, points.join(" "))
    }

    fn along(&self) -> String {
        let marks = [(2.0, "50%"), (10.0, "90%"), (1e2, "99%"), (1e3, "99.9%"), (1e4, "99.99%"), (1e5, "99.999%")];
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        let mut drawn = String::new();
        for (odds, label) in marks {
            let x = self.x(odds);
            drawn += &format!("<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\n");
            drawn += &format!("<text class=\"along\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>\n", bottom + 20.0);
        }
        drawn
    }

    fn up(&self) -> String {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let mut drawn = String::new();
        for power in self.low..=self.high {
            let ns = 10f64.powi(power);
            let (y, label) = (self.y(ns), escaped(&duration(ns)));
            drawn += &format!("<line class=\"grid\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\n");
            drawn += &format!("<text class=\"up\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>\n", left - 8.0, y + 4.0);
        }
        drawn
    }
}

/// From the whole histogram where the file has it, else through the percentiles.
fn raw_points(hop: &Hop) -> Vec<(f64, f64)> {
    let Ok(histogram) = hop.histogram() else { return known_points(hop.percentiles()) };
    let end = (hop.count as f64 / 10.0).min(FARTHEST);
    if end < NEAREST {
        return Vec::new();
    }
    let max = hop.max_ns.unwrap_or(u64::MAX);
    let point = |step: u32| {
        let odds = NEAREST * (end / NEAREST).powf(f64::from(step) / f64::from(STEPS));
        (odds, visible(histogram.value_at_quantile(1.0 - 1.0 / odds).min(max)))
    };
    (0..=STEPS).map(point).collect()
}

fn known_points(percentiles: [Option<u64>; 6]) -> Vec<(f64, f64)> {
    let known = PERCENTILES.iter().zip(percentiles);
    known.filter_map(|(percentile, ns)| Some((percentile.samples as f64 / 10.0, visible(ns?)))).collect()
}

/// A logarithm has no zero; one nanosecond is the least a stamp can tell.
fn visible(ns: u64) -> f64 {
    ns.max(1) as f64
}
