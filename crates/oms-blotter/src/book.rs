//! The fills of an account in an instrument over a day, with the resulting position and cost.

use tickpath_market::{AccountId, Side, SymbolId};
use tickpath_oms_core::ContractSize;

use crate::cost::{PositionCost, average};
use crate::row::{BlotterFill, BlotterPosition};

/// A position: its state at the start of the day, and the indices of its fills.
#[derive(Debug, Clone)]
pub(crate) struct PositionBook {
    start: PositionCost,
    now: PositionCost,
    /// Indices among the day's fills, in the order of their first reports.
    fills: Vec<usize>,
}

impl PositionBook {
    /// Creates a position with its state at the start of the day.
    pub fn begin(start: PositionCost) -> Self {
        let start = PositionCost { realised: 0, is_known: start.is_known || start.net == 0, ..start };
        Self { start, now: start, fills: Vec::new() }
    }

    /// Adds a fill.
    pub fn add(&mut self, index: usize, fill: &BlotterFill) {
        self.fills.push(index);
        book_fill(&mut self.now, fill);
    }

    /// Changes the position at the start of the day, which an admin has entered, and recomputes the day's fills.
    pub fn adjust_start(&mut self, change: i128, price: Option<i64>, fills: &[BlotterFill]) {
        self.start.trade(change, price);
        self.recompute(fills);
    }

    /// Recomputes the position from the day's fills, after one of them has changed.
    pub fn recompute(&mut self, fills: &[BlotterFill]) {
        self.now = self.cost_after(self.start, fills);
    }

    /// Returns the position at the end of the day.
    pub fn end(&self) -> PositionCost {
        self.now
    }

    /// Returns whether the position has a row.
    pub fn is_shown(&self) -> bool {
        self.start.net != 0 || self.start.realised != 0 || !self.fills.is_empty()
    }

    /// Returns the row, valued at `mark`; `start_price` replaces the cost of the start position.
    pub fn row(
        &self,
        (account, symbol): (AccountId, SymbolId),
        fills: &[BlotterFill],
        size: ContractSize,
        start_price: Option<i64>,
        mark: Option<i64>,
    ) -> BlotterPosition {
        let (start, now) = match start_price {
            None => (self.start, self.now),
            Some(price) => {
                let start = PositionCost::carried(self.start.net, Some(price));
                (start, self.cost_after(start, fills))
            }
        };
        let money = |value: i128| size.value(value);
        let of_side =
            |side: Side| traded(self.fills.iter().map(|&index| &fills[index]).filter(move |fill| fill.side == side));
        let (bought_quantity, bought_price) = of_side(Side::Buy);
        let (sold_quantity, sold_price) = of_side(Side::Sell);
        let open = match mark {
            Some(mark) => Some(now.open_profit(mark)),
            None => (now.net == 0).then_some(0),
        };
        BlotterPosition {
            account,
            symbol,
            multiplier: (1, 0),
            start_quantity: start.net,
            start_price: start.average_price(),
            bought_quantity,
            bought_price,
            sold_quantity,
            sold_price,
            end_quantity: now.net,
            average_price: now.average_price(),
            mark,
            realised: now.is_known.then(|| money(now.realised)),
            open: open.filter(|_| now.is_known).map(money),
        }
    }

    fn cost_after(&self, start: PositionCost, fills: &[BlotterFill]) -> PositionCost {
        let mut cost = start;
        self.fills.iter().for_each(|&index| book_fill(&mut cost, &fills[index]));
        cost
    }
}

/// Returns the total quantity of fills and their average price; none if a price is unknown.
pub(crate) fn traded<'a>(fills: impl Iterator<Item = &'a BlotterFill>) -> (i128, Option<i128>) {
    let (mut quantity, mut value) = (0_i128, Some(0_i128));
    for fill in fills.filter(|fill| fill.counted.0 != 0) {
        let counted = i128::from(fill.counted.0);
        quantity += counted;
        let each = fill.price.map(|price| counted * i128::from(price.0));
        value = value.zip(each).map(|(value, each)| value.saturating_add(each));
    }
    (quantity, value.and_then(|value| average(value, quantity)))
}

fn book_fill(cost: &mut PositionCost, fill: &BlotterFill) {
    cost.trade(fill.signed(), fill.price.map(|price| price.0));
}
