//! Orders in doubt: the loss of messages, status requests to venues, and the outcome that an operator states.

use tickpath_market::{ClientOrderId, ExecType, Request, StatusRequest, VenueId};
use tickpath_oms_records::{LOST_ORDER, LOST_REPORTS, LOST_REQUESTS, MessageLoss, Reconcile, Resolve};

use crate::client_reports::report_output;
use crate::core::{At, Core};
use crate::order::{HAS_MANUAL_FILL, IN_DOUBT, MAY_HAVE_RETRIED, NONE, Order, UNSEQUENCED_END};
use crate::state::{OrderEvent, OrderPhase};
use crate::venue_table::VENUE_LIMIT;
use crate::{Output, Outputs};

impl Core {
    /// Puts orders in doubt whose messages may be lost, and asks the venue for their status.
    pub(crate) fn apply_loss(&mut self, at: At, loss: &MessageLoss, out: &mut Outputs) -> bool {
        if loss.lost == LOST_ORDER {
            let found = self.orders.find(loss.messages);
            let Some(slot) = found.filter(|&slot| self.orders.get(slot).venue == loss.venue) else { return false };
            self.put_in_doubt(at, slot, OrderEvent::ReportsLost, IN_DOUBT, out);
            return true;
        }
        if loss.lost != LOST_REQUESTS && loss.lost != LOST_REPORTS {
            return false;
        }
        if loss.venue.0 < VENUE_LIMIT {
            self.venues.get(loss.venue).last_loss = self.id(at);
        }
        self.for_each_open(loss.venue, |core, slot| {
            let order = *core.orders.get(slot);
            let is_in_flight = |pending: u32| core.orders.pending(pending).is_some_and(|pending| pending.waits == 0);
            let was_asked = is_in_flight(order.cancel) || is_in_flight(order.replace);
            // The status request for an unknown order may be lost, too.
            let waits_for_answer = order.phase == OrderPhase::Sent || order.phase.is_unknown() || was_asked;
            if loss.lost == LOST_REPORTS {
                core.put_in_doubt(at, slot, OrderEvent::ReportsLost, IN_DOUBT, out);
            } else if waits_for_answer {
                // A report that the order has arrived does not show that its cancel or replace has.
                core.put_in_doubt(at, slot, OrderEvent::RequestLost, if was_asked { IN_DOUBT } else { 0 }, out);
            }
        });
        true
    }

    /// Puts an order in doubt with this mark, reports the new status to its client, and asks the venue.
    pub(crate) fn put_in_doubt(&mut self, at: At, slot: u32, event: OrderEvent, mark: u8, out: &mut Outputs) {
        let order = *self.orders.get(slot);
        let phase = order.phase.after(event);
        let was_unknown = order.phase.is_unknown();
        let marks = if phase.is_unknown() { order.marks | mark } else { order.marks };
        if (phase, marks) != (order.phase, order.marks) {
            self.update_order(slot, &Order { phase, marks, ..order });
        }
        if phase.is_unknown() {
            self.query_status(at, slot, out);
        }
        if phase.is_unknown() && !was_unknown {
            out.push(report_output(self.orders.get(slot), ExecType::OrderStatus, ClientOrderId(order.client)));
        }
    }

    /// Sends a status request for an order, if its venue can be asked. The request queues behind waiting requests,
    /// because its answer decides all requests sent before it.
    pub(crate) fn query_status(&mut self, at: At, slot: u32, out: &mut Outputs) -> bool {
        let order = *self.orders.get(slot);
        let Some(original) = self.status_request_id(&order) else { return false };
        let id = self.id(at);
        self.venues.get(order.venue).drop_older_status_request(slot, id);
        let request = Request::Status(StatusRequest {
            client_order_id: ClientOrderId(id),
            original,
            symbol: order.symbol,
            account: order.account,
            ..StatusRequest::default()
        });
        self.send(slot, order.session, request, at.stamp, out);
        true
    }

    /// Sends a venue a status request for all orders, whose answer settles each order like an answer for that order.
    pub(crate) fn query_all_statuses(&mut self, at: At, reconcile: &Reconcile, out: &mut Outputs) -> bool {
        let may_ask = self.check_reconcile(reconcile).is_ok();
        if may_ask {
            let client_order_id = ClientOrderId(self.id(at));
            let request = Request::Status(StatusRequest { client_order_id, fills: 1, ..StatusRequest::default() });
            out.push(Output::Venue { venue: reconcile.venue, session: 0, request });
        }
        may_ask
    }

    /// Returns the id by which an order's venue can be asked for its status; none if the venue cannot be asked.
    pub(crate) fn status_request_id(&self, order: &Order) -> Option<ClientOrderId> {
        let was_sent = !matches!(order.phase, OrderPhase::Denied | OrderPhase::Armed | OrderPhase::Queued);
        let venue = self.venues.find(order.venue);
        let answers = venue.is_none_or(|venue| venue.is_up && venue.rules.answers_status != 0);
        self.aliases.current(order.id).filter(|_| was_sent && answers)
    }

    /// Applies an operator's outcome to an order in doubt, and books the filled quantity that it states.
    pub(crate) fn resolve(&mut self, resolve: &Resolve, out: &mut Outputs) -> bool {
        let Ok((slot, phase)) = self.check_resolve(resolve) else { return false };
        let order = *self.orders.get(slot);
        let cumulative = resolve.cumulative_quantity.0;
        // The command has no venue sequence, so a later sign of life puts an ended order in doubt again.
        let marks =
            if phase == OrderPhase::Open { order.marks & !UNSEQUENCED_END } else { order.marks | UNSEQUENCED_END }
                & !(IN_DOUBT | MAY_HAVE_RETRIED);
        let mut next = Order { phase, filled: cumulative, reported: cumulative, marks, ..order };
        (next.cancel, next.replace) = (NONE, NONE);
        next.skip_to(order.sequence);
        let added = cumulative.saturating_sub(order.filled);
        next.marks |= if added == 0 { 0 } else { HAS_MANUAL_FILL };
        self.update_order(slot, &next);
        self.triggers.remove(&slot);
        self.orders.book_manual_fill(slot, added);
        self.book_fill(&next, order.valuation_price, added);
        self.report_change(&order, &next, ExecType::OrderStatus, ClientOrderId(next.client), out);
        true
    }

    /// Calls `apply` for each open order of a venue.
    pub(crate) fn for_each_open(&mut self, venue: VenueId, mut apply: impl FnMut(&mut Self, u32)) {
        let mut from = 0;
        while let Some(slot) = self.orders.next_open(from, u32::MAX) {
            from = slot + 1;
            if self.orders.get(slot).venue == venue {
                apply(self, slot);
            }
        }
    }
}
