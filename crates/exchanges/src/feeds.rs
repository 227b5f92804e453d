//! The exchanges whose market data is read: one place that names their adapters.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tickpath_feed::{ContractKind, Feed, FrameParser, Listing, ListingError, Subscription};
use tickpath_feed_binance::{
    BinanceFeed, BinanceFeedConfig, BinanceMarket, BinanceParser, FUTURES_REST, SPOT_REST, TimeUnit,
};
use tickpath_feed_okx::{OkxFeed, OkxFeedConfig, OkxParser, REST_URL as OKX_REST};

use crate::error::ExchangeUsageError;

/// An exchange, or a market of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FeedExchange {
    /// OKX: spot, swaps and futures
    Okx,
    /// Binance spot
    Binance,
    /// Binance USDⓈ-M futures
    BinanceFutures,
}

/// Addresses of an exchange that replace its own.
pub struct FeedEndpoints<'a> {
    /// Address of the streams; the exchange's own if none is given.
    pub url: Option<&'a str>,
    /// Address of the REST interface; the exchange's own if none is given.
    pub rest_url: Option<&'a str>,
    /// File of the trusted authorities; those of the system if none is given.
    pub ca: Option<&'a Path>,
}

impl FeedExchange {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Okx => "okx",
            Self::Binance => "binance",
            Self::BinanceFutures => "binance-futures",
        }
    }

    /// Returns the name of the exchange's venue in a table of instruments, unless another one is given.
    pub fn venue(self) -> String {
        self.name().to_uppercase()
    }

    /// Makes a feed that is down.
    pub fn open_feed(
        self,
        endpoints: &FeedEndpoints<'_>,
        subscription: Subscription,
    ) -> Result<Box<dyn Feed>, ExchangeUsageError> {
        let (ca, refused) = (endpoints.ca.map(PathBuf::from), ExchangeUsageError);
        let replace = |own: String, given: Option<&str>| given.map_or(own, str::to_owned);
        let binance = |own: BinanceFeedConfig, ca| {
            let (url, rest_url) = (replace(own.url, endpoints.url), replace(own.rest_url, endpoints.rest_url));
            BinanceFeed::new(BinanceFeedConfig { url, rest_url, ca, ..own }).map_err(|e| refused(e.to_string()))
        };
        let feed: Box<dyn Feed> = match self {
            Self::Okx => {
                let own = OkxFeedConfig::new(subscription);
                let rest_url = endpoints.rest_url.map(str::to_owned).or(own.rest_url);
                let config = OkxFeedConfig { url: replace(own.url, endpoints.url), rest_url, ca, ..own };
                Box::new(OkxFeed::new(config).map_err(|e| refused(e.to_string()))?)
            }
            Self::Binance => Box::new(binance(BinanceFeedConfig::spot(subscription), ca)?),
            Self::BinanceFutures => Box::new(binance(BinanceFeedConfig::usd_futures(subscription), ca)?),
        };
        Ok(feed)
    }

    /// Makes the parser of the exchange's frames.
    pub fn parser(self, subscription: &Subscription) -> Result<Box<dyn FrameParser>, ExchangeUsageError> {
        let instruments = &subscription.instruments;
        let parser: Box<dyn FrameParser> = match self {
            Self::Okx => Box::new(OkxParser::new(instruments).map_err(|e| ExchangeUsageError(e.to_string()))?),
            Self::Binance | Self::BinanceFutures => Box::new(BinanceParser::new(instruments, TimeUnit::Millisecond)),
        };
        Ok(parser)
    }

    /// Reads the exchange's answer to a request for its instruments.
    pub fn read_listing(self, answer: &[u8]) -> Result<Listing, ListingError> {
        match self {
            Self::Okx => tickpath_feed_okx::read_instruments(answer),
            Self::Binance => tickpath_feed_binance::read_instruments(BinanceMarket::Spot, answer),
            Self::BinanceFutures => tickpath_feed_binance::read_instruments(BinanceMarket::UsdFutures, answer),
        }
    }

    /// Returns the address of the REST interface.
    pub fn rest_url(self) -> &'static str {
        match self {
            Self::Okx => OKX_REST,
            Self::Binance => SPOT_REST,
            Self::BinanceFutures => FUTURES_REST,
        }
    }

    /// Returns the paths of the requests for the lists of instruments of these types. Only OKX has types.
    pub fn listing_paths(self, types: &[ListingType]) -> Vec<String> {
        let path = |kind: &ListingType| format!("/api/v5/public/instruments?instType={}", kind.name());
        match self {
            Self::Okx => types.iter().map(path).collect(),
            Self::Binance => vec!["/api/v3/exchangeInfo".to_owned()],
            Self::BinanceFutures => vec!["/fapi/v1/exchangeInfo".to_owned()],
        }
    }

    /// Returns the type of an instrument by its name: a list that has no instrument of a type shows nothing about that
    /// type.
    pub fn listing_type(self, name: &str) -> Option<ListingType> {
        match (self, name.split('-').count()) {
            (Self::Okx, 0..=2) => Some(ListingType::Spot),
            (Self::Okx, _) if name.ends_with("-SWAP") => Some(ListingType::Swap),
            (Self::Okx, _) => Some(ListingType::Futures),
            (Self::Binance | Self::BinanceFutures, _) => None,
        }
    }
}

/// A type of instruments that OKX lists by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingType {
    /// Spot.
    Spot,
    /// Perpetual swaps.
    Swap,
    /// Futures with an expiry.
    Futures,
}

impl ListingType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Spot, Self::Swap, Self::Futures];

    /// Returns the name that OKX uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spot => "SPOT",
            Self::Swap => "SWAP",
            Self::Futures => "FUTURES",
        }
    }
}

/// Returns the word of a contract's kind in a table of instruments.
pub fn contract_word(contract: ContractKind) -> &'static str {
    match contract {
        ContractKind::Linear => "linear",
        ContractKind::Inverse => "inverse",
        ContractKind::Quanto => "quanto",
    }
}
