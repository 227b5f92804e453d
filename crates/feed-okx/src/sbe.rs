//! Frames of OKX's binary protocol: SBE, schema 1, little-endian, from `/ws/v5/public-sbe` and `/market/books-sbe`.
//!
//! ```text
//!   header          block_bytes u16, template u16, schema u16, version u16
//!   1000 quote      0 code, 8 time, 16 sent, 24 sequence, 32 ask, 40 ask quantity, 48 bid, 56 bid quantity,
//!                   64 ask orders i32, 68 bid orders i32, 72 price exponent, 73 quantity exponent
//!   1001 book       0 code, 8 time, 16 sent, 24 sequence, 32 previous, 40, 41 exponents; groups of asks and of bids
//!   1002 exponents  as 1001, without groups
//!   1005 trade      0 code, 8 time, 16 sent, 24 sequence, 32 price, 40 quantity, 48 trade id, 56 count i16,
//!                   58 side i8 (0 sell, 1 buy), 59, 60 exponents, 61 source i8
//!   1006 snapshot   0 code, 8 time, 16 sequence, 24, 25 exponents; groups of asks and of bids
//!   group           level_bytes u16, levels u16; a level is 0 price, 8 quantity, 16 orders i32
//! ```
//!
//! Numbers are i64 and exponents i8 where nothing else stands; times are in microseconds. A number is its mantissa
//! times ten to the power of the exponent of its message. A later version of the schema may append fields to a block,
//! a level or a message: they are skipped.

use tickpath_feed::{FeedInstrument, FrameError, LevelChange, units_of};
use tickpath_market::{Price, Quantity, Side, TopOfBook, Trade};

use crate::batch::{BookHead, MessageBatch};
use crate::complaint::malformed;
use crate::instrument_table::InstrumentTable;

const HEADER_BYTES: usize = 8;
const SCHEMA: u16 = 1;
const GROUP_HEADER_BYTES: usize = 4;
const LEVEL_BYTES: usize = 20;
const NS_PER_US: u64 = 1_000;

/// Offset of the instrument's code in each block.
const CODE: usize = 0;
/// Offset of the event's time in each block.
const TIME: usize = 8;

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplateKind {
    Quote,
    Book,
    Exponents,
    Trade,
    Snapshot,
}

/// Layout of a template's block, as far as all templates share it.
#[derive(Debug)]
struct BlockLayout {
    template: u16,
    kind: TemplateKind,
    bytes: usize,
    sequence: usize,
    /// Exponent of prices; the exponent of quantities follows it.
    exponents: usize,
}

const LAYOUTS: [BlockLayout; 5] = [
    BlockLayout { template: 1000, kind: TemplateKind::Quote, bytes: 74, sequence: 24, exponents: 72 },
    BlockLayout { template: 1001, kind: TemplateKind::Book, bytes: 42, sequence: 24, exponents: 40 },
    BlockLayout { template: 1002, kind: TemplateKind::Exponents, bytes: 42, sequence: 24, exponents: 40 },
    BlockLayout { template: 1005, kind: TemplateKind::Trade, bytes: 62, sequence: 24, exponents: 59 },
    BlockLayout { template: 1006, kind: TemplateKind::Snapshot, bytes: 26, sequence: 16, exponents: 24 },
];

/// Reads a binary frame into the batch.
pub(crate) fn read_sbe(frame: &[u8], table: &mut InstrumentTable, batch: &mut MessageBatch) -> Result<(), FrameError> {
    let wrong = |why: String| malformed(frame.len(), why);
    let cut = || wrong("it ends within a message".to_owned());
    let (header, rest) = frame.split_at_checked(HEADER_BYTES).ok_or_else(cut)?;
    let [block_bytes, template, schema] = [0, 2, 4].map(|at| u16_at(header, at));
    if schema != SCHEMA {
        return Err(wrong(format!("its schema is {schema}, and only {SCHEMA} is known")));
    }
    let unknown = || wrong(format!("the template {template} is unknown"));
    let layout = LAYOUTS.iter().find(|layout| layout.template == template).ok_or_else(unknown)?;
    let (block, groups) = rest.split_at_checked(block_bytes.into()).ok_or_else(cut)?;
    if block.len() < layout.bytes {
        return Err(wrong(format!("its block has {block_bytes} bytes, and {} are needed", layout.bytes)));
    }
    let code = i64_at(block, CODE);
    let instrument = match u64::try_from(code) {
        Ok(code) => table.find_code(code),
        Err(_) => None,
    };
    let instrument = instrument.ok_or_else(|| FrameError::UnknownInstrument(format!("instIdCode {code}")))?;
    SbeMessage { frame, block, layout, instrument }.read(groups, batch)
}

/// A message whose block is complete.
struct SbeMessage<'a> {
    frame: &'a [u8],
    block: &'a [u8],
    layout: &'static BlockLayout,
    instrument: &'a FeedInstrument,
}

