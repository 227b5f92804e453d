//! Reader of the columns `symbol`, `number` and `venue` of the table of instruments, which the OMS reads as well.
//!
//! The first line names the columns, in any order; further columns are for the OMS alone.

use std::path::Path;

use tickpath_market::{Symbol, SymbolId, VenueId};
use tickpath_settings::{Mistakes, SettingsError, TORN_CELL, read_text, table_cells, table_lines};

/// Upper bound of symbol numbers, exclusive.
const SYMBOLS: u32 = (1 << 16) - 1;

const COLUMNS: [&str; 3] = ["symbol", "number", "venue"];

/// Reads the instruments of this venue, which the table names by its number or by `name`.
pub(super) fn read(file: &Path, venue: VenueId, name: Option<&str>) -> Result<Vec<(Symbol, SymbolId)>, SettingsError> {
    let text = read_text(file)?;
    let mut lines = table_lines(&text);
    let mut mistakes = Mistakes::new(file);
    let indices = lines.next().map(|(line, head)| columns(line, head, &mut mistakes));
    let Some(indices) = indices.unwrap_or_else(|| {
        mistakes.add(1, "the table is empty; its first line names the columns: symbol,number,venue,multiplier");
        None
    }) else {
        return Ok(mistakes.into_result(Vec::new())?);
    };
    let mut listed: Vec<(Symbol, SymbolId)> = Vec::new();
    for (line, text) in lines {
        let Some(cells) = table_cells(text) else {
            mistakes.add(line, TORN_CELL);
            continue;
        };
        let [symbol, number, listed_venue] = indices.map(|index| cells.get(index).unwrap_or_default());
        if !(name == Some(listed_venue) || listed_venue == venue.0.to_string()) {
            continue;
        }
        match instrument(symbol, number, &listed) {
            Ok(instrument) => listed.push(instrument),
            Err(sentence) => mistakes.add(line, sentence),
        }
    }
    Ok(mistakes.into_result(listed)?)
}

/// Returns the indices of the needed columns, and adds a mistake for each missing one.
fn columns(line: usize, head: &str, mistakes: &mut Mistakes) -> Option<[usize; 3]> {
    let Some(head) = table_cells(head) else {
        mistakes.add(line, TORN_CELL);
        return None;
    };
    let index = |name: &str| head.iter().position(|column| column == name);
    for missing in COLUMNS.iter().filter(|name| index(name).is_none()) {
        mistakes.add(line, format!("column '{missing}' is missing; add it to this line, and its cell to each other"));
    }
    let indices = COLUMNS.map(index);
    indices.iter().all(Option::is_some).then(|| indices.map(Option::unwrap_or_default))
}

fn instrument(symbol: &str, number: &str, listed: &[(Symbol, SymbolId)]) -> Result<(Symbol, SymbolId), String> {
    let symbol: Symbol = symbol.parse().map_err(|reason| format!("symbol: {reason}"))?;
    let number = number.parse().ok().filter(|number| *number < SYMBOLS);
    let number = SymbolId(number.ok_or_else(|| format!("number: use a whole number of 0 to {}", SYMBOLS - 1))?);
    match listed.iter().find(|(name, id)| *name == symbol || *id == number) {
        Some((name, id)) => {
            Err(format!("'{name}' with the number {} is in the table already; write each name and number once", id.0))
        }
        None => Ok((symbol, number)),
    }
}
