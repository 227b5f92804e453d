//! A message of the exchange as the readers return it, whichever form the frame had.

use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};

/// Max characters of a text of the exchange in an error.
const MAX_SHOWN: usize = 200;

/// Unit of the times in JSON messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// Milliseconds since the Unix epoch.
    #[default]
    Millisecond,
    /// Microseconds since the Unix epoch, for streams that were opened with `timeUnit=MICROSECOND`.
    Microsecond,
}

impl TimeUnit {
    /// Returns a time in nanoseconds; none if it does not fit 64 bits.
    pub(crate) fn ns(self, time: u64) -> Option<u64> {
        time.checked_mul(match self {
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1_000,
        })
    }
}

/// A message of the exchange. Levels and trades of a group lie in the parser's buffers.
pub(crate) enum BinanceMessage {
    Quote {
        sequence: u64,
        quote: TopOfBook,
    },
    Trade(Trade),
    /// The trades in the buffer.
    Trades,
    /// The levels in the buffer.
    Book(DepthHead),
    Maintenance,
    /// Answer to a request, without market data.
    Answer,
}

/// A snapshot or an update of a book without its levels.
pub(crate) struct DepthHead {
    pub(crate) symbol: SymbolId,
    pub(crate) is_snapshot: bool,
    pub(crate) previous: u64,
    pub(crate) sequence: u64,
    pub(crate) event_ns: u64,
}

/// Makes a trade; the seller was the taker if the buyer's order was in the book.
pub(crate) fn trade(
    symbol: SymbolId,
    trade_id: u64,
    price: Price,
    quantity: Quantity,
    event_ns: u64,
    buyer_is_maker: bool,
) -> Trade {
    let aggressor = if buyer_is_maker { Side::Sell } else { Side::Buy };
    Trade { price, quantity, trade_id, event_ns, symbol, aggressor: aggressor.code(), reserved: [0; 3] }
}

/// Returns a text of the exchange as an error can show it: bounded, and without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect()
}
