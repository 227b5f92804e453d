//! Percentile curves: horizontally 1/(1−q) from 50 % to 99.999 %, vertically the latency; both logarithmic.
//!
//! A curve ends where fewer than ten samples lie beyond it. The curve without the samples that gaps of the host explain
//! connects the percentiles that the file holds.

use super::axis::Axis;
use super::chart::{BOTTOM_SPACE, ChartFrame};
use super::quantity::duration;
use tickpath_lab_result::{Hop, PERCENTILES};

/// Points of a curve: 1/(1−q), and nanoseconds.
pub(super) type CurvePoints = Vec<(f64, f64)>;

pub(super) const HEIGHT: f64 = 300.0;

/// Returns the curve of a hop, from the whole histogram if the file has it, otherwise through the percentiles.
pub(super) fn raw(hop: &Hop) -> CurvePoints {
    let Ok(histogram) = hop.histogram() else { return known_points(hop.percentiles()) };
    let end = (hop.count as f64 / 10.0).min(MAX_ODDS);
    if end < MIN_ODDS {
        return Vec::new();
    }
    let max = hop.max_ns.unwrap_or(u64::MAX);
    let point = |step: u32| {
        let odds = MIN_ODDS * (end / MIN_ODDS).powf(f64::from(step) / f64::from(STEPS));
        (odds, visible(histogram.value_at_quantile(1.0 - 1.0 / odds).min(max)))
    };
    (0..=STEPS).map(point).collect()
}

/// Returns the curve without the samples that gaps of the host explain, if the file separates them.
pub(super) fn unstalled(hop: &Hop) -> Option<CurvePoints> {
    Some(known_points(hop.unstalled.as_ref()?.percentiles()))
}

/// Returns the frame around curves whose lines end at `right`; `None` if no curve is longer than a point.
pub(super) fn frame<'a>(curves: impl Iterator<Item = &'a CurvePoints>, right: f64) -> Option<ChartFrame> {
    let points: CurvePoints = curves.flatten().copied().collect();
    let farthest = points.iter().map(|(odds, _)| *odds).fold(0.0, f64::max);
    if farthest <= MIN_ODDS {
        return None;
    }
    let up = Axis::logarithmic(points.iter().map(|(_, ns)| *ns))?;
    let reached = |mark: &&(f64, &str)| mark.0 < farthest * 0.999;
    // The first mark beyond all curves ends the axis.
    let count = (MARKS.iter().filter(reached).count() + 1).min(MARKS.len());
    let marks: Vec<f64> = MARKS[..count].iter().map(|(odds, _)| *odds).collect();
    let along = Axis::between(MIN_ODDS, marks[count - 1], marks);
    Some(ChartFrame { right, top: 16.0, bottom: HEIGHT - BOTTOM_SPACE, x_axis: along, y_axis: up })
}

/// Draws the grid of a frame around curves.
pub(super) fn grid(frame: &ChartFrame) -> String {
    let name = |odds: f64| MARKS.iter().find(|mark| mark.0 == odds).map_or_else(String::new, |mark| mark.1.to_owned());
    frame.y_marks(duration, "") + &frame.x_marks(name, "share of the messages")
}

/// 1/(1−q) of the horizontal marks, each with its name.
const MARKS: [(f64, &str); 6] =
    [(MIN_ODDS, "50%"), (10.0, "90%"), (1e2, "99%"), (1e3, "99.9%"), (1e4, "99.99%"), (MAX_ODDS, "99.999%")];

/// 1/(1−q) at both ends, and the max number of steps between them.
const MIN_ODDS: f64 = 2.0;
const MAX_ODDS: f64 = 100_000.0;
const STEPS: u32 = 120;

fn known_points(percentiles: [Option<u64>; 6]) -> CurvePoints {
    let known = PERCENTILES.iter().zip(percentiles);
    known.filter_map(|(percentile, ns)| Some((percentile.samples as f64 / 10.0, visible(ns?)))).collect()
}

/// Returns at least a nanosecond, the resolution of a stamp, because a logarithm has no zero.
fn visible(ns: u64) -> f64 {
    ns.max(1) as f64
}
