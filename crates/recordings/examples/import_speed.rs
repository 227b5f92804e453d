//! Measures how fast files of market data are read, by one thread: each format, or those that are named.
//!
//! ```text
//! cargo run --release -p tickpath-recordings --example import_speed -- MB [FORMAT…]
//! ```
//! A file of about this size is made first, in the folder of temporary files; the figure is for its uncompressed bytes.
//! Only the file of `npz` is compressed.

use std::error::Error;
use std::ffi::c_char;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use dbn::encode::{DbnEncoder, EncodeRecord};
use dbn::{BidAskPair, Mbp1Msg, Metadata, RecordHeader, SType, Schema, SymbolMappingMsg, rtype};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Price, Quantity, TopOfBook};
use tickpath_recordings::{DataFormat, Exporter, MarketFile, MarketMessage};

const DEFAULT_MB: u64 = 200;
const BYTES_PER_MB: u64 = 1_000_000;
/// Formats that are measured if none is named.
const FORMATS: [DataFormat; 8] = [
    DataFormat::TardisQuotes,
    DataFormat::TardisTrades,
    DataFormat::TardisBook,
    DataFormat::BinanceTrades,
    DataFormat::BinanceAggTrades,
    DataFormat::BinanceBookTicker,
    DataFormat::Npz,
    DataFormat::Dbn,
];
/// Bytes of the two events of a best bid and offer, and of a record.
const EVENTS_BYTES: u64 = 128;
const RECORD_BYTES: u64 = size_of::<Mbp1Msg>() as u64;
const INSTRUMENT: u32 = 5_482;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let megabytes = arguments.next().map_or(Ok(DEFAULT_MB), |text| text.parse())?;
    let named = arguments.map(|name| name.parse::<DataFormat>()).collect::<Result<Vec<_>, _>>()?;
    let formats = if named.is_empty() { FORMATS.to_vec() } else { named };
    for format in formats {
        measure(format, megabytes * BYTES_PER_MB)?;
    }
    Ok(())
}

fn measure(format: DataFormat, max_bytes: u64) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(if format == DataFormat::Npz { "btcusdt.npz" } else { "BTCUSDT-2024-01-01.csv" });
    let bytes = match format {
        DataFormat::Npz => write_npz(&path, max_bytes)?,
        DataFormat::Dbn => write_dbn(&path, max_bytes)?,
        _ => write_text(BufWriter::new(File::create(&path)?), format, max_bytes)?,
    };
    let clock = HostClock::get()?;
    let begin = clock.ticks();
    let mut latest_ns = 0;
    let counts = MarketFile::open(&path, Some(format))?.read(&mut |utc_ns, _, _| {
        latest_ns = utc_ns;
        ControlFlow::Continue(())
    })?;
    let seconds = clock.ns_between(begin, clock.ticks()) as f64 / 1e9;
    let (megabytes, rows) = (bytes as f64 / BYTES_PER_MB as f64, counts.rows as f64 / 1e6);
    let (rate, row_rate) = (megabytes / seconds, rows / seconds);
    println!("{format}: {megabytes:.0} MB in {seconds:.3} s: {rate:.0} MB/s, {row_rate:.1} M rows/s");
    println!("    {counts}; the last at {latest_ns}");
    Ok(())
}

/// Numbers of the rows, different from row to row.
#[derive(Default)]
struct RowNumbers {
    row: u64,
    us: u64,
    /// Price in tenths above 61,800, and quantity in lots.
    tenths: u64,
    lots: u64,
    step: u64,
}

impl RowNumbers {
    fn new() -> Self {
        Self { us: 1_704_067_200_000_000, ..Self::default() }
    }

