//! Events of orders. An event is passed on once, whatever came before it: duplicates are found by the trade id, the
//! execution id of an amendment, and the order's acceptance and end.

use tickpath_market::{ExecType, ExecutionReport};

use crate::identity::{OrderIdentity, TextUse};
use crate::message::{EventKind, OrderEvent, OrderRecord, OrderState, UnreadableEvent, printable};
use crate::orders::{LineOrder, LineOrders, PendingReplace, ReplaceStep, insert_new};
use crate::reports::{OrderFill, OrderSnapshot, detail};

/// The end of an order, for its report.
pub(crate) struct OrderEnd<'a> {
    pub(crate) exec_type: ExecType,
    /// Request that it answers; zero for none.
    pub(crate) request: u64,
    pub(crate) reason: u16,
    /// Times of the transaction and of the event, in milliseconds since the Unix epoch; zero if unknown.
    pub(crate) times: (u64, u64),
    pub(crate) text: &'a str,
}

impl LineOrders {
    /// Passes an event of an order on. Orders of other programs, and of other instruments, are left out.
    pub(crate) fn apply_event(&mut self, event: &OrderEvent<'_>) {
        self.known_until_ms = self.known_until_ms.max(event.event_ms);
        let Some(instrument) = self.instruments.find(event.symbol) else { return };
        let text = if event.original.is_empty() { event.client } else { event.original };
        let Some((_, identity)) = OrderIdentity::read(text, self.tag) else { return };
        let (kind, state) = match (event.kind, event.state) {
            // The replacement of a canceled order was rejected, so the order never got this generation.
            (Some(EventKind::Rejected), _) => {
                return self.apply_rejection(event, identity, instrument);
            }
            (Some(kind), Some(state)) => (kind, state),
            // A kind of event, or a state, that this line does not know.
            _ => {
                self.learn(event, identity, instrument);
                return self.push_doubt(&identity, instrument);
            }
        };
        self.learn(event, identity, instrument);
        let snapshot = OrderSnapshot::of_event(event, state, identity, instrument);
        match kind {
            EventKind::New => self.apply_acceptance(&snapshot),
            EventKind::Trade => self.apply_trade(event, &snapshot),
            EventKind::Replaced => self.apply_amendment(event, &snapshot),
            EventKind::Canceled => self.apply_cancel(event, &snapshot),
            EventKind::Expired => self.apply_end(event, &snapshot, ExecType::Expired, 0),
            EventKind::Prevented if !state.is_working() => self.apply_end(event, &snapshot, ExecType::Expired, 0),
            // A part of the order has expired, which no report can show: the answer of the exchange does.
            EventKind::Prevented => self.push_doubt(&identity, instrument),
            // Handled above.
            EventKind::Rejected => {}
        }
    }

    /// Puts the order of an event in doubt that cannot be read. Orders of other programs are left out.
    pub(crate) fn apply_unreadable(&mut self, event: &UnreadableEvent<'_>) {
        let Some(instrument) = self.instruments.find(event.symbol) else { return };
        let Some((_, identity)) = OrderIdentity::read(event.client, self.tag) else { return };
        self.push_unreadable(&identity, instrument, &event.name, &event.why);
    }

    /// Notes the state of an order as the exchange has answered it; an order that is not known is added.
    pub(crate) fn settle(
        &mut self,
        identity: OrderIdentity,
        instrument: usize,
        record: &OrderRecord,
        state: OrderState,
    ) {
        let order = identity.order;
        match self.get(order).map(|known| known.identity.generation) {
            Some(present) if identity.generation < present => return,
            Some(present) if identity.generation > present => {
                let snapshot = OrderSnapshot::of_record(record, OrderState::Working, identity, instrument);
                let unfilled = OrderSnapshot { executed: 0, leaves: record.terms.quantity, ..snapshot };
                self.begin_generation(&unfilled, (0, 0));
            }
            Some(_) => {}
            None => {
                let known = LineOrder::new(identity, instrument, record.terms, self.began);
                self.add(LineOrder { is_learned: true, is_accepted: true, ..known });
            }
        }
        if let Some(known) = self.get_mut(order) {
            known.venue_id = record.order_id;
            (known.terms.price, known.terms.quantity) = (record.terms.price, record.terms.quantity);
        }
        match state {
            OrderState::Working => self.note_revival(order),
            // The fills are the end.
            OrderState::Filled => self.note_end(order),
            OrderState::Canceled | OrderState::Expired | OrderState::Rejected => self.note_found_end(order),
        }
    }

