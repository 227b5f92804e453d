//! The binary market data streams of the spot market: SBE, schema `stream_1_0.xml`.
//!
//! ```text
//!   header    blockLength u16, templateId u16, schemaId u16, version u16              all little-endian
//!   10000     eventTime i64, transactTime i64, priceExponent i8, qtyExponent i8
//!             trades (u16 blockLength, u32 count): id i64, price i64, qty i64, isBuyerMaker u8; symbol
//!   10001     eventTime, bookUpdateId i64, exponents, bid price and quantity, offer price and quantity i64; symbol
//!   10002     eventTime, bookUpdateId, exponents; bids, asks; symbol
//!   10003     eventTime, firstBookUpdateId, lastBookUpdateId, exponents; bids, asks; symbol
//!   levels    (u16 blockLength, u16 count): price i64, qty i64
//!   symbol    u8 length, UTF-8
//! ```
//!
//! Later versions append fields to a block, which its length skips, and data behind the symbol. Times are microseconds.
//! A number is its mantissa times ten to the power of its exponent.

use tickpath_feed::{FeedInstrument, FrameError, LevelChange, units_of};
use tickpath_market::{Price, Quantity, Side, TopOfBook, Trade};

use crate::instrument_table::{InstrumentTable, misfit};
use crate::message::{BinanceMessage, DepthHead, TimeUnit, printable, trade};

const SCHEMA: u16 = 1;
const TRADES: u16 = 10_000;
const BEST_BID_ASK: u16 = 10_001;
const DEPTH_SNAPSHOT: u16 = 10_002;
const DEPTH_DIFF: u16 = 10_003;

/// Bytes of a trade and of a level in the first version.
const TRADE_BYTES: usize = 25;
const LEVEL_BYTES: usize = 16;

/// Reads a message; its levels or trades are put into the buffers.
pub(crate) fn read(
    frame: &[u8],
    table: &InstrumentTable,
    levels: &mut Vec<LevelChange>,
    trades: &mut Vec<Trade>,
) -> Result<BinanceMessage, FrameError> {
    levels.clear();
    trades.clear();
    let mut reader = SbeReader { length: frame.len(), rest: frame, version: 0 };
    let header = reader.take(8)?;
    let [root_bytes, template, schema, version] = [0, 2, 4, 6].map(|at| u16_at(header, at));
    if schema != SCHEMA {
        return Err(reader.malformed(format!("its SBE schema is {schema}, and only {SCHEMA} is known")));
    }
    reader.version = version;
    let root = reader.take(root_bytes.into())?;
    match template {
        TRADES => reader.trades(root, table, trades),
        BEST_BID_ASK => reader.quote(root, table),
        DEPTH_SNAPSHOT => reader.snapshot(root, table, levels),
        DEPTH_DIFF => reader.book_update(root, table, levels),
        _ => Err(reader.malformed(format!("its SBE template {template} is not known"))),
    }
}

struct SbeReader<'a> {
    /// Length of the frame.
    length: usize,
    /// Bytes that are not read yet.
    rest: &'a [u8],
    version: u16,
}

impl<'a> SbeReader<'a> {
    fn trades(
        &mut self,
        root: &[u8],
        table: &InstrumentTable,
        trades: &mut Vec<Trade>,
    ) -> Result<BinanceMessage, FrameError> {
        self.require(root, 18)?;
        let event_ns = self.time(root, 8)?;
        let block = usize::from(u16_at(self.take(2)?, 0));
        let count = u32_at(self.take(4)?, 0);
        let entries = self.entries(block, count, TRADE_BYTES)?;
        let instrument = self.instrument(table)?;
        let decimals = SbeDecimals::of(instrument, root, 16);
        for entry in entries.chunks_exact(block.max(1)) {
            let buyer_is_maker = match entry[24] {
                0 => false,
                1 => true,
                other => return Err(self.malformed(format!("isBuyerMaker is {other}, and neither 0 nor 1"))),
            };
            let (price, quantity) = (decimals.price(entry, 8)?, decimals.quantity(entry, 16)?);
            let id = self.unsigned(entry, 0)?;
            trades.push(trade(instrument.symbol, id, price, quantity, event_ns, buyer_is_maker));
        }
        Ok(BinanceMessage::Trades)
    }

    fn quote(&mut self, root: &[u8], table: &InstrumentTable) -> Result<BinanceMessage, FrameError> {
        self.require(root, 50)?;
        let (event_ns, sequence) = (self.time(root, 0)?, self.unsigned(root, 8)?);
        let instrument = self.instrument(table)?;
        let decimals = SbeDecimals::of(instrument, root, 16);
        let quote = TopOfBook {
            bid: decimals.price(root, 18)?,
            bid_quantity: decimals.quantity(root, 26)?,
            ask: decimals.price(root, 34)?,
            ask_quantity: decimals.quantity(root, 42)?,
            event_ns,
            symbol: instrument.symbol,
            wire_age_ns: 0,
        };
        Ok(BinanceMessage::Quote { sequence, quote })
    }

