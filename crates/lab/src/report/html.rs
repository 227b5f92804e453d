//! One page that needs nothing beside itself: it opens offline, on a phone, on paper, and in the dark.
//!
//! The order is that of a reader's questions: what came out, where the time goes, how it spreads, what beats what, on
//! which machine, how to read it, and how to make it again.

use std::collections::BTreeMap;

use super::bars::{comparison_bars, stage_bars};
use super::curve::{COLOURS, Curve, HEIGHT, WIDTH, chart, curves};
use super::markup::escaped;
use super::path::path_drawing;
use super::quantity::{count, duration_or_none, figure, multiple};
use super::sentence::{Titles, facts, footnote, headlines, hop_remark, host, interval, samples_needed};
use crate::result::{Comparison, HOPS, Hop, PERCENTILES, ResultFile, Run};

/// The result as a page.
pub fn html(result: &ResultFile) -> String {
    let titles = Titles::of(result);
    let sections = [
        summary(result),
        paths(result, &titles),
        stages(result, &titles),
        tables(result, &titles),
        spreads(result, &titles),
        comparisons(result),
        machine(result),
        reading(),
        command(result),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{} – tickpath</title>\n<style>\n{}</style>\n\
         </head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
        escaped(&result.workload),
        include_str!("report.css"),
        sections.concat()
    )
}

fn summary(result: &ResultFile) -> String {
    let sentences: String = headlines(result).iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    format!(
        "<header>\n<p class=\"brand\">tickpath</p>\n<h1>{}</h1>\n<p class=\"when\">{}</p>\n\
         <ul class=\"headlines\">\n{sentences}</ul>\n</header>\n",
        escaped(&result.workload),
        escaped(&result.started_at)
    )
}

fn paths(result: &ResultFile, titles: &Titles) -> String {
    let drawn = titles.first_runs(result).into_iter().filter_map(|run| Some((run, path_drawing(run)?)));
    let figures = drawn.map(|(run, drawing)| framed(&titles.title(run), &drawing));
    section("The path", "The median between the stations, and the 99th percentile under it.", figures.collect())
}

fn stages(result: &ResultFile, titles: &Titles) -> String {
    let drawn = titles.first_runs(result).into_iter().filter_map(|run| Some((run, stage_bars(&run.stages)?)));
    let figures = drawn.map(|(run, drawing)| framed(&titles.title(run), &drawing));
    section("Where the time goes", "The median of each part of one message’s time.", figures.collect())
}

fn tables(result: &ResultFile, titles: &Titles) -> String {
    let note = footnote(result).map(|note| format!("<p class=\"note\">{}</p>\n", escaped(&note))).unwrap_or_default();
    let runs: String = result.runs.iter().map(|run| run_article(run, &titles.numbered(run))).collect();
    let body = if runs.is_empty() { runs } else { runs + &note };
    section("Runs", "Every hop of every run, as measured.", body)
}

fn spreads(result: &ResultFile, titles: &Titles) -> String {
    let charts = HOPS.iter().filter_map(|(name, sentence)| spread(result, titles, name, sentence));
    let lead = "The latency that a share of the messages stays under; further right, rarer. \
                Dashed: without the samples that overlap a gap of the host.";
    section("The spread", lead, charts.collect())
}

fn comparisons(result: &ResultFile) -> String {
    let Some(bars) = comparison_bars(&result.comparisons) else { return String::new() };
    let rows: String = result.comparisons.iter().map(comparison_row).collect();
    let table = format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>name</th><th>figure</th><th>a</th><th>b</th><th>ratio</th>\
         <th>interval</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    );
    let lead = "How many times the first takes the second; the thin line is the interval over the repeats.";
    section("Comparisons", lead, framed("a divided by b", &bars) + &table)
}

fn machine(result: &ResultFile) -> String {
    section("The machine", "Nothing on it can be faster than this floor.", list(&host(result)))
}

fn reading() -> String {
    let body = format!(
        "<ul>\n<li>Latency counts from the intended time of a message, so a stall shows in full.</li>\n\
         <li>Cold, idle (first after a pause) and steady are three results, never one.</li>\n\
         <li>“Unstalled” leaves out the samples during which the host ran something else. Limits bind the raw figures.\
         </li>\n<li>Percentiles are never averaged; {}.</li>\n\
         <li>Compare runs of this page with each other, not with figures of other machines.</li>\n</ul>\n",
        escaped(&samples_needed())
    );
    section("How to read it", "", body)
}

