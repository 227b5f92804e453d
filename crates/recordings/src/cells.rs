//! Cells of a CSV line, and the names of its columns.

use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};
use memchr::memchr2_iter;

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
        let mut start = 0;
        for at in memchr2_iter(b',', b'"', line) {
            if line[at] == b'"' {
                return self.unquote(line);
            }
            self.spans.push((start, at));
            start = at + 1;
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
