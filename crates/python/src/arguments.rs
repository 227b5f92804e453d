//! Parsing of arguments of `Orders`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tickpath_market::{OrderType, TimeInForce};
use tickpath_oms_client::Since;

use crate::book_event::PyBookLevel;
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
    }
}

/// Converts seconds to milliseconds; a day is the maximum.
pub fn milliseconds(what: &str, seconds: f64) -> PyResult<u32> {
    if (0.001..=86_400.0).contains(&seconds) {
        Ok((seconds * 1e3) as u32)
    } else {
        Err(PyValueError::new_err(format!("a {what} of {seconds} s is invalid; give 0.001 to 86400 seconds")))
    }
}
