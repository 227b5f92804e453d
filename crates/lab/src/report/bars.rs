//! Comparisons as bars with intervals, on a logarithmic axis of ratios; stages as shares of their sum.

use super::markup::escaped;
use super::quantity::{duration, multiple};
use super::sentence::interval;
use crate::result::{Comparison, Stage};

/// The drawing of all comparisons that have a ratio; none if none has.
pub(super) fn comparison_bars(comparisons: &[Comparison]) -> Option<String> {
    let bars: Vec<Bar> = comparisons.iter().filter_map(Bar::of).collect();
    let axis = Axis::around(&bars)?;
    let height = ROW * bars.len() as f64 + 8.0;
    let drawn: String = bars.iter().enumerate().map(|(row, bar)| axis.drawn(row, bar)).collect();
    let one = axis.x(1.0);
    Some(format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"Comparisons\">\n{drawn}\
         <line class=\"one\" x1=\"{one:.1}\" y1=\"0\" x2=\"{one:.1}\" y2=\"{height:.0}\"/>\n</svg>\n"
    ))
}

/// The drawing of where the time of a message goes; none if no stage has a time.
pub(super) fn stage_bars(stages: &[Stage]) -> Option<String> {
    let known: Vec<(&Stage, f64)> =
        stages.iter().filter_map(|stage| Some((stage, stage.p50_ns.filter(|ns| *ns > 0.0)?))).collect();
    let longest = known.iter().map(|(_, ns)| *ns).reduce(f64::max)?;
    let height = ROW * known.len() as f64;
    let rows = known.iter().enumerate();
    let drawn: String = rows.map(|(row, (stage, ns))| stage_bar(row, stage, *ns, longest)).collect();
    Some(format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
         aria-label=\"Where the time goes\">\n{drawn}</svg>\n"
    ))
}

const WIDTH: f64 = 760.0;
const ROW: f64 = 52.0;
const THICKNESS: f64 = 16.0;

/// One comparison with every part of it positive, for a logarithm needs that.
struct Bar {
    label: String,
    value: String,
    ratio: f64,
    ends: Option<(f64, f64)>,
}

/// The logarithms of the ratios at both ends of the drawing.
struct Axis {
    low: f64,
    high: f64,
}

impl Bar {
    fn of(comparison: &Comparison) -> Option<Self> {
        let drawable = |value: &f64| value.is_finite() && *value > 0.0;
        let ratio = comparison.ratio.filter(drawable)?;
        let ends = comparison.low.filter(drawable).zip(comparison.high.filter(drawable));
        let value = match interval(comparison) {
            Some(interval) => format!("{} ({interval})", multiple(ratio)),
            None => multiple(ratio),
        };
        Some(Self { label: comparison.name.clone(), value, ratio, ends })
    }
}

impl Axis {
    fn around(bars: &[Bar]) -> Option<Self> {
        let (mut low, mut high): (f64, f64) = (0.0, 0.0);
        for bar in bars {
            let (from, to) = bar.ends.unwrap_or((bar.ratio, bar.ratio));
            low = low.min(from.min(bar.ratio).ln());
            high = high.max(to.max(bar.ratio).ln());
        }
        let room = if high > low { 0.0 } else { 1.0 };
        (!bars.is_empty()).then_some(Self { low, high: high + room })
    }

    fn x(&self, ratio: f64) -> f64 {
        4.0 + (ratio.ln() - self.low) / (self.high - self.low) * (WIDTH - 8.0)
    }

    fn drawn(&self, row: usize, bar: &Bar) -> String {
        let y = ROW * row as f64;
        let (one, end) = (self.x(1.0), self.x(bar.ratio));
        let (x, width) = (one.min(end), (one - end).abs().max(1.0));
        let mut drawn = labels(y, &bar.label, &bar.value);
        drawn += &format!(
            "<rect class=\"bar\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{THICKNESS}\"/>\n",
            y + 24.0
        );
        if let Some((low, high)) = bar.ends {
            let (left, right, middle) = (self.x(low), self.x(high), y + 24.0 + THICKNESS / 2.0);
            let (top, bottom) = (middle - 6.0, middle + 6.0);
            drawn += &format!(
                "<path class=\"interval\" d=\"M{left:.1} {top:.1} V{bottom:.1} M{left:.1} {middle:.1} H{right:.1} \
                 M{right:.1} {top:.1} V{bottom:.1}\"/>\n"
            );
        }
        drawn
    }
}

fn stage_bar(row: usize, stage: &Stage, ns: f64, longest: f64) -> String {
    let y = ROW * row as f64;
    let width = ((WIDTH - 8.0) * ns / longest).max(1.0);
    let value = format!("{} ({})", duration(ns), stage.kind.name());
    let kind = stage.kind.name();
    labels(y, &stage.name, &value)
        + &format!(
            "<rect class=\"bar {kind}\" x=\"4\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{THICKNESS}\"/>\n",
            y + 24.0
        )
}

fn labels(y: f64, left: &str, right: &str) -> String {
    let (baseline, end) = (y + 17.0, WIDTH - 4.0);
    format!(
        "<text class=\"label\" x=\"4\" y=\"{baseline:.1}\">{}</text>\n\
         <text class=\"value\" x=\"{end}\" y=\"{baseline:.1}\">{}</text>\n",
        escaped(left),
        escaped(right)
    )
}
