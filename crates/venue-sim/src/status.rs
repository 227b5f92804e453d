//! Requests other than changes of one order: order status and mass cancel.

use tickpath_market::{
    ExecId, ExecType, ExecutionReport, MassCancel, MassCancelType, OrdStatus, OrderId, Quantity, StatusRequest,
    SymbolId,
};

use crate::fills::VenueFill;
use crate::known_orders::{BookLocation, EndedOrder, KnownOrder};
use crate::report::{self, ReportWriter};
use crate::{BookOrder, RejectReason, SimVenue};

impl SimVenue {
    /// Reports the status of an order, behind its fills if the request asks for them, or of all orders of the sender.
    /// Changes nothing.
    pub(crate) fn status(
        &mut self,
        stamp: u64,
        status: &StatusRequest,
        is_mine: &dyn Fn(OrderId) -> bool,
        reports: &mut Vec<ExecutionReport>,
    ) {
        if status.asks_for_all_orders() {
            return self.status_of_all(stamp, status, is_mine, reports);
        }
        let id = OrderId(status.original.0);
        let state = self.status_report(stamp, id).unwrap_or_else(|| self.unknown_order_report(stamp, id, status));
        if status.fills != 0 {
            self.repeat_fills(&state, reports);
        }
        reports.push(ExecutionReport {
            client_order_id: status.client_order_id,
            exec_type: ExecType::OrderStatus.code(),
            ..state
        });
    }

    /// Reports each order of the sender that rests or ended today, behind its fills, in the order of acceptance,
    /// rejected orders first; then a report of no order that ends the answer.
    ///
    /// The whole answer is one turn, and other requests wait for it: 100,000 orders with a fill each are 200,001
    /// reports, about 20 MB that wait for their line.
    fn status_of_all(
        &mut self,
        stamp: u64,
        status: &StatusRequest,
        is_mine: &dyn Fn(OrderId) -> bool,
        reports: &mut Vec<ExecutionReport>,
    ) {
        let client_order_id = status.client_order_id;
        let mine = self.known_orders.iter().map(|(id, _)| id).filter(|&id| is_mine(id));
        let mut all: Vec<ExecutionReport> = mine.filter_map(|id| self.status_report(stamp, id)).collect();
        all.sort_unstable_by_key(|state| (state.venue_order_id.0, state.order_id.0));
        for state in all {
            let state = ExecutionReport { client_order_id, ..state };
            self.repeat_fills(&state, reports);
            reports.push(ExecutionReport { exec_type: ExecType::OrderStatus.code(), ..state });
        }
        reports.push(ExecutionReport {
            client_order_id,
            venue_stamp: stamp,
            venue: self.venue,
            exec_type: ExecType::OrderStatus.code(),
            status: OrdStatus::New.code(),
            ..ExecutionReport::default()
        });
    }

    /// Repeats the fill reports of an order with this state.
    fn repeat_fills(&mut self, state: &ExecutionReport, reports: &mut Vec<ExecutionReport>) {
        let total = Quantity(state.cumulative_quantity.0.saturating_add(state.leaves_quantity.0));
        let fills = self.fills.of_order(state.order_id);
        reports.extend(fills.map(|(exec_id, fill)| repeated_fill(state, total, exec_id, &fill)));
    }

    /// Cancels the resting orders of an account that are the sender's, the oldest order first.
    pub(crate) fn cancel_all(
        &mut self,
        stamp: u64,
        all: &MassCancel,
        is_mine: &dyn Fn(OrderId) -> bool,
        reports: &mut Vec<ExecutionReport>,
    ) {
        let request = all.client_order_id;
        let only = match MassCancelType::from_code(all.cancel_type) {
            Some(MassCancelType::All) => None,
            Some(MassCancelType::Symbol) => Some(all.symbol),
            None => {
                let venue = self.venue;
                let mut writer = ReportWriter { venue, symbol: all.symbol, stamp, fills: &mut self.fills, reports };
                return writer.cancel_rejected(OrderId(0), request, all.account, RejectReason::UnknownCode);
            }
        };
        let mut covered = Vec::new();
        for (symbol, book) in
            (0..).map(SymbolId).zip(&self.books).filter(|(symbol, _)| only.is_none_or(|only| only == *symbol))
        {
            let is_covered = |order: &BookOrder| !order.is_quote() && order.account == all.account && is_mine(order.id);
            let orders = book.orders().filter(|(_, order)| is_covered(order));
            covered.extend(orders.map(|(slot, order)| (order.venue_order_id, symbol, slot)));
        }
        covered.sort_unstable_by_key(|&(venue_order_id, ..)| venue_order_id);
        for (_, symbol, slot) in covered {
            let mut order = self.books[symbol.0 as usize].remove(slot);
            let mut writer = ReportWriter { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
            writer.ended(&mut order, request, (ExecType::Canceled, OrdStatus::Canceled));
            self.known_orders.add_ended(order.id, EndedOrder::of(&order, symbol, OrdStatus::Canceled));
        }
    }

    /// Returns the report of a known order as it stands, or as it ended.
    pub(crate) fn status_report(&self, stamp: u64, id: OrderId) -> Option<ExecutionReport> {
        Some(match self.known_orders.get(id)? {
            KnownOrder::Resting(BookLocation { symbol, slot }) => {
                report::resting_report(self.venue, *symbol, stamp, self.books[symbol.0 as usize].order(*slot))
            }
            KnownOrder::Ended(ended) => report::ended_report(self.venue, stamp, id, ended),
        })
    }

    /// Returns the report of an order that the venue never had, or has forgotten.
    fn unknown_order_report(&self, stamp: u64, id: OrderId, asked: &StatusRequest) -> ExecutionReport {
        // The outcome of a forgotten order is lost, so `Rejected` would be a guess.
        let (reject, status) = match self.used_ids.contains(id) {
            true => (RejectReason::Forgotten, OrdStatus::Unknown),
            false => (RejectReason::UnknownOrder, OrdStatus::Rejected),
        };
        ExecutionReport {
            order_id: id,
            venue_stamp: stamp,
            symbol: asked.symbol,
            account: asked.account,
            reason: reject.code(),
            venue: self.venue,
            status: status.code(),
            ..ExecutionReport::default()
        }
    }
}

/// Returns a fill's report as it was first sent, for an order with this state.
fn repeated_fill(state: &ExecutionReport, total: Quantity, exec_id: ExecId, fill: &VenueFill) -> ExecutionReport {
    let leaves = Quantity((total.0 - fill.cumulative.0).max(0));
    let status = if leaves == Quantity::ZERO { OrdStatus::Filled } else { OrdStatus::PartiallyFilled };
    ExecutionReport {
        exec_id,
        venue_sequence: fill.sequence,
        last_price: fill.price,
        last_quantity: fill.quantity,
        cumulative_quantity: fill.cumulative,
        leaves_quantity: leaves,
        exec_type: ExecType::Trade.code(),
        status: status.code(),
        reason: 0,
        ..*state
    }
}
