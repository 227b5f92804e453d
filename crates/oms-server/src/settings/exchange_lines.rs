//! Lines to exchanges that speak protocols of their own over WebSocket: OKX and Binance.
//!
//! A file names the credentials, which are read when a line is opened. No error, no log line and no `Debug` form has a
//! secret: [`ExchangeLine`] holds only paths.

use std::fmt;
use std::path::PathBuf;

use tickpath_exchanges::OrderExchange;
use tickpath_market::{Quantity, SymbolId, VenueId};
use tickpath_settings::Section;
use tickpath_venue::Line;
use tickpath_venue_binance::{BinanceLine, BinanceLineConfig};
use tickpath_venue_okx::{OkxLine, OkxLineConfig};
use zeroize::Zeroizing;

/// Keys of a line that only a line to an exchange has.
const KEYS: [&str; 6] = ["credentials", "rest_url", "ca", "demo", "valid_ms", "cancel_all_after_s"];
/// Those that a line to Binance does not have, each with the remedy.
const ONLY_OKX: [(&str, &str); 3] = [
    ("rest_url", "a line to Binance needs no REST interface; remove the key"),
    ("demo", "Binance has no demo header; remove the key, and write the address of its test network in url"),
    ("cancel_all_after_s", "Binance's spot market cannot cancel all orders by itself; remove the key"),
];

/// Default time for which a request is valid, in milliseconds.
const VALID_MS: u32 = 5_000;

/// A line to an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeLine {
    /// Exchange.
    pub exchange: OrderExchange,
    /// Address of its WebSocket: `wss://HOST[:PORT]/PATH`, or `ws://` for loopback.
    pub url: String,
    /// Address of its REST interface; none for that of the exchange at `url`. Read for OKX only.
    pub rest_url: Option<String>,
    /// File of the only trusted authorities; the system's authorities if none.
    pub ca: Option<PathBuf>,
    /// File with the key of the API, its secret and its passphrase.
    pub credentials: PathBuf,
    /// Whether the account is one of OKX's demo trading.
    pub is_demo: bool,
    /// Time for which a request is valid, in milliseconds.
    pub valid_ms: u32,
    /// Seconds after which OKX cancels all orders of the account unless the line is up; none for never.
    pub cancel_all_after_s: Option<u32>,
}

/// An instrument that lines of its venue trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VenueInstrument {
    /// Name at the exchange.
    pub name: String,
    /// Number in the table of instruments.
    pub symbol: SymbolId,
    /// Number at the exchange; zero if it has none.
    pub code: u64,
    /// Lot size; zero if there is none.
    pub lot: Quantity,
}

/// Keys of a line to an exchange, as the file has them.
pub(super) struct ExchangeKeys {
    credentials: Option<PathBuf>,
    rest_url: Option<String>,
    ca: Option<PathBuf>,
    is_demo: bool,
    valid_ms: u32,
    cancel_all_after_s: Option<u32>,
}

impl ExchangeLine {
    /// Returns a line with this address and this file of credentials; everything else as the exchange has it.
    pub fn new(exchange: OrderExchange, url: String, credentials: PathBuf) -> Self {
        let (rest_url, ca, cancel_all_after_s) = (None, None, None);
        Self { exchange, url, rest_url, ca, credentials, is_demo: false, valid_ms: VALID_MS, cancel_all_after_s }
    }

    /// Opens the line, which connects nothing yet. A connect compares the account of the key with that in the file, which
    /// the first one writes. The error is a sentence without secrets.
    pub fn open(
        &self,
        venue: VenueId,
        instruments: &[VenueInstrument],
        account_file: Option<PathBuf>,
    ) -> Result<Box<dyn Line>, String> {
        match self.exchange {
            OrderExchange::Okx => self.open_okx(venue, instruments, account_file),
            OrderExchange::Binance => self.open_binance(venue, instruments, account_file),
        }
    }

    /// Reads the key of the credentials, which names the account; none for credentials that cannot be read.
    pub(super) fn read_key(&self) -> Option<Zeroizing<String>> {
        let key = match self.exchange {
            OrderExchange::Okx => tickpath_venue_okx::ApiCredentials::read(&self.credentials).ok()?.key.clone(),
            OrderExchange::Binance => tickpath_venue_binance::ApiCredentials::read(&self.credentials).ok()?.key.clone(),
        };
        Some(Zeroizing::new(key))
    }

