//! Every run as it was measured: notes, hops, counts, figures and settings, folded.

use super::markup::escaped;
use super::names::Titles;
use super::page::{Section, list, table, verdict};
use super::quantity::{count, duration, duration_or_none, figure};
use super::sentence::{LEADING_HOPS, facts, footnote, hop_remark, middle};
use tickpath_result::{Hop, PERCENTILES, ResultFile, Run};

/// A fold a run.
pub(super) fn section(result: &ResultFile, titles: &Titles) -> Option<Section> {
    // One or two are what the reader came for.
    let open = if result.runs.len() <= OPEN { " open=\"open\"" } else { "" };
    let runs: String = result.runs.iter().map(|run| fold(run, &titles.numbered(run), open)).collect();
    let note = footnote(result).map(|note| format!("<p class=\"note\">{}</p>\n", escaped(&note)));
    let note = note.filter(|_| !runs.is_empty()).unwrap_or_default();
    Section::new("Every run", "As measured: hops, counts, figures and settings.", &(runs + &note))
}

/// The most runs that are not folded.
const OPEN: usize = 2;

fn fold(run: &Run, title: &str, open: &str) -> String {
    let notes: String = run.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", escaped(note))).collect();
    format!(
        "<details{open}><summary>{}{}<small>{}</small></summary>\n{notes}{}{}</details>\n",
        escaped(title),
        verdict(run),
        escaped(&brief(run)),
        hops(run),
        list(&facts(run))
    )
}

/// The one figure of a run that is asked for first.
fn brief(run: &Run) -> String {
    let told = |name: &&'static str| Some((*name, middle(run.hops.get(*name)?)?));
    match LEADING_HOPS.iter().find_map(told) {
        Some((name, middle)) => format!("{} {}{}", name.replace('_', " "), duration(middle.ns), middle.mark),
        None => run.throughput_per_s.map(|rate| figure("throughput_per_s", rate)).unwrap_or_default(),
    }
}

fn hops(run: &Run) -> String {
    if run.hops.is_empty() {
        return String::new();
    }
    let labels = PERCENTILES.map(|percentile| percentile.label);
    let header: Vec<&str> = ["hop", "count"].into_iter().chain(labels).chain(["max"]).collect();
    let rows: Vec<Vec<String>> = run.hops_in_path_order().into_iter().flat_map(|(name, hop)| rows(name, hop)).collect();
    table("hops", &header, &rows)
}

/// A hop, and under it the same without the samples that gaps of the host explain.
fn rows(name: &str, hop: &Hop) -> Vec<Vec<String>> {
    let remark = hop_remark(hop).map(|text| format!("<small>{}</small>", escaped(&text))).unwrap_or_default();
    let mut rows = vec![cells(format!("{}{remark}", escaped(name)), hop.count, hop.percentiles(), hop.max_ns)];
    if let Some(rest) = &hop.unstalled {
        rows.push(cells("<i>unstalled</i>".to_owned(), rest.count, rest.percentiles(), rest.max_ns));
    }
    rows
}

fn cells(name: String, samples: u64, percentiles: [Option<u64>; 6], max_ns: Option<u64>) -> Vec<String> {
    let times = percentiles.into_iter().chain([max_ns]).map(duration_or_none);
    [name, count(samples)].into_iter().chain(times).collect()
}
