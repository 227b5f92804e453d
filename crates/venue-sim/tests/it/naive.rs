//! The simplest venue that follows the rules: a list of orders that is scanned. `compare.rs` compares it with the real
//! venue.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecutionReport, MassCancel, NewOrder, OrderId, Price, Quantity,
    ReplaceOrder, Request, Side, SymbolId, TopOfBook, VenueId, VenueOrderId,
};
use tickpath_venue_sim::{FillError, RejectReason};

use crate::random_commands::{Command, SYMBOLS};

pub const VENUE: VenueId = VenueId(3);

const BUY: u8 = 1;
const MARKET: u8 = 1;
const DAY: u8 = 0;
const IOC: u8 = 3;
const FOK: u8 = 4;
const POST_ONLY: u8 = 1;
const REDUCE_ONLY: u8 = 2;
const ONE_SYMBOL: u8 = 1;
const ALL_SYMBOLS: u8 = 7;

/// Codes of `ExecType` and `OrdStatus`, as in FIX.
pub const NEW: u8 = 0;
pub const PARTIALLY_FILLED: u8 = 1;
pub const FILLED: u8 = 2;
pub const CANCELED: u8 = 4;
pub const REPLACED: u8 = 5;
pub const REJECTED: u8 = 8;
pub const EXPIRED: u8 = 12;
pub const TRADE: u8 = 15;
pub const TRADE_CORRECT: u8 = 16;
pub const TRADE_CANCEL: u8 = 17;
pub const ORDER_STATUS: u8 = 18;
pub const CANCEL_REJECTED: u8 = 20;
pub const UNKNOWN: u8 = 21;

#[derive(Default)]
pub struct Naive {
    /// All resting orders, in any order.
    live: Vec<Resting>,
    /// The last report of each order that was done today.
    past: BTreeMap<u64, ExecutionReport>,
    /// Valid fills of today: order, price and quantity.
    fills: BTreeMap<u64, (u64, i64, i64)>,
    /// Fills before today.
    earlier: u64,
    used: BTreeSet<u64>,
    accepted: u64,
    executions: u64,
    arrivals: u64,
}

#[derive(Clone, Copy)]
struct Resting {
    /// Order id; zero for a quote.
    id: u64,
    venue_id: u64,
    symbol: SymbolId,
    account: AccountId,
    side: u8,
    time_in_force: u8,
    post_only: bool,
    /// Limit price; zero for any.
    price: i64,
    total: i64,
    filled: i64,
    events: u64,
    arrival: u64,
}

/// The request that a report answers, and its time.
#[derive(Clone, Copy)]
struct Cause {
    stamp: u64,
    request: u64,
}

impl Naive {
    pub fn apply(&mut self, stamp: u64, command: &Command) -> Result<Vec<ExecutionReport>, FillError> {
        let mut out = Vec::new();
        match command {
            Command::Request(request) => self.request(stamp, request, &mut out),
            Command::Tick(tick) => self.tick(stamp, tick, &mut out),
            Command::Bust(fill) => out.push(self.change(stamp, *fill, None)?),
            Command::Correct(fill, price, quantity) => {
                out.push(self.change(stamp, *fill, Some((*price, *quantity)))?)
            }
            Command::EndOfDay => self.end_day(stamp, &mut out),
        }
        for report in out.iter().filter(|report| report.venue_sequence > 0 && report.leaves_quantity.0 == 0) {
            self.past.insert(report.order_id.0, *report);
        }
        if matches!(command, Command::EndOfDay) {
            self.past.clear();
        }
        Ok(out)
    }

    fn request(&mut self, stamp: u64, request: &Request, out: &mut Vec<ExecutionReport>) {
        let cause = Cause { stamp, request: request.client_order_id().0 };
        match request {
            Request::New(new) => self.enter(cause, new, out),
            Request::Cancel(cancel) => self.cancel(cause, cancel, out),
            Request::Replace(replace) => self.replace(cause, replace, out),
            Request::Status(asked) => out.push(self.status(cause, asked.original.0, asked.symbol, asked.account)),
            Request::MassCancel(all) => self.cancel_all(cause, all, out),
            Request::Conditional(_) | Request::ReplaceConditional(_) => unreachable!("triggers are an OMS's own"),
            Request::Extended(_) | Request::ByTextId(_) => unreachable!("text ids are an OMS's own"),
        }
    }

