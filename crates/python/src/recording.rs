//! `recording(url, topic)`: the messages of a log, as tables.
//!
//! Each table reads the log once per export, unseen by the writer, up to the end that the log had at that time. If a
//! log with policy `overwrite` outruns the reader, the loss is an error, since a table cannot represent a gap.

use std::marker::PhantomData;

use arrow_array::builder::{BinaryBuilder, Int64Builder, UInt8Builder, UInt32Builder, UInt64Builder};
use pyo3::prelude::*;
use tickpath_bus::{ConnectError, Gap, connect, list_logs, resolve_url, topic_log_path, transport_of};
use tickpath_log::{LogMessage, LogOpenError, LogPath, LogReadError, Next, Reader, ReaderStart, Registration};
use tickpath_market::{BookLevel, FeedCondition, FeedStatus, Kind, Side, TopOfBook, Trade};
use zerocopy::FromBytes;

use crate::column::{CodeColumn, ColumnSet, Decimals, Nullable, TableRows, Times, columns, nonzero};
use crate::error::connect_error;
use crate::table::{MAX_ROWS, PyTable, RowSource, TableError};

/// Approximate max of payload bytes in a batch.
const MAX_BATCH_BYTES: usize = 1 << 26;

const MAX_LISTED_NAMES: usize = 8;

/// Opens the log of a topic as tables: of a recording, file:///FOLDER, or of the messages that a topic in shared memory
/// still holds, shm://.
#[pyfunction]
#[pyo3(name = "recording")]
pub fn open_recording(py: Python<'_>, url: &str, topic: &str) -> PyResult<PyRecording> {
    let look = || -> Result<LogPath, TableError> {
        let place = place_of(url, topic)?;
        open(&place, ReaderStart::Oldest)?;
        Ok(place)
    };
    let place = py.detach(look).map_err(|e| connect_error(py, &e))?;
    Ok(PyRecording { place })
}

fn place_of(url: &str, topic: &str) -> Result<LogPath, ConnectError> {
    let url = resolve_url(url)?;
    if let Some(server) = transport_of(&url).filter(|transport| transport.is_server()) {
        return Err(ConnectError::Unsupported {
            transport: server.name,
            what: "export a topic as tables".to_owned(),
            remedy: "record it first, with tickpath log record URL TOPIC FOLDER/TOPIC, and open file:///FOLDER",
        });
    }
    // `connect` has the best error message for a wrong URL.
    connect(&url)?;
    topic_log_path(&url, topic)
}

fn open(place: &LogPath, start: ReaderStart) -> Result<Reader, TableError> {
    Reader::open(place, start, Registration::Unregistered).map_err(|error| {
        let names = if matches!(error, LogOpenError::NotFound(_)) { names_beside(place) } else { None };
        names.map_or_else(|| error.to_string(), |names| format!("{error}; the folder has {names}")).into()
    })
}

/// Names the logs on the disk beside the place of a log that was not found.
fn names_beside(place: &LogPath) -> Option<String> {
    let folder = place.dir().parent().filter(|_| !place.is_shared_memory())?;
    let found = list_logs(&LogPath::folder(folder));
    let names = found.iter().filter_map(|log| log.dir().file_name()?.to_str());
    let listed: Vec<&str> = names.take(MAX_LISTED_NAMES).collect();
    (!listed.is_empty()).then(|| listed.join(", ") + if found.len() > listed.len() { " and more" } else { "" })
}

/// The tables of a log. Each table reads the log when a consumer takes its rows.
#[pyclass(name = "Recording", frozen, module = "tickpath")]
pub struct PyRecording {
    place: LogPath,
}

#[pymethods]
impl PyRecording {
    /// The place of the log.
    #[getter]
    fn place(&self) -> String {
        self.place.to_string()
    }

    /// The best bids and offers.
    #[getter]
    fn tops_of_book(&self) -> PyTable {
        self.table::<TopOfBookColumns>("tops of book")
    }

    /// The trades.
    #[getter]
    fn trades(&self) -> PyTable {
        self.table::<TradeColumns>("trades")
    }

