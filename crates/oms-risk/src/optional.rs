//! The optional checks: those of instruments, of an account in one symbol, of sessions and of the firm.

use crate::check_table::{
    Breach, CHECKS, CheckRow, RiskFacts, at_least, at_most, checks, divided_by, inlined, unless_zero,
};
use crate::{Denial, FirmLimits, Instrument, SessionRules, SymbolLimits};

/// Facts for the optional checks, beside those of all other checks. Units are the same as in [`RiskFacts`].
pub struct OptionalFacts<'a> {
    /// Facts of the other checks.
    pub facts: &'a RiskFacts<'a>,
    /// Instrument of the order.
    pub instrument: &'a Instrument,
    /// Rules of the requesting session.
    pub session: SessionRules,
    /// Limits of the account in the symbol.
    pub symbol_limits: SymbolLimits,
    /// Limits of all accounts together.
    pub firm: FirmLimits,
    /// The order has a limit price.
    pub is_limit: bool,
    /// The order sells.
    pub is_sell: bool,
    /// Second of the day, UTC.
    pub second: u32,
    /// Messages of the session in its open window, this message included.
    pub session_messages: u64,
    /// New orders and replaces for the symbol in its open window, this request included.
    pub symbol_messages: u64,
    /// Messages of all accounts in the firm's open window, this message included.
    pub firm_messages: u64,
    /// Messages of the account today, this message included.
    pub messages: u64,
    /// Fills of the account today.
    pub fills: u64,
    /// Nanoseconds since the latest equal order; `u64::MAX` if there was none.
    pub since_duplicate_ns: u64,
    /// Live orders of all accounts, this order included.
    pub firm_orders: u32,
    /// Traded and open value of all accounts without the request.
    pub firm_used: i128,
    /// Price at which the order would trade.
    pub trade_price: i64,
    /// Price of the account's own order that this order would trade with.
    pub self_match_price: Option<i64>,
    /// Value of all positions of the account with the order, if the order increases it.
    pub gross_value: i128,
    /// Loss of the account today, if the order does more than close a position.
    pub loss: i128,
}

#[rustfmt::skip]
checks! {
    check_optional of OptionalFacts, OPTIONAL_CHECKS;
    TradingHours: |f| f.is_trading().into(), at_least |_| 1;
        "instruments.csv" "hours", "that the instrument trades at this time of the day, UTC";
    Restricted: |f| (u8::from(f.instrument.restricted != 0) + u8::from(f.symbol_limits.restricted != 0)).into(),
        at_most |_| 0;
        "instruments.csv, symbols.csv" "restricted", "restrictions of the symbol: for all, and for the account";
    Currency: |f| f.is_of_other_currency().into(), at_most |_| 0;
        "accounts.csv, instruments.csv" "currency", "that the instrument trades in the account's currency";
    TickSize: |f| f.limit_price(), divided_by |f| f.instrument.tick_size.0.into();
        "instruments.csv" "tick_size", "the limit price: a whole multiple";
    Lot: |f| f.facts.quantity(), divided_by |f| f.facts.size.quantity(f.instrument.lot.0.into());
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
    OrderToTrade: |f| f.messages.into(), at_most |f| f.max_messages();
        "accounts.csv" "order_trade_free, order_trade_ratio", "messages of the account today, against the free ones and `order_trade_ratio` a fill";
    DuplicateOrder: |f| f.since_duplicate_ns.into(), at_least |f| f.facts.limits.duplicate_window_ns.into();
        "accounts.csv" "duplicate_window_ns", "time since an order of the account with the same symbol, side, type, price and quantity";
    SessionQuantity: |f| f.facts.quantity(), at_most |f| unless_zero(f.session.max_order_quantity.0);
        "users.toml" "max_order_quantity", "the quantity of one order";
    SessionNotional: |f| f.facts.notional(), at_most |f| f.session.max_notional().unwrap_or(i128::MAX);
        "users.toml" "max_notional", "price × quantity × contract size of one order";
    SymbolQuantity: |f| f.facts.quantity(), at_most |f| unless_zero(f.symbol_limits.max_order_quantity.0);
        "symbols.csv" "max_order_quantity", "the quantity of one order of the account";
    SymbolPosition: |f| f.position_if_filled(), at_most |f| unless_zero(f.symbol_limits.max_position.0);
        "symbols.csv" "max_position", "the account's position if all working orders on the order's side are filled";
    ShortSale: |f| if f.is_sell { f.position_if_filled() } else { 0 }, at_most |f| f.max_short();
        "symbols.csv" "no_short", "the short quantity in the symbol if all sell orders of the account there are filled";
    FirmQuantity: |f| f.facts.quantity(), at_most |f| unless_zero(f.firm.max_order_quantity.0);
        "[firm]" "max_order_quantity", "the quantity of one order";
    FirmNotional: |f| f.facts.notional(), at_most |f| f.firm.max_notional().unwrap_or(i128::MAX);
        "[firm]" "max_notional", "price × quantity × contract size of one order";
    FirmOpenOrders: |f| f.firm_orders.into(), at_most |f| unless_zero(f.firm.max_open_orders);
        "[firm]" "max_open_orders", "live orders of all accounts, this one included";
    FirmCredit: |f| f.facts.used_with(f.firm_used), at_most |f| f.firm.credit().unwrap_or(i128::MAX);
        "[firm]" "credit", "value traded by all accounts today, and value that their open orders may still trade";
    SelfMatch: |f| f.trade_price.into(), no_self_match |f| f.self_match_price.map_or(i128::MAX, i128::from);
        "accounts.csv" "no_self_match", "the price, against that of the account's own order on the other side";
    GrossValue: |f| f.gross_value, at_most |f| f.facts.limits.max_gross_value().unwrap_or(i128::MAX);
        "accounts.csv" "max_gross_value", "value of all positions at the latest prices, with the orders on each worse side filled";
    DailyLoss: |f| f.loss, at_most |f| f.facts.limits.max_loss().unwrap_or(i128::MAX);
        "accounts.csv" "max_loss", "loss of the account since the day began, at the latest prices";
    SmallestQuantity: |f| f.facts.quantity(), at_least |f| f.facts.size.quantity(f.instrument.minimum_quantity.0.into());
        "instruments.csv" "minimum_quantity", "the quantity of one order";
    SmallestNotional: |f| f.facts.notional(), at_least |f| f.instrument.minimum_notional().unwrap_or(0);
        "instruments.csv" "minimum_notional", "price × quantity × contract size of one order";
}

