//! A feed that the suite drives, with the events that it has reported. Rules that hold at every call are checked here.

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::SymbolId;

use crate::conformance::harness::{ExchangeMessage, FeedHarness};
use crate::{Feed, FeedEvent, Frame, FrameParser};

/// Timeout of every wait.
const TIMEOUT_NS: i64 = 30_000_000_000;
/// Max time of a call, generous for a busy machine.
const MAX_CALL_NS: i64 = 1_000_000_000;
/// Calls that show that nothing more is reported.
const IDLE_POLLS: usize = 50;

/// A feed, its exchange, and the reported events.
pub struct FeedUnderTest<'a> {
    clock: HostClock,
    /// The exchange.
    pub harness: &'a mut dyn FeedHarness,
    feed: Box<dyn Feed>,
    /// Events of the feed.
    pub events: ReportedEvents,
    /// Losses of a connection.
    pub losses: usize,
}

impl<'a> FeedUnderTest<'a> {
    /// Creates the test of a feed that was never connected.
    pub fn new(harness: &'a mut dyn FeedHarness) -> Self {
        let feed = harness.feed();
        Self::of(feed, harness)
    }

    /// Creates the test of a feed whose silence limit is short.
    pub fn impatient(harness: &'a mut dyn FeedHarness) -> Self {
        let feed = harness.impatient_feed();
        Self::of(feed, harness)
    }

    /// Creates the test of a feed that is up.
    pub fn up(harness: &'a mut dyn FeedHarness) -> Self {
        let mut test = Self::new(harness);
        test.connect_until_up();
        test
    }

    fn of(feed: Box<dyn Feed>, harness: &'a mut dyn FeedHarness) -> Self {
        let clock = HostClock::get().expect("this host has a clock");
        Self { clock, harness, feed, events: ReportedEvents::default(), losses: 0 }
    }

    /// Begins a connect.
    pub fn connect(&mut self) {
        self.events.begin_connection();
        timed(self.clock, "connect", || self.feed.connect());
    }

    /// Connects, and waits for the end of the connect.
    pub fn connect_until_up(&mut self) {
        self.connect();
        self.wait_until("the feed is up", |test| test.events.is_up);
    }

    /// Requests another snapshot.
    pub fn resynchronize(&mut self, symbol: SymbolId) {
        timed(self.clock, "resynchronize", || self.feed.resynchronize(symbol));
    }

    /// Polls the feed, then the exchange.
    pub fn poll(&mut self) {
        let Self { clock, harness, feed, events, losses } = self;
        let polled = timed(*clock, "poll", || feed.poll(&mut |event| events.take(event)));
        if polled.is_err() {
            assert!(events.is_connected, "a loss is reported once");
            (events.is_connected, events.is_up) = (false, false);
            *losses += 1;
        }
        harness.poll();
    }

    /// Polls until whatever is pending has arrived.
    pub fn poll_idle(&mut self) {
        (0..IDLE_POLLS).for_each(|_| self.poll());
    }

    /// Polls until a condition holds.
    pub fn wait_until(&mut self, condition: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let began = self.clock.ticks();
        while !holds(self) {
            self.poll();
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited < TIMEOUT_NS, "timed out waiting until {condition}");
            sleep_ns(20_000);
        }
    }

    /// Waits for the end of the connection.
    pub fn wait_for_loss(&mut self) {
        let losses = self.losses;
        self.wait_until("the loss is reported", |test| test.losses > losses);
    }

    /// Waits until the messages without snapshots are these, as the protocol carries them.
    pub fn wait_for_messages(&mut self, sent: &[ExchangeMessage]) {
        let expected: Vec<_> = sent.iter().map(|message| self.expected(message)).collect();
        self.wait_until("all messages have arrived", |test| test.events.without_snapshots().len() >= expected.len());
        assert_eq!(self.events.without_snapshots(), expected, "left: reported messages, right: sent messages");
    }

    /// Waits for a snapshot.
    pub fn wait_for_snapshot(&mut self, sent: &ExchangeMessage) {
        let expected = self.expected(sent);
        self.wait_until("the snapshot has arrived", |test| test.events.messages.contains(&expected));
    }

    fn expected(&self, sent: &ExchangeMessage) -> ExchangeMessage {
        self.harness.carried(sent.clone()).normalized()
    }
}

/// Events of a feed.
#[derive(Debug, Default)]
pub struct ReportedEvents {
    /// A connect has begun, and no loss was reported since.
    pub is_connected: bool,
    /// The exchange has acknowledged all subscriptions of the connection.
    pub is_up: bool,
    /// Messages of all connections, normalized.
    pub messages: Vec<ExchangeMessage>,
    /// Frames that could not be read.
    pub bad_frames: usize,
    /// Frames of all connections: whether it is text, and its bytes.
    frames: Vec<(bool, Vec<u8>)>,
}

impl ReportedEvents {
    fn begin_connection(&mut self) {
        (self.is_connected, self.is_up) = (true, false);
    }

    fn take(&mut self, event: FeedEvent<'_>) {
        assert!(self.is_connected, "no connection, yet an event: {event:?}");
        match event {
            FeedEvent::Up => {
                assert!(!self.is_up, "a connection is up once");
                self.is_up = true;
            }
            FeedEvent::Frame(Frame::Text(bytes), _) => self.frames.push((true, bytes.to_vec())),
            FeedEvent::Frame(Frame::Binary(bytes), _) => self.frames.push((false, bytes.to_vec())),
            FeedEvent::Market(message) => {
                assert!(self.is_up, "a connection is up before its first message: {message:?}");
                self.messages.push(ExchangeMessage::of(message).normalized());
                self.check_frames();
            }
            FeedEvent::BadFrame(_) => {
                self.bad_frames += 1;
                self.check_frames();
            }
            FeedEvent::ClockOffset { .. } => {}
        }
    }

    /// Checks that a frame precedes what came of it. The exchange of the test sends each message in a frame of its own.
    fn check_frames(&self) {
        let read = self.messages.len() + self.bad_frames;
        assert!(self.frames.len() >= read, "{read} messages and bad frames of {} frames", self.frames.len());
    }

    /// Returns the messages that are no snapshots.
    pub fn without_snapshots(&self) -> Vec<ExchangeMessage> {
        self.messages.iter().filter(|message| !message.is_snapshot()).cloned().collect()
    }

    /// Returns the messages that a parser reads from all frames. A frame that cannot be read has none.
    pub fn parse_frames(&self, parser: &mut dyn FrameParser) -> Vec<ExchangeMessage> {
        let mut messages = Vec::new();
        for (is_text, bytes) in &self.frames {
            let frame = if *is_text { Frame::Text(bytes) } else { Frame::Binary(bytes) };
            // A bad frame of the test is one here, too.
            let _ = parser.parse(frame, &mut |message| messages.push(ExchangeMessage::of(message).normalized()));
        }
        messages
    }
}

/// Checks that a call does not wait.
fn timed<T>(clock: HostClock, call: &str, action: impl FnOnce() -> T) -> T {
    let began = clock.ticks();
    let result = action();
    let took = clock.ns_between(began, clock.ticks());
    assert!(took < MAX_CALL_NS, "{call} took {took} ns, and no call waits");
    result
}
