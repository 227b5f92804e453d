//! Percentile curves as a self-contained picture: a line per run and hop, and the legend.

use std::collections::BTreeMap;

use super::chart::{COLOURS, WIDTH};
use super::curve::{self, CurvePoints, HEIGHT};
use super::markup::escaped;
use super::names::RunTitles;
use tickpath_lab_result::ResultFile;

/// The colours and sizes of the picture; `report.css` has the same for the page.
const STYLE: &str = "
text { font: 12px system-ui, sans-serif; fill: #59616d }
.along { text-anchor: middle } .up, .end { text-anchor: end } .empty { text-anchor: middle }
.grid { stroke: #dfe2e7 }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .dashed { stroke-dasharray: 5 4; stroke-width: 1 }
.c0 { stroke: #0b5cad } .c1 { stroke: #b2450e } .c2 { stroke: #0a7350 } .c3 { stroke: #9a3b78 }
.c4 { stroke: #5f50ad } .c5 { stroke: #7d5b00 } .c6 { stroke: #59616d } .c7 { stroke: #16191e }
";

const LEGEND_ROW: f64 = 20.0;

/// Returns the percentile curves of every run and hop; repeats of the same setting share a colour.
pub fn svg(result: &ResultFile) -> String {
    let titles = RunTitles::of(result);
    let mut colours: BTreeMap<String, usize> = BTreeMap::new();
    let mut legend = Vec::new();
    let mut lines: Vec<(usize, &str, CurvePoints)> = Vec::new();
    for run in &result.runs {
        for (name, hop) in run.hops_in_path_order() {
            let label = format!("{name} · {}", titles.title(run));
            let next = colours.len();
            let colour = *colours.entry(label.clone()).or_insert_with(|| {
                legend.push(label);
                next
            });
            lines.push((colour, "", curve::raw(hop)));
            lines.extend(curve::unstalled(hop).map(|points| (colour, " dashed", points)));
        }
    }
    let height = HEIGHT + LEGEND_ROW * (legend.len() + 1) as f64 + 16.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\">\n<style>{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         {}{}</svg>\n",
        draw_curves(&lines),
        drawn_legend(&legend)
    )
}

fn draw_curves(lines: &[(usize, &str, CurvePoints)]) -> String {
    let Some(frame) = curve::frame(lines.iter().map(|(_, _, points)| points), WIDTH - 36.0) else {
        let (x, y) = (WIDTH / 2.0, HEIGHT / 2.0);
        return format!("<text class=\"empty\" x=\"{x}\" y=\"{y}\">too few samples for a curve</text>\n");
    };
    let line = |(colour, dashed, points): &(usize, &str, CurvePoints)| {
        frame.line(points, &format!("c{}{dashed}", colour % COLOURS), "")
    };
    curve::grid(&frame) + &lines.iter().map(line).collect::<String>()
}

fn drawn_legend(labels: &[String]) -> String {
    let mut drawn = String::new();
    for (row, label) in labels.iter().enumerate() {
        let (y, colour) = (HEIGHT + LEGEND_ROW * row as f64 + 12.0, row % COLOURS);
        drawn += &format!("<line class=\"line c{colour}\" x1=\"16\" y1=\"{y}\" x2=\"44\" y2=\"{y}\"/>\n");
        drawn += &format!("<text x=\"54\" y=\"{}\">{}</text>\n", y + 4.0, escaped(label));
    }
    let y = HEIGHT + LEGEND_ROW * labels.len() as f64 + 12.0;
    drawn += &format!("<line class=\"line dashed c6\" x1=\"16\" y1=\"{y}\" x2=\"44\" y2=\"{y}\"/>\n");
    drawn + &format!("<text x=\"54\" y=\"{}\">dashed: without the host's gaps</text>\n", y + 4.0)
}
