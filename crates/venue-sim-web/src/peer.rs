//! A connection of the server, through its stages.
//!
//! ```text
//!   Http ── upgrade ──> Socket ── close frame, broken protocol ──> Ending ── client has ended ──> Over
//!    └── last answer, broken request ──────────────────────────────> │
//!   any stage ── failure, deadline, cut ─────────────────────────────────────────────────────────> Over
//! ```
//!
//! The stage `Ending` sends the rest of the output and discards input until the client has ended too: a socket that is
//! closed with unread input would be reset, and the client could lose the last answer.

use std::io::{ErrorKind, Read};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;
use tickpath_clock::{Clock, HostClock};
use tickpath_web_client::FrameArrival;
use tungstenite::error::ProtocolError;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig as ProtocolLimits};
use tungstenite::{Bytes, Error, Message, Utf8Bytes, WebSocket};

use crate::WebAnswer;
use crate::http_exchange::{HttpExchange, HttpProgress};
use crate::peer_stream::PeerStream;
use crate::received_request::ReceivedRequest;

/// Max time between two requests of a connection, in nanoseconds.
const KEEP_ALIVE_NS: u64 = 60_000_000_000;
/// Max bytes of the reason in a close frame.
const MAX_REASON_BYTES: usize = 123;

/// Limits that all connections of a server share.
pub(crate) struct PeerLimits {
    pub(crate) clock: HostClock,
    /// Max time that the server waits for a client: for a request that has begun, and for the answer to a close frame.
    pub(crate) handshake_ns: u64,
    pub(crate) protocol: ProtocolLimits,
}

/// A connection of the server.
pub(crate) struct WebPeer {
    stage: PeerStage,
    /// End of the present wait for the client, in ticks; none while it may take any time.
    deadline: Option<u64>,
    /// Whether the connection is between two requests.
    is_idle: bool,
    /// Whether the service has accepted a WebSocket and has not learned of its end.
    is_announced: bool,
    /// Whether input may be left that no poll of the socket reports.
    may_have_input: bool,
}

/// Input for the service.
pub(crate) enum PeerInput {
    Request(ReceivedRequest),
    Text(Utf8Bytes),
    Binary(Bytes),
    Pong,
    /// Input that was dealt with, and that counts as work.
    Handled,
}

enum PeerStage {
    Http(HttpExchange),
    Socket(Box<WebSocket<PeerStream>>),
    Ending(EndingStream),
    Over,
}

struct EndingStream {
    stream: PeerStream,
    is_finished: bool,
    has_read_all: bool,
}

/// Next step of a connection.
enum PeerStep {
    Take(PeerInput),
    Wait,
    Refuse(WebAnswer),
    End,
    Cut,
}

impl PeerLimits {
    fn deadline(&self, ns: u64) -> Option<u64> {
        Some(self.clock.ticks() + self.clock.calibration().ticks_of_ns(ns))
    }
}

impl WebPeer {
    pub(crate) fn new(stream: PeerStream, limits: &PeerLimits) -> Self {
        Self {
            stage: PeerStage::Http(HttpExchange::new(stream)),
            deadline: limits.deadline(limits.handshake_ns),
            is_idle: false,
            is_announced: false,
            may_have_input: false,
        }
    }

