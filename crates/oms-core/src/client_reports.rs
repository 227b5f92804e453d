//! Reports and denials that the core sends to clients.

use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, OrderDenied, OrderId, Price, Quantity, SymbolId, VenueOrderId,
};
use tickpath_oms_risk::{Breach, MeasureUnit};

use crate::core::Core;
use crate::order::Order;
use crate::report_class::ReportClass;
use crate::{Output, Outputs};

impl Core {
    /// Reports a change that the core has made to an order: to the order's session, and to the session whose cancel the
    /// change decides.
    pub(crate) fn report_change(
        &self,
        before: &Order,
        after: &Order,
        exec_type: ExecType,
        client: ClientOrderId,
        out: &mut Outputs,
    ) {
        out.push(report_output(after, exec_type, client));
        self.notify_if_decided(before, after, out, |client| report_as(after, exec_type, client));
    }

    /// Forwards a venue's report to the same sessions. The session of the cancel gets the order's status instead of a
    /// fill.
    pub(crate) fn forward_report(
        &self,
        before: &Order,
        after: &Order,
        (class, report): (ReportClass, &ExecutionReport),
        client: ClientOrderId,
        out: &mut Outputs,
    ) {
        out.push(Output::Report { session: after.session, report: venue_report(after, class, report, client) });
        self.notify_if_decided(before, after, out, |client| match class.has_fill() {
            true => report_as(after, ExecType::OrderStatus, client),
            false => venue_report(after, class, report, client),
        });
    }

    /// Denies a request: counts the denial and reports its code, limit and value to the session.
    pub(crate) fn deny(
        &mut self,
        id: u64,
        session: u16,
        client: ClientOrderId,
        (account, symbol): (AccountId, SymbolId),
        breach: Breach,
        out: &mut Outputs,
    ) {
        self.counts.denied_requests += 1;
        let instrument = self.trading.instrument_of(symbol).filter(|_| breach.denial.measure() == MeasureUnit::Price);
        let denied = OrderDenied {
            order_id: OrderId(id),
            client_order_id: client,
            limit: breach.limit.to_le_bytes(),
            value: breach.value.to_le_bytes(),
            account,
            code: breach.denial.code(),
            more_decimals: instrument.map_or(0, |instrument| instrument.more_price_decimals.into()),
        };
        out.push(Output::Denied { session, denied });
    }

    /// Returns the client id of a cancel or replace for the order's session: the order's if another session asked.
    pub(crate) fn owners_request_id(&self, order: &Order, pending: u32) -> ClientOrderId {
        let own = self.orders.pending(pending).filter(|pending| pending.session == order.session);
        ClientOrderId(own.map_or(order.client, |pending| pending.client))
    }

    /// Notifies the requester of a cancel, if another session than the order's, that the cancel is decided or
    /// superseded.
    #[inline]
    pub(crate) fn notify_if_decided(
        &self,
        before: &Order,
        after: &Order,
        out: &mut Outputs,
        report: impl FnOnce(ClientOrderId) -> ExecutionReport,
    ) {
        if before.cancel != after.cancel {
            self.notify_requester(before, before.cancel, out, report);
        }
    }

    /// Reports to the requester of a cancel, unless it is the order's own session, which gets every report anyway.
    #[inline]
    pub(crate) fn notify_requester(
        &self,
        order: &Order,
        cancel: u32,
        out: &mut Outputs,
        report: impl FnOnce(ClientOrderId) -> ExecutionReport,
    ) {
        if let Some(cancel) = self.orders.pending(cancel).filter(|cancel| cancel.session != order.session) {
            out.push(Output::Report { session: cancel.session, report: report(ClientOrderId(cancel.client)) });
        }
    }
}

/// Builds the core's own report to an order's session, after a request or unsolicited.
pub(crate) fn report_output(order: &Order, exec_type: ExecType, client: ClientOrderId) -> Output {
    Output::Report { session: order.session, report: report_as(order, exec_type, client) }
}

/// Builds a report under the id by which its receiver knows the order or the request.
pub(crate) fn report_as(order: &Order, exec_type: ExecType, client: ClientOrderId) -> ExecutionReport {
    ExecutionReport { exec_type: exec_type.code(), venue: order.venue, ..base_report(order, client) }
}

/// Builds the fields that every report to a client takes from its order.
pub(crate) fn base_report(order: &Order, client: ClientOrderId) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(order.id),
        client_order_id: client,
        venue_order_id: VenueOrderId(order.venue_order_id),
        cumulative_quantity: Quantity(order.filled),
        leaves_quantity: Quantity(order.leaves()),
        price: Price(order.price),
        symbol: order.symbol,
        account: order.account,
        status: order.status().code(),
        side: order.side.code(),
        ..Default::default()
    }
}

/// Builds the report of a venue's event for a client.
fn venue_report(order: &Order, class: ReportClass, report: &ExecutionReport, client: ClientOrderId) -> ExecutionReport {
    let has_fill = class.has_fill();
    ExecutionReport {
        exec_id: report.exec_id,
        venue_sequence: report.venue_sequence,
        last_price: if has_fill { report.last_price } else { Price::ZERO },
        last_quantity: if has_fill { report.last_quantity } else { Quantity::ZERO },
        venue_stamp: report.venue_stamp,
        reason: report.reason,
        venue: report.venue,
        exec_type: report.exec_type,
        ..base_report(order, client)
    }
}

/// Returns whether a client can see the change.
pub(crate) fn is_visible_change(before: &Order, after: &Order) -> bool {
    let seen = |order: &Order| (order.phase, order.price, order.quantity, order.leaves(), order.cancel, order.replace);
    seen(before) != seen(after)
}
