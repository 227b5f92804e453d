//! The parser of all frames: hot JSON in place, other JSON completely, and SBE.

use tickpath_feed::{BookUpdate, FeedInstrument, Frame, FrameError, FrameParser, LevelChange, MarketEvent};
use tickpath_market::{Quantity, Trade};

use crate::instrument_table::InstrumentTable;
use crate::message::{BinanceMessage, DepthHead, TimeUnit};
use crate::{json, sbe, scan};

/// Reader of the frames of both markets: they differ by their fields, so that a recording needs no mark of its market.
///
/// ```
/// use tickpath_feed::{FeedInstrument, Frame, FrameParser, MarketEvent};
/// use tickpath_feed_binance::{BinanceParser, TimeUnit};
/// use tickpath_market::{Price, SymbolId};
///
/// let instrument = FeedInstrument {
///     name: "BNBUSDT".to_owned(),
///     symbol: SymbolId(3),
///     price_decimals: 4,
///     quantity_decimals: 3,
///     code: 0,
/// };
/// let mut parser = BinanceParser::new(&[instrument], TimeUnit::Millisecond);
/// let frame = br#"{"u":4,"s":"BNBUSDT","b":"25.35190000","B":"31.21","a":"25.36520000","A":"40.66"}"#;
/// let mut bids = Vec::new();
/// parser.parse(Frame::Text(frame), &mut |event| {
///     if let MarketEvent::Quote { quote, .. } = event {
///         bids.push(quote.bid);
///     }
/// })?;
/// assert_eq!(bids, [Price(253_519)]);
/// # Ok::<(), tickpath_feed::FrameError>(())
/// ```
pub struct BinanceParser {
    table: InstrumentTable,
    unit: TimeUnit,
    levels: Vec<LevelChange>,
    trades: Vec<Trade>,
    complete_reads: u64,
}

impl BinanceParser {
    /// Makes a parser of messages of these instruments, whose times in JSON are in this unit.
    pub fn new(instruments: &[FeedInstrument], unit: TimeUnit) -> Self {
        let table = InstrumentTable::new(instruments);
        Self { table, unit, levels: Vec::new(), trades: Vec::new(), complete_reads: 0 }
    }

    /// Returns the number of JSON frames that were left to the complete reader, which is slower. It grows with hot
    /// messages if the exchange has changed their spelling.
    pub fn complete_reads(&self) -> u64 {
        self.complete_reads
    }

    fn pass_on(&self, message: &BinanceMessage, take: &mut dyn FnMut(MarketEvent<'_>)) {
        match message {
            BinanceMessage::Quote { sequence, quote } => take(MarketEvent::Quote { sequence: *sequence, quote }),
            BinanceMessage::Trade(trade) => pass_on_trade(trade, take),
            BinanceMessage::Trades => self.trades.iter().for_each(|trade| pass_on_trade(trade, take)),
            BinanceMessage::Book(head) => take(MarketEvent::Book(self.book_update(head))),
            BinanceMessage::Maintenance => take(MarketEvent::Maintenance),
            BinanceMessage::Answer => {}
        }
    }

    fn book_update(&self, head: &DepthHead) -> BookUpdate<'_> {
        BookUpdate {
            symbol: head.symbol,
            is_snapshot: head.is_snapshot,
            // Snapshots come by REST, or by a stream of their own.
            may_overlap: head.is_snapshot,
            previous: head.previous,
            sequence: head.sequence,
            event_ns: head.event_ns,
            levels: &self.levels,
        }
    }
}

impl FrameParser for BinanceParser {
    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    fn parse(&mut self, frame: Frame<'_>, take: &mut dyn FnMut(MarketEvent<'_>)) -> Result<(), FrameError> {
        let Self { table, unit, levels, trades, complete_reads } = self;
        let message = match frame {
            Frame::Text(bytes) => match scan::read(bytes, table, *unit, levels) {
                Some(message) => message,
                None => {
                    *complete_reads += 1;
                    json::read(bytes, table, *unit, levels)?
                }
            },
            Frame::Binary(bytes) => sbe::read(bytes, table, levels, trades)?,
        };
        self.pass_on(&message, take);
        Ok(())
    }
}

/// Passes on a trade, unless nothing was traded.
fn pass_on_trade(trade: &Trade, take: &mut dyn FnMut(MarketEvent<'_>)) {
    if trade.quantity != Quantity::ZERO {
        take(MarketEvent::Trade(trade));
    }
}
