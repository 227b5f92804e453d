//! The feed: its connections, the requests for books, and the parser between them and the carrier.

use std::os::fd::BorrowedFd;

use tickpath_clock::{CalibrationError, Clock, HostClock};
use tickpath_feed::{Arrival, Feed, FeedEvent, FeedInstrument, FeedLost, Frame, FrameError, FrameParser, MarketEvent};
use tickpath_market::SymbolId;
use tickpath_web_client::{HttpsClient, WebClientError, WebSocketClient, WebSocketConfig};

use crate::config::BinanceFeedConfig;
use crate::connection::{ConnectionEvent, StreamConnection};
use crate::feed_warm_up::FeedWarmUp;
use crate::market::BinanceMarket;
use crate::message::TimeUnit;
use crate::parser::BinanceParser;
use crate::request_weight::SnapshotDepth;
use crate::rest::{RestAnswer, RestQueue, SnapshotOffer};
use crate::streams::{MAX_STREAMS, StreamPath};

/// Max time from the connect to the acknowledgement of all streams, in nanoseconds.
const UP_WITHIN_NS: i64 = 30_000_000_000;
/// Half of a millisecond: the exchange's time is cut off to whole milliseconds.
const HALF_MS_NS: i64 = 500_000;

/// A feed of Binance. The front page of this crate describes its connections.
pub struct BinanceFeed {
    clock: HostClock,
    /// Connections, that of quotes and books first.
    connections: Vec<StreamConnection>,
    /// Requests of the REST interface, which feeds of the same market data share.
    rest: RestQueue,
    parser: BinanceParser,
    instruments: Vec<FeedInstrument>,
    has_books: bool,
    silence_ns: u64,
    renew_after_ns: u64,
    state: FeedState,
    /// Buffer of a snapshot with its envelope.
    snapshot: Vec<u8>,
    /// None if this host has no memory for it.
    warm_up: Option<Box<FeedWarmUp>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FeedState {
    Down,
    Connecting { since: u64 },
    Up { since: u64, is_renewal_announced: bool },
}

/// Errors of a configuration that makes no feed.
#[derive(Debug, thiserror::Error)]
pub enum BinanceFeedError {
    /// No stream results from the subscription.
    #[error("nothing is subscribed; name instruments, and quotes, trades or books")]
    NothingSubscribed,
    /// A connection would have too many streams.
    #[error(
        "a connection has at most 1,024 streams, and {0} are subscribed; divide the instruments among several feeds"
    )]
    TooManyStreams(usize),
    /// A key is given for the futures market.
    #[error("USD-M futures have no SBE streams; remove the API key")]
    SbeOfFutures,
    /// Microseconds are requested of the futures market.
    #[error("USD-M futures have times in milliseconds only; set the time unit to milliseconds")]
    MicrosecondsOfFutures,
    /// A depth is requested that the market does not offer.
    #[error("USD-M futures have no snapshots of {0} levels; use 1000 at most")]
    DepthOfFutures(SnapshotDepth),
    /// An address or a file of authorities cannot be used.
    #[error(transparent)]
    Client(#[from] WebClientError),
    /// The host's clock is not available.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
}

impl BinanceFeed {
    /// Makes a feed that is down.
    pub fn new(config: BinanceFeedConfig) -> Result<Self, BinanceFeedError> {
        let mut feeds = Self::several(&config, 1)?;
        Ok(feeds.remove(0))
    }

