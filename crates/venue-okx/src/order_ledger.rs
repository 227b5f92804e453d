//! Orders and their reports: rows and answers of OKX become reports, each event once.
//!
//! | OKX                                         | report                                                            |
//! |---------------------------------------------|-------------------------------------------------------------------|
//! | `live`                                      | `New`, once                                                       |
//! | a trade id with `fillSz` above zero         | `Trade`, once for each trade id                                   |
//! | `amendResult` 0; less by OKX's own decision | `Replaced`, once for each `reqId`                                 |
//! | `amendResult` -1                            | `CancelRejected`, once for each `reqId`                           |
//! | `canceled`                                  | `Canceled`; `Expired` for the rest of an order that never rests   |
//! | `filled`, with less than a market order had | `Expired` for the rest                                            |
//! | `filled` with `fillSz` zero                 | none: its fills are asked for                                     |
//! | a refused request                           | `Rejected`, or `CancelRejected` for a cancel or an amendment      |
//! | a cancel or an amendment of a filled order  | `CancelRejected`, although OKX's gateway has accepted the request |
//! | an ambiguous answer                         | `OrderStatus` `Unknown`: the order is in doubt, and is asked for  |
//!
//! A refused post-only order is `Canceled` with the reason 30031: OKX has accepted it before, and the OMS would take a
//! rejection of an accepted order for a contradiction.

use tickpath_market::{ExecType, ExecutionReport, OrdStatus, Quantity, StatusRequest, VenueId, VenueOrderId};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};

use crate::fill_row::FillRow;
use crate::frames::RequestAnswer;
use crate::order_naming::OrderNaming;
use crate::order_table::{OrderEntry, OrderTable};
use crate::order_update::{Amendment, OrderUpdate, RawOrder, UpdateState};
use crate::outstanding::{OrderOperation, SentRequest};
use crate::reasons::{RefusalEffect, effect_of, reason_of, reason_of_change};
use crate::report_maker::{
    OrderIdentity, answering, bare_report, fill_detail, fill_report, text_detail, update_report,
};
use crate::report_outbox::ReportOutbox;
use crate::request_writer::LocalRefusal;
use crate::traded_instruments::TradedInstruments;

const FILLED_FIRST: &str = "the order was filled before the request took effect";

/// Orders and their reports.
#[derive(Debug)]
pub(crate) struct OrderLedger {
    venue: VenueId,
    pub instruments: TradedInstruments,
    pub naming: OrderNaming,
    pub orders: OrderTable,
    pub outbox: ReportOutbox,
    /// Rows of orders that are not this OMS's.
    pub foreign_rows: u64,
}

impl OrderLedger {
    /// Makes a ledger without orders.
    pub fn new(venue: VenueId, instruments: TradedInstruments) -> Self {
        let (orders, outbox) = (OrderTable::default(), ReportOutbox::default());
        Self { venue, instruments, naming: OrderNaming::default(), orders, outbox, foreign_rows: 0 }
    }

    /// Reports the events that a row of the orders channel shows. Returns the row if its order is one of this OMS.
    pub fn apply_row(&mut self, raw: &RawOrder<'_>) -> Result<Option<OrderUpdate>, String> {
        let update = OrderUpdate::read(raw, &self.instruments, self.naming)?;
        match &update {
            Some(update) => self.apply_update(update),
            None => self.foreign_rows += 1,
        }
        Ok(update)
    }

    fn apply_update(&mut self, update: &OrderUpdate) {
        let report =
            |exec_type| update_report(self.venue, self.instruments.get(update.instrument).symbol, update, exec_type);
        let entry = self.orders.enter(update);
        let request = if update.end().is_some_and(|end| end.is_by_user) { entry.oldest_cancel() } else { 0 };
        // A market order's size follows what was filled; the OMS knows the size that was ordered.
        let ordered = if update.is_market { entry.total.max(update.total) } else { update.total };
        if entry.accepts(update) {
            let report = ExecutionReport { status: OrdStatus::New.code(), ..report(ExecType::New) };
            self.outbox.report(answering(report, update.order, 0));
        }
        if let Some(amendment) = update.amendment.filter(|amendment| entry.adds_amendment(amendment.key)) {
            let Amendment { request, is_applied, .. } = amendment;
            entry.settle_change(request);
            if is_applied {
                self.outbox.report(answering(report(ExecType::Replaced), request, 0));
            } else {
                let reason = reason_of_change(update.code);
                self.outbox.report(answering(report(ExecType::CancelRejected), request, reason));
                self.outbox.detail(text_detail(update.order, &update.message, [update.updated_ns, 0]));
            }
        }
        if let Some(fill) = update.fill.filter(|fill| entry.adds_fill(fill.execution, fill.quantity)) {
            self.outbox.report(fill_report(report(ExecType::Trade), &fill, update.total));
            self.outbox.detail(fill_detail(update.order, &fill));
        }
        match (update.state, update.end()) {
            (UpdateState::Canceled, Some(end)) if self.orders.report_end(update.order, end.status, end.reason) => {
                self.outbox.report(answering(report(end.exec_type), request, end.reason));
                if end.reason != 0 {
                    let source = update.cancel_source.unwrap_or(0);
                    let text = format!("cancelSource {source} {}", update.message);
                    self.outbox.detail(text_detail(update.order, text.trim_end(), [update.updated_ns, 0]));
                }
            }
            (UpdateState::Filled, _) => {
                let has_rest = update.cumulative < ordered;
                let status = if has_rest { OrdStatus::Expired } else { OrdStatus::Filled };
                if self.orders.report_end(update.order, status, 0) && has_rest {
                    let report = ExecutionReport { status: status.code(), ..report(ExecType::Expired) };
                    self.outbox.report(report);
                }
                self.refuse_overtaken(update.order);
            }
            _ => {}
        }
    }

