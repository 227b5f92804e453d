//! Triggers of conditional orders.

use std::collections::BTreeMap;

use tickpath_market::Trigger;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Trigger of an order, kept beside the order until the order has certainly left.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct PendingTrigger {
    /// Slot of the order.
    pub(crate) slot: u32,
    pub(crate) position_effect: u8,
    pub(crate) instructions: u8,
    pub(crate) self_trade_mode: u8,
    pub(crate) trade_mode: u8,
    pub(crate) cause: u64,
    /// Id of the request that brought the trigger.
    pub(crate) request_id: u64,
    /// Time of that request, in ticks; zero if it was in another boot of the host.
    pub(crate) since: u64,
    pub(crate) trigger: Trigger,
}

/// Triggers by order slot, of orders that are armed and of orders that may have fired.
pub(crate) type TriggerTable = BTreeMap<u32, PendingTrigger>;
