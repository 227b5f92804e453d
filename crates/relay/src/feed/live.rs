//! Connections to an exchange: polled in turn by one thread, and made again when they are lost.
//!
//! ```text
//!   Spare ── another one is ending ──> Down ──> Open ── lost ──> Down
//!     ^                                           └── lost, and its successor is up ──┐
//!     └───────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One connection more than those that carry is spare. When the exchange announces the end of a connection, the spare
//! one is made, and carries beside the ending one until the exchange ends that, which is then spare.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_bus::url::redact_logins;
use tickpath_bus::{Backoff, ReconnectBackoff};
use tickpath_clock::{AdaptiveWait, Clock, HostClock, IdleAction, Wait};
use tickpath_feed::{Feed, FeedLost};

use super::config::FeedRelayConfig;
use super::market_carrier::MarketCarrier;
use super::meter::FeedMeter;
use crate::{RelayContext, RelayError};

/// Time between two attempts to connect, in nanoseconds: exchanges allow three a second from one address.
const CONNECT_SPACING_NS: u64 = 340_000_000;

/// Pauses before a reconnect, if the last connection did not hold: the first, and the longest.
const RECONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// Longest sleep, in nanoseconds. A feed has work that no socket announces: heartbeats, answers to other requests.
const MAX_SLEEP_NS: u64 = 10_000_000;

/// Longest sleep while a connection has no socket to wait for, in nanoseconds.
const SOCKETLESS_SLEEP_NS: u64 = 1_000_000;

/// Carries feeds until stopped, or until the requested number of messages or duration is reached. Each feed is a
/// connection to the same market data; a connection number is an index into `feeds`. The last one is spare at first.
pub fn run(
    config: &FeedRelayConfig,
    feeds: Vec<Box<dyn Feed>>,
    meter: &FeedMeter,
    context: &RelayContext<'_>,
) -> Result<(), RelayError> {
    assert!(feeds.len() > 1, "a carrier has a feed and a spare one");
    let carrier = MarketCarrier::open(config, feeds.len(), context)?;
    let (address, count, to) = (feeds[0].address(), feeds.len() - 1, redact_logins(&config.url));
    let connections = if count == 1 { "1 connection".to_owned() } else { format!("{count} connections") };
    (context.report)(&format!("carrying {address} by {connections} to '{}' of {to}", config.topic));
    let mut connections: Vec<_> = feeds.into_iter().map(|feed| FeedConnection::new(feed, context.clock)).collect();
    connections[count].state = FeedState::Spare;
    let mut live = LiveFeeds {
        wait: config.wait,
        context,
        connections,
        carrier,
        adaptive: (config.wait == Wait::Adaptive).then(|| AdaptiveWait::new(context.clock)),
        earliest_connect: 0,
    };
    let ended = live.carry_until_end(meter);
    let closed = live.carrier.close(meter);
    ended.and(closed)
}

struct LiveFeeds<'a> {
    wait: Wait,
    context: &'a RelayContext<'a>,
    connections: Vec<FeedConnection>,
    carrier: MarketCarrier<'a>,
    adaptive: Option<AdaptiveWait<HostClock>>,
    /// Ticks of the next allowed attempt to connect, of any connection.
    earliest_connect: u64,
}

struct FeedConnection {
    feed: Box<dyn Feed>,
    state: FeedState,
    /// The ending connection whose successor this one will be once it is up.
    succeeds: Option<usize>,
    /// The successor of this ending connection is up.
    is_succeeded: bool,
    backoff: ReconnectBackoff,
    /// Reason of the last loss, as reported; none while the connection is up.
    reported_reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedState {
    /// Not needed now.
    Spare,
    /// Not connected; the next attempt is at this time, in ticks.
    Down(u64),
    /// Connecting, or connected.
    Open,
}

impl FeedConnection {
    fn new(feed: Box<dyn Feed>, clock: HostClock) -> Self {
        let backoff = Backoff::between(RECONNECT_PAUSES.0, RECONNECT_PAUSES.1);
        Self {
            feed,
            state: FeedState::Down(0),
            succeeds: None,
            is_succeeded: false,
            backoff: ReconnectBackoff::new(backoff, clock),
            reported_reason: None,
        }
    }
}

impl LiveFeeds<'_> {
    fn carry_until_end(&mut self, meter: &FeedMeter) -> Result<(), RelayError> {
        loop {
            let now = self.context.clock.ticks();
            if self.context.is_stopped() || self.carrier.is_done(now) {
                return Ok(());
            }
            let mut work = 0;
            for index in 0..self.connections.len() {
                work += self.poll(index, now)?;
            }
            self.request_snapshots();
            if work == 0 || self.carrier.is_upkeep_due(now) {
                self.carrier.keep_up(now, meter)?;
                self.replace_ending()?;
            }
            if work == 0 {
                self.rest();
            } else if let Some(adaptive) = &mut self.adaptive {
                adaptive.note_work();
            }
        }
    }