impl SbeMessage<'_> {
    fn read(&self, groups: &[u8], batch: &mut MessageBatch) -> Result<(), FrameError> {
        match self.layout.kind {
            TemplateKind::Quote => batch.add_quote(self.sequence()?, self.quote()?),
            TemplateKind::Trade => batch.add_trade(self.trade()?),
            TemplateKind::Exponents => batch.add_book(self.book_head(false)?),
            kind @ (TemplateKind::Book | TemplateKind::Snapshot) => {
                let rest = self.read_levels(groups, Side::Sell, batch)?;
                self.read_levels(rest, Side::Buy, batch)?;
                batch.add_book(self.book_head(kind == TemplateKind::Snapshot)?);
            }
        }
        Ok(())
    }

    fn quote(&self) -> Result<TopOfBook, FrameError> {
        Ok(TopOfBook {
            bid: self.price(i64_at(self.block, 48))?,
            bid_quantity: self.quantity(i64_at(self.block, 56))?,
            ask: self.price(i64_at(self.block, 32))?,
            ask_quantity: self.quantity(i64_at(self.block, 40))?,
            event_ns: self.event_ns()?,
            symbol: self.instrument.symbol,
            wire_age_ns: 0,
        })
    }

    fn trade(&self) -> Result<Trade, FrameError> {
        let aggressor = match self.block[58] {
            0 => Side::Sell.code(),
            1 => Side::Buy.code(),
            other => return Err(self.malformed(format!("its side is {other}, and neither 0 nor 1"))),
        };
        Ok(Trade {
            price: self.price(i64_at(self.block, 32))?,
            quantity: self.quantity(i64_at(self.block, 40))?,
            trade_id: self.unsigned("trade id", 48)?,
            event_ns: self.event_ns()?,
            symbol: self.instrument.symbol,
            aggressor,
            reserved: [0; 3],
        })
    }

    /// Reads the head of a book. A snapshot comes over HTTPS while updates arrive, so that they may overlap it.
    fn book_head(&self, is_snapshot: bool) -> Result<BookHead, FrameError> {
        let previous = if is_snapshot { 0 } else { self.unsigned("previous sequence number", 32)? };
        let (symbol, sequence, event_ns) = (self.instrument.symbol, self.sequence()?, self.event_ns()?);
        Ok(BookHead { symbol, is_snapshot, may_overlap: is_snapshot, previous, sequence, event_ns })
    }

    /// Reads a group of levels, and returns the bytes behind it.
    fn read_levels<'b>(&self, groups: &'b [u8], side: Side, batch: &mut MessageBatch) -> Result<&'b [u8], FrameError> {
        let cut = || self.malformed("it ends within its levels".to_owned());
        let (header, rest) = groups.split_at_checked(GROUP_HEADER_BYTES).ok_or_else(cut)?;
        let [level_bytes, levels] = [0, 2].map(|at| usize::from(u16_at(header, at)));
        if level_bytes < LEVEL_BYTES {
            return Err(self.malformed(format!("a level has {level_bytes} bytes, and {LEVEL_BYTES} are needed")));
        }
        let (levels, rest) = rest.split_at_checked(level_bytes * levels).ok_or_else(cut)?;
        for level in levels.chunks_exact(level_bytes) {
            let (price, quantity) = (self.price(i64_at(level, 0))?, self.quantity(i64_at(level, 8))?);
            batch.add_level(LevelChange { side, price, quantity });
        }
        Ok(rest)
    }

    fn price(&self, mantissa: i64) -> Result<Price, FrameError> {
        self.units("price", mantissa, self.layout.exponents, self.instrument.price_decimals).map(Price)
    }

    fn quantity(&self, mantissa: i64) -> Result<Quantity, FrameError> {
        if mantissa < 0 {
            return Err(self.malformed(format!("its quantity is {mantissa}, which is negative")));
        }
        self.units("quantity", mantissa, self.layout.exponents + 1, self.instrument.quantity_decimals).map(Quantity)
    }

    fn units(&self, field: &'static str, mantissa: i64, exponent: usize, decimals: u8) -> Result<i64, FrameError> {
        let exponent = self.block[exponent].cast_signed();
        units_of(mantissa, exponent, decimals).ok_or_else(|| {
            let FeedInstrument { name, symbol, .. } = self.instrument;
            let (instrument, symbol, text) = (name.clone(), *symbol, format!("{mantissa}e{exponent}"));
            FrameError::Number { instrument, symbol, field, text, decimals }
        })
    }

    fn sequence(&self) -> Result<u64, FrameError> {
        self.unsigned("sequence number", self.layout.sequence)
    }

    fn event_ns(&self) -> Result<u64, FrameError> {
        let ns = self.unsigned("time", TIME)?.checked_mul(NS_PER_US);
        ns.ok_or_else(|| self.malformed("its time does not fit 64 bits in nanoseconds".to_owned()))
    }

    fn unsigned(&self, field: &str, at: usize) -> Result<u64, FrameError> {
        let number = i64_at(self.block, at);
        u64::try_from(number).map_err(|_| self.malformed(format!("its {field} is {number}, which is negative")))
    }

    fn malformed(&self, why: String) -> FrameError {
        malformed(self.frame.len(), why)
    }
}

#[inline]
fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}
