//! What many runs came to, in one table each: for a terminal and for Markdown, which have no charts.

use super::{clients, depth, phases};
use tickpath_result::ResultFile;

/// A table of plain text; the first column names the row.
pub(super) struct Overview {
    pub title: &'static str,
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

/// The tables of the workloads whose runs say little one by one.
pub(super) fn overviews(result: &ResultFile) -> Vec<Overview> {
    [phases::overview(result), depth::overview(result), clients::overview(result)].into_iter().flatten().collect()
}
