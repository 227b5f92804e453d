//! Databento's binary encoding, DBN, plain or compressed with zstd.
//!
//! | schema | messages |
//! |---|---|
//! | `trades` | a trade |
//! | `mbp-1`, `tbbo` | a best bid and offer, and a trade where the record is one |
//! | `bbo-1s`, `bbo-1m` | a best bid and offer |
//! | any other | none: its records are counted by their name |
//!
//! The receive time is `ts_recv`. An instrument has the name to which the file maps its number at that time, else the
//! number itself.

use std::io::{self, BufRead, ErrorKind, Read};

use dbn::decode::{DbnDecoder, DbnMetadata, DynReader};
use dbn::{
    Action, BboMsg, BidAskPair, Mbp1Msg, RType, RecordRef, Side as DbnSide, TradeMsg, TsSymbolMap, UNDEF_PRICE,
    UNDEF_TIMESTAMP, VersionUpgradePolicy,
};
use tickpath_market::{Price, Quantity, Side, TopOfBook, Trade};

use crate::decimal::positive_price;
use crate::intake::Intake;
use crate::message::MarketMessage;
use crate::read_fault::ReadFault;

/// Bytes before the metadata: `DBN`, the version, and the metadata's length.
const PRELUDE_BYTES: usize = 8;
/// Units of a price in the file that make one of ours.
const PRICE_UNITS: i64 = 10;

/// Reads a file to its end.
pub(crate) fn read_dbn<R: BufRead>(input: R, intake: &mut Intake<'_>) -> Result<(), ReadFault> {
    let input = MeteredReader::new(DynReader::inferred_with_buffer(input)?);
    // The records that are read here are the same in each version, and as they are, they keep their length.
    let mut decoder = DbnDecoder::with_upgrade_policy(input, VersionUpgradePolicy::AsIs)?;
    // A live stream maps its numbers by records instead.
    let mut names = RecordNames::new(decoder.metadata().symbol_map().unwrap_or_default());
    let mut record_bytes = 0;
    while !intake.is_stopped()
        && let Some(record) = decoder.decode_ref()?
    {
        record_bytes += record.header().record_size() as u64;
        intake.begin_row();
        let read = read_record(record, &mut names, intake);
        intake.end_row(read);
    }
    // The decoder takes a record that is cut off for the end.
    let is_whole = decoder.get_ref().is_whole(record_bytes);
    intake.counts.truncated |= !intake.is_stopped() && !is_whole;
    Ok(())
}

fn read_record(record: RecordRef<'_>, names: &mut RecordNames, intake: &mut Intake<'_>) -> Result<(), String> {
    match record.header().rtype().map_err(text)? {
        RType::Mbp0 => {
            let trade: &TradeMsg = record.try_get().map_err(text)?;
            add_trade(trade.hd.instrument_id, trade_of(trade)?, names, intake)
        }
        RType::Mbp1 => {
            let quote: &Mbp1Msg = record.try_get().map_err(text)?;
            let event_ns = known_ns(quote.hd.ts_event);
            let utc_ns = receive_ns(quote.ts_recv, event_ns);
            let trade = match quote.action().map_err(text)? {
                Action::Trade => Some(trade_of_quote(quote)?),
                _ => None,
            };
            // A record of a trade has the book before it.
            let [level] = &quote.levels;
            add_top(quote.hd.instrument_id, utc_ns, event_ns, level, names, intake)?;
            trade.map_or(Ok(()), |trade| add_trade(quote.hd.instrument_id, trade, names, intake))
        }
        RType::Bbo1S | RType::Bbo1M => {
            let quote: &BboMsg = record.try_get().map_err(text)?;
            let event_ns = known_ns(quote.hd.ts_event);
            let utc_ns = receive_ns(quote.ts_recv, event_ns);
            let [level] = &quote.levels;
            add_top(quote.hd.instrument_id, utc_ns, event_ns, level, names, intake)
        }
        other => {
            if other == RType::SymbolMapping {
                names.symbols.on_record(record).map_err(text)?;
            }
            intake.counts.skip(other.as_str());
            Ok(())
        }
    }
}

fn trade_of(trade: &TradeMsg) -> Result<(u64, Trade), String> {
    let event_ns = known_ns(trade.hd.ts_event);
    let side = trade.side().map_err(text)?;
    Ok((receive_ns(trade.ts_recv, event_ns), new_trade(trade.price, trade.size, trade.sequence, event_ns, side)?))
}

fn trade_of_quote(quote: &Mbp1Msg) -> Result<(u64, Trade), String> {
    let event_ns = known_ns(quote.hd.ts_event);
    let side = quote.side().map_err(text)?;
    Ok((receive_ns(quote.ts_recv, event_ns), new_trade(quote.price, quote.size, quote.sequence, event_ns, side)?))
}