    /// Returns the socket and the events to poll for; none once the connection is over.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let reads = !matches!(&self.stage, PeerStage::Ending(ending) if ending.has_read_all);
        let stream = self.stream()?;
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, reads);
        events.set(PollFlags::OUT, stream.has_unsent());
        Some((stream.as_fd(), events))
    }

    /// Returns whether input may be left that no poll of the socket reports.
    pub(crate) fn may_have_input(&self) -> bool {
        self.may_have_input
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, PeerStage::Over)
    }

    /// Returns true once, after the end of a WebSocket that the service has accepted.
    pub(crate) fn take_end(&mut self) -> bool {
        let is_open = matches!(&self.stage, PeerStage::Socket(socket) if socket.can_write());
        !is_open && mem::replace(&mut self.is_announced, false)
    }

    /// Returns the stamps of the read that brought the last input.
    pub(crate) fn arrival(&self) -> FrameArrival {
        self.stream().map(PeerStream::arrival).unwrap_or_default()
    }

    /// Returns when bytes were last ready for the socket, in ticks.
    pub(crate) fn last_ready(&self) -> u64 {
        self.stream().map_or(0, PeerStream::last_ready)
    }

    /// Begins a turn: sends pending output, and permits to read again.
    pub(crate) fn begin_turn(&mut self) {
        let Some(stream) = self.stream_mut() else { return };
        stream.begin_turn();
        if stream.push().is_err() {
            self.cut();
        }
    }

    /// Ends a turn. `has_more` is true if not all input was taken.
    pub(crate) fn end_turn(&mut self, has_more: bool) {
        self.may_have_input = self.stream_mut().is_some_and(|stream| has_more || stream.is_throttled());
    }

    /// Returns the next input for the service; none if no more has arrived.
    pub(crate) fn next_input(&mut self, limits: &PeerLimits) -> Option<PeerInput> {
        let step = match &mut self.stage {
            PeerStage::Http(exchange) => http_step(exchange),
            PeerStage::Socket(socket) => socket_step(socket),
            PeerStage::Ending(ending) => ending.step(),
            PeerStage::Over => PeerStep::Wait,
        };
        match step {
            PeerStep::Take(input) => return Some(input),
            PeerStep::Wait => self.note_begin(limits),
            PeerStep::Refuse(answer) => self.answer(None, &answer, limits),
            PeerStep::End => self.end(limits),
            PeerStep::Cut => self.cut(),
        }
        None
    }

    /// Sends the answer to a request; none stands for a request that could not be read.
    pub(crate) fn answer(&mut self, request: Option<&ReceivedRequest>, answer: &WebAnswer, limits: &PeerLimits) {
        let PeerStage::Http(exchange) = &mut self.stage else { return };
        let ends = answer.ends_connection() || request.is_none_or(ReceivedRequest::ends_connection);
        let bytes = answer.to_bytes(request.is_some_and(ReceivedRequest::is_head), ends);
        if exchange.write(&bytes).is_none() {
            return self.cut();
        }
        if ends {
            return self.end(limits);
        }
        self.is_idle = true;
        self.deadline = limits.deadline(KEEP_ALIVE_NS);
    }

    /// Accepts a WebSocket with this key of its request.
    pub(crate) fn upgrade(&mut self, key: &str, limits: &PeerLimits) {
        self.is_announced = true;
        let PeerStage::Http(mut exchange) = mem::replace(&mut self.stage, PeerStage::Over) else { return };
        let accept = derive_accept_key(key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        if exchange.write(head.as_bytes()).is_none() {
            return;
        }
        let (stream, rest) = exchange.into_parts();
        let socket = WebSocket::from_partially_read(stream, rest, Role::Server, Some(limits.protocol));
        (self.stage, self.deadline) = (PeerStage::Socket(Box::new(socket)), None);
    }

    /// Sends a message, unless the connection ends.
    pub(crate) fn send(&mut self, message: Message) {
        let PeerStage::Socket(socket) = &mut self.stage else { return };
        if socket.can_write() && socket.send(message).is_err() {
            self.cut();
        }
    }

    /// Sends a close frame, and gives the client some time to answer it.
    pub(crate) fn close(&mut self, code: u16, reason: &str, limits: &PeerLimits) {
        let PeerStage::Socket(socket) = &mut self.stage else { return };
        if !socket.can_write() {
            return;
        }
        let reason = &reason[..reason.floor_char_boundary(MAX_REASON_BYTES)];
        if socket.close(Some(CloseFrame { code: CloseCode::from(code), reason: reason.into() })).is_err() {
            return self.cut();
        }
        self.deadline = limits.deadline(limits.handshake_ns);
    }

    /// Ends the connection at once.
    pub(crate) fn cut(&mut self) {
        (self.stage, self.deadline) = (PeerStage::Over, None);
    }

    /// Ends the connection if it has made the server wait for too long.
    pub(crate) fn end_expired(&mut self, limits: &PeerLimits) {
        let now = limits.clock.ticks();
        if self.deadline.is_some_and(|deadline| limits.clock.ns_between(deadline, now) > 0) {
            self.cut();
        }
    }

    /// Ends the connection behind its output.
    fn end(&mut self, limits: &PeerLimits) {
        let stream = match mem::replace(&mut self.stage, PeerStage::Over) {
            PeerStage::Http(exchange) => exchange.into_parts().0,
            PeerStage::Socket(socket) => socket.into_inner(),
            PeerStage::Ending(_) | PeerStage::Over => return self.cut(),
        };
        self.deadline = limits.deadline(limits.handshake_ns);
        let mut ending = EndingStream { stream, is_finished: false, has_read_all: false };
        match ending.step() {
            PeerStep::Wait => self.stage = PeerStage::Ending(ending),
            _ => self.cut(),
        }
    }

    /// Limits the time of a request once its first byte has arrived.
    fn note_begin(&mut self, limits: &PeerLimits) {
        if let PeerStage::Http(exchange) = &self.stage
            && exchange.has_begun()
            && mem::replace(&mut self.is_idle, false)
        {
            self.deadline = limits.deadline(limits.handshake_ns);
        }
    }

    fn stream(&self) -> Option<&PeerStream> {
        match &self.stage {
            PeerStage::Http(exchange) => Some(&exchange.stream),
            PeerStage::Socket(socket) => Some(socket.get_ref()),
            PeerStage::Ending(ending) => Some(&ending.stream),
            PeerStage::Over => None,
        }
    }

    fn stream_mut(&mut self) -> Option<&mut PeerStream> {
        match &mut self.stage {
            PeerStage::Http(exchange) => Some(&mut exchange.stream),
            PeerStage::Socket(socket) => Some(socket.get_mut()),
            PeerStage::Ending(ending) => Some(&mut ending.stream),
            PeerStage::Over => None,
        }
    }
}

