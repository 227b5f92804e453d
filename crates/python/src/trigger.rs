//! `when(symbol, 'last', at_least=…)`: the condition for sending an order.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tickpath_market::{self as market, Condition, Price, SymbolId, TriggerDirection, TriggerJoin, TriggerPriceType};

use crate::arguments::GivenSymbol;
use crate::bus::by_name;
use crate::event::Units;

/// A condition on a price, or two conditions: `a & b` if both must hold at once, `a | b` if one suffices.
#[pyclass(name = "Trigger", frozen, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PyTrigger {
    first: PriceCondition,
    second: Option<(TriggerJoin, PriceCondition)>,
}

/// One price condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PriceCondition {
    symbol: TriggerSymbol,
    price_type: TriggerPriceType,
    direction: TriggerDirection,
    price: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum TriggerSymbol {
    Number(u32),
    Name(String),
}

/// Returns the condition that a price of an instrument, its 'last' trade, best 'bid' or best 'ask', is `at_least` or
/// `at_most` a value; exactly one of the two is given. An order with `trigger=` waits at the OMS until the condition
/// holds.
#[pyfunction]
#[pyo3(signature = (symbol, price = "last", *, at_least = None, at_most = None))]
pub fn when(
    symbol: GivenSymbol<'_>,
    price: &str,
    at_least: Option<Units>,
    at_most: Option<Units>,
) -> PyResult<PyTrigger> {
    let (direction, threshold) = match (at_least, at_most) {
        (Some(price), None) => (TriggerDirection::Up, price),
        (None, Some(price)) => (TriggerDirection::Down, price),
        _ => return Err(PyTypeError::new_err("give one of at_least and at_most, as whole numbers of 10⁻⁸")),
    };
    let price_type = by_name("price", price, TriggerPriceType::ALL, price_name)?;
    let symbol = match symbol {
        GivenSymbol::Number(number) => TriggerSymbol::Number(number),
        GivenSymbol::Name(name) => TriggerSymbol::Name(name.to_owned()),
    };
    Ok(PyTrigger { first: PriceCondition { symbol, price_type, direction, price: threshold.0 }, second: None })
}

impl PyTrigger {
    /// Converts to the OMS's type; `symbol_of` returns the number of a name.
    pub fn to_market(&self, symbol_of: impl Fn(GivenSymbol<'_>) -> PyResult<SymbolId>) -> PyResult<market::Trigger> {
        let convert = |condition: &PriceCondition| {
            let symbol = symbol_of(match &condition.symbol {
                TriggerSymbol::Number(number) => GivenSymbol::Number(*number),
                TriggerSymbol::Name(name) => GivenSymbol::Name(name),
            })?;
            let (price_type, direction) = (condition.price_type.code(), condition.direction.code());
            Ok::<_, PyErr>(Condition { price: Price(condition.price), symbol, price_type, direction, reserved: [0; 2] })
        };
        let first = convert(&self.first)?;
        let (join, second) = match &self.second {
            Some((join, second)) => (*join, convert(second)?),
            None => (TriggerJoin::Alone, Condition::default()),
        };
        Ok(market::Trigger { first, second, join: join.code(), reserved: [0; 7] })
    }

    fn join(&self, join: TriggerJoin, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let other = other.cast::<Self>().map_err(|_| PyTypeError::new_err("combine a trigger with another trigger"))?;
        match (&self.second, &other.get().second) {
            (None, None) => Ok(Self { first: self.first.clone(), second: Some((join, other.get().first.clone())) }),
            _ => Err(PyValueError::new_err("a trigger has at most two conditions")),
        }
    }
}

#[pymethods]
impl PyTrigger {
    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.join(TriggerJoin::And, other)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.join(TriggerJoin::Or, other)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |condition: &PriceCondition| {
            let symbol = match &condition.symbol {
                TriggerSymbol::Number(number) => number.to_string(),
                TriggerSymbol::Name(name) => PyString::new(py, name).repr()?.to_string(),
            };
            let bound = match condition.direction {
                TriggerDirection::Up => "at_least",
                TriggerDirection::Down => "at_most",
            };
            let (price, threshold) = (price_name(condition.price_type), condition.price);
            Ok::<_, PyErr>(format!("when({symbol}, '{price}', {bound}={threshold})"))
        };
        let first = shown(&self.first)?;
        Ok(match &self.second {
            Some((TriggerJoin::And, second)) => format!("{first} & {}", shown(second)?),
            Some((_, second)) => format!("{first} | {}", shown(second)?),
            None => first,
        })
    }
}

fn price_name(price_type: TriggerPriceType) -> &'static str {
    match price_type {
        TriggerPriceType::Ask => "ask",
        TriggerPriceType::Last => "last",
        TriggerPriceType::Bid => "bid",
    }
}
