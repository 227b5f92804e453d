//! The markets of the exchange that this crate reads.

/// A market of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinanceMarket {
    /// Spot.
    Spot,
    /// Futures with a margin in USDT, USDC and the like.
    UsdFutures,
}
