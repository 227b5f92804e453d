//! `instruments.csv`: the instruments that can be traded.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use tickpath_market::{DECIMALS, MAX_DECIMALS, Price, Symbol, SymbolId, VenueId, parse_decimal};
use tickpath_oms_core::{Instrument, TradingHours};
use tickpath_settings::{SettingsError, read_text, table_cells, table_lines};

use super::csv::{self, SettingsRow, TableColumns};
use super::limits::{MAX_ID, currency, flag, money, rate};
use super::venue::VenueSettings;

const COLUMNS: TableColumns = TableColumns(
    "symbol number venue multiplier? tick_size? lot? minimum_quantity? minimum_notional? lowest_price? highest_price? \
     hours? currency? contract? code? price_decimals? quantity_decimals? rate_limit? rate_window_ns? restricted?",
);

/// Returns the column names of a table of instruments.
pub fn instrument_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.names()
}

/// A row of the table.
#[derive(Debug)]
pub(super) enum InstrumentLine {
    /// An instrument, with its number at its exchange, which is zero if the table has none.
    Traded(Instrument, u64),
    /// Name of an instrument that the OMS does not trade, and the reason.
    Untraded(Symbol, &'static str),
}

/// Reads instruments. A venue stands there by its name or number; where the venues are not known, any venue will do.
pub(super) fn read(file: &Path, venues: Option<&[VenueSettings]>) -> Result<Vec<InstrumentLine>, SettingsError> {
    let (mut names, mut numbers) = (HashMap::new(), HashMap::new());
    csv::read(file, COLUMNS, |row| {
        let name: Option<Symbol> = row.parsed("symbol");
        let number = row.number("number", 0..=MAX_ID);
        row.check_unique("symbol", name, &mut names);
        row.check_unique("number", number, &mut numbers);
        if let Some(reason) = untraded_reason(row) {
            return InstrumentLine::Untraded(name.unwrap_or_default(), reason);
        }
        let (multiplier, multiplier_decimals) = row.read("multiplier", multiplier).unwrap_or((1, 0));
        let code = row.number("code", 0..=u64::MAX).unwrap_or_default();
        let instrument = Instrument {
            symbol: SymbolId(number.unwrap_or_default()),
            venue: row.read("venue", |cell| venue(cell, venues)).unwrap_or_default(),
            multiplier,
            multiplier_decimals,
            tick_size: above_zero(row, "tick_size"),
            lot: above_zero(row, "lot"),
            minimum_quantity: above_zero(row, "minimum_quantity"),
            minimum_notional: money(row, "minimum_notional"),
            hours: row.read("hours", hours).unwrap_or_default(),
            restricted: row.read("restricted", flag).unwrap_or_default(),
            ..limited(row, name.unwrap_or_default())
        }
        .with_currency(row.read("currency", currency).unwrap_or_default());
        InstrumentLine::Traded(instrument, code)
    })
}

/// Returns the name, the number and the venue of each row that has a name and a number; none without such a table. For
/// a command to a running OMS, to which mistakes elsewhere in the table do not matter.
pub fn list_instruments(file: &Path) -> Option<Vec<(String, u16, Option<String>)>> {
    let text = read_text(file).ok()?;
    let mut rows = table_lines(&text).filter_map(|(_, line)| table_cells(line));
    let head = rows.next()?;
    let index = |column: &str| head.iter().position(|name| name == column);
    let (name, number, venue) = (index("symbol")?, index("number")?, index("venue"));
    let listed = rows.filter_map(|cells| {
        let name = cells.get(name).filter(|name| !name.is_empty())?;
        let venue = venue.and_then(|venue| cells.get(venue)).map(str::to_owned);
        Some((name.to_owned(), cells.get(number)?.parse().ok()?, venue))
    });
    Some(listed.collect())
}

/// Parses a contract size to a number and how many of its digits are decimals.
fn multiplier(text: &str) -> Result<(i64, u8), String> {
    let digits = text.split_once('.').map_or("", |(_, fraction)| fraction.trim_end_matches('0'));
    let decimals = u8::try_from(digits.len()).ok().filter(|&decimals| decimals <= MAX_DECIMALS);
    let number = decimals.and_then(|decimals| Some((parse_decimal(text, decimals).ok()?, decimals)));
    number.filter(|&(number, _)| number > 0).ok_or_else(|| {
        format!(
            "'{text}' is no contract size; write a decimal number above zero, like 50 or 0.01, of at most 18 digits"
        )
    })
}

/// Returns why the OMS does not trade an instrument of this form: its value, its prices or its quantities. Its other
/// cells are not read then.
fn untraded_reason(row: &mut SettingsRow<'_>) -> Option<&'static str> {
    let contract = row.read("contract", |cell| match cell {
        "linear" | "quanto" => Ok(None),
        "inverse" => Ok(Some("the value of an inverse contract is not price × quantity")),
        _ => Err(format!("'{cell}' is no kind of contract; write linear, quanto or inverse, or leave the cell empty")),
    });
    let mut decimals = |column: &str| row.number(column, 0..=MAX_DECIMALS).filter(|&decimals| decimals != DECIMALS);
    let (price, quantity) = (decimals("price_decimals"), decimals("quantity_decimals"));
    let by_decimals = price.or(quantity).map(|_| "only prices and quantities of 8 decimals are traded");
    contract.flatten().or(by_decimals)
}

fn limited(row: &mut SettingsRow<'_>, name: Symbol) -> Instrument {
    let (lowest_price, highest_price): (Price, Price) =
        (row.parsed("lowest_price").unwrap_or_default(), row.parsed("highest_price").unwrap_or_default());
    if row.cell("lowest_price").is_some() != row.cell("highest_price").is_some() {
        row.add_mistake("highest_price", "a band has two ends; write both, or leave both empty for none");
    } else if highest_price < lowest_price {
        row.add_mistake("highest_price", "the band ends below its beginning; write the higher price here");
    }
    let (rate_limit, rate_window_ns) = rate(row);
    Instrument { lowest_price, highest_price, rate_limit, rate_window_ns, ..Instrument::named(name) }
}

fn above_zero<T: Default + PartialOrd + FromStr<Err: Display>>(row: &mut SettingsRow<'_>, column: &str) -> T {
    let value: Option<T> = row.parsed(column);
    if value.as_ref().is_some_and(|value| *value <= T::default()) {
        row.add_mistake(column, "it must be above zero; leave the cell empty for none");
    }
    value.unwrap_or_default()
}

/// Parses one or two parts of the day, UTC, like 00:45-05:45 21:00-02:00, where the second ends after midnight.
fn hours(text: &str) -> Result<[TradingHours; 2], String> {
    let none =
        || format!("'{text}' are no hours; write one or two parts of the day, UTC, like 00:45-05:45 07:00-21:00");
    let mut hours = [TradingHours::default(); 2];
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.is_empty() || parts.len() > hours.len() {
        return Err(none());
    }
    for (to, part) in hours.iter_mut().zip(parts) {
        let (opens, closes) = part.split_once('-').ok_or_else(none)?;
        let (opens_s, closes_s) = (time(opens).ok_or_else(none)?, time(closes).ok_or_else(none)?);
        if opens_s == closes_s {
            return Err(none());
        }
        *to = TradingHours { opens_s, closes_s };
    }
    Ok(hours)
}

/// Parses a time of the day to seconds: 13:45 or 13:45:30.
fn time(text: &str) -> Option<u32> {
    let mut parts = text.split(':').map(|part| part.parse::<u32>().ok().filter(|_| part.len() == 2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().map_or(Some(0), |second| second)?;
    let is_good = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_good.then_some(hour * 3_600 + minute * 60 + second)
}

fn venue(cell: &str, venues: Option<&[VenueSettings]>) -> Result<VenueId, String> {
    let Some(venues) = venues else { return Ok(VenueId::default()) };
    let is_named = |venue: &&VenueSettings| venue.name == cell || venue.rules.venue.to_string() == cell;
    let found = venues.iter().find(is_named).map(|venue| venue.rules.venue);
    found.ok_or_else(|| format!("'{cell}' is no [[venue]] of the OMS; write the name or the number of one"))
}
