//! Limits as tables and sections write them: quantities, amounts, rates, currencies.

use std::str::FromStr;

use tickpath_market::{Currency, Notional, Quantity, SCALE};
use tickpath_settings::Section;

use super::csv::SettingsRow;

pub(super) const MAX_ID: u32 = (1 << 16) - 1;

const BELOW_ZERO: &str = "a limit is not below zero; write the largest that is allowed";

/// Amount of currency, not below zero; as a limit it may be larger than any price.
struct Amount(Notional);

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.starts_with('-') {
            return Err(BELOW_ZERO.to_owned());
        }
        let small: Quantity = format!("0.{fraction}").parse().map_err(|reason| format!("{reason}"))?;
        let none = || format!("'{text}' is no amount; write a decimal number below 10 000 000 000 000 000 000 000");
        let whole: i128 = if whole.bytes().all(|digit| digit.is_ascii_digit()) { whole.parse().ok() } else { None }
            .ok_or_else(none)?;
        let scale = i128::from(SCALE);
        let units = whole.checked_mul(scale * scale).and_then(|units| units.checked_add(i128::from(small.0) * scale));
        units.map(Notional).map(Self).ok_or_else(none)
    }
}

/// Reads the quantity in a cell; zero, which means no limit, if the cell is empty.
pub(super) fn quantity(row: &mut SettingsRow<'_>, column: &str) -> Quantity {
    let quantity: Quantity = row.parsed(column).unwrap_or_default();
    if quantity < Quantity::ZERO {
        row.add_mistake(column, BELOW_ZERO);
    }
    quantity
}

pub(super) fn money(row: &mut SettingsRow<'_>, column: &str) -> [u8; 16] {
    row.parsed(column).map_or(0, |Amount(amount)| amount.0).to_le_bytes()
}

/// Reads a rate limit and its window from the cells of a line.
pub(super) fn rate(row: &mut SettingsRow<'_>) -> (u32, u64) {
    let limit = row.number("rate_limit", 0..=u32::MAX).unwrap_or_default();
    if limit > 0 && row.cell("rate_window_ns").is_none() {
        row.add_mistake("rate_window_ns", "a rate needs its window; write it, or leave rate_limit empty for none");
    }
    (limit, row.number("rate_window_ns", 1..=u64::MAX).unwrap_or_default())
}

/// Takes the quantity of a key; zero, which means no limit, if the key is missing.
pub(super) fn quantity_of(section: &mut Section<'_>, key: &str) -> Quantity {
    let quantity: Quantity = section.parsed(key).unwrap_or_default();
    if quantity < Quantity::ZERO {
        section.add_mistake(key, BELOW_ZERO);
    }
    quantity
}

pub(super) fn money_of(section: &mut Section<'_>, key: &str) -> Notional {
    section.parsed(key).map_or(Notional(0), |Amount(amount)| amount)
}

/// Takes a rate limit and its window from a section.
pub(super) fn rate_of(section: &mut Section<'_>) -> (u32, u64) {
    let limit = section.number("rate_limit", 0..=u32::MAX).unwrap_or_default();
    if limit > 0 {
        section.require("rate_window_ns");
    }
    (limit, section.number("rate_window_ns", 1..=u64::MAX).unwrap_or_default())
}

/// Parses a currency code as ISO 4217 and exchanges write it: USD, TWD, USDT.
pub(super) fn currency(text: &str) -> Result<Currency, String> {
    let is_good = text.bytes().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    text.parse().ok().filter(|_| is_good).ok_or_else(|| {
        format!("'{text}' is no currency; write up to twelve capital letters and digits, like USD or USDT")
    })
}

/// Parses a flag to the code that a definition has for it.
pub(super) fn flag(text: &str) -> Result<u8, String> {
    match text {
        "true" | "1" => Ok(1),
        "false" | "0" => Ok(0),
        _ => Err(format!("'{text}' is neither true nor false; write one of them")),
    }
}
