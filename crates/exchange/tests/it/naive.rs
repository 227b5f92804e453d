//! The plainest venue that follows the rules, a list of orders that is scanned, compared with the real one.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_exchange::{Config, Reject, Venue};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecutionReport, NewOrder, OrderId, Price, Quantity, ReplaceOrder,
    Request, Side, SymbolId, TopOfBook, VenueId, VenueOrderId,
};

use crate::commands::{Command, Commands, SYMBOLS, seed};

const VENUE: VenueId = VenueId(3);

const BUY: u8 = 1;
const MARKET: u8 = 1;
const IOC: u8 = 3;
const FOK: u8 = 4;

/// Codes of `ExecType` and `OrdStatus`, as FIX has them.
const NEW: u8 = 0;
const PARTIALLY_FILLED: u8 = 1;
const FILLED: u8 = 2;
const CANCELED: u8 = 4;
const REPLACED: u8 = 5;
const REJECTED: u8 = 8;
const EXPIRED: u8 = 12;
const TRADE: u8 = 15;
const CANCEL_REJECTED: u8 = 20;

#[test]
fn the_venue_does_what_the_naive_one_does() {
    let seed = seed();
    let mut venue = Venue::new(Config { venue: VENUE, symbols: SYMBOLS, expected_orders: 16 });
    let mut naive = Naive::default();
    let mut seen: BTreeMap<u8, u32> = BTreeMap::new();
    let mut reasons: BTreeSet<u16> = BTreeSet::new();
    for (number, command) in (1..=100_000_u64).zip(Commands::new(seed, true)) {
        let expected = naive.apply(number, &command);
        let reports = command.apply(&mut venue, number);
        assert_eq!(reports, expected, "seed {seed}, command {number}: {command:?}");
        assert_eq!(venue.working(), naive.working(), "seed {seed}, command {number}: {command:?}");
        for report in &reports {
            *seen.entry(report.exec_type).or_default() += 1;
            reasons.insert(report.reason);
        }
        if number % 64 == 0 {
            compare_depth(&venue, &naive, seed, number);
        }
    }
    for exec_type in [NEW, TRADE, CANCELED, REPLACED, EXPIRED, REJECTED, CANCEL_REJECTED] {
        let count = seen.get(&exec_type).copied().unwrap_or(0);
        assert!(count >= 100, "seed {seed}: only {count} reports of type {exec_type}, which compares little");
    }
    for reject in Reject::ALL {
        assert!(reasons.contains(&reject.code()), "seed {seed}: nothing was refused because {reject}");
    }
}

fn compare_depth(venue: &Venue, naive: &Naive, seed: u64, number: u64) {
    for symbol in (0..SYMBOLS).map(SymbolId) {
        for side in [Side::Buy, Side::Sell] {
            let depth: Vec<(Price, Quantity)> = venue.depth(symbol, side).collect();
            assert_eq!(depth, naive.depth(symbol, side), "seed {seed}, command {number}, {symbol} {side:?}");
        }
    }
}

#[derive(Default)]
struct Naive {
    /// All that rests, in any order.
    live: Vec<Resting>,
    used: BTreeSet<u64>,
    accepted: u64,
    executions: u64,
    arrivals: u64,
}

#[derive(Clone, Copy)]
struct Resting {
    /// Zero for a quote.
    id: u64,
    venue_id: u64,
    symbol: SymbolId,
    account: AccountId,
    side: u8,
    /// Zero for any.
    price: i64,
    total: i64,
    filled: i64,
    events: u64,
    arrival: u64,
}

/// What is answered, and when.
#[derive(Clone, Copy)]
struct Cause {
    stamp: u64,
    request: u64,
}

impl Naive {
    fn apply(&mut self, stamp: u64, command: &Command) -> Vec<ExecutionReport> {
        let mut out = Vec::new();
        match command {
            Command::Request(request) => {
                let cause = Cause { stamp, request: request.client_order_id().0 };
                match request {
                    Request::New(new) => self.enter(cause, new, &mut out),
                    Request::Cancel(cancel) => self.cancel(cause, cancel, &mut out),
                    Request::Replace(replace) => self.replace(cause, replace, &mut out),
                }
            }
            Command::Tick(tick) => self.tick(stamp, tick, &mut out),
        }
        out
    }

