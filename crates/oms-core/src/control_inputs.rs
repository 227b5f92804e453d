//! Inputs about the OMS itself: definitions, starts, lines, losses, timers and admin commands.

use tickpath_market::{
    AccountId, ClientOrderId, ExecType, OrderId, ReplaceOrder, Request, StatusRequest, SymbolId, VenueId,
};
use tickpath_oms_risk::{Breach, RiskFacts, check};

use crate::admin_command::cancel_filter;
use crate::control::{
    Boot, KILL_DISK, KillSwitch, LOST_ORDER, LOST_REPORTS, LOST_REQUESTS, MessageLoss, Reconcile, Release, Resolve,
    SessionConnection, UnsentRequest, VenueConnection,
};
use crate::core::{At, Core, TickRate};
use crate::open_orders::CancelFilter;
use crate::order::{HAS_GAP, HAS_MANUAL_FILL, IN_DOUBT, MAY_HAVE_RETRIED, NONE, Order, UNSEQUENCED_END};
use crate::requests::{NewTerms, check_replaceable, deny, facts, report_as, report_output, undefined};
use crate::self_match::SelfMatchBook;
use crate::state::{OrderEvent, OrderPhase, next_phase};
use crate::trading_config::ID_LIMIT;
use crate::venue_queue::QueuedRequest;
use crate::venue_table::VENUE_LIMIT;
use crate::{
    AccountLimits, DefinitionEnd, Denial, Envelope, Input, Instrument, Output, Outputs, RecordKind, SymbolLimits,
};

impl Core {
    /// Applies an input that is neither a request nor a report, and counts it as ignored if it is refused.
    pub(crate) fn apply_control(&mut self, at: At, input: &Input, out: &mut Outputs) {
        let is_taken = match input {
            Input::Boot(boot) => self.boot(at, boot),
            Input::Instrument(instrument) => self.define_instrument(instrument),
            Input::Account(limits) => self.define_account(limits),
            Input::Venue(rules) => self.routes.define(rules),
            Input::Session(rules) => self.trading.define_session(rules),
            Input::Reject(rule) => self.retries.define(rule),
            Input::Grant(grant) => self.trading.grant(grant),
            Input::SymbolLimits(limits) => self.limit_symbol(limits),
            Input::Firm(limits) => {
                self.trading.limit_firm(limits);
                true
            }
            Input::DefinitionEnd(ended) => self.end(ended),
            Input::Kill(kill) => self.kill(at, kill, out),
            Input::VenueConnection(line) => self.apply_connection(at, line, out),
            Input::SessionConnection(login) => self.apply_session(at, login, out),
            Input::UnsentRequest(returned) => self.requeue_unsent(returned, out),
            Input::Release(release) => self.release_next(at, release, out),
            Input::MessageLoss(doubt) => self.apply_loss(at, doubt, out),
            Input::Resolve(resolve) => self.resolve(resolve, out),
            Input::QueryStatus(inquire) => match self.find_order(inquire.order) {
                Some(slot) => self.inquire(at, slot, out),
                None => false,
            },
            Input::Reconcile(reconcile) => self.request_all_statuses(at, reconcile, out),
            Input::CancelScope(cancel) => self.cancel_scope(at, cancel, out),
            Input::EnterOrder(enter) => self.enter_order(at, enter, out),
            Input::EnterFill(enter) => self.enter_fill(at, enter, out),
            Input::EnterPosition(enter) => self.enter_position(enter),
            Input::GapTimer(_) => self.check_gaps(at, out),
            Input::DayEnd(_) => self.end_day(out),
            Input::TriggerFired(fired) => self.apply_trigger(at, fired, out),
            Input::Request { .. } | Input::Report(_) => false,
        };
        self.counts.ignored += u64::from(!is_taken);
    }

    /// Applies a start of the OMS. After another boot of the host, stamps cannot be compared with earlier ones.
    fn boot(&mut self, at: At, boot: &Boot) -> bool {
        // An epoch that does not fit an id would repeat the ids of an earlier epoch.
        let fits = OrderId::new(boot.epoch, 0).epoch() == boot.epoch;
        if boot.epoch <= self.epoch || !fits || boot.ticks_per_second == 0 {
            return false;
        }
        self.epoch = boot.epoch;
        (self.rate, self.booted) = (TickRate::of(boot.ticks_per_second), (at.stamp, boot.utc_ns));
        self.trading.kill(&KillSwitch { scope: KILL_DISK, on: 0, ..KillSwitch::default() });
        if self.boot_id != boot.boot_id {
            self.boot_id = boot.boot_id;
            self.trading.close_windows();
            self.gapped.iter_mut().for_each(|(_, since)| *since = 0);
            self.mark_waiting_sent();
            self.doubt_armed_orders();
            self.mark_possible_retries();
        }
        true
    }

