//! Profit by the average cost method, in integers.
//!
//! ```text
//!   net       bought minus sold, in units of 10⁻⁸
//!   paid      cost of what is held, as price × quantity, in units of 10⁻¹⁶; negative for a short position
//!   realised  proceeds of what was closed less its cost, in units of 10⁻¹⁶
//!   open      net × mark − paid
//! ```
//! A trade on the side of the position adds to `net` and `paid`. A trade against it closes: the closed part takes its
//! share of `paid` with it, rounded toward zero to 10⁻¹⁶, and the rest of the cost stays with the position. A trade
//! through zero closes all, with the whole cost, and opens the rest at its own price.
//!
//! Invariant: `realised − paid` changes by the trade's cash flow and by nothing else. So realised plus open profit is
//! the cash flow plus the value of the position, exactly, however a share was rounded.

/// A position with its cost and its realised profit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionCost {
    /// Bought minus sold, in units of 10⁻⁸ of the instrument.
    pub net: i128,
    /// Cost of what is held, in units of 10⁻¹⁶ of the currency, before the multiplier.
    pub paid: i128,
    /// Realised profit, in units of 10⁻¹⁶ of the currency, before the multiplier.
    pub realised: i128,
    /// Whether every price behind these numbers is known; without it `paid` and `realised` are meaningless.
    pub is_known: bool,
}

impl PositionCost {
    /// A flat position without realised profit.
    pub const FLAT: Self = Self { net: 0, paid: 0, realised: 0, is_known: true };

    /// Creates a position from before the day; `average_price` is its average cost in units of 10⁻⁸, if known.
    pub fn carried(net: i128, price: Option<i64>) -> Self {
        let paid = net.saturating_mul(price.unwrap_or(0).into());
        Self { net, paid, realised: 0, is_known: price.is_some() || net == 0 }
    }

    /// Books a signed quantity at a price; after a trade without a price only the position is known.
    pub fn trade(&mut self, quantity: i128, price: Option<i64>) {
        self.is_known &= price.is_some() || quantity == 0;
        let price = i128::from(price.unwrap_or(0));
        let against = quantity.signum() == -self.net.signum();
        let closes = if against { quantity.abs().min(self.net.abs()) } else { 0 };
        if closes > 0 {
            let side = self.net.signum();
            let cost = share(self.paid, closes, self.net.abs());
            let proceeds = (side * closes).saturating_mul(price);
            self.realised = self.realised.saturating_add(proceeds.saturating_sub(cost));
            self.paid -= cost;
            self.net -= side * closes;
        }
        let opens = quantity + closes * -quantity.signum();
        self.net += opens;
        self.paid = self.paid.saturating_add(opens.saturating_mul(price));
    }

    /// Returns the open profit at a price in units of 10⁻⁸, in units of 10⁻¹⁶ before the multiplier.
    pub fn open_profit(&self, mark: i64) -> i128 {
        self.net.saturating_mul(mark.into()).saturating_sub(self.paid)
    }

    /// Returns the average cost of the position, in units of 10⁻⁸ by [`average`]; none if the position is flat or its
    /// cost is unknown.
    pub fn average_price(&self) -> Option<i128> {
        average(self.paid, self.net).filter(|_| self.is_known)
    }
}

/// Returns a value over a quantity, rounded to the nearest unit, halves away from zero; none if the quantity is zero.
pub fn average(value: i128, quantity: i128) -> Option<i128> {
    let by = quantity.unsigned_abs();
    let (whole, rest) = (value.unsigned_abs().checked_div(by)?, value.unsigned_abs() % by);
    let rounded = whole + u128::from(rest >= by - rest);
    let is_negative = (value < 0) != (quantity < 0);
    i128::try_from(rounded).ok().map(|rounded| if is_negative { -rounded } else { rounded })
}

/// Returns the share `part / whole` of a value, rounded toward zero. `part` is positive and at most `whole`.
fn share(value: i128, part: i128, whole: i128) -> i128 {
    if part == whole {
        return value;
    }
    let (part, whole) = (part.unsigned_abs(), whole.unsigned_abs());
    let (each, rest) = (value.unsigned_abs() / whole, value.unsigned_abs() % whole);
    let of_rest = match rest.checked_mul(part) {
        Some(product) => product / whole,
        None => long_share(rest, part, whole),
    };
    // The result is at most the value itself, so it fits.
    (each * part + of_rest).cast_signed() * value.signum()
}

/// Returns `rest * part / whole` of a product that needs more than 128 bits, bit by bit. `rest` is below `whole`, and
/// `whole` below 2¹²⁶: no sum of 64-bit quantities that fits a journal is larger.
fn long_share(rest: u128, part: u128, whole: u128) -> u128 {
    let (mut quotient, mut left) = (0, 0_u128);
    for bit in (0..u128::BITS).rev() {
        quotient <<= 1;
        left = (left << 1) + if part >> bit & 1 == 1 { rest } else { 0 };
        while left >= whole {
            left -= whole;
            quotient += 1;
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_long_product_is_the_share_of_a_short_one() {
        for (rest, part, whole) in [(6, 5, 7), (1, 1, 2), (0, 3, 9), (999_999, 123_456, 1_000_003)] {
            assert_eq!(long_share(rest, part, whole), rest * part / whole, "{rest} * {part} / {whole}");
        }
        // (2^100 - 1) * 2^99 / 2^100 is 2^99 - 1/2.
        let (whole, part) = (1_u128 << 100, 1_u128 << 99);
        assert_eq!(long_share(whole - 1, part, whole), part - 1);
    }

    #[test]
    fn averages_round_halves_away_from_zero() {
        for (value, quantity, expected) in
            [(7, 2, Some(4)), (-7, 2, Some(-4)), (7, -2, Some(-4)), (-7, -2, Some(4)), (7, 3, Some(2)), (7, 0, None)]
        {
            assert_eq!(average(value, quantity), expected, "{value} / {quantity}");
        }
    }
}
