//! The WebSocket client: a state machine that each poll takes further, as far as the server has answered.
//!
//! ```text
//!   Down ── connect ──> Connecting ──> Securing ──> Upgrading ──> Up ── loss, close ──> Down
//!             └───────> Failed (the name lookup), reported by the next poll
//! ```

use std::fmt;
use std::io::ErrorKind;
use std::mem;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tickpath_clock::{Clock, HostClock};
use tickpath_tls::{ALL_VERSIONS, ClientConfig, client_config, describe_error, server_name};
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::MidHandshake;
use tungstenite::http::header::RETRY_AFTER;
use tungstenite::http::{HeaderMap, HeaderName, HeaderValue};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig as ProtocolLimits};
use tungstenite::{Bytes, ClientHandshake, Error, HandshakeError, Message, Utf8Bytes, WebSocket};

use crate::connect::{ConnectProgress, TcpConnect};
use crate::secure_stream::{SecureStream, WebStream, read_message, send_message};
use crate::sentence::{close_reason, handshake_failure, loss, upgrade_failure};
use crate::target::{WEB_SOCKET, WebTarget};
use crate::timed_stream::{FrameArrival, TimedStream};
use crate::{WebClientError, WebSocketConfig, WebSocketLost, WebSocketSendError};

/// Max bytes of unsent output. A longer message never has room.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// Size of the buffer of received bytes, which is filled with zeros before each read: TLS decrypts this much at once.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// Max frames of a poll, so that a flood of frames does not keep the caller from its other work.
const MAX_FRAMES: usize = 64;

/// A WebSocket connection for a thread that polls it.
pub struct WebSocketClient {
    destination: Destination,
    /// Destination of the next connect, if it is another one.
    next: Option<Destination>,
    ca: Option<PathBuf>,
    headers: HeaderMap,
    limits: ProtocolLimits,
    connect_timeout_ns: i64,
    clock: HostClock,
    /// Begin of the connect, in ticks.
    began: u64,
    state: ClientState,
    unsent: Unsent,
    refusal: Option<UpgradeRefusal>,
}

/// Answer of a server that has not upgraded a connection to a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpgradeRefusal {
    /// Status of HTTP.
    pub status: u16,
    /// Seconds until the next attempt, as the server demands them (`Retry-After`).
    pub retry_after_s: Option<u64>,
}