fn new_trade(price_units: i64, size: u32, sequence: u32, event_ns: u64, side: DbnSide) -> Result<Trade, String> {
    let aggressor = match side {
        DbnSide::Bid => Side::Buy.code(),
        DbnSide::Ask => Side::Sell.code(),
        DbnSide::None => 0,
    };
    let (price, quantity) = (price(price_units)?, quantity(size));
    Ok(Trade { price, quantity, trade_id: sequence.into(), event_ns, aggressor, ..Trade::default() })
}

fn add_trade(
    instrument: u32,
    (utc_ns, trade): (u64, Trade),
    names: &mut RecordNames,
    intake: &mut Intake<'_>,
) -> Result<(), String> {
    add(instrument, utc_ns, MarketMessage::Trade(trade), names, intake)
}

fn add_top(
    instrument: u32,
    utc_ns: u64,
    event_ns: u64,
    level: &BidAskPair,
    names: &mut RecordNames,
    intake: &mut Intake<'_>,
) -> Result<(), String> {
    if level.bid_px == UNDEF_PRICE || level.ask_px == UNDEF_PRICE {
        intake.counts.skip("one-sided quotes");
        return Ok(());
    }
    let top = TopOfBook {
        bid: price(level.bid_px)?,
        bid_quantity: quantity(level.bid_sz),
        ask: price(level.ask_px)?,
        ask_quantity: quantity(level.ask_sz),
        event_ns,
        ..TopOfBook::default()
    };
    add(instrument, utc_ns, MarketMessage::Top(top), names, intake)
}

fn add(
    instrument: u32,
    utc_ns: u64,
    message: MarketMessage,
    names: &mut RecordNames,
    intake: &mut Intake<'_>,
) -> Result<(), String> {
    let name = names.find(utc_ns, instrument);
    intake.add_named(utc_ns, name.as_bytes(), message)
}

fn price(units: i64) -> Result<Price, String> {
    if units % PRICE_UNITS != 0 {
        return Err(format!("the price {units} in units of 1e-9 has more than eight decimals"));
    }
    positive_price(units / PRICE_UNITS)
}

fn quantity(size: u32) -> Quantity {
    Quantity::from_whole(size.into())
}

/// Returns a time of the exchange; zero if it is unknown.
fn known_ns(ns: u64) -> u64 {
    if ns == UNDEF_TIMESTAMP { 0 } else { ns }
}

/// Returns the receive time; the exchange's own time if there is none.
fn receive_ns(receive_ns: u64, event_ns: u64) -> u64 {
    if receive_ns == UNDEF_TIMESTAMP { event_ns } else { receive_ns }
}

fn text(error: dbn::Error) -> String {
    error.to_string()
}

impl From<dbn::Error> for ReadFault {
    fn from(error: dbn::Error) -> Self {
        match error {
            dbn::Error::Io { source, .. } => Self::Io(source),
            other => Self::Form(other.to_string()),
        }
    }
}

/// Names of the instruments of records.
struct RecordNames {
    symbols: TsSymbolMap,
    /// The number without a name that was asked for last, as text.
    unnamed: (u32, String),
}

impl RecordNames {
    fn new(symbols: TsSymbolMap) -> Self {
        Self { symbols, unnamed: (0, "0".to_owned()) }
    }

    /// Returns the name to which the file maps a number at this time, else the number.
    fn find(&mut self, utc_ns: u64, instrument: u32) -> &str {
        match self.symbols.get_for_ts(utc_ns, instrument) {
            Some(name) => name,
            None => {
                if self.unnamed.0 != instrument {
                    self.unnamed = (instrument, instrument.to_string());
                }
                &self.unnamed.1
            }
        }
    }
}

/// Reader that counts its bytes, and notes where a compressed stream is cut off: the decoder ends there in silence.
struct MeteredReader<R> {
    input: R,
    bytes: u64,
    /// The first bytes, which hold the length of the metadata.
    prelude: Vec<u8>,
    is_cut: bool,
}

impl<R> MeteredReader<R> {
    fn new(input: R) -> Self {
        Self { input, bytes: 0, prelude: Vec::new(), is_cut: false }
    }

    /// Returns true if the bytes are those of the metadata and of records with this length together.
    fn is_whole(&self, record_bytes: u64) -> bool {
        let metadata_bytes = match self.prelude[..] {
            [_, _, _, _, a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => return false,
        };
        !self.is_cut && self.bytes == PRELUDE_BYTES as u64 + metadata_bytes + record_bytes
    }
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buffer) {
            Ok(count) => {
                let missing = PRELUDE_BYTES - self.prelude.len();
                self.prelude.extend_from_slice(&buffer[..count.min(missing)]);
                self.bytes += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.is_cut = true;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}
