//! Invariants after every command, whatever the rules in detail, checked from outside: from the reports, the depth and
//! the ticks alone.

use std::collections::BTreeMap;

use tickpath_market::{
    ExecType, ExecutionReport, Price, Quantity, Request, Side, SymbolId, TimeInForce, TopOfBook, VenueId,
};
use tickpath_venue_sim::{Config, SimVenue};

use crate::random_commands::{Command, Commands, SYMBOLS, seed};

#[test]
fn books_stay_uncrossed_and_quantities_are_conserved_by_priority() {
    let first = seed();
    for seed in first..first.saturating_add(8) {
        let mut venue = SimVenue::new(Config { venue: VenueId(1), symbols: SYMBOLS, expected_orders: 64 });
        let mut witness = BookInvariants { seed, ..BookInvariants::default() };
        let mut commands = Commands::new(seed, false);
        for number in 1..=5_000_u64 {
            witness.number = number;
            let command = commands.draw();
            witness.expect(&command);
            let reports = command.apply(&mut venue, number).unwrap_or_default();
            reports.iter().for_each(|report| witness.report(report));
            witness.settle();
            if matches!(command, Command::EndOfDay) {
                witness.end_day();
            }
            witness.compare(&venue);
            commands.see(&reports);
        }
    }
}

/// Knowledge of an outside observer.
#[derive(Default)]
struct BookInvariants {
    seed: u64,
    /// Number of the command.
    number: u64,
    /// Open orders.
    orders: BTreeMap<u64, ExpectedOrder>,
    /// Orders that were done today.
    done: BTreeMap<u64, ExpectedOrder>,
    /// Whether an order ends with the day, by its id.
    day_orders: BTreeMap<u64, bool>,
    /// Quantity of each valid fill of today.
    fills: BTreeMap<u64, i64>,
    /// Remaining quantity of the maker's quotes, by symbol and side.
    quotes: BTreeMap<(SymbolId, Side), i64>,
    /// Quantity bought less sold by clients in this command, by symbol.
    bought: BTreeMap<SymbolId, i64>,
    executions: u64,
    /// Counter of orders that went to the end of a queue.
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct ExpectedOrder {
    symbol: SymbolId,
    side: u8,
    price: Price,
    total: i64,
    filled: i64,
    events: u64,
    turn: u64,
}

impl ExpectedOrder {
    /// Changes the filled quantity; the open quantity stays.
    fn change_fill(&mut self, difference: i64) {
        self.filled += difference;
        self.total += difference;
    }
}

impl BookInvariants {
    fn expect(&mut self, command: &Command) {
        match command {
            Command::Tick(tick) => self.expect_quotes(tick),
            Command::Request(Request::New(new)) => {
                let day = new.time_in_force == TimeInForce::Day.code();
                // A duplicate changes nothing of the order that had the id first.
                self.day_orders.entry(new.client_order_id.0).or_insert(day);
            }
            _ => {}
        }
    }

    fn expect_quotes(&mut self, tick: &TopOfBook) {
        let has = |price: Price, quantity: Quantity| price > Price::ZERO && quantity > Quantity::ZERO;
        let (bid, ask) = (has(tick.bid, tick.bid_quantity), has(tick.ask, tick.ask_quantity));
        let market = !(bid && ask && tick.bid >= tick.ask);
        self.quotes.insert((tick.symbol, Side::Buy), if bid && market { tick.bid_quantity.0 } else { 0 });
        self.quotes.insert((tick.symbol, Side::Sell), if ask && market { tick.ask_quantity.0 } else { 0 });
    }

    /// Updates an order by its report.
    fn report(&mut self, report: &ExecutionReport) {
        let id = report.order_id.0;
        if report.exec_type == ExecType::New.code() {
            self.turn += 1;
            let known = ExpectedOrder {
                symbol: report.symbol,
                side: report.side,
                price: report.price,
                total: report.leaves_quantity.0,
                filled: 0,
                events: 0,
                turn: self.turn,
            };
            assert!(self.orders.insert(id, known).is_none(), "{}: {id} is accepted twice", self.context());
        }
        if report.venue_sequence == 0 || report.exec_type == ExecType::Rejected.code() {
            return;
        }
        let known = self.orders.get(&id).or_else(|| self.done.get(&id)).copied();
        if report.exec_type == ExecType::OrderStatus.code() {
            known.iter().for_each(|known| self.check_status(known, report));
            return;
        }
        let changes_a_fill = [ExecType::TradeCancel.code(), ExecType::TradeCorrect.code()].contains(&report.exec_type);
        let Some(mut known) = known.filter(|_| changes_a_fill || self.orders.contains_key(&id)) else {
            panic!("{}: {id} is done already: {report:?}", self.context());
        };
        known.events += 1;
        assert_eq!(report.venue_sequence, known.events, "{}: {report:?}", self.context());
        self.update(&mut known, report);
        self.check_standing(&known, report);
        if report.leaves_quantity.0 == 0 {
            self.orders.remove(&id);
            self.done.insert(id, known);
        } else {
            self.orders.insert(id, known);
        }
    }

