//! Orders that their venue rejects for now: the OMS sends each again, under another id.

use std::collections::BTreeMap;

/// The names under which orders have arrived at their venues.
#[derive(Default)]
pub struct OrderRetries {
    /// Orders by the tag of their clients.
    by_tag: BTreeMap<u64, u64>,
    /// Orders by each later name; the first name is the order's own id.
    by_name: BTreeMap<u64, u64>,
    /// The latest name of each order.
    latest: BTreeMap<u64, u64>,
}

impl OrderRetries {
    /// Records a new order that arrived under this name.
    pub fn arrived(&mut self, tag: u64, name: u64) {
        let order = *self.by_tag.entry(tag).or_insert(name);
        if order != name {
            self.by_name.insert(name, order);
        }
        self.latest.insert(order, name);
    }

    /// Returns the last name under which a client's order arrived.
    pub fn latest_of(&self, tag: u64) -> Option<u64> {
        self.latest.get(self.by_tag.get(&tag)?).copied()
    }

    /// Returns the order that arrived under a name.
    pub fn order(&self, name: u64) -> u64 {
        self.by_name.get(&name).copied().unwrap_or(name)
    }

    /// Returns all names of an order, the latest first.
    pub fn names(&self, order: u64) -> impl Iterator<Item = u64> + '_ {
        let later = self.by_name.iter().rev().filter(move |(_, of)| **of == order).map(|(name, _)| *name);
        later.chain([order])
    }

    /// Returns whether another try has arrived since.
    pub fn is_over(&self, name: u64) -> bool {
        self.latest.get(&self.order(name)).is_some_and(|latest| *latest != name)
    }
}
