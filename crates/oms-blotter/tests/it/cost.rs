//! Profit by average cost: against cash flow to the last digit, and against a naive model in fractions.

use proptest::prelude::*;
use tickpath_oms_blotter::PositionCost;

/// Max trades of a case, so that the naive model's fractions fit 128 bits.
const MAX_TRADES: usize = 12;

/// A position whose cost is a fraction, so that nothing is rounded.
struct Naive {
    net: i128,
    paid: Fraction,
    realised: Fraction,
    closes: i128,
}

#[derive(Debug, Clone, Copy)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Self {
        let (mut a, mut b) = (over.abs(), under.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let by = a.max(1) * under.signum();
        Self { over: over / by, under: under / by }
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }

    fn times(self, over: i128, under: i128) -> Self {
        Self::new(self.over * over, self.under * under)
    }
}

impl Naive {
    /// Books a trade in one step, which equals unit by unit.
    fn trade(&mut self, quantity: i128, price: i128) {
        let mut left = quantity;
        if self.net.signum() == -quantity.signum() && quantity != 0 {
            let closed = quantity.abs().min(self.net.abs());
            let cost = self.paid.times(closed, self.net.abs());
            let proceeds = Fraction::new(self.net.signum() * closed * price, 1);
            self.realised = self.realised.plus(proceeds).plus(cost.times(-1, 1));
            self.paid = self.paid.plus(cost.times(-1, 1));
            left += self.net.signum() * closed;
            self.net -= self.net.signum() * closed;
            self.closes += 1;
        }
        self.net += left;
        self.paid = self.paid.plus(Fraction::new(left * price, 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any quantities at any prices, negative ones too.
    #[test]
    fn realised_plus_open_profit_is_cash_flow_plus_value(
        start in any::<i64>(),
        start_price in any::<i64>(),
        trades in prop::collection::vec((any::<i64>(), any::<i64>()), 0..200),
        mark in any::<i64>(),
    ) {
        // 58 of the 64 bits, so that no sum of products leaves 128 bits.
        let less = |number: i64| number >> 6;
        let mut cost = PositionCost::carried(less(start).into(), Some(less(start_price)));
        let (mut net, mut cash) = (i128::from(less(start)), -i128::from(less(start)) * i128::from(less(start_price)));
        for (quantity, price) in trades {
            let (quantity, price) = (i128::from(less(quantity)), less(price));
            cost.trade(quantity, Some(price));
            net += quantity;
            cash -= quantity * i128::from(price);
        }
        prop_assert_eq!(cost.net, net);
        prop_assert_eq!(cost.realised + cost.open_profit(less(mark)), cash + net * i128::from(less(mark)));
        prop_assert!(cost.is_known);
        prop_assert!(net != 0 || cost.paid == 0, "a flat position has no cost: {}", cost.paid);
    }

    /// A share is rounded toward zero: each close is off by less than a unit, and that difference stays with the
    /// position.
    #[test]
    fn realised_profit_differs_from_the_naive_one_by_a_unit_a_close(
        trades in prop::collection::vec((-9_i64..10, 1_i64..1_000), 0..MAX_TRADES),
    ) {
        let none = Fraction::new(0, 1);
        let mut naive = Naive { net: 0, paid: none, realised: none, closes: 0 };
        let mut cost = PositionCost::FLAT;
        for &(quantity, price) in &trades {
            naive.trade(quantity.into(), price.into());
            cost.trade(quantity.into(), Some(price));
            prop_assert_eq!(cost.net, naive.net);
            let off = naive.realised.plus(Fraction::new(-cost.realised, 1));
            prop_assert!(off.over.abs() <= off.under * naive.closes, "{trades:?}: off by {off:?}");
        }
    }
}

#[test]
fn an_unknown_price_makes_profit_unknown_but_not_the_position() {
    let mut cost = PositionCost::carried(5, None);
    assert!(!cost.is_known && cost.net == 5);
    assert!(PositionCost::carried(0, None).is_known, "a flat position has no cost to know");
    cost.trade(-2, Some(100));
    assert_eq!((cost.net, cost.is_known, cost.average_price()), (3, false, None));
    let mut cost = PositionCost::FLAT;
    cost.trade(2, None);
    assert!(!cost.is_known && cost.net == 2);
}

#[test]
fn long_numbers_close_by_their_exact_share() {
    // Cost and quantities whose product needs more than 128 bits.
    let (many, price) = (i128::from(i64::MAX), i64::MAX / 3);
    let mut cost = PositionCost::FLAT;
    cost.trade(many, Some(price));
    cost.trade(many, Some(price));
    cost.trade(-many, Some(price));
    assert_eq!((cost.realised, cost.paid), (0, many * i128::from(price)));
}