    /// Reports a fill of REST's list. `cumulative` is the filled quantity with this fill, if it is known; `asked` is a
    /// status request that asks for fills, also for those that were reported before.
    pub fn apply_fill(&mut self, row: &FillRow, cumulative: Option<Quantity>, asked: Option<u64>) {
        let entry = self.orders.enter_bare(row.order, row.account, row.instrument, row.side.code());
        let is_new = entry.adds_fill(row.fill.execution, row.fill.quantity);
        if !is_new && asked.is_none() {
            return;
        }
        let cumulative_quantity = cumulative.unwrap_or(entry.filled);
        let (total, price) = (entry.total, entry.price);
        let symbol = self.instruments.get(row.instrument).symbol;
        let identity = OrderIdentity { order: row.order, symbol, account: row.account, side: row.side.code() };
        let order = ExecutionReport {
            venue_order_id: VenueOrderId(row.venue_id),
            cumulative_quantity,
            price,
            ..bare_report(self.venue, identity, ExecType::Trade, OrdStatus::PartiallyFilled)
        };
        self.outbox.report(answering(fill_report(order, &row.fill, total), asked.unwrap_or(0), 0));
        self.outbox.detail(fill_detail(row.order, &row.fill));
    }

    /// Reports the status of an order, in answer to a status request.
    pub fn report_status(&mut self, update: &OrderUpdate, request: u64) {
        let has_ended = self.orders.enter(update).end.is_some();
        let reason = update.end().map_or(0, |end| end.reason);
        match update.state {
            // The state is from before the end.
            UpdateState::Live | UpdateState::PartlyFilled if has_ended => {
                return self.report_ended(update.order, request);
            }
            UpdateState::Live | UpdateState::PartlyFilled => {}
            UpdateState::Filled | UpdateState::Canceled => {
                self.orders.keep_end(update.order, update.status(), reason);
                self.refuse_overtaken(update.order);
            }
        }
        let symbol = self.instruments.get(update.instrument).symbol;
        let report = update_report(self.venue, symbol, update, ExecType::OrderStatus);
        self.outbox.report(answering(report, request, reason));
    }

    /// Reports the status of an ended order as this line knows it.
    pub fn report_ended(&mut self, order: u64, request: u64) {
        let Some(entry) = self.orders.get(order) else { return };
        let Some((status, reason)) = entry.end else { return };
        let identity = self.identity_of(order, entry);
        let report = ExecutionReport {
            venue_order_id: VenueOrderId(entry.venue_id),
            cumulative_quantity: entry.cumulative,
            price: entry.price,
            ..bare_report(self.venue, identity, ExecType::OrderStatus, status)
        };
        self.outbox.report(answering(report, request, reason));
    }

    /// Reports that OKX does not have an order, and never will. An order that has ended keeps its end: OKX forgets it.
    pub fn report_absence(&mut self, request: &StatusRequest) {
        if self.has_ended(request.original.0) {
            return self.report_ended(request.original.0, request.client_order_id.0);
        }
        self.orders.remove(request.original.0);
        self.answer_status(request, OrdStatus::Rejected, UNKNOWN_ORDER);
    }

    /// Answers a status request without a state of the order: the order stays in doubt.
    pub fn report_doubt_about(&mut self, request: &StatusRequest, reason: u16) {
        self.answer_status(request, OrdStatus::Unknown, reason);
    }

