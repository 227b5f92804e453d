//! `instruments.csv`: the instruments that can be traded.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use tickpath_market::{Price, Symbol, SymbolId, VenueId};
use tickpath_oms_core::{Instrument, TradingHours};
use tickpath_settings::{SettingsError, read_text, table_cells, table_lines};

use super::csv::{self, SettingsRow, TableColumns};
use super::limits::{MAX_ID, currency, flag, rate};
use super::venue::VenueSettings;

const COLUMNS: TableColumns = TableColumns(
    "symbol number venue multiplier? tick_size? lot? lowest_price? highest_price? hours? currency? \
     rate_limit? rate_window_ns? restricted?",
);

/// Returns the column names of a table of instruments.
pub fn instrument_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.names()
}

/// Reads instruments. A venue stands there by its name or number; where the venues are not known, any venue will do.
pub(super) fn read(file: &Path, venues: Option<&[VenueSettings]>) -> Result<Vec<Instrument>, SettingsError> {
    let (mut names, mut numbers) = (HashMap::new(), HashMap::new());
    csv::read(file, COLUMNS, |row| {
        let name: Option<Symbol> = row.parsed("symbol");
        let number = row.number("number", 0..=MAX_ID);
        row.check_unique("symbol", name, &mut names);
        row.check_unique("number", number, &mut numbers);
        Instrument {
            symbol: SymbolId(number.unwrap_or_default()),
            venue: row.read("venue", |cell| venue(cell, venues)).unwrap_or_default(),
            reserved: 0,
            name: name.unwrap_or_default(),
            multiplier: row.number("multiplier", 1..=i64::MAX).unwrap_or(1),
            tick_size: above_zero(row, "tick_size"),
            lot: above_zero(row, "lot"),
            hours: row.read("hours", hours).unwrap_or_default(),
            currency: row.read("currency", currency).unwrap_or_default(),
            restricted: row.read("restricted", flag).unwrap_or_default(),
            ..limited(row)
        }
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

fn limited(row: &mut SettingsRow<'_>) -> Instrument {
    let (lowest_price, highest_price): (Price, Price) =
        (row.parsed("lowest_price").unwrap_or_default(), row.parsed("highest_price").unwrap_or_default());
    if row.cell("lowest_price").is_some() != row.cell("highest_price").is_some() {
        row.add_mistake("highest_price", "a band has two ends; write both, or leave both empty for none");
    } else if highest_price < lowest_price {
        row.add_mistake("highest_price", "the band ends below its beginning; write the higher price here");
    }
    let (rate_limit, rate_window_ns) = rate(row);
    Instrument { lowest_price, highest_price, rate_limit, rate_window_ns, ..Instrument::default() }
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