    /// Polls a connection, or connects it if that is due. Returns the amount of work done.
    fn poll(&mut self, index: usize, now: u64) -> Result<usize, RelayError> {
        let Self { connections, carrier, .. } = self;
        let connection = &mut connections[index];
        match connection.state {
            FeedState::Spare => return Ok(0),
            FeedState::Down(until) if now < until.max(self.earliest_connect) => return Ok(0),
            FeedState::Down(_) => return Ok(self.connect(index, now)),
            FeedState::Open => {}
        }
        let was_up = carrier.is_up(index);
        let mut taken = Ok(());
        let polled = connection.feed.poll(&mut |event| {
            if taken.is_ok() {
                taken = carrier.take(index, event);
            }
        });
        taken?;
        if !was_up && carrier.is_up(index) {
            connection.reported_reason = None;
            let ending = connection.succeeds.take();
            (self.context.report)(&format!("connection {index}: {} is up", connection.feed.address()));
            if let Some(ending) = ending {
                connections[ending].is_succeeded = true;
            }
        }
        match polled {
            Ok(work) => Ok(work),
            Err(FeedLost(reason)) => self.lose(index, &reason).map(|()| 1),
        }
    }

    fn connect(&mut self, index: usize, now: u64) -> usize {
        self.earliest_connect = now + self.context.clock.calibration().ticks_of_ns(CONNECT_SPACING_NS);
        self.carrier.count_attempt(index);
        let connection = &mut self.connections[index];
        connection.state = FeedState::Open;
        connection.feed.connect();
        1
    }

    /// Takes the end of a connection, which is made again after a pause, unless it has a successor. The same reason is
    /// reported once.
    fn lose(&mut self, index: usize, reason: &str) -> Result<(), RelayError> {
        let Self { context, connections, carrier, .. } = self;
        let was_up = carrier.is_up(index);
        carrier.disconnected(index)?;
        let successor = connections.iter_mut().find(|other| other.succeeds == Some(index));
        // A successor that is not up yet has nothing left to succeed.
        let has_successor = successor.is_some_and(|other| other.succeeds.take().is_some());
        let connection = &mut connections[index];
        let has_successor = std::mem::take(&mut connection.is_succeeded) || has_successor;
        let pause_ns = connection.backoff.next_backoff().current().as_nanos() as u64;
        let until = context.clock.ticks() + context.clock.calibration().ticks_of_ns(pause_ns);
        connection.state = if has_successor { FeedState::Spare } else { FeedState::Down(until) };
        let next = if has_successor { "another connection has taken over" } else { "connecting again" };
        if was_up || connection.reported_reason.as_deref() != Some(reason) {
            let address = connection.feed.address();
            (context.report)(&format!("connection {index}: {address}: {reason}; {next}"));
            connection.reported_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    /// Asks for the snapshots of invalid books.
    fn request_snapshots(&mut self) {
        let Some((index, symbols)) = self.carrier.take_requests() else { return };
        let feed = &mut self.connections[index].feed;
        symbols.into_iter().for_each(|symbol| feed.resynchronize(symbol));
    }

    /// Makes the successor of a connection whose end the exchange has announced, one at a time. Without a spare one, a
    /// connection that has a successor already gives way.
    fn replace_ending(&mut self) -> Result<(), RelayError> {
        let Self { connections, carrier, .. } = self;
        let needs_successor =
            |(index, connection): &(usize, &FeedConnection)| carrier.is_ending(*index) && !connection.is_succeeded;
        let Some((ending, _)) = connections.iter().enumerate().find(needs_successor) else { return Ok(()) };
        if connections.iter().any(|connection| connection.succeeds.is_some()) {
            return Ok(());
        }
        let spare = connections.iter().position(|connection| connection.state == FeedState::Spare);
        let next = spare.or_else(|| connections.iter().position(|connection| connection.is_succeeded));
        let Some(next) = next else { return Ok(()) };
        carrier.disconnected(next)?;
        let connection = &mut connections[next];
        (connection.state, connection.is_succeeded) = (FeedState::Down(0), false);
        connection.succeeds = Some(ending);
        Ok(())
    }

    /// Passes a moment without work, as the wait strategy has it.
    fn rest(&mut self) {
        let Self { connections, carrier, adaptive, wait, .. } = self;
        match (adaptive, wait) {
            (Some(adaptive), _) => match adaptive.next_action(MAX_SLEEP_NS) {
                IdleAction::Sleep(ns) => {
                    sleep_until_readable(connections, ns);
                    adaptive.note_wake_up();
                }
                action => {
                    carrier.idle();
                    action.perform();
                }
            },
            (None, Wait::Block) => sleep_until_readable(connections, MAX_SLEEP_NS),
            (None, wait) => {
                carrier.idle();
                wait.idle();
            }
        }
    }
}

/// Sleeps until a connection can be read, or until the time is over.
fn sleep_until_readable(connections: &[FeedConnection], mut ns: u64) {
    let mut polled = Vec::with_capacity(connections.len());
    for connection in connections.iter().filter(|connection| connection.state == FeedState::Open) {
        match connection.feed.socket() {
            Some(socket) => polled.push(PollFd::from_borrowed_fd(socket, PollFlags::IN)),
            None => ns = ns.min(SOCKETLESS_SLEEP_NS),
        }
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: ns.min(999_999_999) as i64 };
    // An interrupt may end the sleep early: the next turn finds no work.
    let _ = poll(&mut polled, Some(&timeout));
}
