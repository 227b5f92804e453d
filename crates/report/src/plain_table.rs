//! A table without a chart.

/// A table of plain text; the first column names the row.
pub(super) struct PlainTable {
    pub title: &'static str,
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}
