//! One page that needs nothing beside itself: it opens offline, on a phone, on paper, and in the dark.
//!
//! The order is that of a reader's questions: what came out, on which machine, where the time goes, what each workload
//! says, what beats what, how it spreads, how it stands to what was published, and every run. A section that the file
//! has nothing for is not there.

use super::markup::escaped;
use super::names::Titles;
use super::page::{Section, list};
use super::sentence::{headlines, host, samples_needed};
use super::{bars, clients, depth, over_time, phases, published, runs, spread, waterfall};
use tickpath_result::ResultFile;

/// The result as a page.
pub fn html(result: &ResultFile) -> String {
    let titles = Titles::of(result);
    let sections = [
        waterfall::section(result, &titles),
        phases::section(result),
        over_time::section(result),
        depth::section(result),
        clients::section(result),
        bars::section(result),
        spread::section(result),
        published::section(result),
        runs::section(result, &titles),
        reading(),
        command(result),
    ];
    let sections: Vec<Section> = sections.into_iter().flatten().collect();
    let body: String = sections.iter().map(Section::html).collect();
    document(&result.workload, &(header(result, &sections) + &body))
}

/// A page of its own, with its style.
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

/// What came out, and the machine that nothing can be faster than.
fn header(result: &ResultFile, sections: &[Section]) -> String {
    let sentences: String = headlines(result).iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    let link = |section: &Section| format!("<a href=\"#{}\">{}</a>\n", section.place(), section.title);
    let links: String = sections.iter().map(link).collect();
    format!(
        "<header>\n<p class=\"brand\">tickpath</p>\n<h1>{}</h1>\n<div class=\"top\">\n\
         <ul class=\"headlines\">\n{sentences}</ul>\n<section class=\"machine\">\n<h2>The machine</h2>\n{}</section>\n\
         </div>\n<nav aria-label=\"Sections\">\n{links}</nav>\n</header>\n",
        escaped(&result.workload),
        list(&host(result))
    )
}

fn reading() -> Option<Section> {
    let body = format!(
        "<ul class=\"reading\">\n\
         <li>Latency counts from the intended time of a message, so a stall shows in full.</li>\n\
         <li>Cold, idle (first after a pause) and steady are three results, never one.</li>\n\
         <li>“Unstalled” leaves out the samples during which the host ran something else. Limits bind the raw figures.\
         </li>\n<li>Percentiles are never averaged; {}. Where there are fewer stands –, and * marks the nearest rank.\
         </li>\n<li>Compare runs of this page with each other, not with figures of other machines.</li>\n</ul>\n",
        escaped(&samples_needed())
    );
    Section::new("How to read it", "", &body)
}

fn command(result: &ResultFile) -> Option<Section> {
    Section::new("The command", "", &format!("<pre class=\"scroll\">{}</pre>\n", escaped(&result.command)))
}
