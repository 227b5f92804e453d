//! Client requests: new orders, cancels, replaces, status requests and mass cancels.
//!
//! Each request is admitted (its session must be entitled, its id usable), checked, kept, and answered. An admitted
//! request uses its client id up even if a check denies it: a denied request sent again under the same id is a
//! duplicate, so no id is ever both denied and working. A request that is not admitted leaves its id free; only its
//! denial is counted.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, MassCancel, MassCancelType, NewOrder, OrderType, ReplaceOrder,
    Request, StatusRequest,
};
use tickpath_oms_risk::{Breach, RiskFacts, check};

use crate::client_reports::{report_as, report_output};
use crate::core::{At, Core};
use crate::open_orders::CancelFilter;
use crate::order::{END_TIME_PASSED, NONE, Order, PendingRequest, UNSEQUENCED_END};
use crate::recent::{DuplicateKey, RecentOrder};
use crate::state::{OrderEvent, OrderPhase, next_phase};
use crate::trading_config::{TradingContext, unknown_account};
use crate::{Denial, Envelope, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS, Outputs};

impl Core {
    /// Passes a request on to its venue, or denies it.
    #[inline]
    pub(crate) fn apply_request(&mut self, at: At, envelope: &Envelope, request: &Request, out: &mut Outputs) {
        let passed = match (self.admit(at, envelope, request), request) {
            (Err(refusal), _) => Err(refusal),
            (Ok(()), Request::New(new)) => self.new_order(at, envelope, new, out),
            (Ok(()), Request::Cancel(cancel)) => self.cancel(at, envelope, cancel, out),
            (Ok(()), Request::Replace(replace)) => self.replace(at, envelope, replace, out),
            (Ok(()), Request::Status(status)) => self.status(at, envelope, status, out),
            (Ok(()), Request::MassCancel(all)) => self.mass_cancel(at, envelope, all, out),
            (Ok(()), Request::Conditional(new)) => self.arm(at, envelope, new, out),
            (Ok(()), Request::ReplaceConditional(replace)) => self.replace_conditional(at, envelope, replace, out),
            (Ok(()), Request::Extended(new)) => self.extended_order(at, envelope, new, out),
            (Ok(()), Request::ByTextId(named)) => self.apply_by_text_id(at, envelope, named, out),
        };
        if let Err(refusal) = passed {
            let (client, position) = (request.client_order_id(), (request.account(), request.symbol()));
            self.deny(self.id(at), envelope.session, client, position, refusal, out);
        }
        self.ids.note_request(at.sequence);
    }

    /// Checks whether the session may make the request. Only entitled sessions' requests count for the account.
    fn admit(&mut self, at: At, envelope: &Envelope, request: &Request) -> Result<(), Breach> {
        let (session, account, client) = (envelope.session, self.account_of(request), request.client_order_id());
        if !self.ids.is_free(at.sequence) {
            return Err(Denial::Sequence.into());
        }
        let right = right_of(request);
        if !self.trading.permits(session, right) {
            return Err(self.not_permitted(session, right));
        }
        let is_entitled = self.trading.is_entitled(session, account);
        // A session that has lost the right to trade may still cancel its own orders.
        if right & (MAY_NEW | MAY_REPLACE) != 0 {
            if !self.trading.has_account(account) {
                return Err(unknown_account(account));
            }
            if !is_entitled {
                return Err(not_entitled(account));
            }
        }
        if is_entitled {
            self.trading.count_message(account, at.stamp, |ticks| self.clock.ns(ticks));
        }
        self.trading.count_session_message(session, at.stamp, |ticks| self.clock.ns(ticks));
        if client.0 == 0 {
            return Err(Denial::MissingClientOrderId.into());
        }
        match request {
            // A status request changes nothing, so its id may come twice.
            Request::Status(_) => Ok(()),
            Request::ByTextId(named) if named.is_status() => Ok(()),
            _ if self.orders.has_client_id(session, client.0) => Err(Denial::DuplicateClientOrderId.into()),
            _ => Ok(()),
        }
    }

    /// Returns the account of a request; for a cancel by order id, the order's account.
    fn account_of(&self, request: &Request) -> AccountId {
        let named = match request {
            Request::Cancel(cancel) if cancel.order_id.0 != 0 => self.orders.find(cancel.order_id.0),
            _ => None,
        };
        named.map_or(request.account(), |slot| self.orders.get(slot).account)
    }

