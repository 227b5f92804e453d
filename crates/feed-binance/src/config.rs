//! Configuration of a feed, with the exchange's own addresses and bounds as defaults.

use std::path::PathBuf;

use tickpath_feed::Subscription;

use crate::api_key::ApiKey;
use crate::market::BinanceMarket;
use crate::message::TimeUnit;
use crate::request_weight::SnapshotDepth;

/// Address of the spot market's JSON streams.
pub const SPOT_STREAMS: &str = "wss://stream.binance.com:9443";
/// Address of the spot market's SBE streams.
pub const SPOT_SBE_STREAMS: &str = "wss://stream-sbe.binance.com:9443";
/// Address of the spot market's REST interface.
pub const SPOT_REST: &str = "https://api.binance.com";
/// Address of the streams of USDⓈ-M futures.
pub const FUTURES_STREAMS: &str = "wss://fstream.binance.com";
/// Address of the REST interface of USDⓈ-M futures.
pub const FUTURES_REST: &str = "https://fapi.binance.com";

const SECOND_NS: u64 = 1_000_000_000;
/// Silence that ends a connection: three pings of the spot market, which come every 20 s.
const SPOT_SILENCE_NS: u64 = 60 * SECOND_NS;
/// Silence that ends a connection of the futures market, whose pings come every 3 minutes.
const FUTURES_SILENCE_NS: u64 = 240 * SECOND_NS;
/// Age at which a connection is announced to end: ten minutes before the exchange ends it.
const RENEW_AFTER_NS: u64 = (24 * 60 - 10) * 60 * SECOND_NS;

/// Configuration of a [`BinanceFeed`](crate::BinanceFeed). The constructors fill in the exchange's own values.
#[derive(Debug, Clone)]
pub struct BinanceFeedConfig {
    /// Market of the instruments.
    pub market: BinanceMarket,
    /// Address of the streams without a path: `wss://HOST[:PORT]`, or `ws://` for loopback.
    pub url: String,
    /// Address of the REST interface without a path: `https://HOST[:PORT]`, or `http://` for loopback.
    pub rest_url: String,
    /// File of the only trusted authorities; the system's authorities without one.
    pub ca: Option<PathBuf>,
    /// Key of the spot market's SBE streams. With a key the feed reads SBE, without one JSON.
    pub api_key: Option<ApiKey>,
    /// Instruments, and the kinds of their messages.
    pub subscription: Subscription,
    /// Unit of times in JSON; the feed requests this unit.
    pub time_unit: TimeUnit,
    /// Stream of book updates, as it follows the symbol and `@`.
    pub book_stream: String,
    /// Levels of a book's snapshot on each side.
    pub snapshot_depth: SnapshotDepth,
    /// Snapshots follow each connect, also while another feed of the same market data is up, so that the raw frames of
    /// each connection are complete by themselves.
    pub snapshots_per_connection: bool,
    /// Time without any arrival after which a connection is lost, in nanoseconds.
    pub silence_ns: u64,
    /// Age of a connection at which the feed reports `Maintenance`, in nanoseconds.
    pub renew_after_ns: u64,
}

impl BinanceFeedConfig {
    /// Returns the configuration of a feed of the spot market's JSON streams.
    pub fn spot(subscription: Subscription) -> Self {
        Self {
            market: BinanceMarket::Spot,
            url: SPOT_STREAMS.to_owned(),
            rest_url: SPOT_REST.to_owned(),
            ca: None,
            api_key: None,
            subscription,
            time_unit: TimeUnit::Millisecond,
            book_stream: "depth@100ms".to_owned(),
            snapshot_depth: SnapshotDepth::default(),
            snapshots_per_connection: false,
            silence_ns: SPOT_SILENCE_NS,
            renew_after_ns: RENEW_AFTER_NS,
        }
    }

    /// Returns the configuration of a feed of the spot market's SBE streams.
    pub fn spot_sbe(subscription: Subscription, api_key: ApiKey) -> Self {
        Self {
            url: SPOT_SBE_STREAMS.to_owned(),
            api_key: Some(api_key),
            book_stream: "depth".to_owned(),
            ..Self::spot(subscription)
        }
    }

    /// Returns the configuration of a feed of USDⓈ-M futures.
    pub fn usd_futures(subscription: Subscription) -> Self {
        Self {
            market: BinanceMarket::UsdFutures,
            url: FUTURES_STREAMS.to_owned(),
            rest_url: FUTURES_REST.to_owned(),
            silence_ns: FUTURES_SILENCE_NS,
            ..Self::spot(subscription)
        }
    }
}
