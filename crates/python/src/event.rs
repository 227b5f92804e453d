//! Events of a subscriber, as small frozen objects. Prices and quantities are whole numbers of 10⁻⁸.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use tickpath_market::{self as market, Price, Quantity, SymbolId};
use zerocopy::{FromBytes, IntoBytes};

/// The best bid and offer of an instrument.
#[pyclass(name = "TopOfBook", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyTopOfBook {
    /// The best bid, in units of 10⁻⁸.
    bid: i64,
    /// The quantity open at the best bid, in units of 10⁻⁸.
    bid_quantity: i64,
    /// The best offer, in units of 10⁻⁸.
    ask: i64,
    /// The quantity open at the best offer, in units of 10⁻⁸.
    ask_quantity: i64,
    /// The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given.
    event_ns: u64,
    /// The instrument's number.
    symbol: u32,
    /// Time of publication, in ticks of the publisher's clock; 0 in an event that the program made.
    pub stamp: u64,
    /// Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
    /// made.
    pub sequence: Option<u64>,
    /// Time from the packet's arrival at the feed's host to the stamp, in nanoseconds; 0 if unknown.
    wire_age_ns: u32,
}

/// One trade at the exchange.
#[pyclass(name = "Trade", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyTrade {
    /// The price, in units of 10⁻⁸.
    price: i64,
    /// The quantity, in units of 10⁻⁸.
    quantity: i64,
    /// The exchange's id of the trade.
    trade_id: u64,
    /// The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given.
    event_ns: u64,
    /// The instrument's number.
    symbol: u32,
    /// Side of the aggressor: 1 buys, 2 sells; 0 if none was given.
    aggressor: u8,
    /// Time of publication, in ticks of the publisher's clock; 0 in an event that the program made.
    pub stamp: u64,
    /// Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
    /// made.
    pub sequence: Option<u64>,
}

/// A message of a kind that has no class of its own.
#[pyclass(name = "Message", frozen, get_all, module = "tickpath")]
#[derive(Debug)]
pub struct PyMessage {
    /// Kind of the message, 16 to 255.
    pub kind: u8,
    /// Bytes of the message.
    pub payload: Py<PyBytes>,
    /// Time of publication, in ticks of the publisher's clock; 0 in a message that the program made.
    pub stamp: u64,
    /// Sequence number in the topic, from 0; None where the transport counts none, and in a message that the program
    /// made.
    pub sequence: Option<u64>,
}

/// A message of another program, without Tickpath's header.
#[pyclass(name = "Foreign", frozen, get_all, module = "tickpath")]
#[derive(Debug)]
pub struct PyForeign {
    /// Bytes of the message.
    pub payload: Py<PyBytes>,
    /// Sequence number in the topic, from 0; None where the transport counts none.
    pub sequence: Option<u64>,
    /// Details beside the bytes, as a JSON object, or None: for Kafka 'key', 'headers' and 'tombstone', for NATS and
    /// RabbitMQ 'headers'.
    pub details: Option<String>,
}

/// Messages that this subscriber will never receive; `missed` is None where their number is unknown.
#[pyclass(name = "Gap", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyGap {
    /// Number of missed messages; None where the number is unknown.
    missed: Option<u64>,
}

/// Call that recreates an object, for pickling: its class and its arguments.
pub type PickleCall<'py, T> = (Bound<'py, PyType>, T);
type TickParts = (i64, i64, i64, i64, u64, u32, u64, Option<u64>, u32);
type TradeParts = (i64, i64, u64, u64, u32, u8, u64, Option<u64>);

/// A price or a quantity given by Python, in units of 10⁻⁸.
pub struct Units(pub i64);

impl<'a, 'py> FromPyObject<'a, 'py> for Units {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract::<i64>().map(Self).map_err(|error| match () {
            () if error.is_instance_of::<PyOverflowError>(given.py()) => {
                PyOverflowError::new_err(format!("{} does not fit a price or quantity of 64 bits", &*given))
            }
            () if error.is_instance_of::<PyTypeError>(given.py()) => PyTypeError::new_err(format!(
                "a price or a quantity is a whole number of 10⁻⁸; give tickpath.units('{}')",
                &*given
            )),
            () => error,
        })
    }
}

/// Formats the arguments of an event that differ from their defaults: nonzero values, and the sequence number if any.
pub fn optional_arguments(parts: &[(&str, u64)], sequence: Option<u64>) -> String {
    let sequence = sequence.map(|sequence| ("sequence", sequence));
    let shown = parts.iter().copied().filter(|(_, value)| *value != 0).chain(sequence);
    shown.fold(String::new(), |text, (name, value)| text + &format!(", {name}={value}"))
}

