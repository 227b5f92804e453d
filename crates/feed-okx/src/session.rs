//! A connection between its frames: acknowledgements, frames that are held until all have come, heartbeats and
//! resubscriptions. It does no I/O: requests wait in its outbox, and each end is a sentence.
//!
//! Any frame proves that the connection is alive. Of the channels only a book has signs of life of its own, so a silent
//! book is subscribed again, while a quote or a trade may be absent for as long as nothing happens.
//!
//! ```text
//!   Down ──connect──> Connecting ──WebSocket up──> Subscribing ──last acknowledgement──> Up
//!                          └───────────────── failure, silence, loss ──────────────────────┴──> Down
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use tickpath_clock::{Clock, HostClock};
use tickpath_feed::{Arrival, FeedEvent, Frame, FrameError, MarketEvent};
use tickpath_market::SymbolId;
use tickpath_web_client::WebSocketEvent;

use crate::channels::{BOOKS, ChannelKey, requests};
use crate::envelope::{OkxEvent, TextFrame, read_envelope};
use crate::heartbeat::{Heartbeat, Liveness};
use crate::parser::OkxParser;
use crate::resubscribe::Resubscriptions;

/// Max bytes of the frames that are held until the last acknowledgement: some 2,000 snapshots of 400 levels.
const MAX_HELD_BYTES: usize = 64 << 20;
/// Heartbeat, as OKX defines it.
const PING: &str = "ping";
/// Checks of the books within the silence that a book may have.
const CHECKS_A_SILENCE: u64 = 8;

/// Limits of a connection, as in the configuration of a feed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    pub(crate) silence_ns: u64,
    pub(crate) answer_ns: u64,
    pub(crate) up_ns: u64,
    pub(crate) snapshot_ns: u64,
    pub(crate) book_silence_ns: u64,
    pub(crate) requests_per_hour: u32,
}

/// A connection, and all that its next one needs.
pub(crate) struct OkxSession {
    clock: HostClock,
    parser: OkxParser,
    channels: Vec<ChannelKey>,
    has_books: bool,
    limits: SessionLimits,
    phase: SessionPhase,
    /// Begin of the connect, in ticks.
    began: u64,
    heartbeat: Heartbeat,
    outstanding: HashSet<ChannelKey>,
    held: HeldFrames,
    resubscriptions: Resubscriptions,
    /// Ticks of the last message of each book.
    books: HashMap<SymbolId, u64>,
    /// Time of the next check of the books, in nanoseconds since the begin.
    check_books_at_ns: u64,
    outbox: VecDeque<String>,
    failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionPhase {
    Down,
    Connecting,
    Subscribing,
    Up,
}

/// Frames that arrived before the last acknowledgement.
#[derive(Default)]
struct HeldFrames {
    frames: Vec<(bool, Vec<u8>, Arrival)>,
    bytes: usize,
}

impl OkxSession {
    /// Makes a session that is down.
    pub(crate) fn new(clock: HostClock, parser: OkxParser, channels: Vec<ChannelKey>, limits: SessionLimits) -> Self {
        Self {
            clock,
            parser,
            has_books: channels.iter().any(|key| key.channel == BOOKS),
            channels,
            limits,
            phase: SessionPhase::Down,
            began: 0,
            heartbeat: Heartbeat::new(0, 0),
            outstanding: HashSet::new(),
            held: HeldFrames::default(),
            resubscriptions: Resubscriptions::new(0),
            books: HashMap::new(),
            check_books_at_ns: 0,
            outbox: VecDeque::new(),
            failure: None,
        }
    }

    /// Begins a connection, and forgets the last one.
    pub(crate) fn begin(&mut self) {
        let calibration = self.clock.calibration();
        let [silence, answer] =
            [self.limits.silence_ns, self.limits.answer_ns].map(|limit_ns| calibration.ticks_of_ns(limit_ns));
        let used = u32::try_from(requests("subscribe", &self.channels).len()).unwrap_or(u32::MAX);
        self.phase = SessionPhase::Connecting;
        self.began = self.clock.ticks();
        self.heartbeat = Heartbeat::new(silence, answer);
        self.outstanding = self.channels.iter().cloned().collect();
        self.held = HeldFrames::default();
        self.resubscriptions = Resubscriptions::new(self.limits.requests_per_hour.saturating_sub(used));
        self.books.clear();
        self.check_books_at_ns = 0;
        self.outbox.clear();
        self.failure = None;
    }