    pub(crate) fn new_order(
        &mut self,
        at: At,
        envelope: &Envelope,
        new: &NewOrder,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        let mut order = self.build_order(at, envelope, new)?;
        let checked = self.check_new(at, envelope, &mut order);
        self.orders.use_up_if_denied(order.session, order.client, checked)?;
        let slot = self.add_order(order);
        let recent = || RecentOrder { key: DuplicateKey::of(&order), stamp: at.stamp };
        self.trading.add_recent(order.account, recent, |stamp| self.clock.ns(at.stamp.saturating_sub(stamp)));
        let new_order = NewOrder { client_order_id: ClientOrderId(order.id), ..*new };
        if !self.retries.rules.is_empty() {
            self.retries.track(&order, new_order, envelope.sent);
        }
        let request = Request::New(new_order);
        self.send(slot, order.session, request, envelope.sent, out);
        out.push(report_output(&order, ExecType::PendingNew, new.client_order_id));
        Ok(())
    }

    /// Builds the order that a request asks for, without the fields that the checks set.
    #[inline]
    pub(crate) fn build_order(&self, at: At, envelope: &Envelope, new: &NewOrder) -> Result<Order, Denial> {
        let mut order = Order::of_request(new).ok_or(Denial::Malformed)?;
        (order.id, order.session) = (self.id(at), envelope.session);
        if order.order_type == OrderType::Market {
            order.valuation_price = envelope.reference_price.0;
        }
        Ok(order)
    }

    /// Checks a new order, and sets its position, its venue and its phase.
    fn check_new(&mut self, at: At, envelope: &Envelope, order: &mut Order) -> Result<(), Breach> {
        self.trading.context(order.account, order.symbol)?;
        order.position = self.positions.find_or_create(order.account, order.symbol);
        self.count_symbol_message(at, envelope, order);
        let entry = self.trading.context(order.account, order.symbol)?;
        order.venue = entry.instrument.venue;
        let facts = RiskFacts {
            increase: order.quantity.max(0),
            worst_position: self.positions.get(order.position).worst_position(order.side),
            request_age_ns: self.clock.ns(at.stamp.saturating_sub(envelope.sent)),
            open_orders: entry.open.orders.saturating_add(1),
            added_quantity: order.quantity.max(0),
            ..facts(&entry, envelope, order)
        };
        check(&facts)?;
        self.check_optional(&entry, &facts, order, at.stamp, false)?;
        let venue = self.venues.get(order.venue);
        order.phase = if venue.sends_at_once() { OrderPhase::Sent } else { OrderPhase::Queued };
        venue.check_queue_room()
    }

    /// Counts a new order or a replace for its symbol, and notes the symbol's reference price.
    #[inline]
    fn count_symbol_message(&mut self, at: At, envelope: &Envelope, order: &Order) {
        let price = envelope.reference_price.0;
        self.note_first_price(order.symbol, price);
        self.trading.count_symbol_message(order.symbol, price, at.stamp, |ticks| self.clock.ns(ticks));
    }

    pub(crate) fn cancel(
        &mut self,
        at: At,
        envelope: &Envelope,
        cancel: &CancelOrder,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        let (session, client) = (envelope.session, cancel.client_order_id.0);
        let checked = self.check_cancel(envelope, cancel);
        let slot = self.orders.use_up_if_denied(session, client, checked)?;
        let pending = PendingRequest { id: self.id(at), client, session, ..PendingRequest::EMPTY };
        let pending = self.orders.add_pending(pending);
        self.request_cancel(at, slot, pending, cancel.cause, envelope.sent, out);
        Ok(())
    }

