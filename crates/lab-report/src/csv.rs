//! A row per run and hop, with the file's exact numbers, for a spreadsheet or a data frame.

use std::collections::BTreeSet;

use tickpath_lab_result::{Hop, PERCENTILES, ResultFile, Run};

/// Returns the result as CSV (RFC 4180, lines end in a line feed); a setting has a column `params.NAME`, null is empty.
/// `worst_1_ns` is the largest sample.
pub fn csv(result: &ResultFile) -> String {
    let params: BTreeSet<&str> = result.runs.iter().flat_map(|run| run.params.0.keys()).map(String::as_str).collect();
    let mut text = line(header(&params));
    for run in &result.runs {
        for (name, hop) in run.hops_in_path_order() {
            text += &line(row(result, run, &params, name, hop));
        }
    }
    text
}

fn header(params: &BTreeSet<&str>) -> Vec<String> {
    let percentiles = PERCENTILES.map(|percentile| percentile.key);
    let mut names = vec_of(&["workload", "target", "client", "repeat", "phase", "layout", "batch", "valid"]);
    names.extend(params.iter().map(|name| format!("params.{name}")));
    names.extend(vec_of(&["hop", "count", "mean_ns"]));
    names.extend(vec_of(&percentiles));
    names.extend(vec_of(&["max_ns", "worst_1_ns", "worst_2_ns", "worst_3_ns", "negative", "host_stall_share_p999"]));
    names.push("unstalled_count".to_owned());
    names.extend(percentiles.iter().chain(&["max_ns"]).map(|key| format!("unstalled_{key}")));
    names
}

fn row(result: &ResultFile, run: &Run, params: &BTreeSet<&str>, name: &str, hop: &Hop) -> Vec<String> {
    let mut cells = vec![
        result.workload.clone(),
        run.target.clone(),
        run.client.clone(),
        run.repeat.to_string(),
        run.phase.name().to_owned(),
        run.layout.clone().unwrap_or_default(),
        cell(run.batch_text()),
        run.valid.to_string(),
    ];
    cells.extend(params.iter().map(|param| run.params.text(param).unwrap_or_default()));
    cells.extend([name.to_owned(), hop.count.to_string(), cell(hop.mean_ns)]);
    cells.extend(hop.percentiles().into_iter().chain([hop.max_ns]).map(cell));
    cells.extend(hop.worst_ns.iter().rev().map(u64::to_string));
    cells.extend([hop.negative.to_string(), cell(hop.host_stall_share_p999)]);
    let rest = hop.unstalled.as_ref();
    cells.push(cell(rest.map(|rest| rest.count)));
    let percentiles = rest.map_or([None; 6], |rest| rest.percentiles());
    cells.extend(percentiles.into_iter().chain([rest.and_then(|rest| rest.max_ns)]).map(cell));
    cells
}

fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn vec_of(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn line(cells: Vec<String>) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    format!("{}\n", cells.join(","))
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
