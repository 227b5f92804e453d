//! Cells of a CSV line, and the names of its columns.

use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};

use crate::decimal::quoted;
use crate::intake::Intake;
use crate::lines::LineReader;

/// Reader of the rows of one table.
pub(crate) trait TableRows {
    /// Reads a row, and passes on its message.
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String>;

    /// Passes on a pending message at the end of the table, which may be cut off.
    fn finish(&mut self, _intake: &mut Intake<'_>, _is_cut: bool) {}
}

/// Reads a table to its end.
pub(crate) fn read_table<R: Read>(
    lines: &mut LineReader<R>,
    has_names: bool,
    table: &mut impl TableRows,
    intake: &mut Intake<'_>,
) -> io::Result<()> {
    if has_names {
        lines.skip_first(intake)?;
    }
    let mut cells = Cells::default();
    let is_cut = lines.for_each(intake, |line, intake| {
        if line.is_empty() {
            intake.counts.skip("empty lines");
            return Ok(());
        }
        table.read(&cells.split(line)?, intake)
    })?;
    table.finish(intake, is_cut);
    Ok(())
}

/// Names of a table's columns: its first line.
pub(crate) struct Header(Vec<Vec<u8>>);

impl Header {
    pub fn read(line: &[u8]) -> Self {
        let mut cells = Cells::default();
        let Ok(row) = cells.split(line) else { return Self(Vec::new()) };
        Self((0..row.spans.len()).map(|column| row.optional(Some(column)).to_owned()).collect())
    }

    /// Returns the place of a column, if the table has it.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|found| found == name.as_bytes())
    }

    /// Returns the place of a column that the table must have.
    pub fn need(&self, name: &str) -> Result<usize, String> {
        self.find(name).ok_or_else(|| format!("its first line names no column '{name}'"))
    }

    /// Returns true if the table has all of these columns.
    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.find(name).is_some())
    }
}

/// Cells of a line. The positions are kept from line to line, so that no line takes an allocation.
#[derive(Default)]
pub(crate) struct Cells {
    /// Begin and end of each cell.
    spans: Vec<(usize, usize)>,
    /// Cells of a line with quotes, without the quotes.
    unquoted: Vec<u8>,
}

impl Cells {
    /// Splits a line. Each line is one row, so that an unclosed quote swallows no other rows.
    pub fn split<'a>(&'a mut self, line: &'a [u8]) -> Result<Row<'a>, String> {
        self.spans.clear();
        let (words, rest) = line.as_chunks::<8>();
        let mut start = 0;
        for (index, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            if places_of(b'"', word) != 0 {
                return self.unquote(line);
            }
            let mut commas = places_of(b',', word);
            while commas != 0 {
                let at = index * 8 + commas.trailing_zeros() as usize / 8;
                self.spans.push((start, at));
                start = at + 1;
                commas &= commas - 1;
            }
        }
        for (at, byte) in (line.len() - rest.len()..).zip(rest) {
            match byte {
                b'"' => return self.unquote(line),
                b',' => {
                    self.spans.push((start, at));
                    start = at + 1;
                }
                _ => {}
            }
        }
        self.spans.push((start, line.len()));
        Ok(Row { bytes: line, spans: &self.spans })
    }

    fn unquote(&mut self, line: &[u8]) -> Result<Row<'_>, String> {
        let (mut options, mut record) = (ReaderBuilder::new(), ByteRecord::new());
        options.has_headers(false).flexible(true).buffer_capacity(line.len().max(1));
        options.from_reader(line).read_byte_record(&mut record).map_err(|error| error.to_string())?;
        self.unquoted.clear();
        self.unquoted.extend_from_slice(record.as_slice());
        self.spans.clear();
        let spans = (0..record.len()).filter_map(|cell| record.range(cell));
        self.spans.extend(spans.map(|span| (span.start, span.end)));
        Ok(Row { bytes: &self.unquoted, spans: &self.spans })
    }
}

/// Cells of one line.
pub(crate) struct Row<'a> {
    bytes: &'a [u8],
    spans: &'a [(usize, usize)],
}

impl<'a> Row<'a> {
    /// Returns a cell without the spaces around it.
    #[inline]
    pub fn cell(&self, column: usize) -> Result<&'a [u8], String> {
        match self.spans.get(column) {
            Some(&(start, end)) => Ok(self.bytes[start..end].trim_ascii()),
            None => Err(format!("it has {} cells, and {} are needed", self.spans.len(), column + 1)),
        }
    }

    /// Returns a cell that the table or the row may lack; then it is empty.
    pub fn optional(&self, column: Option<usize>) -> &'a [u8] {
        column.and_then(|column| self.cell(column).ok()).unwrap_or_default()
    }

    /// Reads a cell with one of these texts.
    pub fn choose<T: Copy>(&self, column: usize, texts: &[(&str, T)]) -> Result<T, String> {
        let cell = self.cell(column)?;
        let found = texts.iter().find(|(text, _)| text.as_bytes() == cell);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let all: Vec<&str> = texts.iter().map(|(text, _)| *text).collect();
            format!("'{}' is none of {}", quoted(cell), all.join(", "))
        })
    }
}

/// Returns a word with the highest bit of each byte that is this one. A cell has some eight bytes: a search of its own
/// for each would cost more than the words.
#[inline]
fn places_of(byte: u8, word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let difference = word ^ u64::from_ne_bytes([byte; 8]);
    !(((difference & LOW) + LOW) | difference | LOW)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cells_lie_between_the_commas(line in "[a,.\\x00\\x7f\u{ac}]{0,40}") {
            let mut cells = Cells::default();
            let row = cells.split(line.as_bytes()).expect("a line without quotes is split");
            let found: Vec<&[u8]> = row.spans.iter().map(|&(start, end)| &row.bytes[start..end]).collect();
            prop_assert_eq!(found, line.split(',').map(str::as_bytes).collect::<Vec<_>>());
        }

        #[test]
        fn a_quote_anywhere_is_found(before in "[a,]{0,20}", after in "[a,]{0,20}") {
            let line = format!("{before}\"x,y\"{after}");
            let mut cells = Cells::default();
            let row = cells.split(line.as_bytes()).expect("a line is split");
            prop_assert!(!std::ptr::eq(row.bytes, line.as_bytes()), "the quotes are read by the complete reader");
        }
    }
}
