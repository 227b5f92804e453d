//! Levels of order books and events of feeds, as small frozen objects. Prices and quantities are whole numbers of 10⁻⁸.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tickpath_market::{self as market, FeedCondition, Price, Quantity, Side, SymbolId};
use tickpath_oms_blotter::snake_case;
use zerocopy::IntoBytes;

use crate::event::{PickleCall, Units, decode, optional_arguments};

/// A level of an order book: its new quantity. A message of the exchange is as many of these in a row as it changes
/// levels; OrderBook applies them.
#[pyclass(name = "BookLevel", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyBookLevel {
    /// BUY for bids, SELL for offers; 0 in a message that changes no level.
    side: u8,
    /// The price of the level, in units of 10⁻⁸.
    price: i64,
    /// The new quantity of the level, in units of 10⁻⁸; 0 removes the level.
    quantity: i64,
    /// Sum of SNAPSHOT, for the first level of a snapshot, and LAST, for the last level of a message of the exchange.
    flags: u8,
    /// The exchange's sequence number of its message.
    exchange_sequence: u64,
    /// The exchange's own time, in nanoseconds since the Unix epoch; 0 if none was given.
    event_ns: u64,
    /// The instrument's number.
    symbol: u32,
    /// Time from the packet's arrival at the feed's host to the stamp, in nanoseconds; 0 if unknown.
    wire_age_ns: u32,
    /// Time of publication, in ticks of the publisher's clock; 0 in an event that the program made.
    pub stamp: u64,
    /// Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
    /// made.
    pub sequence: Option<u64>,
}

/// An event of a feed: its connections, and the validity of its books.
#[pyclass(name = "FeedStatus", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyFeedStatus {
    /// Kind of the event: CONNECTED, DISCONNECTED, GAP, BOOK_VALID, SILENCE, MAINTENANCE or CLOCK_OFFSET.
    condition: u8,
    /// The instrument's number; ALL_SYMBOLS if the event concerns all.
    symbol: u32,
    /// Connection of the event, from 0.
    connection: u8,
    /// A silence, or the offset of the exchange's clock, in nanoseconds; 0 for other conditions.
    value: i64,
    /// Sequence number that the next update should have followed, for a gap.
    expected: u64,
    /// Sequence number that it follows, for a gap.
    found: u64,
    /// Time of the event at the feed's host, in nanoseconds since the Unix epoch.
    event_ns: u64,
    /// Time of publication, in ticks of the publisher's clock; 0 in an event that the program made.
    pub stamp: u64,
    /// Sequence number in the topic, from 0; None where the transport counts none, and in an event that the program
    /// made.
    pub sequence: Option<u64>,
}

type LevelParts = (u8, i64, i64, u8, u64, u64, u32, u32, u64, Option<u64>);
type StatusParts = (u8, u32, u8, i64, u64, u64, u64, u64, Option<u64>);

#[pymethods]
impl PyBookLevel {
    /// Flag of a snapshot's first level: the book is emptied before it.
    #[classattr]
    const SNAPSHOT: u8 = market::BookLevel::SNAPSHOT;

    /// Flag of a message's last level: the book is complete after it.
    #[classattr]
    const LAST: u8 = market::BookLevel::LAST;

    #[new]
    #[pyo3(signature = (
        side, price, quantity, flags = 2, exchange_sequence = 0, event_ns = 0, symbol = 0, wire_age_ns = 0, stamp = 0,
        sequence = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn new(
        side: u8,
        price: Units,
        quantity: Units,
        flags: u8,
        exchange_sequence: u64,
        event_ns: u64,
        symbol: u32,
        wire_age_ns: u32,
        stamp: u64,
        sequence: Option<u64>,
    ) -> Self {
        let [price, quantity] = [price, quantity].map(|units| units.0);
        Self { side, price, quantity, flags, exchange_sequence, event_ns, symbol, wire_age_ns, stamp, sequence }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.message().as_bytes())
    }

    /// Returns the constructor call: whole numbers, and fields that differ from their defaults.
    fn __repr__(&self) -> String {
        let more = [
            ("exchange_sequence", self.exchange_sequence),
            ("event_ns", self.event_ns),
            ("symbol", self.symbol.into()),
            ("wire_age_ns", self.wire_age_ns.into()),
            ("stamp", self.stamp),
        ];
        let Self { side, price, quantity, flags, sequence, .. } = *self;
        format!(
            "BookLevel(side={side}, price={price}, quantity={quantity}, flags={flags}{})",
            optional_arguments(&more, sequence)
        )
    }

    /// Returns the event for people: price and quantity as decimals, and the side as a word.
    fn __str__(&self) -> String {
        let side = Side::from_code(self.side).map_or_else(|| "no side".to_owned(), snake_case);
        let (price, quantity) = (Price(self.price), Quantity(self.quantity));
        format!("BookLevel({side}, price={price}, quantity={quantity}, symbol={})", self.symbol)
    }

    /// Decodes an event from its bytes.
    #[staticmethod]
    fn from_bytes(payload: &[u8]) -> PyResult<Self> {
        Ok(Self::of(&decode("BookLevel", payload)?, 0, None))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, LevelParts> {
        let Self { side, price, quantity, flags, exchange_sequence, event_ns, symbol, wire_age_ns, stamp, sequence } =
            *self;
        (
            py.get_type::<Self>(),
            (side, price, quantity, flags, exchange_sequence, event_ns, symbol, wire_age_ns, stamp, sequence),
        )
    }
}

