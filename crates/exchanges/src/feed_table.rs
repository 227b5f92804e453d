//! The instruments of a feed: by their names alone, or from a table of instruments.

use std::path::Path;

use tickpath_feed::FeedInstrument;
use tickpath_market::{DECIMALS, MAX_DECIMALS, SymbolId};
use tickpath_settings::{TORN_CELL, read_text, table_cells, table_lines};

use crate::error::ExchangeUsageError;

/// Max names that an error message lists.
const MAX_NAMES: usize = 10;

/// Numbers instruments from 0 on, in the order of their names, with eight decimals.
pub fn number_instruments(names: &[String]) -> Result<Vec<FeedInstrument>, ExchangeUsageError> {
    check_names(names)?;
    let instrument = |(number, name): (u32, &String)| FeedInstrument {
        name: name.clone(),
        symbol: SymbolId(number),
        price_decimals: DECIMALS,
        quantity_decimals: DECIMALS,
        code: 0,
    };
    Ok((0..).zip(names).map(instrument).collect())
}

/// Reads the instruments of a venue from a table: those with these names, or all that are not restricted if there is no
/// name.
pub fn read_feed_table(file: &Path, venue: &str, names: &[String]) -> Result<Vec<FeedInstrument>, ExchangeUsageError> {
    check_names(names)?;
    let text = read_text(file).map_err(|e| ExchangeUsageError(e.to_string()))?;
    let rows =
        parse_table(&text).map_err(|(line, why)| ExchangeUsageError(format!("{}:{line}: {why}", file.display())))?;
    let (own, others): (Vec<TableRow>, Vec<TableRow>) = rows.into_iter().partition(|row| row.venue == venue);
    let file = file.display();
    if own.is_empty() {
        let mut venues: Vec<String> = others.into_iter().map(|row| row.venue).collect();
        venues.sort_unstable();
        venues.dedup();
        let found = if venues.is_empty() { "no row".to_owned() } else { format!("rows of {}", list(&venues)) };
        return Err(ExchangeUsageError(format!(
            "{file} has no instrument of the venue '{venue}', but {found}; name the venue with --venue NAME"
        )));
    }
    if names.is_empty() {
        let live: Vec<FeedInstrument> =
            own.into_iter().filter(|row| !row.is_restricted).map(|row| row.instrument).collect();
        if live.is_empty() {
            return Err(ExchangeUsageError(format!(
                "{file} has only restricted instruments of the venue '{venue}'; name some with --instruments"
            )));
        }
        return Ok(live);
    }
    let find = |name: &String| {
        let found = own.iter().find(|row| row.instrument.name == *name);
        found.map(|row| row.instrument.clone()).ok_or_else(|| {
            let known: Vec<String> = own.iter().map(|row| row.instrument.name.clone()).collect();
            ExchangeUsageError(format!(
                "'{name}' is no instrument of the venue '{venue}' in {file}; use one of {}, or add it with `tickpath \
                 instruments fetch`",
                list(&known)
            ))
        })
    };
    names.iter().map(find).collect()
}

struct TableRow {
    venue: String,
    is_restricted: bool,
    instrument: FeedInstrument,
}