    /// Reports the end that an answer shows, unless it was reported.
    pub(crate) fn push_found_end(&mut self, snapshot: &OrderSnapshot) {
        let exec_type = match snapshot.state {
            OrderState::Working | OrderState::Filled => return,
            OrderState::Canceled => ExecType::Canceled,
            OrderState::Expired => ExecType::Expired,
            OrderState::Rejected => ExecType::Rejected,
        };
        self.push_end(snapshot, &OrderEnd { exec_type, request: 0, reason: 0, times: (0, 0), text: "" });
    }

    /// Adds the report of an order's end; the first end holds. An order that the line cannot explain is put in doubt
    /// instead, because the end would hide that.
    pub(crate) fn push_end(&mut self, snapshot: &OrderSnapshot, end: &OrderEnd<'_>) {
        let order = snapshot.identity.order;
        let Some(known) = self.get(order).filter(|known| !known.is_end_reported) else { return };
        if known.unreadable.is_empty() {
            let report = self.report(snapshot, end.exec_type, end.request);
            self.outbox.report(ExecutionReport { reason: end.reason, ..report });
            self.outbox.detail(detail(order, end.times, end.text));
        } else {
            self.push_doubt(&snapshot.identity, snapshot.instrument);
        }
        self.note_end(order);
    }

    /// Adds the report of an acceptance, once. Later generations are reported as replaced.
    pub(crate) fn apply_acceptance(&mut self, snapshot: &OrderSnapshot) {
        let Some(order) = self.get_mut(snapshot.identity.order) else { return };
        if snapshot.identity.generation > 0 || std::mem::replace(&mut order.is_accepted, true) {
            return;
        }
        let report = self.report(snapshot, ExecType::New, snapshot.identity.order);
        self.outbox.report(report);
    }

    /// Ends an order whose replacement was refused after its cancel.
    pub(crate) fn end_unreplaced(&mut self, order: u64, times: (u64, u64), reason: u16, text: &str) {
        let Some(known) = self.get_mut(order) else { return };
        let Some(PendingReplace { request, identity, .. }) = known.replace.take() else { return };
        let executed = identity.base.saturating_sub(known.identity.base);
        let snapshot = OrderSnapshot { executed, ..OrderSnapshot::of_order(known, OrderState::Canceled) };
        self.push_end(&snapshot, &OrderEnd { exec_type: ExecType::Canceled, request, reason, times, text });
    }

    /// Continues an order with its replacement, and reports that, once. A replacement that appears behind the end of
    /// its order was placed late: the order works after all.
    pub(crate) fn begin_generation(&mut self, snapshot: &OrderSnapshot, times: (u64, u64)) {
        let order = snapshot.identity.order;
        let Some(known) = self.get_mut(order) else { return };
        if known.identity.generation >= snapshot.identity.generation {
            return;
        }
        let terms = known.terms;
        known.advance(snapshot.identity, snapshot.venue_id, terms);
        (known.terms.price, known.terms.quantity) = (snapshot.price, snapshot.leaves);
        let generation = snapshot.identity.generation;
        let awaited = known.replace.is_some_and(|replace| replace.identity.generation == generation);
        self.note_revival(order);
        let request = if awaited { self.end_replace(order).map_or(0, |replace| replace.request) } else { 0 };
        let report = self.report(snapshot, ExecType::Replaced, request);
        self.outbox.report(report);
        self.outbox.detail(detail(order, times, ""));
    }

    /// Adds an order that is not known, and continues a known order with a later generation.
    fn learn(&mut self, event: &OrderEvent<'_>, identity: OrderIdentity, instrument: usize) {
        let Some(known) = self.get_mut(identity.order) else {
            let began = self.began;
            let order = LineOrder::new(identity, instrument, event.terms, began);
            self.add(LineOrder { venue_id: event.order_id, is_learned: true, ..order });
            return;
        };
        if identity.generation == known.identity.generation {
            known.venue_id = event.order_id;
        } else if identity.generation > known.identity.generation {
            // The first event of a generation may be a fill: the replacement came before it, unfilled.
            let snapshot = OrderSnapshot::of_event(event, OrderState::Working, identity, instrument);
            let unfilled = OrderSnapshot { executed: 0, leaves: event.terms.quantity, ..snapshot };
            self.begin_generation(&unfilled, (event.transact_ms, event.event_ms));
        }
    }

