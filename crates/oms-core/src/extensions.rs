//! Extensions of orders: fields beside the fixed fields of an order, for the orders that have them. Design:
//! `docs/design/order-extensions.md`.
//!
//! ```text
//!   account, text id ──> by_text ──┐
//!   order id ──────────────────────┼──> by_order ──> Extension
//!   next end time ───────> due ────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{AccountId, ClientOrderId, OrderExtension, OrderId, TextId};
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Extension of an order, kept as long as the order.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Extension {
    /// Id of the order.
    pub(crate) order: u64,
    /// End time, in nanoseconds since the Unix epoch; zero if the order has none.
    pub(crate) expire_ns: u64,
    /// Time at which the order is to end, or its end is to be tried again; zero if neither.
    pub(crate) due_ns: u64,
    pub(crate) account: AccountId,
    pub(crate) text_id: TextId,
}

/// Extensions of the orders that have one.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    by_order: BTreeMap<u64, Extension>,
    /// Latest order with each text id.
    by_text: BTreeMap<(AccountId, TextId), u64>,
    /// Times at which orders are to end, each with its order.
    due: BTreeSet<(u64, u64)>,
}

impl Extension {
    /// Builds the message, under the id by which its receiver knows the request.
    pub(crate) fn message(&self, client_order_id: ClientOrderId) -> OrderExtension {
        let Self { order, expire_ns, account, text_id, .. } = *self;
        OrderExtension { order_id: OrderId(order), client_order_id, expire_ns, account, text_id }
    }
}

impl Extensions {
    pub(crate) fn insert(&mut self, extension: Extension) {
        if !extension.text_id.is_none() {
            self.by_text.insert((extension.account, extension.text_id), extension.order);
        }
        if extension.due_ns != 0 {
            self.due.insert((extension.due_ns, extension.order));
        }
        self.by_order.insert(extension.order, extension);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_order.is_empty()
    }

    /// Returns the first time at which an order is to end.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|&(due_ns, _)| due_ns)
    }

    /// Removes and returns the first order that is to end by this time.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        let &(_, order) = self.due.first().filter(|&&(due_ns, _)| due_ns <= now_ns)?;
        self.set_due(order, 0);
        Some(order)
    }

    /// Sets the time at which an order is to end; zero for none.
    pub(crate) fn set_due(&mut self, order: u64, due_ns: u64) {
        let Some(extension) = self.by_order.get_mut(&order) else { return };
        self.due.remove(&(std::mem::replace(&mut extension.due_ns, due_ns), order));
        if due_ns != 0 {
            self.due.insert((due_ns, order));
        }
    }

    /// Returns the extension of an order, if it has one.
    pub(crate) fn of_order(&self, order: u64) -> Option<&Extension> {
        self.by_order.get(&order)
    }

    /// Returns the latest order of an account with this text id.
    pub(crate) fn find(&self, account: AccountId, text_id: TextId) -> Option<u64> {
        self.by_text.get(&(account, text_id)).copied()
    }

    /// Drops the extensions of orders that were dropped at the end of a day. A text id then names the latest order that
    /// is kept, as after [`Self::load`].
    pub(crate) fn retain_known(&mut self, is_known: impl Fn(u64) -> bool) {
        self.by_order.retain(|order, _| is_known(*order));
        self.by_text.clear();
        for extension in self.by_order.values().filter(|extension| !extension.text_id.is_none()) {
            self.by_text.insert((extension.account, extension.text_id), extension.order);
        }
        self.due.retain(|(_, order)| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.by_order.values().copied().collect::<Vec<_>>());
    }

    /// Loads the extensions. Ids rise, so the last order with a text id is the latest.
    pub(crate) fn load(load: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError> {
        let mut loaded = Self::default();
        load.read_list::<Extension>()?.into_iter().for_each(|extension| loaded.insert(extension));
        Ok(loaded)
    }
}
