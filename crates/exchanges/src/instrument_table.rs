//! A table of instruments as an exchange lists them, written into a table that may exist already.
//!
//! * A name keeps its number forever; a new one gets the number after the highest one.
//! * Cells of columns that the exchange knows are replaced, in the rows of this venue. All other cells, columns, rows
//!   and comments are kept.
//! * An instrument that the exchange does not trade now is restricted, and its row stays: orders and journals name its
//!   number. It stays restricted when it is traded again, because an operator may have restricted it on purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tickpath_feed::ListedInstrument;
use tickpath_market::{DECIMALS, Symbol};
use tickpath_settings::{TORN_CELL, table_cells};

use crate::feeds::contract_word;

/// Columns that a table needs, in the order of a new one.
const COLUMNS: [&str; 14] = [
    "symbol",
    "number",
    "venue",
    "multiplier",
    "tick_size",
    "lot",
    "price_decimals",
    "quantity_decimals",
    "minimum_quantity",
    "minimum_notional",
    "contract",
    "currency",
    "code",
    RESTRICTED,
];

const RESTRICTED: &str = "restricted";

/// Highest number of an instrument in an OMS.
const MAX_NUMBER: u32 = u16::MAX as u32;

/// Decimals of a price from which whole quantities may need more than 64 bits at eight decimals: a billion of a coin
/// that costs a hundred-thousandth is an ordinary level of its book.
const FINE_TICK_DECIMALS: u8 = 8;

/// A table with the exchange's list in it.
#[derive(Debug, PartialEq, Eq)]
pub struct MergedTable {
    /// Text of the table.
    pub text: String,
    /// Instruments of the list that are in the table.
    pub listed: usize,
    /// Names that are new in the table.
    pub added: Vec<String>,
    /// Names that are restricted from now on.
    pub restricted: Vec<String>,
    /// Names that are traded, and were restricted before.
    pub still_restricted: Vec<String>,
    /// Names that are not in the table, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// Reasons why a table cannot take a list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableMergeError {
    /// The first line names too few columns.
    #[error("line {0}: the first line names the columns, symbol, number and venue among them; correct it")]
    Header(usize),
    /// The cells of a line cannot be read.
    #[error("line {0}: {torn}", torn = TORN_CELL)]
    Torn(usize),
    /// A row has other cells than the first line has columns.
    #[error("line {line}: {cells} cells, but the first line names {columns} columns; write one cell for each")]
    Cells {
        /// Number of the line.
        line: usize,
        /// Number of its cells.
        cells: usize,
        /// Number of columns.
        columns: usize,
    },
    /// A number is no number of an instrument.
    #[error("line {0}: '{1}' is no number of an instrument; use 0 to {max}", max = MAX_NUMBER)]
    Number(usize, String),
    /// The table has no number left.
    #[error("no number up to {max} is left for '{0}'; fetch fewer types, or into another table", max = MAX_NUMBER)]
    Full(String),
}

/// Merges a list into a table; without a table it makes one. `is_covered` returns whether the list would have an
/// instrument of this name if the exchange listed one.
pub fn merge_table(
    existing: Option<&str>,
    listed: &[ListedInstrument],
    venue: &str,
    is_covered: impl Fn(&str) -> bool,
) -> Result<MergedTable, TableMergeError> {
    let mut table = match existing {
        Some(text) => InstrumentTable::parse(text)?,
        None => InstrumentTable::new(venue),
    };
    let (mut added, mut restricted, mut still_restricted) = (Vec::new(), Vec::new(), Vec::new());
    let (usable, refused) = table.split_usable(listed, venue);
    let live: BTreeMap<&str, &ListedInstrument> =
        usable.iter().filter(|one| one.is_live).map(|one| (one.name.as_str(), *one)).collect();
    let mut known = BTreeSet::new();
    for row in table.rows_of(venue) {
        let name = row.get("symbol").to_owned();
        let is_restricted = matches!(row.get(RESTRICTED), "true" | "1");
        match live.get(name.as_str()) {
            Some(instrument) => {
                row.set_listed(instrument);
                if is_restricted {
                    still_restricted.push(name.clone());
                }
            }
            None if is_covered(&name) && !is_restricted => {
                row.set(RESTRICTED, "true");
                restricted.push(name.clone());
            }
            None => {}
        }
        known.insert(name);
    }
    let is_new = |instrument: &&ListedInstrument| instrument.is_live && !known.contains(&instrument.name);
    for instrument in usable.into_iter().filter(is_new) {
        table.add(instrument, venue)?;
        added.push(instrument.name.clone());
    }
    let listed = live.len();
    Ok(MergedTable { text: table.text(), listed, added, restricted, still_restricted, refused })
}

