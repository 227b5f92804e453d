//! Net and working quantity for each (account, symbol).
//!
//! All sums have 128 bits: no number of 64-bit quantities that fits a journal overflows them.

use tickpath_market::{AccountId, Side, SymbolId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::index::{Index, tag};
use crate::snapshot::{Load, Save, SnapshotError};

/// A position and what may still change it, each in units of 10⁻⁸ of the instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PositionView {
    /// Bought minus sold.
    pub net: i128,
    /// What may still be bought, or taken back of what was sold.
    pub working_buy: i128,
    /// What may still be sold, or taken back of what was bought.
    pub working_sell: i128,
}

/// The positions, in the order in which they were first needed.
pub(crate) struct Positions {
    list: Vec<Position>,
    index: Index,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Position {
    view: PositionView,
    account: AccountId,
    symbol: SymbolId,
    reserved: u64,
}

impl Positions {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), index: Index::new() }
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.list);
        self.index.save(save);
    }

    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        self.list = load.list()?;
        self.index.load(load)
    }

    /// The slot of a position, if it was ever needed.
    pub(crate) fn find(&self, account: AccountId, symbol: SymbolId) -> Option<u32> {
        self.index.find(tag(0, account.0.into(), symbol.0.into()), |slot| {
            let position = &self.list[slot as usize];
            position.account == account && position.symbol == symbol
        })
    }

    /// The slot of a position; a new one is flat.
    pub(crate) fn open(&mut self, account: AccountId, symbol: SymbolId) -> u32 {
        self.find(account, symbol).unwrap_or_else(|| {
            let slot = self.list.len() as u32;
            self.list.push(Position { view: PositionView::default(), account, symbol, reserved: 0 });
            self.index.insert(tag(0, account.0.into(), symbol.0.into()), slot);
            slot
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AccountId, SymbolId, PositionView)> + '_ {
        self.list.iter().map(|position| (position.account, position.symbol, position.view))
    }

    pub(crate) fn get(&self, slot: u32) -> &PositionView {
        &self.list[slot as usize].view
    }

    /// Changes what an order adds to the working quantity of its side.
    pub(crate) fn expose(&mut self, slot: u32, side: Side, before: i64, after: i64) {
        let change = i128::from(after) - i128::from(before);
        let view = &mut self.list[slot as usize].view;
        match side {
            Side::Buy => view.working_buy += change,
            Side::Sell => view.working_sell += change,
        }
    }

    /// Books a fill.
    pub(crate) fn fill(&mut self, slot: u32, side: Side, quantity: i64) {
        let view = &mut self.list[slot as usize].view;
        match side {
            Side::Buy => view.net += i128::from(quantity),
            Side::Sell => view.net -= i128::from(quantity),
        }
    }
}

impl PositionView {
    /// How far an order of this side reaches if all that works on its side is filled: positive is over zero on
    /// that side.
    pub(crate) fn reach(&self, side: Side) -> i128 {
        match side {
            Side::Buy => self.net + self.working_buy,
            Side::Sell => self.working_sell - self.net,
        }
    }
}
