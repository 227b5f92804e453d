//! Writes the execution reports. Each report of an accepted order but its status is one event of that order.

use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, Price, Quantity, SymbolId,
    VenueId,
};

use crate::fills::{Fill, Fills};
use crate::known::Ended;
use crate::{Order, Reject};

/// What the reports of one call have in common, and where they go.
pub(crate) struct Scribe<'a> {
    pub venue: VenueId,
    pub symbol: SymbolId,
    /// When the cause of the reports arrived, in ticks.
    pub stamp: u64,
    pub fills: &'a mut Fills,
    pub reports: &'a mut Vec<ExecutionReport>,
}

impl Scribe<'_> {
    /// The venue has the order.
    pub fn accepted(&mut self, order: &mut Order, request: ClientOrderId) {
        let report = self.event(order, request, ExecType::New);
        self.reports.push(report);
    }

    /// A part of the order, or the rest of it, was filled. Quotes have nobody to tell.
    pub fn traded(&mut self, order: &mut Order, request: ClientOrderId, price: Price, quantity: Quantity) {
        if order.is_quote() {
            return;
        }
        let (sequence, cumulative) = (order.events + 1, order.filled);
        let report = ExecutionReport {
            exec_id: self.fills.push(Fill { order: order.id, price, quantity, sequence, cumulative }),
            last_price: price,
            last_quantity: quantity,
            ..self.event(order, request, ExecType::Trade)
        };
        self.reports.push(report);
    }

    /// The order has its new price and total.
    pub fn replaced(&mut self, order: &mut Order, request: ClientOrderId) {
        let report = self.event(order, request, ExecType::Replaced);
        self.reports.push(report);
    }

    /// The order has left, on request or because its time is over.
    pub fn ended(&mut self, order: &mut Order, request: ClientOrderId, how: (ExecType, OrdStatus)) {
        let (exec_type, status) = how;
        let report = ExecutionReport {
            leaves_quantity: Quantity::ZERO,
            status: status.code(),
            ..self.event(order, request, exec_type)
        };
        self.reports.push(report);
    }

    /// A replace was refused; the order goes on.
    pub fn kept(&mut self, order: &mut Order, request: ClientOrderId, reject: Reject) {
        let report = ExecutionReport { reason: reject.code(), ..self.event(order, request, ExecType::CancelRejected) };
        self.reports.push(report);
    }

    /// A cancel or replace was refused because no such order rests here.
    pub fn absent(&mut self, order: OrderId, request: ClientOrderId, account: AccountId, reject: Reject) {
        self.reports.push(ExecutionReport {
            order_id: order,
            client_order_id: request,
            venue_stamp: self.stamp,
            symbol: self.symbol,
            account,
            reason: reject.code(),
            venue: self.venue,
            exec_type: ExecType::CancelRejected.code(),
            status: OrdStatus::Rejected.code(),
            ..ExecutionReport::default()
        });
    }

    /// A new order was refused. `sequence` is 1 if the refusal is an event of this order id, and zero if it is not.
    pub fn rejected(&mut self, new: &NewOrder, sequence: u64, reject: Reject) {
        self.reports.push(ExecutionReport {
            order_id: OrderId(new.client_order_id.0),
            client_order_id: new.client_order_id,
            venue_sequence: sequence,
            price: new.price,
            venue_stamp: self.stamp,
            symbol: self.symbol,
            account: new.account,
            reason: reject.code(),
            venue: self.venue,
            exec_type: ExecType::Rejected.code(),
            status: OrdStatus::Rejected.code(),
            side: new.side,
            ..ExecutionReport::default()
        });
    }

    /// The next event of an order, with the order as it stands.
    fn event(&self, order: &mut Order, request: ClientOrderId, exec_type: ExecType) -> ExecutionReport {
        order.events += 1;
        let stands = stands(self.venue, self.symbol, self.stamp, order);
        ExecutionReport { client_order_id: request, exec_type: exec_type.code(), ..stands }
    }
}

/// A resting order as it stands: what all its reports say.
pub(crate) fn stands(venue: VenueId, symbol: SymbolId, stamp: u64, order: &Order) -> ExecutionReport {
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
        status: standing(order).code(),
        side: order.side.code(),
        ..ExecutionReport::default()
    }
}

/// An order as it ended: what all later reports of it say.
pub(crate) fn stood(venue: VenueId, stamp: u64, id: OrderId, ended: &Ended) -> ExecutionReport {
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

/// The status that the quantities alone give.
fn standing(order: &Order) -> OrdStatus {
    if order.is_filled() {
        OrdStatus::Filled
    } else if order.filled == Quantity::ZERO {
        OrdStatus::New
    } else {
        OrdStatus::PartiallyFilled
    }
}
