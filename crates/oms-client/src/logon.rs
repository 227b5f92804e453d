//! A connection and its logon, made step by step while the caller waits.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_oms_protocol::{
    Binding, ClientLogon, Frame, FrameBuffer, FrameKind, Logon, LogonReject, LogonRejectReason, MAGIC, VERSION,
    Welcome, write_frame_with_text,
};
use tickpath_tls::tls_failure;
use zerocopy::IntoBytes;

use crate::address::OmsAddress;
use crate::socket::OmsSocket;
use crate::tls::TlsTrust;
use crate::{ClientError, Config};

/// Data to connect to the session repeatedly.
#[derive(Debug)]
pub(crate) struct Connector {
    address: OmsAddress,
    pub config: Config,
    pub clock: HostClock,
    client: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LogonRequest {
    pub is_reconnect: bool,
    pub session: u16,
    pub journal: u64,
    pub next_report: u64,
    pub last_sum: u32,
    pub next_detail: u64,
    pub last_detail_sum: u32,
}

#[derive(Debug)]
pub(crate) struct CompletedLogon {
    pub socket: OmsSocket,
    /// Received bytes; frames after the welcome may be among them.
    pub inbox: FrameBuffer,
    pub welcome: Welcome,
    /// True if the OMS stamps with this host's clock.
    pub shares_clock: bool,
}

impl Connector {
    pub fn new(config: Config, clock: HostClock) -> Result<Self, ClientError> {
        let client = getrandom::u32().expect("the operating system has random bytes").max(1);
        Ok(Self { address: config.url.parse()?, config, clock, client })
    }

    /// Connects and logs on, within the configured time.
    pub fn log_on(&self, request: LogonRequest) -> Result<CompletedLogon, ClientError> {
        let mut handshake = self.connect()?;
        let binding = handshake.handshake()?;
        let (user, password) = (&self.config.user, self.config.password.expose());
        let (mut logon, client_first) = ClientLogon::new(user, password, binding.as_ref())?;
        let sent_at = self.clock.ticks();
        handshake.send(FrameKind::Logon, self.logon_message(request).as_bytes(), &client_first)?;
        let challenge = handshake.receive(|frame| expect(frame, FrameKind::Challenge).map(|()| frame.text.to_vec()))?;
        let proof = logon.answer(&challenge)?;
        handshake.send(FrameKind::Proof, &[], &proof)?;
        let (welcome, server_final, stamp) = handshake.receive(|frame| {
            expect(frame, FrameKind::Welcome)?;
            Ok((frame.message::<Welcome>(), frame.text.to_vec(), frame.stamp))
        })?;
        logon.check(&server_final)?;
        // The clock of another host, or of another boot, has no value within this logon.
        let shares_clock = (sent_at..=self.clock.ticks()).contains(&stamp);
        if !(1..=VERSION).contains(&welcome.version) {
            return Err(ClientError::Protocol("speaks a version that was not offered to it"));
        }
        let LogonHandshake { mut socket, mut inbox, descriptors, .. } = handshake;
        if welcome.lanes != 0 {
            let memory = descriptors.try_into();
            let memory = memory.map_err(|_| ClientError::Protocol("opened lanes without their memory"))?;
            socket = socket.open_lanes(memory).map_err(ClientError::lost)?;
            // Bytes after the welcome on this socket are only wake-ups of the lanes.
            inbox = FrameBuffer::default();
        }
        socket.set_nonblocking(true).map_err(ClientError::lost)?;
        Ok(CompletedLogon { socket, inbox, welcome, shares_clock })
    }

    fn logon_message(&self, request: LogonRequest) -> Logon {
        let LogonRequest { is_reconnect, session, journal, next_report, last_sum, .. } = request;
        let heartbeat_ms = self.config.heartbeat_ms;
        let lanes = if matches!(self.address, OmsAddress::Lanes(_)) { Logon::LANES } else { 0 };
        let copy = if self.config.drop_copy { Logon::DROP_COPY } else { 0 };
        let reconnect = if is_reconnect { Logon::RECONNECT } else { 0 };
        Logon {
            magic: MAGIC,
            version: VERSION,
            session,
            heartbeat_ms,
            journal,
            next_report,
            last_sum,
            client: self.client,
            features: lanes | copy | reconnect,
            last_detail_sum: request.last_detail_sum,
            next_detail: request.next_detail,
        }
    }

