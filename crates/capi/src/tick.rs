//! The payload of tick messages: the same bytes as in `tickpath-market`, which the assertions below prove.

use std::mem::offset_of;

use tickpath_market::{Kind, SCALE, TopOfBook, Trade};

/// Units of a whole price or quantity: both are whole numbers of 10^-8. 61800.5 is 61800 * TP_SCALE + TP_SCALE / 2.
#[allow(clippy::unnecessary_cast, reason = "the header takes its type from it: as an int, whole prices would overflow")]
pub const TP_SCALE: i64 = 100_000_000 as i64;

/// Kind of a message whose bytes are a tp_top_of_book.
pub const TP_KIND_TOP_OF_BOOK: u8 = 16;

/// Kind of a message whose bytes are a tp_trade.
pub const TP_KIND_TRADE: u8 = 17;

/// Best bid and offer: the 48 bytes of a message of kind TP_KIND_TOP_OF_BOOK, little-endian. Copy them out of the
/// message, whose bytes may be unaligned.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tp_top_of_book {
    /// Price of the best bid, in 10^-8; 0 if there is none.
    pub bid: i64,
    /// Open quantity at the best bid, in 10^-8.
    pub bid_quantity: i64,
    /// Price of the best offer, in 10^-8; 0 if there is none.
    pub ask: i64,
    /// Open quantity at the best offer, in 10^-8.
    pub ask_quantity: i64,
    /// Time given by the exchange, in nanoseconds since the Unix epoch, in the precision of the exchange.
    pub event_ns: u64,
    /// Number of the instrument, as in orders.
    pub symbol: u32,
    /// Time from the arrival of the packet at this host to the stamp of the message, in nanoseconds; zero if unknown.
    pub wire_age_ns: u32,
}

/// Trade at the exchange: the 40 bytes of a message of kind TP_KIND_TRADE, little-endian. Copy them out of the message,
/// whose bytes may be unaligned.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tp_trade {
    /// Price, in 10^-8.
    pub price: i64,
    /// Quantity, in 10^-8.
    pub quantity: i64,
    /// Id of the trade at the exchange.
    pub trade_id: u64,
    /// Time given by the exchange, in nanoseconds since the Unix epoch.
    pub event_ns: u64,
    /// Number of the instrument, as in orders.
    pub symbol: u32,
    /// Side of the taker: a tp_side.
    pub aggressor: u8,
    /// Reserved: 0.
    pub reserved: [u8; 3],
}

/// Asserts that the header's struct equals the message in size and field offsets.
macro_rules! same_bytes {
    ($here:ident is $there:ident: $($field:ident),+) => {
        const _: () = {
            assert!(size_of::<$here>() == size_of::<$there>());
            $(assert!(offset_of!($here, $field) == offset_of!($there, $field));)+
        };
    };
}

same_bytes!(tp_top_of_book is TopOfBook: bid, bid_quantity, ask, ask_quantity, event_ns, symbol, wire_age_ns);
same_bytes!(tp_trade is Trade: price, quantity, trade_id, event_ns, symbol, aggressor, reserved);

const _: () = assert!(TP_KIND_TOP_OF_BOOK == Kind::TopOfBook.code() && TP_KIND_TRADE == Kind::Trade.code());
const _: () = assert!(TP_SCALE == SCALE);
