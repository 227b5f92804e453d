//! Limits of the trading configuration: drawn at random, and checked on each order that arrives at a venue.

use tickpath_market::{NewOrder, Notional, OrderType, Price, Quantity, SymbolId};
use tickpath_oms_core::{AccountLimits, FirmLimits, SymbolLimits, TradingHours};
use tickpath_oms_runtime::TradingDefinitions;

use crate::plan::Dice;
use crate::rule::{RuleCheck, broken};
use crate::trading_config::VENUES;

const SECOND: u64 = 1_000_000_000;

/// Limits in force for each range of order ids.
#[derive(Default)]
pub struct LimitHistory {
    /// Limits for orders above an id.
    now: Option<(u64, TradingDefinitions)>,
    /// Limits that held for orders above one id, up to another.
    before: Vec<(u64, u64, TradingDefinitions)>,
    /// The highest id of an order that has arrived.
    highest: u64,
}

impl LimitHistory {
    /// Ends the present limits before a change: the limits of orders in flight are uncertain.
    pub fn end(&mut self) {
        self.before.extend(self.now.take().map(|(from, trading)| (from, self.highest, trading)));
    }

    /// Begins these limits, which a running OMS has accepted with its records up to this id.
    pub fn begin(&mut self, from: u64, trading: &TradingDefinitions) {
        self.now = Some((from, trading.clone()));
    }

    /// Checks an order that arrived at its venue.
    pub fn arrived(&mut self, new: &NewOrder) -> RuleCheck {
        let id = new.client_order_id.0;
        // An order that arrives after a later one has waited for its trigger or its turn, and was checked when sent:
        // its id does not show its limits.
        let has_waited = id < self.highest;
        self.highest = self.highest.max(id);
        let now = self.now.iter().map(|(from, trading)| (*from, u64::MAX, trading));
        let before = self.before.iter().filter(|_| !has_waited).map(|(from, upto, trading)| (*from, *upto, trading));
        for (_, _, trading) in now.chain(before).filter(|(from, upto, _)| *from < id && id <= *upto) {
            if let Some(limit) = broken_limit(trading, new) {
                return broken("a limit denies the next order", format!("{id:x} breaks {limit}"));
            }
        }
        Ok(())
    }
}

/// Returns a limit that an order breaks by itself, independent of all others.
fn broken_limit(trading: &TradingDefinitions, new: &NewOrder) -> Option<&'static str> {
    let instrument = trading.instruments.iter().find(|instrument| instrument.symbol == new.symbol)?;
    let exceeds = |limit: Quantity| limit > Quantity::ZERO && new.quantity > limit;
    let is_of = |own: &&SymbolLimits| (own.account, own.symbol) == (new.account, new.symbol);
    let is_limit = new.order_type == OrderType::Limit.code();
    let (lowest, highest) = (instrument.lowest_price, instrument.highest_price);
    let session = trading.sessions.iter().find(|session| session.accounts.last() == Some(&new.account));
    let limits = [
        ("the lot", instrument.lot > Quantity::ZERO && new.quantity.0 % instrument.lot.0 != 0),
        ("the tick size", is_limit && instrument.tick_size > Price::ZERO && new.price.0 % instrument.tick_size.0 != 0),
        ("the band", is_limit && highest > Price::ZERO && !(lowest..=highest).contains(&new.price)),
        (
            "the quantity of the symbol",
            trading.symbols.iter().find(is_of).is_some_and(|own| exceeds(own.max_order_quantity)),
        ),
        ("the quantity of the session", session.is_some_and(|session| exceeds(session.limits.max_order_quantity))),
    ];
    limits.into_iter().find(|(_, is_broken)| *is_broken).map(|(limit, _)| limit)
}

/// Draws limits, each off in every second configuration; some requests of clients break each limit.
pub fn draw(trading: &mut TradingDefinitions, dice: &mut Dice) {
    let mut on = |limit: i64| if dice.one_in(2) { limit } else { 0 };
    for instrument in &mut trading.instruments {
        (instrument.tick_size, instrument.lot) = (Price::from_whole(on(2)), Quantity::from_whole(on(2)));
        (instrument.lowest_price, instrument.highest_price) = match on(1) {
            0 => (Price::ZERO, Price::ZERO),
            _ => (Price::from_whole(97), Price::from_whole(104)),
        };
        (instrument.rate_limit, instrument.rate_window_ns) = (on(50) as u32, SECOND);
        instrument.hours[0] = TradingHours { opens_s: on(60) as u32, closes_s: on(86_400 - 60) as u32 };
    }
    for account in &mut trading.accounts {
        (account.order_trade_free, account.order_trade_ratio) = (on(30) as u32, on(5) as u32);
        (account.duplicate_window_ns, account.no_self_match) = (on(SECOND as i64 / 20) as u64, on(1) as u8);
        account.max_gross_value = Notional::from_whole(on(9_000)).0.to_le_bytes();
        account.max_request_age_ns = on(SECOND as i64 / 2) as u64;
        account.max_loss = Notional::from_whole(on(40)).0.to_le_bytes();
    }
    let own = |(account, symbol): (&AccountLimits, u32)| SymbolLimits {
        account: account.account,
        symbol: SymbolId(symbol),
        max_position: Quantity::from_whole(on(40)),
        max_order_quantity: Quantity::from_whole(on(6)),
        no_short: on(1) as u8,
        ..SymbolLimits::default()
    };
    let symbols = (0..VENUES.len() as u32).cycle();
    trading.symbols = trading.accounts.iter().zip(symbols).map(own).collect();
    for session in &mut trading.sessions {
        session.limits.max_order_quantity = Quantity::from_whole(on(7));
        (session.limits.rate_limit, session.limits.rate_window_ns) = (on(20) as u32, SECOND);
    }
    trading.firm = (on(1) != 0).then(|| FirmLimits {
        max_open_orders: on(60) as u32,
        credit: Notional::from_whole(on(30_000)).0.to_le_bytes(),
        rate_limit: on(60) as u32,
        rate_window_ns: SECOND,
        ..FirmLimits::default()
    });
}