#[pymethods]
impl PyTopOfBook {
    #[new]
    #[pyo3(signature = (
        bid, bid_quantity, ask, ask_quantity, event_ns = 0, symbol = 0, stamp = 0, sequence = None, wire_age_ns = 0
    ))]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn new(
        bid: Units,
        bid_quantity: Units,
        ask: Units,
        ask_quantity: Units,
        event_ns: u64,
        symbol: u32,
        stamp: u64,
        sequence: Option<u64>,
        wire_age_ns: u32,
    ) -> Self {
        let [bid, bid_quantity, ask, ask_quantity] = [bid, bid_quantity, ask, ask_quantity].map(|units| units.0);
        Self { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence, wire_age_ns }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.message().as_bytes())
    }

    /// Returns the constructor call: whole numbers, and fields that differ from their defaults.
    fn __repr__(&self) -> String {
        let Self { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence, wire_age_ns } = *self;
        let more =
            [("event_ns", event_ns), ("symbol", symbol.into()), ("wire_age_ns", wire_age_ns.into()), ("stamp", stamp)];
        format!(
            "TopOfBook(bid={bid}, bid_quantity={bid_quantity}, ask={ask}, ask_quantity={ask_quantity}{})",
            optional_arguments(&more, sequence)
        )
    }

    /// Returns the event for people: prices and quantities as decimals.
    fn __str__(&self) -> String {
        let Self { bid, bid_quantity, ask, ask_quantity, .. } = *self;
        format!(
            "TopOfBook(bid={}, bid_quantity={}, ask={}, ask_quantity={}, symbol={})",
            Price(bid),
            Quantity(bid_quantity),
            Price(ask),
            Quantity(ask_quantity),
            self.symbol
        )
    }

    /// Decodes an event from its bytes.
    #[staticmethod]
    fn from_bytes(payload: &[u8]) -> PyResult<Self> {
        Ok(Self::of(&decode("TopOfBook", payload)?, 0, None))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, TickParts> {
        let Self { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence, wire_age_ns } = *self;
        (py.get_type::<Self>(), (bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence, wire_age_ns))
    }
}

impl PyTopOfBook {
    #[inline]
    pub fn of(m: &market::TopOfBook, stamp: u64, sequence: Option<u64>) -> Self {
        Self {
            bid: m.bid.0,
            bid_quantity: m.bid_quantity.0,
            ask: m.ask.0,
            ask_quantity: m.ask_quantity.0,
            event_ns: m.event_ns,
            symbol: m.symbol.0,
            stamp,
            sequence,
            wire_age_ns: m.wire_age_ns,
        }
    }

    pub fn message(&self) -> market::TopOfBook {
        market::TopOfBook {
            bid: Price(self.bid),
            bid_quantity: Quantity(self.bid_quantity),
            ask: Price(self.ask),
            ask_quantity: Quantity(self.ask_quantity),
            event_ns: self.event_ns,
            symbol: SymbolId(self.symbol),
            wire_age_ns: self.wire_age_ns,
        }
    }
}

#[pymethods]
impl PyTrade {
    #[new]
    #[pyo3(signature = (price, quantity, trade_id = 0, event_ns = 0, symbol = 0, aggressor = 0, stamp = 0, sequence = None))]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn new(
        price: Units,
        quantity: Units,
        trade_id: u64,
        event_ns: u64,
        symbol: u32,
        aggressor: u8,
        stamp: u64,
        sequence: Option<u64>,
    ) -> Self {
        Self { price: price.0, quantity: quantity.0, trade_id, event_ns, symbol, aggressor, stamp, sequence }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.message().as_bytes())
    }

    /// Returns the constructor call: whole numbers, and fields that differ from their defaults.
    fn __repr__(&self) -> String {
        let Self { price, quantity, trade_id, event_ns, symbol, aggressor, stamp, sequence } = *self;
        let more = [
            ("trade_id", trade_id),
            ("event_ns", event_ns),
            ("symbol", symbol.into()),
            ("aggressor", aggressor.into()),
            ("stamp", stamp),
        ];
        format!("Trade(price={price}, quantity={quantity}{})", optional_arguments(&more, sequence))
    }

    /// Returns the event for people: price and quantity as decimals.
    fn __str__(&self) -> String {
        let (price, quantity) = (Price(self.price), Quantity(self.quantity));
        format!("Trade(price={price}, quantity={quantity}, trade_id={}, symbol={})", self.trade_id, self.symbol)
    }

    /// Decodes an event from its bytes.
    #[staticmethod]
    fn from_bytes(payload: &[u8]) -> PyResult<Self> {
        Ok(Self::of(&decode("Trade", payload)?, 0, None))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, TradeParts> {
        let Self { price, quantity, trade_id, event_ns, symbol, aggressor, stamp, sequence } = *self;
        (py.get_type::<Self>(), (price, quantity, trade_id, event_ns, symbol, aggressor, stamp, sequence))
    }
}

impl PyTrade {
    #[inline]
    pub fn of(m: &market::Trade, stamp: u64, sequence: Option<u64>) -> Self {
        Self {
            price: m.price.0,
            quantity: m.quantity.0,
            trade_id: m.trade_id,
            event_ns: m.event_ns,
            symbol: m.symbol.0,
            aggressor: m.aggressor,
            stamp,
            sequence,
        }
    }

