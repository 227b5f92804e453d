//! The checks that are off for most: those of instruments, of an account in one symbol, of sessions and of the firm. Where
//! none of them is on, an order pays for one look.

use crate::core::Core;
use crate::desk::Entry;
use crate::order::Order;
use crate::own::worst;
use crate::recent::Like;
use crate::risk::{
    CHECKS, Check, Facts, MOST_VALUE, Refusal, at_least, at_most, checks, divided_by, inlined, times, unless_zero,
};
use crate::{Denial, FirmLimits, Instrument, SessionRules, SymbolLimits};
use tickpath_market::{OrderType, Side, SymbolId};

/// What these checks look at.
pub(crate) struct Rare<'a> {
    facts: &'a Facts<'a>,
    instrument: &'a Instrument,
    session: SessionRules,
    own: SymbolLimits,
    firm: FirmLimits,
    is_limit: bool,
    is_sell: bool,
    /// Of the day, UTC.
    second: u32,
    session_messages: u64,
    symbol_messages: u64,
    firm_messages: u64,
    /// Of the account today, with this one, and its fills.
    messages: u64,
    fills: u64,
    /// Since the latest order like this one; the largest number if there was none.
    since_like_ns: u64,
    firm_orders: u32,
    /// What all accounts have traded and have open without the request.
    firm_used: i128,
    /// The price at which it would trade, and that of the account's own order which it would meet.
    at: i64,
    met: Option<i64>,
    /// Of all positions of the account with the order, if that makes it more.
    gross_value: i128,
    /// Of the account today, if the order does more than close.
    loss: i128,
}

#[rustfmt::skip]
checks! {
    check of Rare, RARE;
    TradingHours: |f| f.trades_now().into(), at_least |_| 1;
        "instruments.csv" "hours", "that the instrument trades at this time of the day, UTC";
    Restricted: |f| (u8::from(f.instrument.restricted != 0) + u8::from(f.own.restricted != 0)).into(), at_most |_| 0;
        "instruments.csv, symbols.csv" "restricted", "restrictions of the symbol: for all, and for the account";
    Currency: |f| f.is_of_other_currency().into(), at_most |_| 0;
        "accounts.csv, instruments.csv" "currency", "that the instrument trades in the account's currency";
    TickSize: |f| f.limit_price(), divided_by |f| f.instrument.tick_size.0.into();
        "instruments.csv" "tick_size", "the limit price: a whole multiple";
    Lot: |f| f.facts.quantity.into(), divided_by |f| f.instrument.lot.0.into();
        "instruments.csv" "lot", "the quantity: a whole multiple";
    LowestPrice: |f| f.facts.price.into(), at_least |f| f.band().0;
        "instruments.csv" "lowest_price", "the limit price";
    HighestPrice: |f| f.facts.price.into(), at_most |f| f.band().1;
        "instruments.csv" "highest_price", "the limit price";
    SessionRate: |f| f.session_messages.into(), at_most |f| unless_zero(f.session.rate_limit);
        "users.toml" "rate_limit", "messages of the session in a window of `rate_window_ns`";
    SymbolRate: |f| f.symbol_messages.into(), at_most |f| unless_zero(f.instrument.rate_limit);
        "instruments.csv" "rate_limit", "new orders and replaces of all accounts in a window of `rate_window_ns`";
    FirmRate: |f| f.firm_messages.into(), at_most |f| unless_zero(f.firm.rate_limit);
        "[firm]" "rate_limit", "messages of all accounts in a window of `rate_window_ns`";
    OrderToTrade: |f| f.messages.into(), at_most |f| f.most_messages();
        "accounts.csv" "order_trade_free, order_trade_ratio", "messages of the account today, against those that are free and `order_trade_ratio` for each fill";
    DuplicateOrder: |f| f.since_like_ns.into(), at_least |f| f.facts.limits.duplicate_window_ns.into();
        "accounts.csv" "duplicate_window_ns", "time since an order of the account with the same symbol, side, type, price and quantity";
    SessionQuantity: |f| f.facts.quantity.into(), at_most |f| unless_zero(f.session.max_order_quantity.0);
        "users.toml" "max_order_quantity", "the quantity of one order";
    SessionNotional: |f| f.facts.notional(), at_most |f| f.session.max_notional().unwrap_or(i128::MAX);
        "users.toml" "max_notional", "price × quantity × multiplier of one order";
    SymbolQuantity: |f| f.facts.quantity.into(), at_most |f| unless_zero(f.own.max_order_quantity.0);
        "symbols.csv" "max_order_quantity", "the quantity of one order of the account";
    SymbolPosition: |f| f.reach(), at_most |f| unless_zero(f.own.max_position.0);
        "symbols.csv" "max_position", "the account's position if all that works on the order's side is filled";
    ShortSale: |f| if f.is_sell { f.reach() } else { 0 }, at_most |f| f.most_short();
        "symbols.csv" "no_short", "how far the account would be short if all that it sells is filled";
    FirmQuantity: |f| f.facts.quantity.into(), at_most |f| unless_zero(f.firm.max_order_quantity.0);
        "[firm]" "max_order_quantity", "the quantity of one order";
    FirmNotional: |f| f.facts.notional(), at_most |f| f.firm.max_notional().unwrap_or(i128::MAX);
        "[firm]" "max_notional", "price × quantity × multiplier of one order";
    FirmOpenOrders: |f| f.firm_orders.into(), at_most |f| unless_zero(f.firm.max_open_orders);
        "[firm]" "max_open_orders", "live orders of all accounts, this one included";
    FirmCredit: |f| f.facts.used_with(f.firm_used), at_most |f| f.firm.credit().unwrap_or(i128::MAX);
        "[firm]" "credit", "value of what all accounts traded since the day began and of what their open orders may still trade";
    SelfMatch: |f| f.at.into(), apart |f| f.met.map_or(i128::MAX, i128::from);
        "accounts.csv" "no_self_match", "the price, against that of the account's own order on the other side which it would meet";
    GrossValue: |f| f.gross_value, at_most |f| f.facts.limits.max_gross_value().unwrap_or(i128::MAX);
        "accounts.csv" "max_gross_value", "value of the account's positions at the latest prices, long and short, if all that works on the worse side of each is filled";
    DailyLoss: |f| f.loss, at_most |f| f.facts.limits.max_loss().unwrap_or(i128::MAX);
        "accounts.csv" "max_loss", "what the account has lost since the day began, at the latest prices";
}