    fn open_okx(
        &self,
        venue: VenueId,
        instruments: &[VenueInstrument],
        account_file: Option<PathBuf>,
    ) -> Result<Box<dyn Line>, String> {
        let rest_url = self.rest_url.clone().or_else(|| self.exchange.rest_url(&self.url));
        let rest_url = rest_url.ok_or("the REST interface of this host is not known; write rest_url")?;
        let credentials = tickpath_venue_okx::ApiCredentials::read(&self.credentials).map_err(|e| e.to_string())?;
        let traded = |instrument: &VenueInstrument| tickpath_venue_okx::LineInstrument {
            name: instrument.name.clone(),
            symbol: instrument.symbol,
            code: instrument.code,
            lot: instrument.lot,
            // The OMS counts derivatives in contracts.
            contract: Quantity::from_whole(1),
            is_derivative: instrument.is_derivative(),
        };
        let config = OkxLineConfig {
            url: self.url.clone(),
            rest_url,
            ca: self.ca.clone(),
            account_file,
            valid_ms: self.valid_ms,
            is_demo: self.is_demo,
            cancel_all_after_s: self.cancel_all_after_s,
            ..OkxLineConfig::new(venue, credentials, instruments.iter().map(traded).collect())
        };
        Ok(Box::new(OkxLine::new(config).map_err(|e| e.to_string())?))
    }

    fn open_binance(
        &self,
        venue: VenueId,
        instruments: &[VenueInstrument],
        account_file: Option<PathBuf>,
    ) -> Result<Box<dyn Line>, String> {
        let credentials = tickpath_venue_binance::ApiCredentials::read(&self.credentials).map_err(|e| e.to_string())?;
        let traded = |instrument: &VenueInstrument| tickpath_venue_binance::LineInstrument {
            name: instrument.name.clone(),
            symbol: instrument.symbol,
            code: instrument.code,
            lot: instrument.lot,
            contract: Quantity::from_whole(1),
            is_derivative: false,
        };
        let config = BinanceLineConfig {
            url: self.url.clone(),
            ca: self.ca.clone(),
            account_file,
            recv_window_ms: self.valid_ms,
            ..BinanceLineConfig::new(credentials, venue, instruments.iter().map(traded).collect())
        };
        Ok(Box::new(BinanceLine::new(config).map_err(|e| e.to_string())?))
    }
}

impl fmt::Display for ExchangeLine {
    /// Formats the URL without its query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.url.split('?').next().unwrap_or_default();
        write!(f, "{}+{address} with the credentials in {}", self.exchange.name(), self.credentials.display())
    }
}

impl VenueInstrument {
    /// Returns whether OKX counts the instrument in contracts: the names of swaps, futures and options have two dashes or
    /// more.
    fn is_derivative(&self) -> bool {
        self.name.matches('-').count() >= 2
    }
}

impl ExchangeKeys {
    /// Reads the keys of a line, whatever its URL.
    pub(super) fn read(line: &mut Section<'_>) -> Self {
        Self {
            credentials: line.path("credentials"),
            rest_url: line.text("rest_url"),
            ca: line.path("ca"),
            is_demo: line.flag("demo").unwrap_or(false),
            valid_ms: line.number("valid_ms", 100..=60_000).unwrap_or(VALID_MS),
            cancel_all_after_s: line.number("cancel_all_after_s", 10..=120),
        }
    }

    /// Reports the keys of a line that leads to no such exchange.
    pub(super) fn refuse_all(line: &mut Section<'_>) {
        for key in KEYS {
            if line.has(key) {
                line.add_mistake(
                    key,
                    "only a line to okx+wss:// or binance+wss:// has this key; remove it, or correct url",
                );
            }
        }
    }

    /// Returns the line, and reports keys that its exchange does not have.
    pub(super) fn into_line(self, line: &mut Section<'_>, exchange: OrderExchange, url: String) -> ExchangeLine {
        if !line.has("credentials") {
            line.add_mistake("credentials", format!("a line to {exchange} needs an API key; name its file"));
        }
        if exchange == OrderExchange::Binance {
            for (key, remedy) in ONLY_OKX {
                if line.has(key) {
                    line.add_mistake(key, remedy);
                }
            }
        } else if self.rest_url.is_none() && exchange.rest_url(&url).is_none() {
            line.add_mistake("url", "the REST interface of this host is not known; write rest_url as well");
        }
        let Self { credentials, rest_url, ca, is_demo, valid_ms, cancel_all_after_s } = self;
        let credentials = credentials.unwrap_or_default();
        ExchangeLine { exchange, url, rest_url, ca, credentials, is_demo, valid_ms, cancel_all_after_s }
    }
}

/// Returns why a venue may not have a second line to an exchange.
pub(super) fn second_line(exchange: OrderExchange) -> String {
    format!(
        "a venue has one line to {exchange}: each line is an account, and an order is known only where it was placed; make this \
         one the line of a [[venue]] of its own"
    )
}

/// Returns why a line may not use the key of the line before it on this line of the file.
pub(super) fn shared_account(exchange: OrderExchange, first: usize) -> String {
    format!(
        "the line on line {first} has the same key, and both would read the ends of each other's orders at {exchange}; \
         remove one of the two, or give it the key of another sub-account"
    )
}
