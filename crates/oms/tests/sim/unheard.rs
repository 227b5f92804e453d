//! Orders of which a venue has lost a request or a report in silence, by the names under which the venue has them.

use std::collections::BTreeSet;

/// The orders, and all that excuses one of them from being known again once its venue answers.
#[derive(Default)]
pub struct Unheard {
    names: BTreeSet<u64>,
    /// Orders that had ended or had fills when their venue's day ended: the venue has forgotten those.
    forgotten: BTreeSet<u64>,
    /// Orders that an operator has resolved: later fills are held against that word.
    resolved: BTreeSet<u64>,
    /// Orders of which a cancel has arrived at their venue.
    canceled: BTreeSet<u64>,
    /// The host has lost its power: the venue knows tries that the journal has lost.
    is_power_lost: bool,
}

impl Unheard {
    /// A request or a report of this order is lost.
    pub fn note(&mut self, name: u64) {
        self.names.insert(name);
    }

    /// The orders since the last rest.
    pub fn names(&self) -> impl Iterator<Item = u64> + '_ {
        self.names.iter().copied()
    }

    /// The world is at rest: each order was checked.
    pub fn rest(&mut self) {
        self.names.clear();
    }

    /// A venue has ended its day, and forgets this order or its fills.
    pub fn forget(&mut self, name: u64) {
        self.forgotten.insert(name);
    }

    /// An operator resolves this order.
    pub fn resolve(&mut self, order: u64) {
        self.resolved.insert(order);
    }

    /// The host loses its power.
    pub fn lose_power(&mut self) {
        self.is_power_lost = true;
    }

    /// Returns whether an order may stay in doubt although its venue answers.
    pub fn may_stay_in_doubt(&self, name: u64) -> bool {
        self.is_power_lost || self.forgotten.contains(&name) || self.resolved.contains(&name)
    }

    /// A cancel of this order has arrived at its venue.
    pub fn cancel(&mut self, name: u64) {
        self.canceled.insert(name);
    }

    /// Only cancels from here on count for [`Self::is_canceled`].
    pub fn forget_cancels(&mut self) {
        self.canceled.clear();
    }

    /// Returns whether a cancel of this order has arrived.
    pub fn is_canceled(&self, name: u64) -> bool {
        self.canceled.contains(&name)
    }
}