    fn advance(&mut self) {
        self.row += 1;
        self.us += 350 + self.step % 97;
        self.step = self.step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.tenths, self.lots) = (self.step >> 54, self.step >> 48);
    }

    /// Returns the line of a row.
    fn line(&self, format: DataFormat) -> String {
        let Self { row, us, tenths, lots, .. } = *self;
        let price = format!("{}.{}", 61_800 + tenths / 10, tenths % 10);
        let offer = format!("{}.{}", 61_800 + tenths / 10, tenths % 10 + 1);
        let [quantity, other] = [format!("{}.{:03}", lots % 40, lots % 1_000), format!("0.{:03}", lots % 997)];
        let (received, ms) = (us + 2_900, us / 1_000);
        let common = format!("binance-futures,BTCUSDT,{us},{received}");
        let is_even = row.is_multiple_of(2);
        match format {
            DataFormat::TardisTrades => {
                let side = if is_even { "buy" } else { "sell" };
                format!("{common},{},{side},{price},{quantity}\n", 5_266_583_935 + row)
            }
            DataFormat::TardisBook => {
                let side = if is_even { "bid" } else { "ask" };
                format!("{common},false,{side},{price},{quantity}\n")
            }
            DataFormat::BinanceTrades => {
                format!("{},{price},{quantity},123.45,{ms},{is_even}\n", 5_266_583_935 + row)
            }
            DataFormat::BinanceAggTrades => {
                format!("{row},{price},{quantity},{row},{row},{ms},{is_even}\n")
            }
            DataFormat::BinanceBookTicker => {
                format!("{},{price},{quantity},{offer},{other},{ms},{ms}\n", 5_123_107_839_020 + row)
            }
            _ => format!("{common},{quantity},{offer},{price},{other}\n"),
        }
    }

    fn top(&self) -> TopOfBook {
        let units = |tenths: u64| (61_800 * 10 + tenths).cast_signed() * 10_000_000;
        TopOfBook {
            bid: Price(units(self.tenths)),
            bid_quantity: Quantity((self.lots % 1_000 + 1).cast_signed() * 100_000),
            ask: Price(units(self.tenths + 1)),
            ask_quantity: Quantity((self.lots % 997 + 1).cast_signed() * 100_000),
            event_ns: self.us * 1_000,
            ..TopOfBook::default()
        }
    }
}

/// Writes rows until the file has about this many bytes; returns the number of bytes.
fn write_text(mut out: impl Write, format: DataFormat, max_bytes: u64) -> io::Result<u64> {
    let header = match format {
        DataFormat::TardisTrades => "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n",
        DataFormat::TardisBook => "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n",
        DataFormat::BinanceTrades | DataFormat::BinanceAggTrades | DataFormat::BinanceBookTicker => "",
        _ => "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n",
    };
    out.write_all(header.as_bytes())?;
    let (mut bytes, mut numbers) = (header.len() as u64, RowNumbers::new());
    while bytes < max_bytes {
        numbers.advance();
        let line = numbers.line(format);
        out.write_all(line.as_bytes())?;
        bytes += line.len() as u64;
    }
    out.flush()?;
    Ok(bytes)
}

/// Writes an archive of best bids and offers; returns the number of bytes of its array.
fn write_npz(path: &Path, max_bytes: u64) -> Result<u64, Box<dyn Error>> {
    let (mut exporter, mut numbers) = (Exporter::new(path, None)?, RowNumbers::new());
    let rows = max_bytes / EVENTS_BYTES;
    for _ in 0..rows {
        numbers.advance();
        exporter.write((numbers.us + 2_900) * 1_000, &MarketMessage::Top(numbers.top()))?;
    }
    exporter.finish()?;
    Ok(rows * EVENTS_BYTES)
}

/// Writes records of best bids and offers; returns the number of their bytes.
fn write_dbn(path: &Path, max_bytes: u64) -> Result<u64, Box<dyn Error>> {
    let mut numbers = RowNumbers::new();
    let builder = Metadata::builder().dataset("GLBX.MDP3").schema(Some(Schema::Mbp1)).start(numbers.us * 1_000);
    let metadata = builder.stype_in(Some(SType::RawSymbol)).stype_out(SType::InstrumentId).build();
    let mut encoder = DbnEncoder::new(BufWriter::new(File::create(path)?), &metadata)?;
    let (name, kind) = ("ESH4", SType::RawSymbol);
    encoder.encode_record(&SymbolMappingMsg::new(INSTRUMENT, 0, kind, name, kind, name, 0, u64::MAX - 1)?)?;
    let rows = max_bytes / RECORD_BYTES;
    for _ in 0..rows {
        numbers.advance();
        let top = numbers.top();
        let (bid_px, ask_px) = (top.bid.0 * 10, top.ask.0 * 10);
        let level = BidAskPair { bid_px, ask_px, bid_sz: 2, ask_sz: 5, bid_ct: 1, ask_ct: 1 };
        encoder.encode_record(&Mbp1Msg {
            hd: RecordHeader::new::<Mbp1Msg>(rtype::MBP_1, 1, INSTRUMENT, top.event_ns),
            price: bid_px,
            size: 1,
            action: b'A' as c_char,
            side: b'B' as c_char,
            ts_recv: top.event_ns + 2_900_000,
            levels: [level],
            ..Mbp1Msg::default()
        })?;
    }
    encoder.flush()?;
    Ok(rows * RECORD_BYTES)
}
