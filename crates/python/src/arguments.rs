//! Parsing of arguments of `Orders`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tickpath_market::{NewOrder, OrderType, SelfTradeMode, TimeInForce, TradeMode};
use tickpath_oms_client::Since;

use crate::book_event::PyBookLevel;
use crate::bus::by_name;
use crate::event::{PyMessage, PyTopOfBook, PyTrade};

/// A symbol given by Python: its number or its name.
pub enum GivenSymbol<'a> {
    Number(u32),
    Name(&'a str),
}

impl<'a, 'py> FromPyObject<'a, 'py> for GivenSymbol<'a> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyString>() {
            return given.extract().map(Self::Name);
        }
        let sentence = "a symbol is given by its number in the OMS, such as a tick's symbol, or by its name";
        given.extract::<u32>().map(Self::Number).map_err(|_| PyTypeError::new_err(sentence))
    }
}

pub fn cause_of(cause: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    cause.map_or(Ok(0), stamp_of)
}

/// Returns the stamp of an event given as a cause, or the stamp given directly.
fn stamp_of(cause: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(tick) = cause.cast::<PyTopOfBook>() {
        return Ok(tick.get().stamp);
    }
    if let Ok(trade) = cause.cast::<PyTrade>() {
        return Ok(trade.get().stamp);
    }
    if let Ok(level) = cause.cast::<PyBookLevel>() {
        return Ok(level.get().stamp);
    }
    if let Ok(message) = cause.cast::<PyMessage>() {
        return Ok(message.get().stamp);
    }
    let sentence = "a cause is the TopOfBook, Trade, BookLevel or Message that the request answers, or its stamp";
    cause.extract().map_err(|_| PyTypeError::new_err(sentence))
}

pub fn since_name(since: Since) -> &'static str {
    match since {
        Since::Start => "start",
        Since::Now | Since::Report { .. } => "now",
    }
}

pub fn order_type_name(order_type: OrderType) -> &'static str {
    match order_type {
        OrderType::Limit => "limit",
        OrderType::Market => "market",
    }
}

pub fn time_in_force_name(time_in_force: TimeInForce) -> &'static str {
    match time_in_force {
        TimeInForce::Day => "day",
        TimeInForce::GoodTillCancel => "gtc",
        TimeInForce::ImmediateOrCancel => "ioc",
        TimeInForce::FillOrKill => "fok",
        TimeInForce::GoodTillDate => "gtd",
    }
}

/// Returns an order with these instructions and modes, and no other terms.
pub fn instructed_order(
    post_only: bool,
    reduce_only: bool,
    self_trade: Option<&str>,
    trade_mode: Option<&str>,
) -> PyResult<NewOrder> {
    // The default has no name: it is None.
    let self_trade = self_trade.map(|name| by_name("self_trade", name, &SelfTradeMode::ALL[1..], self_trade_name));
    let trade_mode = trade_mode.map(|name| by_name("trade_mode", name, &TradeMode::ALL[1..], trade_mode_name));
    let post_only = if post_only { NewOrder::POST_ONLY } else { 0 };
    let reduce_only = if reduce_only { NewOrder::REDUCE_ONLY } else { 0 };
    Ok(NewOrder {
        instructions: post_only | reduce_only,
        self_trade_mode: self_trade.transpose()?.map_or(0, SelfTradeMode::code),
        trade_mode: trade_mode.transpose()?.map_or(0, TradeMode::code),
        ..NewOrder::default()
    })
}

/// Converts seconds to milliseconds; a day is the maximum.
pub fn milliseconds(what: &str, seconds: f64) -> PyResult<u32> {
    if (0.001..=86_400.0).contains(&seconds) {
        Ok((seconds * 1e3) as u32)
    } else {
        Err(PyValueError::new_err(format!("a {what} of {seconds} s is invalid; give 0.001 to 86400 seconds")))
    }
}

fn self_trade_name(mode: SelfTradeMode) -> &'static str {
    match mode {
        SelfTradeMode::Default => "default",
        SelfTradeMode::CancelMaker => "cancel_maker",
        SelfTradeMode::CancelTaker => "cancel_taker",
        SelfTradeMode::CancelBoth => "cancel_both",
    }
}

fn trade_mode_name(mode: TradeMode) -> &'static str {
    match mode {
        TradeMode::Default => "default",
        TradeMode::Cash => "cash",
        TradeMode::Cross => "cross",
        TradeMode::Isolated => "isolated",
    }
}
