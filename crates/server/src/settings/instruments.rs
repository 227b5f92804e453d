//! `instruments.csv`: what can be traded.

use std::collections::HashMap;
use std::path::Path;

use tickpath_market::{Symbol, SymbolId, VenueId};
use tickpath_orders::Instrument;
use tickpath_settings::SettingsError;

use super::Venue;
use super::csv::{self, Column};

/// Ids of symbols and accounts are below this.
pub(super) const MOST_ID: u32 = (1 << 16) - 1;

const COLUMNS: &[Column] = &[
    Column { name: "symbol", needed: true },
    Column { name: "number", needed: true },
    Column { name: "venue", needed: true },
    Column { name: "multiplier", needed: false },
];

/// Reads instruments. A venue stands there by its name or its number; where the venues are not known, any will do.
pub(super) fn read(file: &Path, venues: Option<&[Venue]>) -> Result<Vec<Instrument>, SettingsError> {
    let (mut names, mut numbers) = (HashMap::new(), HashMap::new());
    csv::read(file, COLUMNS, |row| {
        let name: Option<Symbol> = row.parsed("symbol");
        let number = row.number("number", 0..=MOST_ID);
        row.once("symbol", name, &mut names);
        row.once("number", number, &mut numbers);
        Instrument {
            symbol: SymbolId(number.unwrap_or_default()),
            venue: row.read("venue", |cell| venue(cell, venues)).unwrap_or_default(),
            reserved: 0,
            name: name.unwrap_or_default(),
            multiplier: row.number("multiplier", 1..=i64::MAX).unwrap_or(1),
        }
    })
}

fn venue(cell: &str, venues: Option<&[Venue]>) -> Result<VenueId, String> {
    let Some(venues) = venues else { return Ok(VenueId::default()) };
    let is_meant = |venue: &&Venue| venue.name == cell || venue.rules.venue.to_string() == cell;
    let found = venues.iter().find(is_meant).map(|venue| venue.rules.venue);
    found.ok_or_else(|| format!("'{cell}' is no [[venue]] of the OMS; write the name or the number of one"))
}
