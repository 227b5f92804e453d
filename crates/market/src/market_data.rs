//! Messages of a market data feed: quotes, trades, levels of order books, and the state of the feed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::message::{FeedCondition, MessageError, Side, check_code};
use crate::{Price, Quantity, SymbolId};

/// The best bid and offer. One cache line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TopOfBook {
    /// Best bid.
    pub bid: Price,
    /// Quantity at the best bid.
    pub bid_quantity: Quantity,
    /// Best offer.
    pub ask: Price,
    /// Quantity at the best offer.
    pub ask_quantity: Quantity,
    /// The exchange's own time, nanoseconds since the Unix epoch, at the exchange's precision.
    pub event_ns: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Time from the arrival of the packet at this host to the stamp of the message, in nanoseconds; zero if unknown.
    pub wire_age_ns: u32,
}

/// One trade at the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Trade {
    /// Price of the trade.
    pub price: Price,
    /// Quantity of the trade.
    pub quantity: Quantity,
    /// The exchange's id of the trade.
    pub trade_id: u64,
    /// The exchange's own time, nanoseconds since the Unix epoch.
    pub event_ns: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// [`Side`] of the taker, as its code.
    pub aggressor: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

/// A level of an order book: its new quantity. One message of the exchange is as many of these in a row as it changes
/// levels, and the last carries [`BookLevel::LAST`]: between two messages with this flag the book is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BookLevel {
    /// Price of the level. Zero, with side zero, in a message that changes no level.
    pub price: Price,
    /// New quantity of the level; zero removes it.
    pub quantity: Quantity,
    /// The exchange's own time, nanoseconds since the Unix epoch; zero if it sends none.
    pub event_ns: u64,
    /// The exchange's sequence number of its message.
    pub sequence: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Time from the arrival of the packet at this host to the stamp of the message, in nanoseconds; zero if unknown.
    pub wire_age_ns: u32,
    /// [`Side`] as its code: buy for bids, sell for offers; zero in a message that changes no level.
    pub side: u8,
    /// Sum of [`BookLevel::SNAPSHOT`] and [`BookLevel::LAST`].
    pub flags: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

impl BookLevel {
    /// Flag of a snapshot's first level: the book is emptied before it.
    pub const SNAPSHOT: u8 = 1;
    /// Flag of a message's last level: the book is complete after it.
    pub const LAST: u8 = 2;

    /// Checks the side and the flags.
    pub fn check(&self) -> Result<(), MessageError> {
        check_code("side", self.side, self.side == 0 || Side::from_code(self.side).is_some())?;
        check_code("flags", self.flags, self.flags & !(Self::SNAPSHOT | Self::LAST) == 0)
    }
}

/// An event of a feed: its connections, and the validity of its books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FeedStatus {
    /// Time of the event at this host, nanoseconds since the Unix epoch.
    pub event_ns: u64,
    /// Value of the event: a silence or a clock's offset in nanoseconds; zero for others.
    pub value: i64,
    /// Sequence number that the next update should have followed, for a gap.
    pub expected: u64,
    /// Sequence number that it follows, for a gap.
    pub found: u64,
    /// The instrument; [`FeedStatus::ALL_SYMBOLS`] if the event concerns all.
    pub symbol: SymbolId,
    /// [`FeedCondition`] as its code.
    pub condition: u8,
    /// Connection of the event, from 0.
    pub connection: u8,
    /// Zero.
    pub reserved: [u8; 10],
}

impl FeedStatus {
    /// Value of [`FeedStatus::symbol`] for events of all instruments.
    pub const ALL_SYMBOLS: SymbolId = SymbolId(u32::MAX);

    /// Checks the code of the condition.
    pub fn check(&self) -> Result<(), MessageError> {
        check_code("condition", self.condition, FeedCondition::from_code(self.condition).is_some())
    }
}