    pub fn working(&self) -> usize {
        self.live.iter().filter(|order| order.id != 0).count()
    }

    pub fn depth(&self, symbol: SymbolId, side: Side) -> Vec<(Price, Quantity)> {
        let mut prices: BTreeMap<i64, i128> = BTreeMap::new();
        for order in self.live.iter().filter(|order| order.symbol == symbol && order.side == side.code()) {
            *prices.entry(order.price).or_default() += i128::from(order.open());
        }
        let level = |(price, open): (i64, i128)| (Price(price), Quantity(open.min(i128::from(i64::MAX)) as i64));
        match side {
            Side::Buy => prices.into_iter().rev().map(level).collect(),
            Side::Sell => prices.into_iter().map(level).collect(),
        }
    }

    fn enter(&mut self, cause: Cause, new: &NewOrder, out: &mut Vec<ExecutionReport>) {
        let id = new.client_order_id.0;
        if let Some((sequence, reject)) = self.refusal(new) {
            out.push(ExecutionReport {
                order_id: OrderId(id),
                client_order_id: ClientOrderId(id),
                venue_sequence: sequence,
                price: new.price,
                venue_stamp: cause.stamp,
                symbol: new.symbol,
                account: new.account,
                reason: reject.code(),
                venue: VENUE,
                exec_type: REJECTED,
                status: REJECTED,
                side: new.side,
                ..ExecutionReport::default()
            });
            return;
        }
        self.accepted += 1;
        let mut order = Resting { venue_id: self.accepted, ..Resting::of(new) };
        out.push(order.report(cause, NEW));
        if new.time_in_force != FOK || self.reachable(&order) >= i128::from(order.total) {
            self.sweep(cause, &mut order, out);
        }
        if order.open() == 0 {
            return;
        }
        if new.order_type == MARKET || new.time_in_force == IOC || new.time_in_force == FOK {
            out.push(order.report(cause, EXPIRED));
        } else {
            self.rest(order);
        }
    }

    fn refusal(&mut self, new: &NewOrder) -> Option<(u64, RejectReason)> {
        if new.client_order_id.0 == 0 {
            return Some((0, RejectReason::NoId));
        }
        if !self.used.insert(new.client_order_id.0) {
            return Some((0, RejectReason::DuplicateId));
        }
        let sides_and_types = [1, 2].contains(&new.side) && [1, 2].contains(&new.order_type);
        if !sides_and_types || ![0, 1, 3, 4].contains(&new.time_in_force) || new.position_effect > 2 {
            return Some((1, RejectReason::UnknownCode));
        }
        if new.instructions > 3 || new.self_trade_mode > 3 || new.trade_mode > 3 {
            return Some((1, RejectReason::UnknownCode));
        }
        if new.symbol.0 >= SYMBOLS {
            return Some((1, RejectReason::UnknownSymbol));
        }
        if new.quantity.0 <= 0 {
            return Some((1, RejectReason::Quantity));
        }
        let priced = if new.order_type == MARKET { new.price.0 == 0 } else { new.price.0 > 0 };
        if !priced {
            return Some((1, RejectReason::Price));
        }
        if (new.instructions & REDUCE_ONLY, new.self_trade_mode, new.trade_mode) != (0, 0, 0) {
            return Some((1, RejectReason::Unsupported));
        }
        let cannot_rest = new.order_type == MARKET || [IOC, FOK].contains(&new.time_in_force);
        let order = Resting::of(new);
        (order.post_only && (cannot_rest || self.reachable(&order) > 0)).then_some((1, RejectReason::PostOnly))
    }