    fn apply_trade(&mut self, event: &OrderEvent<'_>, after: &OrderSnapshot) {
        // A trade without a quantity is none.
        let Some(trade_id) = event.trade_id.filter(|_| event.last_quantity > 0) else { return };
        let fill = OrderFill {
            after: *after,
            trade_id,
            price: event.last_price,
            quantity: event.last_quantity,
            fee: event.fee,
            fee_currency: event.fee_currency,
            is_maker: event.is_maker,
            transact_ms: event.transact_ms,
            event_ms: event.event_ms,
        };
        self.push_fill(&fill, 0, false);
        if after.state == OrderState::Filled && self.is_present(&after.identity) {
            self.note_end(after.identity.order);
        }
    }

    fn apply_amendment(&mut self, event: &OrderEvent<'_>, after: &OrderSnapshot) {
        self.push_amendment(after, event.terms.quantity, event.execution_id, (event.transact_ms, event.event_ms));
    }

    /// Adds the report of a reduced quantity, once for each execution id.
    pub(crate) fn push_amendment(
        &mut self,
        after: &OrderSnapshot,
        quantity: i64,
        execution_id: u64,
        times: (u64, u64),
    ) {
        let order = after.identity.order;
        let Some(known) = self.get_mut(order) else { return };
        if !insert_new(&mut known.amendments, execution_id) {
            return;
        }
        if known.identity.generation == after.identity.generation {
            known.terms.quantity = known.terms.quantity.min(quantity);
        }
        let is_awaited = known.replace.is_some_and(|replace| replace.step == ReplaceStep::Amend);
        let request = if is_awaited { self.end_replace(order).map_or(0, |replace| replace.request) } else { 0 };
        let report = self.report(after, ExecType::Replaced, request);
        self.outbox.report(report);
        self.outbox.detail(detail(order, times, ""));
    }

    fn apply_cancel(&mut self, event: &OrderEvent<'_>, snapshot: &OrderSnapshot) {
        let Some(known) = self.get(snapshot.identity.order) else { return };
        let (cancel, is_decided) = (known.cancel, known.replace.is_some() || known.has_ended);
        match OrderIdentity::read(event.client, self.tag) {
            // The answer to the request, or the event of the replacement, has the outcome or had it.
            Some((TextUse::Replaced, _)) if is_decided || !self.is_present(&snapshot.identity) => {}
            Some((TextUse::Replaced, _)) => self.push_doubt(&snapshot.identity, snapshot.instrument),
            Some((TextUse::Canceled, _)) => {
                self.apply_end(event, snapshot, ExecType::Canceled, cancel.unwrap_or(0));
            }
            _ => self.apply_end(event, snapshot, ExecType::Canceled, 0),
        }
    }

    fn apply_end(&mut self, event: &OrderEvent<'_>, snapshot: &OrderSnapshot, exec_type: ExecType, request: u64) {
        if self.is_present(&snapshot.identity) {
            let (times, text) = ((event.transact_ms, event.event_ms), reason_text(event));
            self.push_end(snapshot, &OrderEnd { exec_type, request, reason: 0, times, text: &text });
        }
    }

    fn apply_rejection(&mut self, event: &OrderEvent<'_>, identity: OrderIdentity, instrument: usize) {
        let times = (event.transact_ms, event.event_ms);
        match self.get(identity.order) {
            Some(known) if known.identity.generation < identity.generation => {
                self.end_unreplaced(identity.order, times, 0, &reason_text(event));
            }
            Some(_) => {
                let snapshot = OrderSnapshot::of_event(event, OrderState::Rejected, identity, instrument);
                self.apply_end(event, &snapshot, ExecType::Rejected, identity.order);
            }
            None => self.push_doubt(&identity, instrument),
        }
    }

    /// Returns whether this is the present generation of its order.
    fn is_present(&self, identity: &OrderIdentity) -> bool {
        self.get(identity.order).is_some_and(|known| known.identity.generation == identity.generation)
    }
}

/// Returns the exchange's reason of a rejection or an expiry; empty without one.
fn reason_text(event: &OrderEvent<'_>) -> String {
    match std::str::from_utf8(event.reason) {
        Ok("NONE") | Err(_) => String::new(),
        Ok(reason) => printable(reason),
    }
}