    /// Sends a cancel to the venue, or withdraws an order that never left. `pending` is the slot of the cancel.
    pub(crate) fn request_cancel(&mut self, at: At, slot: u32, pending: u32, cause: u64, sent: u64, out: &mut Outputs) {
        let before = *self.orders.get(slot);
        let order = Order { cancel: pending, ..before };
        self.update_order(slot, &order);
        let client = self.owners_request_id(&order, pending);
        if matches!(before.phase, OrderPhase::Queued | OrderPhase::Armed) {
            return self.withdraw(slot, client, ExecType::Canceled, out);
        }
        let request = Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(self.id(at)),
            original: self.id_at_venue(&order),
            cause,
            symbol: order.symbol,
            account: order.account,
            ..CancelOrder::default()
        });
        let is_sent = self.send(slot, order.session, request, sent, out);
        self.orders.pending_mut(pending).waits = u8::from(!is_sent);
        out.push(report_output(&order, ExecType::PendingCancel, client));
        self.notify_requester(&order, pending, out, |client| report_as(&order, ExecType::PendingCancel, client));
        // The cancel of an unknown order may be sent again: only the latest cancel is outstanding.
        self.notify_if_decided(&before, &order, out, |client| report_as(&order, ExecType::OrderStatus, client));
    }

    /// Withdraws an order that still waits in the OMS and that no venue has received.
    pub(crate) fn withdraw(&mut self, slot: u32, client: ClientOrderId, exec_type: ExecType, out: &mut Outputs) {
        let before = *self.orders.get(slot);
        let phase = before.phase.after(OrderEvent::Withdrawn);
        let exec_type = if before.marks & END_TIME_PASSED == 0 { exec_type } else { ExecType::Expired };
        // A venue's report would contradict that the order never left.
        let order = Order { phase, cancel: NONE, replace: NONE, marks: before.marks | UNSEQUENCED_END, ..before };
        self.update_order(slot, &order);
        self.retries.untrack(order.id);
        self.venues.get(order.venue).waiting.remove(slot, |_| true);
        self.triggers.remove(&slot);
        self.report_change(&before, &order, exec_type, client, out);
    }

    /// Checks a cancel and returns its order. Limits and kill switches never deny a cancel.
    fn check_cancel(&self, envelope: &Envelope, cancel: &CancelOrder) -> Result<u32, Breach> {
        let slot = match cancel.order_id.0 {
            0 => self.find_named(envelope, cancel.account, cancel.original)?,
            id => self.find_permitted(envelope.session, id)?,
        };
        let order = self.orders.get(slot);
        next_phase(order.phase, OrderEvent::Cancel)?;
        // The cancel of an unknown order may be lost and can be sent again, unless it still waits in the OMS.
        match (order.phase.is_unknown(), order.cancel != NONE) {
            (false, _) if order.leaves() == 0 => Err(Denial::TooLate.into()),
            (false, true) => Err(Denial::AlreadyPending.into()),
            (true, true) if self.orders.waits(order.cancel) => Err(Denial::AlreadyPending.into()),
            (true, _) | (false, false) => Ok(slot),
        }
    }

    fn replace(
        &mut self,
        at: At,
        envelope: &Envelope,
        replace: &ReplaceOrder,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        if !self.triggers.is_empty()
            && let Some(done) = self.replace_armed(at, envelope, replace, out)
        {
            return done;
        }
        let client = replace.client_order_id;
        let checked = self.check_replace(at, envelope, replace);
        let slot = self.orders.use_up_if_denied(envelope.session, client.0, checked)?;
        let pending = self.orders.add_pending(PendingRequest {
            id: self.id(at),
            client: client.0,
            quantity: replace.quantity.0,
            price: replace.price.0,
            session: envelope.session,
            ..PendingRequest::EMPTY
        });
        let order = Order { replace: pending, ..*self.orders.get(slot) };
        self.update_order(slot, &order);
        let request = Request::Replace(ReplaceOrder {
            client_order_id: ClientOrderId(self.id(at)),
            original: self.id_at_venue(&order),
            symbol: order.symbol,
            ..*replace
        });
        let is_sent = self.send(slot, order.session, request, envelope.sent, out);
        self.orders.pending_mut(pending).waits = u8::from(!is_sent);
        out.push(report_output(&order, ExecType::PendingReplace, client));
        Ok(())
    }

    /// Checks a replace: position limits apply to the added quantity, all other limits to the order as it would be.
    fn check_replace(&mut self, at: At, envelope: &Envelope, replace: &ReplaceOrder) -> Result<u32, Breach> {
        let slot = self.find_named(envelope, replace.account, replace.original)?;
        let order = *self.orders.get(slot);
        check_replaceable(&order)?;
        if order.cancel != NONE || order.replace != NONE {
            return Err(Denial::AlreadyPending.into());
        }
        self.count_symbol_message(at, envelope, &order);
        let request_age_ns = self.clock.ns(at.stamp.saturating_sub(envelope.sent));
        let (price, quantity, stamp) = (replace.price.0, replace.quantity.0, at.stamp);
        let change = NewTerms { price, quantity, request_age_ns, has_waited: false, stamp };
        self.check_change(envelope, &order, &change)?;
        self.venues.get(order.venue).check_queue_room()?;
        Ok(slot)
    }

    /// Checks an order as it would be after a replace. A replace that has waited is part of the account's open value
    /// already, so its value is left out.
    pub(crate) fn check_change(&self, envelope: &Envelope, order: &Order, change: &NewTerms) -> Result<(), Breach> {
        let entry = self.trading.context(order.account, order.symbol)?;
        let (replacing, replacing_price) = self.orders.pending_replace(order);
        let holds = order.value(0, 0, entry.size);
        let worst = self.positions.get(order.position).worst_position(order.side);
        let facts = facts(&entry, envelope, order);
        let facts = RiskFacts {
            price: change.price,
            quantity: change.quantity,
            minimum: order.known_filled().saturating_add(1),
            increase: change.quantity.saturating_sub(order.quantity).max(0),
            worst_position: worst - i128::from(order.exposure(replacing)) + i128::from(order.exposure(0)),
            request_age_ns: change.request_age_ns,
            messages: if change.has_waited { 0 } else { facts.messages },
            added_quantity: change.quantity.saturating_sub(order.filled).max(0),
            used: facts.used.saturating_sub(order.value(replacing, replacing_price, entry.size)).saturating_add(holds),
            held_value: holds,
            own_used: order.value(replacing, replacing_price, entry.size),
            ..facts
        };
        check(&facts)?;
        self.check_optional(&entry, &facts, order, change.stamp, change.has_waited)
    }

    /// Reports an order's state, and asks the venue if the order is in doubt.
    fn status(&mut self, at: At, envelope: &Envelope, status: &StatusRequest, out: &mut Outputs) -> Result<(), Breach> {
        let slot = self.find_named(envelope, status.account, status.original)?;
        if self.orders.get(slot).phase.is_unknown() {
            self.query_status(at, slot, out);
        }
        let order = *self.orders.get(slot);
        self.report_extension(&order, order.session, status.client_order_id, out);
        out.push(report_output(&order, ExecType::OrderStatus, status.client_order_id));
        Ok(())
    }

    /// Requests the cancel of all working orders of a session for an account, or in one symbol of the account.
    fn mass_cancel(&mut self, at: At, envelope: &Envelope, all: &MassCancel, out: &mut Outputs) -> Result<(), Breach> {
        let (session, client) = (envelope.session, all.client_order_id.0);
        let filter = match MassCancelType::from_code(all.cancel_type) {
            Some(MassCancelType::All) => CancelFilter::Account { session, account: all.account },
            Some(MassCancelType::Symbol) => {
                let position = self.positions.find(all.account, all.symbol).unwrap_or(NONE);
                CancelFilter::Position { session, position }
            }
            None => return Err(Denial::Malformed.into()),
        };
        self.orders.add_used_id(session, client);
        self.cancel_all(at, Some((client, session)), out, filter);
        if !out.is_empty() {
            return Ok(());
        }
        // Every request gets an answer: the open orders have outstanding cancels, or there are none.
        Err(if self.orders.open.has_open(filter) { Denial::AlreadyPending } else { Denial::UnknownOrder }.into())
    }

    /// Requests the cancel of every open order in scope that has no outstanding cancel, by ascending id. The order's
    /// client gets a report under the request's id, or under the order's id if no session asked for the cancel.
    ///
    /// This is one input, so all of its outputs are one turn of the core's thread. The turn grows with the number of
    /// orders that it cancels, each of which came by a request of its own.
    pub(crate) fn cancel_all(&mut self, at: At, asked: Option<(u64, u16)>, out: &mut Outputs, filter: CancelFilter) {
        // The cancel of an order changes no other order.
        for slot in self.orders.find_cancelable(filter) {
            let order = self.orders.get(slot);
            let (client, session) = asked.unwrap_or((order.client, order.session));
            let cancel = PendingRequest { id: self.id(at), client, session, ..PendingRequest::EMPTY };
            let pending = self.orders.add_pending_unindexed(cancel);
            self.request_cancel(at, slot, pending, 0, at.stamp, out);
        }
    }

    /// Returns the order that a request names, if it belongs to the session and the account.
    pub(crate) fn find_named(
        &self,
        envelope: &Envelope,
        account: AccountId,
        original: ClientOrderId,
    ) -> Result<u32, Breach> {
        let named = self.orders.find_by_client(envelope.session, original.0);
        named.filter(|&slot| self.orders.get(slot).account == account).ok_or(Denial::UnknownOrder.into())
    }

    /// Returns the order with this id, if the session owns it or may trade for its account. Any other id is reported as
    /// unknown, so that a session cannot probe for orders.
    pub(crate) fn find_permitted(&self, session: u16, id: u64) -> Result<u32, Breach> {
        let may_name = |order: &Order| order.session == session || self.trading.is_entitled(session, order.account);
        self.orders.find(id).filter(|&slot| may_name(self.orders.get(slot))).ok_or(Denial::UnknownOrder.into())
    }

    /// Checks whether a session still has the rights for a request that it sent earlier.
    pub(crate) fn check_rights(&self, session: u16, account: AccountId, request: &Request) -> Result<(), Breach> {
        let right = right_of(request);
        if !self.trading.permits(session, right) {
            return Err(self.not_permitted(session, right));
        }
        if self.trading.is_entitled(session, account) { Ok(()) } else { Err(not_entitled(account)) }
    }

    /// Builds the refusal of a request whose right the session lacks, or that its kill switch denies.
    #[cold]
    fn not_permitted(&self, session: u16, right: u8) -> Breach {
        match self.trading.is_killed(session, right) {
            true => Breach { denial: Denial::KillSwitch, limit: 0, value: 1 },
            false => Breach { denial: Denial::NotPermitted, limit: 0, value: right.into() },
        }
    }
}

