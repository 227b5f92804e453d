//! Shared parts of line charts: the frame with its axes, lines that differ even without colour, and labels at their
//! ends.
//!
//! All measures are units of the drawing's own `viewBox`; a page scales it to its column.

use super::axis::Axis;
use super::markup::escaped;

pub(super) const WIDTH: f64 = 520.0;

/// Space for the marks of the vertical axis, and for the marks and the name of the horizontal axis.
pub(super) const LEFT_SPACE: f64 = 66.0;
pub(super) const BOTTOM_SPACE: f64 = 40.0;

/// Colours and dash patterns that `report.css` defines. Together they distinguish forty lines.
pub(super) const COLOURS: usize = 8;
const DASHES: usize = 5;

/// Returns the CSS classes of a line, by its number.
pub(super) fn line_classes(number: usize) -> String {
    format!("c{} d{}", number % COLOURS, number % DASHES)
}

/// The area of a chart's lines within its drawing.
pub(super) struct ChartFrame {
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x_axis: Axis,
    pub y_axis: Axis,
}

impl ChartFrame {
    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT_SPACE + self.x_axis.share(value) * (self.right - LEFT_SPACE)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y_axis.share(value) * (self.bottom - self.top)
    }

    /// Draws the marks of the vertical axis, and its name above them.
    pub(super) fn y_marks(&self, print: fn(f64) -> String, name: &str) -> String {
        let (left, right) = (LEFT_SPACE, self.right);
        let mut drawn = String::new();
        for mark in self.y_axis.marks() {
            let (y, label) = (self.y(*mark), escaped(&print(*mark)));
            drawn += &format!("<line class=\"grid\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>\n");
            drawn += &format!("<text class=\"tick up\" x=\"{}\" y=\"{:.1}\">{label}</text>\n", left - 7.0, y + 4.0);
        }
        drawn + &named("unit", 0.0, self.top - 15.0, name)
    }

    /// Draws the marks of the horizontal axis, and its name below them.
    pub(super) fn x_marks(&self, print: impl Fn(f64) -> String, name: &str) -> String {
        let (top, bottom) = (self.top, self.bottom);
        let mut drawn = String::new();
        for mark in self.x_axis.marks() {
            let (x, label) = (self.x(*mark), escaped(&print(*mark)));
            drawn += &format!("<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\n");
            drawn += &format!("<text class=\"tick along\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>\n", bottom + 17.0);
        }
        drawn + &named("unit end", self.right, bottom + 34.0, name)
    }

    /// Draws a line through points, with a tooltip if `words` is not empty.
    pub(super) fn line(&self, points: &[(f64, f64)], classes: &str, label: &str) -> String {
        let points: Vec<String> =
            points.iter().map(|(along, up)| format!("{:.1},{:.1}", self.x(*along), self.y(*up))).collect();
        let points = points.join(" ");
        let title = if label.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(label)) };
        format!("<polyline class=\"line {classes}\" points=\"{points}\">{title}</polyline>\n")
    }
}

/// The end of a line.
pub(super) struct LineEnd {
    pub number: usize,
    /// The end of the line; `None` if its label is at the height of the whole line.
    pub x: Option<f64>,
    pub y: f64,
}

/// Labels of a chart's lines, in the order of their numbers: beside the lines if they fit, otherwise in a legend.
pub(super) struct LineLabels(pub(super) Vec<String>);

impl LineLabels {
    /// Returns the right end of the lines, which leaves room for the labels.
    pub(super) fn line_end(&self) -> f64 {
        WIDTH - if self.fits_beside() { 16.0 + LETTER_WIDTH * self.longest() as f64 } else { 36.0 }
    }

    /// Returns all labels as a list in a sentence.
    pub(super) fn listed(&self) -> String {
        self.0.join(", ")
    }

