//! Configuration of a line, with the exchange's own address and bounds as defaults.

use std::path::PathBuf;

use tickpath_market::{Quantity, SymbolId, VenueId};

use crate::ApiCredentials;

/// Address of the WebSocket API. Answers without the state of the rate limits are shorter, and read in place.
pub const SPOT_ORDERS: &str = "wss://ws-api.binance.com:443/ws-api/v3?returnRateLimits=false";

const SECOND_NS: u64 = 1_000_000_000;
/// Silence that ends a connection: three pings of the exchange, which come every 20 s.
const SILENCE_NS: u64 = 60 * SECOND_NS;
/// Age at which a connection ends in order: ten minutes before the exchange ends it.
const RENEW_AFTER_NS: u64 = (24 * 60 - 10) * 60 * SECOND_NS;

/// Configuration of a [`BinanceLine`](crate::BinanceLine). [`Self::new`] fills in the exchange's own values.
#[derive(Debug, Clone)]
pub struct BinanceLineConfig {
    /// Address of the WebSocket API: `wss://HOST[:PORT]/PATH`, or `ws://` for loopback.
    pub url: String,
    /// File of the only trusted authorities; the system's authorities without one.
    pub ca: Option<PathBuf>,
    /// Key of the API user and its secret.
    pub credentials: ApiCredentials,
    /// Venue number, which the reports carry.
    pub venue: VenueId,
    /// Instruments of the line. Orders of others are refused.
    pub instruments: Vec<LineInstrument>,
    /// File that names the account of the orders: a connect with a key of another account is refused. The first connect
    /// writes it. Nothing is checked if none.
    pub account_file: Option<PathBuf>,
    /// Time for which a request is valid, in milliseconds: 1 to 60,000.
    pub recv_window_ms: u32,
    /// Limits of requests.
    pub limits: RequestLimits,
    /// Max time of a connect, from its begin until the line is up, in nanoseconds.
    pub connect_timeout_ns: u64,
    /// Max time until the answer to a request, in nanoseconds. A connection that swallows an answer is lost.
    pub answer_timeout_ns: u64,
    /// Time without any arrival after which a connection is lost, in nanoseconds.
    pub silence_ns: u64,
    /// Age at which a connection ends in order, in nanoseconds.
    pub renew_after_ns: u64,
    /// Time beyond `recv_window_ms` after which an order that the exchange does not find never arrived, in nanoseconds.
    pub absence_margin_ns: u64,
}

/// An instrument of a line. Its prices and quantities have eight decimals in the OMS, as at the exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineInstrument {
    /// The exchange's name of it.
    pub name: String,
    /// Number of the instrument in the OMS, up to 4,194,303.
    pub symbol: SymbolId,
    /// The exchange's number of it, where requests need one; not read here.
    pub code: u64,
    /// Quantities are multiples of this; zero for no check.
    pub lot: Quantity,
    /// Base units of a contract: 1 for spot.
    pub contract: Quantity,
    /// The instrument is a derivative, which this line does not trade.
    pub is_derivative: bool,
}

/// Limits of the exchange, of which the line keeps requests back before the exchange refuses them. Lower them if other
/// programs use the same account or address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Max new orders in ten seconds, of the account.
    pub orders_per_10_s: u32,
    /// Max new orders in a day, of the account.
    pub orders_per_day: u32,
    /// Max weight of requests in a minute, of the IP address.
    pub weight_per_minute: u32,
}

impl BinanceLineConfig {
    /// Returns the configuration of a line to the exchange itself.
    pub fn new(credentials: ApiCredentials, venue: VenueId, instruments: Vec<LineInstrument>) -> Self {
        Self {
            url: SPOT_ORDERS.to_owned(),
            ca: None,
            credentials,
            venue,
            instruments,
            account_file: None,
            recv_window_ms: 5_000,
            limits: RequestLimits::default(),
            connect_timeout_ns: 10 * SECOND_NS,
            answer_timeout_ns: 20 * SECOND_NS,
            silence_ns: SILENCE_NS,
            renew_after_ns: RENEW_AFTER_NS,
            absence_margin_ns: 2 * SECOND_NS,
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { orders_per_10_s: 100, orders_per_day: 200_000, weight_per_minute: 6_000 }
    }
}