/// Terms of a replace under check.
pub(crate) struct NewTerms {
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) request_age_ns: u64,
    /// The replace waited in the OMS, so the rate window of its message has passed.
    pub(crate) has_waited: bool,
    /// Time of the check, in ticks.
    pub(crate) stamp: u64,
}

/// Checks whether an order can still be replaced.
pub(crate) fn check_replaceable(order: &Order) -> Result<(), Denial> {
    next_phase(order.phase, OrderEvent::Replace)?;
    if order.leaves() == 0 { Err(Denial::TooLate) } else { Ok(()) }
}

/// Builds the facts of an order that do not depend on the kind of request.
pub(crate) fn facts<'a>(entry: &TradingContext<'a>, envelope: &Envelope, order: &Order) -> RiskFacts<'a> {
    RiskFacts {
        limits: entry.limits,
        size: entry.size,
        kills: entry.kills,
        disk_failed: entry.disk_failed,
        messages: entry.messages,
        order_type: order.order_type,
        price: order.price,
        quantity: order.quantity,
        minimum: 1,
        increase: 0,
        worst_position: 0,
        reference_price: envelope.reference_price.0,
        reference_age_ns: envelope.reference_age_ns,
        request_age_ns: 0,
        open_orders: 0,
        used: entry.open.value.saturating_add(entry.open.traded),
        added_quantity: 0,
        held_value: 0,
        own_used: 0,
    }
}

/// Returns the right that a request needs.
fn right_of(request: &Request) -> u8 {
    match request {
        Request::New(_) | Request::Conditional(_) | Request::Extended(_) => MAY_NEW,
        Request::ByTextId(named) if named.is_status() => MAY_STATUS,
        Request::Cancel(_) | Request::ByTextId(_) => MAY_CANCEL,
        Request::Replace(_) | Request::ReplaceConditional(_) => MAY_REPLACE,
        Request::MassCancel(_) => MAY_MASS_CANCEL,
        Request::Status(_) => MAY_STATUS,
    }
}

/// Builds the refusal for an account that the session may not trade for.
fn not_entitled(account: AccountId) -> Breach {
    Breach { denial: Denial::NotEntitled, limit: 0, value: account.0.into() }
}
