//! What a subscriber finds, as small frozen objects. Prices and quantities are whole numbers of 10⁻⁸.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple, PyType};
use smallvec::SmallVec;
use tickpath_bus::{Event, Lending, Lent};
use tickpath_market::{self as market, Kind, Price, Quantity, SymbolId};
use zerocopy::{FromBytes, IntoBytes};

/// The best bid and offer.
#[pyclass(frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopOfBook {
    /// The best bid, in units of 10⁻⁸.
    bid: i64,
    /// What is open at the best bid, in units of 10⁻⁸.
    bid_quantity: i64,
    /// The best offer, in units of 10⁻⁸.
    ask: i64,
    /// What is open at the best offer, in units of 10⁻⁸.
    ask_quantity: i64,
    /// The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given.
    event_ns: u64,
    /// The instrument's number.
    symbol: u32,
    /// When it was published, in ticks of its publisher's clock; 0 in one that was made here.
    stamp: u64,
    /// Its number in the topic, from 0; None where the transport counts none, and in one that was made here.
    sequence: Option<u64>,
}

/// One trade at the exchange.
#[pyclass(frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trade {
    /// At this price, in units of 10⁻⁸.
    price: i64,
    /// So much, in units of 10⁻⁸.
    quantity: i64,
    /// The exchange's id of the trade.
    trade_id: u64,
    /// The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given.
    event_ns: u64,
    /// The instrument's number.
    symbol: u32,
    /// The side of who took: 1 buys, 2 sells; 0 if none was given.
    aggressor: u8,
    /// When it was published, in ticks of its publisher's clock; 0 in one that was made here.
    stamp: u64,
    /// Its number in the topic, from 0; None where the transport counts none, and in one that was made here.
    sequence: Option<u64>,
}

/// A message of any other kind.
#[pyclass(frozen, get_all, module = "tickpath")]
#[derive(Debug)]
pub struct Message {
    /// What it is, 16 to 255.
    kind: u8,
    /// Its bytes.
    payload: Py<PyBytes>,
    /// When it was published, in ticks of its publisher's clock; 0 in one that was made here.
    stamp: u64,
    /// Its number in the topic, from 0; None where the transport counts none, and in one that was made here.
    sequence: Option<u64>,
}

/// What another program published, without our header.
#[pyclass(frozen, get_all, module = "tickpath")]
#[derive(Debug)]
pub struct Foreign {
    /// Its bytes.
    payload: Py<PyBytes>,
    /// Its number in the topic, from 0; None where the transport counts none.
    sequence: Option<u64>,
}

/// Messages that this subscriber will never see; `missed` is None where nobody knows how many.
#[pyclass(frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gap {
    /// How many, as far as somebody counted; else None.
    missed: Option<u64>,
}

/// What makes an object again: its class, and what that is called with.
type Made<'py, T> = (Bound<'py, PyType>, T);
type TickParts = (i64, i64, i64, i64, u64, u32, u64, Option<u64>);
type TradeParts = (i64, i64, u64, u64, u32, u8, u64, Option<u64>);

/// A price or a quantity in units of 10⁻⁸.
struct Whole(i64);

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self).map_err(|e| match given.extract::<f64>() {
            // A whole number that is too large has its own sentence.
            Ok(_) if !given.is_instance_of::<PyInt>() => PyTypeError::new_err(format!(
                "prices and quantities are whole numbers of 10⁻⁸; give tickpath.units('{}')",
                &*given
            )),
            _ => e,
        })
    }
}

/// What of an event is not usual, as its arguments: those that are not 0, and its number in the topic.
fn rest(parts: &[(&str, u64)], sequence: Option<u64>) -> String {
    let sequence = sequence.map(|sequence| ("sequence", sequence));
    let told = parts.iter().copied().filter(|(_, value)| *value != 0).chain(sequence);
    told.fold(String::new(), |text, (name, value)| text + &format!(", {name}={value}"))
}

#[pymethods]
impl TopOfBook {
    #[new]
    #[pyo3(signature = (bid, bid_quantity, ask, ask_quantity, event_ns = 0, symbol = 0, stamp = 0, sequence = None))]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn new(
        bid: Whole,
        bid_quantity: Whole,
        ask: Whole,
        ask_quantity: Whole,
        event_ns: u64,
        symbol: u32,
        stamp: u64,
        sequence: Option<u64>,
    ) -> Self {
        let [bid, bid_quantity, ask, ask_quantity] = [bid, bid_quantity, ask, ask_quantity].map(|whole| whole.0);
        Self { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.message().as_bytes())
    }

    /// As it is made: whole numbers, and what is not usual.
    fn __repr__(&self) -> String {
        let Self { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence } = *self;
        let more = [("event_ns", event_ns), ("symbol", symbol.into()), ("stamp", stamp)];
        format!(
            "TopOfBook(bid={bid}, bid_quantity={bid_quantity}, ask={ask}, ask_quantity={ask_quantity}{})",
            rest(&more, sequence)
        )
    }

    /// For people: prices and quantities as decimals.
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

    /// The one whose bytes these are.
    #[staticmethod]
    fn from_bytes(payload: &[u8]) -> PyResult<Self> {
        let read = market::TopOfBook::read_from_bytes(payload)
            .map_err(|_| wrong_size::<market::TopOfBook>("TopOfBook", payload))?;
        Ok(Self::of(&read, 0, None))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Made<'py, TickParts> {
        let Self { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence } = *self;
        let parts = (bid, bid_quantity, ask, ask_quantity, event_ns, symbol, stamp, sequence);
        (py.get_type::<Self>(), parts)
    }
}

