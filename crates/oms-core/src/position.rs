//! Net and working quantity for each (account, symbol).
//!
//! All sums have 128 bits: no number of 64-bit quantities that fits a journal overflows them.

use std::collections::HashMap;

use tickpath_market::{AccountId, Side, SymbolId};
use tickpath_oms_slots::{Index, Load, Save, SnapshotError, tag};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::SymbolLimits;

/// Position and the quantities that may still change it, in units of 10⁻⁸ of the instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PositionView {
    /// Bought minus sold.
    pub net: i128,
    /// Quantity that may still be bought, or taken back from sales.
    pub working_buy: i128,
    /// Quantity that may still be sold, or taken back from purchases.
    pub working_sell: i128,
}

/// The positions, in the order of their creation.
pub(crate) struct Positions {
    list: Vec<Position>,
    index: Index,
    own: Vec<Own>,
    /// Results of the day without the present value, as price × quantity: value sold, less value bought and the value
    /// at the start of the day.
    results: Vec<i128>,
    /// Slots of each account's positions.
    by_account: HashMap<u32, Vec<u32>>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Position {
    view: PositionView,
    account: AccountId,
    symbol: SymbolId,
    /// Index of the symbol limits plus one; zero if none were ever set.
    limits: u32,
    reserved: u32,
}

/// Limits of an account in a symbol, and whether they still hold.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Own {
    limits: SymbolLimits,
    holds: u64,
}

impl Positions {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), index: Index::new(), own: Vec::new(), results: Vec::new(), by_account: HashMap::new() }
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.list);
        self.index.save(save);
    }

    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        self.list = load.list()?;
        self.results = vec![0; self.list.len()];
        self.by_account.clear();
        for (slot, position) in (0..).zip(&self.list) {
            self.by_account.entry(position.account.0).or_default().push(slot);
        }
        self.index.load(load)
    }

    /// Saves the fields that core version 3 lacked.
    pub(crate) fn save_more(&self, save: &mut Save<'_>) {
        save.list(&self.own);
        save.list(&self.results);
    }

    pub(crate) fn load_more(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        (self.own, self.results) = (load.list()?, load.list()?);
        let is_there = |position: &Position| position.limits as usize <= self.own.len();
        let is_sound = self.results.len() == self.list.len() && self.list.iter().all(is_there);
        if is_sound { Ok(()) } else { Err(SnapshotError::Damaged) }
    }

    /// Makes all positions flat and returns their accounts.
    pub(crate) fn forget(&mut self) -> impl Iterator<Item = AccountId> + '_ {
        self.results.fill(0);
        self.list.iter_mut().map(|position| {
            position.view = PositionView::default();
            position.account
        })
    }

    /// Sets the limits of an account in a symbol.
    pub(crate) fn limit(&mut self, limits: &SymbolLimits) {
        let slot = self.open(limits.account, limits.symbol) as usize;
        let own = Own { limits: *limits, holds: 1 };
        match self.list[slot].limits {
            0 => {
                self.own.push(own);
                self.list[slot].limits = self.own.len() as u32;
            }
            place => self.own[place as usize - 1] = own,
        }
    }

    /// Ends the limits of an account in a symbol; returns false if there were none.
    pub(crate) fn end_limits(&mut self, account: AccountId, symbol: SymbolId) -> bool {
        let slot = self.find(account, symbol).map_or(0, |slot| self.list[slot as usize].limits);
        let own = slot.checked_sub(1).map(|place| &mut self.own[place as usize]);
        own.is_some_and(|own| std::mem::take(&mut own.holds) != 0)
    }

    /// Returns the limits of a position's account in its symbol, if any are set.
    #[inline]
    pub(crate) fn limits(&self, slot: u32) -> Option<&SymbolLimits> {
        let place = self.list[slot as usize].limits.checked_sub(1)?;
        Some(&self.own[place as usize]).filter(|own| own.holds != 0).map(|own| &own.limits)
    }

    /// Returns whether any limits in a symbol were ever set.
    pub(crate) fn has_limits(&self) -> bool {
        !self.own.is_empty()
    }

    /// Returns the slot of a position, if it exists.
    pub(crate) fn find(&self, account: AccountId, symbol: SymbolId) -> Option<u32> {
        self.index.find(tag(0, account.0.into(), symbol.0.into()), |slot| {
            let position = &self.list[slot as usize];
            position.account == account && position.symbol == symbol
        })
    }

    /// Returns the slot of a position and creates it flat if necessary.
    pub(crate) fn open(&mut self, account: AccountId, symbol: SymbolId) -> u32 {
        self.find(account, symbol).unwrap_or_else(|| {
            let slot = self.list.len() as u32;
            self.list.push(Position { view: PositionView::default(), account, symbol, limits: 0, reserved: 0 });
            self.results.push(0);
            self.by_account.entry(account.0).or_default().push(slot);
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

    /// Changes an order's share of the working quantity on its side.
    pub(crate) fn expose(&mut self, slot: u32, side: Side, before: i64, after: i64) {
        let change = i128::from(after) - i128::from(before);
        let view = &mut self.list[slot as usize].view;
        match side {
            Side::Buy => view.working_buy += change,
            Side::Sell => view.working_sell += change,
        }
    }

    /// Books a fill at a price.
    pub(crate) fn fill(&mut self, slot: u32, side: Side, quantity: i64, price: i64) {
        let signed = match side {
            Side::Buy => i128::from(quantity),
            Side::Sell => -i128::from(quantity),
        };
        self.add(slot, signed, price);
    }

    /// Adds a signed quantity to a position, at this price.
    pub(crate) fn add(&mut self, slot: u32, signed: i128, price: i64) {
        self.list[slot as usize].view.net += signed;
        let result = &mut self.results[slot as usize];
        *result = result.saturating_sub(signed.saturating_mul(price.into()));
    }

    /// Returns the positions of an account, as slot and symbol.
    pub(crate) fn of(&self, account: AccountId) -> impl Iterator<Item = (u32, SymbolId)> + '_ {
        let slots = self.by_account.get(&account.0).into_iter().flatten();
        slots.map(|&slot| (slot, self.list[slot as usize].symbol))
    }

    /// Returns a position's result of the day at this price, as price × quantity.
    pub(crate) fn result(&self, slot: u32, price: i64) -> i128 {
        let now = self.get(slot).net.saturating_mul(price.into());
        self.results[slot as usize].saturating_add(now)
    }

    /// Begins another day, with each position valued at its symbol's price.
    pub(crate) fn begin_day(&mut self, price: impl Fn(SymbolId) -> i64) {
        for (position, result) in self.list.iter().zip(&mut self.results) {
            *result = position.view.net.saturating_mul(price(position.symbol).into()).saturating_neg();
        }
    }

    /// Values the positions in a symbol at its first known price.
    pub(crate) fn begin(&mut self, symbol: SymbolId, price: i64) {
        let held = self.list.iter().zip(&mut self.results).filter(|(position, _)| position.symbol == symbol);
        held.for_each(|(position, result)| {
            *result = result.saturating_sub(position.view.net.saturating_mul(price.into()));
        });
    }
}

impl PositionView {
    /// Returns how far the position reaches on a side once all working orders on it are filled; positive if beyond zero
    /// on that side.
    pub(crate) fn reach(&self, side: Side) -> i128 {
        match side {
            Side::Buy => self.net + self.working_buy,
            Side::Sell => self.working_sell - self.net,
        }
    }
}