    fn working(&self) -> usize {
        self.live.iter().filter(|order| order.id != 0).count()
    }

    fn depth(&self, symbol: SymbolId, side: Side) -> Vec<(Price, Quantity)> {
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
        let mut order = Resting {
            id,
            venue_id: self.accepted,
            symbol: new.symbol,
            account: new.account,
            side: new.side,
            price: new.price.0,
            total: new.quantity.0,
            filled: 0,
            events: 0,
            arrival: 0,
        };
        out.push(order.tell(cause, NEW));
        if new.time_in_force != FOK || self.reachable(&order) >= i128::from(order.total) {
            self.sweep(cause, &mut order, out);
        }
        if order.open() == 0 {
            return;
        }
        if new.order_type == MARKET || new.time_in_force == IOC || new.time_in_force == FOK {
            out.push(order.tell(cause, EXPIRED));
        } else {
            self.rest(order);
        }
    }

    fn refusal(&mut self, new: &NewOrder) -> Option<(u64, Reject)> {
        if new.client_order_id.0 == 0 {
            return Some((0, Reject::NoId));
        }
        if !self.used.insert(new.client_order_id.0) {
            return Some((0, Reject::DuplicateId));
        }
        let sides_and_types = [1, 2].contains(&new.side) && [1, 2].contains(&new.order_type);
        if !sides_and_types || ![0, 1, 3, 4].contains(&new.time_in_force) || new.position_effect > 2 {
            return Some((1, Reject::UnknownCode));
        }
        if new.symbol.0 >= SYMBOLS {
            return Some((1, Reject::UnknownSymbol));
        }
        if new.quantity.0 <= 0 {
            return Some((1, Reject::Quantity));
        }
        let priced = if new.order_type == MARKET { new.price.0 == 0 } else { new.price.0 > 0 };
        if priced { None } else { Some((1, Reject::Price)) }
    }

    fn cancel(&mut self, cause: Cause, cancel: &CancelOrder, out: &mut Vec<ExecutionReport>) {
        match self.find(cancel.original.0) {
            Some(at) => {
                let mut order = self.live.remove(at);
                out.push(order.tell(cause, CANCELED));
            }
            None => out.push(self.absent(cause, cancel.original.0, cancel.symbol, cancel.account)),
        }
    }

    fn replace(&mut self, cause: Cause, replace: &ReplaceOrder, out: &mut Vec<ExecutionReport>) {
        let Some(at) = self.find(replace.original.0) else {
            out.push(self.absent(cause, replace.original.0, replace.symbol, replace.account));
            return;
        };
        let (price, total) = (replace.price.0, replace.quantity.0);
        if total <= 0 || price <= 0 {
            let reject = if total <= 0 { Reject::Quantity } else { Reject::Price };
            let refused = self.live[at].tell(cause, CANCEL_REJECTED);
            out.push(ExecutionReport { reason: reject.code(), ..refused });
            return;
        }
        let mut order = self.live.remove(at);
        let keeps_place = price == order.price && total <= order.total;
        order.price = price;
        order.total = total.max(order.filled);
        out.push(order.tell(cause, REPLACED));
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

    /// Trades with the best of all resting orders, again and again.
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
        let trade = order.tell(cause, TRADE);
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
        let reject = if self.used.contains(&id) { Reject::TooLate } else { Reject::UnknownOrder };
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
    fn open(&self) -> i64 {
        self.total - self.filled
    }

    fn reaches(&self, other: &Resting) -> bool {
        let price_is_good = if self.side == BUY { other.price <= self.price } else { other.price >= self.price };
        self.symbol == other.symbol && self.side != other.side && (self.price == 0 || price_is_good)
    }

    fn tell(&mut self, cause: Cause, exec_type: u8) -> ExecutionReport {
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
