//! A single self-contained page: it opens offline, on a phone, on paper, and in the dark.
//!
//! The order follows a reader's questions: the headlines, the effect of each change, where the time goes, runs of a
//! kind together, comparisons, distributions, published figures beside ours, every run, and the machine. A few
//! sentences precede the first chart, the others are folded. A section without data is omitted.

use super::markup::escaped;
use super::names::RunTitles;
use super::page::{PageSection, list};
use super::sentence::{headlines, host, invalid, samples_needed};
use super::{bars, changes, clients, depth, load, over_time, phases, published, runs, spread, waterfall};
use tickpath_lab_result::ResultFile;

/// Returns the result as a page.
pub fn html(result: &ResultFile) -> String {
    let titles = RunTitles::of(result);
    let sections = [
        changes::section(result),
        waterfall::section(result, &titles),
        phases::section(result),
        load::section(result),
        over_time::section(result),
        depth::section(result),
        clients::section(result),
        bars::section(result),
        spread::section(result),
        published::section(result),
        runs::section(result, &titles),
        PageSection::new("The machine", "", &list(&host(result))),
        reading(),
        command(result),
    ];
    let sections: Vec<PageSection> = sections.into_iter().flatten().collect();
    let body: String = sections.iter().map(PageSection::html).collect();
    document(result.title(), &(header(result, &sections) + &body))
}

/// Returns a standalone document, with its style.
pub(super) fn document(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{} – tickpath</title>\n<style>\n{}</style>\n\
         </head>\n<body>\n<main>\n{main}</main>\n</body>\n</html>\n",
        escaped(title),
        include_str!("report.css"),
    )
}

/// Max sentences before the first chart.
const MAX_LEAD_SENTENCES: usize = 4;

/// Returns the headlines and the table of contents.
fn header(result: &ResultFile, sections: &[PageSection]) -> String {
    let sentences = headlines(result);
    let (first, others) =
        sentences.split_at(if sentences.len() > MAX_LEAD_SENTENCES + 1 { MAX_LEAD_SENTENCES } else { sentences.len() });
    let alarm = invalid(result);
    let class = |line: &String| if alarm.as_ref() == Some(line) { " class=\"alarm\"" } else { "" };
    let items = |lines: &[String]| {
        let items: String = lines.iter().map(|line| format!("<li{}>{}</li>\n", class(line), escaped(line))).collect();
        format!("<ul class=\"headlines\">\n{items}</ul>\n")
    };
    let more = match others.len() {
        0 => String::new(),
        more => format!("<details><summary>{more} more</summary>\n{}</details>\n", items(others)),
    };
    let link = |section: &PageSection| format!("<a href=\"#{}\">{}</a>\n", section.anchor(), section.title);
    let links: String = sections.iter().map(link).collect();
    format!(
        "<header>\n<p class=\"brand\">tickpath</p>\n<h1>{}</h1>\n{}{more}<nav aria-label=\"Sections\">\n{links}</nav>\n\
         </header>\n",
        escaped(result.title()),
        items(first)
    )
}

fn reading() -> Option<PageSection> {
    let body = format!(
        "<ul class=\"reading\">\n\
         <li>Latency counts from the intended time of a message, so a stall shows in full.</li>\n\
         <li>Cold, idle (first after a pause) and steady are three results, never one.</li>\n\
         <li>“Unstalled” leaves out the samples that gaps of the host explain: they take nine tenths of the sample or more,\n\
         and the kernel's account shows an interrupt or the hypervisor. Limits bind the raw figures.\
         </li>\n<li>Percentiles are never averaged; {}. Where there are fewer stands –, and * marks the nearest rank.\
         </li>\n<li>Compare runs of this page with each other, not with figures of other machines.</li>\n</ul>\n",
        escaped(&samples_needed())
    );
    PageSection::new("How to read it", "", &body)
}

fn command(result: &ResultFile) -> Option<PageSection> {
    PageSection::new("The command", "", &format!("<pre class=\"scroll\">{}</pre>\n", escaped(&result.command)))
}
