//! After which codes of its venue an order is tried again, and what that takes of it.

use std::collections::BTreeMap;

use tickpath_market::NewOrder;
use tickpath_risk::{GIVE_UP, OTHER_LINE, RejectRule};
use tickpath_slots::{Load, Save, SnapshotError};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::order::Order;
use crate::route::VENUES;

/// The table, and the orders that it may come to.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// By venue and code.
    rules: BTreeMap<(u16, u16), RejectRule>,
    /// By the id of an order that may be refused yet.
    tries: BTreeMap<u64, Try>,
}

/// What of an order is needed to try it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Try {
    /// As its venue was told last.
    pub(crate) request: NewOrder,
    /// When its client sent it, in ticks.
    pub(crate) sent: u64,
    order: u64,
    /// The line that brought the last refusal if it is to go by another one, one above its number; zero for any.
    pub(crate) refused_by: u16,
    /// How often it was tried again.
    pub(crate) count: u8,
    reserved: [u8; 5],
}

impl Again {
    /// Takes a rule; false if it says nothing that can be done.
    pub(crate) fn define(&mut self, rule: &RejectRule) -> bool {
        let is_good = rule.venue.0 < VENUES && rule.action <= OTHER_LINE;
        if is_good {
            self.rules.insert((rule.venue.0, rule.code), *rule);
        }
        is_good
    }

    /// After this code orders are over again; false if they were.
    pub(crate) fn end(&mut self, venue: u32, code: u16) -> bool {
        u16::try_from(venue).is_ok_and(|venue| self.rules.remove(&(venue, code)).is_some())
    }

    /// Whether no order can be tried again.
    #[inline]
    pub(crate) fn has_no_rules(&self) -> bool {
        self.rules.is_empty()
    }

    /// Keeps what is needed to try a new order again, if its venue has a code for that.
    #[cold]
    pub(crate) fn keep(&mut self, order: &Order, request: NewOrder, sent: u64) {
        if self.may_try(order.route) {
            let order = order.id;
            self.tries.insert(order, Try { request, sent, order, refused_by: 0, count: 0, reserved: [0; 5] });
        }
    }

    /// What is done after this code of a venue, if anything was said of it.
    pub(crate) fn rule(&self, venue: u16, code: u16) -> Option<&RejectRule> {
        self.rules.get(&(venue, code))
    }

    /// Whether there is a code after which this venue's orders are tried again.
    pub(crate) fn may_try(&self, venue: u16) -> bool {
        let mut rules = self.rules.range((venue, 0)..=(venue, u16::MAX));
        rules.any(|(_, rule)| rule.action != GIVE_UP && rule.times > 0)
    }

    /// An order is tried once more, by this request, and not by the line that has refused it, if one is named.
    pub(crate) fn note_try(&mut self, tried: &Try, request: NewOrder, refused_by: u16) {
        self.tries.insert(tried.order, Try { request, refused_by, count: tried.count + 1, ..*tried });
    }

    /// Whether no order may be refused yet that would be tried again.
    #[inline]
    pub(crate) fn has_no_tries(&self) -> bool {
        self.tries.is_empty()
    }

    /// What is needed to try this order again, if it may be.
    pub(crate) fn tried(&self, order: u64) -> Option<&Try> {
        self.tries.get(&order)
    }

    /// The ids of all that may be tried again.
    pub(crate) fn orders(&self) -> impl Iterator<Item = u64> {
        self.tries.keys().copied()
    }

    /// An order is not tried again any more.
    #[inline]
    pub(crate) fn forget(&mut self, order: u64) {
        if !self.tries.is_empty() {
            self.tries.remove(&order);
        }
    }

    /// A day has ended: orders are forgotten.
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
