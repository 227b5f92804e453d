//! Tables for an issue or a page.

use super::markup::plain;
use super::names::RunTitles;
use super::overview::overviews;
use super::quantity::{figure, multiple};
use super::runs::hop_rows;
use super::sentence::{facts, footnote, headlines, host, interval};
use tickpath_lab_result::{Comparison, ResultFile, Run};

/// Returns the result as Markdown: headlines, summaries of many runs, a table per run, comparisons, the machine and the
/// command.
pub fn markdown(result: &ResultFile) -> String {
    let titles = RunTitles::of(result);
    let mut text = format!("# {}\n\n", safe(result.title()));
    for sentence in headlines(result) {
        text += &format!("- {}\n", safe(&sentence));
    }
    for overview in overviews(result) {
        let header: Vec<&str> = overview.header.iter().map(String::as_str).collect();
        text += &format!("\n## {}\n\n{}", overview.title, table(&header, &overview.rows));
    }
    for run in &result.runs {
        text += &format!("\n## {}\n\n{}", safe(&titles.numbered(run)), run_section(run));
    }
    text += &comparisons(result);
    if let Some(note) = footnote(result) {
        text += &format!("\n{}\n", safe(&note));
    }
    let machine: Vec<Vec<String>> = host(result).into_iter().map(|(label, value)| vec![label, value]).collect();
    text += &format!("\n## Host\n\n{}", table(&["", ""], &machine));
    text + &format!("\n## Command\n\n    {}\n", plain(&result.command))
}

fn run_section(run: &Run) -> String {
    let mut text = String::new();
    if !run.hops.is_empty() {
        let title = |name: &str, remark: Option<String>| {
            remark.map_or_else(|| name.to_owned(), |remark| format!("{name} ({remark})"))
        };
        let (header, rows) = hop_rows(run, title, "… unstalled");
        text += &table(&header, &rows);
        text += "\n";
    }
    for (label, value) in facts(run) {
        text += &format!("- {}: {}\n", safe(&label), safe(&value));
    }
    if !run.valid {
        text += "- **not valid**\n";
    }
    for note in &run.notes {
        text += &format!("- {}\n", safe(note));
    }
    text
}

fn comparisons(result: &ResultFile) -> String {
    if result.comparisons.is_empty() {
        return String::new();
    }
    let value = |name: &str, number: Option<f64>| figure(name, number.unwrap_or(f64::NAN));
    let row = |one: &Comparison| {
        vec![
            one.name.clone(),
            one.figure.clone(),
            value(&one.figure, one.a),
            value(&one.figure, one.b),
            multiple(one.ratio.unwrap_or(f64::NAN)),
            interval(one).unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = result.comparisons.iter().map(row).collect();
    format!("\n## Comparisons\n\n{}", table(&["name", "figure", "a", "b", "ratio", "interval"], &rows))
}

/// Returns a Markdown table: the first column is left-aligned, numbers are right-aligned.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let marks: String = (0..header.len()).map(|column| if column == 0 { "---|" } else { "--:|" }).collect();
    let mut text = format!("| {} |\n|{marks}\n", header.join(" | "));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| safe(cell)).collect();
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// Escapes text, so that it forms no markup, no cell border and no link.
pub fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in plain(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '*' | '[' | ']' | '|' => safe.extend(['\\', character]),
            _ => safe.push(character),
        }
    }
    safe
}
