//! Triggers of conditional orders.

use std::collections::BTreeMap;

use tickpath_market::Trigger;
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Trigger of an order, kept beside the order until the order has certainly left.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct PendingTrigger {
    /// Slot of the order.
    pub(crate) slot: u32,
    pub(crate) position_effect: u8,
    pub(crate) reserved: [u8; 3],
    pub(crate) cause: u64,
    /// Id of the request that brought the trigger.
    pub(crate) request_id: u64,
    /// Time of that request, in ticks; zero if it was in another boot of the host.
    pub(crate) since: u64,
    pub(crate) trigger: Trigger,
}

/// Triggers by order slot, of orders that are armed and of orders that may have fired.
#[derive(Debug, Default)]
pub(crate) struct TriggerTable {
    by_slot: BTreeMap<u32, PendingTrigger>,
}

impl TriggerTable {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_slot.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_slot.len()
    }

    pub(crate) fn insert(&mut self, trigger: PendingTrigger) {
        self.by_slot.insert(trigger.slot, trigger);
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&PendingTrigger> {
        self.by_slot.get(&slot)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut PendingTrigger> {
        self.by_slot.get_mut(&slot)
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<PendingTrigger> {
        self.by_slot.remove(&slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingTrigger> {
        self.by_slot.values()
    }

    /// Returns the slots of the orders, ascending.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.by_slot.keys().copied()
    }

    pub(crate) fn clear(&mut self) {
        self.by_slot.clear();
    }

    /// Clears the times of all requests, which are ticks of an earlier boot.
    pub(crate) fn clear_stamps(&mut self) {
        self.by_slot.values_mut().for_each(|trigger| trigger.since = 0);
    }

    /// Gives each trigger the new slot of its order, and drops the triggers of orders without a new slot.
    pub(crate) fn move_slots(&mut self, new_slot: impl Fn(u32) -> Option<u32>) {
        let triggers = std::mem::take(&mut self.by_slot).into_values();
        let kept = triggers.filter_map(|trigger| Some(PendingTrigger { slot: new_slot(trigger.slot)?, ..trigger }));
        self.by_slot = kept.map(|trigger| (trigger.slot, trigger)).collect();
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.by_slot.values().copied().collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.by_slot = load.read_list::<PendingTrigger>()?.into_iter().map(|trigger| (trigger.slot, trigger)).collect();
        Ok(())
    }
}
