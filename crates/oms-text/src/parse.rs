//! Values of orders in the form that a user types: `buy`, `61800.1`, `gtc`, `3474042.12`.

use tickpath_clock::rfc3339;
use tickpath_market::{
    DecimalError, OrderId, Price, Quantity, SelfTradeMode, Side, TextId, TextIdError, TimeInForce, TradeMode,
};

use crate::field;

/// Errors of a word that is not a value of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The word is not a side.
    #[error("use buy or sell")]
    Side,
    /// The word is not a time in force.
    #[error("use day, gtc, gtd, ioc or fok")]
    TimeInForce,
    /// The word is not a self-trade mode.
    #[error("use cancel-maker, cancel-taker or cancel-both")]
    SelfTradeMode,
    /// The word is not a trade mode.
    #[error("use cash, cross or isolated")]
    TradeMode,
    /// The word is not a time in the form that the OMS writes.
    #[error("'{0}' is no time; write it in UTC, like 2027-12-01T08:00:00Z, with or without decimals of the second")]
    UtcTime(String),
    /// The word is not an order id in the form that the OMS writes.
    #[error("'{0}' is no order id; write it as `tickpath orders` does, like 3474042.12")]
    OrderId(String),
}

/// Reads a side.
pub fn side(text: &str) -> Result<Side, ParseError> {
    match text {
        "buy" => Ok(Side::Buy),
        "sell" => Ok(Side::Sell),
        _ => Err(ParseError::Side),
    }
}

/// Reads a time in force; `rod`, the term of Taiwan's exchanges for "rest of day", is `day`.
pub fn time_in_force(text: &str) -> Result<TimeInForce, ParseError> {
    match text {
        "day" | "rod" => Ok(TimeInForce::Day),
        "gtc" => Ok(TimeInForce::GoodTillCancel),
        "gtd" => Ok(TimeInForce::GoodTillDate),
        "ioc" => Ok(TimeInForce::ImmediateOrCancel),
        "fok" => Ok(TimeInForce::FillOrKill),
        _ => Err(ParseError::TimeInForce),
    }
}

/// Reads a self-trade mode; an order without one has the mode of its venue's account.
pub fn self_trade_mode(text: &str) -> Result<SelfTradeMode, ParseError> {
    match text {
        "cancel-maker" => Ok(SelfTradeMode::CancelMaker),
        "cancel-taker" => Ok(SelfTradeMode::CancelTaker),
        "cancel-both" => Ok(SelfTradeMode::CancelBoth),
        _ => Err(ParseError::SelfTradeMode),
    }
}

/// Reads a trade mode; an order without one has the mode that its instrument requires.
pub fn trade_mode(text: &str) -> Result<TradeMode, ParseError> {
    match text {
        "cash" => Ok(TradeMode::Cash),
        "cross" => Ok(TradeMode::Cross),
        "isolated" => Ok(TradeMode::Isolated),
        _ => Err(ParseError::TradeMode),
    }
}

/// Reads an order's id, exactly as [`order_id`](crate::order_id) writes it: an id that does not fit its bits would name
/// another order.
pub fn order_id(text: &str) -> Result<OrderId, ParseError> {
    let parts = text.split_once('.').and_then(|(epoch, sequence)| Some((epoch.parse().ok()?, sequence.parse().ok()?)));
    let id = parts.map(|(epoch, sequence)| OrderId::new(epoch, sequence));
    let is_same = |id: &OrderId| field::order_id(*id) == text && id.0 != 0;
    id.filter(is_same).ok_or_else(|| ParseError::OrderId(text.to_owned()))
}

/// Reads a time in UTC, `2027-12-01T08:00:00Z` with up to nine decimals of the second, as nanoseconds since the Unix
/// epoch.
pub fn utc_time(text: &str) -> Result<u64, ParseError> {
    utc_ns(text).ok_or_else(|| ParseError::UtcTime(text.to_owned()))
}

fn utc_ns(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (moment, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let part = |from: usize, to: usize| moment.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let seconds = part(11, 13)? * 3600 + part(14, 16)? * 60 + part(17, 19)?;
    let seconds = days.checked_sub(719_469)?.checked_mul(86_400)?.checked_add(seconds)?;
    let whole_ns = seconds.checked_mul(1_000_000_000)?;
    let is_fraction = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|digit| digit.is_ascii_digit());
    // A date that does not exist, or another form of a number, is written differently.
    let is_same = is_fraction && rfc3339(whole_ns) == format!("{moment}Z");
    is_same
        .then(|| format!("{fraction:0<9}").parse::<u64>().ok())?
        .and_then(|fraction_ns| whole_ns.checked_add(fraction_ns))
}

/// Reads a client's own text id.
pub fn client_id(text: &str) -> Result<TextId, TextIdError> {
    text.parse()
}

/// Reads a quantity.
pub fn quantity(text: &str) -> Result<Quantity, DecimalError> {
    text.parse()
}

/// Reads a price.
pub fn price(text: &str) -> Result<Price, DecimalError> {
    text.parse()
}