    pub fn message(&self) -> market::Trade {
        market::Trade {
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            trade_id: self.trade_id,
            event_ns: self.event_ns,
            symbol: SymbolId(self.symbol),
            aggressor: self.aggressor,
            reserved: [0; 3],
        }
    }
}

#[pymethods]
impl PyMessage {
    #[new]
    #[pyo3(signature = (kind, payload, stamp = 0, sequence = None))]
    fn new(kind: u8, payload: Py<PyBytes>, stamp: u64, sequence: Option<u64>) -> Self {
        Self { kind, payload, stamp, sequence }
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.payload.clone_ref(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.parts(py) == other.get().parts(py))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        hash_of(self.parts(py))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// Returns the constructor call: all bytes, and fields that differ from their defaults.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let payload = self.payload.bind(py).repr()?;
        Ok(format!(
            "Message(kind={}, payload={payload}{})",
            self.kind,
            optional_arguments(&[("stamp", self.stamp)], self.sequence)
        ))
    }

    /// Returns the event for people: its first bytes.
    fn __str__(&self, py: Python<'_>) -> String {
        format!("Message(kind={}, payload={})", self.kind, shorten_bytes(self.payload.as_bytes(py)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, (u8, Py<PyBytes>, u64, Option<u64>)> {
        (py.get_type::<Self>(), (self.kind, self.payload.clone_ref(py), self.stamp, self.sequence))
    }
}

impl PyMessage {
    fn parts<'a>(&'a self, py: Python<'a>) -> (u8, &'a [u8], u64, Option<u64>) {
        (self.kind, self.payload.as_bytes(py), self.stamp, self.sequence)
    }
}

#[pymethods]
impl PyForeign {
    #[new]
    #[pyo3(signature = (payload, sequence = None, details = None))]
    fn new(payload: Py<PyBytes>, sequence: Option<u64>, details: Option<String>) -> Self {
        Self { payload, sequence, details }
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.payload.clone_ref(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let parts = |one: &Self| (one.payload.as_bytes(py).to_vec(), one.sequence, one.details.clone());
        other.cast::<Self>().is_ok_and(|other| parts(self) == parts(other.get()))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        hash_of((self.payload.as_bytes(py), self.sequence, &self.details))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// Returns the constructor call, with all bytes.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let details = match &self.details {
            Some(details) => format!(", details={}", PyString::new(py, details).repr()?),
            None => String::new(),
        };
        Ok(format!(
            "Foreign(payload={}{}{details})",
            self.payload.bind(py).repr()?,
            optional_arguments(&[], self.sequence)
        ))
    }

    /// Returns the event for people: its first bytes.
    fn __str__(&self, py: Python<'_>) -> String {
        format!("Foreign(payload={})", shorten_bytes(self.payload.as_bytes(py)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, (Py<PyBytes>, Option<u64>, Option<String>)> {
        (py.get_type::<Self>(), (self.payload.clone_ref(py), self.sequence, self.details.clone()))
    }
}

#[pymethods]
impl PyGap {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["missed"])
    }

    fn __repr__(&self) -> String {
        let missed = self.missed.map_or_else(|| "None".to_owned(), |missed| missed.to_string());
        format!("Gap(missed={missed})")
    }

    #[new]
    fn new(missed: Option<u64>) -> Self {
        Self { missed }
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, (Option<u64>,)> {
        (py.get_type::<Self>(), (self.missed,))
    }
}

impl PyGap {
    /// Returns a gap of this many messages.
    pub fn of(missed: u64) -> Self {
        Self { missed: Some(missed) }
    }
}

impl From<tickpath_bus::Gap> for PyGap {
    fn from(gap: tickpath_bus::Gap) -> Self {
        match gap {
            tickpath_bus::Gap::Missed(missed) => Self::of(missed),
            tickpath_bus::Gap::Reconnected => Self { missed: None },
        }
    }
}

/// Reads a message from its bytes; `what` is the name of its class.
pub fn decode<T: FromBytes>(what: &str, payload: &[u8]) -> PyResult<T> {
    let (expected, given) = (size_of::<T>(), payload.len());
    let wrong_size = |_| PyValueError::new_err(format!("a {what} has {expected} bytes, and the payload has {given}"));
    T::read_from_bytes(payload).map_err(wrong_size)
}

fn hash_of(parts: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(parts)
}

/// Shortens bytes for display.
fn shorten_bytes(bytes: &[u8]) -> String {
    const MAX_SHOWN_BYTES: usize = 32;
    let end = if bytes.len() > MAX_SHOWN_BYTES { "'…" } else { "'" };
    format!("b'{}{end}", bytes[..bytes.len().min(MAX_SHOWN_BYTES)].escape_ascii())
}