    fn cancel(&mut self, cause: Cause, cancel: &CancelOrder, out: &mut Vec<ExecutionReport>) {
        match self.find(cancel.original.0) {
            Some(at) => {
                let mut order = self.live.remove(at);
                out.push(order.report(cause, CANCELED));
            }
            None => out.push(self.absent(cause, cancel.original.0, cancel.symbol, cancel.account)),
        }
    }

    fn cancel_all(&mut self, cause: Cause, all: &MassCancel, out: &mut Vec<ExecutionReport>) {
        if ![ONE_SYMBOL, ALL_SYMBOLS].contains(&all.cancel_type) {
            let refused = self.absent(cause, 0, all.symbol, all.account);
            out.push(ExecutionReport { reason: RejectReason::UnknownCode.code(), ..refused });
            return;
        }
        let is_covered = |order: &Resting| {
            let symbol_fits = all.cancel_type == ALL_SYMBOLS || order.symbol == all.symbol;
            order.id != 0 && order.account == all.account && symbol_fits
        };
        self.leave(cause, CANCELED, is_covered, out);
    }

    fn end_day(&mut self, stamp: u64, out: &mut Vec<ExecutionReport>) {
        self.leave(Cause { stamp, request: 0 }, EXPIRED, |order| order.id != 0 && order.time_in_force == DAY, out);
        self.fills.clear();
        self.earlier = self.executions;
    }

    /// Removes all matching orders, the oldest first.
    fn leave(&mut self, cause: Cause, how: u8, is_covered: impl Fn(&Resting) -> bool, out: &mut Vec<ExecutionReport>) {
        let (mut leaving, staying): (Vec<Resting>, Vec<Resting>) =
            self.live.iter().partition(|order| is_covered(order));
        self.live = staying;
        leaving.sort_by_key(|order| order.venue_id);
        out.extend(leaving.iter_mut().map(|order| order.report(cause, how)));
    }

    fn status(&self, cause: Cause, id: u64, symbol: SymbolId, account: AccountId) -> ExecutionReport {
        if let Some(at) = self.find(id) {
            let mut order = Resting { events: self.live[at].events - 1, ..self.live[at] };
            return order.report(cause, ORDER_STATUS);
        }
        let (last, forgotten) = (self.past.get(&id).copied(), self.used.contains(&id));
        let known = last.unwrap_or(ExecutionReport {
            reason: if forgotten { RejectReason::Forgotten.code() } else { RejectReason::UnknownOrder.code() },
            status: if forgotten { UNKNOWN } else { REJECTED },
            ..self.absent(cause, id, symbol, account)
        });
        ExecutionReport {
            client_order_id: ClientOrderId(cause.request),
            exec_id: ExecId(0),
            last_price: Price(0),
            last_quantity: Quantity(0),
            venue_stamp: cause.stamp,
            exec_type: ORDER_STATUS,
            ..known
        }
    }

    /// Corrects a fill to another price and quantity, or busts it.
    fn change(
        &mut self,
        stamp: u64,
        fill: ExecId,
        to: Option<(Price, Quantity)>,
    ) -> Result<ExecutionReport, FillError> {
        if fill.0 <= self.earlier || fill.0 > self.executions {
            return Err(FillError::Unknown(fill));
        }
        let (id, price, before) = *self.fills.get(&fill.0).ok_or(FillError::Busted(fill))?;
        let after = to.map_or(0, |(_, quantity)| quantity.0);
        if to.is_some_and(|(price, _)| price.0 <= 0) {
            return Err(FillError::Price);
        }
        let (filled, open) = match self.find(id) {
            Some(at) => (self.live[at].filled, self.live[at].open()),
            None => (self.past[&id].cumulative_quantity.0, 0),
        };
        let sum = i128::from(filled) - i128::from(before) + i128::from(after);
        if to.is_some() && after <= 0 || sum + i128::from(open) > i128::from(i64::MAX) {
            return Err(FillError::Quantity);
        }
        let exec_type = if to.is_some() { TRADE_CORRECT } else { TRADE_CANCEL };
        let changed = match self.find(id) {
            Some(at) => {
                let order = &mut self.live[at];
                (order.filled, order.total) = (sum as i64, sum as i64 + open);
                order.report(Cause { stamp, request: 0 }, exec_type)
            }
            None => ExecutionReport {
                client_order_id: ClientOrderId(0),
                venue_sequence: self.past[&id].venue_sequence + 1,
                cumulative_quantity: Quantity(sum as i64),
                venue_stamp: stamp,
                exec_type,
                ..self.past[&id]
            },
        };
        let (last_price, last_quantity) = to.unwrap_or((Price(price), Quantity(before)));
        match to {
            Some((price, quantity)) => self.fills.insert(fill.0, (id, price.0, quantity.0)),
            None => self.fills.remove(&fill.0),
        };
        Ok(ExecutionReport { exec_id: fill, last_price, last_quantity, ..changed })
    }

