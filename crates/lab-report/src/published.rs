//! Published figures, and this file's measurements of the same.

use super::markup::escaped;
use super::page::{PageSection, table};
use super::quantity::{NONE, count, duration, multiple};
use tickpath_lab_result::{PublishedFigure, PublishedUnit, ResultFile};

/// Returns a row for each published figure that a run of the file reproduces; `None` if there is none.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let rows: Vec<Vec<String>> = result.published.iter().map(cells).collect();
    if rows.is_empty() {
        return None;
    }
    let header = ["experiment", "what", "published", "here", "ratio", "remark"];
    let lead = "What was published, on its machine, and what this file measured on this one. Ratios across machines \
                tell what follows what, not who is faster.";
    PageSection::new("Published and ours", lead, &table("published", &header, &rows))
}

fn cells(row: &PublishedFigure) -> Vec<String> {
    let under = |text: &str, small: &str| {
        let small = if small.is_empty() { String::new() } else { format!("<small>{}</small>", escaped(small)) };
        format!("{}{small}", escaped(text))
    };
    let figure = |value: f64| match row.unit {
        PublishedUnit::Ns => duration(value),
        PublishedUnit::PerS => format!("{}/s", count(value.round() as u64)),
        PublishedUnit::Times => format!("{value:.1} times"),
    };
    let ratio = row.ours / row.published;
    vec![
        escaped(&row.experiment),
        under(&row.what, &row.command),
        under(&figure(row.published), &row.machine),
        escaped(&figure(row.ours)),
        if ratio.is_finite() { multiple(ratio) } else { NONE.to_owned() },
        escaped(row.remark.as_deref().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_text() {
        let row = PublishedFigure {
            experiment: "ping-10k".to_owned(),
            what: "<b>".to_owned(),
            unit: PublishedUnit::Times,
            published: 0.0,
            machine: "a & b".to_owned(),
            ours: 3.0,
            command: "tickpath bench pipeline".to_owned(),
            remark: None,
        };
        let cells = cells(&row);
        assert_eq!(cells[1], "&lt;b&gt;<small>tickpath bench pipeline</small>");
        assert_eq!(cells[2], "0.0 times<small>a &amp; b</small>");
        assert_eq!(cells[4], NONE);
    }
}
