//! Tables as CSV: the lines of a file with their numbers, and the cells of a line.

use csv::{ReaderBuilder, StringRecord, Terminator, Trim};

/// Sentence about a line that [`table_cells`] cannot read.
pub const TORN_CELL: &str = "a quotation mark is not closed, or stands inside a cell; write the cell without it, or \
                             the whole cell between two";

/// Returns the lines of a table with their numbers, from 1; empty lines and lines that begin with `#` are left out.
pub fn table_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Spreadsheets write a byte order mark before the first line.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Reads the cells of a line, without spaces around them; a cell in quotation marks may hold commas. None if a mark is
/// not closed or stands inside a cell: each line is one row, so that an open mark swallows no other row.
pub fn table_cells(line: &str) -> Option<StringRecord> {
    let mut options = ReaderBuilder::new();
    options.has_headers(false).flexible(true).trim(Trim::All).terminator(Terminator::Any(b'\n'));
    options.buffer_capacity(line.len().max(1));
    let cells = options.from_reader(line.as_bytes()).into_records().next()?.ok()?;
    let is_closed = line.matches('"').count().is_multiple_of(2);
    (is_closed && !cells.iter().any(|cell| cell.contains('"'))).then_some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_in_quotation_marks_may_hold_commas() {
        for (line, expected) in [
            ("A, 1 ,SIM", Some(vec!["A", "1", "SIM"])),
            ("\"A,B\",1,\"SIM\"", Some(vec!["A,B", "1", "SIM"])),
            ("\"\",,x\r", Some(vec!["", "", "x"])),
            ("\"A,1,SIM", None),
            ("A\"B,\"C", None),
            ("A, \"B\"", None),
            ("\"A\"\"B\",1", None),
        ] {
            let cells = table_cells(line);
            assert_eq!(cells.as_ref().map(|cells| cells.iter().collect::<Vec<_>>()), expected, "{line:?}");
        }
    }

    #[test]
    fn comments_and_empty_lines_keep_the_numbers_of_the_others() {
        let lines: Vec<_> = table_lines("\u{feff}a,b\r\n\n# c\n  \n1,2").collect();
        assert_eq!(lines, [(1, "a,b"), (5, "1,2")]);
    }
}
