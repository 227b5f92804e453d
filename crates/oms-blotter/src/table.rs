//! Tables as text: for people, as CSV (RFC 4180), as JSON.

use serde_json::{Map, Value};
use tickpath_clock::rfc3339;

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlotterCell {
    /// Unknown or not applicable: empty in CSV, `null` in JSON.
    Nothing,
    /// An id or a count.
    Number(u64),
    /// A word or a name.
    Text(String),
    /// A decimal: digits without an exponent, as text in JSON, so that no reader rounds it.
    Decimal(String),
    /// A time, in nanoseconds since the Unix epoch.
    Time(u64),
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlotterColumn {
    /// Name of the column, the same in every form.
    pub name: &'static str,
    /// Whether the text form has the column, too: a terminal has no room for all columns.
    pub is_for_people: bool,
}

/// Rows under their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlotterTable {
    /// Kind of the rows: `orders`, `fills` or `positions`.
    pub name: &'static str,
    /// Columns of the table.
    pub columns: &'static [BlotterColumn],
    /// Rows with a cell per column.
    pub rows: Vec<Vec<BlotterCell>>,
}

impl BlotterCell {
    /// Returns text for programs: a time has nine decimals of its second.
    pub fn text(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) | Self::Decimal(text) => text.clone(),
            Self::Time(utc_ns) => {
                let seconds = rfc3339(*utc_ns);
                format!("{}.{:09}Z", seconds.trim_end_matches('Z'), utc_ns % 1_000_000_000)
            }
        }
    }

    /// Returns text for people: a time has whole seconds.
    fn for_people(&self) -> String {
        match self {
            Self::Time(utc_ns) => rfc3339(*utc_ns),
            other => other.text(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Nothing => Value::Null,
            Self::Number(number) => (*number).into(),
            Self::Text(_) | Self::Decimal(_) | Self::Time(_) => self.text().into(),
        }
    }
}

impl BlotterTable {
    /// Returns the table for people, under its name, with the columns for people only.
    pub fn for_people(&self) -> String {
        let shown: Vec<usize> = (0..self.columns.len()).filter(|&at| self.columns[at].is_for_people).collect();
        let head: Vec<String> = shown.iter().map(|&at| self.columns[at].name.to_owned()).collect();
        let row = |row: &Vec<BlotterCell>| -> Vec<String> { shown.iter().map(|&at| row[at].for_people()).collect() };
        let lines: Vec<Vec<String>> = [head].into_iter().chain(self.rows.iter().map(row)).collect();
        let wide = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..shown.len()).map(wide).collect();
        let left: Vec<bool> =
            shown.iter().map(|&at| self.rows.iter().any(|row| matches!(row[at], BlotterCell::Text(_)))).collect();
        let mut text = format!("{} ({})\n", self.name, self.rows.len());
        for line in if self.rows.is_empty() { &lines[..0] } else { &lines[..] } {
            let cells = line.iter().zip(&widths).zip(&left).map(|((cell, &width), &is_left)| match is_left {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            text.push_str("  ");
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns a line per row for people: the table's name, then each cell after the name of its column.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            text.push_str(self.name);
            let cells = self.columns.iter().zip(row).filter(|(column, _)| column.is_for_people);
            for (column, cell) in cells.filter(|(_, cell)| **cell != BlotterCell::Nothing) {
                text.push_str(&format!(" {}={}", column.name, cell.for_people()));
            }
            text.push('\n');
        }
        text
    }

    /// Returns the names of the columns as a line of CSV.
    pub fn csv_head(&self) -> String {
        record(self.columns.iter().map(|column| column.name.to_owned()))
    }

    /// Returns a line of CSV per row, without the names of the columns.
    pub fn csv_rows(&self) -> String {
        self.rows.iter().map(|row| record(row.iter().map(BlotterCell::text))).collect()
    }

    /// Returns an object per row, with the names of the columns as keys.
    pub fn json(&self) -> Vec<Value> {
        let object = |row: &Vec<BlotterCell>| -> Value {
            let pairs = self.columns.iter().zip(row).map(|(column, cell)| (column.name.to_owned(), cell.json()));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    /// Returns a line of JSON per row, with the kind of the row in `table`.
    pub fn json_lines(&self) -> String {
        let mut text = String::new();
        for mut row in self.json() {
            row["table"] = self.name.into();
            text.push_str(&row.to_string());
            text.push('\n');
        }
        text
    }
}

/// Formats a record by RFC 4180.
fn record(fields: impl Iterator<Item = String>) -> String {
    let quoted = |field: String| match field.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    };
    fields.map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Formats an integer with this many decimals, without trailing zeros: 150000000 with 8 decimals is 1.5.
pub fn decimal(units: i128, decimals: u32) -> String {
    let scale = 10_u128.pow(decimals);
    let (whole, fraction) = (units.unsigned_abs() / scale, units.unsigned_abs() % scale);
    let sign = if units < 0 { "-" } else { "" };
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let digits = format!("{fraction:0width$}", width = decimals as usize);
    format!("{sign}{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[BlotterColumn] =
        &[BlotterColumn { name: "id", is_for_people: true }, BlotterColumn { name: "why", is_for_people: false }];

    #[test]
    fn a_field_with_commas_quotes_or_lines_is_quoted() {
        let cell = |text: &str| vec![BlotterCell::Number(1), BlotterCell::Text(text.to_owned())];
        let table = BlotterTable { name: "orders", columns: COLUMNS, rows: vec![cell("plain"), cell("a \"b\", c\nd")] };
        assert_eq!(table.csv_head() + &table.csv_rows(), "id,why\r\n1,plain\r\n1,\"a \"\"b\"\", c\nd\"\r\n");
        assert_eq!(table.for_people(), "orders (2)\n  id\n   1\n   1\n");
        let lines = table.json_lines();
        let first: Value = serde_json::from_str(lines.lines().next().unwrap_or_default()).expect("a line of JSON");
        assert_eq!(first, serde_json::json!({"id": 1, "table": "orders", "why": "plain"}));
    }

    #[test]
    fn decimals_have_no_exponent_and_no_trailing_zeros() {
        for (units, decimals, text) in [
            (150_000_000, 8, "1.5"),
            (-1, 16, "-0.0000000000000001"),
            (10_i128.pow(16), 16, "1"),
            (0, 8, "0"),
            (i128::MIN, 16, "-17014118346046923173168.7303715884105728"),
        ] {
            assert_eq!(decimal(units, decimals), text);
        }
    }
}
