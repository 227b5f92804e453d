//! Numbers as the exchange writes them: in quotes, always with eight decimals.

use tickpath_market::{Price, Quantity, SCALE};

/// Returns a price with eight decimals.
pub(crate) fn price_text(price: Price) -> String {
    eight_decimals(price.0.into())
}

/// Returns a quantity with eight decimals.
pub(crate) fn quantity_text(quantity: Quantity) -> String {
    eight_decimals(quantity.0.into())
}

/// Returns a value in units of 10⁻¹⁶ with eight decimals; further digits are cut off.
pub(crate) fn value_text(units: i128) -> String {
    eight_decimals(units / i128::from(SCALE))
}

/// Returns units of 10⁻⁸ with eight decimals.
pub(crate) fn eight_decimals(units: i128) -> String {
    let (scale, magnitude) = (u128::from(SCALE.unsigned_abs()), units.unsigned_abs());
    let sign = if units < 0 { "-" } else { "" };
    format!("{sign}{}.{:08}", magnitude / scale, magnitude % scale)
}
