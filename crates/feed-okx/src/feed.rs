//! The feed: a WebSocket connection to OKX's public channels.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use tickpath_clock::{CalibrationError, Clock, HostClock};
use tickpath_feed::{Feed, FeedEvent, FeedLost, Subscription};
use tickpath_market::SymbolId;
use tickpath_web_client::{
    HttpRequest, HttpsClient, PendingResponse, WebClientError, WebSocketClient, WebSocketConfig,
};

use crate::channels::{channels_of, requests};
use crate::feed_warm_up::FeedWarmUp;
use crate::instrument_table::OkxInstrumentError;
use crate::parser::OkxParser;
use crate::server_time::{TIME_PATH, clock_offset};
use crate::session::{OkxSession, SessionLimits};

/// Public channels of OKX.
pub const PUBLIC_URL: &str = "wss://ws.okx.com:8443/ws/v5/public";
/// Public channels of OKX's demo trading.
pub const DEMO_PUBLIC_URL: &str = "wss://wspap.okx.com:8443/ws/v5/public";
/// REST interface of OKX.
pub const REST_URL: &str = "https://openapi.okx.com";

/// Configuration of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OkxFeedConfig {
    /// Address of the public channels; users in the EU, the US and Australia have their own.
    pub url: String,
    /// Address of the REST interface, for the offset of OKX's clock at each connect; none to measure no offset.
    pub rest_url: Option<String>,
    /// Certificates to trust instead of the host's.
    pub ca: Option<PathBuf>,
    /// Instruments and kinds of messages.
    pub subscription: Subscription,
    /// Silence after which a ping is sent. OKX closes a connection after 30 s.
    pub silence_ns: u64,
    /// Time for the answer to a ping; the connection is lost after it.
    pub answer_ns: u64,
    /// Time for a connect, up to the last acknowledgement, and for the acknowledgements of a resubscription.
    pub up_ns: u64,
    /// Time for the snapshot of a book after its subscription; the snapshot is requested again after it.
    pub snapshot_ns: u64,
    /// Silence of a book after which it is subscribed again. OKX repeats the number of a quiet book each minute.
    pub book_silence_ns: u64,
    /// Requests that OKX takes an hour of one connection.
    pub requests_per_hour: u32,
}

impl OkxFeedConfig {
    /// Returns the configuration of a feed from OKX's own addresses, with the limits of OKX.
    pub fn new(subscription: Subscription) -> Self {
        Self {
            url: PUBLIC_URL.to_owned(),
            rest_url: Some(REST_URL.to_owned()),
            ca: None,
            subscription,
            silence_ns: 25_000_000_000,
            answer_ns: 10_000_000_000,
            up_ns: 30_000_000_000,
            snapshot_ns: 10_000_000_000,
            book_silence_ns: 150_000_000_000,
            requests_per_hour: 480,
        }
    }
}

/// Errors of a configuration that makes no feed.
#[derive(Debug, thiserror::Error)]
pub enum OkxFeedError {
    /// An instrument cannot be subscribed.
    #[error(transparent)]
    Instrument(#[from] OkxInstrumentError),
    /// The subscription is empty.
    #[error("the feed subscribes to nothing; name instruments, and quotes, trades or books")]
    Nothing,
    /// The subscription needs more requests than OKX takes.
    #[error("the subscription needs {needed} requests, and OKX takes {limit} an hour; spread it over several feeds")]
    TooManyRequests {
        /// Requests of a connect.
        needed: usize,
        /// Hourly limit of a connection.
        limit: u32,
    },
    /// An address or the certificates cannot be used.
    #[error(transparent)]
    Client(#[from] WebClientError),
    /// This host's clock cannot be used.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
}

/// A feed from OKX.
pub struct OkxFeed {
    client: WebSocketClient,
    rest: Option<HttpsClient>,
    session: OkxSession,
    clock: HostClock,
    /// Request for OKX's time that is not answered yet.
    time_request: Option<PendingResponse>,
    /// None if this host has no memory for it.
    warm_up: Option<Box<FeedWarmUp>>,
}

impl OkxFeed {
    /// Makes a feed that is down.
    pub fn new(config: OkxFeedConfig) -> Result<Self, OkxFeedError> {
        let parser = OkxParser::new(&config.subscription.instruments)?;
        let channels = channels_of(&config.subscription);
        let (needed, limit) = (requests("subscribe", &channels).len(), config.requests_per_hour);
        if needed == 0 {
            return Err(OkxFeedError::Nothing);
        }
        if needed as u64 > u64::from(limit) {
            return Err(OkxFeedError::TooManyRequests { needed, limit });
        }
        let rest = match &config.rest_url {
            Some(url) => Some(HttpsClient::new(url, config.ca.as_deref())?),
            None => None,
        };
        let clock = HostClock::get()?;
        let warm_up = FeedWarmUp::new(&config.subscription.instruments, clock);
        let OkxFeedConfig { silence_ns, answer_ns, up_ns, snapshot_ns, book_silence_ns, requests_per_hour, .. } =
            config;
        let limits = SessionLimits { silence_ns, answer_ns, up_ns, snapshot_ns, book_silence_ns, requests_per_hour };
        let session = OkxSession::new(clock, parser, channels, limits);
        let client = WebSocketClient::new(WebSocketConfig { ca: config.ca, ..WebSocketConfig::new(&config.url) })?;
        Ok(Self { client, rest, session, clock, time_request: None, warm_up })
    }

    fn turn(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, String> {
        let Self { client, session, .. } = self;
        let polled = client.poll(&mut |event| session.take_event(event, take));
        // OKX closes a connection after some errors: the error is the reason, not the close.
        if let Some(why) = session.take_failure() {
            return Err(why);
        }
        let received = polled.map_err(|lost| lost.0)?;
        session.advance(take)?;
        let sent = self.send_requests();
        Ok(received + sent + self.take_server_time(take))
    }

    /// Sends waiting requests. If the client is full or down, they wait for the next turn, which also brings the loss.
    fn send_requests(&mut self) -> usize {
        let mut sent = 0;
        while let Some(request) = self.session.outbox().front() {
            if self.client.send_text(request).is_err() {
                break;
            }
            self.session.outbox().pop_front();
            sent += 1;
        }
        sent
    }

    /// Passes on the offset of OKX's clock, once the feed is up.
    fn take_server_time(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> usize {
        if !self.session.is_up() {
            return 0;
        }
        let Some(answer) = self.time_request.as_mut().and_then(PendingResponse::try_take) else { return 0 };
        self.time_request = None;
        match clock_offset(answer, self.clock.calibration()) {
            Ok(offset) => take(offset),
            Err(error) => take(FeedEvent::BadFrame(&error)),
        }
        1
    }
}

impl Feed for OkxFeed {
    fn address(&self) -> String {
        self.client.address().to_owned()
    }

    fn connect(&mut self) {
        self.session.begin();
        self.client.connect();
        self.time_request = self.rest.as_ref().map(|rest| rest.start(HttpRequest::get(TIME_PATH)));
    }

    fn poll(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, FeedLost> {
        if self.session.is_down() {
            return Ok(0);
        }
        self.turn(take).map_err(|why| {
            self.session.end();
            self.client.close();
            self.time_request = None;
            FeedLost(why)
        })
    }

    fn resynchronize(&mut self, symbol: SymbolId) {
        self.session.resubscribe(symbol);
    }

    fn warm_up(&mut self) {
        if let Some(warm_up) = &mut self.warm_up {
            warm_up.run();
        }
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.client.socket()
    }
}
