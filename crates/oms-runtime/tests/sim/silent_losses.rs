//! Orders with a request or a report that a venue has lost silently, by their names at the venue.

use std::collections::BTreeSet;

/// The orders, and the reasons for which an order may stay in doubt although its venue answers.
#[derive(Default)]
pub struct SilentLosses {
    names: BTreeSet<u64>,
    /// Orders that had ended or had fills when their venue's day ended: the venue has forgotten them.
    forgotten: BTreeSet<u64>,
    /// Orders that an operator has resolved: later fills contradict the operator's entry.
    resolved: BTreeSet<u64>,
    /// Orders whose cancel has arrived at their venue.
    canceled: BTreeSet<u64>,
    /// The host has lost power: the venue knows tries that the journal has lost.
    is_power_lost: bool,
}

impl SilentLosses {
    /// Records a lost request or report of this order.
    pub fn note(&mut self, name: u64) {
        self.names.insert(name);
    }

    /// Returns the orders since the last rest.
    pub fn names(&self) -> impl Iterator<Item = u64> + '_ {
        self.names.iter().copied()
    }

    /// Clears the orders, which were all checked at a rest.
    pub fn clear(&mut self) {
        self.names.clear();
    }

    /// Records that a venue has ended its day and forgets this order or its fills.
    pub fn forget(&mut self, name: u64) {
        self.forgotten.insert(name);
    }

    /// Records that an operator has resolved this order.
    pub fn resolve(&mut self, order: u64) {
        self.resolved.insert(order);
    }

    /// Records a power loss of the host.
    pub fn lose_power(&mut self) {
        self.is_power_lost = true;
    }

    /// Returns whether an order may stay in doubt although its venue answers.
    pub fn may_stay_in_doubt(&self, name: u64) -> bool {
        self.is_power_lost || self.forgotten.contains(&name) || self.resolved.contains(&name)
    }

    /// Records that a cancel of this order has arrived at its venue.
    pub fn cancel(&mut self, name: u64) {
        self.canceled.insert(name);
    }

    /// Clears the cancels: only later ones count for [`Self::is_canceled`].
    pub fn forget_cancels(&mut self) {
        self.canceled.clear();
    }

    /// Returns whether a cancel of this order has arrived.
    pub fn is_canceled(&self, name: u64) -> bool {
        self.canceled.contains(&name)
    }
}
