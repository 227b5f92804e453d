//! Runs the matching engine, and applies its reports to orders, accounts and events.

use std::mem;

use tickpath_market::{
    CancelOrder, ClientOrderId, ExecType, ExecutionReport, Notional, Price, Quantity, Request, Side, TimeInForce,
    TopOfBook,
};
use tickpath_venue_sim::{RejectReason, SimVenue};

use super::SimDesk;
use super::ledger::{fee, reservation};
use super::order::{DeskEvent, DeskFill, DeskOrder, DeskRefusal, DeskState, PublicTrade};
use super::terms::{engine_symbol, fits};

/// Levels of a book: bids and offers.
type BookLevels = [Vec<(Price, Quantity)>; 2];

impl SimDesk {
    /// Cancels an order. The cause is none if its owner cancels.
    pub(super) fn withdraw(
        &mut self,
        at_ns: u64,
        instrument: usize,
        id: u64,
        cause: Option<DeskRefusal>,
    ) -> Result<(), DeskRefusal> {
        let id = ClientOrderId(id);
        let symbol = engine_symbol(instrument);
        let cancel = CancelOrder { client_order_id: id, original: id, symbol, ..CancelOrder::default() };
        self.request(at_ns, instrument, &Request::Cancel(cancel), cause)
    }

    /// Applies a request, and cancels reduce-only orders that have become too large by it.
    pub(super) fn request(
        &mut self,
        at_ns: u64,
        instrument: usize,
        request: &Request,
        cause: Option<DeskRefusal>,
    ) -> Result<(), DeskRefusal> {
        let done = self.run(at_ns, instrument, cause, |venue, reports| venue.request(at_ns, request, reports));
        if cause.is_none() {
            self.cancel_excess(at_ns, instrument);
        }
        done
    }

    /// Replaces the quotes of an instrument, unless it is suspended.
    pub(super) fn replace_quotes(&mut self, at_ns: u64, instrument: usize, quotes: TopOfBook) {
        if self.is_suspended(instrument) {
            return;
        }
        let listing = &self.config.instruments[instrument];
        // A quote beyond the range of amounts is left out, as the engine leaves out a quote without a quantity.
        let bounded = |price, size| if fits(listing, price, size) { size } else { Quantity::ZERO };
        let tick = TopOfBook {
            bid_quantity: bounded(quotes.bid, quotes.bid_quantity),
            ask_quantity: bounded(quotes.ask, quotes.ask_quantity),
            event_ns: at_ns,
            symbol: engine_symbol(instrument),
            ..quotes
        };
        // The engine refuses no quote.
        let _ = self.run(at_ns, instrument, None, |venue, reports| venue.top_of_book(at_ns, &tick, reports));
        self.cancel_excess(at_ns, instrument);
    }

    /// Cancels reduce-only orders beyond the positions of their accounts, the newest first.
    fn cancel_excess(&mut self, at_ns: u64, instrument: usize) {
        if !self.config.instruments[instrument].is_derivative {
            return;
        }
        for account in 0..self.config.accounts.len() {
            for side in [Side::Buy, Side::Sell] {
                let closable = self.closable(account, instrument, side);
                let mut sum: i128 = 0;
                let is_excess = |order: &&DeskOrder| {
                    sum += i128::from(order.open_quantity().0);
                    sum > closable
                };
                let excess = self.reducing_orders(account, instrument, side).filter(is_excess);
                let excess: Vec<u64> = excess.map(|order| order.id).collect();
                for id in excess.into_iter().rev() {
                    // The order is open, so that the engine cancels it.
                    let _ = self.withdraw(at_ns, instrument, id, Some(DeskRefusal::ReduceOnly));
                }
            }
        }
    }

    /// Runs the engine, and applies its reports.
    fn run(
        &mut self,
        at_ns: u64,
        instrument: usize,
        cause: Option<DeskRefusal>,
        work: impl FnOnce(&mut SimVenue, &mut Vec<ExecutionReport>),
    ) -> Result<(), DeskRefusal> {
        let before = self.levels(instrument);
        let mut reports = mem::take(&mut self.reports);
        work(&mut self.venue, &mut reports);
        let (mut done, mut begun) = (Ok(()), None);
        for report in reports.drain(..) {
            match self.apply(at_ns, &report, cause, begun) {
                Ok(trade) => begun = trade,
                Err(refusal) => done = Err(refusal),
            }
        }
        self.reports = reports;
        self.note_change(at_ns, instrument, &before);
        done
    }

