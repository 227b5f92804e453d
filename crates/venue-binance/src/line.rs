//! The line: a connection and the state of its orders.

use std::os::fd::BorrowedFd;

use tickpath_clock::{CalibrationError, Clock, HostClock};
use tickpath_market::{Request, SCALE};
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState, SendStamps};
use tickpath_web_client::{WebClientError, WebSocketClient, WebSocketConfig};

use crate::CredentialsError;
use crate::budget::RequestBudget;
use crate::config::{BinanceLineConfig, LineInstrument};
use crate::encode::RequestEncoder;
use crate::instruments::{InstrumentTable, MAX_SYMBOL};
use crate::line_warm_up::LineWarmUp;
use crate::orders::LineOrders;
use crate::outgoing::Outgoing;
use crate::session::{LineSession, Phase, SessionBounds};
use crate::signer::RequestSigner;

/// Longest time window that the exchange accepts, in milliseconds.
const MAX_RECV_WINDOW_MS: u32 = 60_000;

/// A line to Binance spot. The head of this crate has its rules.
pub struct BinanceLine {
    client: WebSocketClient,
    session: LineSession,
    /// None if this host has no memory for it.
    warm_up: Option<Box<LineWarmUp>>,
}

/// Errors of creating a line.
#[derive(Debug, thiserror::Error)]
pub enum BinanceLineError {
    /// There is no instrument.
    #[error("the line has no instrument; name at least one")]
    NoInstruments,
    /// An instrument is a derivative.
    #[error("'{0}' is a derivative, and this line trades spot; take it out of the line's instruments")]
    Derivative(String),
    /// A contract is not one unit.
    #[error("a contract of '{0}' is not one unit, as it is for spot; correct its contract size")]
    Contract(String),
    /// A name cannot stand in a request.
    #[error("'{0}' is no name of an instrument; copy it from the exchange's list")]
    Name(String),
    /// An instrument is named twice.
    #[error("'{0}' is there twice, by its name or by its number; take one out")]
    Duplicate(String),
    /// The number of an instrument does not fit an execution id.
    #[error("'{name}' has the number {symbol}, too high for execution ids; give it one up to {max}", max = MAX_SYMBOL)]
    Symbol {
        /// Name of the instrument.
        name: String,
        /// Its number.
        symbol: u32,
    },
    /// The time window is out of range.
    #[error("the time window of {0} ms is out of range; use 1 to 60000")]
    RecvWindow(u32),
    /// The address changes the unit of times.
    #[error("the address sets a unit of times, and this line reads milliseconds; take 'timeUnit' out")]
    TimeUnit,
    /// The credentials cannot sign.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The address or the file of authorities cannot be used.
    #[error(transparent)]
    Client(#[from] WebClientError),
    /// The host's clock is not available.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
}

impl BinanceLine {
    /// Creates a line that is down.
    pub fn new(config: BinanceLineConfig) -> Result<Self, BinanceLineError> {
        check_instruments(&config.instruments)?;
        if !(1..=MAX_RECV_WINDOW_MS).contains(&config.recv_window_ms) {
            return Err(BinanceLineError::RecvWindow(config.recv_window_ms));
        }
        if config.url.contains("timeUnit") {
            return Err(BinanceLineError::TimeUnit);
        }
        let clock = HostClock::get()?;
        let now = clock.ticks();
        let bounds = SessionBounds {
            account_file: config.account_file,
            recv_window_ms: config.recv_window_ms,
            connect_timeout_ns: config.connect_timeout_ns,
            answer_timeout_ns: config.answer_timeout_ns,
            silence_ns: config.silence_ns,
            renew_after_ns: config.renew_after_ns,
            absence_margin_ns: config.absence_margin_ns,
        };
        let warm_up = LineWarmUp::new(&config.instruments, clock);
        let signer = RequestSigner::new(config.credentials)?;
        let encoder = RequestEncoder::new(signer, config.recv_window_ms);
        let budget = RequestBudget::new(&config.limits, clock.calibration(), now);
        let orders = LineOrders::new(config.venue, InstrumentTable::new(config.instruments), now);
        let socket = WebSocketConfig {
            ca: config.ca,
            connect_timeout_ns: config.connect_timeout_ns,
            ..WebSocketConfig::new(&config.url)
        };
        let client = WebSocketClient::new(socket)?;
        let session = LineSession::new(clock, bounds, orders, Outgoing::new(clock, encoder, budget));
        Ok(Self { client, session, warm_up })
    }

    /// Returns the times of the last sent request of the OMS.
    pub fn last_send(&self) -> SendStamps {
        self.session.last_send
    }

    /// Returns the measured offset of the exchange's clock, exchange minus host, in nanoseconds; none before the first
    /// connect. Requests carry the exchange's time.
    pub fn clock_offset_ns(&self) -> Option<i64> {
        self.session.out.exchange.offset_ns()
    }
}

impl Line for BinanceLine {
    fn address(&self) -> String {
        self.client.address().to_owned()
    }

    fn connect(&mut self, resume: &ResumeState) {
        self.client.close();
        if self.session.begin(resume) {
            self.client.connect();
        }
    }

    #[inline]
    fn send(&mut self, number: u64, _stamp: u64, request: &Request) -> Result<(), LineSendError> {
        self.session.send(&mut self.client, number, request)
    }

    fn confirm(&mut self, _next_report: u64) {
        // The exchange keeps its orders and fills, whatever is confirmed.
    }

    #[inline]
    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        let Self { client, session, .. } = self;
        if session.phase == Phase::Down {
            return Ok(0);
        }
        let polled = client.poll(&mut |event| session.handle(event, take));
        let polled = polled.map_err(|lost| {
            if let Some(refusal) = client.refusal() {
                session.out.note_refused_connect(refusal);
            }
            lost.0
        });
        let advanced = polled.and_then(|arrived| {
            let done = session.advance(client, take).map_err(|why| format!("{}: {why}", client.address()))?;
            Ok(arrived + done)
        });
        advanced.map_err(|why| {
            client.close();
            session.end();
            ConnectionLost(why)
        })
    }

    fn warm_up(&mut self) {
        if let Some(warm_up) = &mut self.warm_up {
            warm_up.run(&mut self.session);
        }
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.client.socket()
    }
}

fn check_instruments(instruments: &[LineInstrument]) -> Result<(), BinanceLineError> {
    if instruments.is_empty() {
        return Err(BinanceLineError::NoInstruments);
    }
    for (place, instrument) in instruments.iter().enumerate() {
        let name = instrument.name.clone();
        let is_name = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '"' | '\\' | '&' | '=');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(BinanceLineError::Name(name));
        }
        if instrument.is_derivative {
            return Err(BinanceLineError::Derivative(name));
        }
        if instrument.contract.0 != SCALE {
            return Err(BinanceLineError::Contract(name));
        }
        if instrument.symbol.0 > MAX_SYMBOL {
            return Err(BinanceLineError::Symbol { name, symbol: instrument.symbol.0 });
        }
        let is_same = |other: &LineInstrument| other.name == name || other.symbol == instrument.symbol;
        if instruments[..place].iter().any(is_same) {
            return Err(BinanceLineError::Duplicate(name));
        }
    }
    Ok(())
}