    fn replace(&mut self, cause: Cause, replace: &ReplaceOrder, out: &mut Vec<ExecutionReport>) {
        let Some(at) = self.find(replace.original.0) else {
            out.push(self.absent(cause, replace.original.0, replace.symbol, replace.account));
            return;
        };
        let (price, total) = (replace.price.0, replace.quantity.0);
        let next = Resting { price, total: total.max(self.live[at].filled), ..self.live[at] };
        let reject = if total <= 0 {
            Some(RejectReason::Quantity)
        } else if price <= 0 {
            Some(RejectReason::Price)
        } else {
            (next.post_only && next.open() > 0 && self.reachable(&next) > 0).then_some(RejectReason::PostOnly)
        };
        if let Some(reject) = reject {
            let refused = self.live[at].report(cause, CANCEL_REJECTED);
            out.push(ExecutionReport { reason: reject.code(), ..refused });
            return;
        }
        let mut order = self.live.remove(at);
        let keeps_place = price == order.price && total <= order.total;
        order.price = price;
        order.total = total.max(order.filled);
        out.push(order.report(cause, REPLACED));
        if order.open() == 0 {
            return;
        }
        if keeps_place {
            self.live.push(order);
            return;
        }
        self.sweep(cause, &mut order, out);
        if order.open() > 0 {
            self.rest(order);
        }
    }

    fn tick(&mut self, stamp: u64, tick: &TopOfBook, out: &mut Vec<ExecutionReport>) {
        if tick.symbol.0 >= SYMBOLS {
            return;
        }
        self.live.retain(|order| order.id != 0 || order.symbol != tick.symbol);
        let has_bid = tick.bid.0 > 0 && tick.bid_quantity.0 > 0;
        let has_ask = tick.ask.0 > 0 && tick.ask_quantity.0 > 0;
        if has_bid && has_ask && tick.bid.0 >= tick.ask.0 {
            return;
        }
        let quotes = [(has_bid, BUY, tick.bid, tick.bid_quantity), (has_ask, 2, tick.ask, tick.ask_quantity)];
        for (_, side, price, quantity) in quotes.into_iter().filter(|quote| quote.0) {
            let mut quote = Resting {
                id: 0,
                venue_id: 0,
                symbol: tick.symbol,
                account: AccountId(0),
                side,
                time_in_force: DAY,
                post_only: false,
                price: price.0,
                total: quantity.0,
                filled: 0,
                events: 0,
                arrival: 0,
            };
            self.sweep(Cause { stamp, request: 0 }, &mut quote, out);
            if quote.open() > 0 {
                self.rest(quote);
            }
        }
    }

    fn rest(&mut self, mut order: Resting) {
        self.arrivals += 1;
        order.arrival = self.arrivals;
        self.live.push(order);
    }

