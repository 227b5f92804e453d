//! A tick of a market data feed.

use zerocopy::IntoBytes;

use crate::{Kind, TopOfBook, Trade};

/// A tick of a market data feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketTick {
    /// The best bid and offer changed.
    Top(TopOfBook),
    /// A trade happened.
    Trade(Trade),
}

impl MarketTick {
    /// Returns the frame kind of this tick.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Top(_) => Kind::TopOfBook,
            Self::Trade(_) => Kind::Trade,
        }
    }

    /// Returns the bytes of this tick, as they lie in a frame.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Top(top) => top.as_bytes(),
            Self::Trade(trade) => trade.as_bytes(),
        }
    }
}
