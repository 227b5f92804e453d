//! The line: a WebSocket connection to OKX's private channels, and a session that gives its frames their meaning.

use std::fmt;
use std::os::fd::BorrowedFd;

use tickpath_clock::{Clock, HostClock};
use tickpath_market::Request;
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState, SendStamps};
use tickpath_web_client::{WebSocketClient, WebSocketConfig, WebSocketSendError};

use crate::config::{OkxLineConfig, OkxLineError};
use crate::line_warm_up::LineWarmUp;
use crate::session::{PreparedRequest, TradingSession};

/// A line to OKX.
pub struct OkxLine {
    client: WebSocketClient,
    session: TradingSession,
    clock: HostClock,
    stamps: SendStamps,
    /// None if this host has no memory for it.
    warm_up: Option<Box<LineWarmUp>>,
}

impl OkxLine {
    /// Makes a line that is down.
    pub fn new(config: OkxLineConfig) -> Result<Self, OkxLineError> {
        let clock = HostClock::get()?;
        let session = TradingSession::new(&config, clock)?;
        let client = WebSocketClient::new(WebSocketConfig {
            ca: config.ca.clone(),
            connect_timeout_ns: config.connect_timeout_ns,
            ..WebSocketConfig::new(&config.url)
        })?;
        let warm_up = LineWarmUp::new(&config.instruments, clock);
        Ok(Self { client, session, clock, stamps: SendStamps::default(), warm_up })
    }

    /// Returns the times of the last request that was sent.
    pub fn last_send(&self) -> SendStamps {
        self.stamps
    }

    /// Returns the number of rows about orders that are not this OMS's, or not in an instrument of this line. They are
    /// ignored.
    pub fn foreign_rows(&self) -> u64 {
        self.session.foreign_rows()
    }

    /// Returns the number of pushes that were not in OKX's usual spelling, or had several rows. Each was read by the
    /// complete reader, which is slower: a count that rises fast shows that OKX has changed its spelling.
    pub fn unusual_pushes(&self) -> u64 {
        self.session.unusual_pushes
    }

    fn turn(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, String> {
        self.start_connect();
        let Self { client, session, .. } = self;
        let polled = client.poll(&mut |event| {
            session.take_event(event);
            session.pass_on(take);
        });
        // OKX closes a connection after some errors: the error is the reason, not the close.
        if let Some(why) = session.take_failure() {
            return Err(format!("{}: {why}", client.address()));
        }
        let received = polled.map_err(|lost| {
            client.refusal().into_iter().for_each(|refusal| session.note_upgrade_refusal(refusal));
            lost.0
        })?;
        let advanced = session.advance();
        let passed_on = session.pass_on(take);
        let done = received + passed_on + advanced.map_err(|why| format!("{}: {why}", client.address()))?;
        Ok(done + self.send_texts())
    }

    /// Connects the socket, once the session begins its connect.
    fn start_connect(&mut self) {
        if self.session.start() {
            self.client.connect();
        }
    }

    /// Sends the texts that wait. If the client is full or down, they wait for the next turn, which brings the loss, too.
    fn send_texts(&mut self) -> usize {
        let mut sent = 0;
        while let Some(text) = self.session.texts().front() {
            if self.client.send_text(text).is_err() {
                break;
            }
            self.session.texts().pop_front();
            sent += 1;
        }
        sent
    }
}

impl Line for OkxLine {
    fn address(&self) -> String {
        self.client.address().to_owned()
    }

    fn connect(&mut self, resume: &ResumeState) {
        self.session.end();
        self.session.begin(resume);
        self.client.close();
        self.start_connect();
    }

    #[inline]
    fn send(&mut self, number: u64, _stamp: u64, request: &Request) -> Result<(), LineSendError> {
        let PreparedRequest::Message(sent, instrument) = self.session.prepare(number, request)? else { return Ok(()) };
        let encoded = self.clock.ticks();
        self.client.send_text(self.session.message()).map_err(|why| match why {
            WebSocketSendError::Full => LineSendError::Full,
            WebSocketSendError::Down => LineSendError::Down,
        })?;
        self.stamps = SendStamps { encoded, ready: self.client.last_ready(), written: self.clock.ticks() };
        self.session.note_sent(sent, instrument, request);
        Ok(())
    }

    fn confirm(&mut self, _next_report: u64) {
        // OKX keeps orders and fills by its own rules.
    }

    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        if self.session.is_down() {
            return Ok(0);
        }
        self.turn(take).map_err(|why| {
            self.session.end();
            self.client.close();
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

impl fmt::Debug for OkxLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OkxLine").field("client", &self.client).finish_non_exhaustive()
    }
}
