//! What a feed says.

use zerocopy::IntoBytes;

use crate::{Kind, TopOfBook, Trade};

/// A tick: what a market data feed says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The best bid and offer changed.
    Top(TopOfBook),
    /// A trade happened.
    Trade(Trade),
}

impl Event {
    /// The frame kind of this tick.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Top(_) => Kind::TopOfBook,
            Self::Trade(_) => Kind::Trade,
        }
    }

    /// The bytes of this tick, as they lie in a frame.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Top(top) => top.as_bytes(),
            Self::Trade(trade) => trade.as_bytes(),
        }
    }
}
