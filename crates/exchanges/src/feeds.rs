//! The exchanges whose market data is read: one place that names their adapters.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use tickpath_feed::{ContractKind, Feed, FrameParser, Listing, ListingError, Subscription};
use tickpath_feed_binance::{
    ApiKey, BinanceFeed, BinanceFeedConfig, BinanceMarket, BinanceParser, FUTURES_REST, SPOT_REST, SnapshotDepth,
    TimeUnit,
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

/// Choices of a feed that not every exchange has.
#[derive(Debug, Clone, Default)]
pub struct FeedChoices {
    /// Format of the messages.
    pub format: FeedFormat,
    /// API key, which SBE needs.
    pub key: Option<KeySource>,
    /// Levels of a book's snapshot on each side, where a REST interface has the snapshots.
    pub snapshot_depth: Option<SnapshotDepth>,
    /// The raw frames of each connection are kept, and must have snapshots of their own.
    pub keeps_frames: bool,
}

/// Format of an exchange's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FeedFormat {
    /// Text
    #[default]
    Json,
    /// Binary: of binance, with an API key
    Sbe,
}

/// Place of an API key: `env:NAME`, or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A variable of the environment.
    Variable(String),
    /// A TOML file with `key`, which only its owner may use.
    File(PathBuf),
}

impl FromStr for KeySource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix("env:") {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::File(PathBuf::from(text)),
        })
    }
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

    /// Makes feeds of the same market data, which are down: one for each connection.
    pub fn open_feeds(
        self,
        endpoints: &FeedEndpoints<'_>,
        choices: &FeedChoices,
        subscription: &Subscription,
        connections: usize,
    ) -> Result<Vec<Box<dyn Feed>>, ExchangeUsageError> {
        match self {
            Self::Okx => {
                self.refuse_binance_choices(choices)?;
                (0..connections).map(|_| okx_feed(endpoints, subscription.clone())).collect()
            }
            Self::Binance | Self::BinanceFutures => {
                let own = self.binance_config(choices, subscription.clone())?;
                let config = BinanceFeedConfig {
                    url: endpoints.url.map_or(own.url, str::to_owned),
                    rest_url: endpoints.rest_url.map_or(own.rest_url, str::to_owned),
                    ca: endpoints.ca.map(PathBuf::from),
                    snapshot_depth: choices.snapshot_depth.unwrap_or(own.snapshot_depth),
                    snapshots_per_connection: choices.keeps_frames,
                    ..own
                };
                let feeds = BinanceFeed::several(&config, connections).map_err(usage)?;
                Ok(feeds.into_iter().map(|feed| Box::new(feed) as Box<dyn Feed>).collect())
            }
        }
    }

    fn refuse_binance_choices(self, choices: &FeedChoices) -> Result<(), ExchangeUsageError> {
        let FeedChoices { format, key, snapshot_depth, keeps_frames: _ } = choices;
        let refused = match (format, key, snapshot_depth) {
            (FeedFormat::Sbe, ..) => "--format sbe is for binance alone",
            (_, Some(_), _) => "--key is for binance alone",
            (_, _, Some(_)) => "--snapshot-depth is for binance and binance-futures",
            (FeedFormat::Json, None, None) => return Ok(()),
        };
        Err(ExchangeUsageError(format!("{refused}; leave it out for {}", self.name())))
    }

    /// Returns the configuration of Binance's market and format, with its own addresses.
    fn binance_config(
        self,
        choices: &FeedChoices,
        subscription: Subscription,
    ) -> Result<BinanceFeedConfig, ExchangeUsageError> {
        let refused = |why: &str| Err(ExchangeUsageError(why.to_owned()));
        match (choices.format, &choices.key) {
            (FeedFormat::Sbe, _) if self != Self::Binance => {
                refused("USD-M futures have no market data as SBE; leave --format sbe out")
            }
            (FeedFormat::Sbe, None) => refused("--format sbe needs an API key; name its place: --key FILE or env:NAME"),
            (FeedFormat::Sbe, Some(source)) => {
                let key = match source {
                    KeySource::Variable(name) => ApiKey::from_variable(name),
                    KeySource::File(file) => ApiKey::read(file),
                };
                Ok(BinanceFeedConfig::spot_sbe(subscription, key.map_err(usage)?))
            }
            (FeedFormat::Json, Some(_)) => {
                refused("market data as JSON needs no key; leave --key out, or add --format sbe")
            }
            (FeedFormat::Json, None) if self == Self::Binance => Ok(BinanceFeedConfig::spot(subscription)),
            (FeedFormat::Json, None) => Ok(BinanceFeedConfig::usd_futures(subscription)),
        }
    }

    /// Makes the parser of the exchange's frames.
    pub fn parser(self, subscription: &Subscription) -> Result<Box<dyn FrameParser>, ExchangeUsageError> {
        let instruments = &subscription.instruments;
        let parser: Box<dyn FrameParser> = match self {
            Self::Okx => Box::new(OkxParser::new(instruments).map_err(usage)?),
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

fn okx_feed(endpoints: &FeedEndpoints<'_>, subscription: Subscription) -> Result<Box<dyn Feed>, ExchangeUsageError> {
    let own = OkxFeedConfig::new(subscription);
    let config = OkxFeedConfig {
        url: endpoints.url.map_or(own.url, str::to_owned),
        rest_url: endpoints.rest_url.map(str::to_owned).or(own.rest_url),
        ca: endpoints.ca.map(PathBuf::from),
        ..own
    };
    Ok(Box::new(OkxFeed::new(config).map_err(usage)?))
}

fn usage(error: impl Display) -> ExchangeUsageError {
    ExchangeUsageError(error.to_string())
}

/// Returns the word of a contract's kind in a table of instruments.
pub fn contract_word(contract: ContractKind) -> &'static str {
    match contract {
        ContractKind::Linear => "linear",
        ContractKind::Inverse => "inverse",
        ContractKind::Quanto => "quanto",
    }
}
