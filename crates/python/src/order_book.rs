//! `OrderBook(symbol)`: the book of an instrument, from the events of its feed.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tickpath_market::{self as market, BookChange, DepthLevel, Kind, SymbolId};

use crate::book_event::{PyBookLevel, PyFeedStatus};
use crate::event::{PyForeign, PyGap, PyMessage, PyTopOfBook, PyTrade, decode};

/// The order book of one instrument, from the events of its feed. It names why it is not valid: it is empty and invalid
/// until the end of a snapshot, and again after a gap, the end of the last connection, or a loss of messages.
#[pyclass(name = "OrderBook", module = "tickpath")]
pub struct PyOrderBook {
    book: market::OrderBook,
}

#[pymethods]
impl PyOrderBook {
    #[new]
    fn new(symbol: u32) -> Self {
        Self { book: market::OrderBook::new(SymbolId(symbol)) }
    }

    /// Applies an event of a subscriber: a BookLevel, a FeedStatus, or a Gap of the topic; other events and other
    /// instruments change nothing. A Gap names no instrument: apply it to each book of the subscriber. Returns True if
    /// the event completes a message of the exchange, so that the book can be read if it is valid.
    fn apply(&mut self, event: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(level) = event.cast::<PyBookLevel>() {
            return Ok(self.book.apply(&level.get().message()) == BookChange::Complete);
        }
        if let Ok(status) = event.cast::<PyFeedStatus>() {
            self.book.apply_status(&status.get().message());
            return Ok(false);
        }
        if event.is_instance_of::<PyGap>() {
            self.book.lost_messages();
            return Ok(false);
        }
        if let Ok(message) = event.cast::<PyMessage>() {
            let message = message.get();
            return self.apply_message(message.kind, message.payload.as_bytes(event.py()));
        }
        let is_event = event.is_instance_of::<PyTopOfBook>()
            || event.is_instance_of::<PyTrade>()
            || event.is_instance_of::<PyForeign>();
        if is_event { Ok(false) } else { Err(PyTypeError::new_err("a book applies the events of a subscriber")) }
    }

    /// True if the book may be used.
    #[getter]
    fn is_valid(&self) -> bool {
        self.book.is_valid()
    }

    /// Reason why the book must not be used, as a sentence; None if it is valid.
    #[getter]
    fn invalid_because(&self) -> Option<String> {
        self.book.invalidity().map(|reason| reason.to_string())
    }

    /// The best bid, its quantity, the best offer and its quantity; None if the book is not valid or a side is empty.
    #[getter]
    fn best(&self) -> Option<(i64, i64, i64, i64)> {
        let (bid, ask) = self.book.best()?;
        Some((bid.price.0, bid.quantity.0, ask.price.0, ask.quantity.0))
    }

    /// Returns the bids, best first, up to a depth: the price and the quantity of each. Check `is_valid` first.
    #[pyo3(signature = (depth = None))]
    fn bids(&self, depth: Option<usize>) -> Vec<(i64, i64)> {
        pairs(self.book.bids(), depth)
    }

    /// Returns the offers, best first, up to a depth: the price and the quantity of each. Check `is_valid` first.
    #[pyo3(signature = (depth = None))]
    fn asks(&self, depth: Option<usize>) -> Vec<(i64, i64)> {
        pairs(self.book.asks(), depth)
    }

    /// The instrument's number.
    #[getter]
    fn symbol(&self) -> u32 {
        self.book.symbol().0
    }

    /// The exchange's sequence number of the last message; 0 before the first.
    #[getter]
    fn sequence(&self) -> u64 {
        self.book.sequence()
    }

    /// The exchange's time of the last message, in nanoseconds since the Unix epoch; 0 if none was given.
    #[getter]
    fn event_ns(&self) -> u64 {
        self.book.event_ns()
    }

    fn __repr__(&self) -> String {
        let state = if self.book.is_valid() { "valid" } else { "not valid" };
        let (bids, asks) = (self.book.bids().len(), self.book.asks().len());
        format!("<tickpath.OrderBook of {}, {state}, {bids} bids, {asks} offers>", self.book.symbol())
    }
}

impl PyOrderBook {
    /// Applies a message that the program has not decoded.
    fn apply_message(&mut self, kind: u8, payload: &[u8]) -> PyResult<bool> {
        match Kind::from_code(kind) {
            Some(Kind::BookLevel) => Ok(self.book.apply(&decode("BookLevel", payload)?) == BookChange::Complete),
            Some(Kind::FeedStatus) => {
                self.book.apply_status(&decode("FeedStatus", payload)?);
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}

fn pairs(levels: impl Iterator<Item = DepthLevel>, depth: Option<usize>) -> Vec<(i64, i64)> {
    levels.take(depth.unwrap_or(usize::MAX)).map(|level| (level.price.0, level.quantity.0)).collect()
}