    /// Makes feeds of the same market data, which are down. They share the weight of the REST interface, and a snapshot
    /// is requested once for all of them.
    pub fn several(config: &BinanceFeedConfig, count: usize) -> Result<Vec<Self>, BinanceFeedError> {
        let BinanceFeedConfig { market, subscription, snapshot_depth, .. } = config;
        if *market == BinanceMarket::UsdFutures && config.api_key.is_some() {
            return Err(BinanceFeedError::SbeOfFutures);
        }
        if *market == BinanceMarket::UsdFutures && config.time_unit == TimeUnit::Microsecond {
            return Err(BinanceFeedError::MicrosecondsOfFutures);
        }
        let weight = snapshot_depth.weight(*market).ok_or(BinanceFeedError::DepthOfFutures(*snapshot_depth))?;
        let is_per_connection = config.snapshots_per_connection;
        let offer = SnapshotOffer { market: *market, depth: *snapshot_depth, weight, is_per_connection };
        let connections = (0..count).map(|_| connections_of(config)).collect::<Result<Vec<_>, _>>()?;
        let clock = HostClock::get()?;
        let client = HttpsClient::new(&config.rest_url, config.ca.as_deref())?;
        let names = subscription.instruments.iter().map(|instrument| instrument.name.clone()).collect();
        let queues = RestQueue::sharing(client, clock, offer, names, count);
        let make = |(connections, rest)| Self {
            clock,
            connections,
            rest,
            parser: BinanceParser::new(&subscription.instruments, config.time_unit),
            instruments: subscription.instruments.clone(),
            has_books: subscription.books,
            silence_ns: config.silence_ns,
            renew_after_ns: config.renew_after_ns,
            state: FeedState::Down,
            snapshot: Vec::new(),
            warm_up: FeedWarmUp::new(&subscription.instruments, config.time_unit, clock),
        };
        Ok(connections.into_iter().zip(queues).map(make).collect())
    }