fn command(result: &ResultFile) -> String {
    section("The command", "", format!("<pre class=\"scroll\">{}</pre>\n", escaped(&result.command)))
}

/// A section with something in it; nothing at all if there is nothing to show.
fn section(title: &str, lead: &str, body: String) -> String {
    if body.is_empty() {
        return body;
    }
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>\n") };
    format!("<section>\n<h2>{title}</h2>\n{lead}{body}</section>\n")
}

fn framed(caption: &str, drawing: &str) -> String {
    let caption = escaped(caption);
    format!("<figure>\n<figcaption>{caption}</figcaption>\n<div class=\"scroll\">{drawing}</div>\n</figure>\n")
}

fn run_article(run: &Run, title: &str) -> String {
    let verdict = if run.valid { "" } else { " <strong class=\"invalid\">not valid</strong>" };
    let notes: String = run.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", escaped(note))).collect();
    let (table, facts) = (hop_table(run), list(&facts(run)));
    format!("<article>\n<h3>{}{verdict}</h3>\n{notes}{table}{facts}</article>\n", escaped(title))
}

fn hop_table(run: &Run) -> String {
    if run.hops.is_empty() {
        return String::new();
    }
    let labels: String = PERCENTILES.iter().map(|percentile| format!("<th>{}</th>", percentile.label)).collect();
    let rows: String = run.hops_in_path_order().into_iter().map(|(name, hop)| hop_rows(name, hop)).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>hop</th><th>count</th>{labels}<th>max</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn hop_rows(name: &str, hop: &Hop) -> String {
    let remark = hop_remark(hop).map(|text| format!("<br/><small>{}</small>", escaped(&text))).unwrap_or_default();
    let mut rows = format!("<tr><th>{}{remark}</th>", escaped(name));
    rows += &hop_cells(hop.count, hop.percentiles(), hop.max_ns);
    if let Some(rest) = &hop.unstalled {
        rows += "<tr class=\"unstalled\"><th>unstalled</th>";
        rows += &hop_cells(rest.count, rest.percentiles(), rest.max_ns);
    }
    rows
}

fn hop_cells(samples: u64, percentiles: [Option<u64>; 6], max_ns: Option<u64>) -> String {
    let times = percentiles.into_iter().chain([max_ns]);
    let times: String = times.map(|ns| format!("<td>{}</td>", duration_or_none(ns))).collect();
    format!("<td>{}</td>{times}</tr>\n", count(samples))
}

/// The curves of one hop over all runs that have it; repeats of the same thing share a colour.
fn spread(result: &ResultFile, titles: &Titles, name: &str, sentence: &str) -> Option<String> {
    let mut colours: BTreeMap<String, usize> = BTreeMap::new();
    let mut legend = String::new();
    let mut lines: Vec<Curve> = Vec::new();
    for run in &result.runs {
        let Some(hop) = run.hops.get(name) else { continue };
        let (title, next) = (titles.title(run), colours.len());
        let colour = *colours.entry(title.clone()).or_insert(next);
        if colour == next {
            legend += &format!("<li class=\"k{}\">{}</li>\n", colour % COLOURS, escaped(&title));
        }
        lines.extend(curves(hop, colour));
    }
    let drawing = format!(
        "<svg class=\"curves\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}\">\n{}</svg>\n",
        chart(&lines)
    );
    let figure = framed(&format!("{name}. {sentence}"), &drawing);
    (!lines.is_empty()).then(|| format!("{figure}<ul class=\"legend\">\n{legend}</ul>\n"))
}

fn comparison_row(one: &Comparison) -> String {
    let value = |number: Option<f64>| figure(&one.figure, number.unwrap_or(f64::NAN));
    format!(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(&one.name),
        escaped(&one.figure),
        value(one.a),
        value(one.b),
        multiple(one.ratio.unwrap_or(f64::NAN)),
        interval(one).unwrap_or_default()
    )
}

fn list(facts: &[(String, String)]) -> String {
    let item = |(label, value): &(String, String)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), escaped(value));
    let items: String = facts.iter().map(item).collect();
    if items.is_empty() { items } else { format!("<dl>\n{items}</dl>\n") }
}