    /// Trades with the best resting order, repeatedly.
    fn sweep(&mut self, cause: Cause, taker: &mut Resting, out: &mut Vec<ExecutionReport>) {
        while taker.open() > 0 {
            let Some(at) = self.best_for(taker) else { return };
            let mut other = self.live[at];
            let quantity = taker.open().min(other.open());
            taker.filled += quantity;
            other.filled += quantity;
            let unsolicited = Cause { stamp: cause.stamp, request: 0 };
            self.fill(cause, taker, other.price, quantity, out);
            let price = other.price;
            self.fill(unsolicited, &mut other, price, quantity, out);
            if other.open() == 0 {
                self.live.remove(at);
            } else {
                self.live[at] = other;
            }
        }
    }

    fn fill(&mut self, cause: Cause, order: &mut Resting, price: i64, quantity: i64, out: &mut Vec<ExecutionReport>) {
        if order.id == 0 {
            return;
        }
        self.executions += 1;
        self.fills.insert(self.executions, (order.id, price, quantity));
        let trade = order.report(cause, TRADE);
        out.push(ExecutionReport {
            exec_id: ExecId(self.executions),
            last_price: Price(price),
            last_quantity: Quantity(quantity),
            ..trade
        });
    }

    fn best_for(&self, taker: &Resting) -> Option<usize> {
        let reachable = (0..self.live.len()).filter(|&at| taker.reaches(&self.live[at]));
        reachable.min_by_key(|&at| {
            let order = &self.live[at];
            (if order.side == BUY { -order.price } else { order.price }, order.arrival)
        })
    }

    fn reachable(&self, taker: &Resting) -> i128 {
        self.live.iter().filter(|order| taker.reaches(order)).map(|order| i128::from(order.open())).sum()
    }

    fn find(&self, id: u64) -> Option<usize> {
        self.live.iter().position(|order| order.id == id && id != 0)
    }

    fn absent(&self, cause: Cause, id: u64, symbol: SymbolId, account: AccountId) -> ExecutionReport {
        let reject = if self.used.contains(&id) { RejectReason::TooLate } else { RejectReason::UnknownOrder };
        ExecutionReport {
            order_id: OrderId(id),
            client_order_id: ClientOrderId(cause.request),
            venue_stamp: cause.stamp,
            symbol,
            account,
            reason: reject.code(),
            venue: VENUE,
            exec_type: CANCEL_REJECTED,
            status: REJECTED,
            ..ExecutionReport::default()
        }
    }
}

impl Resting {
    /// Returns the order on its arrival.
    fn of(new: &NewOrder) -> Self {
        Self {
            id: new.client_order_id.0,
            venue_id: 0,
            symbol: new.symbol,
            account: new.account,
            side: new.side,
            time_in_force: new.time_in_force,
            post_only: new.instructions & POST_ONLY != 0,
            price: new.price.0,
            total: new.quantity.0,
            filled: 0,
            events: 0,
            arrival: 0,
        }
    }

    fn open(&self) -> i64 {
        self.total - self.filled
    }

    fn reaches(&self, other: &Resting) -> bool {
        let price_is_good = if self.side == BUY { other.price <= self.price } else { other.price >= self.price };
        self.symbol == other.symbol && self.side != other.side && (self.price == 0 || price_is_good)
    }

    fn report(&mut self, cause: Cause, exec_type: u8) -> ExecutionReport {
        self.events += 1;
        let ended = exec_type == CANCELED || exec_type == EXPIRED;
        let status = match (ended, self.open(), self.filled) {
            (true, _, _) => exec_type,
            (false, 0, _) => FILLED,
            (false, _, 0) => NEW,
            (false, _, _) => PARTIALLY_FILLED,
        };
        ExecutionReport {
            order_id: OrderId(self.id),
            client_order_id: ClientOrderId(cause.request),
            venue_order_id: VenueOrderId(self.venue_id),
            venue_sequence: self.events,
            cumulative_quantity: Quantity(self.filled),
            leaves_quantity: Quantity(if ended { 0 } else { self.open() }),
            price: Price(self.price),
            venue_stamp: cause.stamp,
            symbol: self.symbol,
            account: self.account,
            venue: VENUE,
            exec_type,
            status,
            side: self.side,
            ..ExecutionReport::default()
        }
    }
}
