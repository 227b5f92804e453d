//! Retry rules by venue and reject code, and the retry state of orders.

use std::collections::BTreeMap;

use tickpath_market::NewOrder;
use tickpath_oms_risk::{GIVE_UP, OTHER_LINE, RejectRule};
use tickpath_oms_slots::{Load, Save, SnapshotError};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::order::Order;
use crate::route::VENUES;

/// The retry rules, and the orders to which they may apply.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// Rules by venue and code.
    rules: BTreeMap<(u16, u16), RejectRule>,
    /// Retry state by order id, for orders that may still be rejected.
    tries: BTreeMap<u64, Try>,
}

/// Data needed to try an order again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Try {
    /// The request as last sent to the venue.
    pub(crate) request: NewOrder,
    /// Time at which the client sent the order, in ticks.
    pub(crate) sent: u64,
    order: u64,
    /// Line that delivered the last rejection, as its number plus one, if the retry should avoid it; zero for any line.
    pub(crate) refused_by: u16,
    /// Number of retries so far.
    pub(crate) count: u8,
    reserved: [u8; 5],
}

impl Again {
    /// Sets a rule; returns false if its venue or its action is out of range.
    pub(crate) fn define(&mut self, rule: &RejectRule) -> bool {
        let is_good = rule.venue.0 < VENUES && rule.action <= OTHER_LINE;
        if is_good {
            self.rules.insert((rule.venue.0, rule.code), *rule);
        }
        is_good
    }

    /// Removes the rule of a code, after which orders end again; returns false if there was none.
    pub(crate) fn end(&mut self, venue: u32, code: u16) -> bool {
        u16::try_from(venue).is_ok_and(|venue| self.rules.remove(&(venue, code)).is_some())
    }

    /// Returns whether there are no retry rules.
    #[inline]
    pub(crate) fn has_no_rules(&self) -> bool {
        self.rules.is_empty()
    }

    /// Keeps the data to try a new order again, if its venue has a retry rule.
    #[cold]
    pub(crate) fn keep(&mut self, order: &Order, request: NewOrder, sent: u64) {
        if self.may_try(order.route) {
            let order = order.id;
            self.tries.insert(order, Try { request, sent, order, refused_by: 0, count: 0, reserved: [0; 5] });
        }
    }

    /// Returns the rule for a venue's code, if one is set.
    pub(crate) fn rule(&self, venue: u16, code: u16) -> Option<&RejectRule> {
        self.rules.get(&(venue, code))
    }

    /// Returns whether any rule of this venue allows a retry.
    pub(crate) fn may_try(&self, venue: u16) -> bool {
        let mut rules = self.rules.range((venue, 0)..=(venue, u16::MAX));
        rules.any(|(_, rule)| rule.action != GIVE_UP && rule.times > 0)
    }

    /// Notes a retry, its request, and the line that it should avoid, if any.
    pub(crate) fn note_try(&mut self, tried: &Try, request: NewOrder, refused_by: u16) {
        self.tries.insert(tried.order, Try { request, refused_by, count: tried.count + 1, ..*tried });
    }

    /// Returns whether there is no order that could be tried again.
    #[inline]
    pub(crate) fn has_no_tries(&self) -> bool {
        self.tries.is_empty()
    }

    /// Returns the retry state of an order, if it may be tried again.
    pub(crate) fn tried(&self, order: u64) -> Option<&Try> {
        self.tries.get(&order)
    }

    /// Returns the ids of all orders that may be tried again.
    pub(crate) fn orders(&self) -> impl Iterator<Item = u64> {
        self.tries.keys().copied()
    }

    /// Drops the retry state of an order.
    #[inline]
    pub(crate) fn forget(&mut self, order: u64) {
        if !self.tries.is_empty() {
            self.tries.remove(&order);
        }
    }

    /// Drops the retry state of orders that were dropped at the end of a day.
    pub(crate) fn end_day(&mut self, is_known: impl Fn(u64) -> bool) {
        self.tries.retain(|order, _| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.rules.values().copied().collect::<Vec<_>>());
        save.list(&self.tries.values().copied().collect::<Vec<_>>());
    }

    pub(crate) fn load(load: &mut Load<'_>) -> Result<Self, SnapshotError> {
        let (rules, tries) = (load.list::<RejectRule>()?, load.list::<Try>()?);
        Ok(Self {
            rules: rules.into_iter().map(|rule| ((rule.venue.0, rule.code), rule)).collect(),
            tries: tries.into_iter().map(|tried| (tried.order, tried)).collect(),
        })
    }
}
