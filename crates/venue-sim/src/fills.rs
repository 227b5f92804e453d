//! The fills of the day by execution id, for busts and corrections by the operator.

use tickpath_market::{ExecId, OrderId, Price, Quantity};

use crate::used_ids::IdMap;

/// Error of a bust or correction. No state has changed, and no report was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FillError {
    /// No fill of this day has the id.
    #[error("no fill of this day has the execution id {0}; take the id from the fill's report, before the day ends")]
    Unknown(ExecId),
    /// The fill was busted before.
    #[error("the fill {0} is busted already, and cannot be changed any more")]
    Busted(ExecId),
    /// The corrected price is not above zero.
    #[error("the corrected price is not above zero; give the correct price")]
    Price,
    /// The corrected quantity is not above zero, or makes the order's total overflow.
    #[error("the corrected quantity is not above zero, or too large to be counted; to cancel the fill, bust it")]
    Quantity,
}

/// One fill of one order, with its present price and quantity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VenueFill {
    pub order: OrderId,
    pub price: Price,
    /// Filled quantity; zero once the fill is busted.
    pub quantity: Quantity,
    /// Sequence number of the fill among the order's events; zero once the fill is busted or corrected.
    pub sequence: u64,
    /// Order's filled quantity after this fill.
    pub cumulative: Quantity,
}

/// Fills of the day. Execution ids are a count, so a fill's index follows from its id.
#[derive(Debug)]
pub(crate) struct DayFills {
    /// Number of fills on earlier days, which is the last execution id before today.
    earlier_fills: u64,
    today: Vec<VenueFill>,
    /// Indices of each order's fills, up to `indexed`.
    by_order: IdMap<u64, Vec<u32>>,
    /// Number of fills in `by_order`: a status request indexes the rest.
    indexed: usize,
    expected: usize,
}

impl DayFills {
    /// Creates an empty list with room for this number of fills a day; more fills allocate as they come.
    pub fn with_capacity(expected: usize) -> Self {
        Self { earlier_fills: 0, today: Vec::with_capacity(expected), by_order: IdMap::default(), indexed: 0, expected }
    }

    /// Adds a fill. Returns its execution id.
    pub fn push(&mut self, fill: VenueFill) -> ExecId {
        self.today.push(fill);
        ExecId(self.earlier_fills + self.today.len() as u64)
    }

    /// Returns the fills of an order that were neither busted nor corrected, oldest first.
    pub fn of_order(&mut self, order: OrderId) -> impl Iterator<Item = (ExecId, VenueFill)> + '_ {
        for (index, fill) in (0..).zip(&self.today).skip(self.indexed) {
            self.by_order.entry(fill.order.0).or_default().push(index);
        }
        self.indexed = self.today.len();
        let indices = self.by_order.get(&order.0).into_iter().flatten();
        let fills =
            indices.map(|&index| (ExecId(self.earlier_fills + u64::from(index) + 1), self.today[index as usize]));
        fills.filter(|(_, fill)| fill.sequence > 0)
    }

    /// Returns a fill for a change, unless it is unknown or busted.
    pub fn get(&mut self, id: ExecId) -> Result<&mut VenueFill, FillError> {
        let index = id.0.checked_sub(self.earlier_fills + 1).and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.today.get_mut(index)) {
            None => Err(FillError::Unknown(id)),
            Some(fill) if fill.quantity == Quantity::ZERO => Err(FillError::Busted(id)),
            Some(fill) => Ok(fill),
        }
    }

    /// Removes the day's fills and frees their memory. Execution ids continue.
    pub fn end_day(&mut self) {
        self.earlier_fills += self.today.len() as u64;
        self.today = Vec::with_capacity(self.expected);
        (self.by_order, self.indexed) = (IdMap::default(), 0);
    }
}
