//! The payload of market data messages: the same bytes as in `tickpath-market`, which the assertions below prove.

use std::mem::offset_of;

use tickpath_market::{BookLevel, FeedCondition, FeedStatus, Kind, Price, Quantity, SCALE, SymbolId, TopOfBook, Trade};

/// Units of a whole price or quantity: both are whole numbers of 10^-8. 61800.5 is 61800 * TP_SCALE + TP_SCALE / 2.
#[allow(clippy::unnecessary_cast, reason = "the header takes its type from it: as an int, whole prices would overflow")]
pub const TP_SCALE: i64 = 100_000_000 as i64;

/// Kind of a message whose bytes are a tp_top_of_book.
pub const TP_KIND_TOP_OF_BOOK: u8 = 16;

/// Kind of a message whose bytes are a tp_trade.
pub const TP_KIND_TRADE: u8 = 17;

/// Kind of a message whose bytes are a tp_book_level.
pub const TP_KIND_BOOK_LEVEL: u8 = 18;

/// Kind of a message whose bytes are a tp_feed_status.
pub const TP_KIND_FEED_STATUS: u8 = 19;

/// Flag of a snapshot's first tp_book_level: the book is emptied before it.
pub const TP_BOOK_SNAPSHOT: u8 = 1;

/// Flag of the last tp_book_level of a message of the exchange: the book is complete after it.
pub const TP_BOOK_LAST: u8 = 2;

/// Symbol of a tp_feed_status that concerns all instruments.
pub const TP_ALL_SYMBOLS: u32 = u32::MAX;

/// Kind of event in a tp_feed_status.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_feed_condition {
    /// A connection to the exchange is up and subscribed.
    TP_FEED_CONNECTED = 1,
    /// A connection has ended. Its messages until the next TP_FEED_CONNECTED are lost, unless another connection is up.
    TP_FEED_DISCONNECTED = 2,
    /// Updates of a book are missing: the book is invalid until TP_FEED_BOOK_VALID.
    TP_FEED_GAP = 3,
    /// A snapshot and all updates after it are published: the book is valid again.
    TP_FEED_BOOK_VALID = 4,
    /// Nothing has arrived for longer than the exchange allows.
    TP_FEED_SILENCE = 5,
    /// The exchange announces maintenance or the end of the connection.
    TP_FEED_MAINTENANCE = 6,
    /// The offset of the exchange's clock was measured.
    TP_FEED_CLOCK_OFFSET = 7,
}

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
    /// Time from the arrival of the packet at the feed's host to the stamp, in nanoseconds; 0 if unknown.
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

/// Level of an order book, its new quantity: the 48 bytes of a message of kind TP_KIND_BOOK_LEVEL, little-endian. A
/// message of the exchange is as many of these in a row as it changes levels; a tp_book applies them. Copy them out of
/// the message, whose bytes may be unaligned.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tp_book_level {
    /// Price of the level, in 10^-8.
    pub price: i64,
    /// New quantity of the level, in 10^-8; 0 removes the level.
    pub quantity: i64,
    /// Time given by the exchange, in nanoseconds since the Unix epoch; 0 if it gives none.
    pub event_ns: u64,
    /// Sequence number that the exchange gave to its message.
    pub sequence: u64,
    /// Number of the instrument, as in orders.
    pub symbol: u32,
    /// Time from the arrival of the packet at the feed's host to the stamp, in nanoseconds; 0 if unknown.
    pub wire_age_ns: u32,
    /// Side of the level: TP_BUY for bids, TP_SELL for offers; 0 in a message that changes no level.
    pub side: u8,
    /// Sum of TP_BOOK_SNAPSHOT and TP_BOOK_LAST.
    pub flags: u8,
    /// Reserved: 0.
    pub reserved: [u8; 6],
}

/// Event of a feed, of its connections and the validity of its books: the 48 bytes of a message of kind
/// TP_KIND_FEED_STATUS, little-endian. Copy them out of the message, whose bytes may be unaligned.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tp_feed_status {
    /// Time of the event at the feed's host, in nanoseconds since the Unix epoch.
    pub event_ns: u64,
    /// A silence, or the exchange's clock minus the host's, in nanoseconds; 0 for other conditions.
    pub value: i64,
    /// Sequence number that the next update should have followed, for TP_FEED_GAP.
    pub expected: u64,
    /// Sequence number that it follows, for TP_FEED_GAP.
    pub found: u64,
    /// Number of the instrument; TP_ALL_SYMBOLS if the event concerns all.
    pub symbol: u32,
    /// Kind of the event: a tp_feed_condition.
    pub condition: u8,
    /// Connection of the event, from 0.
    pub connection: u8,
    /// Reserved: 0.
    pub reserved: [u8; 10],
}

impl tp_book_level {
    /// Returns the level as a message.
    pub(crate) fn message(&self) -> BookLevel {
        BookLevel {
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            event_ns: self.event_ns,
            sequence: self.sequence,
            symbol: SymbolId(self.symbol),
            wire_age_ns: self.wire_age_ns,
            side: self.side,
            flags: self.flags,
            reserved: [0; 6],
        }
    }
}

impl tp_feed_status {
    /// Returns the event as a message.
    pub(crate) fn message(&self) -> FeedStatus {
        FeedStatus {
            event_ns: self.event_ns,
            value: self.value,
            expected: self.expected,
            found: self.found,
            symbol: SymbolId(self.symbol),
            condition: self.condition,
            connection: self.connection,
            reserved: [0; 10],
        }
    }
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
same_bytes!(tp_book_level is BookLevel: price, quantity, event_ns, sequence, symbol, wire_age_ns, side, flags, reserved);
same_bytes!(tp_feed_status is FeedStatus: event_ns, value, expected, found, symbol, condition, connection, reserved);

const _: () = assert!(TP_KIND_TOP_OF_BOOK == Kind::TopOfBook.code() && TP_KIND_TRADE == Kind::Trade.code());
const _: () = assert!(TP_KIND_BOOK_LEVEL == Kind::BookLevel.code() && TP_KIND_FEED_STATUS == Kind::FeedStatus.code());
const _: () = assert!(TP_BOOK_SNAPSHOT == BookLevel::SNAPSHOT && TP_BOOK_LAST == BookLevel::LAST);
const _: () = assert!(TP_ALL_SYMBOLS == FeedStatus::ALL_SYMBOLS.0);

/// Asserts that a condition of the header has the code of the messages.
macro_rules! same_codes {
    ($($here:ident is $there:ident),+ $(,)?) => {
        $(const _: () = assert!(tp_feed_condition::$here as u8 == FeedCondition::$there.code());)+
    };
}

same_codes!(
    TP_FEED_CONNECTED is Connected,
    TP_FEED_DISCONNECTED is Disconnected,
    TP_FEED_GAP is Gap,
    TP_FEED_BOOK_VALID is BookValid,
    TP_FEED_SILENCE is Silence,
    TP_FEED_MAINTENANCE is Maintenance,
    TP_FEED_CLOCK_OFFSET is ClockOffset,
);
const _: () = assert!(TP_SCALE == SCALE);
