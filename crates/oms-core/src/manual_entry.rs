//! Entries that an admin makes by hand: an order that its venue works and the core does not know, a fill whose report
//! never arrived, and the position of an account.
//!
//! Limits do not apply, because the entered events have happened. The admin states the venue's id of an order; the
//! [kept reports](crate::unknown_reports) of the order are applied at once, and the venue is asked for its status.
//! Where only the venue's own order id is known, the OMS cannot ask under an id of its own: the venue's reports alone
//! show the order's state, and the venue refuses a cancel. An entered fill has the venue's execution id, so that a late
//! report of the same fill changes nothing.

use tickpath_market::{
    ExecType, ExecutionReport, ManualOrderIndicator, NewOrder, OrdStatus, OrderId, OrderType, Price, Quantity,
    VenueOrderId,
};
use tickpath_oms_records::{EnterFill, EnterOrder, EnterPosition};

use crate::admin_command::AdminCommandError;
use crate::client_reports::report_as;
use crate::core::{At, Core};
use crate::order::Order;
use crate::report_class::ReportClass;
use crate::state::OrderPhase;
use crate::venue_table::VENUE_LIMIT;
use crate::{Output, Outputs, ReportRecord};

impl Core {
    /// Enters an order, applies the kept reports of it, and asks its venue for the status; returns false if refused.
    pub(crate) fn enter_order(&mut self, at: At, enter: &EnterOrder, out: &mut Outputs) -> bool {
        let id = self.id(at);
        let is_free = self.ids.is_free(at.sequence) && self.orders.find(id).is_none();
        let entered = self.build_entered_order(enter).ok().filter(|_| is_free);
        let Some((mut order, reports)) = entered else { return false };
        self.ids.note_request(at.sequence);
        order.id = id;
        order.position = self.positions.find_or_create(order.account, order.symbol);
        let slot = self.add_order(order);
        self.aliases.add(order.id, order.venue, enter.sent_as.0, enter.venue_order_id.0);
        let manual = ManualOrderIndicator::Manual.code();
        let report = ExecutionReport { manual, ..report_as(&order, ExecType::New, enter.client_order_id) };
        out.push(Output::Report { session: order.session, report });
        // The kept reports of the order are applied now.
        for record in reports {
            self.unknown_reports.remove(&record);
            self.apply_report(at, &record, out);
        }
        // The venue's answer supplies the order's events, or shows whether the known ones are complete.
        if self.orders.get(slot).phase.is_live() {
            self.query_status(at, slot, out);
        }
        true
    }

    /// Builds the order to enter, with the kept reports of it, or returns the reason to refuse it.
    pub(crate) fn build_entered_order(
        &self,
        enter: &EnterOrder,
    ) -> Result<(Order, Vec<ReportRecord>), AdminCommandError> {
        let terms = NewOrder {
            client_order_id: enter.client_order_id,
            price: enter.price,
            quantity: enter.quantity,
            symbol: enter.symbol,
            account: enter.account,
            side: enter.side,
            order_type: enter.order_type,
            time_in_force: enter.time_in_force,
            ..NewOrder::default()
        };
        let order = Order::of_request(&terms).ok_or(AdminCommandError::Terms)?;
        let has_valid_price = order.order_type == OrderType::Limit || enter.price == Price::ZERO;
        if enter.quantity.0 <= 0 || !has_valid_price || enter.venue.0 >= VENUE_LIMIT {
            return Err(AdminCommandError::Terms);
        }
        let (venue, session, phase) = (enter.venue, enter.session, OrderPhase::Open);
        let order = Order { venue_order_id: enter.venue_order_id.0, venue, session, phase, ..order };
        let reports = self.check_enter_order(enter, &order)?;
        Ok((order, reports))
    }

    /// Checks everything but the terms of an order to enter. Returns its kept reports, which must agree with the terms.
    fn check_enter_order(&self, enter: &EnterOrder, order: &Order) -> Result<Vec<ReportRecord>, AdminCommandError> {
        let (sent_as, own) = (enter.sent_as.0, enter.venue_order_id.0);
        let client = enter.client_order_id.0;
        if enter.reason[0] == 0 {
            return Err(AdminCommandError::Reason);
        } else if sent_as == 0 && own == 0 {
            return Err(AdminCommandError::MissingVenueId);
        } else if self.find_by_venue_id(enter.venue, sent_as, own).is_some() {
            return Err(AdminCommandError::KnownOrder);
        } else if self.trading.context(order.account, order.symbol).is_err() {
            return Err(AdminCommandError::Undefined { account: order.account.0, symbol: order.symbol.0 });
        } else if !self.trading.is_entitled(order.session, order.account) {
            return Err(AdminCommandError::NotEntitled { session: order.session, account: order.account.0 });
        } else if client == 0 || self.orders.has_client_id(order.session, client) {
            return Err(AdminCommandError::ClientId { session: order.session, client });
        }
        let reports = self.unknown_reports.find_by_order(enter.venue, sent_as, own);
        let agrees = |record: &ReportRecord| {
            let report = &record.report;
            let is_side = report.side == order.side.code() && report.venue == enter.venue;
            is_side && report.symbol == order.symbol && report.account == order.account
        };
        if reports.iter().all(agrees) { Ok(reports) } else { Err(AdminCommandError::Disagrees) }
    }

