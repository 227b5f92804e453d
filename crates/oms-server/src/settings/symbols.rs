//! `symbols.csv`: the limits of an account in one symbol, beside its line in `accounts.csv`.

use std::collections::HashMap;
use std::path::Path;

use tickpath_market::{AccountId, SymbolId};
use tickpath_oms_core::{AccountLimits, Instrument, SymbolLimits};
use tickpath_settings::SettingsError;

use super::csv::{self, TableColumns};
use super::limits::{MAX_ID, flag, quantity};

const COLUMNS: TableColumns = TableColumns("account symbol max_position? max_order_quantity? restricted? no_short?");

/// Returns the column names of a table of symbols.
pub fn symbol_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.names()
}

/// Reads the table. Any account or symbol passes if the table of these could not be read.
pub(super) fn read(
    file: &Path,
    accounts: Option<&[AccountLimits]>,
    instruments: Option<&[Instrument]>,
) -> Result<Vec<SymbolLimits>, SettingsError> {
    let mut pairs = HashMap::new();
    csv::read(file, COLUMNS, |row| {
        let number = row.number("account", 0..=MAX_ID);
        let is_known = |limits: &AccountLimits| Some(limits.account.0) == number;
        if let (Some(number), Some(accounts)) = (number, accounts)
            && !accounts.iter().any(is_known)
        {
            row.add_mistake(
                "account",
                format!("{number} is no account of the table of accounts; write the number of one"),
            );
        }
        let name = row.cell("symbol").map(str::to_owned);
        let symbol = row.read("symbol", |name| symbol(name, instruments));
        let pair = number.zip(name).map(|(account, name)| format!("account {account} with symbol {name}"));
        row.check_unique("symbol", pair, &mut pairs);
        SymbolLimits {
            account: AccountId(number.unwrap_or_default()),
            symbol: symbol.unwrap_or_default(),
            max_position: quantity(row, "max_position"),
            max_order_quantity: quantity(row, "max_order_quantity"),
            restricted: row.read("restricted", flag).unwrap_or_default(),
            no_short: row.read("no_short", flag).unwrap_or_default(),
            reserved: [0; 6],
        }
    })
}

fn symbol(name: &str, instruments: Option<&[Instrument]>) -> Result<SymbolId, String> {
    let Some(instruments) = instruments else { return Ok(SymbolId::default()) };
    let known = instruments.iter().find(|instrument| instrument.name().as_str() == name);
    let known = known.map(|instrument| instrument.symbol);
    known.ok_or_else(|| format!("'{name}' is no symbol of the table of instruments; write the name of one"))
}
