//! The exchange of a run: its protocols, its instrument and its account, on both sides.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tickpath_feed::{Feed, FeedInstrument, Subscription};
use tickpath_feed_binance::{BinanceFeed, BinanceFeedConfig};
use tickpath_feed_okx::{OkxFeed, OkxFeedConfig};
use tickpath_lab_harness::LabError;
use tickpath_market::{Price, Quantity, SymbolId, VenueId};
use tickpath_venue::{Line, SendStamps};
use tickpath_venue_binance::{BinanceLine, BinanceLineConfig};
use tickpath_venue_okx::{OkxLine, OkxLineConfig};
use tickpath_venue_sim_binance::BinanceExchange;
use tickpath_venue_sim_okx::OkxExchange;
use tickpath_venue_sim_web::{SimAccount, SimDesk, SimDeskConfig, SimInstrument, WebFaults, WebService};

/// An exchange, by its protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViaExchange {
    /// OKX, API v5.
    Okx,
    /// Binance spot.
    Binance,
}

/// First bid, in units of 10⁻⁸.
const FIRST_BID: i64 = 61_800 * 100_000_000;
/// Step between the two quotes, in units of 10⁻⁸; a tick moves both by two of them.
const STEP: i64 = 10_000_000;
/// Quantity of each quote: more than all orders of a run.
const QUOTED: Quantity = Quantity::from_whole(1_000);
/// The number of the instrument at OKX.
const CODE: u64 = 10_001;
/// The account of the strategy. It exists for the time of a run, on the loopback.
const API_KEY: &str = "TickpathLabKey000000000000000001";
const SECRET: &str = "TickpathLabSecret000000000000001";
const PASSPHRASE: &str = "TickpathLab1";
/// The same for Binance, where a private key logs the connection on.
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
                                  MC4CAQAwBQYDK2VwBCIEIM1rMvwQPCqXHIUnJTdPpOIu2aaOnCKKgOAeeLvSGEBD\n\
                                  -----END PRIVATE KEY-----\n";
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
                                  MCowBQYDK2VwAyEAlWKhsdtyr/2/czYB6oQX+Ze88nFgRENZlHvng5ecUgg=\n\
                                  -----END PUBLIC KEY-----\n";

impl ViaExchange {
    /// Names on the command line.
    pub const NAMES: [&'static str; 2] = ["okx", "binance"];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Okx => "okx",
            Self::Binance => "binance",
        }
    }

    /// Returns the most orders a second that the exchange takes: OKX 60 in two seconds of an instrument, Binance 100 in
    /// ten seconds of an account.
    pub fn max_orders_per_s(self) -> f64 {
        match self {
            Self::Okx => 29.0,
            Self::Binance => 9.5,
        }
    }

    /// Returns the most ticks a second that the exchange sends at once: OKX waits 10 ms between two messages of a channel,
    /// of which a fill makes one more.
    pub fn max_ticks_per_s(self) -> f64 {
        match self {
            Self::Okx => 45.0,
            Self::Binance => 2_000.0,
        }
    }

    /// Returns the time between two messages of a channel, in nanoseconds.
    pub(crate) fn pause_ns(self) -> i64 {
        match self {
            Self::Okx => 10_500_000,
            Self::Binance => 0,
        }
    }

    /// Returns the name of the instrument at the exchange.
    pub(crate) fn instrument(self) -> &'static str {
        match self {
            Self::Okx => "BTC-USDT",
            Self::Binance => "BTCUSDT",
        }
    }

    /// Returns the exchange's side: its protocols, with one instrument and the strategy's account.
    pub(crate) fn simulate(self) -> SimulatedExchange {
        let instrument = SimInstrument {
            name: self.instrument().to_owned(),
            symbol: SymbolId(0),
            code: CODE,
            base: "BTC".to_owned(),
            quote: "USDT".to_owned(),
            tick: Price(STEP),
            lot: Quantity(1_000),
            minimum: Quantity(1_000),
            is_derivative: false,
            contract_value: Quantity::from_whole(1),
            bid: Price(FIRST_BID),
            ask: Price(FIRST_BID + STEP),
            size: QUOTED,
        };
        let balance = |currency: &str| (currency.to_owned(), Quantity::from_whole(1_000_000_000));
        let account = SimAccount {
            name: "lab".to_owned(),
            api_key: API_KEY.to_owned(),
            secret: if self == Self::Binance { PUBLIC_KEY } else { SECRET }.to_owned(),
            passphrase: PASSPHRASE.to_owned(),
            balances: vec![balance("BTC"), balance("USDT")],
        };
        let (instruments, accounts) = (vec![instrument], vec![account]);
        let desk = SimDesk::new(SimDeskConfig { instruments, accounts, maker_fee_e6: 800, taker_fee_e6: 1_000 });
        match self {
            Self::Okx => SimulatedExchange::Okx(Box::new(OkxExchange::new(desk, WebFaults::none()))),
            Self::Binance => SimulatedExchange::Binance(Box::new(BinanceExchange::new(desk, WebFaults::none()))),
        }
    }

    /// Returns a feed of the instrument's quotes from the exchange at this address, a host and a port.
    pub(crate) fn feed(self, address: &str, ca: &Path) -> Result<Box<dyn Feed>, LabError> {
        let (name, ca) = (self.instrument().to_owned(), Some(ca.to_owned()));
        let instrument =
            FeedInstrument { name, symbol: SymbolId(0), price_decimals: 8, quantity_decimals: 8, code: CODE };
        let subscription = Subscription { instruments: vec![instrument], quotes: true, ..Subscription::default() };
        Ok(match self {
            Self::Okx => {
                let (url, rest_url) = (format!("wss://{address}/ws/v5/public"), None);
                let config = OkxFeedConfig { url, rest_url, ca, ..OkxFeedConfig::new(subscription) };
                Box::new(OkxFeed::new(config).map_err(LabError::other)?)
            }
            Self::Binance => {
                let (url, rest_url) = (format!("wss://{address}"), format!("https://{address}"));
                let config = BinanceFeedConfig { url, rest_url, ca, ..BinanceFeedConfig::spot(subscription) };
                Box::new(BinanceFeed::new(config).map_err(LabError::other)?)
            }
        })
    }

    /// Returns a line for the instrument's orders to the exchange at this address.
    pub(crate) fn line(self, address: &str, ca: &Path, venue: VenueId) -> Result<ExchangeLine, LabError> {
        let (name, ca, symbol) = (self.instrument().to_owned(), Some(ca.to_owned()), SymbolId(0));
        let (lot, contract) = (Quantity(1_000), Quantity::from_whole(1));
        let key = API_KEY.to_owned();
        match self {
            Self::Okx => {
                use tickpath_venue_okx::{ApiCredentials, LineInstrument};
                let credentials = ApiCredentials { key, secret: SECRET.to_owned(), passphrase: PASSPHRASE.to_owned() };
                let instrument = LineInstrument { name, symbol, code: CODE, lot, contract, is_derivative: false };
                let (url, rest_url) = (format!("wss://{address}/ws/v5/private"), format!("https://{address}"));
                let config =
                    OkxLineConfig { url, rest_url, ca, ..OkxLineConfig::new(venue, credentials, vec![instrument]) };
                Ok(ExchangeLine::Okx(Box::new(OkxLine::new(config).map_err(LabError::other)?)))
            }
            Self::Binance => {
                use tickpath_venue_binance::{ApiCredentials, LineInstrument};
                let credentials = ApiCredentials { key, secret: PRIVATE_KEY.to_owned(), passphrase: String::new() };
                let instrument = LineInstrument { name, symbol, code: 0, lot, contract, is_derivative: false };
                let url = format!("wss://{address}/ws-api/v3?returnRateLimits=false");
                let config =
                    BinanceLineConfig { url, ca, ..BinanceLineConfig::new(credentials, venue, vec![instrument]) };
                Ok(ExchangeLine::Binance(Box::new(BinanceLine::new(config).map_err(LabError::other)?)))
            }
        }
    }

    /// Returns the secret for a client that signs each request.
    pub(crate) fn account(self) -> ExchangeAccount {
        let secret = if self == Self::Binance { PRIVATE_KEY } else { SECRET }.to_owned();
        ExchangeAccount { key: API_KEY.to_owned(), secret, passphrase: PASSPHRASE.to_owned() }
    }
}