impl TopOfBook {
    #[inline]
    fn of(m: &market::TopOfBook, stamp: u64, sequence: Option<u64>) -> Self {
        Self {
            bid: m.bid.0,
            bid_quantity: m.bid_quantity.0,
            ask: m.ask.0,
            ask_quantity: m.ask_quantity.0,
            event_ns: m.event_ns,
            symbol: m.symbol.0,
            stamp,
            sequence,
        }
    }

    fn message(&self) -> market::TopOfBook {
        market::TopOfBook {
            bid: Price(self.bid),
            bid_quantity: Quantity(self.bid_quantity),
            ask: Price(self.ask),
            ask_quantity: Quantity(self.ask_quantity),
            event_ns: self.event_ns,
            symbol: SymbolId(self.symbol),
            reserved: 0,
        }
    }
}

#[pymethods]
impl Trade {
    #[new]
    #[pyo3(signature = (price, quantity, trade_id = 0, event_ns = 0, symbol = 0, aggressor = 0, stamp = 0, sequence = None))]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn new(
        price: Whole,
        quantity: Whole,
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

    /// As it is made: whole numbers, and what is not usual.
    fn __repr__(&self) -> String {
        let Self { price, quantity, trade_id, event_ns, symbol, aggressor, stamp, sequence } = *self;
        let more = [
            ("trade_id", trade_id),
            ("event_ns", event_ns),
            ("symbol", symbol.into()),
            ("aggressor", aggressor.into()),
            ("stamp", stamp),
        ];
        format!("Trade(price={price}, quantity={quantity}{})", rest(&more, sequence))
    }

    /// For people: price and quantity as decimals.
    fn __str__(&self) -> String {
        let (price, quantity) = (Price(self.price), Quantity(self.quantity));
        format!("Trade(price={price}, quantity={quantity}, trade_id={}, symbol={})", self.trade_id, self.symbol)
    }

    /// The one whose bytes these are.
    #[staticmethod]
    fn from_bytes(payload: &[u8]) -> PyResult<Self> {
        let read =
            market::Trade::read_from_bytes(payload).map_err(|_| wrong_size::<market::Trade>("Trade", payload))?;
        Ok(Self::of(&read, 0, None))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Made<'py, TradeParts> {
        let Self { price, quantity, trade_id, event_ns, symbol, aggressor, stamp, sequence } = *self;
        (py.get_type::<Self>(), (price, quantity, trade_id, event_ns, symbol, aggressor, stamp, sequence))
    }
}