    /// Ends the connection.
    pub(crate) fn end(&mut self) {
        self.phase = SessionPhase::Down;
    }

    pub(crate) fn is_down(&self) -> bool {
        self.phase == SessionPhase::Down
    }

    pub(crate) fn is_up(&self) -> bool {
        self.phase == SessionPhase::Up
    }

    /// Returns the requests that wait to be sent.
    pub(crate) fn outbox(&mut self) -> &mut VecDeque<String> {
        &mut self.outbox
    }

    /// Returns the reason why an event has ended the connection, once.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Queues a resubscription of an instrument's book. Before the session is up, its first snapshot is still to come.
    pub(crate) fn resubscribe(&mut self, symbol: SymbolId) {
        if let Some(key) = self.book_of(symbol).filter(|_| self.is_up()) {
            self.resubscriptions.queue(key, symbol);
        }
    }

    /// Returns the channel of an instrument's book, if it is subscribed.
    fn book_of(&self, symbol: SymbolId) -> Option<ChannelKey> {
        let instrument = self.parser.instruments().iter().find(|instrument| instrument.symbol == symbol)?;
        self.has_books.then(|| ChannelKey::new(BOOKS, &instrument.name))
    }

    /// Takes an event of the connection. After a failure the rest is dropped.
    #[inline]
    pub(crate) fn take_event(&mut self, event: WebSocketEvent<'_>, take: &mut dyn FnMut(FeedEvent<'_>)) {
        match event {
            WebSocketEvent::Up => {
                self.phase = SessionPhase::Subscribing;
                self.heartbeat.note_received(self.clock.ticks());
                self.outbox.extend(requests("subscribe", &self.channels));
            }
            WebSocketEvent::Text(bytes, arrival) => {
                let arrival = Arrival { wire: arrival.wire, read: arrival.read };
                self.take_frame(Frame::Text(bytes), arrival, take);
            }
            WebSocketEvent::Binary(bytes, arrival) => {
                let arrival = Arrival { wire: arrival.wire, read: arrival.read };
                self.take_frame(Frame::Binary(bytes), arrival, take);
            }
            WebSocketEvent::Ping | WebSocketEvent::Pong => self.heartbeat.note_received(self.clock.ticks()),
        }
    }

