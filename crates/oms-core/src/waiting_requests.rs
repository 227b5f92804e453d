//! Requests that wait in the OMS for their venue: their return to the queue, their second check, their departure.

use tickpath_market::{ClientOrderId, ExecType, ReplaceOrder, Request};
use tickpath_oms_records::{Release, UnsentRequest};
use tickpath_oms_risk::{Breach, RiskFacts, check};

use crate::client_reports::report_as;
use crate::core::{At, Core};
use crate::order::{MAY_HAVE_RETRIED, NONE, Order};
use crate::requests::{NewTerms, check_replaceable, facts};
use crate::state::{OrderEvent, OrderPhase};
use crate::venue_queue::QueuedRequest;
use crate::{Denial, Envelope, Output, Outputs};

impl Core {
    /// Treats waiting requests as sent after another boot of the host: their releases may be in the journal's lost
    /// tail. They never leave again, and the doubt about the venue lanes, which were lost with that boot, covers them.
    pub(crate) fn mark_waiting_sent(&mut self) {
        for waiting in self.venues.drain_waiting() {
            let order = *self.orders.get(waiting.order);
            if order.phase == OrderPhase::Queued {
                self.update_order(waiting.order, &Order { phase: order.phase.after(OrderEvent::Released), ..order });
            }
            self.mark_sent(&order, &waiting);
        }
    }

    /// Marks a waiting cancel or replace as sent.
    fn mark_sent(&mut self, order: &Order, waiting: &QueuedRequest) {
        // A status request may have the id of a cancel made by the same input.
        if waiting.is_status_request() {
            return;
        }
        for pending in [order.cancel, order.replace] {
            if self.orders.is_pending(pending, waiting.id()) {
                self.orders.pending_mut(pending).waits = 0;
            }
        }
    }

    /// Refuses all waiting orders and replaces after a disk failure. Their clients get denials at once: a client may
    /// learn that an order the disk lacks is dead, but not that it lives.
    pub(crate) fn refuse_waiting(&mut self, out: &mut Outputs) {
        for waiting in self.venues.drain_waiting() {
            if !self.refuse_for_disk(&waiting, out) {
                let venue = self.orders.get(waiting.order).venue;
                self.venues.get(venue).waiting.push(waiting);
            }
        }
    }

    /// Refuses a waiting new order or replace; returns false for any other request, which keeps waiting.
    fn refuse_for_disk(&mut self, waiting: &QueuedRequest, out: &mut Outputs) -> bool {
        let order = *self.orders.get(waiting.order);
        let is_refused = match &waiting.request {
            Request::New(_) => order.phase == OrderPhase::Queued,
            Request::Replace(_) => self.orders.is_pending(order.replace, waiting.id()),
            _ => false,
        };
        if is_refused {
            self.refuse(&order, waiting, Breach { denial: Denial::DiskFailed, limit: 0, value: 1 }, out);
        }
        is_refused
    }

    /// Queues a request that never left, behind the requests that wait but before later requests for the same order.
    pub(crate) fn requeue_unsent(&mut self, unsent: &UnsentRequest, out: &mut Outputs) -> bool {
        let Some(request) = unsent.request() else { return false };
        let original = match &request {
            Request::New(new) => new.client_order_id.0,
            Request::Cancel(cancel) => cancel.original.0,
            Request::Replace(replace) => replace.original.0,
            Request::Status(status) => status.original.0,
            Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => return false,
            Request::Extended(_) | Request::ByTextId(_) => return false,
        };
        let is_status_request = matches!(request, Request::Status(_));
        let found = self.find_by_venue_id(unsent.venue, original, 0);
        let Some(slot) = found.filter(|&slot| self.orders.get(slot).venue == unsent.venue) else {
            return is_status_request;
        };
        let order = *self.orders.get(slot);
        let id = request.client_order_id().0;
        let pending = [order.cancel, order.replace].into_iter().find(|&slot| self.orders.is_pending(slot, id));
        match (&request, pending) {
            (Request::Status(_), _) => {
                // The answer to the latest status request supersedes earlier ones.
                let venue = self.venues.get(unsent.venue);
                if !wants_status(&order) || !venue.drop_older_status_request(slot, id) {
                    return true;
                }
            }
            // An earlier try, whose rejection has arrived.
            (Request::New(new), _) if self.aliases.current(order.id) != Some(new.client_order_id) => return true,
            // The order is in doubt and its venue was asked: that answer decides.
            (Request::New(_), _) if order.phase.is_unknown() => return true,
            (Request::New(_), _) if order.phase != OrderPhase::Sent => return false,
            (Request::New(_), _) => {
                let phase = order.phase.after(OrderEvent::Returned);
                // An order that never left was never rejected.
                self.update_order(slot, &Order { phase, marks: order.marks & !MAY_HAVE_RETRIED, ..order });
                // The order's cancel comes back after it, so no venue has received either.
                if order.cancel != NONE {
                    let client = self.owners_request_id(&order, order.cancel);
                    self.withdraw(slot, client, ExecType::Canceled, out);
                    return true;
                }
            }
            (_, Some(pending)) if self.orders.waits(pending) => return false,
            (_, Some(pending)) => self.orders.pending_mut(pending).waits = 1,
            // The order has ended in the meantime.
            (_, None) => return true,
        }
        let waiting = QueuedRequest { order: slot, session: order.session, request, sent: unsent.received };
        if self.trading.disk_failed && self.refuse_for_disk(&waiting, out) {
            return true;
        }
        self.venues.get(unsent.venue).waiting.insert(waiting, |other| other.id() > waiting.id());
        true
    }