impl Trade {
    #[inline]
    fn of(m: &market::Trade, stamp: u64, sequence: Option<u64>) -> Self {
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

    fn message(&self) -> market::Trade {
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
impl Message {
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
        hash_of(&self.parts(py))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// As it is made: all its bytes, and what is not usual.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let payload = self.payload.bind(py).repr()?;
        Ok(format!("Message(kind={}, payload={payload}{})", self.kind, rest(&[("stamp", self.stamp)], self.sequence)))
    }

    /// For people: its first bytes.
    fn __str__(&self, py: Python<'_>) -> String {
        format!("Message(kind={}, payload={})", self.kind, shown(self.payload.as_bytes(py)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Made<'py, (u8, Py<PyBytes>, u64, Option<u64>)> {
        (py.get_type::<Self>(), (self.kind, self.payload.clone_ref(py), self.stamp, self.sequence))
    }
}

impl Message {
    fn parts<'a>(&'a self, py: Python<'a>) -> (u8, &'a [u8], u64, Option<u64>) {
        (self.kind, self.payload.as_bytes(py), self.stamp, self.sequence)
    }
}

#[pymethods]
impl Foreign {
    #[new]
    #[pyo3(signature = (payload, sequence = None))]
    fn new(payload: Py<PyBytes>, sequence: Option<u64>) -> Self {
        Self { payload, sequence }
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.payload.clone_ref(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let parts = |one: &Self| (one.payload.as_bytes(py).to_vec(), one.sequence);
        other.cast::<Self>().is_ok_and(|other| parts(self) == parts(other.get()))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        hash_of(&(self.payload.as_bytes(py), self.sequence))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// As it is made: all its bytes.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Foreign(payload={}{})", self.payload.bind(py).repr()?, rest(&[], self.sequence)))
    }

    /// For people: its first bytes.
    fn __str__(&self, py: Python<'_>) -> String {
        format!("Foreign(payload={})", shown(self.payload.as_bytes(py)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Made<'py, (Py<PyBytes>, Option<u64>)> {
        (py.get_type::<Self>(), (self.payload.clone_ref(py), self.sequence))
    }
}

#[pymethods]
impl Gap {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["missed"])
    }

    fn __repr__(&self) -> String {
        match self.missed {
            Some(missed) => format!("Gap(missed={missed})"),
            None => "Gap(missed=None)".to_owned(),
        }
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

    fn __reduce__<'py>(&self, py: Python<'py>) -> Made<'py, (Option<u64>,)> {
        (py.get_type::<Self>(), (self.missed,))
    }
}

impl Gap {
    /// Of so many.
    pub fn of(missed: u64) -> Self {
        Self { missed: Some(missed) }
    }
}

impl From<tickpath_bus::Gap> for Gap {
    fn from(gap: tickpath_bus::Gap) -> Self {
        match gap {
            tickpath_bus::Gap::Missed(missed) => Self::of(missed),
            tickpath_bus::Gap::Reconnected => Self { missed: None },
        }
    }
}

/// The stamp of an event that caused something, or the one that is given.
pub fn stamp_of(cause: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(tick) = cause.cast::<TopOfBook>() {
        return Ok(tick.get().stamp);
    }
    if let Ok(trade) = cause.cast::<Trade>() {
        return Ok(trade.get().stamp);
    }
    if let Ok(message) = cause.cast::<Message>() {
        return Ok(message.get().stamp);
    }
    let sentence = "a cause is the TopOfBook, Trade or Message to which this is the answer, or its stamp";
    cause.extract().map_err(|_| PyTypeError::new_err(sentence))
}

/// An event that is taken out, and is no object yet: a copy, or a message of any kind where it lies.
#[derive(Debug)]
pub enum Taken {
    TopOfBook(TopOfBook),
    Trade(Trade),
    Message { kind: u8, payload: Payload, stamp: u64, sequence: Option<u64> },
    Foreign { payload: Payload, sequence: Option<u64> },
    Lent(Lent),
    Gap(Gap),
}

/// What most messages have is not worth an allocation.
type Payload = SmallVec<[u8; 64]>;

impl Taken {
    /// Copies an event.
    #[inline]
    pub fn of(event: &Event<'_>) -> Self {
        match event {
            Event::Message(message) => Self::of_message(message),
            Event::Foreign(foreign) => {
                Self::Foreign { payload: Payload::from_slice(foreign.bytes), sequence: foreign.sequence }
            }
            Event::Gap(gap) => Self::Gap(Gap::from(*gap)),
        }
    }

    /// What was lent, if something was there.
    pub fn of_lending(found: Lending) -> Option<Self> {
        match found {
            Lending::Message(lent) => Some(Self::Lent(lent)),
            Lending::Gap(gap) => Some(Self::Gap(Gap::from(gap))),
            Lending::Nothing => None,
        }
    }

    /// Copies a message: a tick or a trade where it is one.
    #[inline]
    pub fn of_message(message: &tickpath_bus::Message<'_>) -> Self {
        const TOP_OF_BOOK: u8 = Kind::TopOfBook.code();
        const TRADE: u8 = Kind::Trade.code();
        let tickpath_bus::Message { sequence, stamp, kind, payload, .. } = *message;
        if kind == TOP_OF_BOOK
            && let Ok(m) = market::TopOfBook::read_from_bytes(payload)
        {
            return Self::TopOfBook(TopOfBook::of(&m, stamp, sequence));
        }
        if kind == TRADE
            && let Ok(m) = market::Trade::read_from_bytes(payload)
        {
            return Self::Trade(Trade::of(&m, stamp, sequence));
        }
        Self::Message { kind, payload: Payload::from_slice(payload), stamp, sequence }
    }

    /// Whether it is a copy of a message.
    pub fn is_copy(&self) -> bool {
        !matches!(self, Self::Lent(_) | Self::Gap(_))
    }

    /// The same as a message that is lent, if it is one; of a copy, that is lent.
    pub fn lent(self) -> Self {
        let (kind, payload, stamp, sequence) = match self {
            Self::TopOfBook(tick) => {
                (Kind::TopOfBook.code(), tick.message().as_bytes().to_vec(), tick.stamp, tick.sequence)
            }
            Self::Trade(trade) => {
                (Kind::Trade.code(), trade.message().as_bytes().to_vec(), trade.stamp, trade.sequence)
            }
            Self::Message { kind, payload, stamp, sequence } => (kind, payload.into_vec(), stamp, sequence),
            other => return other,
        };
        Self::Lent(Lent::new(sequence, stamp, kind, payload))
    }

    /// The kind of a tick or a trade.
    pub fn kind(&self) -> Option<u8> {
        match self {
            Self::TopOfBook(_) => Some(Kind::TopOfBook.code()),
            Self::Trade(_) => Some(Kind::Trade.code()),
            Self::Lent(lent) => kind_of_records(lent.payload().len()).filter(|&kind| kind == lent.kind),
            _ => None,
        }
    }

    /// Appends the bytes of a tick or a trade, and its stamp.
    pub fn append(&self, records: &mut Vec<u8>, stamps: &mut Vec<u64>) {
        match self {
            Self::TopOfBook(tick) => {
                records.extend_from_slice(tick.message().as_bytes());
                stamps.push(tick.stamp);
            }
            Self::Trade(trade) => {
                records.extend_from_slice(trade.message().as_bytes());
                stamps.push(trade.stamp);
            }
            Self::Lent(lent) => {
                records.extend_from_slice(lent.payload());
                stamps.push(lent.stamp);
            }
            _ => {}
        }
    }

    /// The event as Python sees it.
    pub fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let bytes = |payload: &[u8]| {
            let filled = PyBytes::new_with(py, payload.len(), |room| {
                room.copy_from_slice(payload);
                Ok(())
            });
            filled.map(Bound::unbind)
        };
        Ok(match self {
            Self::TopOfBook(tick) => Py::new(py, *tick)?.into_any(),
            Self::Trade(trade) => Py::new(py, *trade)?.into_any(),
            Self::Message { kind, payload, stamp, sequence } => {
                let (kind, stamp, sequence) = (*kind, *stamp, *sequence);
                Py::new(py, Message { kind, payload: bytes(payload)?, stamp, sequence })?.into_any()
            }
            Self::Foreign { payload, sequence } => {
                Py::new(py, Foreign { payload: bytes(payload)?, sequence: *sequence })?.into_any()
            }
            // A copy of it.
            Self::Lent(lent) => Self::of_message(&lent.into()).object(py)?,
            Self::Gap(gap) => Py::new(py, *gap)?.into_any(),
        })
    }
}

/// The kind of records of this size.
pub fn kind_of_records(bytes: usize) -> Option<u8> {
    const TOP_OF_BOOK_BYTES: usize = size_of::<market::TopOfBook>();
    const TRADE_BYTES: usize = size_of::<market::Trade>();
    match bytes {
        TOP_OF_BOOK_BYTES => Some(Kind::TopOfBook.code()),
        TRADE_BYTES => Some(Kind::Trade.code()),
        _ => None,
    }
}

/// What is published, and its kind if it has one: a tick or a trade knows it.
pub fn with_payload<R>(data: &Bound<'_, PyAny>, act: impl FnOnce(&[u8], Option<u8>) -> PyResult<R>) -> PyResult<R> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return act(bytes.as_bytes(), None);
    }
    if let Ok(tick) = data.cast::<TopOfBook>() {
        return act(tick.get().message().as_bytes(), Some(Kind::TopOfBook.code()));
    }
    if let Ok(trade) = data.cast::<Trade>() {
        return act(trade.get().message().as_bytes(), Some(Kind::Trade.code()));
    }
    if let Ok(message) = data.cast::<Message>() {
        let message = message.get();
        return act(message.payload.as_bytes(data.py()), Some(message.kind));
    }
    if let Ok(foreign) = data.cast::<Foreign>() {
        return act(foreign.get().payload.as_bytes(data.py()), None);
    }
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("text is no bytes; publish text.encode()"));
    }
    // Anything else that has bytes.
    let view = data.py().import("builtins")?.getattr("memoryview")?.call1((data,)).map_err(|_| {
        let found = data.get_type().name().map_or_else(|_| "that".to_owned(), |name| format!("a {name}"));
        PyTypeError::new_err(format!("{found} has no bytes; give bytes with a kind, a TopOfBook, a Trade or a Message"))
    })?;
    let copy = view.call_method0("tobytes")?;
    act(copy.cast::<PyBytes>()?.as_bytes(), None)
}

fn wrong_size<T>(what: &str, payload: &[u8]) -> PyErr {
    PyValueError::new_err(format!("a {what} has {} bytes, and these are {}", size_of::<T>(), payload.len()))
}

fn hash_of(parts: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Bytes for a person, not all of them where they are many.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 32;
    let mut text = String::from("b'");
    for byte in bytes.iter().take(MOST) {
        let _ = write!(text, "{}", byte.escape_ascii());
    }
    text.push_str(if bytes.len() > MOST { "'…" } else { "'" });
    text
}