/// An event of a WebSocket connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketEvent<'a> {
    /// The connection is up.
    Up,
    /// A text message, valid UTF-8.
    Text(&'a [u8], FrameArrival),
    /// A binary message.
    Binary(&'a [u8], FrameArrival),
    /// A ping. It is answered.
    Ping,
    /// A pong.
    Pong,
}

struct Destination {
    target: WebTarget,
    /// TLS configuration and the expected name, if the URL is encrypted.
    secure: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

enum ClientState {
    Down,
    Failed(String),
    Connecting(TcpConnect),
    Securing(Box<SecureStream>),
    Upgrading(Box<MidHandshake<ClientHandshake<WebStream>>>),
    Up(Box<WebSocket<WebStream>>),
}

/// Output that the socket has not taken.
enum Unsent {
    Nothing,
    Pending,
    /// Writing has failed for this reason. Received messages are still read first.
    Broken(String),
}

impl WebSocketClient {
    /// Creates a client that is down. Checks the URL and the headers, and loads the trusted authorities.
    pub fn new(config: WebSocketConfig) -> Result<Self, WebClientError> {
        let max_bytes = Some(config.max_message_bytes);
        Ok(Self {
            destination: Destination::new(&config.url, config.ca.as_deref(), None)?,
            next: None,
            ca: config.ca,
            headers: header_map(&config.headers)?,
            limits: ProtocolLimits::default()
                .read_buffer_size(READ_BUFFER_BYTES)
                .write_buffer_size(0)
                .max_write_buffer_size(MAX_UNSENT_BYTES)
                .max_message_size(max_bytes)
                .max_frame_size(max_bytes),
            connect_timeout_ns: i64::try_from(config.connect_timeout_ns).unwrap_or(i64::MAX),
            clock: HostClock::get()?,
            began: 0,
            state: ClientState::Down,
            unsent: Unsent::Nothing,
            refusal: None,
        })
    }

    /// Returns the URL without its query, which may hold a key.
    pub fn address(&self) -> &str {
        &self.destination.target.shown
    }

    /// Returns how the server has refused to upgrade the last connect; none if it has not.
    pub fn refusal(&self) -> Option<UpgradeRefusal> {
        self.refusal
    }

    /// Sets the URL of the next connect. A connection keeps its own.
    pub fn set_url(&mut self, url: &str) -> Result<(), WebClientError> {
        let known = self.destination.secure.as_ref().map(|(config, _)| config.clone());
        let next = Destination::new(url, self.ca.as_deref(), known)?;
        match self.state {
            ClientState::Down => self.destination = next,
            _ => self.next = Some(next),
        }
        Ok(())
    }

    /// Begins to connect, and ends an earlier connection. [`Self::poll`] then brings [`WebSocketEvent::Up`] or the
    /// reason of the failure.
    pub fn connect(&mut self) {
        self.close();
        self.refusal = None;
        if let Some(next) = self.next.take() {
            self.destination = next;
        }
        let addresses = self.destination.target.addresses();
        let connect = addresses.and_then(|all| TcpConnect::start(all, self.clock, self.connect_timeout_ns));
        self.state = connect.map_or_else(ClientState::Failed, ClientState::Connecting);
        self.began = self.clock.ticks();
    }

    /// Takes arrived frames, and sends pending output. Returns the amount of work done: as long as it is not zero, more
    /// frames may be left that no poll of [`Self::socket`] reports.
    ///
    /// The error is the end of the connection, which is reported once.
    #[inline]
    pub fn poll(&mut self, take: &mut dyn FnMut(WebSocketEvent<'_>)) -> Result<usize, WebSocketLost> {
        let advanced = match &self.state {
            ClientState::Down => return Ok(0),
            ClientState::Up(_) => Ok(0),
            _ => self.advance(take),
        };
        advanced.and_then(|done| Ok(done + self.read(take)?)).map_err(|why| {
            (self.state, self.unsent) = (ClientState::Down, Unsent::Nothing);
            WebSocketLost(format!("{}: {why}", self.address()))
        })
    }

    /// Sends a text message. The bytes that the socket does not take now are sent by later calls.
    #[inline]
    pub fn send_text(&mut self, text: &str) -> Result<(), WebSocketSendError> {
        self.send(Message::text(text))
    }

    /// Returns when the bytes of the last message were ready for the socket, framed and encrypted, in ticks; zero before
    /// the first.
    #[inline]
    pub fn last_ready(&self) -> u64 {
        match &self.state {
            ClientState::Up(socket) => socket.get_ref().last_ready(),
            _ => 0,
        }
    }

    /// Sends a ping without content.
    pub fn send_ping(&mut self) -> Result<(), WebSocketSendError> {
        self.send(Message::Ping(Bytes::new()))
    }

    /// Ends the connection, or a connect. The server gets a close frame, if the socket takes it.
    pub fn close(&mut self) {
        if let ClientState::Up(mut socket) = mem::replace(&mut self.state, ClientState::Down) {
            let _ = socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() }));
            socket.get_mut().end();
        }
        self.unsent = Unsent::Nothing;
    }

    /// Returns the descriptor that a sleeping thread polls for readability. None while there is nothing to read: also
    /// during a TCP connect, which ends without anything to read.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            ClientState::Securing(stream) => Some(stream.as_fd()),
            ClientState::Upgrading(upgrade) => Some(upgrade.get_ref().get_ref().as_fd()),
            ClientState::Up(socket) => Some(socket.get_ref().as_fd()),
            ClientState::Down | ClientState::Failed(_) | ClientState::Connecting(_) => None,
        }
    }

    /// Takes the next steps of a connect.
    fn advance(&mut self, take: &mut dyn FnMut(WebSocketEvent<'_>)) -> Result<usize, String> {
        let mut steps = 0;
        loop {
            let state = mem::replace(&mut self.state, ClientState::Down);
            let (state, has_moved) = self.step(state)?;
            self.state = state;
            steps += usize::from(has_moved);
            if matches!(self.state, ClientState::Up(_)) {
                take(WebSocketEvent::Up);
                return Ok(steps);
            }
            if !has_moved {
                break;
            }
        }
        match self.clock.ns_between(self.began, self.clock.ticks()) > self.connect_timeout_ns {
            true => Err(format!(
                "no answer in the {} within {} s; check the address, or allow more time",
                self.state.pending_step(),
                self.connect_timeout_ns as f64 / 1e9
            )),
            false => Ok(steps),
        }
    }

    /// Takes the next step of a connect, if the server has answered the last one. Returns whether it has.
    fn step(&mut self, state: ClientState) -> Result<(ClientState, bool), String> {
        let host = &self.destination.target.host;
        match state {
            ClientState::Failed(why) => Err(why),
            ClientState::Connecting(connect) => match connect.advance()? {
                ConnectProgress::Pending(connect) => Ok((ClientState::Connecting(connect), false)),
                ConnectProgress::Connected(tcp) => Ok((self.begin_stream(tcp)?, true)),
            },
            ClientState::Securing(mut stream) => match stream.handshake() {
                Ok(false) => Ok((ClientState::Securing(stream), false)),
                Ok(true) => Ok((self.begin_upgrade(WebStream::Secure(stream))?, true)),
                Err(e) => Err(handshake_failure(&e, host)),
            },
            ClientState::Upgrading(upgrade) => match upgrade.handshake() {
                Ok((socket, _)) => Ok((ClientState::Up(Box::new(socket)), true)),
                Err(HandshakeError::Interrupted(upgrade)) => Ok((ClientState::Upgrading(Box::new(upgrade)), false)),
                Err(HandshakeError::Failure(e)) => {
                    self.refusal = refusal_of(&e);
                    Err(upgrade_failure(&e, host))
                }
            },
            state @ (ClientState::Down | ClientState::Up(_)) => Ok((state, false)),
        }
    }

    fn begin_stream(&self, tcp: TcpStream) -> Result<ClientState, String> {
        let tcp = TimedStream::new(tcp, self.clock);
        let Destination { target, secure } = &self.destination;
        let Some((config, name)) = secure else { return self.begin_upgrade(WebStream::Plain(tcp)) };
        let stream = SecureStream::new(tcp, config.clone(), name.clone());
        let stream = stream.map_err(|e| describe_error(&e, &target.host))?;
        Ok(ClientState::Securing(Box::new(stream)))
    }

    fn begin_upgrade(&self, stream: WebStream) -> Result<ClientState, String> {
        let target = &self.destination.target;
        let failure = |e: Error| upgrade_failure(&e, &target.host);
        let mut request = target.uri.clone().into_client_request().map_err(failure)?;
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        let upgrade = ClientHandshake::start(stream, request, Some(self.limits)).map_err(failure)?;
        Ok(ClientState::Upgrading(Box::new(upgrade)))
    }

    #[inline]
    fn read(&mut self, take: &mut dyn FnMut(WebSocketEvent<'_>)) -> Result<usize, String> {
        let ClientState::Up(socket) = &mut self.state else { return Ok(0) };
        let host = &self.destination.target.host;
        let mut done = usize::from(self.unsent.send_pending(socket, host));
        for _ in 0..MAX_FRAMES {
            let message = match read_message(socket) {
                Ok(message) => message,
                Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => {
                    if let Unsent::Broken(why) = &self.unsent {
                        return Err(why.clone());
                    }
                    break;
                }
                Err(e) => return Err(loss(&e, host)),
            };
            done += 1;
            let arrival = socket.get_ref().arrival();
            match message {
                Message::Text(text) => take(WebSocketEvent::Text(text.as_bytes(), arrival)),
                Message::Binary(bytes) => take(WebSocketEvent::Binary(&bytes, arrival)),
                Message::Ping(_) => {
                    // The answer is queued, and is sent before more is read.
                    self.unsent.record(socket.flush(), host);
                    take(WebSocketEvent::Ping);
                }
                Message::Pong(_) => take(WebSocketEvent::Pong),
                Message::Close(frame) => {
                    let _ = socket.flush();
                    return Err(close_reason(frame.as_ref()));
                }
                // Only written, never read.
                Message::Frame(_) => {}
            }
        }
        Ok(done)
    }

    #[inline]
    fn send(&mut self, message: Message) -> Result<(), WebSocketSendError> {
        let ClientState::Up(socket) = &mut self.state else { return Err(WebSocketSendError::Down) };
        let host = &self.destination.target.host;
        self.unsent.send_pending(socket, host);
        if !matches!(self.unsent, Unsent::Broken(_)) {
            match send_message(socket, message) {
                Err(Error::WriteBufferFull(_)) => return Err(WebSocketSendError::Full),
                sent => self.unsent.record(sent, host),
            }
        }
        if matches!(self.unsent, Unsent::Broken(_)) { Err(WebSocketSendError::Down) } else { Ok(()) }
    }
}

impl fmt::Debug for WebSocketClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_up = matches!(self.state, ClientState::Up(_));
        f.debug_struct("WebSocketClient")
            .field("address", &self.address())
            .field("is_up", &is_up)
            .finish_non_exhaustive()
    }
}

