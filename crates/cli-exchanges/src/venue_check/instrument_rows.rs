//! The rows of a table of instruments, compared with the exchange's list.

use std::path::{Path, PathBuf};

use tickpath_feed::ListedInstrument;
use tickpath_settings::{TORN_CELL, read_text, table_cells, table_lines};

use tickpath_cli_terminal::args::{CliUsageError, bail_usage};

/// Columns that are compared. An empty cell is no difference: the OMS then checks nothing.
const COMPARED: [&str; 5] = ["tick_size", "lot", "minimum_quantity", "multiplier", "code"];
/// Max differences in a sentence.
const MAX_SHOWN: usize = 3;

/// The rows of one venue that are not restricted.
pub struct InstrumentRows {
    file: PathBuf,
    /// Name, and the cells of the compared columns.
    rows: Vec<(String, [String; COMPARED.len()])>,
}

impl InstrumentRows {
    pub fn read(file: &Path, venue: &str) -> Result<Self, CliUsageError> {
        let text = read_text(file).map_err(|e| CliUsageError(e.to_string()))?;
        let shown = file.display();
        let mut lines = table_lines(&text).map(|(line, text)| (line, table_cells(text)));
        let Some((_, Some(head))) = lines.next() else {
            bail_usage!("{shown}: the first line names the columns; fetch the table first");
        };
        let column = |name: &str| head.iter().position(|cell| cell == name);
        let (name, own_venue, restricted) = (column("symbol"), column("venue"), column("restricted"));
        let compared = COMPARED.map(column);
        let mut rows = Vec::new();
        for (line, cells) in lines {
            let Some(cells) = cells else { bail_usage!("{shown}:{line}: {TORN_CELL}") };
            let cell = |index: Option<usize>| index.and_then(|index| cells.get(index)).unwrap_or_default();
            if cell(own_venue) == venue && !matches!(cell(restricted), "true" | "1") {
                rows.push((cell(name).to_owned(), compared.map(|index| cell(index).to_owned())));
            }
        }
        if rows.is_empty() {
            bail_usage!("{shown} has no row of the venue '{venue}' that can be traded; name it with --venue NAME");
        }
        Ok(Self { file: file.to_owned(), rows })
    }

    /// Returns the names of the instruments.
    pub fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Compares the rows with the exchange's list.
    pub fn compare(&self, listed: &[ListedInstrument]) -> Result<((), String), String> {
        let differences: Vec<String> =
            self.rows.iter().filter_map(|(name, cells)| difference(name, cells, listed)).collect();
        let (file, count) = (self.file.display(), self.rows.len());
        if differences.is_empty() {
            return Ok(((), format!("all {count} rows of {file} agree")));
        }
        let shown = differences[..differences.len().min(MAX_SHOWN)].join("; ");
        Err(format!(
            "{} of {count} rows differ: {shown}; fetch the table again with `tickpath instruments fetch`",
            differences.len()
        ))
    }
}

/// Returns the first difference of a row from the exchange's list.
fn difference(name: &str, cells: &[String; COMPARED.len()], listed: &[ListedInstrument]) -> Option<String> {
    let Some(listed) = listed.iter().find(|listed| listed.name == name && listed.is_live) else {
        return Some(format!("{name} is not traded there now"));
    };
    let code = if listed.code == 0 { String::new() } else { listed.code.to_string() };
    let theirs = [&listed.tick_size, &listed.lot, &listed.minimum_quantity, &listed.contract_value, &code];
    let rows = COMPARED.iter().zip(cells).zip(theirs);
    let mut different = rows.filter(|((_, ours), theirs)| !ours.is_empty() && bare(ours) != bare(theirs));
    let ((column, ours), theirs) = different.next()?;
    Some(format!("{name} has the {column} {ours}, at the exchange {theirs}"))
}

/// Returns a decimal without zeros at its end.
fn bare(decimal: &str) -> &str {
    if decimal.contains('.') { decimal.trim_end_matches('0').trim_end_matches('.') } else { decimal }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_table_agrees_with_the_list_or_names_its_differences() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("instruments.csv");
        let table = "symbol,number,venue,tick_size,lot,minimum_quantity,multiplier,code,restricted\n\
                     A-USDT,1,OKX,0.10,0.001,,1,7,\nB-USDT,2,OKX,9,9,9,9,9,true\nC,3,SIM,9,9,9,9,9,\n";
        fs::write(&file, table).expect("the folder is ours");
        let rows = InstrumentRows::read(&file, "OKX").expect("it has a row");
        assert_eq!(rows.names(), ["A-USDT"]);
        let text = str::to_owned;
        let listed = |lot: &str, code| ListedInstrument {
            name: text("A-USDT"),
            code,
            is_live: true,
            tick_size: text("0.1"),
            lot: text(lot),
            minimum_quantity: text("1"),
            contract_value: text("1"),
            ..ListedInstrument::default()
        };
        for (list, words) in [
            (vec![listed("0.001000", 7)], "all 1 rows of "),
            (vec![listed("0.01", 7)], "A-USDT has the lot 0.001, at the exchange 0.01"),
            (vec![listed("0.001", 8)], "A-USDT has the code 7, at the exchange 8"),
            (vec![], "A-USDT is not traded there now"),
        ] {
            let found = rows.compare(&list).map_or_else(|why| why, |((), text)| text);
            assert!(found.contains(words), "no '{words}' in {found}");
        }
        let refused = InstrumentRows::read(&file, "NONE").map(|_| ()).expect_err("no row is of this venue");
        assert!(refused.to_string().contains("--venue"), "{refused}");
    }
}
