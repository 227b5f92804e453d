//! The market of a simulated exchange: quotes that walk and trade, quotes of a topic, or quotes that stay.

use std::collections::HashMap;

use tickpath_log::{LogOpenError, LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_market::{Kind, OrderType, Price, Quantity, Side, TimeInForce, TopOfBook};
use tickpath_venue_sim_web::{NewDeskOrder, SimDesk, SimInstrument};
use zerocopy::FromBytes;

/// Time between two steps of the walk.
const STEP_NS: u64 = 200_000_000;
/// Steps between two trades of an instrument.
const STEPS_PER_TRADE: u64 = 10;
/// Largest step of a quote, in ticks.
const MAX_STEP: u64 = 5;
/// Bound of the walk, as a part of the price at the start.
const BOUND: i64 = 20;
/// Largest trade, in smallest quantities of an order.
const MAX_TRADE: u64 = 50;
/// Max messages of a topic that are taken in a turn.
const MAX_MESSAGES: usize = 1_024;

/// Where the quotes come from.
pub enum MarketSource {
    /// They stay.
    Still,
    Walk(MarketWalk),
    Topic(Box<TickTopic>),
}

/// Quotes that move a little, and an account that trades with them now and then. The same seed gives the same steps.
pub struct MarketWalk {
    state: u64,
    instruments: Vec<SimInstrument>,
    /// Distance of each instrument from its start, in ticks.
    offsets: Vec<i64>,
    /// Index of the account that trades.
    account: usize,
    steps: u64,
    next_ns: u64,
}

/// Quotes of a topic, which may not exist yet.
pub struct TickTopic {
    place: LogPath,
    reader: Option<Reader>,
    /// Names of the instruments by their numbers.
    names: HashMap<u32, String>,
}

impl MarketSource {
    /// Moves the market as far as it is due.
    pub fn turn(&mut self, desk: &mut SimDesk, now_ns: u64) -> anyhow::Result<()> {
        match self {
            Self::Still => Ok(()),
            Self::Walk(walk) => {
                walk.turn(desk, now_ns);
                Ok(())
            }
            Self::Topic(topic) => topic.turn(desk, now_ns),
        }
    }
}

impl MarketWalk {
    pub fn new(seed: u64, instruments: &[SimInstrument], account: usize) -> Self {
        let offsets = vec![0; instruments.len()];
        Self { state: seed, instruments: instruments.to_vec(), offsets, account, steps: 0, next_ns: 0 }
    }

    fn turn(&mut self, desk: &mut SimDesk, now_ns: u64) {
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + STEP_NS;
        self.steps += 1;
        for index in 0..self.instruments.len() {
            // Each instrument has its own turn to trade.
            if (self.steps + index as u64).is_multiple_of(STEPS_PER_TRADE) {
                self.trade(desk, now_ns, index);
            }
            self.step(desk, now_ns, index);
        }
    }

    /// Moves the quotes of an instrument by a few ticks.
    fn step(&mut self, desk: &mut SimDesk, now_ns: u64, index: usize) {
        let change = self.random(2 * MAX_STEP + 1) as i64 - MAX_STEP as i64;
        let SimInstrument { name, tick, bid, size, .. } = &self.instruments[index];
        let tick = tick.0.max(1);
        let bound = (bid.0 / BOUND / tick).max(1);
        let offset = (self.offsets[index] + change).clamp(-bound, bound);
        let bid = Price(bid.0.saturating_add(offset * tick).max(tick));
        let ask = Price(bid.0.saturating_add(tick));
        desk.quote(now_ns, name, bid, *size, ask, *size);
        self.offsets[index] = offset;
    }

    /// Trades with the best price of a side. The desk refuses it while the instrument is suspended.
    fn trade(&mut self, desk: &mut SimDesk, now_ns: u64, index: usize) {
        let (side, times) = (self.random(2), 1 + self.random(MAX_TRADE) as i64);
        let best = desk.best(index);
        let (side, price) = if side == 0 { (Side::Buy, best.ask) } else { (Side::Sell, best.bid) };
        let SimInstrument { name, minimum, lot, .. } = &self.instruments[index];
        let quantity = minimum.0.saturating_mul(times) / lot.0.max(1) * lot.0.max(1);
        let order = NewDeskOrder {
            account: self.account,
            instrument: name,
            client_id: "",
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::ImmediateOrCancel,
            post_only: false,
            reduce_only: false,
            price,
            quantity: Quantity(quantity),
        };
        let _ = desk.place(now_ns, &order);
    }

    /// Returns a random number below a bound.
    fn random(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

impl TickTopic {
    pub fn new(place: LogPath, instruments: &[SimInstrument]) -> Self {
        let names = instruments.iter().map(|instrument| (instrument.symbol.0, instrument.name.clone())).collect();
        Self { place, reader: None, names }
    }

    fn turn(&mut self, desk: &mut SimDesk, now_ns: u64) -> anyhow::Result<()> {
        if self.reader.as_ref().is_some_and(Reader::is_removed) {
            self.reader = None;
        }
        let Self { place, reader, names } = self;
        let reader = match reader {
            Some(reader) => reader,
            // The last quotes of the topic hold until the next ones.
            None => match Reader::open(place, ReaderStart::Oldest, Registration::Unregistered) {
                Ok(opened) => reader.insert(opened),
                Err(LogOpenError::NotFound(_)) => return Ok(()),
                Err(why) => return Err(why.into()),
            },
        };
        reader.drain(MAX_MESSAGES, |next| {
            let Next::Message(message) = next else { return };
            if message.kind != Kind::TopOfBook.code() {
                return;
            }
            let Ok(quote) = TopOfBook::read_from_bytes(message.payload) else { return };
            if let Some(name) = names.get(&quote.symbol.0) {
                desk.quote(now_ns, name, quote.bid, quote.bid_quantity, quote.ask, quote.ask_quantity);
            }
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickpath_exchanges::OrderExchange;
    use tickpath_venue_sim_web::{DeskEvent, SimDeskConfig};

    use super::*;
    use crate::exchange_as::accounts::market_account;
    use crate::exchange_as::instruments::default_instruments;

    /// Returns the quotes and trades of a walk of ten minutes.
    fn walked(seed: u64) -> (Vec<TopOfBook>, usize) {
        let instruments = default_instruments(OrderExchange::Okx, &[]).expect("they are sound");
        let accounts = vec![market_account(&instruments)];
        let mut desk = SimDesk::new(SimDeskConfig {
            instruments: instruments.clone(),
            accounts,
            maker_fee_e6: 0,
            taker_fee_e6: 1_000,
        });
        let mut walk = MarketWalk::new(seed, &instruments, 0);
        let (mut quotes, mut trades) = (Vec::new(), 0);
        for step in 1..3_000 {
            walk.turn(&mut desk, step * STEP_NS);
            let events = desk.take_events();
            trades += events.iter().filter(|event| matches!(event, DeskEvent::Trade(_))).count();
            quotes.push(desk.best(0));
        }
        (quotes, trades)
    }

    #[test]
    fn quotes_move_within_their_bounds_and_trade() {
        let (quotes, trades) = walked(7);
        let start = Price::from_whole(61_800).0;
        let is_near = |quote: &TopOfBook| (quote.bid.0 - start).abs() <= start / BOUND && quote.bid < quote.ask;
        assert!(quotes.iter().all(is_near), "a quote left its bounds");
        let moves = quotes.windows(2).filter(|two| two[0].bid != two[1].bid).count();
        assert!(moves > quotes.len() / 2 && trades > 500, "{moves} moves, {trades} trades");
        assert!(walked(7).0 == quotes && walked(8).0 != quotes, "the seed decides");
    }
}