/// There is no other order to be met.
#[inline(always)]
fn apart(other: i128, _price: impl Fn() -> i128) -> bool {
    other == i128::MAX
}

impl Rare<'_> {
    fn trades_now(&self) -> bool {
        let hours = &self.instrument.hours;
        hours.iter().all(|part| part.is_none()) || hours.iter().any(|part| part.holds(self.second))
    }

    fn is_of_other_currency(&self) -> bool {
        let (own, its) = (self.facts.limits.currency, self.instrument.currency);
        own != [0; 4] && its != own
    }

    fn limit_price(&self) -> i128 {
        if self.is_limit { self.facts.price.into() } else { 0 }
    }

    /// Whatever a market order comes to, it names no price.
    fn band(&self) -> (i128, i128) {
        match (self.instrument.lowest_price.0, self.instrument.highest_price.0) {
            (0, 0) => (i128::MIN, i128::MAX),
            _ if !self.is_limit => (i128::MIN, i128::MAX),
            (lowest, highest) => (lowest.into(), highest.into()),
        }
    }

    fn most_messages(&self) -> i128 {
        let (ratio, free) = (self.facts.limits.order_trade_ratio, self.facts.limits.order_trade_free);
        match (ratio, free) {
            (0, 0) => i128::MAX,
            _ => i128::from(free) + i128::from(ratio) * i128::from(self.fills),
        }
    }

    fn most_short(&self) -> i128 {
        if self.own.no_short == 0 || self.facts.increase == 0 { i128::MAX } else { 0 }
    }

    /// A replace that adds nothing passes, wherever the position stands.
    fn reach(&self) -> i128 {
        match self.facts.increase {
            0 => i128::MIN,
            increase => self.facts.reach + i128::from(increase),
        }
    }
}