    /// Applies a report. `begun` is the trade of a taker's report directly before: the maker's report completes it.
    /// Returns the trade that this report begins.
    fn apply(
        &mut self,
        at_ns: u64,
        report: &ExecutionReport,
        cause: Option<DeskRefusal>,
        begun: Option<u64>,
    ) -> Result<Option<u64>, DeskRefusal> {
        match ExecType::from_code(report.exec_type) {
            Some(ExecType::Rejected | ExecType::CancelRejected) => {
                let reason = RejectReason::from_code(report.reason);
                return Err(reason.map_or(DeskRefusal::UnknownOrder, DeskRefusal::Other));
            }
            // Effects of a request carry its id. The fill of a resting order does not.
            Some(ExecType::Trade) if report.client_order_id == ClientOrderId(0) => {
                self.fill(at_ns, report, begun, true);
            }
            Some(ExecType::Trade) => return Ok(self.fill(at_ns, report, None, false)),
            Some(ExecType::New) => self.change(at_ns, report, |_| {}),
            Some(ExecType::Replaced) => self.change(at_ns, report, |order| {
                order.price = report.price;
                order.quantity = Quantity(report.cumulative_quantity.0 + report.leaves_quantity.0);
                order.amends += 1;
                if report.leaves_quantity == Quantity::ZERO {
                    order.state = DeskState::Filled;
                }
            }),
            Some(ExecType::Canceled | ExecType::Expired) => self.change(at_ns, report, |order| {
                let is_killed = order.time_in_force == TimeInForce::FillOrKill;
                order.cancel_reason = cause.or(is_killed.then_some(DeskRefusal::FokUnfillable));
                order.state = DeskState::Canceled;
            }),
            _ => {}
        }
        Ok(None)
    }

    /// Applies the fill of an order. Returns the id of the trade, which is new unless the trade has begun.
    fn fill(&mut self, at_ns: u64, report: &ExecutionReport, begun: Option<u64>, is_maker: bool) -> Option<u64> {
        let (price, quantity, id) = (report.last_price, report.last_quantity, report.order_id.0);
        let record = self.orders.get_mut(id)?;
        record.notional += Notional::of(price, quantity).0;
        let order = &mut record.order;
        order.filled.0 += quantity.0;
        // An average of prices fits, as each of them does.
        order.average_price = Price((record.notional / i128::from(order.filled.0.max(1))) as i64);
        order.state = if order.filled == order.quantity { DeskState::Filled } else { DeskState::PartlyFilled };
        order.updated_ns = at_ns;
        let DeskOrder { account, instrument, side, .. } = *order;
        let trade_id = begun.unwrap_or(self.last_trade + 1);
        if begun.is_none() {
            self.last_trade = trade_id;
            let side = if is_maker { side.opposite() } else { side };
            self.events.push(DeskEvent::Trade(PublicTrade { trade_id, instrument, side, price, quantity, at_ns }));
        }
        let listing = &self.config.instruments[instrument];
        let rate = if is_maker { self.config.maker_fee_e6 } else { self.config.taker_fee_e6 };
        let (currency, fee) = fee(listing, side, price, quantity, rate);
        let fee_currency = currency.to_owned();
        let fill =
            DeskFill { trade_id, order: id, instrument, side, price, quantity, is_maker, fee, fee_currency, at_ns };
        self.ledger.book(account, listing, fill.clone());
        self.publish(id, Some(fill));
        Some(trade_id)
    }

    /// Changes the order of a report that is no fill.
    fn change(&mut self, at_ns: u64, report: &ExecutionReport, update: impl FnOnce(&mut DeskOrder)) {
        let id = report.order_id.0;
        if let Some(record) = self.orders.get_mut(id) {
            record.order.updated_ns = at_ns;
            update(&mut record.order);
            self.publish(id, None);
        }
    }

    /// Reserves for the open quantity of a changed order, and adds its event.
    fn publish(&mut self, id: u64, fill: Option<DeskFill>) {
        let rate = self.reserved_rate();
        let Some(record) = self.orders.get_mut(id) else { return };
        let order = record.order.clone();
        let listing = &self.config.instruments[order.instrument];
        let (currency, reserved) = reservation(listing, order.side, order.price, order.open_quantity(), rate);
        let change = reserved - mem::replace(&mut record.reserved, reserved);
        self.ledger.reserve(order.account, currency, change);
        if !order.is_open() {
            self.orders.end(id);
        }
        let account = order.account;
        self.events.push(DeskEvent::Order(order, account, fill));
    }

    /// Counts a change of a book since `before`, and adds its events.
    fn note_change(&mut self, at_ns: u64, instrument: usize, before: &BookLevels) {
        let after = self.levels(instrument);
        if after == *before {
            return;
        }
        let market = &mut self.markets[instrument];
        market.sequence += 1;
        market.changed_ns = at_ns;
        self.events.push(DeskEvent::Book(instrument));
        if before.iter().zip(&after).any(|(before, after)| before.first() != after.first()) {
            self.events.push(DeskEvent::Quote(instrument));
        }
    }

    fn levels(&self, instrument: usize) -> BookLevels {
        [Side::Buy, Side::Sell].map(|side| self.book(instrument, side).collect())
    }
}