    /// Enters a fill as if the venue reported it; returns false if the entry is refused.
    pub(crate) fn enter_fill(&mut self, at: At, enter: &EnterFill, out: &mut Outputs) -> bool {
        let Ok(slot) = self.check_enter_fill(enter) else { return false };
        let order = *self.orders.get(slot);
        let cumulative = order.filled.saturating_add(enter.quantity.0);
        let leaves = order.quantity.saturating_sub(cumulative).max(0);
        let status = if leaves == 0 { OrdStatus::Filled } else { OrdStatus::PartiallyFilled };
        let report = ExecutionReport {
            order_id: OrderId(order.id),
            venue_order_id: VenueOrderId(order.venue_order_id),
            exec_id: enter.exec_id,
            venue_sequence: enter.venue_sequence,
            last_price: enter.price,
            last_quantity: enter.quantity,
            cumulative_quantity: Quantity(cumulative),
            leaves_quantity: Quantity(leaves),
            price: Price(order.price),
            symbol: order.symbol,
            account: order.account,
            venue: order.venue,
            exec_type: ExecType::Trade.code(),
            status: status.code(),
            side: order.side.code(),
            ..ExecutionReport::default()
        };
        self.apply_event(at, slot, ReportClass::Filled, &report, out);
        out.mark_manual();
        true
    }

    /// Enters a position, which counts from now on at its price; returns false if the entry is refused.
    pub(crate) fn enter_position(&mut self, enter: &EnterPosition) -> bool {
        let Ok((change, price)) = self.check_enter_position(enter) else { return false };
        if self.trading.price(enter.symbol) == 0 {
            self.note_first_price(enter.symbol, price);
            self.trading.set_price(enter.symbol, price);
        }
        let slot = self.positions.find_or_create(enter.account, enter.symbol);
        self.positions.add(slot, change, price);
        true
    }

    /// Returns the change of the net position and the price from which it counts, or the reason to refuse the entry.
    pub(crate) fn check_enter_position(&self, enter: &EnterPosition) -> Result<(i128, i64), AdminCommandError> {
        let EnterPosition { account, symbol, .. } = *enter;
        let undefined = |_| AdminCommandError::Undefined { account: account.0, symbol: symbol.0 };
        let entry = self.trading.context(account, symbol).map_err(undefined)?;
        let net = self.position(account, symbol).net;
        let change = i128::from(enter.quantity.0) - if enter.adjusts == 0 { net } else { 0 };
        let has_price = enter.is_priced != 0 || enter.price != Price::ZERO;
        let price = if has_price { enter.price.0 } else { self.trading.price(symbol) };
        if enter.reason[0] == 0 {
            return Err(AdminCommandError::Reason);
        } else if enter.adjusts == 0 && entry.open.fills > 0 {
            return Err(AdminCommandError::Traded(account.0));
        } else if change == 0 {
            return Err(AdminCommandError::NoChange(Quantity(i64::try_from(net).unwrap_or(i64::MAX))));
        } else if price == 0 && !has_price {
            return Err(AdminCommandError::Unpriced(symbol.0));
        }
        Ok((change, price))
    }

    /// Returns the order whose fill would be entered, or the reason to refuse the entry.
    pub(crate) fn check_enter_fill(&self, enter: &EnterFill) -> Result<u32, AdminCommandError> {
        let slot = self.find_for_command(enter.order)?;
        let order = self.orders.get(slot);
        let max = order.quantity.max(self.orders.pending_replace(order).0);
        if enter.reason[0] == 0 {
            return Err(AdminCommandError::Reason);
        } else if matches!(order.phase, OrderPhase::Denied | OrderPhase::Queued | OrderPhase::Armed) {
            return Err(AdminCommandError::NotSent);
        } else if enter.exec_id.0 == 0 || enter.quantity.0 <= 0 {
            return Err(AdminCommandError::Fill);
        } else if self.orders.find_fill(slot, enter.exec_id.0).is_some() {
            return Err(AdminCommandError::FillKnown(enter.exec_id.0));
        } else if enter.venue_sequence != 0 && !{ *order }.note_sequence(enter.venue_sequence) {
            return Err(AdminCommandError::SeenSequence(enter.venue_sequence));
        } else if enter.quantity.0 > max.saturating_sub(order.filled) {
            return Err(AdminCommandError::OverFilled { filled: Quantity(order.filled), max: Quantity(max) });
        }
        Ok(slot)
    }
}