    fn advance(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, String> {
        let now = self.clock.ticks();
        let was_up = matches!(self.state, FeedState::Up { .. });
        let mut done = self.poll_streams(now, take)?;
        match self.state {
            FeedState::Connecting { since } if self.clock.ns_between(since, now) > UP_WITHIN_NS => {
                let seconds = UP_WITHIN_NS / 1_000_000_000;
                return Err(format!("{}: not all streams are acknowledged after {seconds} s", self.address()));
            }
            FeedState::Up { since, is_renewal_announced } => {
                if !was_up {
                    self.rest.join(self.has_books);
                }
                done += self.poll_rest(now, take);
                let age_ns = u64::try_from(self.clock.ns_between(since, now)).unwrap_or(0);
                if !is_renewal_announced && age_ns >= self.renew_after_ns {
                    self.state = FeedState::Up { since, is_renewal_announced: true };
                    take(FeedEvent::Market(MarketEvent::Maintenance));
                    done += 1;
                }
            }
            FeedState::Connecting { .. } | FeedState::Down => {}
        }
        Ok(done)
    }

    fn poll_streams(&mut self, now: u64, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, String> {
        let Self { clock, connections, parser, state, silence_ns, .. } = self;
        let mut done = 0;
        for place in 0..connections.len() {
            let others_are_ready =
                connections.iter().enumerate().all(|(other, connection)| other == place || connection.is_ready());
            done += connections[place].poll(clock, now, *silence_ns, &mut |event| match (event, *state) {
                (ConnectionEvent::Ready, FeedState::Connecting { since }) if others_are_ready => {
                    *state = FeedState::Up { since, is_renewal_announced: false };
                    take(FeedEvent::Up);
                }
                (ConnectionEvent::Frame(frame, arrival), FeedState::Up { .. }) => {
                    pass_on(parser, frame, arrival, take);
                }
                // A connection of several is ready first, and its frames precede `Up`.
                (ConnectionEvent::Ready | ConnectionEvent::Frame(..), _) => {}
            })?;
        }
        Ok(done)
    }

    fn poll_rest(&mut self, now: u64, take: &mut dyn FnMut(FeedEvent<'_>)) -> usize {
        let Self { clock, rest, parser, instruments, snapshot, .. } = self;
        let (done, answers) = rest.poll(now);
        for answer in answers {
            match answer {
                RestAnswer::Time { server_ms, sent, received } => take(clock_offset(clock, server_ms, sent, received)),
                RestAnswer::Snapshot { instrument, response } => {
                    wrap_snapshot(snapshot, &instruments[instrument].name, &response.body);
                    let arrival = Arrival { wire: 0, read: response.received };
                    let is_read = pass_on(parser, Frame::Text(snapshot.as_slice()), arrival, take);
                    rest.note_read(instrument, is_read, now);
                }
                RestAnswer::Failed(why) => take(FeedEvent::BadFrame(&FrameError::Exchange(why))),
            }
        }
        done
    }

    fn end(&mut self) {
        self.connections.iter_mut().for_each(StreamConnection::close);
        self.rest.leave();
        self.state = FeedState::Down;
    }
}

impl Feed for BinanceFeed {
    fn address(&self) -> String {
        let addresses: Vec<&str> = self.connections.iter().map(StreamConnection::address).collect();
        addresses.join(" and ")
    }

    fn connect(&mut self) {
        let now = self.clock.ticks();
        self.rest.leave();
        self.connections.iter_mut().for_each(|connection| connection.connect(now));
        self.state = FeedState::Connecting { since: now };
    }

    fn poll(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, FeedLost> {
        if self.state == FeedState::Down {
            return Ok(0);
        }
        let advanced = self.advance(take);
        if advanced.is_err() {
            self.end();
        }
        advanced.map_err(FeedLost)
    }

    fn resynchronize(&mut self, symbol: SymbolId) {
        let found = self.instruments.iter().position(|instrument| instrument.symbol == symbol);
        if let (Some(instrument), FeedState::Up { .. }) = (found, self.state) {
            self.rest.request_snapshot(instrument);
        }
    }

    /// Returns the descriptor of the connection with quotes and books. A carrier that sleeps on it polls at least every
    /// 10 ms, because the other connection and the REST interface have none.
    fn warm_up(&mut self) {
        if let Some(warm_up) = &mut self.warm_up {
            warm_up.run();
        }
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.connections.first()?.socket()
    }
}

/// Makes the connections of a feed, which are down.
fn connections_of(config: &BinanceFeedConfig) -> Result<Vec<StreamConnection>, BinanceFeedError> {
    let paths = StreamPath::of_config(config);
    if paths.is_empty() {
        return Err(BinanceFeedError::NothingSubscribed);
    }
    let key = config.api_key.as_ref();
    let headers: Vec<_> = key.map(|key| ("X-MBX-APIKEY".to_owned(), key.as_str().to_owned())).into_iter().collect();
    let mut connections = Vec::with_capacity(paths.len());
    for path in paths {
        if path.count() > MAX_STREAMS {
            return Err(BinanceFeedError::TooManyStreams(path.count()));
        }
        let plan = path.plan(&config.url, config.time_unit);
        let socket =
            WebSocketConfig { ca: config.ca.clone(), headers: headers.clone(), ..WebSocketConfig::new(&plan.url) };
        connections.push(StreamConnection::new(WebSocketClient::new(socket)?, plan.requests));
    }
    Ok(connections)
}

/// Passes on a frame and its messages; returns false if it cannot be read.
fn pass_on(
    parser: &mut BinanceParser,
    frame: Frame<'_>,
    arrival: Arrival,
    take: &mut dyn FnMut(FeedEvent<'_>),
) -> bool {
    take(FeedEvent::Frame(frame, arrival));
    let read = parser.parse(frame, &mut |event| take(FeedEvent::Market(event)));
    if let Err(error) = &read {
        take(FeedEvent::BadFrame(error));
    }
    read.is_ok()
}

/// Puts a snapshot into an envelope that names its instrument.
fn wrap_snapshot(frame: &mut Vec<u8>, name: &str, body: &[u8]) {
    frame.clear();
    frame.extend_from_slice(b"{\"stream\":");
    let stream = format!("{}@depthSnapshot", name.to_lowercase());
    serde_json::to_writer(&mut *frame, &stream).expect("memory takes any text");
    frame.extend_from_slice(b",\"data\":");
    frame.extend_from_slice(body);
    frame.push(b'}');
}

/// Returns the offset of the exchange's clock against the middle of the request, as the host's calibration dates it.
fn clock_offset(clock: &HostClock, server_ms: u64, sent: u64, received: u64) -> FeedEvent<'static> {
    let middle = sent.wrapping_add(received.wrapping_sub(sent) / 2);
    let server_ns = i64::try_from(server_ms.saturating_mul(1_000_000)).unwrap_or(i64::MAX).saturating_add(HALF_MS_NS);
    let local_ns = i64::try_from(clock.calibration().utc_ns_of(middle)).unwrap_or(i64::MAX);
    FeedEvent::ClockOffset {
        offset_ns: server_ns.saturating_sub(local_ns),
        round_trip_ns: u64::try_from(clock.ns_between(sent, received)).unwrap_or(0),
    }
}
