//! Actions of the venue's operator: busts and corrections of fills, and the end of the day.

use tickpath_market::{
    ClientOrderId, ExecId, ExecType, ExecutionReport, OrdStatus, Price, Quantity, SymbolId, TimeInForce,
};

use crate::fills::{FillError, VenueFill};
use crate::known_orders::{BookLocation, EndedOrder, KnownOrder};
use crate::report::ReportWriter;
use crate::{OrderBook, SimVenue};

impl SimVenue {
    /// Busts a fill of this day at `stamp` (ticks), with a `TradeCancel` report that carries the fill as it held until
    /// now. A trade between two orders is two fills, each with an id of its own.
    pub fn bust(&mut self, stamp: u64, exec_id: ExecId, reports: &mut Vec<ExecutionReport>) -> Result<(), FillError> {
        let fill = *self.fills.get(exec_id)?;
        self.amend(stamp, exec_id, fill, Quantity::ZERO, reports)
    }

    /// Corrects a fill of this day at `stamp` (ticks), with a `TradeCorrect` report that carries the fill as it holds
    /// now. The other side of the trade keeps its own fill.
    pub fn correct(
        &mut self,
        stamp: u64,
        exec_id: ExecId,
        price: Price,
        quantity: Quantity,
        reports: &mut Vec<ExecutionReport>,
    ) -> Result<(), FillError> {
        let fill = VenueFill { price, quantity, ..*self.fills.get(exec_id)? };
        if price <= Price::ZERO {
            return Err(FillError::Price);
        }
        if quantity <= Quantity::ZERO {
            return Err(FillError::Quantity);
        }
        self.amend(stamp, exec_id, fill, quantity, reports)
    }

    /// Ends the day at `stamp` (ticks): day orders expire, the oldest first; good-till-canceled orders keep their
    /// places. Removes ended orders and the day's fills and frees their memory; ids stay used.
    pub fn end_of_day(&mut self, stamp: u64, reports: &mut Vec<ExecutionReport>) {
        let mut expired = Vec::new();
        for (symbol, book) in (0..).map(SymbolId).zip(&mut self.books) {
            // Builds a new book, because a book never frees the memory of orders that have left.
            let old = std::mem::replace(book, OrderBook::new(self.book_room));
            for (_, &order) in old.orders() {
                if order.is_quote() {
                    book.insert(order);
                } else if order.time_in_force == TimeInForce::Day {
                    expired.push((symbol, order));
                } else {
                    self.known_orders.add_resting(order.id, BookLocation { symbol, slot: book.insert(order) });
                }
            }
        }
        expired.sort_unstable_by_key(|(_, order)| order.venue_order_id);
        for (symbol, mut order) in expired {
            let mut writer = ReportWriter { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
            writer.ended(&mut order, ClientOrderId(0), (ExecType::Expired, OrdStatus::Expired));
            self.known_orders.add_ended(order.id, EndedOrder::of(&order, symbol, OrdStatus::Expired));
        }
        self.known_orders.forget_ended();
        self.fills.end_day();
    }

    /// Sets a fill's quantity to `after`, and reports `fill`. The order's filled quantity changes and its open quantity
    /// stays, so nothing enters the book.
    fn amend(
        &mut self,
        stamp: u64,
        exec_id: ExecId,
        fill: VenueFill,
        after: Quantity,
        reports: &mut Vec<ExecutionReport>,
    ) -> Result<(), FillError> {
        let before = self.fills.get(exec_id)?.quantity;
        let known =
            self.known_orders.get_mut(fill.order).expect("an order with a fill of today is known until the day ends");
        match known {
            KnownOrder::Resting(BookLocation { symbol, slot }) => {
                let order = self.books[symbol.0 as usize].order_mut(*slot);
                let open = order.open();
                order.filled = changed(order.filled, before, after, open)?;
                order.quantity = Quantity(order.filled.0 + open.0);
                order.events += 1;
            }
            KnownOrder::Ended(ended) => {
                ended.filled = changed(ended.filled, before, after, Quantity::ZERO)?;
                ended.events += 1;
            }
        }
        *self.fills.get(exec_id)? = VenueFill { quantity: after, sequence: 0, ..fill };
        let exec_type = if after == Quantity::ZERO { ExecType::TradeCancel } else { ExecType::TradeCorrect };
        reports.extend(self.status_report(stamp, fill.order).map(|state| ExecutionReport {
            exec_id,
            last_price: fill.price,
            last_quantity: fill.quantity,
            exec_type: exec_type.code(),
            ..state
        }));
        Ok(())
    }
}

/// Returns the filled quantity with `after` in the place of `before`, or an error if its sum with `open` overflows.
fn changed(filled: Quantity, before: Quantity, after: Quantity, open: Quantity) -> Result<Quantity, FillError> {
    let filled = (filled.0 - before.0).checked_add(after.0).ok_or(FillError::Quantity)?;
    filled.checked_add(open.0).map(|_| Quantity(filled)).ok_or(FillError::Quantity)
}
