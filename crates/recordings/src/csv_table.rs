//! Tables as CSV, in the form that [`tick_table`](crate::tick_table) reads.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tickpath_market::{BookLevel, DECIMALS, Side, TopOfBook, Trade, decimal_text};

use crate::message::MarketMessage;
use crate::table_kind::{SinkFault, SinkLoss, TableKind, TableSink};

/// Writer of a table as CSV, plain or gzip.
pub(crate) struct CsvTable {
    output: CsvOutput,
}

enum CsvOutput {
    Plain(BufWriter<File>),
    Gzip(Box<BufWriter<GzEncoder<File>>>),
}

impl CsvTable {
    /// Begins a table with the names of its columns.
    pub fn create(file: File, kind: TableKind, is_compressed: bool) -> io::Result<Self> {
        let mut output = if is_compressed {
            CsvOutput::Gzip(Box::new(BufWriter::new(GzEncoder::new(file, Compression::default()))))
        } else {
            CsvOutput::Plain(BufWriter::new(file))
        };
        let names = match kind {
            TableKind::Quotes => "utc_ns,symbol,bid,bid_quantity,ask,ask_quantity,event_ns,wire_age_ns",
            TableKind::Trades => "utc_ns,symbol,price,quantity,aggressor,trade_id,event_ns",
            TableKind::Book => "utc_ns,symbol,side,price,quantity,snapshot,last,sequence,event_ns,wire_age_ns",
        };
        writeln!(output.writer(), "{names}")?;
        Ok(Self { output })
    }
}

impl CsvOutput {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(output) => output,
            Self::Gzip(output) => output,
        }
    }
}

impl TableSink for CsvTable {
    fn write(&mut self, utc_ns: u64, message: &MarketMessage) -> Result<(), SinkFault> {
        let (out, symbol) = (self.output.writer(), message.symbol());
        match message {
            MarketMessage::Top(top) => {
                let TopOfBook { event_ns, wire_age_ns, .. } = top;
                let prices = [top.bid.0, top.bid_quantity.0, top.ask.0, top.ask_quantity.0].map(decimal);
                writeln!(out, "{utc_ns},{symbol},{},{event_ns},{wire_age_ns}", prices.join(","))?;
            }
            MarketMessage::Trade(trade) => {
                let Trade { trade_id, event_ns, .. } = trade;
                let (price, quantity) = (decimal(trade.price.0), decimal(trade.quantity.0));
                let aggressor = code_text(trade.aggressor, "buy", "sell");
                writeln!(out, "{utc_ns},{symbol},{price},{quantity},{aggressor},{trade_id},{event_ns}")?;
            }
            MarketMessage::Level(level) => {
                let BookLevel { sequence, event_ns, wire_age_ns, .. } = level;
                let (price, quantity) = (decimal(level.price.0), decimal(level.quantity.0));
                let side = code_text(level.side, "bid", "ask");
                let [snapshot, last] =
                    [BookLevel::SNAPSHOT, BookLevel::LAST].map(|flag| u8::from(level.flags & flag != 0));
                writeln!(
                    out,
                    "{utc_ns},{symbol},{side},{price},{quantity},{snapshot},{last},{sequence},{event_ns},{wire_age_ns}"
                )?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<SinkLoss, SinkFault> {
        match self.output {
            CsvOutput::Plain(mut output) => output.flush()?,
            CsvOutput::Gzip(output) => {
                let encoder = output.into_inner().map_err(io::IntoInnerError::into_error)?;
                encoder.finish()?;
            }
        }
        Ok(SinkLoss::default())
    }
}

fn decimal(units: i64) -> String {
    decimal_text(units.into(), DECIMALS)
}

/// Returns the text of a side's code; empty if no side has it.
fn code_text(code: u8, buy: &'static str, sell: &'static str) -> &'static str {
    match Side::from_code(code) {
        Some(Side::Buy) => buy,
        Some(Side::Sell) => sell,
        None => "",
    }
}
