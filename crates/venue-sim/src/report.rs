//! Writes the execution reports. Each report of an accepted order, except its status, is one event of that order.

use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, Price, Quantity, SymbolId,
    VenueId,
};

use crate::fills::{DayFills, VenueFill};
use crate::known_orders::EndedOrder;
use crate::{BookOrder, RejectReason};

/// Writer of the reports of one call, with the fields that they share.
pub(crate) struct ReportWriter<'a> {
    pub venue: VenueId,
    pub symbol: SymbolId,
    /// Arrival time of the input that causes the reports, in ticks.
    pub stamp: u64,
    pub fills: &'a mut DayFills,
    pub reports: &'a mut Vec<ExecutionReport>,
}

impl ReportWriter<'_> {
    pub fn accepted(&mut self, order: &mut BookOrder, request: ClientOrderId) {
        self.reports.push(self.count_event(order, request, ExecType::New));
    }

    /// Reports a fill of a part of the order or of its rest. Quotes get no reports.
    pub fn traded(&mut self, order: &mut BookOrder, request: ClientOrderId, price: Price, quantity: Quantity) {
        if order.is_quote() {
            return;
        }
        let (sequence, cumulative) = (order.events + 1, order.filled);
        let report = ExecutionReport {
            exec_id: self.fills.push(VenueFill { order: order.id, price, quantity, sequence, cumulative }),
            last_price: price,
            last_quantity: quantity,
            ..self.count_event(order, request, ExecType::Trade)
        };
        self.reports.push(report);
    }

    pub fn replaced(&mut self, order: &mut BookOrder, request: ClientOrderId) {
        self.reports.push(self.count_event(order, request, ExecType::Replaced));
    }

    /// Reports that an order has left the book, canceled or expired.
    pub fn ended(&mut self, order: &mut BookOrder, request: ClientOrderId, how: (ExecType, OrdStatus)) {
        let (exec_type, status) = (how.0, how.1.code());
        let event = self.count_event(order, request, exec_type);
        self.reports.push(ExecutionReport { leaves_quantity: Quantity::ZERO, status, ..event });
    }

    /// Reports a rejected replace of an order that keeps working.
    pub fn replace_rejected(&mut self, order: &mut BookOrder, request: ClientOrderId, reject: RejectReason) {
        let event = self.count_event(order, request, ExecType::CancelRejected);
        self.reports.push(ExecutionReport { reason: reject.code(), ..event });
    }

    /// Reports a rejected cancel or replace of an order that does not rest here.
    pub fn cancel_rejected(
        &mut self,
        order: OrderId,
        request: ClientOrderId,
        account: AccountId,
        reject: RejectReason,
    ) {
        let report = self.rejection(account, reject, ExecType::CancelRejected);
        self.reports.push(ExecutionReport { order_id: order, client_order_id: request, ..report });
    }

    /// Reports a rejected new order. `sequence` is 1 if the rejection is an event of this order id, and otherwise zero.
    pub fn rejected(&mut self, new: &NewOrder, sequence: u64, reject: RejectReason) {
        let report = self.rejection(new.account, reject, ExecType::Rejected);
        self.reports.push(ExecutionReport {
            order_id: OrderId(new.client_order_id.0),
            client_order_id: new.client_order_id,
            venue_sequence: sequence,
            price: new.price,
            side: new.side,
            ..report
        });
    }

    /// Returns the fields that all rejections share.
    fn rejection(&self, account: AccountId, reject: RejectReason, exec_type: ExecType) -> ExecutionReport {
        ExecutionReport {
            venue_stamp: self.stamp,
            symbol: self.symbol,
            account,
            reason: reject.code(),
            venue: self.venue,
            exec_type: exec_type.code(),
            status: OrdStatus::Rejected.code(),
            ..ExecutionReport::default()
        }
    }

    /// Counts an event of an order. Returns its report with the order's present state.
    fn count_event(&self, order: &mut BookOrder, request: ClientOrderId, exec_type: ExecType) -> ExecutionReport {
        order.events += 1;
        let state = resting_report(self.venue, self.symbol, self.stamp, order);
        ExecutionReport { client_order_id: request, exec_type: exec_type.code(), ..state }
    }
}

/// Returns the fields that all reports of a resting order share.
pub(crate) fn resting_report(venue: VenueId, symbol: SymbolId, stamp: u64, order: &BookOrder) -> ExecutionReport {
    ExecutionReport {
        order_id: order.id,
        venue_order_id: order.venue_order_id,
        venue_sequence: order.events,
        cumulative_quantity: order.filled,
        leaves_quantity: order.open(),
        price: order.price,
        venue_stamp: stamp,
        symbol,
        account: order.account,
        venue,
        status: resting_status(order).code(),
        side: order.side.code(),
        ..ExecutionReport::default()
    }
}

/// Returns the fields that all later reports of an ended order share.
pub(crate) fn ended_report(venue: VenueId, stamp: u64, id: OrderId, ended: &EndedOrder) -> ExecutionReport {
    ExecutionReport {
        order_id: id,
        venue_order_id: ended.venue_order_id,
        venue_sequence: ended.events,
        cumulative_quantity: ended.filled,
        price: ended.price,
        venue_stamp: stamp,
        symbol: ended.symbol,
        account: ended.account,
        reason: ended.reason,
        venue,
        status: ended.status.code(),
        side: ended.side,
        ..ExecutionReport::default()
    }
}

/// Returns the status that follows from the quantities alone.
fn resting_status(order: &BookOrder) -> OrdStatus {
    if order.is_filled() {
        OrdStatus::Filled
    } else if order.filled == Quantity::ZERO {
        OrdStatus::New
    } else {
        OrdStatus::PartiallyFilled
    }
}
