//! Venue names of orders that their venue does not know by the core's id: orders that were tried again or entered by
//! hand.
//!
//! Messages to a venue use the name that the order was last sent under. Reports find the order by an earlier name too,
//! and by the venue's own id if the order was entered with it.

use std::collections::BTreeMap;

use tickpath_market::ClientOrderId;
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Names of orders that do not go by the core's id.
#[derive(Debug, Default)]
pub(crate) struct OrderAliases {
    /// Order ids by all present and earlier names.
    orders: BTreeMap<OrderAlias, u64>,
    /// Present name of each order; zero if only the venue's own id is known.
    current: BTreeMap<u64, u64>,
}

/// Name of an order at its venue: the id that it was sent under, or the venue's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OrderAlias {
    venue: u16,
    is_venues_own: bool,
    id: u64,
}

/// A [`OrderAlias`] and its order in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedOrderAlias {
    id: u64,
    order: u64,
    venue: u16,
    is_venues_own: u16,
    reserved: u32,
}

impl OrderAliases {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// Adds the id that an order was sent under and the venue's own id; zero means none.
    pub(crate) fn add(&mut self, order: u64, venue: u16, sent_as: u64, own: u64) {
        self.orders.extend(aliases(venue, sent_as, own).map(|name| (name, order)));
        let current = self.current.entry(order).or_default();
        *current = if sent_as == 0 { *current } else { sent_as };
    }

    /// Returns the order that has or had one of these names.
    pub(crate) fn find(&self, venue: u16, sent_as: u64, own: u64) -> Option<u64> {
        aliases(venue, sent_as, own).find_map(|name| self.orders.get(&name)).copied()
    }

    /// Returns the id by which an order goes at its venue; none if only the venue's own id is known.
    pub(crate) fn current(&self, order: u64) -> Option<ClientOrderId> {
        let name = self.current.get(&order).map_or(order, |name| *name);
        (name != 0).then_some(ClientOrderId(name))
    }

    /// Returns whether a venue knows an order by a name in this table, whatever became of the order since. A denied
    /// order without such a name never reached a venue.
    #[inline]
    pub(crate) fn has_alias(&self, order: u64) -> bool {
        self.current.contains_key(&order)
    }

    /// Returns whether the order was sent under this id before it was sent under its present id.
    pub(crate) fn is_earlier(&self, order: u64, venue: u16, sent_as: u64) -> bool {
        let is_its_own = || sent_as == order || self.find(venue, sent_as, 0) == Some(order);
        self.current(order).is_some_and(|current| current.0 != sent_as) && is_its_own()
    }

    /// Drops the names of orders that were dropped at the end of a day.
    pub(crate) fn retain_known(&mut self, is_known: impl Fn(u64) -> bool) {
        self.orders.retain(|_, order| is_known(*order));
        self.current.retain(|order, _| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        let name = |(name, &order): (&OrderAlias, &u64)| SavedOrderAlias {
            id: name.id,
            order,
            venue: name.venue,
            is_venues_own: name.is_venues_own.into(),
            reserved: 0,
        };
        save.write_list(&self.orders.iter().map(name).collect::<Vec<_>>());
    }

    /// Loads the names. An order's highest name is its present one, because ids rise.
    pub(crate) fn load(load: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError> {
        let mut loaded = Self::default();
        for SavedOrderAlias { id, order, venue, is_venues_own, .. } in load.read_list()? {
            let (sent_as, own) = if is_venues_own == 0 { (id, 0) } else { (0, id) };
            loaded.add(order, venue, sent_as, own);
        }
        Ok(loaded)
    }
}

/// Returns the names of an order at a venue: the id it was sent under and the venue's own id; zero means none.
fn aliases(venue: u16, sent_as: u64, own: u64) -> impl Iterator<Item = OrderAlias> {
    let named = [(false, sent_as), (true, own)].into_iter().filter(|(_, id)| *id != 0);
    named.map(move |(is_venues_own, id)| OrderAlias { venue, is_venues_own, id })
}
