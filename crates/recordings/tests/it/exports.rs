//! Exported tables: an import gives the messages back.

use std::fs::{self, File};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use tickpath_market::{BookLevel, Price, Quantity, SymbolId, TopOfBook, Trade};
use tickpath_recordings::{ExportError, ExportedFile, Exporter, MarketMessage, TableKind};

use crate::files::{folder, read_path};

const NS: u64 = 1_704_067_200_000_000_000;
/// The largest price or quantity that comes back from a floating point number.
const MAX_FLOATING: i64 = 1 << 50;

fn top(max: i64) -> impl Strategy<Value = MarketMessage> {
    ((1..max, 0..max, 1..max, 0..max), 1_u64.., any::<u32>()).prop_map(
        |((bid, bid_quantity, ask, ask_quantity), event_ns, wire_age_ns)| {
            MarketMessage::Top(TopOfBook {
                bid: Price(bid),
                bid_quantity: Quantity(bid_quantity),
                ask: Price(ask),
                ask_quantity: Quantity(ask_quantity),
                event_ns,
                wire_age_ns,
                ..TopOfBook::default()
            })
        },
    )
}

fn trade(max: i64) -> impl Strategy<Value = MarketMessage> {
    (1..max, 0..max, any::<u64>(), 1_u64.., 0..3_u8).prop_map(|(price, quantity, trade_id, event_ns, aggressor)| {
        let (price, quantity) = (Price(price), Quantity(quantity));
        MarketMessage::Trade(Trade { price, quantity, trade_id, event_ns, aggressor, ..Trade::default() })
    })
}

fn level(max: i64) -> impl Strategy<Value = MarketMessage> {
    ((1..max, 0..max), (any::<u64>(), 1_u64.., any::<u32>()), 0..3_u8, 0..4_u8).prop_map(
        |((price, quantity), (sequence, event_ns, wire_age_ns), side, flags)| {
            // A level of no side changes nothing.
            let (price, quantity) = if side == 0 { (0, 0) } else { (price, quantity) };
            let (price, quantity) = (Price(price), Quantity(quantity));
            let level =
                BookLevel { price, quantity, event_ns, sequence, wire_age_ns, side, flags, ..BookLevel::default() };
            MarketMessage::Level(level)
        },
    )
}

/// Writes messages of instrument 7 to a file, a nanosecond apart.
fn export(path: &Path, kind: Option<TableKind>, messages: &[MarketMessage]) -> Result<Vec<ExportedFile>, ExportError> {
    let mut exporter = Exporter::new(path, kind)?;
    for (utc_ns, message) in (NS..).zip(messages) {
        let mut message = *message;
        message.set_symbol(SymbolId(7));
        if exporter.takes(&message) {
            exporter.write(utc_ns, &message)?;
        }
    }
    exporter.finish()
}

