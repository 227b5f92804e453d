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
        while let Some(slot) = self.live.next_before(from, until) {
            from = slot + 1;
            let order = self.orders.get(slot);
            if let Some(request) = self.unanswered_request(order) {
                let (id, venue) = (OrderId(order.id), VenueId(order.route));
                let route = self.routes.iter().nth(order.route.into());
                let is_question_waiting = request == 0 && route.is_some_and(|route| route.has_status_request(slot));
                return (
                    Some(UnansweredOrder { order: id, venue, request, is_query_waiting: is_question_waiting }),
                    from,
                );
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
        let orders = self.open_slots().map(|slot| self.orders.get(slot));
        let at_venue = |order: &&Order| matches!(order.phase, OrderPhase::Sent | OrderPhase::Open);
        let ends_today = |order: &&Order| order.time_in_force != TimeInForce::GoodTillCancel;
        orders.filter(at_venue).filter(ends_today).map(|order| (OrderId(order.id), VenueId(order.route)))
    }

    /// Returns the id of the request that an order's venue has not answered, if any; zero stands for a status request.
    fn unanswered_request(&self, order: &Order) -> Option<u64> {
        let asked = |ask: u32| self.pending_request(ask).filter(|ask| ask.waits == 0).map(|ask| ask.id);
        match order.phase {
            OrderPhase::Lost | OrderPhase::Unknown => Some(0),
            OrderPhase::Sent => Some(self.id_at_venue(order).0),
            OrderPhase::Open => asked(order.cancel).or_else(|| asked(order.replace)),
            OrderPhase::Armed | OrderPhase::Queued => None,
            OrderPhase::Denied | OrderPhase::Expired | OrderPhase::Canceled | OrderPhase::Rejected => None,
        }
    }
}