/// The account of a strategy outside.
#[derive(Clone, Serialize)]
pub(crate) struct ExchangeAccount {
    pub key: String,
    pub secret: String,
    pub passphrase: String,
}

impl fmt::Display for ViaExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ViaExchange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "okx" => Ok(Self::Okx),
            "binance" => Ok(Self::Binance),
            _ => Err(format!("'{text}' is no exchange; use okx or binance")),
        }
    }
}

/// Returns the bid and the ask of a tick: no two ticks share a price, so that an order names its tick.
pub(crate) fn quotes(tick: u64) -> (Price, Price) {
    let bid = FIRST_BID + 2 * STEP * (tick as i64 + 1);
    (Price(bid), Price(bid + STEP))
}

/// Returns the tick that has this price on a side; none for another price.
pub(crate) fn tick_of(price: Price) -> Option<u64> {
    let steps = price.0.checked_sub(FIRST_BID)?;
    (steps >= 2 * STEP && steps % STEP == 0).then(|| (steps / STEP / 2 - 1) as u64)
}

/// The exchange's side.
pub(crate) enum SimulatedExchange {
    Okx(Box<OkxExchange>),
    Binance(Box<BinanceExchange>),
}

impl SimulatedExchange {
    /// Sets the quotes.
    pub fn quote(&mut self, via: ViaExchange, now_ns: u64, (bid, ask): (Price, Price)) {
        let desk = match self {
            Self::Okx(exchange) => exchange.desk(),
            Self::Binance(exchange) => exchange.desk(),
        };
        desk.quote(now_ns, via.instrument(), bid, QUOTED, ask, QUOTED);
    }

    pub fn service(&mut self) -> &mut dyn WebService {
        match self {
            Self::Okx(exchange) => &mut **exchange,
            Self::Binance(exchange) => &mut **exchange,
        }
    }
}

/// The strategy's line.
pub(crate) enum ExchangeLine {
    Okx(Box<OkxLine>),
    Binance(Box<BinanceLine>),
}

impl ExchangeLine {
    /// Returns the times of the last request that was sent.
    #[inline]
    pub fn last_send(&self) -> SendStamps {
        match self {
            Self::Okx(line) => line.last_send(),
            Self::Binance(line) => line.last_send(),
        }
    }

    #[inline]
    pub fn line(&mut self) -> &mut dyn Line {
        match self {
            Self::Okx(line) => &mut **line,
            Self::Binance(line) => &mut **line,
        }
    }

    pub fn as_line(&self) -> &dyn Line {
        match self {
            Self::Okx(line) => &**line,
            Self::Binance(line) => &**line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_price_names_its_tick() {
        for tick in [0, 1, 2, 999, 100_000] {
            let (bid, ask) = quotes(tick);
            assert_eq!([bid, ask].map(tick_of), [Some(tick); 2]);
        }
        assert_eq!(tick_of(Price(FIRST_BID)), None, "the price before the first tick");
        assert_eq!(tick_of(Price(FIRST_BID + 2 * STEP + 1)), None);
    }
}