    /// Does the work that time brings: heartbeats and resubscriptions. The error is the end of the connection.
    pub(crate) fn advance(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<(), String> {
        let now = self.clock.ticks();
        let now_ns = self.ns_since_begin(now);
        if !self.is_up() && now_ns > self.limits.up_ns {
            return Err(self.lateness());
        }
        if self.phase == SessionPhase::Connecting {
            return Ok(());
        }
        match self.heartbeat.check(now) {
            Liveness::Alive => {}
            Liveness::PingDue => self.outbox.push_back(PING.to_owned()),
            Liveness::Lost => {
                let [silence_ms, answer_ms] =
                    [self.limits.silence_ns, self.limits.answer_ns].map(|limit_ns| limit_ns / 1_000_000);
                return Err(format!(
                    "nothing has arrived for {silence_ms} ms, and no answer to a ping for {answer_ms} ms; connect again"
                ));
            }
        }
        self.retry_snapshots(now_ns, take);
        self.check_books(now, now_ns, take);
        let outbox = &mut self.outbox;
        self.resubscriptions.start_queued(now_ns, &mut |request| outbox.push_back(request));
        match self.resubscriptions.overdue(now_ns, self.limits.up_ns) {
            None => Ok(()),
            Some(ChannelKey { channel, instrument }) => {
                Err(format!("OKX has not acknowledged another subscription to '{channel}' of {instrument}"))
            }
        }
    }

    /// Queues each book again whose snapshot has not arrived in time, or could not be read.
    fn retry_snapshots(&mut self, now_ns: u64, take: &mut dyn FnMut(FeedEvent<'_>)) {
        let limit_ns = self.limits.snapshot_ns;
        self.resubscriptions.retry_late(now_ns, limit_ns, &mut |key| {
            let (name, limit_ms) = (&key.instrument, limit_ns / 1_000_000);
            let late = format!("no readable snapshot of {name} within {limit_ms} ms; it is requested again");
            take(FeedEvent::BadFrame(&FrameError::Exchange(late)));
        });
    }

    /// Subscribes silent books again.
    fn check_books(&mut self, now: u64, now_ns: u64, take: &mut dyn FnMut(FeedEvent<'_>)) {
        if now_ns < self.check_books_at_ns {
            return;
        }
        let limit_ns = self.limits.book_silence_ns;
        self.check_books_at_ns = now_ns + limit_ns / CHECKS_A_SILENCE;
        let silence_ns = |last: u64| u64::try_from(self.clock.ns_between(last, now)).unwrap_or(0);
        let is_silent = |(_, last): &(&SymbolId, &u64)| silence_ns(**last) > limit_ns;
        let silent: Vec<SymbolId> = self.books.iter().filter(is_silent).map(|(symbol, _)| *symbol).collect();
        for symbol in silent {
            self.books.remove(&symbol);
            let Some(key) = self.book_of(symbol).filter(|key| !self.resubscriptions.is_pending(key)) else { continue };
            let why = format!("has been silent for {} ms", limit_ns / 1_000_000);
            take(FeedEvent::BadFrame(&ended(&key, symbol, why)));
            self.resubscriptions.queue(key, symbol);
        }
    }

    fn take_frame(&mut self, frame: Frame<'_>, arrival: Arrival, take: &mut dyn FnMut(FeedEvent<'_>)) {
        self.heartbeat.note_received(arrival.read);
        match self.phase {
            _ if self.failure.is_some() => {}
            SessionPhase::Up => self.pass_on(frame, arrival, take),
            SessionPhase::Subscribing => self.hold(frame, arrival, take),
            SessionPhase::Down | SessionPhase::Connecting => {}
        }
    }

    fn pass_on(&mut self, frame: Frame<'_>, arrival: Arrival, take: &mut dyn FnMut(FeedEvent<'_>)) {
        take(FeedEvent::Frame(frame, arrival));
        // The messages of a frame are of one instrument.
        let (mut book, mut is_snapshot) = (None, false);
        let read = self.parser.read(frame, &mut |event| {
            if let MarketEvent::Book(update) = &event {
                (book, is_snapshot) = (Some(update.symbol), update.is_snapshot);
            }
            take(FeedEvent::Market(event));
        });
        if let Some(symbol) = book {
            self.books.insert(symbol, arrival.read);
            if is_snapshot {
                self.resubscriptions.note_snapshot(symbol);
            }
        }
        match read {
            Ok(None) => {}
            Ok(Some(event)) => self.handle_event(event, take),
            Err(error) => take(FeedEvent::BadFrame(&error)),
        }
    }

    /// Holds a frame that arrives before the last acknowledgement.
    fn hold(&mut self, frame: Frame<'_>, arrival: Arrival, take: &mut dyn FnMut(FeedEvent<'_>)) {
        if let Frame::Text(bytes) = frame
            && let Ok(TextFrame::Event(event)) = read_envelope(bytes)
        {
            match event {
                OkxEvent::Subscribed(key) => {
                    self.outstanding.remove(&key);
                }
                OkxEvent::Refused(text) | OkxEvent::ChannelRefused { text, .. } => {
                    self.failure = Some(format!("OKX refuses the subscription: {text}"));
                    return;
                }
                OkxEvent::Pong | OkxEvent::Unsubscribed(_) | OkxEvent::Maintenance | OkxEvent::Ignored => {}
            }
        }
        self.held.add(frame, arrival);
        if self.outstanding.is_empty() {
            self.come_up(take);
        } else if self.held.bytes > MAX_HELD_BYTES {
            let missing = self.outstanding.len();
            self.failure = Some(format!(
                "{MAX_HELD_BYTES} bytes arrived before {missing} acknowledgements; subscribe to fewer instruments"
            ));
        }
    }

