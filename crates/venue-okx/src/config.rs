//! Configuration of a line.

use std::path::PathBuf;

use tickpath_clock::CalibrationError;
use tickpath_market::{Quantity, SymbolId, VenueId};
use tickpath_web_client::WebClientError;

use crate::credentials::ApiCredentials;

/// Private channels of OKX.
pub const PRIVATE_URL: &str = "wss://ws.okx.com:8443/ws/v5/private";
/// Private channels of OKX's demo trading.
pub const DEMO_PRIVATE_URL: &str = "wss://wspap.okx.com:8443/ws/v5/private";
/// REST interface of OKX.
pub const REST_URL: &str = "https://openapi.okx.com";

/// An instrument that a line trades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineInstrument {
    /// Name at OKX.
    pub name: String,
    /// Number in the OMS's table.
    pub symbol: SymbolId,
    /// OKX's `instIdCode`; zero if unknown: then orders name the instrument.
    pub code: u64,
    /// Smallest step of a quantity, in the OMS's quantities; zero for a whole contract. Read for derivatives only.
    pub lot: Quantity,
    /// Quantity of one contract, in the OMS's quantities. 1 for spot, and for an OMS that counts in contracts.
    pub contract: Quantity,
    /// The instrument is a swap, a future or an option: OKX counts its sizes in contracts.
    pub is_derivative: bool,
}

/// Configuration of a line.
#[derive(Debug, Clone)]
pub struct OkxLineConfig {
    /// Address of the private channels; users in the EU, the US and Australia have their own.
    pub url: String,
    /// Address of the REST interface.
    pub rest_url: String,
    /// PEM file of the trusted authorities; the host's own if none.
    pub ca: Option<PathBuf>,
    /// Number of the venue in the OMS's table.
    pub venue: VenueId,
    /// Keys of the API, which need the permission to trade.
    pub credentials: ApiCredentials,
    /// Instruments.
    pub instruments: Vec<LineInstrument>,
    /// File that names the account of the orders: a connect with a key of another account is refused, and so is one with
    /// an instrument whose code is not OKX's. The first connect writes it. Nothing is checked if none.
    pub account_file: Option<PathBuf>,
    /// Time in milliseconds within which OKX must have a new order or an amendment, or drop it.
    pub valid_ms: u32,
    /// The addresses are those of demo trading.
    pub is_demo: bool,
    /// Largest difference of this host's clock from OKX's, in nanoseconds.
    pub max_clock_offset_ns: u64,
    /// Seconds after which OKX cancels all orders of the account unless the line is up; 10 to 120. None for never.
    pub cancel_all_after_s: Option<u32>,
    /// Time for a connect in nanoseconds, up to the subscription, and from then on for each page of the lists.
    pub connect_timeout_ns: u64,
    /// Pause in nanoseconds before the next connect, after OKX has ended one for its rate. Each further one doubles it,
    /// up to 32 times.
    pub refused_pause_ns: u64,
    /// Pause in nanoseconds before fills are asked for that the orders channel may still bring.
    pub fills_pause_ns: u64,
    /// Silence in nanoseconds after which a ping is sent. OKX closes a connection after 30 s.
    pub silence_ns: u64,
    /// Time in nanoseconds for the answer to a ping, and for that to a request; the connection is lost after it.
    pub answer_ns: u64,
}

impl OkxLineConfig {
    /// Returns the configuration of a line to OKX's own addresses: orders are valid for five seconds, the clock may be
    /// five seconds off, and each step of a connect may take ten. Nothing is canceled when the line is down.
    pub fn new(venue: VenueId, credentials: ApiCredentials, instruments: Vec<LineInstrument>) -> Self {
        Self {
            url: PRIVATE_URL.to_owned(),
            rest_url: REST_URL.to_owned(),
            ca: None,
            venue,
            credentials,
            instruments,
            account_file: None,
            valid_ms: 5_000,
            is_demo: false,
            max_clock_offset_ns: 5_000_000_000,
            cancel_all_after_s: None,
            connect_timeout_ns: 10_000_000_000,
            refused_pause_ns: 2_000_000_000,
            fills_pause_ns: 1_000_000_000,
            silence_ns: 20_000_000_000,
            answer_ns: 10_000_000_000,
        }
    }

    /// Checks the numbers of the configuration.
    pub(crate) fn check(&self) -> Result<(), OkxLineError> {
        if !(100..=60_000).contains(&self.valid_ms) {
            return Err(OkxLineError::Validity(self.valid_ms));
        }
        match self.cancel_all_after_s {
            Some(seconds) if !(10..=120).contains(&seconds) => Err(OkxLineError::CancelAllAfter(seconds)),
            _ => Ok(()),
        }
    }
}

/// Errors of a configuration that makes no line.
#[derive(Debug, thiserror::Error)]
pub enum OkxLineError {
    /// The name cannot be one of OKX.
    #[error("'{0}' is no name of an instrument; write it as OKX lists it, like BTC-USDT-SWAP")]
    Name(String),
    /// Two instruments have the same name or the same number.
    #[error("the instrument '{0}' has the name or the number of another one; remove one of the two")]
    Duplicate(String),
    /// The contract or the lot of an instrument is no quantity.
    #[error("the contract of '{0}' must be above zero, and its lot not below zero; correct them")]
    Contract(String),
    /// The validity of orders is out of range.
    #[error("orders cannot be valid for {0} ms; allow 100 to 60000")]
    Validity(u32),
    /// The time until all orders are canceled is out of range.
    #[error("OKX cannot cancel all orders after {0} s; allow 10 to 120, or leave the setting out")]
    CancelAllAfter(u32),
    /// An address or the certificates cannot be used.
    #[error(transparent)]
    Client(#[from] WebClientError),
    /// This host's clock cannot be used.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
}
