//! Building blocks of a page's sections. Captions and facts are escaped here; cells and drawings are already markup.

use super::markup::escaped;
use super::quantity::NONE;
use tickpath_lab_result::Run;

/// A section of a page.
pub(super) struct PageSection {
    pub title: &'static str,
    body: String,
}

impl PageSection {
    /// Returns `None` without a body; `lead` explains how to read the section.
    pub(super) fn new(title: &'static str, lead: &str, body: &str) -> Option<Self> {
        let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>\n") };
        (!body.is_empty()).then(|| Self { title, body: format!("{lead}{body}") })
    }

    pub(super) fn anchor(&self) -> String {
        self.title.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
    }

    pub(super) fn html(&self) -> String {
        format!("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", self.anchor(), self.title, self.body)
    }
}

/// Returns a table in a box of its own, which scrolls on a narrow page. The first cell of a row is its name; columns
/// without a value are omitted.
pub(super) fn table(class: &str, header: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    let says = |column: &usize| *column == 0 || rows.iter().any(|row| row[*column] != NONE);
    let columns: Vec<usize> = (0..header.len()).filter(says).collect();
    let head: String = columns.iter().map(|column| format!("<th>{}</th>", header[*column].as_ref())).collect();
    let cell = |(column, text): (&usize, &String)| match column {
        0 => format!("<th>{text}</th>"),
        _ => format!("<td>{text}</td>"),
    };
    let line = |row: &Vec<String>| {
        let cells: String = columns.iter().map(|column| cell((column, &row[*column]))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.iter().map(line).collect();
    format!(
        "<div class=\"scroll\"><table class=\"{class}\">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n\
         </table></div>\n"
    )
}

/// Returns a drawing and the table of the same figures, side by side if there is room.
pub(super) fn figure(caption: &str, remark: &str, drawing: &str, table: &str) -> String {
    let remark = if remark.is_empty() { String::new() } else { format!(" <span>{}</span>", escaped(remark)) };
    format!(
        "<figure>\n<figcaption>{}{remark}</figcaption>\n<div class=\"pair\"><div class=\"drawing\">{drawing}</div>\
         {table}</div>\n</figure>\n",
        escaped(caption)
    )
}

/// Returns the first `open` figures, with the rest folded if it is more than one figure.
pub(super) fn folded(figures: &[String], open: usize, what: &str) -> String {
    if figures.len() <= open + 1 {
        return figures.concat();
    }
    let (first, rest) = figures.split_at(open);
    format!("{}<details><summary>{} more {what}</summary>\n{}</details>\n", first.concat(), rest.len(), rest.concat())
}

/// Returns facts, each with its name.
pub(super) fn list(facts: &[(String, String)]) -> String {
    let item = |(name, value): &(String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value))
    };
    let items: String = facts.iter().map(item).collect();
    if items.is_empty() { items } else { format!("<dl>\n{items}</dl>\n") }
}

/// Returns the CSS class of an invalid run: its bars are hollow, and its figures are struck out.
pub(super) fn class(run: &Run) -> &'static str {
    if run.valid { "" } else { " class=\"broken\"" }
}

/// Returns the remark beside an invalid run.
pub(super) fn verdict(run: &Run) -> &'static str {
    if run.valid { "" } else { " <strong class=\"invalid\">not valid</strong>" }
}