    fn come_up(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) {
        self.phase = SessionPhase::Up;
        take(FeedEvent::Up);
        let now_ns = self.ns_since_begin(self.clock.ticks());
        let with_books = if self.has_books { self.parser.instruments() } else { &[] };
        for instrument in with_books {
            self.resubscriptions.await_snapshot(ChannelKey::new(BOOKS, &instrument.name), instrument.symbol, now_ns);
        }
        for (is_text, bytes, arrival) in std::mem::take(&mut self.held).frames {
            let frame = if is_text { Frame::Text(&bytes) } else { Frame::Binary(&bytes) };
            self.pass_on(frame, arrival, take);
        }
    }

    /// Handles an event of a session that is up.
    fn handle_event(&mut self, event: OkxEvent, take: &mut dyn FnMut(FeedEvent<'_>)) {
        let now_ns = self.ns_since_begin(self.clock.ticks());
        match event {
            OkxEvent::Subscribed(key) => self.resubscriptions.note_entered(&key, now_ns),
            OkxEvent::Unsubscribed(key) => {
                let outbox = &mut self.outbox;
                if !self.resubscriptions.note_left(&key, now_ns, &mut |request| outbox.push_back(request)) {
                    self.end_channels(&key.channel, Some(key.instrument.as_str()), "OKX has unsubscribed it", take);
                }
            }
            OkxEvent::ChannelRefused { channel, instrument, text } => {
                self.end_channels(&channel, instrument.as_deref(), &text, take);
            }
            OkxEvent::Refused(text) if self.resubscriptions.is_awaiting() => {
                self.failure = Some(format!("OKX refuses another subscription: {text}"));
            }
            OkxEvent::Refused(text) => take(FeedEvent::BadFrame(&FrameError::Exchange(text))),
            OkxEvent::Pong | OkxEvent::Maintenance | OkxEvent::Ignored => {}
        }
    }

    /// Subscribes again to the channel that OKX has ended, of one instrument or of all. A repeated refusal, and one of
    /// other channels, is an error of the exchange.
    fn end_channels(&mut self, channel: &str, name: Option<&str>, text: &str, take: &mut dyn FnMut(FeedEvent<'_>)) {
        let mut is_new = false;
        let is_named = |key: &&ChannelKey| key.channel == channel && name.is_none_or(|name| name == key.instrument);
        for key in self.channels.iter().filter(is_named) {
            let found = self.parser.instruments().iter().find(|instrument| instrument.name == key.instrument);
            let Some(symbol) = found.map(|instrument| instrument.symbol) else { continue };
            if self.resubscriptions.queue_ended(key, symbol) {
                is_new = true;
                take(FeedEvent::BadFrame(&ended(key, symbol, format!("was ended by the exchange ({text})"))));
            }
        }
        if !is_new {
            take(FeedEvent::BadFrame(&FrameError::Exchange(text.to_owned())));
        }
    }

    fn ns_since_begin(&self, now: u64) -> u64 {
        u64::try_from(self.clock.ns_between(self.began, now)).unwrap_or(0)
    }

    /// Returns the reason why a connection is not up in time.
    fn lateness(&self) -> String {
        let limit_ms = self.limits.up_ns / 1_000_000;
        if self.phase == SessionPhase::Connecting {
            return format!("no connection within {limit_ms} ms; check the address");
        }
        let (all, missing) = (self.channels.len(), self.outstanding.len());
        let example = self.outstanding.iter().min();
        let example = example.map(|key| format!(", such as '{}' of {}", key.channel, key.instrument));
        let example = example.unwrap_or_default();
        format!("OKX has not acknowledged {missing} of {all} channels within {limit_ms} ms{example}; connect again")
    }
}

/// Returns the error of a channel that brings nothing more.
fn ended(key: &ChannelKey, symbol: SymbolId, why: String) -> FrameError {
    FrameError::Ended { instrument: key.instrument.clone(), symbol, channel: key.channel.clone(), why }
}

impl HeldFrames {
    fn add(&mut self, frame: Frame<'_>, arrival: Arrival) {
        let (is_text, bytes) = match frame {
            Frame::Text(bytes) => (true, bytes),
            Frame::Binary(bytes) => (false, bytes),
        };
        self.bytes += bytes.len();
        self.frames.push((is_text, bytes.to_vec(), arrival));
    }
}
