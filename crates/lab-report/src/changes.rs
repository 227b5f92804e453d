//! Changes side by side: the two medians as bars on the same scale, and the ratio beside them.

use super::markup::escaped;
use super::page::PageSection;
use super::quantity::{NONE, figure, multiple};
use super::sentence::interval;
use tickpath_lab_result::{Comparison, ResultFile};

/// Returns a box for each comparison that names its change.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let boxes: String = result.comparisons.iter().filter_map(change_box).collect();
    let lead = "In each box one thing differs, which it names, and the two sides took turns. The bars have one scale within a \
                box; the ratio is that of the middle pair, with its interval.";
    let body = if boxes.is_empty() { boxes } else { format!("<div class=\"answers\">\n{boxes}</div>\n") };
    PageSection::new("One change at a time", lead, &body)
}

fn change_box(of: &Comparison) -> Option<String> {
    let (change, [a_name, b_name]) = (of.change.as_ref()?, of.sides.as_ref()?);
    let longest = [of.a, of.b].into_iter().flatten().fold(0.0, f64::max);
    let side = |name: &str, value: Option<f64>| {
        let shown = value.map_or_else(|| NONE.to_owned(), |value| figure(&of.figure, value));
        let width = value.filter(|_| longest > 0.0).map_or(0.0, |value| (100.0 * value / longest).max(0.5));
        format!(
            "<div class=\"side\"><span>{}</span><b>{}</b><svg class=\"cell\" height=\"10\" aria-hidden=\"true\"><rect \
             class=\"bar\" width=\"{width:.1}%\" height=\"10\"/></svg></div>\n",
            escaped(name),
            escaped(&shown)
        )
    };
    let ratio = of.ratio.map_or(String::new(), |ratio| format!("<p class=\"times\">{}</p>\n", multiple(ratio)));
    let remarks: Vec<String> = interval(of).into_iter().chain(of.note.clone()).collect();
    Some(format!(
        "<figure class=\"answer\">\n<figcaption>{}</figcaption>\n{ratio}{}{}<p class=\"note\">{}</p>\n</figure>\n",
        escaped(change),
        side(a_name, of.a),
        side(b_name, of.b),
        escaped(&remarks.join("; "))
    ))
}
