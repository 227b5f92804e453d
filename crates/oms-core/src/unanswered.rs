//! Orders whose venue owes an answer: the shell puts them in doubt once the answer is overdue.

use tickpath_market::{OrderId, TimeInForce, VenueId};

use crate::core::Core;
use crate::order::Order;
use crate::state::OrderPhase;

/// An open order whose venue owes an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnansweredOrder {
    /// Id of the order.
    pub order: OrderId,
    /// Venue that owes the answer.
    pub venue: VenueId,
    /// Id of the unanswered request at the venue; zero for an order in doubt, whose venue owes its status.
    pub request: u64,
    /// The status request for an order in doubt still waits in the OMS.
    pub is_query_waiting: bool,
}

impl Core {
    /// Returns the first open order in the slots `from` to `until` whose venue owes an answer, and the slot to continue
    /// from.
    pub fn next_unanswered(&self, mut from: u32, until: u32) -> (Option<UnansweredOrder>, u32) {
        while let Some(slot) = self.orders.next_open(from, until) {
            from = slot + 1;
            let order = self.orders.get(slot);
            if let Some(request) = self.unanswered_request(order) {
                let waits = || self.venues.find(order.venue).is_some_and(|venue| venue.has_status_request(slot));
                let is_query_waiting = request == 0 && waits();
                let (order, venue) = (OrderId(order.id), order.venue);
                return (Some(UnansweredOrder { order, venue, request, is_query_waiting }), from);
            }
        }
        (None, until)
    }

    /// Returns the number of order slots; no order has a higher slot.
    pub fn slot_count(&self) -> u32 {
        self.orders.len()
    }

    /// Returns the day orders that were sent to their venue and whose end it has not reported.
    pub fn unconfirmed_day_orders(&self) -> impl Iterator<Item = (OrderId, VenueId)> + '_ {
        let at_venue = |order: &&Order| matches!(order.phase, OrderPhase::Sent | OrderPhase::Open);
        let outlives_day = [TimeInForce::GoodTillCancel, TimeInForce::GoodTillDate];
        let ends_today = move |order: &&Order| !outlives_day.contains(&order.time_in_force);
        let unconfirmed = self.orders.open_orders().filter(at_venue).filter(ends_today);
        unconfirmed.map(|order| (OrderId(order.id), order.venue))
    }

    /// Returns the id of the request that an order's venue has not answered, if any; zero stands for a status request.
    fn unanswered_request(&self, order: &Order) -> Option<u64> {
        let sent = |slot: u32| self.orders.pending(slot).filter(|pending| pending.waits == 0);
        let sent_id = |slot: u32| sent(slot).map(|pending| pending.id);
        match order.phase {
            OrderPhase::Lost | OrderPhase::Unknown => Some(0),
            OrderPhase::Sent => Some(self.id_at_venue(order).0),
            OrderPhase::Open => sent_id(order.cancel).or_else(|| sent_id(order.replace)),
            OrderPhase::Armed | OrderPhase::Queued => None,
            OrderPhase::Denied | OrderPhase::Expired | OrderPhase::Canceled | OrderPhase::Rejected => None,
        }
    }
}
