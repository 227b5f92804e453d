//! Net and working quantity for each (account, symbol).
//!
//! All sums have 128 bits: no number of 64-bit quantities that fits a journal overflows them.

use std::collections::HashMap;

use tickpath_market::{AccountId, Side, SymbolId};
use tickpath_oms_slots::{Index, SnapshotError, SnapshotReader, SnapshotWriter, tag};
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
#[derive(Default)]
pub(crate) struct PositionTable {
    list: Vec<PositionEntry>,
    index: Index,
    symbol_limits: Vec<SymbolLimitsEntry>,
    /// Results of the day without the present value, as price × quantity: value sold, less value bought and the value
    /// at the start of the day.
    results: Vec<i128>,
    /// Slots of each account's positions.
    by_account: HashMap<u32, Vec<u32>>,
    /// Positions may be older than their symbol's first price: the core was loaded from a snapshot of core version 3.
    pub(crate) has_unpriced: bool,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PositionEntry {
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
struct SymbolLimitsEntry {
    limits: SymbolLimits,
    is_active: u64,
}

impl PositionTable {
    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.list);
        self.index.save(save);
    }

    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.list = load.read_list()?;
        self.results = vec![0; self.list.len()];
        self.by_account.clear();
        for (slot, position) in (0..).zip(&self.list) {
            self.by_account.entry(position.account.0).or_default().push(slot);
        }
        self.index.load(load)
    }

    /// Saves the fields that core version 3 lacked.
    pub(crate) fn save_more(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.symbol_limits);
        save.write_list(&self.results);
    }

    pub(crate) fn load_more(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        (self.symbol_limits, self.results) = (load.read_list()?, load.read_list()?);
        let has_its_limits = |position: &PositionEntry| position.limits as usize <= self.symbol_limits.len();
        let is_sound = self.results.len() == self.list.len() && self.list.iter().all(has_its_limits);
        if is_sound { Ok(()) } else { Err(SnapshotError::Damaged) }
    }

    /// Makes all positions flat and returns their accounts.
    pub(crate) fn flatten_all(&mut self) -> impl Iterator<Item = AccountId> + '_ {
        self.results.fill(0);
        self.list.iter_mut().map(|position| {
            position.view = PositionView::default();
            position.account
        })
    }

    pub(crate) fn set_limits(&mut self, limits: &SymbolLimits) {
        let slot = self.find_or_create(limits.account, limits.symbol) as usize;
        let own = SymbolLimitsEntry { limits: *limits, is_active: 1 };
        match self.list[slot].limits {
            0 => {
                self.symbol_limits.push(own);
                self.list[slot].limits = self.symbol_limits.len() as u32;
            }
            index => self.symbol_limits[index as usize - 1] = own,
        }
    }

    /// Ends the limits of an account in a symbol; returns false if there were none.
    pub(crate) fn end_limits(&mut self, account: AccountId, symbol: SymbolId) -> bool {
        let slot = self.find(account, symbol).map_or(0, |slot| self.list[slot as usize].limits);
        let own = slot.checked_sub(1).map(|index| &mut self.symbol_limits[index as usize]);
        own.is_some_and(|own| std::mem::take(&mut own.is_active) != 0)
    }

    /// Returns the limits of a position's account in its symbol, if any are set.
    #[inline]
    pub(crate) fn limits(&self, slot: u32) -> Option<&SymbolLimits> {
        let index = self.list[slot as usize].limits.checked_sub(1)?;
        Some(&self.symbol_limits[index as usize]).filter(|own| own.is_active != 0).map(|own| &own.limits)
    }

    /// Returns whether any limits in a symbol were ever set.
    pub(crate) fn has_limits(&self) -> bool {
        !self.symbol_limits.is_empty()
    }

    pub(crate) fn find(&self, account: AccountId, symbol: SymbolId) -> Option<u32> {
        self.index.find(tag(0, account.0.into(), symbol.0.into()), |slot| {
            let position = &self.list[slot as usize];
            position.account == account && position.symbol == symbol
        })
    }

    /// Returns the slot of a position and creates it flat if necessary.
    pub(crate) fn find_or_create(&mut self, account: AccountId, symbol: SymbolId) -> u32 {
        self.find(account, symbol).unwrap_or_else(|| {
            let slot = self.list.len() as u32;
            self.list.push(PositionEntry { view: PositionView::default(), account, symbol, limits: 0, reserved: 0 });
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
    pub(crate) fn change_working(&mut self, slot: u32, side: Side, before: i64, after: i64) {
        let change = i128::from(after) - i128::from(before);
        let view = &mut self.list[slot as usize].view;
        match side {
            Side::Buy => view.working_buy += change,
            Side::Sell => view.working_sell += change,
        }
    }

    pub(crate) fn book_fill(&mut self, slot: u32, side: Side, quantity: i64, price: i64) {
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
    pub(crate) fn of_account(&self, account: AccountId) -> impl Iterator<Item = (u32, SymbolId)> + '_ {
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
    pub(crate) fn set_first_price(&mut self, symbol: SymbolId, price: i64) {
        let held = self.list.iter().zip(&mut self.results).filter(|(position, _)| position.symbol == symbol);
        held.for_each(|(position, result)| {
            *result = result.saturating_sub(position.view.net.saturating_mul(price.into()));
        });
    }
}

impl PositionView {
    /// Returns how far the position reaches on a side once all working orders on it are filled; positive if beyond zero
    /// on that side.
    pub(crate) fn worst_position(&self, side: Side) -> i128 {
        match side {
            Side::Buy => self.net + self.working_buy,
            Side::Sell => self.working_sell - self.net,
        }
    }
}
