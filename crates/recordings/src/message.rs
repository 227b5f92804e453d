//! A message of market data, as a recording holds it.

use tickpath_market::{BookLevel, Kind, SymbolId, TopOfBook, Trade};
use zerocopy::{FromBytes, IntoBytes};

/// A message of market data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketMessage {
    /// The best bid and offer.
    Top(TopOfBook),
    /// A trade.
    Trade(Trade),
    /// A level of an order book.
    Level(BookLevel),
}

impl MarketMessage {
    /// Reads a message out of a frame; none if the frame is of another kind, or is not as long as its kind.
    pub fn read(kind: u8, payload: &[u8]) -> Option<Self> {
        match Kind::from_code(kind)? {
            Kind::TopOfBook => TopOfBook::read_from_bytes(payload).ok().map(Self::Top),
            Kind::Trade => Trade::read_from_bytes(payload).ok().map(Self::Trade),
            Kind::BookLevel => BookLevel::read_from_bytes(payload).ok().map(Self::Level),
            _ => None,
        }
    }

    /// Returns the kind of the message's frame.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Top(_) => Kind::TopOfBook,
            Self::Trade(_) => Kind::Trade,
            Self::Level(_) => Kind::BookLevel,
        }
    }

    /// Returns the bytes of the message, as they lie in a frame.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Top(top) => top.as_bytes(),
            Self::Trade(trade) => trade.as_bytes(),
            Self::Level(level) => level.as_bytes(),
        }
    }

    /// Returns the number of the instrument.
    pub fn symbol(&self) -> SymbolId {
        match self {
            Self::Top(top) => top.symbol,
            Self::Trade(trade) => trade.symbol,
            Self::Level(level) => level.symbol,
        }
    }

    /// Sets the number of the instrument.
    pub fn set_symbol(&mut self, symbol: SymbolId) {
        match self {
            Self::Top(top) => top.symbol = symbol,
            Self::Trade(trade) => trade.symbol = symbol,
            Self::Level(level) => level.symbol = symbol,
        }
    }
}
