//! One connection to a path of the exchange: open, subscribed to all of its streams, and not silent.

use std::os::fd::BorrowedFd;

use tickpath_clock::{Clock, HostClock};
use tickpath_feed::{Arrival, Frame};
use tickpath_web_client::{FrameArrival, WebSocketClient, WebSocketEvent};

use crate::json::read_stream_answer;

/// Pause between two SUBSCRIBE requests. The exchange ends a connection that sends more than five messages a second,
/// and the answers to its pings count.
const REQUEST_PAUSE_NS: i64 = 250_000_000;

/// An event of a connection.
pub(crate) enum ConnectionEvent<'a> {
    /// The exchange has acknowledged all streams.
    Ready,
    /// A frame has arrived on a ready connection.
    Frame(Frame<'a>, Arrival),
}

/// A connection with the streams that it must have.
pub(crate) struct StreamConnection {
    client: WebSocketClient,
    progress: SubscribeProgress,
}

/// Progress of a connection towards all of its streams.
struct SubscribeProgress {
    /// SUBSCRIBE requests; the id of a request is its place, from 1.
    requests: Vec<String>,
    sent: usize,
    last_sent: Option<u64>,
    /// Ids of requests in flight.
    unanswered: Vec<u64>,
    is_open: bool,
    is_ready: bool,
    refusal: Option<String>,
    last_arrival: u64,
}

impl StreamConnection {
    pub(crate) fn new(client: WebSocketClient, requests: Vec<String>) -> Self {
        Self { client, progress: SubscribeProgress::new(requests, 0) }
    }

    pub(crate) fn address(&self) -> &str {
        self.client.address()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.progress.is_ready
    }

    pub(crate) fn connect(&mut self, now: u64) {
        self.progress = SubscribeProgress::new(std::mem::take(&mut self.progress.requests), now);
        self.client.connect();
    }

    pub(crate) fn close(&mut self) {
        self.client.close();
        self.progress.is_ready = false;
    }

    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.client.socket()
    }

    /// Takes arrived frames and sends pending requests. Returns the amount of work done, or the reason of a loss with
    /// the connection's address.
    pub(crate) fn poll(
        &mut self,
        clock: &HostClock,
        now: u64,
        silence_ns: u64,
        take: &mut dyn FnMut(ConnectionEvent<'_>),
    ) -> Result<usize, String> {
        let Self { client, progress } = self;
        let arrived = client.poll(&mut |event| progress.handle(event, now, take)).map_err(|lost| lost.0)?;
        if let Some(refusal) = progress.refusal.take() {
            return Err(format!("{}: the exchange refuses the streams: {refusal}", client.address()));
        }
        let silent_ns = clock.ns_between(progress.last_arrival, now);
        if u64::try_from(silent_ns).is_ok_and(|silent_ns| silent_ns > silence_ns) {
            return Err(format!("{}: nothing has arrived for {} ms", client.address(), silence_ns / 1_000_000));
        }
        Ok(arrived + progress.send_request(client, clock, now))
    }
}

impl SubscribeProgress {
    fn new(requests: Vec<String>, now: u64) -> Self {
        Self {
            requests,
            sent: 0,
            last_sent: None,
            unanswered: Vec::new(),
            is_open: false,
            is_ready: false,
            refusal: None,
            last_arrival: now,
        }
    }

    fn handle(&mut self, event: WebSocketEvent<'_>, now: u64, take: &mut dyn FnMut(ConnectionEvent<'_>)) {
        self.last_arrival = now;
        match event {
            WebSocketEvent::Up => {
                self.is_open = true;
                self.check_ready(take);
            }
            WebSocketEvent::Text(bytes, arrival) if self.is_ready => {
                take(ConnectionEvent::Frame(Frame::Text(bytes), stamps(&arrival)));
            }
            WebSocketEvent::Binary(bytes, arrival) if self.is_ready => {
                take(ConnectionEvent::Frame(Frame::Binary(bytes), stamps(&arrival)));
            }
            WebSocketEvent::Text(bytes, _) => self.handle_answer(bytes, take),
            WebSocketEvent::Binary(..) | WebSocketEvent::Ping | WebSocketEvent::Pong => {}
        }
    }

    fn handle_answer(&mut self, frame: &[u8], take: &mut dyn FnMut(ConnectionEvent<'_>)) {
        // Market data of the streams in the URL.
        if frame.starts_with(b"{\"stream\":") {
            return;
        }
        let Some(answer) = read_stream_answer(frame) else { return };
        if answer.refusal.is_some() {
            self.refusal = answer.refusal;
            return;
        }
        self.unanswered.retain(|id| Some(*id) != answer.id);
        self.check_ready(take);
    }

    fn check_ready(&mut self, take: &mut dyn FnMut(ConnectionEvent<'_>)) {
        if self.is_open && !self.is_ready && self.sent == self.requests.len() && self.unanswered.is_empty() {
            self.is_ready = true;
            take(ConnectionEvent::Ready);
        }
    }

    /// Sends the next request if its time has come; returns the number of sent requests.
    fn send_request(&mut self, client: &mut WebSocketClient, clock: &HostClock, now: u64) -> usize {
        let is_due = self.last_sent.is_none_or(|last| clock.ns_between(last, now) >= REQUEST_PAUSE_NS);
        let Some(request) = self.requests.get(self.sent).filter(|_| self.is_open && is_due) else { return 0 };
        // A full buffer is tried again, and the next poll reports a lost connection.
        if client.send_text(request).is_err() {
            return 0;
        }
        self.sent += 1;
        self.unanswered.push(self.sent as u64);
        self.last_sent = Some(now);
        1
    }
}

fn stamps(arrival: &FrameArrival) -> Arrival {
    Arrival { wire: arrival.wire, read: arrival.read }
}
