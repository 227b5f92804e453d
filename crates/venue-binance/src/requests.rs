//! Requests of the OMS: checked, written and sent. Nothing is noted of a request that the socket does not take.

use tickpath_clock::Clock;
use tickpath_market::{
    CancelOrder, ExecType, ExecutionReport, NewOrder, OrdStatus, ReplaceOrder, Request, StatusRequest,
};
use tickpath_venue::{LineSendError, SendStamps, TOO_LATE};
use tickpath_web_client::WebSocketClient;

use crate::budget::{RequestCost, Urgency, UsedUp};
use crate::encode::{OrderRef, PlacedOrder, RequestId};
use crate::identity::{MAX_GENERATION, OrderIdentity, TextUse};
use crate::jobs::JobKind;
use crate::list_job::ListJob;
use crate::order_encoder::NewOrderText;
use crate::order_job::{JobPurpose, OrderJob};
use crate::orders::{LineOrder, PendingReplace, ReplaceStep};
use crate::pending::{PendingRequest, RequestKind};
use crate::reports::{RefusedRequest, detail};
use crate::session::{LineSession, Phase};
use crate::terms::OrderTerms;

/// `reason` of a report whose request this line has refused itself: the detail of the report has the sentence. All
/// other reasons beside those of the contract are the exchange's codes without their minus.
pub const REFUSED_BY_LINE: u16 = 100;

const PLACE: RequestCost = RequestCost { urgency: Urgency::Order, weight: 1, orders: 1 };
const CANCEL: RequestCost = RequestCost::weight(Urgency::Cancel, 1);
const AMEND: RequestCost = RequestCost::weight(Urgency::Order, 4);
/// Both steps of a replace, so that the second one is never kept back.
const CANCEL_THEN_PLACE: RequestCost = RequestCost { urgency: Urgency::Order, weight: 2, orders: 1 };

const NO_INSTRUMENT: LocalRefusal = (REFUSED_BY_LINE, "the line has no such instrument");
const TRIGGERS: LocalRefusal = (REFUSED_BY_LINE, "triggers are the OMS's work");
const TEXT_IDS: LocalRefusal = (REFUSED_BY_LINE, "the OMS keeps the text ids of orders");
const TOO_MANY_QUESTIONS: LocalRefusal = (REFUSED_BY_LINE, "too many questions for orders wait; ask again later");
const HAS_ENDED: LocalRefusal = (TOO_LATE, "the order has ended");
/// Reasons as the exchange gives them beyond its limits.
const ORDERS_USED_UP: LocalRefusal = (1015, "the limit of new orders is used up");
const WEIGHT_USED_UP: LocalRefusal = (1003, "the request weight for orders is used up");

