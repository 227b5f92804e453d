//! Value of an order in money: price times quantity times contract size.

/// Contract size of an instrument, with the powers of ten of its prices and quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContractSize {
    /// Contract size without its decimals.
    pub(crate) multiplier: i64,
    /// Power of ten that brings price × quantity × multiplier to units of 10⁻¹⁶.
    pub(crate) exponent: i8,
    /// Power of ten that brings quantities to units of 10⁻⁸.
    pub(crate) quantity_exponent: u8,
}

impl Default for ContractSize {
    /// Returns the size of an instrument with 8 decimals and a contract of one unit.
    fn default() -> Self {
        Self::whole(1)
    }
}

impl ContractSize {
    /// Returns the size of an instrument with 8 decimals, in whole units of currency a point.
    pub const fn whole(multiplier: i64) -> Self {
        Self { multiplier, exponent: 0, quantity_exponent: 0 }
    }

    /// Returns its multiplier, its exponent and its quantity exponent, for a snapshot.
    pub fn parts(&self) -> (i64, i8, u8) {
        (self.multiplier, self.exponent, self.quantity_exponent)
    }

    /// Returns the size with these parts; a multiplier of zero is that of a symbol without a definition.
    pub fn from_parts(multiplier: i64, exponent: i8, quantity_exponent: u8) -> Self {
        Self { multiplier: multiplier.max(1), exponent, quantity_exponent }
    }

    /// Returns the value of a product of price and quantity, in units of 10⁻¹⁶ of the currency, saturated at 128 bits
    /// and rounded toward zero.
    #[inline]
    pub fn value(&self, product: i128) -> i128 {
        // Most contracts are one unit, and a checked product costs as much as all other checks.
        match *self {
            Self { multiplier: 1, exponent: 0, .. } => product,
            Self { multiplier, exponent: 0, .. } => product.saturating_mul(multiplier.into()),
            _ => self.scaled(product),
        }
    }

    /// Returns a quantity of the instrument in units of 10⁻⁸.
    #[inline]
    pub fn quantity(&self, quantity: i128) -> i128 {
        if self.quantity_exponent == 0 { quantity } else { quantity.saturating_mul(power(self.quantity_exponent)) }
    }

    #[cold]
    fn scaled(&self, product: i128) -> i128 {
        let by = power(self.exponent.unsigned_abs());
        let multiplier = i128::from(self.multiplier);
        if self.exponent > 0 {
            return product.saturating_mul(multiplier).saturating_mul(by);
        }
        match product.checked_mul(multiplier) {
            Some(value) => value / by,
            // The product is far above the power, so dividing first loses less than a unit in its last places.
            None => (product / by).saturating_mul(multiplier),
        }
    }
}

/// Returns a power of ten; exponents of valid instruments are at most 36.
fn power(exponent: u8) -> i128 {
    10_i128.checked_pow(exponent.into()).unwrap_or(i128::MAX)
}
