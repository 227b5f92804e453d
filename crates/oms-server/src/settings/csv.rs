//! Tables as CSV: the first line names the columns, in any order; every bad line is reported.
//!
//! Empty lines and lines that begin with `#` are left out. Cells have no quotes: no value here needs a comma.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use tickpath_settings::{Mistakes, SettingsError, read_text};

/// Column of a table.
pub(super) struct SettingsColumn {
    pub(super) name: &'static str,
    /// Whether each line must have a value.
    pub(super) needed: bool,
}

/// Line of a table, read cell by cell. A cell with a mistake is reported, and then counts as empty.
pub(super) struct SettingsRow<'a> {
    line: usize,
    columns: &'a [&'a str],
    cells: Vec<&'a str>,
    mistakes: &'a mut Mistakes,
}

/// Reads a table: one value per line, if no line is bad.
pub(super) fn read<T>(
    file: &Path,
    columns: &[SettingsColumn],
    take: impl FnMut(&mut SettingsRow<'_>) -> T,
) -> Result<Vec<T>, SettingsError> {
    Ok(parse(&read_text(file)?, file, columns, take)?)
}

fn parse<T>(
    text: &str,
    file: &Path,
    columns: &[SettingsColumn],
    mut take: impl FnMut(&mut SettingsRow<'_>) -> T,
) -> Result<Vec<T>, Mistakes> {
    let mut mistakes = Mistakes::new(file);
    // Spreadsheets write a byte order mark before the first line.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_table = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = (1..).zip(text.lines()).filter(is_table);
    let Some((line, head)) = lines.next() else {
        mistakes.add(1, format!("the table is empty; its first line names the columns: {}", names(columns)));
        return Err(mistakes);
    };
    let head: Vec<&str> = head.split(',').map(str::trim).collect();
    if !check_header(&head, line, columns, &mut mistakes) {
        return Err(mistakes);
    }
    let mut values = Vec::new();
    for (line, text) in lines {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        if text.contains('"') {
            mistakes.add(line, "a cell is in quotes; write cells without quotes and without commas in them");
        } else if cells.len() != head.len() {
            let (cells, names) = (cells.len(), head.len());
            mistakes
                .add(line, format!("{cells} cells, but the first line names {names} columns; write one cell for each"));
        } else {
            let mut row = SettingsRow { line, columns: &head, cells, mistakes: &mut mistakes };
            columns.iter().filter(|column| column.needed).for_each(|column| row.needed(column.name));
            values.push(take(&mut row));
        }
    }
    mistakes.into_result(values)
}

/// Checks the names of the columns, and reports their mistakes.
fn check_header(head: &[&str], line: usize, columns: &[SettingsColumn], mistakes: &mut Mistakes) -> bool {
    let is_known = |name: &str| columns.iter().any(|column| column.name == name);
    for (place, name) in head.iter().enumerate() {
        if !is_known(name) {
            let known = names(columns);
            mistakes.add(line, format!("unknown column '{name}'; the columns, with commas between them: {known}"));
        } else if head[..place].contains(name) {
            mistakes.add(line, format!("column '{name}' comes twice; name it once"));
        }
    }
    let is_missing = |column: &&SettingsColumn| column.needed && !head.contains(&column.name);
    let missing: Vec<&str> = columns.iter().filter(is_missing).map(|column| column.name).collect();
    if !missing.is_empty() {
        let missing = missing.join(",");
        mistakes.add(line, format!("columns are missing; add them to this line, and a cell to each other: {missing}"));
    }
    mistakes.list.is_empty()
}

fn names(columns: &[SettingsColumn]) -> String {
    columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",")
}

impl SettingsRow<'_> {
    /// Returns the cell of a column; none if the cell is empty, or if the table has no such column.
    pub(super) fn cell(&self, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|name| *name == column)?;
        Some(self.cells[place]).filter(|cell| !cell.is_empty())
    }

    /// Parses a cell.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, column: &str) -> Option<T> {
        self.read(column, |cell| cell.parse().map_err(|reason: T::Err| reason.to_string()))
    }

    /// Reads a whole number of this range.
    pub(super) fn number<N: Copy + PartialOrd + Display + FromStr>(
        &mut self,
        column: &str,
        range: RangeInclusive<N>,
    ) -> Option<N> {
        let (low, high) = (*range.start(), *range.end());
        self.read(column, |cell| {
            let number = cell.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                format!("'{cell}' is no whole number of {low} to {high}; write one without signs and spaces")
            })
        })
    }

    /// Reads a cell by a function, and reports its error.
    pub(super) fn read<T>(&mut self, column: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let read = read(self.cell(column)?);
        read.map_err(|sentence| self.add_mistake(column, sentence)).ok()
    }

    /// Reports a mistake if an earlier line has the same value.
    pub(super) fn check_unique<T: Hash + Eq + Display>(
        &mut self,
        column: &str,
        value: Option<T>,
        seen: &mut HashMap<T, usize>,
    ) {
        let Some(value) = value else { return };
        match seen.get(&value) {
            Some(before) => self.add_mistake(column, format!("{value} is in line {before} already; write each once")),
            None => drop(seen.insert(value, self.line)),
        }
    }

    fn needed(&mut self, column: &str) {
        if self.cell(column).is_none() {
            self.add_mistake(column, "the cell is empty; this cannot be left out");
        }
    }

    /// Reports a mistake of a cell.
    pub(super) fn add_mistake(&mut self, column: &str, sentence: impl Display) {
        self.mistakes.add(self.line, format!("{column}: {sentence}"));
    }
}