    fn snapshot(
        &mut self,
        root: &[u8],
        table: &InstrumentTable,
        levels: &mut Vec<LevelChange>,
    ) -> Result<BinanceMessage, FrameError> {
        self.require(root, 18)?;
        let (event_ns, sequence) = (self.time(root, 0)?, self.unsigned(root, 8)?);
        let symbol = self.sides(root, 16, table, levels)?.symbol;
        Ok(BinanceMessage::Book(DepthHead { symbol, is_snapshot: true, previous: 0, sequence, event_ns }))
    }

    fn book_update(
        &mut self,
        root: &[u8],
        table: &InstrumentTable,
        levels: &mut Vec<LevelChange>,
    ) -> Result<BinanceMessage, FrameError> {
        self.require(root, 26)?;
        let event_ns = self.time(root, 0)?;
        let (first, sequence) = (self.unsigned(root, 8)?, self.unsigned(root, 16)?);
        let symbol = self.sides(root, 24, table, levels)?.symbol;
        let previous = first.saturating_sub(1);
        Ok(BinanceMessage::Book(DepthHead { symbol, is_snapshot: false, previous, sequence, event_ns }))
    }

    /// Reads bids, offers and the symbol; the exponents stand at `exponents` in the root block.
    fn sides<'t>(
        &mut self,
        root: &[u8],
        exponents: usize,
        table: &'t InstrumentTable,
        levels: &mut Vec<LevelChange>,
    ) -> Result<&'t FeedInstrument, FrameError> {
        let (bids, offers) = (self.level_group()?, self.level_group()?);
        let instrument = self.instrument(table)?;
        let decimals = SbeDecimals::of(instrument, root, exponents);
        for (side, (block, entries)) in [(Side::Buy, bids), (Side::Sell, offers)] {
            for entry in entries.chunks_exact(block.max(1)) {
                let (price, quantity) = (decimals.price(entry, 0)?, decimals.quantity(entry, 8)?);
                levels.push(LevelChange { side, price, quantity });
            }
        }
        Ok(instrument)
    }

    /// Returns the block length and the entries of a group of levels.
    fn level_group(&mut self) -> Result<(usize, &'a [u8]), FrameError> {
        let block = usize::from(u16_at(self.take(2)?, 0));
        let count = u32::from(u16_at(self.take(2)?, 0));
        Ok((block, self.entries(block, count, LEVEL_BYTES)?))
    }

    /// Returns the bytes of a group's entries; each has at least so many bytes.
    fn entries(&mut self, block: usize, count: u32, least: usize) -> Result<&'a [u8], FrameError> {
        if count > 0 && block < least {
            return Err(self.malformed(format!("an entry has {block} bytes, and needs {least}")));
        }
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(block));
        self.take(bytes.unwrap_or(usize::MAX))
    }

    /// Reads the symbol, which ends the message.
    fn instrument<'t>(&mut self, table: &'t InstrumentTable) -> Result<&'t FeedInstrument, FrameError> {
        let length = self.take(1)?[0];
        let name = self.take(length.into())?;
        if self.version == 0 && !self.rest.is_empty() {
            return Err(self.malformed(format!("{} bytes follow its symbol", self.rest.len())));
        }
        table.find(name).ok_or_else(|| FrameError::UnknownInstrument(printable(&String::from_utf8_lossy(name))))
    }

    fn time(&self, block: &[u8], at: usize) -> Result<u64, FrameError> {
        let time = TimeUnit::Microsecond.ns(self.unsigned(block, at)?);
        time.ok_or_else(|| self.malformed("its time does not fit 64 bits of nanoseconds"))
    }

    fn unsigned(&self, block: &[u8], at: usize) -> Result<u64, FrameError> {
        u64::try_from(i64_at(block, at)).map_err(|_| self.malformed("an id or a time is negative"))
    }

    fn require(&self, root: &[u8], least: usize) -> Result<(), FrameError> {
        if root.len() < least {
            return Err(self.malformed(format!("its block has {} bytes, and needs {least}", root.len())));
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], FrameError> {
        let Some((taken, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(self.malformed("it ends before its last field"));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn malformed(&self, why: impl ToString) -> FrameError {
        FrameError::Malformed { bytes: self.length, why: why.to_string() }
    }
}

/// The exponents of a message, and the instrument whose units its numbers take.
struct SbeDecimals<'t> {
    instrument: &'t FeedInstrument,
    price_exponent: i8,
    quantity_exponent: i8,
}

impl<'t> SbeDecimals<'t> {
    fn of(instrument: &'t FeedInstrument, root: &[u8], at: usize) -> Self {
        Self { instrument, price_exponent: root[at].cast_signed(), quantity_exponent: root[at + 1].cast_signed() }
    }

    fn price(&self, block: &[u8], at: usize) -> Result<Price, FrameError> {
        self.units(i64_at(block, at), self.price_exponent, "price", self.instrument.price_decimals).map(Price)
    }

    fn quantity(&self, block: &[u8], at: usize) -> Result<Quantity, FrameError> {
        self.units(i64_at(block, at), self.quantity_exponent, "quantity", self.instrument.quantity_decimals)
            .map(Quantity)
    }

    fn units(&self, mantissa: i64, exponent: i8, field: &'static str, decimals: u8) -> Result<i64, FrameError> {
        let units = units_of(mantissa, exponent, decimals).filter(|units| *units >= 0);
        units.ok_or_else(|| misfit(self.instrument, field, &format!("{mantissa}e{exponent}"), decimals))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
