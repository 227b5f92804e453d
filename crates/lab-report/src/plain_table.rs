//! A table without a chart.

/// A table of plain text; the first column names the row.
pub(super) struct PlainTable {
    pub title: &'static str,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl PlainTable {
    /// Returns `None` without a row.
    pub(super) fn new(title: &'static str, header: &[&str], rows: Vec<Vec<String>>) -> Option<Self> {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        (!rows.is_empty()).then_some(Self { title, header, rows })
    }
}
