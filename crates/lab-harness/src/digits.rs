//! Round numbers for plans.

/// Rounds a value down to this number of significant digits.
pub fn round_down(value: f64, digits: u8) -> f64 {
    let step = 10f64.powf(value.log10().floor() + 1.0 - f64::from(digits));
    (value / step).floor() * step
}
