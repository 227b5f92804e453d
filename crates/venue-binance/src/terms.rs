//! Terms of an order in the exchange's words.

use tickpath_market::{NewOrder, OrderType, SelfTradeMode, Side, TimeInForce, TradeMode};

use crate::config::LineInstrument;

/// Words of the exchange that orders of this line can have; the empty word leaves a parameter out.
const ORDER_TYPES: [&str; 3] = ["LIMIT", "LIMIT_MAKER", "MARKET"];
const TIMES_IN_FORCE: [&str; 3] = ["GTC", "IOC", "FOK"];
const SELF_TRADE_MODES: [&str; 5] = ["NONE", "EXPIRE_MAKER", "EXPIRE_TAKER", "EXPIRE_BOTH", "DECREMENT"];

/// Terms of an order, or of one generation of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderTerms {
    pub(crate) side: Side,
    /// `LIMIT`, `LIMIT_MAKER` or `MARKET`; empty for a type that this line places no orders of.
    pub(crate) order_type: &'static str,
    /// `GTC`, `IOC` or `FOK`; empty for a market order.
    pub(crate) time_in_force: &'static str,
    /// Mode of self-trade prevention; empty for the account's own.
    pub(crate) self_trade: &'static str,
    /// Units of 10⁻⁸; zero for a market order.
    pub(crate) price: i64,
    /// Quantity of this generation, in units of 10⁻⁸.
    pub(crate) quantity: i64,
}

impl OrderTerms {
    /// Translates a new order; the error is the reason why spot has no such order.
    ///
    /// A day order is sent as good till canceled, because the exchange's days do not end.
    pub(crate) fn of_new(new: &NewOrder, instrument: &LineInstrument) -> Result<Self, &'static str> {
        let unknown = "the order has a code that this line does not know";
        let side = Side::from_code(new.side).ok_or(unknown)?;
        let order_type = OrderType::from_code(new.order_type).ok_or(unknown)?;
        let time_in_force = TimeInForce::from_code(new.time_in_force).ok_or(unknown)?;
        let self_trade = SelfTradeMode::from_code(new.self_trade_mode).ok_or(unknown)?;
        if matches!(TradeMode::from_code(new.trade_mode), Some(TradeMode::Cross | TradeMode::Isolated)) {
            return Err("spot is traded without margin");
        }
        if new.instructions & NewOrder::REDUCE_ONLY != 0 {
            return Err("spot has no positions that an order could reduce");
        }
        if instrument.lot.0 > 0 && new.quantity.0 % instrument.lot.0 != 0 {
            return Err("the quantity is no multiple of the lot");
        }
        let is_post_only = new.instructions & NewOrder::POST_ONLY != 0;
        let (order_type, time_in_force) = match (order_type, time_in_force, is_post_only) {
            (OrderType::Limit, TimeInForce::Day | TimeInForce::GoodTillCancel, true) => ("LIMIT_MAKER", ""),
            (_, _, true) => return Err("post-only needs a limit order that can rest"),
            (OrderType::Limit, TimeInForce::Day | TimeInForce::GoodTillCancel, false) => ("LIMIT", "GTC"),
            (OrderType::Limit, TimeInForce::ImmediateOrCancel, false) => ("LIMIT", "IOC"),
            (OrderType::Limit, TimeInForce::FillOrKill, false) => ("LIMIT", "FOK"),
            (_, TimeInForce::GoodTillDate, false) => return Err("spot has no end times: the OMS cancels the order"),
            (OrderType::Market, TimeInForce::FillOrKill, false) => {
                return Err("a market order fills as far as possible, never all or nothing");
            }
            (OrderType::Market, _, false) => ("MARKET", ""),
        };
        let self_trade = match self_trade {
            SelfTradeMode::Default => "",
            SelfTradeMode::CancelMaker => "EXPIRE_MAKER",
            SelfTradeMode::CancelTaker => "EXPIRE_TAKER",
            SelfTradeMode::CancelBoth => "EXPIRE_BOTH",
        };
        let price = if order_type == "MARKET" { 0 } else { new.price.0 };
        Ok(Self { side, order_type, time_in_force, self_trade, price, quantity: new.quantity.0 })
    }

    /// Returns the terms of an order from the exchange's own words, so that a replacement of the order has the same: its
    /// type, its lifetime, and its mode of self-trade prevention.
    pub(crate) fn of_words(side: Side, [order_type, time_in_force, self_trade]: [&[u8]; 3]) -> Self {
        let order_type = known(order_type, &ORDER_TYPES);
        // The exchange reports a lifetime for each type, and takes one for limit orders only.
        let time_in_force = if order_type == "LIMIT" { known(time_in_force, &TIMES_IN_FORCE) } else { "" };
        let terms = Self { side, order_type, time_in_force, self_trade: "", price: 0, quantity: 0 };
        terms.with_self_trade(self_trade)
    }

    /// Returns the terms with the exchange's word for a mode of self-trade prevention.
    pub(crate) fn with_self_trade(self, word: &[u8]) -> Self {
        Self { self_trade: known(word, &SELF_TRADE_MODES), ..self }
    }

    /// Returns whether the order can have another price.
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self.order_type, "LIMIT" | "LIMIT_MAKER")
    }

    /// Returns the word for the side.
    pub(crate) fn side_word(&self) -> &'static str {
        match self.side {
            Side::Buy => "BUY",
            Side::Sell => "SELL",
        }
    }
}

/// Returns the known word that a text of the exchange is; empty if it is none.
fn known(word: &[u8], words: &[&'static str]) -> &'static str {
    words.iter().copied().find(|known| known.as_bytes() == word).unwrap_or_default()
}