/// Refusal of a request that does not leave: the reason of its report, and the text of the detail.
type LocalRefusal = (u16, &'static str);

/// Reasons why a new order was not written.
enum Unwritten {
    Limit(UsedUp),
    Refused(LocalRefusal),
}

impl LineSession {
    /// Sends a request, or refuses it by a report.
    #[inline]
    pub(crate) fn send(
        &mut self,
        client: &mut WebSocketClient,
        number: u64,
        request: &Request,
    ) -> Result<(), LineSendError> {
        match &self.phase {
            Phase::Up { .. } => {}
            // The connection ends: the request leaves by the next one.
            Phase::Draining { .. } => return Err(LineSendError::Full),
            Phase::Down | Phase::Refused(_) | Phase::Connecting { .. } => return Err(LineSendError::Down),
        }
        match request {
            Request::New(new) => self.send_new(client, number, new),
            Request::Cancel(cancel) => self.send_cancel(client, number, cancel),
            Request::Replace(replace) => self.send_replace(client, number, replace),
            Request::Status(status) => {
                self.take_status(number, status);
                Ok(())
            }
            Request::MassCancel(all) => {
                let (symbol, account, request) = (all.symbol, all.account, all.client_order_id.0);
                let asked = RefusedRequest { order: 0, request, symbol, account };
                let why = (REFUSED_BY_LINE, "this line cancels orders one by one");
                self.refuse_change(number, RequestKind::Cancel, &asked, why);
                Ok(())
            }
            Request::Conditional(new) => {
                self.refuse_new(number, &new.order, TRIGGERS);
                Ok(())
            }
            Request::Extended(new) => {
                self.refuse_new(number, &new.order, TEXT_IDS);
                Ok(())
            }
            Request::ByTextId(named) => {
                let (symbol, account, request) = (named.symbol, named.account, named.client_order_id.0);
                let asked = RefusedRequest { order: 0, request, symbol, account };
                self.refuse_change(number, RequestKind::Cancel, &asked, TEXT_IDS);
                Ok(())
            }
            Request::ReplaceConditional(rearm) => {
                let (order, request) = (rearm.original.0, rearm.client_order_id.0);
                let asked = RefusedRequest { order, request, symbol: rearm.symbol, account: rearm.account };
                self.refuse_change(number, RequestKind::Replace, &asked, TRIGGERS);
                Ok(())
            }
        }
    }

    #[inline]
    fn send_new(&mut self, client: &mut WebSocketClient, number: u64, new: &NewOrder) -> Result<(), LineSendError> {
        let now = self.clock.ticks();
        let order = match self.write_new(number, new, now) {
            Ok(order) => order,
            Err(Unwritten::Limit(used_up)) => {
                self.refuse_new(number, new, beyond_limit(used_up)?);
                return Ok(());
            }
            Err(Unwritten::Refused(why)) => {
                self.refuse_new(number, new, why);
                return Ok(());
            }
        };
        self.last_send = self.out.send(client, PLACE, now)?;
        self.orders.add(order);
        self.pending.add(PendingRequest::new(number, RequestKind::Place, asked_by(new), Some(now)));
        Ok(())
    }

    /// Writes a new order that is not sent, so that the memory of the next one is in the caches. None if the line is not
    /// up, or has no room for an order now.
    pub(crate) fn rehearse(&mut self, new: &NewOrder) -> Option<&str> {
        let Phase::Up { .. } = self.phase else { return None };
        self.write_new(1, new, self.clock.ticks()).ok()?;
        Some(self.out.encoder.text())
    }

    /// Writes a new order.
    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    fn write_new(&mut self, number: u64, new: &NewOrder, now: u64) -> Result<LineOrder, Unwritten> {
        let found = self.orders.instruments.find_symbol(new.symbol);
        let place = found.ok_or(Unwritten::Refused(NO_INSTRUMENT))?;
        let instrument = self.orders.instruments.get(place);
        let terms = OrderTerms::of_new(new, instrument).map_err(|why| Unwritten::Refused((REFUSED_BY_LINE, why)))?;
        if let Some(used_up) = self.out.budget.used_up(PLACE, now) {
            return Err(Unwritten::Limit(used_up));
        }
        let identity = OrderIdentity::first(new.client_order_id.0, new.account);
        let order = NewOrderText { identity: &identity, tag: self.orders.tag, symbol: &instrument.name, terms: &terms };
        order.write(&mut self.out.encoder, number, self.out.exchange.ms(now));
        Ok(LineOrder::new(identity, place, terms, now))
    }

    fn send_cancel(
        &mut self,
        client: &mut WebSocketClient,
        number: u64,
        cancel: &CancelOrder,
    ) -> Result<(), LineSendError> {
        let (order, request) = (cancel.original.0, cancel.client_order_id.0);
        let asked = RefusedRequest { order, request, symbol: cancel.symbol, account: cancel.account };
        let kind = RequestKind::Cancel;
        if self.orders.instruments.find_symbol(asked.symbol).is_none() {
            self.refuse_change(number, kind, &asked, NO_INSTRUMENT);
            return Ok(());
        }
        if let Some(known) = self.orders.get_mut(order) {
            if known.has_ended {
                self.refuse_change(number, kind, &asked, HAS_ENDED);
                return Ok(());
            }
            if known.waiting_cancel.is_some() {
                self.refuse_change(number, kind, &asked, (REFUSED_BY_LINE, "another cancel of the order waits"));
                return Ok(());
            }
            // The replace decides which generation there is to cancel.
            if known.replace.is_some_and(|replace| replace.step != ReplaceStep::Doubtful) {
                known.waiting_cancel = Some((number, request));
                self.pending.add(PendingRequest::new(number, kind, asked, None));
                return Ok(());
            }
        }
        let now = self.clock.ticks();
        self.last_send = self.send_cancel_of(client, number, &asked, now)?;
        self.pending.add(PendingRequest::new(number, kind, asked, Some(now)));
        Ok(())
    }

    /// Sends the cancel of the present generation of an order.
    pub(crate) fn send_cancel_of(
        &mut self,
        client: &mut WebSocketClient,
        number: u64,
        asked: &RefusedRequest,
        now: u64,
    ) -> Result<SendStamps, LineSendError> {
        if !self.out.budget.has_room(CANCEL, now) {
            return Err(LineSendError::Full);
        }
        self.write_cancel(RequestId::Number(number), asked, TextUse::Canceled, now);
        let stamps = self.out.send(client, CANCEL, now)?;
        if let Some(known) = self.orders.get_mut(asked.order) {
            // The exchange carries out the first of several cancels.
            known.cancel.get_or_insert(asked.request);
        }
        Ok(stamps)
    }

    /// Writes the cancel of the present generation of an order, which gets the text of this use.
    fn write_cancel(&mut self, id: RequestId, asked: &RefusedRequest, text_use: TextUse, now: u64) {
        let first = OrderIdentity::first(asked.order, asked.account);
        let known = self.orders.get(asked.order);
        let (identity, venue_id) = known.map_or((first, 0), |known| (known.identity, known.venue_id));
        let own = identity.text(self.orders.tag, TextUse::Order);
        let canceled = identity.text(self.orders.tag, text_use);
        let order = if venue_id > 0 { OrderRef::Id(venue_id) } else { OrderRef::Text(own.as_str()) };
        let Some(place) = self.orders.instruments.find_symbol(asked.symbol) else { return };
        let symbol = &self.orders.instruments.get(place).name;
        self.out.encoder.cancel(id, symbol, order, canceled.as_str(), self.out.exchange.ms(now));
    }

    fn send_replace(
        &mut self,
        client: &mut WebSocketClient,
        number: u64,
        replace: &ReplaceOrder,
    ) -> Result<(), LineSendError> {
        let (order, request) = (replace.original.0, replace.client_order_id.0);
        let asked = RefusedRequest { order, request, symbol: replace.symbol, account: replace.account };
        let kind = RequestKind::Replace;
        let Some(place) = self.orders.instruments.find_symbol(asked.symbol) else {
            self.refuse_change(number, kind, &asked, NO_INSTRUMENT);
            return Ok(());
        };
        let Some(known) = self.orders.get(order) else {
            if !self.jobs.has_room() {
                self.refuse_change(number, kind, &asked, TOO_MANY_QUESTIONS);
                return Ok(());
            }
            // The side of the order is not known, so that there is nothing to send.
            let text = "this line does not know the order; cancel it".to_owned();
            let purpose = JobPurpose::Refusal { reason: REFUSED_BY_LINE, text };
            let job = OrderJob::new(purpose, asked, place, &self.orders);
            self.jobs.add(Some(number), JobKind::Order(Box::new(job)));
            self.pending.add(PendingRequest::new(number, kind, asked, None));
            return Ok(());
        };
        if known.has_ended {
            self.refuse_change(number, kind, &asked, HAS_ENDED);
            return Ok(());
        }
        let lot = self.orders.instruments.get(place).lot.0;
        if let Some(why) = obstacle(known, replace, lot) {
            self.refuse_change(number, kind, &asked, (REFUSED_BY_LINE, why));
            return Ok(());
        }
        let pending = plan(known, replace);
        let now = self.clock.ticks();
        let cost = match pending.step {
            ReplaceStep::Amend => AMEND,
            ReplaceStep::Swap => PLACE,
            ReplaceStep::Cancel | ReplaceStep::Place | ReplaceStep::Doubtful => CANCEL_THEN_PLACE,
        };
        if let Some(used_up) = self.out.budget.used_up(cost, now) {
            self.refuse_change(number, kind, &asked, beyond_limit(used_up)?);
            return Ok(());
        }
        self.write_replace(RequestId::Number(number), &asked, &pending, now);
        self.last_send = self.out.send(client, cost, now)?;
        if let Some(known) = self.orders.get_mut(order) {
            known.replace = Some(pending);
            known.last_sent = now;
        }
        self.pending.add(PendingRequest::new(number, kind, asked, Some(now)));
        Ok(())
    }

    /// Writes the first request of a replace.
    fn write_replace(&mut self, id: RequestId, asked: &RefusedRequest, pending: &PendingReplace, now: u64) {
        let Some(known) = self.orders.get(asked.order) else { return };
        let symbol = &self.orders.instruments.get(known.instrument).name;
        let own = known.identity.text(self.orders.tag, TextUse::Order);
        let order = if known.venue_id > 0 { OrderRef::Id(known.venue_id) } else { OrderRef::Text(own.as_str()) };
        let timestamp_ms = self.out.exchange.ms(now);
        match pending.step {
            ReplaceStep::Amend => {
                let amended = (own.as_str(), pending.terms.quantity);
                self.out.encoder.amend(id, symbol, order, amended, timestamp_ms);
            }
            ReplaceStep::Swap => {
                let canceled = known.identity.text(self.orders.tag, TextUse::Replaced);
                let text = pending.identity.text(self.orders.tag, TextUse::Order);
                let placed = PlacedOrder { symbol, text: text.as_str(), terms: &pending.terms };
                self.out.encoder.cancel_replace(id, order, canceled.as_str(), &placed, timestamp_ms);
            }
            ReplaceStep::Cancel | ReplaceStep::Place | ReplaceStep::Doubtful => {
                self.write_cancel(id, asked, TextUse::Replaced, now);
            }
        }
    }

    /// Takes a status request, whose queries leave as the limits allow.
    fn take_status(&mut self, number: u64, status: &StatusRequest) {
        let (order, request) = (status.original.0, status.client_order_id.0);
        let asked = RefusedRequest { order, request, symbol: status.symbol, account: status.account };
        self.pending.add(PendingRequest::new(number, RequestKind::Status, asked, None));
        if !self.jobs.has_room() {
            return self.refuse_status(number, &asked, TOO_MANY_QUESTIONS);
        }
        if status.asks_for_all_orders() {
            let list = ListJob::new(status, self.out.exchange.ms(self.clock.ticks()));
            return self.jobs.add(Some(number), JobKind::List(Box::new(list)));
        }
        let Some(place) = self.orders.instruments.find_symbol(status.symbol) else {
            return self.refuse_status(number, &asked, NO_INSTRUMENT);
        };
        let job = OrderJob::new(JobPurpose::Answer { fills: status.fills != 0 }, asked, place, &self.orders);
        self.jobs.add(Some(number), JobKind::Order(Box::new(job)));
    }

    /// Refuses a new order.
    #[cold]
    fn refuse_new(&mut self, number: u64, new: &NewOrder, (reason, why): LocalRefusal) {
        let asked = asked_by(new);
        let report = self.orders.refusal(&asked, ExecType::Rejected);
        let (side, price) = (new.side, new.price);
        self.orders.outbox.report(ExecutionReport { reason, side, price, ..report });
        self.orders.outbox.detail(detail(asked.order, (0, 0), why));
        self.pending.add(PendingRequest::new(number, RequestKind::Place, asked, None));
        self.settle_here(number);
    }

    /// Refuses a cancel or a replace.
    #[cold]
    fn refuse_change(&mut self, number: u64, kind: RequestKind, asked: &RefusedRequest, (reason, why): LocalRefusal) {
        self.orders.push_cancel_rejected(asked, reason, why);
        self.pending.add(PendingRequest::new(number, kind, *asked, None));
        self.settle_here(number);
    }

    /// Answers a status request that was added without a state.
    #[cold]
    fn refuse_status(&mut self, number: u64, asked: &RefusedRequest, (reason, why): LocalRefusal) {
        let report = self.orders.refusal(asked, ExecType::OrderStatus);
        self.orders.outbox.report(ExecutionReport { reason, status: OrdStatus::Unknown.code(), ..report });
        self.orders.outbox.detail(detail(asked.order, (0, 0), why));
        self.settle_here(number);
    }

    /// Notes that a request is answered, by the line or by the exchange.
    pub(crate) fn settle_here(&mut self, number: u64) {
        self.pending.answer(number);
        self.acknowledge();
    }

    /// Passes on the proof of receipt that the answers so far are.
    #[inline]
    pub(crate) fn acknowledge(&mut self) {
        if let Some(next_request) = self.pending.advance() {
            self.orders.outbox.acknowledge(next_request);
        }
    }
}

/// Returns the refusal of an order beyond a limit: the requests behind it in the lane must not wait, cancels above all.
/// The error keeps the order back, where no cancel could leave either.
fn beyond_limit(used_up: UsedUp) -> Result<LocalRefusal, LineSendError> {
    match used_up {
        UsedUp::Orders => Ok(ORDERS_USED_UP),
        UsedUp::Weight => Ok(WEIGHT_USED_UP),
        UsedUp::All => Err(LineSendError::Full),
    }
}

fn asked_by(new: &NewOrder) -> RefusedRequest {
    let order = new.client_order_id.0;
    RefusedRequest { order, request: order, symbol: new.symbol, account: new.account }
}

/// Returns the reason why an order cannot be replaced, if there is one.
fn obstacle(known: &LineOrder, replace: &ReplaceOrder, lot: i64) -> Option<&'static str> {
    if !known.terms.is_limit() {
        return Some("only a limit order can be replaced");
    }
    if known.waiting_cancel.is_some() {
        return Some("a cancel of the order waits");
    }
    if known.replace.is_some() {
        return Some("another replace of the order is not decided");
    }
    if known.identity.generation >= MAX_GENERATION {
        return Some("the order was replaced too often; place another one");
    }
    (lot > 0 && replace.quantity.0 % lot != 0).then_some("the quantity is no multiple of the lot")
}

/// Plans a replace: a lower total at the same price keeps the place in the book. Otherwise the order is canceled, and
/// placed again with the quantity that is left: at once if it has no fills, which the exchange checks, and else when the
/// answer to the cancel shows how much is filled, so that no fill in between is bought twice.
fn plan(known: &LineOrder, replace: &ReplaceOrder) -> PendingReplace {
    let total = replace.quantity.0;
    let rest = total.saturating_sub(known.identity.base);
    let terms = OrderTerms { price: replace.price.0, quantity: rest, ..known.terms };
    let request = replace.client_order_id.0;
    let (step, identity) = if replace.price.0 == known.terms.price && total <= known.total() {
        (ReplaceStep::Amend, known.identity)
    } else if known.filled == 0 && rest > 0 {
        (ReplaceStep::Swap, known.identity.next(0))
    } else {
        (ReplaceStep::Cancel, known.identity.next(known.filled))
    };
    PendingReplace { request, step, identity, terms, total }
}
