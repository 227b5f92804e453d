//! The hot messages, read in place in exactly the spelling that the exchange sends.
//!
//! ```text
//!   spot      {"u":N,"s":S,"b":D,"B":D,"a":D,"A":D}
//!             {"e":"trade","E":N,"s":S,"t":N,"p":D,"q":D,"T":N,"m":B,"M":B}
//!             {"e":"depthUpdate","E":N,"s":S,"U":N,"u":N,"b":L,"a":L}
//!   futures   {"e":"bookTicker","u":N,"s":S[,"ps":S],"b":D,"B":D,"a":D,"A":D,"T":N,"E":N[,"st":N]}
//!             {"e":"trade","E":N,"T":N,"s":S,"t":N,"p":D,"q":D,"X":S,"m":B[,"st":N]}
//!             {"e":"depthUpdate","E":N,"T":N,"s":S[,"ps":S],"U":N,"u":N,"pu":N,"b":L,"a":L[,"st":N]}
//!             {"e":"aggTrade","E":N,"a":N,"s":S,"p":D,"q":D[,"nq":D],"f":N,"l":N,"T":N,"m":B[,"st":N]}
//!   both      {"lastUpdateId":N[,"E":N][,"T":N],"bids":L,"asks":L}, and each in {"stream":S,"data":…}
//! ```
//!
//! N is a number, S a text, D a decimal in quotes, B true or false, L `[["price","quantity"],…]`. Fields in brackets
//! came later or are absent in older recordings. Anything else is left to the complete reader.

use tickpath_feed::{FeedInstrument, LevelChange};
use tickpath_json_scan::JsonScan;
use tickpath_market::{Price, Quantity, Side, TopOfBook};

use crate::instrument_table::InstrumentTable;
use crate::message::{BinanceMessage, DepthHead, TimeUnit, trade};

/// Reads a frame; none if it is not exactly of a form above, or a number does not fit.
pub(crate) fn read(
    frame: &[u8],
    table: &InstrumentTable,
    unit: TimeUnit,
    levels: &mut Vec<LevelChange>,
) -> Option<BinanceMessage> {
    levels.clear();
    FrameScan { scan: JsonScan::new(frame), table, unit }.frame(levels)
}

struct FrameScan<'a, 't> {
    scan: JsonScan<'a>,
    table: &'t InstrumentTable,
    unit: TimeUnit,
}

