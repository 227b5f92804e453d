//! Tables as CSV: the first line names the columns, in any order; every bad line is reported.
//!
//! Empty lines and lines that begin with `#` are left out. A cell that holds a comma stands in quotation marks.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use csv::StringRecord;
use tickpath_settings::{Mistakes, SettingsError, TORN_CELL, read_text, table_cells, table_lines};

/// Names of a table's columns; a question mark follows those that may be missing or empty.
#[derive(Clone, Copy)]
pub(super) struct TableColumns(pub &'static str);

impl TableColumns {
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        self.0.split_whitespace().map(|name| name.trim_end_matches('?'))
    }

    /// Returns the columns that must have a value in each line.
    fn needed(self) -> impl Iterator<Item = &'static str> {
        self.0.split_whitespace().filter(|name| !name.ends_with('?'))
    }
}

/// Line of a table, read cell by cell. A cell with a mistake is reported, and then counts as empty.
pub(super) struct SettingsRow<'a> {
    line: usize,
    columns: &'a StringRecord,
    cells: &'a StringRecord,
    mistakes: &'a mut Mistakes,
}

/// Reads a table: one value per line, if no line is bad.
pub(super) fn read<T>(
    file: &Path,
    columns: TableColumns,
    mut take: impl FnMut(&mut SettingsRow<'_>) -> T,
) -> Result<Vec<T>, SettingsError> {
    let text = read_text(file)?;
    let mut mistakes = Mistakes::new(file);
    let mut rows = table_lines(&text).map(|(line, text)| (line, table_cells(text)));
    let head = match rows.next() {
        Some((line, Some(head))) => check_header(&head, line, columns, &mut mistakes).then_some(head),
        Some((line, None)) => {
            mistakes.add(line, TORN_CELL);
            None
        }
        None => {
            mistakes.add(1, format!("the table is empty; its first line names the columns: {}", names(columns)));
            None
        }
    };
    let Some(head) = head else { return Err(mistakes.into()) };
    let mut values = Vec::new();
    for (line, cells) in rows {
        match cells {
            None => mistakes.add(line, TORN_CELL),
            Some(cells) if cells.len() != head.len() => {
                let (cells, names) = (cells.len(), head.len());
                let remedy = "write one cell for each";
                mistakes.add(line, format!("{cells} cells, but the first line names {names} columns; {remedy}"));
            }
            Some(cells) => {
                let mut row = SettingsRow { line, columns: &head, cells: &cells, mistakes: &mut mistakes };
                columns.needed().for_each(|column| row.needed(column));
                values.push(take(&mut row));
            }
        }
    }
    Ok(mistakes.into_result(values)?)
}

fn check_header(head: &StringRecord, line: usize, columns: TableColumns, mistakes: &mut Mistakes) -> bool {
    for (index, name) in head.iter().enumerate() {
        if !columns.names().any(|column| column == name) {
            let known = names(columns);
            mistakes.add(line, format!("unknown column '{name}'; the columns, with commas between them: {known}"));
        } else if head.iter().take(index).any(|before| before == name) {
            mistakes.add(line, format!("column '{name}' is there twice; name it once"));
        }
    }
    let missing: Vec<&str> = columns.needed().filter(|column| !head.iter().any(|name| name == *column)).collect();
    if !missing.is_empty() {
        let missing = missing.join(",");
        mistakes.add(line, format!("columns are missing; add them to this line, and a cell to each other: {missing}"));
    }
    mistakes.list.is_empty()
}

fn names(columns: TableColumns) -> String {
    columns.names().collect::<Vec<_>>().join(",")
}

impl SettingsRow<'_> {
    /// Returns the cell of a column; none if the cell is empty, or if the table has no such column.
    pub(super) fn cell(&self, column: &str) -> Option<&str> {
        let index = self.columns.iter().position(|name| name == column)?;
        self.cells.get(index).filter(|cell| !cell.is_empty())
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, column: &str) -> Option<T> {
        self.read(column, |cell| cell.parse().map_err(|reason: T::Err| reason.to_string()))
    }

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

    pub(super) fn add_mistake(&mut self, column: &str, sentence: impl Display) {
        self.mistakes.add(self.line, format!("{column}: {sentence}"));
    }
}