    /// Sends the request that waited longest, if the checks still pass. A new order past its end is withdrawn.
    pub(crate) fn release_next(&mut self, at: At, release: &Release, out: &mut Outputs) -> bool {
        let is_next = self.venues.front(release.venue).is_some_and(|waiting| {
            waiting.id() == release.request && self.orders.get(waiting.order).id == release.order
        });
        let Some(waiting) = is_next.then(|| self.venues.get(release.venue).waiting.pop()).flatten() else {
            return false;
        };
        let order = *self.orders.get(waiting.order);
        let is_unsent = matches!(waiting.request, Request::New(_)) && order.phase == OrderPhase::Queued;
        if is_unsent && self.is_past_end(at, order.id) {
            self.withdraw(waiting.order, ClientOrderId(order.client), ExecType::Expired, out);
            return true;
        }
        let passed = match &waiting.request {
            Request::New(_) if order.phase == OrderPhase::Queued => self.recheck_new(at, &order, &waiting, release),
            Request::Replace(replace) if self.orders.is_pending(order.replace, waiting.id()) => {
                self.recheck_replace(at, &order, replace, &waiting, release)
            }
            Request::Cancel(_) if self.orders.is_pending(order.cancel, waiting.id()) => Ok(()),
            Request::Status(_) if wants_status(&order) => Ok(()),
            // The order has ended in the meantime, or the venue has the request already.
            _ => return true,
        };
        if let Err(refusal) = passed {
            self.refuse(&order, &waiting, refusal, out);
            return true;
        }
        self.mark_sent(&order, &waiting);
        out.push(Output::Venue { venue: release.venue, session: waiting.session, request: waiting.request });
        true
    }

    /// Checks a new order that waited again, as if it arrived now; its own share of the open values is left out.
    fn recheck_new(&mut self, at: At, order: &Order, waiting: &QueuedRequest, release: &Release) -> Result<(), Breach> {
        let entry = self.trading.context(order.account, order.symbol)?;
        self.check_rights(order.session, order.account, &waiting.request)?;
        let (quantity, price) = self.orders.pending_replace(order);
        let held = order.value(quantity, price, entry.size);
        let worst = self.positions.get(order.position).worst_position(order.side);
        let facts = facts(&entry, &recheck_envelope(release, waiting), order);
        let facts = RiskFacts {
            increase: order.quantity,
            worst_position: worst - i128::from(order.exposure(quantity)),
            // The rate window of its message has passed.
            messages: 0,
            request_age_ns: self.waiting_age_ns(at, waiting),
            open_orders: entry.open.orders,
            added_quantity: order.quantity,
            used: facts.used.saturating_sub(held),
            own_used: held,
            ..facts
        };
        check(&facts)?;
        self.check_optional(&entry, &facts, order, at.stamp, true)?;
        self.update_order(waiting.order, &Order { phase: order.phase.after(OrderEvent::Released), ..*order });
        Ok(())
    }

    /// Checks a replace that waited again, as if it arrived now.
    fn recheck_replace(
        &self,
        at: At,
        order: &Order,
        replace: &ReplaceOrder,
        waiting: &QueuedRequest,
        release: &Release,
    ) -> Result<(), Breach> {
        check_replaceable(order)?;
        self.check_rights(order.session, order.account, &waiting.request)?;
        let request_age_ns = self.waiting_age_ns(at, waiting);
        let (price, quantity, stamp) = (replace.price.0, replace.quantity.0, at.stamp);
        let change = NewTerms { price, quantity, request_age_ns, has_waited: true, stamp };
        self.check_change(&recheck_envelope(release, waiting), order, &change)
    }

    /// Denies a waiting request: a new order ends with all requests for it, a replace is dropped.
    fn refuse(&mut self, order: &Order, waiting: &QueuedRequest, refusal: Breach, out: &mut Outputs) {
        // Only the venue knows the id of a retry, so the client gets the order's own id.
        let (id, client, denied) = match &waiting.request {
            Request::New(_) => {
                // An order that was tried before is known to its venue, which has rejected it.
                let phase = match self.aliases.has_alias(order.id) {
                    true => OrderPhase::Rejected,
                    false => order.phase.after(OrderEvent::Denied),
                };
                self.retries.untrack(order.id);
                (order.id, order.client, Order { phase, cancel: NONE, replace: NONE, ..*order })
            }
            _ => {
                let client = self.orders.pending(order.replace).map_or(order.client, |replace| replace.client);
                (waiting.id(), client, Order { replace: NONE, ..*order })
            }
        };
        self.update_order(waiting.order, &denied);
        self.deny(id, waiting.session, ClientOrderId(client), (order.account, order.symbol), refusal, out);
        self.notify_if_decided(order, &denied, out, |client| report_as(&denied, ExecType::OrderStatus, client));
    }

    fn waiting_age_ns(&self, at: At, waiting: &QueuedRequest) -> u64 {
        self.clock.ns(at.stamp.saturating_sub(waiting.sent))
    }
}

/// Returns whether an answer to a status request for this order could still change anything.
fn wants_status(order: &Order) -> bool {
    order.phase.is_live() && !matches!(order.phase, OrderPhase::Armed | OrderPhase::Queued)
}

/// Builds the envelope for the second check of a request that waited.
fn recheck_envelope(release: &Release, waiting: &QueuedRequest) -> Envelope {
    Envelope {
        reference_price: release.reference_price,
        reference_age_ns: release.reference_age_ns,
        session: waiting.session,
        ..Envelope::default()
    }
}
