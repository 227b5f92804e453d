//! `accounts.csv`: the accounts that may trade, and their limits.

use std::collections::HashMap;
use std::path::Path;

use tickpath_market::AccountId;
use tickpath_oms_core::AccountLimits;
use tickpath_settings::SettingsError;

use super::csv::{self, SettingsRow, TableColumns};
use super::limits::{MAX_ID, currency, flag, money, quantity, rate};

/// Columns, named as on the page of the risk checks. An optional limit that is missing is off.
const COLUMNS: TableColumns = TableColumns(
    "account rate_limit? rate_window_ns? max_order_quantity max_notional credit? collar max_open_orders? \
     max_reference_age_ns max_request_age_ns? max_position currency? order_trade_free? order_trade_ratio? \
     duplicate_window_ns? no_self_match? max_gross_value? max_loss?",
);

/// Returns the column names of a table of accounts.
pub fn account_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.names()
}

pub(super) fn read(file: &Path) -> Result<Vec<AccountLimits>, SettingsError> {
    let mut numbers = HashMap::new();
    csv::read(file, COLUMNS, |row| {
        let number = row.number("account", 0..=MAX_ID);
        row.check_unique("account", number, &mut numbers);
        limits(row, AccountId(number.unwrap_or_default()))
    })
}

fn limits(row: &mut SettingsRow<'_>, account: AccountId) -> AccountLimits {
    let (rate_limit, rate_window_ns) = rate(row);
    AccountLimits {
        account,
        rate_limit,
        rate_window_ns,
        max_order_quantity: quantity(row, "max_order_quantity"),
        max_notional: money(row, "max_notional"),
        credit: money(row, "credit"),
        collar: row.number("collar", 0..=u32::MAX).unwrap_or_default(),
        max_open_orders: row.number("max_open_orders", 0..=u32::MAX).unwrap_or_default(),
        max_reference_age_ns: row.number("max_reference_age_ns", 1..=u64::MAX).unwrap_or_default(),
        max_request_age_ns: row.number("max_request_age_ns", 0..=u64::MAX).unwrap_or_default(),
        max_position: quantity(row, "max_position"),
        order_trade_free: row.number("order_trade_free", 0..=u32::MAX).unwrap_or_default(),
        order_trade_ratio: row.number("order_trade_ratio", 0..=u32::MAX).unwrap_or_default(),
        no_self_match: row.read("no_self_match", flag).unwrap_or_default(),
        reserved: [0; 3],
        duplicate_window_ns: row.number("duplicate_window_ns", 0..=u64::MAX).unwrap_or_default(),
        max_gross_value: money(row, "max_gross_value"),
        max_loss: money(row, "max_loss"),
        ..AccountLimits::default().with_currency(row.read("currency", currency).unwrap_or_default())
    }
}
