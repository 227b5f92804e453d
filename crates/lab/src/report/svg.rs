//! Percentile curves as one picture that needs nothing beside itself: a line a run and hop, and the legend.

use std::collections::BTreeMap;

use super::curve::{COLOURS, Curve, HEIGHT, WIDTH, chart, curves};
use super::markup::escaped;
use super::sentence::Titles;
use crate::result::ResultFile;

/// The colours and sizes of the picture; `report.css` has the same for the page.
const STYLE: &str = "
text { font: 13px system-ui, sans-serif; fill: #1d2430 }
.along { text-anchor: middle } .up { text-anchor: end } .empty { text-anchor: middle }
.grid { stroke: #d9dee7 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round } .dashed { stroke-dasharray: 6 5 }
.c0 { stroke: #0072b2 } .c1 { stroke: #d55e00 } .c2 { stroke: #009e73 } .c3 { stroke: #cc79a7 }
.c4 { stroke: #56b4e9 } .c5 { stroke: #e69f00 } .c6 { stroke: #5b5b5b } .c7 { stroke: #a6761d }
";

const LEGEND_ROW: f64 = 22.0;

/// The percentile curves of every run and hop; repeats of the same thing share a colour.
pub fn svg(result: &ResultFile) -> String {
    let titles = Titles::of(result);
    let mut colours: BTreeMap<String, usize> = BTreeMap::new();
    let mut legend = Vec::new();
    let mut lines: Vec<Curve> = Vec::new();
    for run in &result.runs {
        for (name, hop) in run.hops_in_path_order() {
            let label = format!("{name} · {}", titles.title(run));
            let next = colours.len();
            let colour = *colours.entry(label.clone()).or_insert_with(|| {
                legend.push(label);
                next
            });
            lines.extend(curves(hop, colour));
        }
    }
    let height = HEIGHT + LEGEND_ROW * (legend.len() + 1) as f64 + 8.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\">\n<style>{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         {}{}</svg>\n",
        chart(&lines),
        drawn_legend(&legend)
    )
}

fn drawn_legend(labels: &[String]) -> String {
    let mut drawn = String::new();
    for (row, label) in labels.iter().enumerate() {
        let (y, colour) = (HEIGHT + LEGEND_ROW * row as f64 + 8.0, row % COLOURS);
        drawn += &format!("<line class=\"line c{colour}\" x1=\"16\" y1=\"{y}\" x2=\"44\" y2=\"{y}\"/>\n");
        drawn += &format!("<text x=\"54\" y=\"{}\">{}</text>\n", y + 4.0, escaped(label));
    }
    let y = HEIGHT + LEGEND_ROW * labels.len() as f64 + 8.0;
    drawn += &format!("<line class=\"line dashed c6\" x1=\"16\" y1=\"{y}\" x2=\"44\" y2=\"{y}\"/>\n");
    drawn + &format!("<text x=\"54\" y=\"{}\">dashed: without the host's gaps</text>\n", y + 4.0)
}