impl EndingStream {
    /// Sends pending output, and discards input.
    fn step(&mut self) -> PeerStep {
        if self.stream.push().is_err() {
            return PeerStep::Cut;
        }
        let is_sent = !self.stream.has_unsent();
        if is_sent && !mem::replace(&mut self.is_finished, true) && self.stream.finish().is_err() {
            return PeerStep::Cut;
        }
        let mut room = [0; 4096];
        while !self.has_read_all {
            match self.stream.read(&mut room) {
                Ok(0) => self.has_read_all = true,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.has_read_all = true,
            }
        }
        if self.has_read_all && !self.stream.has_unsent() { PeerStep::Cut } else { PeerStep::Wait }
    }
}

fn http_step(exchange: &mut HttpExchange) -> PeerStep {
    match exchange.next_request() {
        HttpProgress::Request(request) => PeerStep::Take(PeerInput::Request(request)),
        HttpProgress::Refused(answer) => PeerStep::Refuse(answer),
        HttpProgress::Waiting => PeerStep::Wait,
        HttpProgress::Ended => PeerStep::End,
        HttpProgress::Failed => PeerStep::Cut,
    }
}

fn socket_step(socket: &mut WebSocket<PeerStream>) -> PeerStep {
    match socket.read() {
        // Sends the answer to the client's close frame, or notes that the client has answered ours.
        Ok(Message::Close(_)) => {
            let _ = socket.flush();
            PeerStep::End
        }
        Ok(Message::Ping(_)) if socket.flush().is_err() => PeerStep::Cut,
        // Behind our own close frame, messages of the client are dropped.
        Ok(_) if !socket.can_write() => PeerStep::Take(PeerInput::Handled),
        Ok(Message::Text(text)) => PeerStep::Take(PeerInput::Text(text)),
        Ok(Message::Binary(bytes)) => PeerStep::Take(PeerInput::Binary(bytes)),
        Ok(Message::Pong(_)) => PeerStep::Take(PeerInput::Pong),
        Ok(Message::Ping(_) | Message::Frame(_)) => PeerStep::Take(PeerInput::Handled),
        Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => PeerStep::Wait,
        Err(Error::Io(_) | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => PeerStep::Cut,
        Err(Error::ConnectionClosed | Error::AlreadyClosed) => PeerStep::End,
        Err(e) => {
            let code = match e {
                Error::Utf8(_) => CloseCode::Invalid,
                Error::Capacity(_) => CloseCode::Size,
                _ => CloseCode::Protocol,
            };
            let _ = socket.close(Some(CloseFrame { code, reason: Utf8Bytes::default() }));
            PeerStep::End
        }
    }
}