/// Returns the decimals of an instrument's prices: eight, or those of its tick size if it has more.
pub fn price_decimals(tick_size: &str) -> u8 {
    decimals_of(tick_size).max(DECIMALS)
}

/// Returns the decimals of an instrument's quantities: eight, or those of its lot if it has more. None where lots are
/// whole and the tick is so fine that ordinary quantities exceed 64 bits at eight decimals.
pub fn quantity_decimals(lot: &str, tick_size: &str) -> u8 {
    match decimals_of(lot) {
        0 if decimals_of(tick_size) >= FINE_TICK_DECIMALS => 0,
        decimals => decimals.max(DECIMALS),
    }
}

/// Returns the number of digits behind the point, without zeros at the end.
fn decimals_of(text: &str) -> u8 {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction.trim_end_matches('0'));
    u8::try_from(fraction.len()).unwrap_or(u8::MAX)
}

/// A table: its columns, and its lines in their order.
struct InstrumentTable {
    columns: Vec<String>,
    lines: Vec<TableLine>,
    highest: Option<u32>,
}

enum TableLine {
    /// A comment or an empty line.
    Kept(String),
    /// The first line of the table.
    Columns,
    /// Cells of a row, by the name of their column.
    Row(InstrumentRow),
}

struct InstrumentRow(BTreeMap<String, String>);

impl InstrumentTable {
    fn new(venue: &str) -> Self {
        let head = format!("# Instruments of {venue}, as `tickpath instruments fetch` has fetched them; numbers stay.");
        let lines = vec![TableLine::Kept(head), TableLine::Columns];
        Self { columns: COLUMNS.map(str::to_owned).to_vec(), lines, highest: None }
    }

    fn parse(text: &str) -> Result<Self, TableMergeError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut table = Self { columns: Vec::new(), lines: Vec::new(), highest: None };
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                table.lines.push(TableLine::Kept(line.to_owned()));
                continue;
            }
            let cells = table_cells(line).ok_or(TableMergeError::Torn(number))?;
            if table.columns.is_empty() {
                table.columns = cells.iter().map(str::to_owned).collect();
                table.lines.push(TableLine::Columns);
                if ["symbol", "number", "venue"].iter().any(|name| !table.columns.iter().any(|cell| cell == name)) {
                    return Err(TableMergeError::Header(number));
                }
                continue;
            }
            let (found, columns) = (cells.len(), table.columns.len());
            if found != columns {
                return Err(TableMergeError::Cells { line: number, cells: found, columns });
            }
            let named = table.columns.iter().cloned().zip(cells.iter().map(str::to_owned));
            let row = InstrumentRow(named.collect());
            let id = row.get("number").parse::<u32>().ok().filter(|id| *id <= MAX_NUMBER);
            let id = id.ok_or_else(|| TableMergeError::Number(number, row.get("number").to_owned()))?;
            table.highest = table.highest.max(Some(id));
            table.lines.push(TableLine::Row(row));
        }
        if table.columns.is_empty() {
            return Err(TableMergeError::Header(1));
        }
        let missing = COLUMNS.iter().filter(|name| !table.columns.iter().any(|cell| cell == *name));
        let missing: Vec<String> = missing.map(|name| (*name).to_owned()).collect();
        table.columns.extend(missing);
        Ok(table)
    }

    /// Splits a list into the instruments that the table can take, and the names of the others with the reasons.
    fn split_usable<'l>(
        &self,
        listed: &'l [ListedInstrument],
        venue: &str,
    ) -> (Vec<&'l ListedInstrument>, Vec<(String, String)>) {
        let rows = self.lines.iter().filter_map(|line| if let TableLine::Row(row) = line { Some(row) } else { None });
        let foreign: BTreeMap<&str, &str> =
            rows.filter(|row| row.get("venue") != venue).map(|row| (row.get("symbol"), row.get("venue"))).collect();
        let (mut usable, mut refused) = (Vec::new(), Vec::new());
        for instrument in listed {
            let name = &instrument.name;
            let why = match (foreign.get(name.as_str()), name.parse::<Symbol>()) {
                (Some(other), _) => {
                    format!("the table has a '{name}' of the venue {other}; use a table for each venue")
                }
                (None, Err(why)) => why.to_string(),
                (None, Ok(_)) if name.contains(['"', ',']) || name.starts_with('#') => {
                    "a table cannot hold this name; the characters \", comma and a first # have a meaning there"
                        .to_owned()
                }
                (None, Ok(_)) => {
                    usable.push(instrument);
                    continue;
                }
            };
            refused.push((name.clone(), why));
        }
        (usable, refused)
    }

    fn rows_of(&mut self, venue: &str) -> impl Iterator<Item = &mut InstrumentRow> {
        let rows =
            self.lines.iter_mut().filter_map(|line| if let TableLine::Row(row) = line { Some(row) } else { None });
        rows.filter(move |row| row.get("venue") == venue)
    }

    fn add(&mut self, instrument: &ListedInstrument, venue: &str) -> Result<(), TableMergeError> {
        let number = self.highest.map_or(1, |highest| highest + 1);
        if number > MAX_NUMBER {
            return Err(TableMergeError::Full(instrument.name.clone()));
        }
        self.highest = Some(number);
        let mut row = InstrumentRow(BTreeMap::new());
        row.set("symbol", &instrument.name);
        row.set("number", &number.to_string());
        row.set("venue", venue);
        row.set_listed(instrument);
        self.lines.push(TableLine::Row(row));
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                TableLine::Kept(line) => text += line,
                TableLine::Columns => text += &self.columns.join(","),
                TableLine::Row(row) => {
                    for (index, column) in self.columns.iter().enumerate() {
                        let (cell, comma) = (row.get(column), if index > 0 { "," } else { "" });
                        let quote = if cell.contains(',') { "\"" } else { "" };
                        write!(text, "{comma}{quote}{cell}{quote}").expect("a string takes all");
                    }
                }
            }
            text.push('\n');
        }
        text
    }
}

