//! Extensions of orders: fields beside the fixed fields of an order, for the orders that have them. Design:
//! `docs/design/order-extensions.md`.
//!
//! ```text
//!   account, text id ──> by_text ──┐
//!   order id ──────────────────────┴──> by_order ──> Extension
//! ```

use std::collections::BTreeMap;

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
    pub(crate) account: AccountId,
    pub(crate) text_id: TextId,
}

/// Extensions of the orders that have one.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    by_order: BTreeMap<u64, Extension>,
    /// Latest order with each text id.
    by_text: BTreeMap<(AccountId, TextId), u64>,
}

impl Extension {
    /// Builds the message, under the id by which its receiver knows the request.
    pub(crate) fn message(&self, client_order_id: ClientOrderId) -> OrderExtension {
        let Self { order, expire_ns, account, text_id } = *self;
        OrderExtension { order_id: OrderId(order), client_order_id, expire_ns, account, text_id }
    }
}

impl Extensions {
    pub(crate) fn insert(&mut self, extension: Extension) {
        if !extension.text_id.is_none() {
            self.by_text.insert((extension.account, extension.text_id), extension.order);
        }
        self.by_order.insert(extension.order, extension);
    }

    /// Returns the extension of an order, if it has one.
    pub(crate) fn of_order(&self, order: u64) -> Option<&Extension> {
        self.by_order.get(&order)
    }

    /// Returns the latest order of an account with this text id.
    pub(crate) fn find(&self, account: AccountId, text_id: TextId) -> Option<u64> {
        self.by_text.get(&(account, text_id)).copied()
    }

    /// Drops the extensions of orders that were dropped at the end of a day.
    pub(crate) fn retain_known(&mut self, is_known: impl Fn(u64) -> bool) {
        self.by_order.retain(|order, _| is_known(*order));
        self.by_text.retain(|_, order| is_known(*order));
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
