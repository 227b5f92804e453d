//! Tables as Parquet, written through Arrow a row group at a time.
//!
//! | columns | Arrow type |
//! |---|---|
//! | prices and quantities | `decimal128(19, 8)`, which takes every one of them |
//! | times | 64-bit integers, nanoseconds since the Unix epoch; null if unknown |
//! | sides | text; null if unknown |
//! | flags of a level | Boolean |
//! | numbers | unsigned integers, as wide as ours |

use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tickpath_market::{BookLevel, DECIMALS, Side, TopOfBook, Trade};

use crate::message::MarketMessage;
use crate::table_kind::{SinkFault, SinkLoss, TableKind, TableSink};

/// Rows that are passed to the writer together.
const BATCH_ROWS: usize = 1 << 14;
/// Rows of a row group, which is in memory until it is written.
const GROUP_ROWS: usize = 1 << 18;
/// Digits of which 64 bits take every number.
const DIGITS: u8 = 19;

/// Writer of a table as Parquet.
pub(crate) struct ParquetTable {
    writer: ArrowWriter<File>,
    rows: Rows,
}

/// Rows that the writer does not have yet, each with its receive time.
enum Rows {
    Quotes(Vec<(u64, TopOfBook)>),
    Trades(Vec<(u64, Trade)>),
    Book(Vec<(u64, BookLevel)>),
}

impl ParquetTable {
    /// Begins a table.
    pub fn create(file: File, kind: TableKind) -> io::Result<Self> {
        let mut rows = match kind {
            TableKind::Quotes => Rows::Quotes(Vec::new()),
            TableKind::Trades => Rows::Trades(Vec::new()),
            TableKind::Book => Rows::Book(Vec::new()),
        };
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(file, rows.take().schema(), Some(properties)).map_err(io::Error::other)?;
        Ok(Self { writer, rows })
    }

    fn write_batch(&mut self) -> Result<(), SinkFault> {
        let batch = self.rows.take();
        self.writer.write(&batch).map_err(|error| SinkFault::Io(io::Error::other(error)))
    }
}

impl TableSink for ParquetTable {
    fn write(&mut self, utc_ns: u64, message: &MarketMessage) -> Result<(), SinkFault> {
        match (&mut self.rows, message) {
            (Rows::Quotes(rows), MarketMessage::Top(top)) => rows.push((utc_ns, *top)),
            (Rows::Trades(rows), MarketMessage::Trade(trade)) => rows.push((utc_ns, *trade)),
            (Rows::Book(rows), MarketMessage::Level(level)) => rows.push((utc_ns, *level)),
            _ => unreachable!("a table has one kind of message"),
        }
        if self.rows.len() < BATCH_ROWS { Ok(()) } else { self.write_batch() }
    }

    fn finish(mut self: Box<Self>) -> Result<SinkLoss, SinkFault> {
        self.write_batch()?;
        self.writer.close().map_err(|error| SinkFault::Io(io::Error::other(error)))?;
        Ok(SinkLoss::default())
    }
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Self::Quotes(rows) => rows.len(),
            Self::Trades(rows) => rows.len(),
            Self::Book(rows) => rows.len(),
        }
    }

    /// Takes the rows out as a batch of columns.
    fn take(&mut self) -> RecordBatch {
        let columns = match self {
            Self::Quotes(rows) => quotes(&std::mem::take(rows)),
            Self::Trades(rows) => trades(&std::mem::take(rows)),
            Self::Book(rows) => book(&std::mem::take(rows)),
        };
        RecordBatch::try_from_iter_with_nullable(columns).expect("the columns have one length")
    }
}

/// A column: its name, its values, and whether values can be unknown.
type Column = (&'static str, ArrayRef, bool);

fn quotes(rows: &[(u64, TopOfBook)]) -> Vec<Column> {
    let (ages, events) = (rows.iter().map(|row| row.1.wire_age_ns), rows.iter().map(|row| row.1.event_ns));
    vec![
        times(rows.iter().map(|row| row.0)),
        symbols(rows.iter().map(|row| row.1.symbol.0)),
        decimals("bid", rows.iter().map(|row| row.1.bid.0)),
        decimals("bid_quantity", rows.iter().map(|row| row.1.bid_quantity.0)),
        decimals("ask", rows.iter().map(|row| row.1.ask.0)),
        decimals("ask_quantity", rows.iter().map(|row| row.1.ask_quantity.0)),
        event_times(events),
        column("wire_age_ns", UInt32Array::from_iter_values(ages), false),
    ]
}

fn trades(rows: &[(u64, Trade)]) -> Vec<Column> {
    let (ids, takers) = (rows.iter().map(|row| row.1.trade_id), rows.iter().map(|row| row.1.aggressor));
    vec![
        times(rows.iter().map(|row| row.0)),
        symbols(rows.iter().map(|row| row.1.symbol.0)),
        decimals("price", rows.iter().map(|row| row.1.price.0)),
        decimals("quantity", rows.iter().map(|row| row.1.quantity.0)),
        sides("aggressor", takers, ["buy", "sell"]),
        column("trade_id", UInt64Array::from_iter_values(ids), false),
        event_times(rows.iter().map(|row| row.1.event_ns)),
    ]
}

fn book(rows: &[(u64, BookLevel)]) -> Vec<Column> {
    let (ages, sequences) = (rows.iter().map(|row| row.1.wire_age_ns), rows.iter().map(|row| row.1.sequence));
    let flags = |flag| rows.iter().map(|row| row.1.flags & flag != 0).collect::<Vec<_>>();
    vec![
        times(rows.iter().map(|row| row.0)),
        symbols(rows.iter().map(|row| row.1.symbol.0)),
        sides("side", rows.iter().map(|row| row.1.side), ["bid", "ask"]),
        decimals("price", rows.iter().map(|row| row.1.price.0)),
        decimals("quantity", rows.iter().map(|row| row.1.quantity.0)),
        column("snapshot", BooleanArray::from(flags(BookLevel::SNAPSHOT)), false),
        column("last", BooleanArray::from(flags(BookLevel::LAST)), false),
        column("sequence", UInt64Array::from_iter_values(sequences), false),
        event_times(rows.iter().map(|row| row.1.event_ns)),
        column("wire_age_ns", UInt32Array::from_iter_values(ages), false),
    ]
}

fn times(values: impl Iterator<Item = u64>) -> Column {
    column("utc_ns", Int64Array::from_iter_values(values.map(u64::cast_signed)), false)
}

fn event_times(values: impl Iterator<Item = u64>) -> Column {
    let known = values.map(|ns| (ns != 0).then_some(ns.cast_signed()));
    column("event_ns", known.collect::<Int64Array>(), true)
}

fn symbols(values: impl Iterator<Item = u32>) -> Column {
    column("symbol", UInt32Array::from_iter_values(values), false)
}

fn sides(name: &'static str, codes: impl Iterator<Item = u8>, [buy, sell]: [&'static str; 2]) -> Column {
    let texts = codes.map(|code| match Side::from_code(code) {
        Some(Side::Buy) => Some(buy),
        Some(Side::Sell) => Some(sell),
        None => None,
    });
    column(name, texts.collect::<StringArray>(), true)
}

fn decimals(name: &'static str, units: impl Iterator<Item = i64>) -> Column {
    let values = Decimal128Array::from_iter_values(units.map(i128::from));
    let values = values.with_precision_and_scale(DIGITS, DECIMALS as i8).expect("Arrow has decimals of 38 digits");
    column(name, values, false)
}

fn column(name: &'static str, values: impl Array + 'static, is_nullable: bool) -> Column {
    (name, Arc::new(values), is_nullable)
}
