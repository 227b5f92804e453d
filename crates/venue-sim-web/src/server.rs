//! The server: accepts, reads, dispatches and writes, on the thread of its caller.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::{Clock, HostClock};
use tungstenite::protocol::WebSocketConfig as ProtocolLimits;

use crate::identity::ServerIdentity;
use crate::peer::{PeerInput, PeerLimits, WebPeer};
use crate::peer_stream::PeerStream;
use crate::received_request::ReceivedRequest;
use crate::{ConnectionId, WebSender, WebServerError, WebService};

/// Max time of a handshake in nanoseconds, unless the server is given another.
const HANDSHAKE_NS: u64 = 10_000_000_000;
/// Pause after a failed accept, in nanoseconds: the system reports the listener readable all the time.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;
/// Max connections accepted in a poll.
const MAX_ACCEPTS: usize = 64;
/// Max inputs of a connection in a poll.
const MAX_INPUTS: usize = 64;
/// Size of the read buffer of a WebSocket.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// A server of HTTP/1.1 and WebSocket on one port, with or without TLS, on its caller's thread.
///
/// With TLS it makes an authority and a certificate of its own when it is opened, for `localhost` and `127.0.0.1`.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    identity: Option<ServerIdentity>,
    limits: PeerLimits,
    max_connections: usize,
    peers: BTreeMap<ConnectionId, WebPeer>,
    /// Number of connections so far.
    accepted: u64,
    /// End of the pause after a failed accept, in ticks.
    paused_until: Option<u64>,
}

/// Configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebServerConfig {
    /// Listen address; port 0 for a free port.
    pub listen: SocketAddr,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Max connections at once; further ones are closed at once.
    pub max_connections: usize,
    /// Max bytes of a received WebSocket message.
    pub max_message_bytes: usize,
}

impl WebServer {
    /// Opens a server that listens.
    pub fn open(config: &WebServerConfig) -> Result<Self, WebServerError> {
        let clock = HostClock::get()?;
        let identity = if config.tls { Some(ServerIdentity::make()?) } else { None };
        let failed = |reason| WebServerError::Listen { address: config.listen, reason };
        let listener = TcpListener::bind(config.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let protocol = ProtocolLimits::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(config.max_message_bytes))
            .max_frame_size(Some(config.max_message_bytes));
        let limits = PeerLimits { clock, handshake_ns: HANDSHAKE_NS, protocol };
        let (peers, max_connections) = (BTreeMap::new(), config.max_connections);
        Ok(Self { listener, address, identity, limits, max_connections, peers, accepted: 0, paused_until: None })
    }

