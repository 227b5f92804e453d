//! Summaries of many runs in tables, for a terminal and for Markdown, which have no charts.

use super::plain_table::PlainTable;
use super::{clients, depth, phases};
use tickpath_lab_result::ResultFile;

/// Returns the tables for runs that mean little individually.
pub(super) fn overviews(result: &ResultFile) -> Vec<PlainTable> {
    let others = [depth::overview(result), clients::overview(result)];
    phases::overview(result).into_iter().chain(others.into_iter().flatten()).collect()
}
