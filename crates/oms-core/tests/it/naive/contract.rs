//! The contract size of a symbol, in the naive model.

use tickpath_oms_core::Instrument;

/// Contract size of a symbol: the value of a product of price and quantity.
#[derive(Debug, Clone, Copy)]
pub struct Contract {
    multiplier: i128,
    /// Decimals of price, quantity and multiplier together.
    decimals: u32,
    /// Units of 10⁻⁸ in a unit of quantity.
    pub grain: i128,
}

impl Contract {
    pub fn of(instrument: &Instrument) -> Self {
        let quantity = u32::from(instrument.quantity_decimals());
        let decimals = u32::from(instrument.price_decimals()) + quantity + u32::from(instrument.multiplier_decimals);
        Self { multiplier: instrument.multiplier.into(), decimals, grain: 10_i128.pow(8 - quantity) }
    }

    /// Returns the value of a product of price and quantity in units of 10⁻¹⁶.
    pub fn value(&self, points: i128) -> i128 {
        let whole = points.saturating_mul(self.multiplier);
        match self.decimals <= 16 {
            true => whole.saturating_mul(10_i128.pow(16 - self.decimals)),
            false => whole / 10_i128.pow(self.decimals - 16),
        }
    }
}

impl Default for Contract {
    fn default() -> Self {
        Self { multiplier: 1, decimals: 16, grain: 1 }
    }
}
