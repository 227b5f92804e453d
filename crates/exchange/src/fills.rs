//! The fills of the day, by execution id: what the operator takes back or corrects.

use tickpath_market::{ExecId, OrderId, Price, Quantity};

use crate::used::IdMap;

/// Why a fill is not taken back or corrected. Nothing has changed, and nobody was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FillError {
    /// No fill of this day has the id.
    #[error("no fill of this day has the execution id {0}; take the id from the fill's report, before the day ends")]
    Unknown(ExecId),
    /// It was taken back before.
    #[error("the fill {0} was taken back already; there is nothing left of it to change")]
    Busted(ExecId),
    /// The corrected price is not above zero.
    #[error("the corrected price is not above zero; give the price that holds")]
    Price,
    /// The corrected quantity is not above zero, or the order's quantities have no sum.
    #[error("the corrected quantity is not above zero, or too large to be counted; to take the fill back, bust it")]
    Quantity,
}

/// One fill of one order, as it holds now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill {
    pub order: OrderId,
    pub price: Price,
    /// Zero once the fill is taken back.
    pub quantity: Quantity,
    /// The order's event that the fill was; zero once it was taken back or corrected.
    pub sequence: u64,
    /// Filled of the order behind this fill.
    pub cumulative: Quantity,
}

/// The fills of the day. Execution ids are a count, so a fill's place follows from its id.
#[derive(Debug)]
pub(crate) struct Fills {
    /// Fills of earlier days: the last execution id before today.
    before: u64,
    today: Vec<Fill>,
    /// Places of the fills of each order, as far as they are indexed: a status request indexes the rest.
    by_order: IdMap<u64, Vec<u32>>,
    indexed: usize,
    expected: usize,
}

impl Fills {
    /// None yet, with room for so many a day before memory is allocated on the way.
    pub fn with_capacity(expected: usize) -> Self {
        Self { before: 0, today: Vec::with_capacity(expected), by_order: IdMap::default(), indexed: 0, expected }
    }

    /// Adds a fill; gives its id.
    pub fn push(&mut self, fill: Fill) -> ExecId {
        self.today.push(fill);
        ExecId(self.before + self.today.len() as u64)
    }

    /// The fills of an order that hold as they were reported, oldest first.
    pub fn of(&mut self, order: OrderId) -> impl Iterator<Item = (ExecId, Fill)> + '_ {
        for (place, fill) in (0..).zip(&self.today).skip(self.indexed) {
            self.by_order.entry(fill.order.0).or_default().push(place);
        }
        self.indexed = self.today.len();
        let places = self.by_order.get(&order.0).into_iter().flatten();
        let fills = places.map(|&place| (ExecId(self.before + u64::from(place) + 1), self.today[place as usize]));
        fills.filter(|(_, fill)| fill.sequence > 0)
    }

    /// A fill that can be changed.
    pub fn get(&mut self, id: ExecId) -> Result<&mut Fill, FillError> {
        let at = id.0.checked_sub(self.before + 1).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.today.get_mut(at)) {
            None => Err(FillError::Unknown(id)),
            Some(fill) if fill.quantity == Quantity::ZERO => Err(FillError::Busted(id)),
            Some(fill) => Ok(fill),
        }
    }

    /// Forgets the day's fills and gives their memory back. The count goes on.
    pub fn end_day(&mut self) {
        self.before += self.today.len() as u64;
        self.today = Vec::with_capacity(self.expected);
        (self.by_order, self.indexed) = (IdMap::default(), 0);
    }
}
