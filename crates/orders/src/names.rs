//! What venues call orders that they do not know by our id: one that was tried again, or that was entered by hand.
//!
//! An order goes by the name that its venue has heard last, in all that the venue is told of it. What the venue says under
//! an earlier name finds it, too, and so does what it says under its own id of an order that was entered by that.

use std::collections::BTreeMap;

use tickpath_market::ClientOrderId;
use tickpath_slots::{Load, Save, SnapshotError};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The names of orders that go by another one than our id.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The orders, by all names that they have or had.
    orders: BTreeMap<Name, u64>,
    /// What each goes by now; zero if its venue has only told its own id.
    current: BTreeMap<u64, u64>,
}

/// How a venue calls an order: by what it was sent as, or by the venue's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    venue: u16,
    is_venues_own: bool,
    id: u64,
}

/// A [`Name`] and its order in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedName {
    id: u64,
    order: u64,
    venue: u16,
    is_venues_own: u16,
    reserved: u32,
}

impl Names {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// An order was sent as this, or has this id of its venue's own; zero is none.
    pub(crate) fn add(&mut self, order: u64, venue: u16, sent_as: u64, own: u64) {
        self.orders.extend(names(venue, sent_as, own).map(|name| (name, order)));
        let current = self.current.entry(order).or_default();
        *current = if sent_as == 0 { *current } else { sent_as };
    }

    /// The order that has or had one of these names.
    pub(crate) fn find(&self, venue: u16, sent_as: u64, own: u64) -> Option<u64> {
        names(venue, sent_as, own).find_map(|name| self.orders.get(&name)).copied()
    }

    /// What an order goes by at its venue; none if the venue has heard of no name.
    pub(crate) fn current(&self, order: u64) -> Option<ClientOrderId> {
        let name = self.current.get(&order).map_or(order, |name| *name);
        (name != 0).then_some(ClientOrderId(name))
    }

    /// Whether a venue has an order by one of these names, whatever became of it since: one that is denied here has not been
    /// heard of by any other.
    #[inline]
    pub(crate) fn knows(&self, order: u64) -> bool {
        self.current.contains_key(&order)
    }

    /// Whether an order was sent as this before it was sent as what it goes by now.
    pub(crate) fn is_earlier(&self, order: u64, venue: u16, sent_as: u64) -> bool {
        let is_its_own = || sent_as == order || self.find(venue, sent_as, 0) == Some(order);
        self.current(order).is_some_and(|current| current.0 != sent_as) && is_its_own()
    }

    /// A day has ended: names of orders that are forgotten go.
    pub(crate) fn end_day(&mut self, is_known: impl Fn(u64) -> bool) {
        self.orders.retain(|_, order| is_known(*order));
        self.current.retain(|order, _| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        let name = |(name, &order): (&Name, &u64)| SavedName {
            id: name.id,
            order,
            venue: name.venue,
            is_venues_own: name.is_venues_own.into(),
            reserved: 0,
        };
        save.list(&self.orders.iter().map(name).collect::<Vec<_>>());
    }

    /// Of the names of an order the highest is the last: ids rise.
    pub(crate) fn load(load: &mut Load<'_>) -> Result<Self, SnapshotError> {
        let mut loaded = Self::default();
        for SavedName { id, order, venue, is_venues_own, .. } in load.list()? {
            let (sent_as, own) = if is_venues_own == 0 { (id, 0) } else { (0, id) };
            loaded.add(order, venue, sent_as, own);
        }
        Ok(loaded)
    }
}

/// The names that a venue has for an order: what it was sent as, and its own id; zero is none.
fn names(venue: u16, sent_as: u64, own: u64) -> impl Iterator<Item = Name> {
    let named = [(false, sent_as), (true, own)].into_iter().filter(|(_, id)| *id != 0);
    named.map(move |(is_venues_own, id)| Name { venue, is_venues_own, id })
}