    /// Checks that a status agrees with the earlier reports.
    fn check_status(&self, known: &ExpectedOrder, report: &ExecutionReport) {
        assert_eq!(report.venue_sequence, known.events, "{}: {report:?}", self.context());
        assert_eq!((report.exec_id.0, report.last_quantity.0), (0, 0), "{}: {report:?}", self.context());
        let works = self.orders.contains_key(&report.order_id.0);
        assert_eq!(works, report.leaves_quantity.0 > 0, "{}: {report:?}", self.context());
        self.check_standing(known, report);
    }

    fn check_standing(&self, known: &ExpectedOrder, report: &ExecutionReport) {
        let reported = (report.symbol, report.side, report.price, report.cumulative_quantity.0);
        assert_eq!(reported, (known.symbol, known.side, known.price, known.filled), "{}: {report:?}", self.context());
        let open = report.leaves_quantity.0;
        assert!(open == 0 || open == known.total - known.filled, "{}: {known:?} {report:?}", self.context());
    }

    /// Checks that no day order rests after the end of its day.
    fn end_day(&mut self) {
        for id in self.orders.keys() {
            assert!(!self.day_orders[id], "{}: {id} is a day order, and rests", self.context());
        }
        self.done.clear();
        self.fills.clear();
    }

    fn update(&mut self, known: &mut ExpectedOrder, report: &ExecutionReport) {
        if report.exec_type == ExecType::Trade.code() {
            if report.client_order_id.0 == 0 {
                self.check_priority(known, report);
            }
            self.executions += 1;
            assert_eq!(report.exec_id.0, self.executions, "{}: {report:?}", self.context());
            assert!(report.last_quantity.0 > 0, "{}: {report:?}", self.context());
            known.filled += report.last_quantity.0;
            self.fills.insert(report.exec_id.0, report.last_quantity.0);
            let sign = if known.side == Side::Buy.code() { 1 } else { -1 };
            *self.bought.entry(known.symbol).or_default() += sign * report.last_quantity.0;
        }
        if report.exec_type == ExecType::TradeCancel.code() {
            let held = self.fills.remove(&report.exec_id.0);
            assert_eq!(held, Some(report.last_quantity.0), "{}: {report:?}", self.context());
            known.change_fill(-report.last_quantity.0);
        }
        if report.exec_type == ExecType::TradeCorrect.code() {
            let held = self.fills.insert(report.exec_id.0, report.last_quantity.0);
            let Some(held) = held else { panic!("{}: no such fill holds: {report:?}", self.context()) };
            known.change_fill(report.last_quantity.0 - held);
        }
        if report.exec_type == ExecType::Replaced.code() {
            let total = report.cumulative_quantity.0 + report.leaves_quantity.0;
            if report.price != known.price || total > known.total {
                self.turn += 1;
                known.turn = self.turn;
            }
            (known.price, known.total) = (report.price, total);
        }
    }

    /// Checks that no resting order on this side is better, or equal and earlier.
    fn check_priority(&self, known: &ExpectedOrder, report: &ExecutionReport) {
        let buys = known.side == Side::Buy.code();
        for (id, other) in self.orders.iter().filter(|(_, o)| o.symbol == known.symbol && o.side == known.side) {
            let better = if buys { other.price > known.price } else { other.price < known.price };
            let earlier = other.price == known.price && other.turn < known.turn;
            assert!(!better && !earlier, "{}: {id} was passed over: {report:?}", self.context());
        }
    }

    /// Checks that client trades balance: the maker has the difference, and no more than it quoted.
    fn settle(&mut self) {
        for (symbol, bought) in std::mem::take(&mut self.bought) {
            let side = if bought > 0 { Side::Sell } else { Side::Buy };
            let quote = self.quotes.entry((symbol, side)).or_default();
            *quote -= bought.abs();
            let left = *quote;
            assert!(left >= 0, "{}: the maker's {side:?} traded {} too much", self.context(), -left);
        }
    }

    fn compare(&self, venue: &SimVenue) {
        assert_eq!(venue.resting_orders(), self.orders.len(), "{}", self.context());
        for symbol in (0..SYMBOLS).map(SymbolId) {
            for side in [Side::Buy, Side::Sell] {
                let depth: i64 = venue.depth(symbol, side).map(|(_, quantity)| quantity.0).sum();
                let orders = self.orders.values().filter(|o| o.symbol == symbol && o.side == side.code());
                let open: i64 = orders.map(|o| o.total - o.filled).sum();
                let quote = self.quotes.get(&(symbol, side)).copied().unwrap_or(0);
                assert_eq!(depth, open + quote, "{}: {symbol} {side:?}", self.context());
            }
            let best = |side| venue.depth(symbol, side).next().map(|(price, _)| price);
            if let (Some(bid), Some(ask)) = (best(Side::Buy), best(Side::Sell)) {
                assert!(bid < ask, "{}: {symbol} is crossed at {bid} and {ask}", self.context());
            }
        }
    }

    fn context(&self) -> String {
        format!("seed {}, command {}", self.seed, self.number)
    }
}
