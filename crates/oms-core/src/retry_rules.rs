//! Retry rules by venue and reject code, and the retry state of orders.

use std::collections::BTreeMap;

use tickpath_market::{NewOrder, VenueId};
use tickpath_oms_risk::{GIVE_UP, OTHER_LINE, RejectRule};
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::order::Order;
use crate::venue_table::VENUE_LIMIT;

/// The retry rules, and the orders to which they may apply.
#[derive(Debug, Default)]
pub(crate) struct RetryRules {
    /// Rules by venue and code.
    pub(crate) rules: BTreeMap<(VenueId, u16), RejectRule>,
    /// Retry state by order id, for orders that may still be rejected.
    pub(crate) states: BTreeMap<u64, RetryState>,
}

/// Data needed to try an order again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RetryState {
    /// The request as last sent to the venue.
    pub(crate) request: NewOrder,
    /// Time at which the client sent the order, in ticks.
    pub(crate) sent: u64,
    order: u64,
    /// Line that delivered the last rejection, as its number plus one, if the retry should avoid it; zero for any line.
    pub(crate) avoided_line: u16,
    /// Number of retries so far.
    pub(crate) count: u8,
    reserved: [u8; 5],
}

impl RetryRules {
    /// Sets a rule; returns false if its venue or its action is out of range.
    pub(crate) fn define(&mut self, rule: &RejectRule) -> bool {
        let is_good = rule.venue.0 < VENUE_LIMIT && rule.action <= OTHER_LINE;
        if is_good {
            self.rules.insert((rule.venue, rule.code), *rule);
        }
        is_good
    }

    /// Removes the rule of a code, after which orders end again; returns false if there was none.
    pub(crate) fn remove_rule(&mut self, venue: u32, code: u16) -> bool {
        u16::try_from(venue).is_ok_and(|venue| self.rules.remove(&(VenueId(venue), code)).is_some())
    }

    /// Keeps the data to try a new order again, if its venue has a retry rule.
    #[cold]
    pub(crate) fn track(&mut self, order: &Order, request: NewOrder, sent: u64) {
        if self.allows_retry(order.venue) {
            let order = order.id;
            self.states.insert(order, RetryState { request, sent, order, avoided_line: 0, count: 0, reserved: [0; 5] });
        }
    }

    /// Returns the rule for a venue's code, if one is set.
    pub(crate) fn rule(&self, venue: VenueId, code: u16) -> Option<&RejectRule> {
        self.rules.get(&(venue, code))
    }

    /// Returns whether any rule of this venue allows a retry.
    pub(crate) fn allows_retry(&self, venue: VenueId) -> bool {
        let mut rules = self.rules.range((venue, 0)..=(venue, u16::MAX));
        rules.any(|(_, rule)| rule.action != GIVE_UP && rule.times > 0)
    }

    /// Notes a retry, its request, and the line that it should avoid, if any.
    pub(crate) fn record_retry(&mut self, before: &RetryState, request: NewOrder, avoided_line: u16) {
        self.states.insert(before.order, RetryState { request, avoided_line, count: before.count + 1, ..*before });
    }

    /// Drops the retry state of an order.
    #[inline]
    pub(crate) fn untrack(&mut self, order: u64) {
        if !self.states.is_empty() {
            self.states.remove(&order);
        }
    }

    /// Drops the retry state of orders that were dropped at the end of a day.
    pub(crate) fn retain_known(&mut self, is_known: impl Fn(u64) -> bool) {
        self.states.retain(|order, _| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.rules.values().copied().collect::<Vec<_>>());
        save.write_list(&self.states.values().copied().collect::<Vec<_>>());
    }

    pub(crate) fn load(load: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError> {
        let (rules, states) = (load.read_list::<RejectRule>()?, load.read_list::<RetryState>()?);
        Ok(Self {
            rules: rules.into_iter().map(|rule| ((rule.venue, rule.code), rule)).collect(),
            states: states.into_iter().map(|state| (state.order, state)).collect(),
        })
    }
}