impl Destination {
    /// Checks a URL. If it is encrypted, uses the known TLS configuration, or loads the authorities.
    fn new(url: &str, ca: Option<&Path>, known: Option<Arc<ClientConfig>>) -> Result<Self, WebClientError> {
        let target = WebTarget::parse(url, &WEB_SOCKET)?;
        if !target.is_secure {
            return Ok(Self { target, secure: None });
        }
        let impossible = |why| WebClientError::Tls { url: target.shown.clone(), why };
        let name = server_name(&target.host).map_err(impossible)?;
        let config = match known {
            Some(config) => config,
            None => Arc::new(client_config(ca, None, ALL_VERSIONS).map_err(impossible)?),
        };
        Ok(Self { target, secure: Some((config, name)) })
    }
}

impl ClientState {
    /// Returns the step of a connect that the server has not answered.
    fn pending_step(&self) -> &'static str {
        match self {
            Self::Securing(_) => "TLS handshake",
            Self::Upgrading(_) => "WebSocket handshake",
            Self::Down | Self::Failed(_) | Self::Connecting(_) | Self::Up(_) => "TCP connect",
        }
    }
}

impl Unsent {
    /// Sends pending output, and returns true if none is left.
    #[inline]
    fn send_pending(&mut self, socket: &mut WebSocket<WebStream>, host: &str) -> bool {
        let is_pending = match self {
            Self::Nothing => socket.get_ref().wants_write(),
            Self::Pending => true,
            Self::Broken(_) => false,
        };
        if is_pending {
            self.record(socket.flush(), host);
        }
        is_pending && matches!(self, Self::Nothing)
    }

    /// Records the result of a write: the socket keeps the bytes that it could not pass on.
    #[inline]
    fn record(&mut self, written: Result<(), Error>, host: &str) {
        *self = match written {
            Ok(()) => Self::Nothing,
            Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Self::Pending,
            Err(e) => Self::Broken(loss(&e, host)),
        };
    }
}

/// Returns the status and the demanded pause of an answer that is no upgrade.
fn refusal_of(error: &Error) -> Option<UpgradeRefusal> {
    let Error::Http(response) = error else { return None };
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after_s = retry_after.and_then(|seconds| seconds.trim().parse().ok());
    Some(UpgradeRefusal { status: response.status().as_u16(), retry_after_s })
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, WebClientError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        let (Ok(header), Ok(mut value)) = parsed else { return Err(WebClientError::Header(name.clone())) };
        value.set_sensitive(true);
        map.append(header, value);
    }
    Ok(map)
}
