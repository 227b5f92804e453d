//! Messages as events of hftbacktest, in a numpy archive with the member `data.npy`.
//!
//! The header of an array holds the number of its rows, which is known at the end: until then the rows lie in a file of
//! their own beside the archive.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use tickpath_market::{BookLevel, SCALE, Side, TopOfBook, Trade};
use zerocopy::IntoBytes;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::hft_events::{BEST, BUY, CLEAR, DEPTH, EXCHANGE, HftEvent, LOCAL, SELL, SNAPSHOT, TRADE};
use crate::message::MarketMessage;
use crate::npy;
use crate::table_kind::{SinkFault, SinkLoss, TableSink};

/// Writer of a numpy archive.
pub(crate) struct NpzFile {
    archive: File,
    rows: BufWriter<File>,
    rows_path: PathBuf,
    events: u64,
    /// The instrument of the first message.
    symbol: Option<u32>,
    /// The last level belongs to a snapshot that goes further.
    in_snapshot: bool,
    loss: SinkLoss,
}

impl NpzFile {
    /// Begins an archive; `path` is where it is written.
    pub fn create(archive: File, path: &Path) -> io::Result<Self> {
        let rows_path = path.with_extension("rows");
        let rows = BufWriter::new(File::create(&rows_path)?);
        Ok(Self { archive, rows, rows_path, events: 0, symbol: None, in_snapshot: false, loss: SinkLoss::default() })
    }

    fn write_top(&mut self, utc_ns: u64, top: &TopOfBook) -> io::Result<()> {
        let TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, .. } = *top;
        for (side, price, quantity) in [(BUY, bid.0, bid_quantity.0), (SELL, ask.0, ask_quantity.0)] {
            let (px, qty) = (self.value(price), self.value(quantity));
            self.put(utc_ns, event_ns, HftEvent { ev: BEST | side, px, qty, ..HftEvent::default() })?;
        }
        Ok(())
    }

    fn write_trade(&mut self, utc_ns: u64, trade: &Trade) -> io::Result<()> {
        let (px, qty) = (self.value(trade.price.0), self.value(trade.quantity.0));
        let (ev, order_id) = (TRADE | side_flag(trade.aggressor), trade.trade_id);
        self.put(utc_ns, trade.event_ns, HftEvent { ev, px, qty, order_id, ..HftEvent::default() })
    }

    fn write_level(&mut self, utc_ns: u64, level: &BookLevel) -> io::Result<()> {
        let is_first = level.flags & BookLevel::SNAPSHOT != 0;
        if is_first {
            self.in_snapshot = true;
            self.put(utc_ns, level.event_ns, HftEvent { ev: CLEAR, ..HftEvent::default() })?;
        }
        let (kind, side) = (if self.in_snapshot { SNAPSHOT } else { DEPTH }, side_flag(level.side));
        if level.flags & BookLevel::LAST != 0 {
            self.in_snapshot = false;
        }
        if side == 0 {
            self.loss.left_out += u64::from(!is_first);
            return Ok(());
        }
        let (px, qty) = (self.value(level.price.0), self.value(level.quantity.0));
        let (ev, order_id) = (kind | side, level.sequence);
        self.put(utc_ns, level.event_ns, HftEvent { ev, px, qty, order_id, ..HftEvent::default() })
    }

    /// Writes an event with its times; a time of the exchange that is unknown becomes the receive time.
    fn put(&mut self, utc_ns: u64, event_ns: u64, event: HftEvent) -> io::Result<()> {
        let exch_ts = if event_ns == 0 { utc_ns } else { event_ns }.cast_signed();
        let event = HftEvent { ev: event.ev | EXCHANGE | LOCAL, exch_ts, local_ts: utc_ns.cast_signed(), ..event };
        self.events += 1;
        self.rows.write_all(event.as_bytes())
    }

    /// Returns a price or a quantity as a floating point number, and counts the number that does not come back.
    fn value(&mut self, units: i64) -> f64 {
        let value = units as f64 / SCALE as f64;
        self.loss.inexact += u64::from((value * SCALE as f64).round() as i64 != units);
        value
    }
}

impl TableSink for NpzFile {
    fn write(&mut self, utc_ns: u64, message: &MarketMessage) -> Result<(), SinkFault> {
        let symbol = message.symbol().0;
        let first = *self.symbol.get_or_insert(symbol);
        if first != symbol {
            return Err(SinkFault::Instruments(first, symbol));
        }
        match message {
            MarketMessage::Top(top) => self.write_top(utc_ns, top)?,
            MarketMessage::Trade(trade) => self.write_trade(utc_ns, trade)?,
            MarketMessage::Level(level) => self.write_level(utc_ns, level)?,
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<SinkLoss, SinkFault> {
        self.rows.flush()?;
        let mut archive = ZipWriter::new(BufWriter::new(&self.archive));
        let options = SimpleFileOptions::default().large_file(true);
        archive.start_file("data.npy", options).map_err(io::Error::from)?;
        archive.write_all(&npy::header(self.events))?;
        io::copy(&mut BufReader::new(File::open(&self.rows_path)?), &mut archive)?;
        archive.finish().map_err(io::Error::from)?.flush()?;
        Ok(self.loss)
    }
}

impl Drop for NpzFile {
    fn drop(&mut self) {
        // A file that stays is replaced by the next export to this name.
        let _ = fs::remove_file(&self.rows_path);
    }
}

fn side_flag(code: u8) -> u64 {
    match Side::from_code(code) {
        Some(Side::Buy) => BUY,
        Some(Side::Sell) => SELL,
        None => 0,
    }
}
