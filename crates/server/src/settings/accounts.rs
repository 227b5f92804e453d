//! `accounts.csv`: who may trade, and how much.

use std::collections::HashMap;
use std::path::Path;

use tickpath_market::{AccountId, Notional, Quantity, SCALE};
use tickpath_orders::AccountLimits;
use tickpath_settings::SettingsError;

use super::csv::{self, Column, Row};
use super::instruments::MOST_ID;

/// A limit is called as on the page of the risk checks. Those that may be missing are off then.
const COLUMNS: &[Column] = &[
    Column { name: "account", needed: true },
    Column { name: "rate_limit", needed: false },
    Column { name: "rate_window_ns", needed: false },
    Column { name: "max_order_quantity", needed: true },
    Column { name: "max_notional", needed: true },
    Column { name: "credit", needed: false },
    Column { name: "collar", needed: true },
    Column { name: "max_open_orders", needed: false },
    Column { name: "max_reference_age_ns", needed: true },
    Column { name: "max_request_age_ns", needed: false },
    Column { name: "max_position", needed: true },
];

/// The names of the columns of a table of accounts.
pub fn account_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.name)
}

/// Reads accounts.
pub(super) fn read(file: &Path) -> Result<Vec<AccountLimits>, SettingsError> {
    let mut numbers = HashMap::new();
    csv::read(file, COLUMNS, |row| {
        let number = row.number("account", 0..=MOST_ID);
        row.once("account", number, &mut numbers);
        limits(row, AccountId(number.unwrap_or_default()))
    })
}

fn limits(row: &mut Row<'_>, account: AccountId) -> AccountLimits {
    let rate_limit = row.number("rate_limit", 0..=u32::MAX).unwrap_or_default();
    if rate_limit > 0 && row.cell("rate_window_ns").is_none() {
        row.wrong("rate_window_ns", "a rate needs its window; write it, or leave rate_limit empty for none");
    }
    AccountLimits {
        account,
        rate_limit,
        rate_window_ns: row.number("rate_window_ns", 1..=u64::MAX).unwrap_or_default(),
        max_order_quantity: quantity(row, "max_order_quantity"),
        max_notional: money(row, "max_notional"),
        credit: money(row, "credit"),
        collar: row.number("collar", 0..=u32::MAX).unwrap_or_default(),
        max_open_orders: row.number("max_open_orders", 0..=u32::MAX).unwrap_or_default(),
        max_reference_age_ns: row.number("max_reference_age_ns", 1..=u64::MAX).unwrap_or_default(),
        max_request_age_ns: row.number("max_request_age_ns", 0..=u64::MAX).unwrap_or_default(),
        max_position: quantity(row, "max_position"),
    }
}

fn quantity(row: &mut Row<'_>, column: &str) -> Quantity {
    let quantity: Quantity = row.parsed(column).unwrap_or_default();
    if quantity < Quantity::ZERO {
        row.wrong(column, "a limit is not below zero; write the largest that is allowed");
    }
    quantity
}

/// An amount of currency; as a limit it may be larger than any price.
fn money(row: &mut Row<'_>, column: &str) -> [u8; 16] {
    row.read(column, notional).unwrap_or(Notional(0)).0.to_le_bytes()
}

fn notional(text: &str) -> Result<Notional, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.starts_with('-') {
        return Err("a limit is not below zero; write the largest that is allowed".into());
    }
    let small: Quantity = format!("0.{fraction}").parse().map_err(|reason| format!("{reason}"))?;
    let none = || format!("'{text}' is no amount; write a decimal number below 10 000 000 000 000 000 000 000");
    let whole: i128 =
        if whole.bytes().all(|digit| digit.is_ascii_digit()) { whole.parse().ok() } else { None }.ok_or_else(none)?;
    let scale = i128::from(SCALE);
    let units = whole.checked_mul(scale * scale).and_then(|units| units.checked_add(i128::from(small.0) * scale));
    units.map(Notional).ok_or_else(none)
}