    /// The levels of order books, as they changed.
    #[getter]
    fn book_levels(&self) -> PyTable {
        self.table::<BookLevelColumns>("book levels")
    }

    /// The events of feeds: their connections, and the validity of their books.
    #[getter]
    fn feed_events(&self) -> PyTable {
        self.table::<FeedStatusColumns>("feed events")
    }

    /// The messages of all other kinds, as bytes.
    #[getter]
    fn messages(&self) -> PyTable {
        self.table::<MessageColumns>("messages")
    }

    /// Losses of messages before they reached the log, with the number of messages: null where it is unknown.
    #[getter]
    fn gaps(&self) -> PyTable {
        self.table::<GapColumns>("gaps")
    }

    fn __repr__(&self) -> String {
        format!("Recording({})", self.place)
    }
}

impl PyRecording {
    fn table<C: SelectiveColumns>(&self, what: &str) -> PyTable {
        let place = self.place.clone();
        PyTable::new(format!("{what} of {place}"), move || RecordingSource::<C>::open(&place))
    }
}

enum RecordedContent<'a> {
    TopOfBook(TopOfBook),
    Trade(Trade),
    BookLevel(BookLevel),
    FeedStatus(FeedStatus),
    Gap(Gap),
    Other { kind: u8, payload: &'a [u8] },
}

impl<'a> RecordedContent<'a> {
    fn of(message: &LogMessage<'a>) -> Self {
        const TOP_OF_BOOK: u8 = Kind::TopOfBook.code();
        const TRADE: u8 = Kind::Trade.code();
        const BOOK_LEVEL: u8 = Kind::BookLevel.code();
        const FEED_STATUS: u8 = Kind::FeedStatus.code();
        let LogMessage { kind, payload, .. } = *message;
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
        if kind == BOOK_LEVEL
            && let Ok(level) = BookLevel::read_from_bytes(payload)
        {
            return Self::BookLevel(level);
        }
        if kind == FEED_STATUS
            && let Ok(status) = FeedStatus::read_from_bytes(payload)
        {
            return Self::FeedStatus(status);
        }
        Gap::decode(kind, payload).map_or(Self::Other { kind, payload }, Self::Gap)
    }
}

/// Columns that accept some of the messages.
trait SelectiveColumns: ColumnSet {
    /// Appends the message as a row; returns false if these columns do not accept it.
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool;
}

/// Reader of a log into columns.
struct RecordingSource<C> {
    place: LogPath,
    log: Reader,
    /// Sequence number after the last message at the time of opening.
    end: u64,
    into: PhantomData<fn() -> C>,
}

impl<C: SelectiveColumns> RecordingSource<C> {
    fn open(place: &LogPath) -> Result<Self, TableError> {
        let log = open(place, ReaderStart::Oldest)?;
        // Damage may precede the end: reading reaches it, and reports it.
        let end = open(place, ReaderStart::Now).map_or(u64::MAX, |log| log.sequence());
        Ok(Self { place: place.clone(), log, end, into: PhantomData })
    }
}

impl<C: SelectiveColumns> RowSource for RecordingSource<C> {
    type Columns = C;

    fn fill(&mut self, rows: &mut TableRows<C>) -> Result<bool, TableError> {
        let Self { place, log, end, .. } = self;
        let damaged = |error: LogReadError| TableError::from(format!("{place}: {error}"));
        let mut bytes = 0;
        while rows.len() < MAX_ROWS && bytes < MAX_BATCH_BYTES && log.next_reported() < *end {
            let (sequence, stamp) = match log.next().map_err(damaged)? {
                Next::Message(message) => {
                    if !rows.columns.accept(&RecordedContent::of(&message)) {
                        continue;
                    }
                    bytes += message.payload.len();
                    (message.sequence, message.stamp)
                }
                Next::Gap(missed) => {
                    return Err(format!(
                        "{place}: {missed} messages of this live topic were overwritten before they were read; record \
                         it, with tickpath log record, and read the recording"
                    )
                    .into());
                }
                Next::Empty => break,
            };
            rows.leading.push(sequence, stamp, &log.calibration());
        }
        if rows.len() >= MAX_ROWS || bytes >= MAX_BATCH_BYTES {
            return Ok(true);
        }
        log.check_end().map_err(damaged)?;
        Ok(false)
    }
}

