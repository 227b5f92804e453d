//! A connection between its frames: acknowledgements, frames that are held until all have come, heartbeats and
//! resubscriptions. It does no I/O: requests wait in its outbox, and each end is a sentence.
//!
//! ```text
//!   Down ──connect──> Connecting ──WebSocket up──> Subscribing ──last acknowledgement──> Up
//!                          └───────────────── failure, silence, loss ──────────────────────┴──> Down
//! ```

use std::collections::{HashSet, VecDeque};

use tickpath_clock::{Clock, HostClock};
use tickpath_feed::{Arrival, FeedEvent, Frame, FrameError};
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

/// Limits of a connection, as in the configuration of a feed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    pub(crate) silence_ns: u64,
    pub(crate) answer_ns: u64,
    pub(crate) up_ns: u64,
    pub(crate) requests_per_hour: u32,
}

/// A connection, and all that its next one needs.
pub(crate) struct OkxSession {
    clock: HostClock,
    parser: OkxParser,
    channels: Vec<ChannelKey>,
    limits: SessionLimits,
    phase: SessionPhase,
    /// Begin of the connect, in ticks.
    began: u64,
    heartbeat: Heartbeat,
    outstanding: HashSet<ChannelKey>,
    held: HeldFrames,
    resubscriptions: Resubscriptions,
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
            channels,
            limits,
            phase: SessionPhase::Down,
            began: 0,
            heartbeat: Heartbeat::new(0, 0),
            outstanding: HashSet::new(),
            held: HeldFrames::default(),
            resubscriptions: Resubscriptions::new(0),
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
        let found = self.parser.instruments().iter().find(|instrument| instrument.symbol == symbol);
        let Some(key) = found.map(|instrument| ChannelKey::new(BOOKS, &instrument.name)) else { return };
        if self.is_up() && self.channels.contains(&key) {
            self.resubscriptions.queue(key);
        }
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
    pub(crate) fn advance(&mut self) -> Result<(), String> {
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
        let outbox = &mut self.outbox;
        self.resubscriptions.start_queued(now_ns, &mut |request| outbox.push_back(request));
        match self.resubscriptions.overdue(now_ns, self.limits.up_ns) {
            None => Ok(()),
            Some(ChannelKey { channel, instrument }) => Err(format!(
                "OKX has not acknowledged another subscription to '{channel}' of {instrument}, which brings a snapshot"
            )),
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
        match self.parser.read(frame, &mut |event| take(FeedEvent::Market(event))) {
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
                OkxEvent::Refused(text) => {
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
        for (is_text, bytes, arrival) in std::mem::take(&mut self.held).frames {
            let frame = if is_text { Frame::Text(&bytes) } else { Frame::Binary(&bytes) };
            self.pass_on(frame, arrival, take);
        }
    }

    /// Handles an event of a session that is up.
    fn handle_event(&mut self, event: OkxEvent, take: &mut dyn FnMut(FeedEvent<'_>)) {
        match event {
            OkxEvent::Subscribed(key) => self.resubscriptions.note_entered(&key),
            OkxEvent::Unsubscribed(key) => {
                let now_ns = self.ns_since_begin(self.clock.ticks());
                let outbox = &mut self.outbox;
                if !self.resubscriptions.note_left(&key, now_ns, &mut |request| outbox.push_back(request)) {
                    let ended = format!("it has ended the channel '{}' of {}", key.channel, key.instrument);
                    take(FeedEvent::BadFrame(&FrameError::Exchange(ended)));
                }
            }
            OkxEvent::Refused(text) if self.resubscriptions.is_awaiting() => {
                self.failure = Some(format!("OKX refuses another subscription, which brings a snapshot: {text}"));
            }
            OkxEvent::Refused(text) => take(FeedEvent::BadFrame(&FrameError::Exchange(text))),
            OkxEvent::Pong | OkxEvent::Maintenance | OkxEvent::Ignored => {}
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