proptest! {
    #[test]
    fn tables_come_back_as_they_were(
        messages in proptest::collection::vec(prop_oneof![top(i64::MAX), trade(i64::MAX), level(i64::MAX)], 1..60),
        ending in proptest::sample::select(vec!["csv", "csv.gz"]),
    ) {
        let folder = folder();
        let files = export(&folder.path().join(format!("all.{ending}")), None, &messages).unwrap();
        let of_kind = |kind: TableKind| -> Vec<(u64, MarketMessage)> {
            (NS..).zip(messages.iter().copied()).filter(|(_, message)| TableKind::of(message) == kind).collect()
        };
        let expected: Vec<_> = TableKind::ALL.into_iter().map(of_kind).filter(|table| !table.is_empty()).collect();
        prop_assert_eq!(files.len(), expected.len());
        for (file, expected) in files.iter().zip(expected) {
            let read = read_path(&file.path, None).unwrap();
            prop_assert!(read.messages.iter().all(|(_, name, _)| name == "7"));
            prop_assert_eq!(read.counts.bad, 0, "{}", &read.counts);
            prop_assert_eq!(file.messages as usize, expected.len());
            let found: Vec<_> = read.messages.iter().map(|(utc_ns, _, message)| (*utc_ns, *message)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn events_come_back_as_they_were(
        messages in proptest::collection::vec(
            prop_oneof![top(MAX_FLOATING), trade(MAX_FLOATING), level(MAX_FLOATING)], 1..60
        ),
    ) {
        // Events of one message have one time, and a side; an age has no place in them.
        let messages: Vec<MarketMessage> = messages.into_iter().map(|message| match message {
            MarketMessage::Top(top) => {
                MarketMessage::Top(TopOfBook { wire_age_ns: 0, event_ns: top.event_ns >> 1, ..top })
            }
            MarketMessage::Trade(trade) => MarketMessage::Trade(Trade { event_ns: trade.event_ns >> 1, ..trade }),
            MarketMessage::Level(level) => MarketMessage::Level(BookLevel {
                price: level.price.max(Price(1)),
                side: level.side.max(1),
                flags: level.flags | BookLevel::LAST,
                event_ns: level.event_ns >> 1,
                wire_age_ns: 0,
                ..level
            }),
        }).collect();
        let folder = folder();
        let path = folder.path().join("btc.npz");
        let files = export(&path, None, &messages).unwrap();
        prop_assert_eq!((files[0].messages as usize, files[0].inexact, files[0].left_out), (messages.len(), 0, 0));
        let read = read_path(&path, None).unwrap();
        let times: Vec<u64> = (NS..).take(messages.len()).collect();
        prop_assert_eq!(read.times(), times);
        // An unknown time of the exchange becomes the receive time.
        let expected = (NS..).zip(&messages).map(|(utc_ns, message)| with_event_ns(*message, utc_ns));
        let expected: Vec<MarketMessage> = expected.collect();
        prop_assert_eq!(read.plain(), expected);
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// Returns the message with this time of the exchange, if it has none.
fn with_event_ns(message: MarketMessage, utc_ns: u64) -> MarketMessage {
    let known = |event_ns| if event_ns == 0 { utc_ns } else { event_ns };
    match message {
        MarketMessage::Top(top) => MarketMessage::Top(TopOfBook { event_ns: known(top.event_ns), ..top }),
        MarketMessage::Trade(trade) => MarketMessage::Trade(Trade { event_ns: known(trade.event_ns), ..trade }),
        MarketMessage::Level(level) => MarketMessage::Level(BookLevel { event_ns: known(level.event_ns), ..level }),
    }
}

/// Reads a Parquet file.
fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

#[test]
fn parquet_holds_every_decimal_and_null_for_the_unknown() {
    let folder = folder();
    let tops: Vec<MarketMessage> = (0..40_000)
        .map(|number| {
            let (bid, ask_quantity) = (Price(i64::MAX - number), Quantity(number));
            MarketMessage::Top(TopOfBook { bid, ask_quantity, event_ns: number as u64, ..TopOfBook::default() })
        })
        .collect();
    let files = export(&folder.path().join("all.parquet"), None, &tops).unwrap();
    assert_eq!(files[0].path, folder.path().join("all.quotes.parquet"));
    let (mut bids, mut known, mut times) = (Vec::new(), 0, Vec::new());
    for batch in batches(&files[0].path) {
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        bids.extend(column("bid").as_primitive::<Decimal128Type>().values().iter().copied());
        times.extend(column("utc_ns").as_primitive::<Int64Type>().values().iter().copied());
        known += column("event_ns").len() - column("event_ns").null_count();
        assert!(column("symbol").as_primitive::<UInt32Type>().values().iter().all(|symbol| *symbol == 7));
    }
    assert_eq!(bids, (0..40_000).map(|number| i128::from(i64::MAX - number)).collect::<Vec<_>>());
    assert_eq!(times, (0..40_000).map(|number| NS as i64 + number).collect::<Vec<_>>());
    assert_eq!(known, 39_999);

    let level = BookLevel { price: Price(1), side: 2, flags: BookLevel::SNAPSHOT, ..BookLevel::default() };
    let trade = Trade { price: Price(1), ..Trade::default() };
    let messages = [MarketMessage::Level(level), MarketMessage::Trade(trade)];
    let files = export(&folder.path().join("rest.parquet"), None, &messages).unwrap();
    let [trades, book] = [&files[0].path, &files[1].path].map(|path| batches(path)[0].clone());
    assert_eq!(trades.column_by_name("aggressor").unwrap().null_count(), 1);
    assert_eq!(book.column_by_name("side").unwrap().as_string::<i32>().value(0), "ask");
    let flags = ["snapshot", "last"].map(|name| book.column_by_name(name).unwrap().as_boolean().value(0));
    assert_eq!(flags, [true, false]);
}

#[test]
fn files_are_named_by_their_kinds_and_none_is_replaced() {
    let folder = folder();
    let messages = [MarketMessage::Top(TopOfBook::default()), MarketMessage::Trade(Trade::default())];
    let path = folder.path().join("one.csv");
    let files = export(&path, Some(TableKind::Trades), &messages).unwrap();
    assert_eq!((files.len(), &files[0].path, files[0].messages), (1, &path, 1));
    assert!(matches!(export(&path, Some(TableKind::Quotes), &messages), Err(ExportError::Exists(_))));
    assert_eq!(export(&path, None, &messages).unwrap().len(), 2);
    assert!(matches!(export(&path, None, &messages), Err(ExportError::Exists(_))));
    assert!(export(&folder.path().join("none.csv"), Some(TableKind::Book), &messages).unwrap().is_empty());
    for name in ["one", ".csv", "one.txt", "one.gz"] {
        assert!(matches!(export(&folder.path().join(name), None, &messages), Err(ExportError::Ending(_))), "{name}");
    }
    let error = export(&folder.path().join("missing/one.csv"), None, &messages).unwrap_err();
    assert!(matches!(error, ExportError::Write(..)) && !error.is_usage(), "{error}");
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["one.csv", "one.quotes.csv", "one.trades.csv"]);
    for kind in TableKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("books".parse::<TableKind>().is_err());
}