/// Reads the rows of a table. An error is a line number, and what is wrong there.
fn parse_table(text: &str) -> Result<Vec<TableRow>, (usize, String)> {
    let mut lines = table_lines(text);
    let needed = "the first line names the columns, symbol, number and venue among them";
    let (line, head) = lines.next().ok_or_else(|| (1, format!("the table is empty; {needed}")))?;
    let head = table_cells(head).ok_or_else(|| (line, TORN_CELL.to_owned()))?;
    let column = |name: &str| head.iter().position(|cell| cell == name);
    let [Some(name), Some(number), Some(venue)] = ["symbol", "number", "venue"].map(column) else {
        return Err((line, format!("a column is missing; {needed}")));
    };
    let optional = ["price_decimals", "quantity_decimals", "code", "restricted"].map(column);
    let mut rows: Vec<TableRow> = Vec::new();
    for (line, text) in lines {
        let cells = table_cells(text).ok_or_else(|| (line, TORN_CELL.to_owned()))?;
        let cell = |index: usize| cells.get(index).unwrap_or_default();
        let optional = optional.map(|index| index.map_or("", cell));
        let row = parse_row([cell(name), cell(number), cell(venue)], optional).map_err(|why| (line, why))?;
        if let Some(other) = rows.iter().find(|other| other.instrument.symbol == row.instrument.symbol) {
            let (number, other) = (row.instrument.symbol, &other.instrument.name);
            return Err((line, format!("{other} has the number {number} already; give each instrument its own")));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(
    [name, number, venue]: [&str; 3],
    [price_decimals, quantity_decimals, code, restricted]: [&str; 4],
) -> Result<TableRow, String> {
    if name.is_empty() || venue.is_empty() {
        return Err("a symbol or a venue is missing; write both in each line".to_owned());
    }
    let whole = |cell: &str, column: &str| format!("{column}: '{cell}' is no whole number; write one");
    let symbol = SymbolId(number.parse::<u32>().map_err(|_| whole(number, "number"))?);
    let decimals = |cell: &str, column: &str| {
        if cell.is_empty() {
            return Ok(DECIMALS);
        }
        let decimals = cell.parse::<u8>().ok().filter(|decimals| *decimals <= MAX_DECIMALS);
        decimals.ok_or_else(|| format!("{column}: '{cell}' is no number of decimals; use 0 to {MAX_DECIMALS}"))
    };
    let code = if code.is_empty() { 0 } else { code.parse::<u64>().map_err(|_| whole(code, "code"))? };
    let (price_decimals, quantity_decimals) =
        (decimals(price_decimals, "price_decimals")?, decimals(quantity_decimals, "quantity_decimals")?);
    let instrument = FeedInstrument { name: name.to_owned(), symbol, price_decimals, quantity_decimals, code };
    Ok(TableRow { venue: venue.to_owned(), is_restricted: matches!(restricted, "true" | "1"), instrument })
}

fn check_names(names: &[String]) -> Result<(), ExchangeUsageError> {
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(ExchangeUsageError(
                "--instruments: a name is empty; write names with a comma between two, like A,B".to_owned(),
            ));
        }
        if names[..index].contains(name) {
            return Err(ExchangeUsageError(format!(
                "--instruments: '{name}' is named twice; name each instrument once"
            )));
        }
    }
    Ok(())
}

/// Returns the first names as text, and the number of the others.
fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names[..names.len() - more].join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        # A comment.\n\
        symbol,number,venue,price_decimals,quantity_decimals,code,restricted\n\
        BTC-USDT,1,OKX,,,,\n\
        BTTC-USDT,2,OKX,12,0,77,false\n\
        OLD-USDT,3,OKX,,,,true\n\
        BTCUSDT,4,BINANCE,,,,\n";

    fn read(text: &str, venue: &str, names: &[&str]) -> Result<Vec<FeedInstrument>, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("table.csv");
        std::fs::write(&file, text).expect("the folder is ours");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let read = read_feed_table(&file, venue, &names);
        read.map_err(|e| e.to_string().replace(&file.display().to_string(), "FILE"))
    }

    #[test]
    fn a_table_gives_numbers_decimals_and_codes() {
        let all = read(TABLE, "OKX", &[]).expect("a good table");
        let fields = |one: &FeedInstrument| (one.symbol.0, one.price_decimals, one.quantity_decimals, one.code);
        assert_eq!(all.iter().map(fields).collect::<Vec<_>>(), [(1, 8, 8, 0), (2, 12, 0, 77)]);
        let named = read(TABLE, "OKX", &["OLD-USDT", "BTC-USDT"]).expect("both are there");
        assert_eq!(named.iter().map(|one| one.symbol.0).collect::<Vec<_>>(), [3, 1]);
        let numbered = number_instruments(&["B".to_owned(), "A".to_owned()]).expect("two names");
        assert_eq!(numbered.iter().map(fields).collect::<Vec<_>>(), [(0, 8, 8, 0), (1, 8, 8, 0)]);
    }

    #[test]
    fn a_mistake_is_named_with_its_remedy() {
        let head = "symbol,number,venue,price_decimals\n";
        for (text, venue, names, words) in [
            (TABLE, "OKX", &["X"][..], "use one of BTC-USDT, BTTC-USDT, OLD-USDT, or add it with"),
            (TABLE, "BYBIT", &[], "but rows of BINANCE, OKX; name the venue with --venue NAME"),
            (TABLE, "OKX", &["A", "A"], "'A' is named twice"),
            (TABLE, "OKX", &[""], "a name is empty"),
            ("", "OKX", &[], "FILE:1: the table is empty"),
            ("symbol,number\n", "OKX", &[], "FILE:1: a column is missing"),
            (&format!("{head}A,x,OKX,8\n"), "OKX", &[], "FILE:2: number: 'x' is no whole number"),
            (&format!("{head}A,1,OKX,19\n"), "OKX", &[], "use 0 to 18"),
            (&format!("{head}A,1,OKX,8\nB,1,OKX,8\n"), "OKX", &[], "FILE:3: A has the number 1 already"),
            (&format!("{head}\"A,1,OKX,8\n"), "OKX", &[], "FILE:2: a quotation mark is not closed"),
            (&format!("{head},1,OKX,8\n"), "OKX", &[], "a symbol or a venue is missing"),
        ] {
            let error = read(text, venue, names).expect_err(words);
            assert!(error.contains(words), "no '{words}' in: {error}");
        }
    }
}