/// The checks in the order in which they are made, as rows of a Markdown table.
pub fn checks_table() -> String {
    let quoted = |names: &str| match names {
        "" => String::new(),
        names => names.split(", ").map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    let mut table =
        String::from("| code | denial | limit | where it stands | what is measured |\n|---|---|---|---|---|\n");
    for Check { denial, place, limit, what } in CHECKS.iter().chain(RARE) {
        let (code, limit, place) = (denial.code(), quoted(limit), quoted(place));
        table.push_str(&format!("| {code} | {denial:?} | {limit} | {place} | {what} |\n"));
    }
    table
}

impl Core {
    /// Holds a request against the checks that are off for most; one that has waited sends no message now.
    #[inline]
    pub(crate) fn check_rare(
        &self,
        entry: &Entry<'_>,
        facts: &Facts<'_>,
        order: &Order,
        stamp: u64,
        has_waited: bool,
    ) -> Result<(), Refusal> {
        if !self.desk.has_rare {
            return Ok(());
        }
        let own = self.positions.limits(order.position);
        match entry.says_more || own.is_some() || self.desk.says_more(order.session) {
            false => Ok(()),
            true => self.check_all(entry, facts, order, own, (stamp, has_waited)),
        }
    }

    #[cold]
    fn check_all(
        &self,
        entry: &Entry<'_>,
        facts: &Facts<'_>,
        order: &Order,
        own: Option<&SymbolLimits>,
        (stamp, has_waited): (u64, bool),
    ) -> Result<(), Refusal> {
        let like = Like::of(order);
        let before = self.desk.recent(order.account).and_then(|recent| recent.find(&like));
        let is_new = !has_waited && self.find_order(order.id).is_none();
        let firm = self.desk.firm();
        let unless_waited = |messages: u64| if has_waited { 0 } else { messages };
        check(&Rare {
            facts,
            instrument: entry.instrument,
            session: self.desk.rules(order.session),
            own: own.copied().unwrap_or_default(),
            firm: firm.limits,
            is_limit: order.order_type == OrderType::Limit,
            is_sell: order.side == Side::Sell,
            second: self.second_of_day(stamp),
            session_messages: unless_waited(self.desk.messages_of(order.session)),
            symbol_messages: unless_waited(entry.symbol_messages),
            firm_messages: unless_waited(firm.window.messages),
            messages: unless_waited(entry.messages_today),
            fills: entry.open.fills,
            since_like_ns: match before {
                Some(before) if is_new => self.ns(stamp.saturating_sub(before)),
                _ => u64::MAX,
            },
            firm_orders: match facts.open_orders {
                0 => 0,
                _ => firm.open.orders.saturating_add(u32::from(is_new)),
            },
            firm_used: firm
                .open
                .value
                .saturating_add(firm.open.traded)
                .saturating_sub(facts.own)
                .saturating_add(facts.holds),
            at: facts.limit_or_reference() as i64,
            met: self.met(order, facts),
            gross_value: facts.limits.max_gross_value().map_or(0, |_| self.gross_value(order, facts)),
            loss: facts.limits.max_loss().map_or(0, |_| self.loss(order, facts)),
        })
    }

    /// The price of the account's own order that this one would meet; its own price if that one names none.
    fn met(&self, order: &Order, facts: &Facts<'_>) -> Option<i64> {
        if facts.limits.no_self_match == 0 {
            return None;
        }
        let met = self.own.met(order.position, order.side, worst(order.order_type, order.side, facts.price))?;
        let names_price = met != i64::MIN && met != i64::MAX;
        Some(if names_price { met } else { facts.limit_or_reference() as i64 })
    }

    /// What the account's positions are worth at worst with the order; nothing if it makes that no more.
    fn gross_value(&self, order: &Order, facts: &Facts<'_>) -> i128 {
        let other_side = self.reach(order.position, order.side.opposite());
        let reach = other_side.max(facts.reach + i128::from(facts.increase));
        if reach <= other_side.max(facts.reach) {
            return 0;
        }
        let others = self.positions.of(order.account).filter(|&(slot, _)| slot != order.position);
        let at_worst = |slot| self.reach(slot, Side::Buy).max(self.reach(slot, Side::Sell));
        let value = |reach: i128, symbol: SymbolId| {
            let price = i128::from(self.desk.price(symbol)).abs();
            times(reach.saturating_mul(price), self.multiplier(symbol)).min(MOST_VALUE)
        };
        others.map(|(slot, symbol)| value(at_worst(slot), symbol)).sum::<i128>() + value(reach, order.symbol)
    }

    /// What the account has lost since the day began; nothing if the order only closes.
    fn loss(&self, order: &Order, facts: &Facts<'_>) -> i128 {
        if facts.increase == 0 || facts.reach + i128::from(facts.increase) <= 0 {
            return 0;
        }
        let results = self.positions.of(order.account).map(|(slot, symbol)| {
            times(self.positions.result(slot, self.desk.price(symbol)), self.multiplier(symbol))
                .clamp(-MOST_VALUE, MOST_VALUE)
        });
        -results.sum::<i128>()
    }
}