    /// Returns the address with the port that the system has chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the certificate of the authority that clients must trust, PEM; none without TLS.
    pub fn authority_pem(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.authority_pem.as_str())
    }

    /// Sets the time that a client has for a TLS handshake with its first request, for each further request that it has
    /// begun, and for the answer to a close frame: 10 s unless set.
    pub fn limit_handshakes(&mut self, timeout_ns: u64) {
        self.limits.handshake_ns = timeout_ns;
    }

    /// Waits for input, the given time at most, and serves all connections. Returns the amount of work done.
    pub fn poll(&mut self, timeout_ms: u32, service: &mut dyn WebService) -> usize {
        let (ready, has_arrivals) = self.wait(timeout_ms);
        let mut work = if has_arrivals { self.accept() } else { 0 };
        for id in ready {
            work += self.serve(id, service);
        }
        work += service.turn(&mut self.sender());
        work + self.end_peers(service)
    }

    /// Returns a sender, to send outside of a callback.
    pub fn sender(&mut self) -> WebSender<'_> {
        WebSender { peers: &mut self.peers, limits: &self.limits }
    }

    /// Waits for an event. Returns the connections with work, and whether connections wait to be accepted.
    fn wait(&mut self, timeout_ms: u32) -> (Vec<ConnectionId>, bool) {
        let clock = self.limits.clock;
        self.paused_until = self.paused_until.filter(|&until| clock.ns_between(clock.ticks(), until) > 0);
        let has_work = |peer: &WebPeer| peer.may_have_input() || peer.is_over();
        let timeout_ms = if self.peers.values().any(has_work) { 0 } else { timeout_ms };
        let (mut polled, mut ids) = (Vec::new(), Vec::new());
        for (&id, peer) in &self.peers {
            if let Some((socket, events)) = peer.interest() {
                polled.push(PollFd::from_borrowed_fd(socket, events));
                ids.push(id);
            }
        }
        if self.paused_until.is_none() {
            polled.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let tv_nsec = i64::from(timeout_ms % 1_000) * 1_000_000;
        let timeout = Timespec { tv_sec: i64::from(timeout_ms / 1_000), tv_nsec };
        // An interrupt may end the wait early: then no event is reported.
        let _ = poll(&mut polled, Some(&timeout));
        let is_ready = |index: usize| polled.get(index).is_some_and(|polled| !polled.revents().is_empty());
        let has_arrivals = is_ready(ids.len());
        let may_have_input = |id: &ConnectionId| self.peers.get(id).is_some_and(WebPeer::may_have_input);
        let ready = ids.iter().enumerate().filter(|&(index, id)| is_ready(index) || may_have_input(id));
        (ready.map(|(_, &id)| id).collect(), has_arrivals)
    }

    fn accept(&mut self) -> usize {
        for accepted in 0..MAX_ACCEPTS {
            match self.listener.accept() {
                Ok((tcp, _)) => self.admit(tcp),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return accepted,
                Err(e) if is_connection_error(&e) => {}
                Err(_) => {
                    let clock = self.limits.clock;
                    self.paused_until = Some(clock.ticks() + clock.calibration().ticks_of_ns(ACCEPT_PAUSE_NS));
                    return accepted;
                }
            }
        }
        MAX_ACCEPTS
    }

    /// Adds a connection. A connection beyond the limit, or one that has failed already, is closed by its drop.
    fn admit(&mut self, tcp: TcpStream) {
        if self.peers.len() >= self.max_connections
            || tcp.set_nonblocking(true).is_err()
            || tcp.set_nodelay(true).is_err()
        {
            return;
        }
        let config = self.identity.as_ref().map(|identity| &identity.config);
        let Ok(stream) = PeerStream::new(tcp, config, self.limits.clock) else { return };
        self.accepted += 1;
        self.peers.insert(ConnectionId(self.accepted), WebPeer::new(stream, &self.limits));
    }

    /// Serves a connection, up to a bounded number of inputs.
    fn serve(&mut self, id: ConnectionId, service: &mut dyn WebService) -> usize {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.begin_turn();
        }
        let mut done = 0;
        while done < MAX_INPUTS {
            let Some(peer) = self.peers.get_mut(&id) else { break };
            let Some(input) = peer.next_input(&self.limits) else { break };
            done += 1;
            if matches!(input, PeerInput::Request(_) | PeerInput::Text(_)) {
                service.arrived(id, peer.arrival());
            }
            match input {
                PeerInput::Request(request) => self.handle_request(id, &request, service),
                PeerInput::Text(text) => service.text(id, &text, &mut self.sender()),
                PeerInput::Binary(bytes) => service.binary(id, &bytes, &mut self.sender()),
                PeerInput::Pong => service.pong(id),
                PeerInput::Handled => {}
            }
        }
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.end_turn(done == MAX_INPUTS);
        }
        done
    }

    fn handle_request(&mut self, id: ConnectionId, request: &ReceivedRequest, service: &mut dyn WebService) {
        let answer = match request.socket_key() {
            None => service.http(&request.view()),
            Some(Err(refusal)) => refusal,
            Some(Ok(key)) => match service.upgrade(id, &request.view()) {
                Err(refusal) => refusal,
                Ok(()) => {
                    if let Some(peer) = self.peers.get_mut(&id) {
                        peer.upgrade(key, &self.limits);
                    }
                    return;
                }
            },
        };
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.answer(Some(request), &answer, &self.limits);
        }
    }

    /// Ends connections that are too slow, reports ended WebSockets, and forgets connections that are over.
    fn end_peers(&mut self, service: &mut dyn WebService) -> usize {
        let before = self.peers.len();
        for (&id, peer) in &mut self.peers {
            peer.end_expired(&self.limits);
            if peer.take_end() {
                service.closed(id);
            }
        }
        self.peers.retain(|_, peer| !peer.is_over());
        before - self.peers.len()
    }
}

/// Returns whether an error concerns the accepted connection alone, and not the listener.
fn is_connection_error(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
}