    /// Treats waiting requests as sent after another boot of the host: their releases may be in the journal's lost
    /// tail. They never leave again, and the doubt about the venue lanes, which were lost with that boot, covers them.
    fn mark_waiting_sent(&mut self) {
        let waited: Vec<QueuedRequest> = self.routes.iter_mut().flat_map(|route| route.waiting.drain()).collect();
        for waiting in waited {
            let order = *self.orders.get(waiting.order);
            if order.phase == OrderPhase::Queued {
                let phase = next_phase(order.phase, OrderEvent::Released).unwrap_or(order.phase);
                self.update_order(waiting.order, &Order { phase, ..order });
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
        for ask in [order.cancel, order.replace] {
            if self.is_pending(ask, waiting) {
                self.pending.get_mut(ask).waits = 0;
            }
        }
    }

    /// Defines an instrument. Another multiplier changes the value of open orders, so all values are computed anew.
    fn define_instrument(&mut self, instrument: &Instrument) -> bool {
        let before = self.multiplier(instrument.symbol);
        let is_taken = self.trading.define_instrument(instrument);
        if is_taken && before != instrument.multiplier {
            self.recount(false);
        }
        is_taken
    }

    /// Sets an account's limits, and rebuilds the self-match book if self-match prevention was turned on or off.
    fn define_account(&mut self, limits: &AccountLimits) -> bool {
        let before = self.trading.prevents_self_match(limits.account);
        let is_taken = self.trading.define_account(limits);
        if before != self.trading.prevents_self_match(limits.account) {
            self.rebuild_self_match();
        }
        is_taken
    }

    fn limit_symbol(&mut self, limits: &SymbolLimits) -> bool {
        let fits = limits.account.0 < ID_LIMIT && limits.symbol.0 < ID_LIMIT;
        if fits {
            self.positions.set_limits(limits);
            self.trading.has_optional_limits = true;
        }
        fits
    }

    /// Computes every account's open value and order count anew.
    pub(crate) fn recount(&mut self, day_ended: bool) {
        self.trading.reset_totals(day_ended);
        self.self_match = SelfMatchBook::default();
        for slot in 0..self.orders.len() {
            let order = *self.orders.get(slot);
            let (quantity, price) = self.pending_replace(&order);
            self.update_open_value(None, Some((&order, quantity, price)));
        }
        self.rebuild_self_match();
    }

    fn end(&mut self, ended: &DefinitionEnd) -> bool {
        match RecordKind::from_code(ended.kind) {
            Some(RecordKind::Instrument) => self.trading.end_instrument(ended.id),
            Some(RecordKind::Account) => self.trading.end_account(ended.id),
            Some(RecordKind::Venue) => {
                u16::try_from(ended.id).is_ok_and(|venue| self.routes.reset_rules(VenueId(venue)))
            }
            Some(RecordKind::Reject) => self.retries.remove_rule(ended.id, ended.session),
            Some(RecordKind::Session) => self.trading.end_session(ended.session),
            Some(RecordKind::Grant) => self.trading.end_grant(ended.session, ended.id),
            Some(RecordKind::SymbolLimits) => {
                self.positions.end_limits(AccountId(ended.session.into()), SymbolId(ended.id))
            }
            Some(RecordKind::Firm) => self.trading.end_firm(),
            _ => false,
        }
    }

    fn kill(&mut self, at: At, kill: &KillSwitch, out: &mut Outputs) -> bool {
        // No command declares a failed disk sound.
        let is_taken = (kill.scope != KILL_DISK || kill.on != 0) && self.trading.kill(kill);
        if is_taken && kill.scope == KILL_DISK {
            self.refuse_waiting(out);
            self.deny_all_armed(out);
        }
        if is_taken && kill.on != 0 && kill.cancel != 0 {
            let KillSwitch { scope, target, .. } = *kill;
            self.cancel_all(at, None, out, cancel_filter(scope, target));
        }
        is_taken
    }

    /// Refuses all waiting orders and replaces after a disk failure. Their clients get denials at once: a client may
    /// learn that an order the disk lacks is dead, but not that it lives.
    fn refuse_waiting(&mut self, out: &mut Outputs) {
        let waited: Vec<QueuedRequest> = self.routes.iter_mut().flat_map(|route| route.waiting.drain()).collect();
        for waiting in waited {
            if !self.refuse_for_disk(&waiting, out) {
                let venue = VenueId(self.orders.get(waiting.order).route);
                self.routes.get(venue).waiting.push(waiting);
            }
        }
    }

    /// Refuses a waiting new order or replace; returns false for any other request, which keeps waiting.
    fn refuse_for_disk(&mut self, waiting: &QueuedRequest, out: &mut Outputs) -> bool {
        let order = *self.orders.get(waiting.order);
        let is_refused = match &waiting.request {
            Request::New(_) => order.phase == OrderPhase::Queued,
            Request::Replace(_) => self.is_pending(order.replace, waiting),
            _ => false,
        };
        if is_refused {
            self.refuse(&order, waiting, Breach { denial: Denial::DiskFailed, limit: 0, value: 1 }, out);
        }
        is_refused
    }

    /// Notes whether a venue can be reached. A venue that is back is asked for each order that is or was put in doubt.
    fn apply_connection(&mut self, at: At, line: &VenueConnection, out: &mut Outputs) -> bool {
        if line.venue.0 >= VENUE_LIMIT {
            return false;
        }
        let route = self.routes.get(line.venue);
        let was_up = std::mem::replace(&mut route.is_up, line.up != 0);
        if !was_up && line.up != 0 {
            self.for_each_open(line.venue, |core, slot| {
                let order = core.orders.get(slot);
                if order.phase.is_unknown() || order.marks & IN_DOUBT != 0 {
                    core.inquire(at, slot, out);
                }
            });
        }
        true
    }

    fn apply_session(&mut self, at: At, login: &SessionConnection, out: &mut Outputs) -> bool {
        if login.up == 0 && self.trading.rules(login.session).cancel_on_disconnect != 0 {
            self.cancel_all(at, None, out, CancelFilter::Session(login.session.into()));
        }
        true
    }

    /// Queues a request that never left, behind the requests that wait but before later requests for the same order.
    fn requeue_unsent(&mut self, returned: &UnsentRequest, out: &mut Outputs) -> bool {
        let Some(request) = returned.request() else { return false };
        let original = match &request {
            Request::New(new) => new.client_order_id.0,
            Request::Cancel(cancel) => cancel.original.0,
            Request::Replace(replace) => replace.original.0,
            Request::Status(status) => status.original.0,
            Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => return false,
        };
        let is_question = matches!(request, Request::Status(_));
        let sent = self
            .find_by_venue_id(returned.venue.0, original, 0)
            .filter(|&slot| self.orders.get(slot).route == returned.venue.0);
        let Some(slot) = sent else { return is_question };
        let order = *self.orders.get(slot);
        let id = request.client_order_id().0;
        let ask = [order.cancel, order.replace]
            .into_iter()
            .find(|&ask| self.pending_request(ask).is_some_and(|ask| ask.id == id));
        match (&request, ask) {
            (Request::Status(_), _) => {
                // The answer to the latest status request supersedes earlier ones.
                let route = self.routes.get(returned.venue);
                if !wants_status(&order) || !route.drop_older_status_request(slot, id) {
                    return true;
                }
            }
            // An earlier try, whose rejection has arrived.
            (Request::New(new), _) if self.aliases.current(order.id) != Some(new.client_order_id) => return true,
            // The order is in doubt and its venue was asked: that answer decides.
            (Request::New(_), _) if order.phase.is_unknown() => return true,
            (Request::New(_), _) if order.phase != OrderPhase::Sent => return false,
            (Request::New(_), _) => {
                let phase = next_phase(order.phase, OrderEvent::Returned).unwrap_or(order.phase);
                // An order that never left was never rejected.
                self.update_order(slot, &Order { phase, marks: order.marks & !MAY_HAVE_RETRIED, ..order });
                // The order's cancel comes back after it, so no venue has received either.
                if order.cancel != NONE {
                    let client = self.owners_request_id(&order, order.cancel);
                    self.withdraw(slot, client, ExecType::Canceled, out);
                    return true;
                }
            }
            (_, Some(ask)) if self.pending.get(ask).waits != 0 => return false,
            (_, Some(ask)) => self.pending.get_mut(ask).waits = 1,
            // The order has ended in the meantime.
            (_, None) => return true,
        }
        let waiting = QueuedRequest { order: slot, session: order.session, request, sent: returned.received };
        if self.trading.disk_failed() && self.refuse_for_disk(&waiting, out) {
            return true;
        }
        self.routes.get(returned.venue).waiting.insert(waiting, |other| other.id() > waiting.id());
        true
    }

    /// Sends the request that waited longest, if the checks still pass.
    fn release_next(&mut self, at: At, release: &Release, out: &mut Outputs) -> bool {
        let is_next = self.routes.front(release.venue).is_some_and(|waiting| {
            waiting.id() == release.request && self.orders.get(waiting.order).id == release.order
        });
        let Some(waiting) = is_next.then(|| self.routes.get(release.venue).waiting.pop()).flatten() else {
            return false;
        };
        let order = *self.orders.get(waiting.order);
        let passed = match &waiting.request {
            Request::New(_) if order.phase == OrderPhase::Queued => self.recheck_new(at, &order, &waiting, release),
            Request::Replace(replace) if self.is_pending(order.replace, &waiting) => {
                self.recheck_replace(at, &order, replace, &waiting, release)
            }
            Request::Cancel(_) if self.is_pending(order.cancel, &waiting) => Ok(()),
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
        let entry = self.trading.context(order.account, order.symbol).map_err(|denial| undefined(denial, order))?;
        self.check_rights(order.session, order.account, &waiting.request)?;
        let (asked, asked_at) = self.pending_replace(order);
        let held = order.value(asked, asked_at, entry.instrument.multiplier);
        let facts = facts(&entry, &recheck_envelope(release, waiting), order);
        let facts = RiskFacts {
            price: order.price,
            quantity: order.quantity,
            minimum: 1,
            increase: order.quantity,
            worst_position: self.worst_position(order.position, order.side) - i128::from(order.exposure(asked)),
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
        let phase = next_phase(order.phase, OrderEvent::Released).unwrap_or(order.phase);
        self.update_order(waiting.order, &Order { phase, ..*order });
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
        self.counts.denied_requests += 1;
        let client = match &waiting.request {
            Request::New(_) => {
                // An order that was tried before is known to its venue, which has rejected it.
                let phase = match self.aliases.has_alias(order.id) {
                    true => OrderPhase::Rejected,
                    false => next_phase(order.phase, OrderEvent::Denied).unwrap_or(order.phase),
                };
                let denied = Order { phase, cancel: NONE, replace: NONE, ..*order };
                self.update_order(waiting.order, &denied);
                self.retries.untrack(order.id);
                order.client
            }
            _ => {
                let client = self.pending_request(order.replace).map_or(order.client, |ask| ask.client);
                self.update_order(waiting.order, &Order { replace: NONE, ..*order });
                client
            }
        };
        // Only the venue knows the id of a retry, so the client gets the order's own id.
        let id = if matches!(waiting.request, Request::New(_)) { order.id } else { waiting.id() };
        out.push(deny(id, waiting.session, ClientOrderId(client), order.account, refusal));
        let denied = *self.orders.get(waiting.order);
        self.notify_if_decided(order, &denied, out, |client| report_as(&denied, ExecType::OrderStatus, client));
    }

    fn is_pending(&self, ask: u32, waiting: &QueuedRequest) -> bool {
        self.pending_request(ask).is_some_and(|ask| ask.id == waiting.id())
    }

    /// Returns the age of a waiting request in nanoseconds.
    fn waiting_age_ns(&self, at: At, waiting: &QueuedRequest) -> u64 {
        self.rate.ns(at.stamp.saturating_sub(waiting.sent))
    }

    /// Puts orders in doubt whose messages may be lost, and asks the venue for their status.
    fn apply_loss(&mut self, at: At, doubt: &MessageLoss, out: &mut Outputs) -> bool {
        if doubt.lost == LOST_ORDER {
            let found = self.find_order(doubt.messages);
            let Some(slot) = found.filter(|&slot| self.orders.get(slot).route == doubt.venue.0) else { return false };
            self.put_in_doubt(at, slot, OrderEvent::ReportsLost, IN_DOUBT, out);
            return true;
        }
        if doubt.lost != LOST_REQUESTS && doubt.lost != LOST_REPORTS {
            return false;
        }
        if doubt.venue.0 < VENUE_LIMIT {
            self.routes.get(doubt.venue).last_loss = self.id(at);
        }
        self.for_each_open(doubt.venue, |core, slot| {
            let order = *core.orders.get(slot);
            let is_in_flight = |ask: u32| core.pending_request(ask).is_some_and(|ask| ask.waits == 0);
            let was_asked = is_in_flight(order.cancel) || is_in_flight(order.replace);
            // The status request for an unknown order may be lost, too.
            let waits_for_answer = order.phase == OrderPhase::Sent || order.phase.is_unknown() || was_asked;
            if doubt.lost == LOST_REPORTS {
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
        let phase = next_phase(order.phase, event).unwrap_or(order.phase);
        let was_unknown = order.phase.is_unknown();
        let marks = if phase.is_unknown() { order.marks | mark } else { order.marks };
        if (phase, marks) != (order.phase, order.marks) {
            self.update_order(slot, &Order { phase, marks, ..order });
        }
        if phase.is_unknown() {
            self.inquire(at, slot, out);
        }
        if phase.is_unknown() && !was_unknown {
            out.push(report_output(self.orders.get(slot), ExecType::OrderStatus, ClientOrderId(order.client)));
        }
    }

    /// Sends a status request for an order, if its venue can be asked. The request queues behind waiting requests,
    /// because its answer decides all requests sent before it.
    pub(crate) fn inquire(&mut self, at: At, slot: u32, out: &mut Outputs) -> bool {
        let order = *self.orders.get(slot);
        let Some(original) = self.status_request_id(&order) else { return false };
        let id = OrderId::new(self.epoch, at.sequence).0;
        self.routes.get(VenueId(order.route)).drop_older_status_request(slot, id);
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
    fn request_all_statuses(&mut self, at: At, reconcile: &Reconcile, out: &mut Outputs) -> bool {
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
        let route = self.routes.iter().nth(order.route.into());
        let answers = route.is_none_or(|route| route.is_up && route.rules.answers_status != 0);
        self.aliases.current(order.id).filter(|_| was_sent && answers)
    }

    /// Applies an operator's outcome to an order in doubt, and books the filled quantity that it states.
    fn resolve(&mut self, resolve: &Resolve, out: &mut Outputs) -> bool {
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
        let adds = cumulative.saturating_sub(order.filled);
        next.marks |= if adds == 0 { 0 } else { HAS_MANUAL_FILL };
        self.update_order(slot, &next);
        self.armed.remove(&slot);
        self.book_manual_fill(slot, adds);
        self.book_fill(&next, order.valuation_price, adds);
        out.push(report_output(&next, ExecType::OrderStatus, ClientOrderId(next.client)));
        self.notify_if_decided(&order, &next, out, |client| report_as(&next, ExecType::OrderStatus, client));
        true
    }

    /// Puts orders in doubt that have missed a venue sequence for too long.
    fn check_gaps(&mut self, at: At, out: &mut Outputs) -> bool {
        for gap in std::mem::take(&mut self.gapped) {
            let slot = gap.0;
            let order = self.orders.get_mut(slot);
            let is_over = order.is_contiguous() || !order.phase.is_live();
            if !is_over && !self.is_overdue(gap, at.stamp) {
                self.gapped.push(gap);
                continue;
            }
            self.orders.get_mut(slot).marks &= !HAS_GAP;
            if !is_over {
                self.put_in_doubt(at, slot, OrderEvent::ReportsLost, 0, out);
            }
        }
        true
    }

    /// Calls `take` for each open order of a venue.
    pub(crate) fn for_each_open(&mut self, venue: VenueId, mut take: impl FnMut(&mut Self, u32)) {
        let mut from = 0;
        while let Some(slot) = self.live.next(from) {
            from = slot + 1;
            if self.orders.get(slot).route == venue.0 {
                take(self, slot);
            }
        }
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