impl<'t> FrameScan<'_, 't> {
    fn frame(&mut self, levels: &mut Vec<LevelChange>) -> Option<BinanceMessage> {
        let mut stream = None;
        if self.has(b"{\"stream\":") {
            stream = Some(self.scan.text()?);
            self.scan.literal(b",\"data\":")?;
        }
        let message = self.message(stream, levels)?;
        if stream.is_some() {
            self.scan.literal(b"}")?;
        }
        self.scan.at_end().then_some(message)
    }

    fn message(&mut self, stream: Option<&[u8]>, levels: &mut Vec<LevelChange>) -> Option<BinanceMessage> {
        if self.has(b"{\"e\":\"bookTicker\",\"u\":") {
            return self.futures_quote();
        }
        if self.has(b"{\"u\":") {
            return self.spot_quote();
        }
        if self.has(b"{\"e\":\"trade\",\"E\":") {
            return self.trade();
        }
        if self.has(b"{\"e\":\"depthUpdate\",\"E\":") {
            return self.book_update(levels);
        }
        if self.has(b"{\"e\":\"aggTrade\",\"E\":") {
            return self.aggregated_trade();
        }
        if self.has(b"{\"lastUpdateId\":") {
            return self.snapshot(stream, levels);
        }
        None
    }

    fn spot_quote(&mut self) -> Option<BinanceMessage> {
        let (sequence, quote) = self.quote()?;
        self.scan.literal(b"}")?;
        Some(BinanceMessage::Quote { sequence, quote })
    }

    fn futures_quote(&mut self) -> Option<BinanceMessage> {
        let (sequence, mut quote) = self.quote()?;
        self.scan.literal(b",\"T\":")?;
        quote.event_ns = self.time()?;
        self.scan.literal(b",\"E\":")?;
        self.scan.unsigned()?;
        self.end()?;
        Some(BinanceMessage::Quote { sequence, quote })
    }

    /// Reads from the update id to the quantity of the offer.
    fn quote(&mut self) -> Option<(u64, TopOfBook)> {
        let sequence = self.scan.unsigned()?;
        self.scan.literal(b",\"s\":")?;
        let instrument = self.instrument()?;
        self.skip_pair()?;
        self.scan.literal(b",\"b\":")?;
        let bid = self.price(instrument)?;
        self.scan.literal(b",\"B\":")?;
        let bid_quantity = self.quantity(instrument)?;
        self.scan.literal(b",\"a\":")?;
        let ask = self.price(instrument)?;
        self.scan.literal(b",\"A\":")?;
        let ask_quantity = self.quantity(instrument)?;
        let symbol = instrument.symbol;
        Some((sequence, TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns: 0, symbol, wire_age_ns: 0 }))
    }

    fn trade(&mut self) -> Option<BinanceMessage> {
        self.scan.unsigned()?;
        let is_of_futures = self.has(b",\"T\":");
        let mut event_ns = if is_of_futures { self.time()? } else { 0 };
        self.scan.literal(b",\"s\":")?;
        let instrument = self.instrument()?;
        self.scan.literal(b",\"t\":")?;
        let id = self.scan.unsigned()?;
        let (price, quantity) = self.trade_amounts(instrument)?;
        if is_of_futures {
            self.scan.literal(b",\"X\":")?;
            self.scan.text()?;
        } else {
            self.scan.literal(b",\"T\":")?;
            event_ns = self.time()?;
        }
        self.scan.literal(b",\"m\":")?;
        let buyer_is_maker = self.flag()?;
        self.skip_ignored_flag()?;
        self.end()?;
        Some(BinanceMessage::Trade(trade(instrument.symbol, id, price, quantity, event_ns, buyer_is_maker)))
    }

    /// Reads an aggregated trade. The documentation has the symbol before the id, the futures market the id before.
    fn aggregated_trade(&mut self) -> Option<BinanceMessage> {
        self.scan.unsigned()?;
        let mut id = None;
        if self.has(b",\"a\":") {
            id = Some(self.scan.unsigned()?);
        }
        self.scan.literal(b",\"s\":")?;
        let instrument = self.instrument()?;
        let id = match id {
            Some(id) => id,
            None => {
                self.scan.literal(b",\"a\":")?;
                self.scan.unsigned()?
            }
        };
        let (price, quantity) = self.trade_amounts(instrument)?;
        if self.has(b",\"nq\":") {
            self.scan.text()?;
        }
        self.scan.literal(b",\"f\":")?;
        self.scan.unsigned()?;
        self.scan.literal(b",\"l\":")?;
        self.scan.unsigned()?;
        self.scan.literal(b",\"T\":")?;
        let event_ns = self.time()?;
        self.scan.literal(b",\"m\":")?;
        let buyer_is_maker = self.flag()?;
        self.skip_ignored_flag()?;
        self.end()?;
        Some(BinanceMessage::Trade(trade(instrument.symbol, id, price, quantity, event_ns, buyer_is_maker)))
    }

    fn trade_amounts(&mut self, instrument: &FeedInstrument) -> Option<(Price, Quantity)> {
        self.scan.literal(b",\"p\":")?;
        let price = self.price(instrument)?;
        self.scan.literal(b",\"q\":")?;
        Some((price, self.quantity(instrument)?))
    }

    fn book_update(&mut self, levels: &mut Vec<LevelChange>) -> Option<BinanceMessage> {
        let mut time = self.scan.unsigned()?;
        if self.has(b",\"T\":") {
            time = self.scan.unsigned()?;
        }
        self.scan.literal(b",\"s\":")?;
        let instrument = self.instrument()?;
        self.skip_pair()?;
        self.scan.literal(b",\"U\":")?;
        let mut previous = self.scan.unsigned()?.saturating_sub(1);
        self.scan.literal(b",\"u\":")?;
        let sequence = self.scan.unsigned()?;
        if self.has(b",\"pu\":") {
            previous = self.scan.unsigned()?;
        }
        self.scan.literal(b",\"b\":")?;
        self.levels(instrument, Side::Buy, levels)?;
        self.scan.literal(b",\"a\":")?;
        self.levels(instrument, Side::Sell, levels)?;
        self.end()?;
        let event_ns = self.unit.ns(time)?;
        let symbol = instrument.symbol;
        Some(BinanceMessage::Book(DepthHead { symbol, is_snapshot: false, previous, sequence, event_ns }))
    }

    fn snapshot(&mut self, stream: Option<&[u8]>, levels: &mut Vec<LevelChange>) -> Option<BinanceMessage> {
        let table = self.table;
        let instrument = match stream {
            Some(stream) => table.find_by_stream(stream)?,
            None => table.only()?,
        };
        let sequence = self.scan.unsigned()?;
        let mut time = 0;
        for key in [b",\"E\":", b",\"T\":"] {
            if self.has(key) {
                time = self.scan.unsigned()?;
            }
        }
        self.scan.literal(b",\"bids\":")?;
        self.levels(instrument, Side::Buy, levels)?;
        self.scan.literal(b",\"asks\":")?;
        self.levels(instrument, Side::Sell, levels)?;
        self.scan.literal(b"}")?;
        let event_ns = self.unit.ns(time)?;
        let symbol = instrument.symbol;
        Some(BinanceMessage::Book(DepthHead { symbol, is_snapshot: true, previous: 0, sequence, event_ns }))
    }

    fn levels(&mut self, instrument: &FeedInstrument, side: Side, levels: &mut Vec<LevelChange>) -> Option<()> {
        self.scan.literal(b"[")?;
        if self.has(b"]") {
            return Some(());
        }
        loop {
            self.scan.literal(b"[")?;
            let price = self.price(instrument)?;
            self.scan.literal(b",")?;
            let quantity = self.quantity(instrument)?;
            self.scan.literal(b"]")?;
            levels.push(LevelChange { side, price, quantity });
            if self.has(b"]") {
                return Some(());
            }
            self.scan.literal(b",")?;
        }
    }

    fn instrument(&mut self) -> Option<&'t FeedInstrument> {
        let name = self.scan.text()?;
        self.table.find(name)
    }

    /// Skips the pair of a futures contract.
    fn skip_pair(&mut self) -> Option<()> {
        if self.has(b",\"ps\":") {
            self.scan.text()?;
        }
        Some(())
    }

    /// Skips a field of spot trades without a meaning.
    fn skip_ignored_flag(&mut self) -> Option<()> {
        if self.has(b",\"M\":") {
            self.flag()?;
        }
        Some(())
    }

    /// Reads the end of a message; futures have the kind of their symbol before it.
    fn end(&mut self) -> Option<()> {
        if self.has(b",\"st\":") {
            self.scan.unsigned()?;
        }
        self.scan.literal(b"}")
    }

    fn price(&mut self, instrument: &FeedInstrument) -> Option<Price> {
        self.scan.quoted_decimal(instrument.price_decimals).filter(|units| *units >= 0).map(Price)
    }

    fn quantity(&mut self, instrument: &FeedInstrument) -> Option<Quantity> {
        self.scan.quoted_decimal(instrument.quantity_decimals).filter(|units| *units >= 0).map(Quantity)
    }

    fn time(&mut self) -> Option<u64> {
        let time = self.scan.unsigned()?;
        self.unit.ns(time)
    }

    fn flag(&mut self) -> Option<bool> {
        if self.has(b"true") {
            return Some(true);
        }
        self.scan.literal(b"false")?;
        Some(false)
    }

    #[inline]
    fn has(&mut self, expected: &[u8]) -> bool {
        self.scan.literal(expected).is_some()
    }
}
