//! Counts of orders by state, and of inputs that deserve an alarm.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::order::Order;
use crate::state::OrderPhase;

/// Order counts by state, and counts of inputs that deserve an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CoreCounts {
    /// Orders that wait in the OMS for their venue or for their trigger.
    pub queued: u64,
    /// Orders in flight to the venue.
    pub sending: u64,
    /// Orders working at the venue.
    pub working: u64,
    /// Orders that are filled, canceled or expired.
    pub done: u64,
    /// Orders that the venue rejected.
    pub rejected: u64,
    /// Orders that waited in the OMS and were denied before they could leave.
    pub withdrawn: u64,
    /// Orders in doubt (`Unknown`). Alarm.
    pub unknown: u64,
    /// Denied requests of any kind.
    pub denied_requests: u64,
    /// Reports that changed nothing: duplicates, or superseded by a later report.
    pub duplicates: u64,
    /// Reports of orders that the core does not know. Alarm.
    pub unknown_order_reports: u64,
    /// Reports that name a known order with another symbol, side, account or venue, and book nothing. Alarm.
    pub mismatched: u64,
    /// Reports that contradict the known state of their order, which became `Unknown`. Alarm.
    pub contradictions: u64,
    /// Reports that cannot be true: unknown codes, negative quantities, fills without an id. Alarm.
    pub malformed: u64,
    /// Control inputs (definitions, kill switches, admin commands) that the core refused. Alarm.
    pub ignored: u64,
}

impl CoreCounts {
    /// Returns the counts without those of orders by state.
    pub(crate) fn without_orders(self) -> Self {
        Self { queued: 0, sending: 0, working: 0, done: 0, rejected: 0, withdrawn: 0, unknown: 0, ..self }
    }

    /// Returns the counter that an order belongs to.
    pub(crate) fn counter_of(&mut self, order: &Order) -> &mut u64 {
        match order.phase {
            OrderPhase::Denied => &mut self.withdrawn,
            OrderPhase::Queued | OrderPhase::Armed => &mut self.queued,
            OrderPhase::Sent => &mut self.sending,
            OrderPhase::Lost | OrderPhase::Unknown => &mut self.unknown,
            OrderPhase::Open if order.is_filled() => &mut self.done,
            OrderPhase::Open => &mut self.working,
            OrderPhase::Expired | OrderPhase::Canceled => &mut self.done,
            OrderPhase::Rejected => &mut self.rejected,
        }
    }
}