    /// Draws the labels beside the lines, apart from each other; a label away from its line's end gets a thread to it.
    /// Empty if the labels are in the legend.
    pub(super) fn draw_beside(&self, frame: &ChartFrame, ends: &[LineEnd]) -> String {
        if !self.fits_beside() {
            return String::new();
        }
        let wanted: Vec<f64> = ends.iter().map(|end| end.y).collect();
        let right = frame.right;
        let mut drawn = String::new();
        for (end, y) in ends.iter().zip(spread_labels(&wanted, frame.top + 4.0, frame.bottom)) {
            let classes = line_classes(end.number);
            if let Some(x) = end.x.filter(|x| right - x > 3.0 || (y - end.y).abs() > 6.0) {
                let path = format!("M{x:.1} {:.1} L{:.1} {y:.1} h4", end.y, right + 2.0);
                drawn += &format!("<path class=\"thread {classes}\" d=\"{path}\"/>\n");
            }
            let (x, y, word) = (right + 8.0, y + 4.0, escaped(&self.0[end.number]));
            drawn += &format!("<text class=\"word {classes}\" x=\"{x:.1}\" y=\"{y:.1}\">{word}</text>\n");
        }
        drawn
    }

    /// Returns the legend of a chart whose labels do not fit beside the lines.
    pub(super) fn legend(&self) -> String {
        if self.fits_beside() {
            return String::new();
        }
        let item = |(number, word): (usize, &String)| {
            let classes = line_classes(number);
            format!(
                "<li><svg class=\"key\" viewBox=\"0 0 30 8\" aria-hidden=\"true\"><line class=\"line {classes}\" \
                 x1=\"0\" y1=\"4\" x2=\"30\" y2=\"4\"/></svg>{}</li>\n",
                escaped(word)
            )
        };
        format!("<ul class=\"legend\">\n{}</ul>\n", self.0.iter().enumerate().map(item).collect::<String>())
    }

    fn fits_beside(&self) -> bool {
        self.0.len() <= MAX_LABELS && self.longest() <= MAX_LABEL_LETTERS
    }

    fn longest(&self) -> usize {
        self.0.iter().map(|word| word.chars().count()).max().unwrap_or(0)
    }
}

/// Returns the drawing around a chart, with a description for screen readers.
pub(super) fn drawing(height: f64, title: &str, description: &str, body: &str) -> String {
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>{}</title><desc>{}</desc>\n\
         {body}</svg>\n",
        escaped(title),
        escaped(description)
    )
}

/// Max labels beside the lines of a chart, max letters of a label, and the width of a letter, generously.
const MAX_LABELS: usize = 10;
const MAX_LABEL_LETTERS: usize = 18;
const LETTER_WIDTH: f64 = 9.4;

/// Min distance between two labels.
const LABEL_STEP: f64 = 16.0;

fn named(class: &str, x: f64, y: f64, name: &str) -> String {
    if name.is_empty() {
        return String::new();
    }
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(name))
}

/// Returns heights as near to the wanted ones as the distance between labels allows: down first, then up from the
/// lowest.
fn spread_labels(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut heights = wanted.to_vec();
    let mut min_y = top;
    for index in &order {
        heights[*index] = heights[*index].max(min_y);
        min_y = heights[*index] + LABEL_STEP;
    }
    let mut max_y = bottom;
    for index in order.iter().rev() {
        heights[*index] = heights[*index].min(max_y);
        max_y = heights[*index] - LABEL_STEP;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart() {
        for wanted in [vec![], vec![50.0], vec![200.0; 9], vec![0.0, 300.0, 150.0, 151.0, 149.0], vec![f64::NAN, 10.0]]
        {
            let mut heights = spread_labels(&wanted, 20.0, 240.0);
            heights.sort_by(f64::total_cmp);
            assert!(heights.windows(2).all(|pair| pair[1] - pair[0] > LABEL_STEP - 1e-9), "{wanted:?}: {heights:?}");
            assert!(heights.iter().all(|height| (20.0..=240.0).contains(height)), "{wanted:?}: {heights:?}");
        }
    }
}
