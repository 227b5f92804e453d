//! `recording(url, topic)`: the messages of a log, as tables.
//!
//! Each table reads the log once per export, unseen by the writer, up to the end that the log had at that time. If a
//! log with policy `overwrite` outruns the reader, the loss is an error, since a table cannot represent a gap.

use std::marker::PhantomData;

use arrow_array::builder::{BinaryBuilder, UInt8Builder, UInt32Builder, UInt64Builder};
use pyo3::prelude::*;
use tickpath_bus::{ConnectError, Gap, connect, log_of, resolve, transport, within};
use tickpath_log::{Message, Next, OpenError, Place, ReadError, Reader, Registration, Start};
use tickpath_market::{Kind, Side, TopOfBook, Trade};
use zerocopy::FromBytes;

use crate::column::{Codes, Columns, Decimals, OrNull, Rows, Times, columns};
use crate::error::Error;
use crate::table::{Failure, MOST_ROWS, Source, Table};

/// Approximate max of payload bytes in a batch.
const MOST_BYTES: usize = 1 << 26;

/// Max topics named in an error message.
const MOST_NAMES: usize = 8;

/// Opens the log of a topic as tables: of a recording, file:///FOLDER, or of the messages that a topic in shared memory
/// still holds, shm://.
#[pyfunction]
#[pyo3(name = "recording")]
pub fn open_recording(py: Python<'_>, url: &str, topic: &str) -> PyResult<Recording> {
    let look = || -> Result<Place, Failure> {
        let place = place_of(url, topic)?;
        open(&place, Start::Oldest)?;
        Ok(place)
    };
    let place = py.detach(look).map_err(|e| Error::Connect.raise(py, &e.to_string()))?;
    Ok(Recording { place })
}

fn place_of(url: &str, topic: &str) -> Result<Place, ConnectError> {
    let url = resolve(url)?;
    if let Some(server) = transport(&url).filter(|transport| transport.is_server()) {
        return Err(ConnectError::Unsupported {
            transport: server.name,
            what: "hand a topic over as tables".to_owned(),
            remedy: "record it first, with tickpath log record URL TOPIC FOLDER/TOPIC, and open file:///FOLDER",
        });
    }
    // `connect` has the best error message for a wrong URL.
    connect(&url)?;
    log_of(&url, topic)
}

fn open(place: &Place, start: Start) -> Result<Reader, Failure> {
    Reader::open(place, start, Registration::Unregistered).map_err(|error| {
        let names = if matches!(error, OpenError::NotFound(_)) { names_beside(place) } else { None };
        names.map_or_else(|| error.to_string(), |names| format!("{error}; what lies there: {names}")).into()
    })
}

/// Names the logs on the disk beside the place of a log that was not found.
fn names_beside(place: &Place) -> Option<String> {
    let folder = place.dir().parent().filter(|_| !place.is_shared_memory())?;
    let found = within(&Place::folder(folder));
    let names = found.iter().filter_map(|log| log.dir().file_name()?.to_str());
    let told: Vec<&str> = names.take(MOST_NAMES).collect();
    (!told.is_empty()).then(|| told.join(", ") + if found.len() > told.len() { " and more" } else { "" })
}

/// The tables of a log. Each table reads the log when a consumer takes its rows.
#[pyclass(frozen, module = "tickpath")]
pub struct Recording {
    place: Place,
}

#[pymethods]
impl Recording {
    /// The place of the log.
    #[getter]
    fn place(&self) -> String {
        self.place.to_string()
    }

    /// The best bids and offers.
    #[getter]
    fn tops_of_book(&self) -> Table {
        self.table::<TopsOfBook>("tops of book")
    }

    /// The trades.
    #[getter]
    fn trades(&self) -> Table {
        self.table::<Trades>("trades")
    }

    /// The messages of all other kinds, as bytes.
    #[getter]
    fn messages(&self) -> Table {
        self.table::<Messages>("messages")
    }

    /// Losses of messages before they reached the log, with the number of messages: null where it is unknown.
    #[getter]
    fn gaps(&self) -> Table {
        self.table::<Gaps>("gaps")
    }

    fn __repr__(&self) -> String {
        format!("Recording({})", self.place)
    }
}

impl Recording {
    fn table<C: Taking>(&self, what: &str) -> Table {
        let place = self.place.clone();
        Table::new(format!("{what} of {place}"), move || Reading::<C>::open(&place))
    }
}

/// Content of a message.
enum What<'a> {
    TopOfBook(TopOfBook),
    Trade(Trade),
    Gap(Gap),
    Other { kind: u8, payload: &'a [u8] },
}