impl PyBookLevel {
    #[inline]
    pub fn of(m: &market::BookLevel, stamp: u64, sequence: Option<u64>) -> Self {
        Self {
            side: m.side,
            price: m.price.0,
            quantity: m.quantity.0,
            flags: m.flags,
            exchange_sequence: m.sequence,
            event_ns: m.event_ns,
            symbol: m.symbol.0,
            wire_age_ns: m.wire_age_ns,
            stamp,
            sequence,
        }
    }

    pub fn message(&self) -> market::BookLevel {
        market::BookLevel {
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            event_ns: self.event_ns,
            sequence: self.exchange_sequence,
            symbol: SymbolId(self.symbol),
            wire_age_ns: self.wire_age_ns,
            side: self.side,
            flags: self.flags,
            reserved: [0; 6],
        }
    }
}

#[pymethods]
impl PyFeedStatus {
    /// A connection to the exchange is up and subscribed.
    #[classattr]
    const CONNECTED: u8 = FeedCondition::Connected.code();

    /// A connection has ended.
    #[classattr]
    const DISCONNECTED: u8 = FeedCondition::Disconnected.code();

    /// Updates of a book are missing.
    #[classattr]
    const GAP: u8 = FeedCondition::Gap.code();

    /// A book is valid again.
    #[classattr]
    const BOOK_VALID: u8 = FeedCondition::BookValid.code();

    /// Nothing has arrived for longer than the exchange allows.
    #[classattr]
    const SILENCE: u8 = FeedCondition::Silence.code();

    /// The exchange announces maintenance or the end of the connection.
    #[classattr]
    const MAINTENANCE: u8 = FeedCondition::Maintenance.code();

    /// The offset of the exchange's clock was measured.
    #[classattr]
    const CLOCK_OFFSET: u8 = FeedCondition::ClockOffset.code();

    /// Symbol of an event that concerns all instruments.
    #[classattr]
    const ALL_SYMBOLS: u32 = market::FeedStatus::ALL_SYMBOLS.0;

    #[new]
    #[pyo3(signature = (
        condition, symbol = 4294967295, connection = 0, value = 0, expected = 0, found = 0, event_ns = 0, stamp = 0,
        sequence = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn new(
        condition: u8,
        symbol: u32,
        connection: u8,
        value: i64,
        expected: u64,
        found: u64,
        event_ns: u64,
        stamp: u64,
        sequence: Option<u64>,
    ) -> Self {
        Self { condition, symbol, connection, value, expected, found, event_ns, stamp, sequence }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.message().as_bytes())
    }

    /// Returns the constructor call: the condition, the symbol, the value, and fields that differ from their defaults.
    fn __repr__(&self) -> String {
        let Self { condition, symbol, connection, value, expected, found, event_ns, stamp, sequence } = *self;
        let more = [
            ("connection", connection.into()),
            ("expected", expected),
            ("found", found),
            ("event_ns", event_ns),
            ("stamp", stamp),
        ];
        let more = optional_arguments(&more, sequence);
        format!("FeedStatus(condition={condition}, symbol={symbol}, value={value}{more})")
    }

    /// Returns the event for people: the condition as a word.
    fn __str__(&self) -> String {
        let condition = FeedCondition::from_code(self.condition).map_or_else(|| self.condition.to_string(), snake_case);
        let symbol = match self.symbol {
            Self::ALL_SYMBOLS => "all".to_owned(),
            symbol => symbol.to_string(),
        };
        let (connection, value) = (self.connection, self.value);
        format!("FeedStatus({condition}, symbol={symbol}, connection={connection}, value={value})")
    }

    /// Decodes an event from its bytes.
    #[staticmethod]
    fn from_bytes(payload: &[u8]) -> PyResult<Self> {
        Ok(Self::of(&decode("FeedStatus", payload)?, 0, None))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PickleCall<'py, StatusParts> {
        let Self { condition, symbol, connection, value, expected, found, event_ns, stamp, sequence } = *self;
        (py.get_type::<Self>(), (condition, symbol, connection, value, expected, found, event_ns, stamp, sequence))
    }
}

impl PyFeedStatus {
    #[inline]
    pub fn of(m: &market::FeedStatus, stamp: u64, sequence: Option<u64>) -> Self {
        Self {
            condition: m.condition,
            symbol: m.symbol.0,
            connection: m.connection,
            value: m.value,
            expected: m.expected,
            found: m.found,
            event_ns: m.event_ns,
            stamp,
            sequence,
        }
    }

    pub fn message(&self) -> market::FeedStatus {
        market::FeedStatus {
            event_ns: self.event_ns,
            value: self.value,
            expected: self.expected,
            found: self.found,
            symbol: SymbolId(self.symbol),
            condition: self.condition,
            connection: self.connection,
            reserved: [0; 10],
        }
    }
}