impl InstrumentRow {
    /// Returns a cell; empty if the row has none.
    fn get(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    fn set(&mut self, column: &str, cell: &str) {
        self.0.insert(column.to_owned(), cell.to_owned());
    }

    /// Sets the cells that the exchange knows.
    fn set_listed(&mut self, listed: &ListedInstrument) {
        let code = if listed.code == 0 { String::new() } else { listed.code.to_string() };
        self.set("multiplier", &listed.contract_value);
        self.set("tick_size", &listed.tick_size);
        self.set("lot", &listed.lot);
        self.set("price_decimals", &price_decimals(&listed.tick_size).to_string());
        self.set("quantity_decimals", &quantity_decimals(&listed.lot, &listed.tick_size).to_string());
        self.set("minimum_quantity", &listed.minimum_quantity);
        self.set("minimum_notional", &listed.minimum_notional);
        self.set("contract", contract_word(listed.contract));
        self.set("currency", &listed.settle_currency);
        self.set("code", &code);
    }
}

#[cfg(test)]
mod tests {
    use tickpath_feed::ContractKind;

    use super::*;

    fn listed(name: &str, tick_size: &str, lot: &str) -> ListedInstrument {
        let text = str::to_owned;
        ListedInstrument {
            name: text(name),
            code: 5,
            contract: ContractKind::Linear,
            is_live: true,
            tick_size: text(tick_size),
            lot: text(lot),
            minimum_quantity: text(lot),
            minimum_notional: text(""),
            contract_value: text("1"),
            value_currency: text("BTC"),
            quote_currency: text("USDT"),
            settle_currency: text("USDT"),
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn merge(existing: Option<&str>, list: &[ListedInstrument]) -> MergedTable {
        merge_table(existing, list, "OKX", |name| !name.ends_with("-SWAP")).expect("the table is good")
    }

    #[test]
    fn a_new_table_numbers_instruments_from_one() {
        let closed = ListedInstrument { is_live: false, ..listed("C-USDT", "1", "1") };
        let made = merge(None, &[listed("A-USDT", "0.01", "0.001"), listed("B-USDT", "0.00000000001", "1"), closed]);
        let expected = "\
            # Instruments of OKX, as `tickpath instruments fetch` has fetched them; numbers stay.\n\
            symbol,number,venue,multiplier,tick_size,lot,price_decimals,quantity_decimals,minimum_quantity,\
            minimum_notional,contract,currency,code,restricted\n\
            A-USDT,1,OKX,1,0.01,0.001,8,8,0.001,,linear,USDT,5,\n\
            B-USDT,2,OKX,1,0.00000000001,1,11,0,1,,linear,USDT,5,\n";
        assert_eq!(made.text, expected);
        assert_eq!((made.listed, made.added), (2, names(&["A-USDT", "B-USDT"])));
    }

    #[test]
    fn a_table_keeps_its_numbers_other_rows_and_other_cells() {
        let existing = "\u{feff}number,symbol,venue,rate_limit,restricted,tick_size\r\n\
            # Ours.\n\n\
            7,A-USDT,OKX,500,,0.1\n\
            3,BTCUSDT,SIM,\"1,2\",true,9\n\
            4,GONE-USDT,OKX,,false,1\n\
            5,GONE-USDT-SWAP,OKX,,,1\n\
            6,BACK-USDT,OKX,,1,1\n";
        let list = [listed("NEW-USDT", "1", "1"), listed("A-USDT", "0.01", "1"), listed("BACK-USDT", "1", "1")];
        let merged = merge(Some(existing), &list);
        let rest = "8,8,1,,linear,USDT,5";
        let expected = [
            "number,symbol,venue,rate_limit,restricted,tick_size,multiplier,lot,price_decimals,quantity_decimals,\
             minimum_quantity,minimum_notional,contract,currency,code",
            "# Ours.",
            "",
            &format!("7,A-USDT,OKX,500,,0.01,1,1,{rest}"),
            "3,BTCUSDT,SIM,\"1,2\",true,9,,,,,,,,,",
            "4,GONE-USDT,OKX,,true,1,,,,,,,,,",
            "5,GONE-USDT-SWAP,OKX,,,1,,,,,,,,,",
            &format!("6,BACK-USDT,OKX,,1,1,1,1,{rest}"),
            &format!("8,NEW-USDT,OKX,,,1,1,1,{rest}"),
        ];
        assert_eq!(merged.text.lines().collect::<Vec<_>>(), expected);
        let found = (merged.added, merged.restricted, merged.still_restricted);
        assert_eq!(found, (names(&["NEW-USDT"]), names(&["GONE-USDT"]), names(&["BACK-USDT"])));
        let again = merge(Some(&merged.text), &list);
        assert_eq!((again.text, again.added, again.restricted), (merged.text, names(&[]), names(&[])));
    }

    #[test]
    fn names_that_a_table_cannot_hold_are_refused() {
        let existing = "symbol,number,venue\nBTC-USDT,1,SIM\n";
        let long = "BTC-USD-260327-100000-C".repeat(3);
        let merged = merge(Some(existing), &[listed("BTC-USDT", "1", "1"), listed(&long, "1", "1")]);
        assert_eq!((merged.listed, merged.added.len(), merged.refused.len()), (0, 0, 2));
        assert!(merged.refused[0].1.contains("of the venue SIM"), "{:?}", merged.refused);
        assert!(merged.refused[1].1.contains("is no symbol"), "{:?}", merged.refused);
    }

    #[test]
    fn a_mistake_in_a_table_is_named_with_its_line() {
        for (text, error) in [
            ("", TableMergeError::Header(1)),
            ("# a\nsymbol,number\n", TableMergeError::Header(2)),
            ("symbol,number,venue\nA,1\n", TableMergeError::Cells { line: 2, cells: 2, columns: 3 }),
            ("symbol,number,venue\nA,65536,OKX\n", TableMergeError::Number(2, "65536".to_owned())),
            ("symbol,number,venue\n\"A,1,OKX\n", TableMergeError::Torn(2)),
        ] {
            assert_eq!(merge_table(Some(text), &[], "OKX", |_| true), Err(error), "{text}");
        }
        let full = "symbol,number,venue\nA,65535,OKX\n";
        let none_left = merge_table(Some(full), &[listed("B", "1", "1")], "OKX", |_| true);
        assert_eq!(none_left, Err(TableMergeError::Full("B".to_owned())));
    }

    #[test]
    fn decimals_fit_the_steps_and_64_bits() {
        for (tick_size, lot, price, quantity) in [
            ("0.01", "0.00001", 8, 8),
            ("1", "1", 8, 8),
            ("0.0000000001", "1", 10, 0),
            ("0.0000000001", "0.1", 10, 8),
            ("0.00000001", "100", 8, 0),
            ("0.0000001", "1", 8, 8),
            ("0.10000000000", "0.000000001", 8, 9),
        ] {
            let found = (price_decimals(tick_size), quantity_decimals(lot, tick_size));
            assert_eq!(found, (price, quantity), "tick size {tick_size}, lot {lot}");
        }
    }
}
