//! Every run as it was measured: notes, hops, counts, figures and settings, folded.

use super::markup::escaped;
use super::names::{RunTitles, grouped, labels};
use super::page::{PageSection, class, list, table, verdict};
use super::phases::{median_text, merged, receiver_cpu};
use super::plain_table::PlainTable;
use super::quantity::{NONE, count, duration, duration_or_none, figure};
use super::sentence::{LEADING_HOPS, facts, footnote, hop_remark, hop_words, leading_hop, median_figure};
use tickpath_lab_result::{PERCENTILES, ResultFile, Run, is_own, median};

/// Returns a folded part per run.
pub(super) fn section(result: &ResultFile, titles: &RunTitles) -> Option<PageSection> {
    // A single run or two are the reader's subject, and stay open.
    let open = if result.runs.len() <= OPEN { " open=\"open\"" } else { "" };
    let runs: String = result.runs.iter().map(|run| folded_run(run, &titles.numbered(run), open)).collect();
    let note = footnote(result).map(|note| format!("<p class=\"note\">{}</p>\n", escaped(&note)));
    let note = note.filter(|_| !runs.is_empty()).unwrap_or_default();
    PageSection::new("Every run", "As measured: hops, counts, figures and settings.", &(runs + &note))
}

/// Returns a row for each kind of run: the repeats merged into a distribution, and the median of their rates.
pub(super) fn overview(result: &ResultFile) -> Option<PlainTable> {
    let hop_name = leading_hop(result).unwrap_or_default();
    let runs: Vec<&Run> = result.runs.iter().collect();
    let labelled = labels(&runs).into_iter().zip(runs);
    let row = |(label, members): (String, Vec<(String, &Run)>)| {
        let valid = members.iter().any(|(_, run)| run.valid);
        let counted: Vec<&Run> = members.iter().map(|(_, run)| *run).filter(|run| run.valid == valid).collect();
        let hop = merged(&counted.iter().filter_map(|run| run.hops.get(hop_name)).collect::<Vec<_>>());
        let rate = median(counted.iter().filter_map(|run| run.throughput_per_s).collect());
        let lost: u64 = members.iter().map(|(_, run)| run.counts.lost).sum();
        let words = |word: Option<String>| word.unwrap_or_else(|| NONE.to_owned());
        vec![
            if valid { label } else { format!("{label}, not valid") },
            words(hop.as_ref().map(median_text)),
            words(hop.as_ref().map(|hop| duration_or_none(hop.p99_ns))),
            words(receiver_cpu(counted.iter().copied())),
            words(rate.map(|rate| figure("throughput_per_s", rate))),
            if lost > 0 { count(lost) } else { NONE.to_owned() },
        ]
    };
    let rows = grouped(labelled, |(label, _)| label.clone()).into_iter().map(row).collect();
    PlainTable::new("every run", &["", &format!("{hop_name} 50%"), "99%", "CPU a message", "rate", "lost"], rows)
}

/// Max runs that are not folded.
const OPEN: usize = 2;

fn folded_run(run: &Run, title: &str, open: &str) -> String {
    let notes: String = run.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", escaped(note))).collect();
    format!(
        "<details{open}{}><summary>{}{}<small>{}</small></summary>\n{notes}{}{}</details>\n",
        class(run),
        escaped(title),
        verdict(run),
        escaped(&leading_figure(run)),
        hops(run),
        list(&facts(run))
    )
}

fn leading_figure(run: &Run) -> String {
    let own = run.hops.keys().map(String::as_str).filter(|name| is_own(name));
    let mut names = LEADING_HOPS.into_iter().chain(own);
    match names.find_map(|name| Some((name, median_figure(run.hops.get(name)?)?))) {
        Some((name, middle)) => format!("{} {}{}", hop_words(name), duration(middle.ns), middle.mark),
        None => run.throughput_per_s.map(|rate| figure("throughput_per_s", rate)).unwrap_or_default(),
    }
}

fn hops(run: &Run) -> String {
    if run.hops.is_empty() {
        return String::new();
    }
    let title = |name: &str, remark: Option<String>| {
        let remark = remark.map(|text| format!("<small>{}</small>", escaped(&text))).unwrap_or_default();
        format!("{}{remark}", escaped(name))
    };
    let (header, rows) = hop_rows(run, title, "<i>unstalled</i>");
    table("hops", &header, &rows)
}

/// Returns a header and the rows of the hops; below a hop's row, the row `unstalled` without the samples that gaps of
/// the host explain.
pub(super) fn hop_rows(
    run: &Run,
    title: impl Fn(&str, Option<String>) -> String,
    unstalled: &str,
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let cells = |name: String, samples: u64, percentiles: [Option<u64>; 6], max_ns: Option<u64>| {
        let times = percentiles.into_iter().chain([max_ns]).map(duration_or_none);
        [name, count(samples)].into_iter().chain(times).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for (name, hop) in run.hops_in_path_order() {
        rows.push(cells(title(name, hop_remark(hop)), hop.count, hop.percentiles(), hop.max_ns));
        let rest = hop.unstalled.as_ref();
        rows.extend(rest.map(|rest| cells(unstalled.to_owned(), rest.count, rest.percentiles(), rest.max_ns)));
    }
    let labels = PERCENTILES.map(|percentile| percentile.label);
    (["hop", "count"].into_iter().chain(labels).chain(["max"]).collect(), rows)
}
