//! Aliases: ids of orders that their venue does not know by the core's id, because they were tried again or entered by
//! hand.
//!
//! Messages to a venue use the id that the order was last sent under. Reports find the order by an earlier id too, and
//! by the venue's own id if the order was entered with it.

use std::collections::BTreeMap;

use tickpath_market::{ClientOrderId, VenueId};
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Aliases of the orders that do not go by the core's id.
#[derive(Debug, Default)]
pub(crate) struct OrderAliases {
    /// Order ids by all present and earlier aliases.
    orders: BTreeMap<OrderAlias, u64>,
    /// Present alias of each order; zero if only the venue's own id is known.
    current: BTreeMap<u64, u64>,
}

/// Id of an order at its venue: the id that the order was sent under, or the venue's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OrderAlias {
    venue: VenueId,
    is_venues_own: bool,
    id: u64,
}

/// An [`OrderAlias`] and its order in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedOrderAlias {
    id: u64,
    order: u64,
    venue: VenueId,
    is_venues_own: u16,
    reserved: u32,
}

impl OrderAliases {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// Adds the id that an order was sent under and the venue's own id; zero means none.
    pub(crate) fn add(&mut self, order: u64, venue: VenueId, sent_as: u64, own: u64) {
        self.orders.extend(aliases(venue, sent_as, own).map(|alias| (alias, order)));
        let current = self.current.entry(order).or_default();
        *current = if sent_as == 0 { *current } else { sent_as };
    }

    /// Returns the order that has or had one of these aliases.
    pub(crate) fn find(&self, venue: VenueId, sent_as: u64, own: u64) -> Option<u64> {
        aliases(venue, sent_as, own).find_map(|alias| self.orders.get(&alias)).copied()
    }

    /// Returns the id by which an order goes at its venue; none if only the venue's own id is known.
    pub(crate) fn current(&self, order: u64) -> Option<ClientOrderId> {
        let id = *self.current.get(&order).unwrap_or(&order);
        (id != 0).then_some(ClientOrderId(id))
    }

    /// Returns whether a venue knows an order by an alias, whatever became of the order since. A denied order without
    /// an alias never reached a venue.
    #[inline]
    pub(crate) fn has_alias(&self, order: u64) -> bool {
        self.current.contains_key(&order)
    }

    /// Returns whether the order was sent under this id before it was sent under its present id.
    pub(crate) fn is_earlier(&self, order: u64, venue: VenueId, sent_as: u64) -> bool {
        let is_its_own = || sent_as == order || self.find(venue, sent_as, 0) == Some(order);
        self.current(order).is_some_and(|current| current.0 != sent_as) && is_its_own()
    }

    /// Drops the aliases of orders that were dropped at the end of a day.
    pub(crate) fn retain_known(&mut self, is_known: impl Fn(u64) -> bool) {
        self.orders.retain(|_, order| is_known(*order));
        self.current.retain(|order, _| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        let saved = self.orders.iter().map(|(alias, &order)| {
            let OrderAlias { venue, is_venues_own, id } = *alias;
            SavedOrderAlias { id, order, venue, is_venues_own: is_venues_own.into(), reserved: 0 }
        });
        save.write_list(&saved.collect::<Vec<_>>());
    }

    /// Loads the aliases. An order's highest alias is its present one, because ids rise.
    pub(crate) fn load(load: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError> {
        let mut loaded = Self::default();
        for SavedOrderAlias { id, order, venue, is_venues_own, .. } in load.read_list()? {
            let (sent_as, own) = if is_venues_own == 0 { (id, 0) } else { (0, id) };
            loaded.add(order, venue, sent_as, own);
        }
        Ok(loaded)
    }
}

/// Returns the aliases of an order at a venue: the id it was sent under and the venue's own id; zero means none.
fn aliases(venue: VenueId, sent_as: u64, own: u64) -> impl Iterator<Item = OrderAlias> {
    let ids = [(false, sent_as), (true, own)].into_iter().filter(|(_, id)| *id != 0);
    ids.map(move |(is_venues_own, id)| OrderAlias { venue, is_venues_own, id })
}
