//! Design notes: each has its four headings, stands in the list of all notes and is named by a header in the code; and
//! headers stay short, because the reasoning stands in a note.

use std::collections::BTreeSet;

use super::{check, files, read};

const FOLDER: &str = "docs/design/";
const HEADINGS: [&str; 4] = ["## Context", "## Decision", "## Consequences", "## Measurement"];

/// Max lines of a note: a page.
const MAX_NOTE_LINES: usize = 80;

/// Max lines of a module's header, and of a crate's.
const MAX_HEADER_LINES: usize = 30;
const MAX_CRATE_HEADER_LINES: usize = 90;

#[test]
fn every_design_note_is_a_page_that_code_names() {
    let files = files();
    let named: BTreeSet<String> =
        files.iter().filter(|path| path.ends_with(".rs")).flat_map(|path| notes_named_by(&read(path))).collect();
    let list = read(&format!("{FOLDER}README.md"));
    let notes: BTreeSet<&str> = files
        .iter()
        .filter_map(|path| path.strip_prefix(FOLDER)?.strip_suffix(".md"))
        .filter(|name| *name != "README")
        .collect();
    let mut wrong = Vec::new();
    for name in &notes {
        let text = read(&format!("{FOLDER}{name}.md"));
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        if headings != HEADINGS {
            wrong.push(format!("{FOLDER}{name}.md has the headings {headings:?}; give it {HEADINGS:?}"));
        }
        if text.lines().count() > MAX_NOTE_LINES {
            wrong.push(format!("{FOLDER}{name}.md is longer than a page; {MAX_NOTE_LINES} lines is the limit"));
        }
        if !list.contains(&format!("]({name}.md)")) {
            wrong.push(format!("{FOLDER}README.md does not list {name}.md"));
        }
        if !named.contains(*name) {
            wrong.push(format!("no header names {FOLDER}{name}.md; name it where the code follows it"));
        }
    }
    let missing = named.iter().filter(|name| !notes.contains(name.as_str()));
    wrong.extend(missing.map(|name| format!("a header names {FOLDER}{name}.md, which does not exist")));
    check(wrong);
}

#[test]
fn headers_stay_short() {
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| path.ends_with(".rs")) {
        let is_crate = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        let limit = if is_crate { MAX_CRATE_HEADER_LINES } else { MAX_HEADER_LINES };
        let lines = header(&read(path)).count();
        if lines > limit {
            wrong.push(format!("{path} has a header of {lines} lines; {limit} is the limit, a design note has room"));
        }
    }
    check(wrong);
}

/// Returns the lines of a file's header.
fn header(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| line.starts_with("//!"))
}

/// Returns the notes that a file's header names.
fn notes_named_by(text: &str) -> Vec<String> {
    let names = header(text).flat_map(|line| line.split(FOLDER).skip(1));
    names.filter_map(|rest| Some(rest.split_once(".md")?.0.to_owned())).collect()
}
