//! Comparisons as bars with intervals, on a common logarithmic axis of ratios; the table is the chart.

use super::axis::Axis;
use super::markup::escaped;
use super::page::{PageSection, table};
use super::quantity::{NONE, figure, multiple};
use super::sentence::interval;
use tickpath_lab_result::{Comparison, ResultFile};

/// Returns a table with a row per comparison.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let scale = RatioScale::of(&result.comparisons);
    let rows: Vec<Vec<String>> = result.comparisons.iter().map(|one| row(one, scale.as_ref())).collect();
    if rows.is_empty() {
        return None;
    }
    let axis = scale.map(|scale| scale.header()).unwrap_or_default();
    let header = ["", axis.as_str(), "ratio", "interval", "figure", "a", "b"];
    let lead = "How many times the first is the second: a divided by b. The line over a bar is its interval, \
                and the level says how often all of such a table hold; where it holds 1×, there is no difference to see.";
    PageSection::new("Comparisons", lead, &table("ratios", &header, &rows))
}

/// Max labelled marks.
const MAX_MARKS: usize = 4;

/// The axis of all bars. Positions are percent of a cell's width.
struct RatioScale {
    axis: Axis,
    marks: Vec<f64>,
}

impl RatioScale {
    /// Returns the scale around all ratios, their intervals, and 1; `None` without a ratio.
    fn of(comparisons: &[Comparison]) -> Option<Self> {
        let ratios = comparisons.iter().flat_map(|one| [one.ratio, one.low, one.high]).flatten();
        let mut ratios = ratios.peekable();
        ratios.peek()?;
        let axis = Axis::logarithmic(ratios.chain([1.0]))?;
        let mut marks = axis.marks().to_vec();
        while marks.len() > MAX_MARKS {
            marks = marks.into_iter().step_by(2).collect();
        }
        if !marks.iter().any(|mark| is_one(*mark)) {
            marks.push(1.0);
        }
        Some(Self { axis, marks })
    }

    fn place(&self, ratio: f64) -> f64 {
        2.0 + 96.0 * self.axis.share(ratio)
    }

    fn header(&self) -> String {
        let name = |mark: &f64| {
            let x = self.place(*mark);
            let last = if x > 92.0 { " last" } else { "" };
            let side = if x < 8.0 { " first" } else { last };
            format!("<text class=\"tick{side}\" x=\"{x:.2}%\" y=\"12\">{}</text>", escaped(&multiple(*mark)))
        };
        let names: String = self.marks.iter().map(name).collect();
        format!("<svg class=\"cell\" height=\"16\">{names}</svg>")
    }

    fn bar(&self, ratio: f64, ends: Option<(f64, f64)>) -> String {
        let grid: String = self.marks.iter().map(|mark| self.mark(*mark)).collect();
        let (one, end) = (self.place(1.0), self.place(ratio));
        let (x, width) = (one.min(end), (one - end).abs().max(0.4));
        let interval = ends.map(|(low, high)| whisker(self.place(low), self.place(high))).unwrap_or_default();
        format!(
            "<svg class=\"cell\" height=\"22\" aria-hidden=\"true\">{grid}<rect class=\"bar\" x=\"{x:.2}%\" y=\"7\" \
             width=\"{width:.2}%\" height=\"8\"/>{interval}</svg>"
        )
    }

    fn mark(&self, ratio: f64) -> String {
        let (class, x) = (if is_one(ratio) { "one" } else { "grid" }, self.place(ratio));
        format!("<line class=\"{class}\" x1=\"{x:.2}%\" y1=\"0\" x2=\"{x:.2}%\" y2=\"22\"/>")
    }
}

/// Draws a line between two positions, with a stop at both.
fn whisker(low: f64, high: f64) -> String {
    let line = |x1: f64, y1: u32, x2: f64, y2: u32| {
        format!("<line class=\"interval\" x1=\"{x1:.2}%\" y1=\"{y1}\" x2=\"{x2:.2}%\" y2=\"{y2}\"/>")
    };
    line(low, 11, high, 11) + &line(low, 6, low, 16) + &line(high, 6, high, 16)
}

fn row(one: &Comparison, scale: Option<&RatioScale>) -> Vec<String> {
    let drawable = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
    let ends = one.low.filter(drawable).zip(one.high.filter(drawable));
    let bar = scale.zip(one.ratio.filter(drawable)).map(|(scale, ratio)| scale.bar(ratio, ends));
    let value = |number: Option<f64>| escaped(&number.map_or_else(|| NONE.to_owned(), |n| figure(&one.figure, n)));
    vec![
        escaped(&one.name.replace('_', " ")),
        bar.unwrap_or_else(|| NONE.to_owned()),
        format!("<b>{}</b>", one.ratio.map_or_else(|| NONE.to_owned(), multiple)),
        escaped(&match interval(one).into_iter().chain(one.note.clone()).collect::<Vec<_>>() {
            notes if notes.is_empty() => NONE.to_owned(),
            notes => notes.join("; "),
        }),
        escaped(&one.figure),
        value(one.a),
        value(one.b),
    ]
}

fn is_one(ratio: f64) -> bool {
    (ratio - 1.0).abs() < 1e-9
}