columns! {
    struct TopOfBookColumns(tick: &TopOfBook) {
        symbol: UInt32Builder = append_value(tick.symbol.0),
        bid: Decimals = push(tick.bid.0),
        bid_quantity: Decimals = push(tick.bid_quantity.0),
        ask: Decimals = push(tick.ask.0),
        ask_quantity: Decimals = push(tick.ask_quantity.0),
        event_time: Nullable<Times> = push_known(nonzero(tick.event_ns)),
        wire_age_ns: UInt32Builder = append_value(tick.wire_age_ns),
    }
}

impl SelectiveColumns for TopOfBookColumns {
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool {
        let RecordedContent::TopOfBook(tick) = content else { return false };
        self.push(tick);
        true
    }
}

columns! {
    struct TradeColumns(trade: &Trade) {
        symbol: UInt32Builder = append_value(trade.symbol.0),
        price: Decimals = push(trade.price.0),
        quantity: Decimals = push(trade.quantity.0),
        aggressor: CodeColumn<Side> = push(Some(trade.aggressor)),
        trade_id: UInt64Builder = append_value(trade.trade_id),
        event_time: Nullable<Times> = push_known(nonzero(trade.event_ns)),
    }
}

impl SelectiveColumns for TradeColumns {
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool {
        let RecordedContent::Trade(trade) = content else { return false };
        self.push(trade);
        true
    }
}

columns! {
    struct BookLevelColumns(level: &BookLevel) {
        symbol: UInt32Builder = append_value(level.symbol.0),
        side: CodeColumn<Side> = push(Some(level.side)),
        price: Decimals = push(level.price.0),
        quantity: Decimals = push(level.quantity.0),
        flags: UInt8Builder = append_value(level.flags),
        exchange_sequence: UInt64Builder = append_value(level.sequence),
        event_time: Nullable<Times> = push_known(nonzero(level.event_ns)),
        wire_age_ns: UInt32Builder = append_value(level.wire_age_ns),
    }
}

impl SelectiveColumns for BookLevelColumns {
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool {
        let RecordedContent::BookLevel(level) = content else { return false };
        self.push(level);
        true
    }
}

columns! {
    struct FeedStatusColumns(status: &FeedStatus) {
        condition: CodeColumn<FeedCondition> = push(Some(status.condition)),
        symbol: Nullable<UInt32Builder> = append_option(symbol_of(status)),
        connection: UInt8Builder = append_value(status.connection),
        value: Int64Builder = append_value(status.value),
        expected: UInt64Builder = append_value(status.expected),
        found: UInt64Builder = append_value(status.found),
        event_time: Nullable<Times> = push_known(nonzero(status.event_ns)),
    }
}

impl SelectiveColumns for FeedStatusColumns {
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool {
        let RecordedContent::FeedStatus(status) = content else { return false };
        self.push(status);
        true
    }
}

/// Returns the instrument of an event; None if the event concerns all.
fn symbol_of(status: &FeedStatus) -> Option<u32> {
    (status.symbol != FeedStatus::ALL_SYMBOLS).then_some(status.symbol.0)
}

columns! {
    struct MessageColumns {
        kind: UInt8Builder,
        payload: BinaryBuilder,
    }
}

impl SelectiveColumns for MessageColumns {
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool {
        let RecordedContent::Other { kind, payload } = content else { return false };
        self.kind.append_value(*kind);
        self.payload.append_value(payload);
        true
    }
}

columns! {
    struct GapColumns {
        missed: Nullable<UInt64Builder>,
    }
}

impl SelectiveColumns for GapColumns {
    fn accept(&mut self, content: &RecordedContent<'_>) -> bool {
        let RecordedContent::Gap(gap) = content else { return false };
        self.missed.append_option(match gap {
            Gap::Missed(missed) => Some(*missed),
            Gap::Reconnected => None,
        });
        true
    }
}
