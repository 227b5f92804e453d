//! What was published, and what this file measured.

use super::markup::escaped;
use super::page::{Section, table};
use super::quantity::{NONE, multiple};
use crate::published::{Row, rows};
use tickpath_result::ResultFile;

/// A row for each published figure that a run of the file repeats; none if no run does.
pub(super) fn section(result: &ResultFile) -> Option<Section> {
    let rows: Vec<Vec<String>> = rows(result).iter().map(cells).collect();
    if rows.is_empty() {
        return None;
    }
    let header = ["experiment", "what", "published", "here", "ratio", "remark"];
    let lead = "What was published, on its machine, and what this file measured on this one. Ratios across machines \
                tell what follows what, not who is faster.";
    Section::new("Published and ours", lead, &table("published", &header, &rows))
}

fn cells(row: &Row) -> Vec<String> {
    let under = |text: &str, small: &str| {
        let small = if small.is_empty() { String::new() } else { format!("<small>{}</small>", escaped(small)) };
        format!("{}{small}", escaped(text))
    };
    vec![
        escaped(row.experiment),
        under(&row.what, &row.command),
        under(&row.published, row.machine),
        escaped(&row.ours),
        row.ratio.map_or_else(|| NONE.to_owned(), multiple),
        escaped(row.remark),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_text() {
        let row = Row {
            experiment: "ping-10k",
            what: "<b>".to_owned(),
            published: "1 & 2".to_owned(),
            machine: "a laptop",
            ours: "3 s".to_owned(),
            ratio: None,
            command: "tickpath bench pipeline".to_owned(),
            remark: "",
        };
        let cells = cells(&row);
        assert_eq!(cells[1], "&lt;b&gt;<small>tickpath bench pipeline</small>");
        assert_eq!(cells[2], "1 &amp; 2<small>a laptop</small>");
        assert_eq!(cells[4], NONE);
    }
}