    /// Ends the answer to a request for the status of all orders; a reason other than zero refuses it.
    pub fn end_statuses(&mut self, request: &StatusRequest, reason: u16) {
        let nothing = StatusRequest { client_order_id: request.client_order_id, ..StatusRequest::default() };
        self.answer_status(&nothing, OrdStatus::New, reason);
    }

    /// Returns whether an order has ended, as far as this line knows.
    pub fn has_ended(&self, order: u64) -> bool {
        self.orders.get(order).is_some_and(|entry| entry.end.is_some())
    }

    /// Puts an order in doubt of which OKX does not list all fills.
    pub fn doubt_fills(&mut self, order: u64) {
        let Some(entry) = self.orders.get(order) else { return };
        let identity = self.identity_of(order, entry);
        self.outbox.report(bare_report(self.venue, identity, ExecType::OrderStatus, OrdStatus::Unknown));
    }

    /// Reports that the line has not sent a request.
    pub fn refuse(&mut self, request: &SentRequest, refusal: LocalRefusal) {
        let exec_type = match request.operation {
            OrderOperation::Place => ExecType::Rejected,
            OrderOperation::Amend | OrderOperation::Cancel => ExecType::CancelRejected,
        };
        let report = bare_report(self.venue, request.identity(), exec_type, OrdStatus::Rejected);
        self.outbox.report(answering(report, request.id, refusal.reason));
        self.outbox.detail(text_detail(request.order, refusal.text, [0, 0]));
    }

    /// Takes OKX's answer to a request. The effect of an accepted one follows in a row, unless the order is filled
    /// first.
    pub fn apply_answer(&mut self, request: &SentRequest, answer: &RequestAnswer) {
        if let Some(entry) = self.orders.get_mut(request.order) {
            entry.in_flight = entry.in_flight.saturating_sub(1);
            if answer.code == 0 {
                entry.accept_change(request.id);
            }
        }
        match answer.code {
            0 => self.refuse_overtaken(request.order),
            _ => self.apply_refusal(request, answer),
        }
    }

    /// Reports that OKX has refused a request, or has left its effect open. A change of an order may have been answered
    /// by a row already.
    fn apply_refusal(&mut self, request: &SentRequest, answer: &RequestAnswer) {
        let (effect, is_new) = (effect_of(answer.code), request.operation == OrderOperation::Place);
        let reason = if is_new { reason_of(answer.code) } else { reason_of_change(answer.code) };
        let (exec_type, status) = match (effect, is_new) {
            // With this type of report the side may be missing.
            (RefusalEffect::InDoubt, _) => (ExecType::OrderStatus, OrdStatus::Unknown),
            (RefusalEffect::Refused, true) => (ExecType::Rejected, OrdStatus::Rejected),
            (RefusalEffect::Refused, false) => (ExecType::CancelRejected, OrdStatus::Rejected),
        };
        if exec_type == ExecType::Rejected {
            self.orders.remove(request.order);
        } else if let Some(entry) = self.orders.get_mut(request.order).filter(|_| !is_new) {
            if !entry.settle_change(request.id) {
                return;
            }
            if exec_type == ExecType::CancelRejected {
                // A row may report the same failure of an amendment.
                entry.adds_amendment(request.id);
            }
        }
        let report = bare_report(self.venue, request.identity(), exec_type, status);
        self.outbox.report(answering(report, request.id, reason));
        self.outbox.detail(text_detail(request.order, &answer.text, [answer.received_ns, answer.sent_ns]));
    }

    /// Answers the accepted cancels and amendments that came too late, because their order was filled first.
    fn refuse_overtaken(&mut self, order: u64) {
        while let Some(request) = self.orders.get_mut(order).and_then(OrderEntry::take_overtaken) {
            let Some(entry) = self.orders.get(order) else { return };
            let identity = self.identity_of(order, entry);
            let report = bare_report(self.venue, identity, ExecType::CancelRejected, OrdStatus::Rejected);
            self.outbox.report(answering(report, request, TOO_LATE));
            self.outbox.detail(text_detail(order, FILLED_FIRST, [0, 0]));
        }
    }

    fn identity_of(&self, order: u64, entry: &OrderEntry) -> OrderIdentity {
        let symbol = self.instruments.get(entry.instrument).symbol;
        OrderIdentity { order, symbol, account: entry.account, side: entry.side }
    }

    fn answer_status(&mut self, request: &StatusRequest, status: OrdStatus, reason: u16) {
        let StatusRequest { original, symbol, account, .. } = *request;
        let identity = OrderIdentity { order: original.0, symbol, account, side: 0 };
        let report = bare_report(self.venue, identity, ExecType::OrderStatus, status);
        self.outbox.report(answering(report, request.client_order_id.0, reason));
    }
}