/// Passes if there is no own order on the other side to trade with.
#[inline(always)]
fn no_self_match(other: i128, _price: impl Fn() -> i128) -> bool {
    other == i128::MAX
}

impl OptionalFacts<'_> {
    fn is_trading(&self) -> bool {
        let hours = &self.instrument.hours;
        hours.iter().all(|part| part.is_none()) || hours.iter().any(|part| part.contains(self.second))
    }

    fn is_of_other_currency(&self) -> bool {
        let own = self.facts.limits.currency();
        !own.is_none() && self.instrument.currency() != own
    }

    fn limit_price(&self) -> i128 {
        if self.is_limit { self.facts.price.into() } else { 0 }
    }

    /// Returns the price band; a market order names no price, so any price passes.
    fn band(&self) -> (i128, i128) {
        match (self.instrument.lowest_price.0, self.instrument.highest_price.0) {
            (0, 0) => (i128::MIN, i128::MAX),
            _ if !self.is_limit => (i128::MIN, i128::MAX),
            (lowest, highest) => (lowest.into(), highest.into()),
        }
    }

    fn max_messages(&self) -> i128 {
        let (ratio, free) = (self.facts.limits.order_trade_ratio, self.facts.limits.order_trade_free);
        match (ratio, free) {
            (0, 0) => i128::MAX,
            _ => i128::from(free) + i128::from(ratio) * i128::from(self.fills),
        }
    }

    fn max_short(&self) -> i128 {
        if self.symbol_limits.no_short == 0 || self.facts.increase == 0 { i128::MAX } else { 0 }
    }

    /// Returns the position if the request is filled. A replace that adds nothing passes at any position.
    fn position_if_filled(&self) -> i128 {
        match self.facts.increase {
            0 => i128::MIN,
            increase => self.facts.size.quantity(self.facts.worst_position + i128::from(increase)),
        }
    }
}

/// Returns the checks in their order, as rows of a Markdown table.
pub fn checks_table() -> String {
    let quoted = |names: &str| match names {
        "" => String::new(),
        names => names.split(", ").map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    let mut table = String::from("| code | denial | limit | set in | measured value |\n|---|---|---|---|---|\n");
    for CheckRow { denial, file, limit, measured } in CHECKS.iter().chain(OPTIONAL_CHECKS) {
        let (code, limit, file) = (denial.code(), quoted(limit), quoted(file));
        table.push_str(&format!("| {code} | {denial:?} | {limit} | {file} | {measured} |\n"));
    }
    table
}
