//! Orders whose venue owes an answer, for a shell that puts them in doubt once that takes too long.

use tickpath_market::{OrderId, TimeInForce, VenueId};

use crate::core::Core;
use crate::order::Order;
use crate::state::Phase;

/// An open order whose venue owes an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// The order.
    pub order: OrderId,
    /// Its venue.
    pub venue: VenueId,
    /// Id of the request without an answer at the venue; zero for an order in doubt, whose venue owes its status.
    pub request: u64,
    /// The question after its status has not left yet.
    pub is_question_waiting: bool,
}

impl Core {
    /// Looks at the slots from `from` to `until`, and returns the first open order there whose venue owes an answer, with the
    /// slot to go on from.
    pub fn next_unanswered(&self, mut from: u32, until: u32) -> (Option<Unanswered>, u32) {
        while let Some(slot) = self.live.next_before(from, until) {
            from = slot + 1;
            let order = self.orders.get(slot);
            if let Some(request) = self.owed(order) {
                let (id, venue) = (OrderId(order.id), VenueId(order.route));
                let route = self.routes.iter().nth(order.route.into());
                let is_question_waiting = request == 0 && route.is_some_and(|route| route.has_question(slot));
                return (Some(Unanswered { order: id, venue, request, is_question_waiting }), from);
            }
        }
        (None, until)
    }

    /// Slots of orders: those behind the last one hold none.
    pub fn slots(&self) -> u32 {
        self.orders.len()
    }

    /// Day orders that their venue has, and whose end it has not reported.
    pub fn unconfirmed_day_orders(&self) -> impl Iterator<Item = (OrderId, VenueId)> + '_ {
        let orders = self.live_slots().map(|slot| self.orders.get(slot));
        let at_venue = |order: &&Order| matches!(order.phase, Phase::Sent | Phase::Open);
        let ends_today = |order: &&Order| order.time_in_force != TimeInForce::GoodTillCancel;
        orders.filter(at_venue).filter(ends_today).map(|order| (OrderId(order.id), VenueId(order.route)))
    }

    /// The id of the request that the order's venue has not answered, if there is one.
    fn owed(&self, order: &Order) -> Option<u64> {
        let asked = |ask: u32| self.ask(ask).filter(|ask| ask.waits == 0).map(|ask| ask.id);
        match order.phase {
            Phase::Lost | Phase::Unknown => Some(0),
            Phase::Sent => Some(self.venues_name(order).0),
            Phase::Open => asked(order.cancel).or_else(|| asked(order.replace)),
            Phase::Armed | Phase::Queued => None,
            Phase::Denied | Phase::Expired | Phase::Canceled | Phase::Rejected => None,
        }
    }
}