impl<'a> What<'a> {
    fn of(message: &Message<'a>) -> Self {
        const TOP_OF_BOOK: u8 = Kind::TopOfBook.code();
        const TRADE: u8 = Kind::Trade.code();
        let Message { kind, payload, .. } = *message;
        if kind == TOP_OF_BOOK
            && let Ok(tick) = TopOfBook::read_from_bytes(payload)
        {
            return Self::TopOfBook(tick);
        }
        if kind == TRADE
            && let Ok(trade) = Trade::read_from_bytes(payload)
        {
            return Self::Trade(trade);
        }
        Gap::read(kind, payload).map_or(Self::Other { kind, payload }, Self::Gap)
    }
}

/// Columns that accept some of the messages.
trait Taking: Columns {
    /// Appends the message as a row; returns false if these columns do not accept it.
    fn push(&mut self, what: &What<'_>) -> bool;
}

/// Reader of a log into columns.
struct Reading<C> {
    place: Place,
    log: Reader,
    /// Sequence number after the last message at the time of opening.
    end: u64,
    into: PhantomData<fn() -> C>,
}

impl<C: Taking> Reading<C> {
    fn open(place: &Place) -> Result<Self, Failure> {
        let log = open(place, Start::Oldest)?;
        // Damage may precede the end: reading reaches it, and reports it.
        let end = open(place, Start::Now).map_or(u64::MAX, |log| log.sequence());
        Ok(Self { place: place.clone(), log, end, into: PhantomData })
    }
}

impl<C: Taking> Source for Reading<C> {
    type Columns = C;

    fn fill(&mut self, rows: &mut Rows<C>) -> Result<bool, Failure> {
        let Self { place, log, end, .. } = self;
        let damaged = |error: ReadError| Failure::from(format!("{place}: {error}"));
        let mut bytes = 0;
        while rows.len() < MOST_ROWS && bytes < MOST_BYTES && log.next_told() < *end {
            let (sequence, stamp) = match log.next().map_err(damaged)? {
                Next::Message(message) => {
                    if !rows.columns.push(&What::of(&message)) {
                        continue;
                    }
                    bytes += message.payload.len();
                    (message.sequence, message.stamp)
                }
                Next::Gap(missed) => {
                    return Err(format!(
                        "{place}: {missed} messages were overwritten before they were read, for the topic goes on; record \
                         it, with tickpath log record, and read the recording"
                    )
                    .into());
                }
                Next::Empty => break,
            };
            rows.heads.push(sequence, stamp, &log.calibration());
        }
        if rows.len() >= MOST_ROWS || bytes >= MOST_BYTES {
            return Ok(true);
        }
        log.check_end().map_err(damaged)?;
        Ok(false)
    }
}

columns! {
    struct TopsOfBook {
        symbol: UInt32Builder,
        bid: Decimals,
        bid_quantity: Decimals,
        ask: Decimals,
        ask_quantity: Decimals,
        event_time: OrNull<Times>,
    }
}

impl Taking for TopsOfBook {
    fn push(&mut self, what: &What<'_>) -> bool {
        let What::TopOfBook(tick) = what else { return false };
        self.symbol.append_value(tick.symbol.0);
        self.bid.push(tick.bid.0);
        self.bid_quantity.push(tick.bid_quantity.0);
        self.ask.push(tick.ask.0);
        self.ask_quantity.push(tick.ask_quantity.0);
        self.event_time.push_known(known(tick.event_ns));
        true
    }
}

columns! {
    struct Trades {
        symbol: UInt32Builder,
        price: Decimals,
        quantity: Decimals,
        aggressor: Codes<Side>,
        trade_id: UInt64Builder,
        event_time: OrNull<Times>,
    }
}

impl Taking for Trades {
    fn push(&mut self, what: &What<'_>) -> bool {
        let What::Trade(trade) = what else { return false };
        self.symbol.append_value(trade.symbol.0);
        self.price.push(trade.price.0);
        self.quantity.push(trade.quantity.0);
        self.aggressor.push(Some(trade.aggressor));
        self.trade_id.append_value(trade.trade_id);
        self.event_time.push_known(known(trade.event_ns));
        true
    }
}

columns! {
    struct Messages {
        kind: UInt8Builder,
        payload: BinaryBuilder,
    }
}

impl Taking for Messages {
    fn push(&mut self, what: &What<'_>) -> bool {
        let What::Other { kind, payload } = what else { return false };
        self.kind.append_value(*kind);
        self.payload.append_value(payload);
        true
    }
}

columns! {
    struct Gaps {
        missed: OrNull<UInt64Builder>,
    }
}

impl Taking for Gaps {
    fn push(&mut self, what: &What<'_>) -> bool {
        let What::Gap(gap) = what else { return false };
        self.missed.append_option(match gap {
            Gap::Missed(missed) => Some(*missed),
            Gap::Reconnected => None,
        });
        true
    }
}

/// Returns the exchange's time, if there is one.
fn known(event_ns: u64) -> Option<u64> {
    (event_ns != 0).then_some(event_ns)
}