    fn connect(&self) -> Result<LogonHandshake<'_>, ClientError> {
        let started = self.clock.ticks();
        let timeout = Duration::from_millis(self.config.connect_timeout_ms.max(1).into());
        let trust = match &self.address {
            OmsAddress::Tls { host, ca, .. } => {
                Some(TlsTrust::read(host, ca.as_deref()).map_err(|why| self.no_tls(why))?)
            }
            OmsAddress::Tcp { .. } | OmsAddress::Unix(_) | OmsAddress::Lanes(_) => None,
        };
        let unreachable =
            |reason| ClientError::Unreachable { place: self.address.to_string(), reason: Arc::new(reason) };
        let mut socket = OmsSocket::connect(&self.address, timeout).map_err(unreachable)?;
        if let Some(trust) = trust {
            socket = socket.secure(trust).map_err(ClientError::lost)?;
        }
        Ok(LogonHandshake { connector: self, started, socket, inbox: FrameBuffer::default(), descriptors: Vec::new() })
    }

    fn no_tls(&self, reason: String) -> ClientError {
        ClientError::Tls { place: self.address.to_string(), reason }
    }

    fn timed_out(&self) -> ClientError {
        ClientError::LogonTimeout { place: self.address.to_string(), ms: self.config.connect_timeout_ms }
    }
}

struct LogonHandshake<'a> {
    connector: &'a Connector,
    started: u64,
    socket: OmsSocket,
    inbox: FrameBuffer,
    /// Descriptors received with the bytes.
    descriptors: Vec<OwnedFd>,
}

impl LogonHandshake<'_> {
    /// Runs the TLS handshake, if there is one. Returns the channel binding for the logon.
    fn handshake(&mut self) -> Result<Option<Binding>, ClientError> {
        loop {
            self.limit_wait()?;
            match self.socket.handshake() {
                Ok(true) => return self.socket.binding().map_err(ClientError::lost),
                Ok(false) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(e)),
            }
        }
    }

    fn send(&mut self, kind: FrameKind, message: &[u8], text: &[u8]) -> Result<(), ClientError> {
        let mut out = Vec::new();
        write_frame_with_text(&mut out, kind.code(), 0, self.connector.clock.ticks(), message, text);
        self.limit_wait()?;
        self.socket.write_all(&out).map_err(|e| self.failed(e))
    }

    /// Waits for the next frame, within the time limit of the logon, and returns the result of `read` for it.
    fn receive<T>(&mut self, read: impl Fn(&Frame) -> Result<T, ClientError>) -> Result<T, ClientError> {
        loop {
            if let Some(frame) = self.inbox.next()? {
                return read(&frame);
            }
            self.limit_wait()?;
            match self.socket.receive(self.inbox.free_space(), &mut self.descriptors) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(bytes) => self.inbox.advance(bytes),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(e)),
            }
        }
    }

    /// Sets the socket's timeout to the remaining time.
    fn limit_wait(&self) -> Result<(), ClientError> {
        let Connector { clock, config, .. } = self.connector;
        let passed_ns = clock.ns_between(self.started, clock.ticks()).max(0) as u64;
        let left_ns = (u64::from(config.connect_timeout_ms) * 1_000_000).saturating_sub(passed_ns);
        // The shortest timeout of a socket is a microsecond; zero would mean no limit.
        if left_ns < 1_000 {
            return Err(self.connector.timed_out());
        }
        self.socket.set_timeout(Duration::from_nanos(left_ns)).map_err(ClientError::lost)
    }

    fn failed(&self, reason: io::Error) -> ClientError {
        if let OmsAddress::Tls { host, .. } = &self.connector.address
            && let Some(why) = tls_failure(&reason, host)
        {
            return self.connector.no_tls(why);
        }
        match reason.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.connector.timed_out(),
            io::ErrorKind::UnexpectedEof => ClientError::Closed,
            _ => ClientError::lost(reason),
        }
    }
}

/// Returns the reason as an error if a frame ends the connection.
pub(crate) fn check_end(frame: &Frame) -> Result<(), ClientError> {
    match FrameKind::from_code(frame.kind) {
        Some(FrameKind::Refused) => {
            let refusal = LogonRejectReason::from_code(frame.message::<LogonReject>().code);
            Err(ClientError::Refused { refusal, sentence: ClientError::sentence(frame.text) })
        }
        Some(FrameKind::Logout) => Err(ClientError::LoggedOut(ClientError::sentence(frame.text))),
        _ => Ok(()),
    }
}

fn expect(frame: &Frame, kind: FrameKind) -> Result<(), ClientError> {
    check_end(frame)?;
    if frame.kind == kind.code() { Ok(()) } else { Err(ClientError::Protocol("answered a logon with something else")) }
}
