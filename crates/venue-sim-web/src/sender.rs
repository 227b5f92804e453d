//! Sends to the WebSockets of a server.

use std::collections::BTreeMap;

use tungstenite::{Bytes, Message};

use crate::peer::{PeerLimits, WebPeer};

/// Number of a connection. No number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Sends to the WebSockets of a server. A message to a connection that has ended is dropped, and a connection that does
/// not read is cut.
pub struct WebSender<'a> {
    pub(crate) peers: &'a mut BTreeMap<ConnectionId, WebPeer>,
    pub(crate) limits: &'a PeerLimits,
}

impl WebSender<'_> {
    /// Sends a text message.
    pub fn text(&mut self, to: ConnectionId, text: &str) {
        self.send(to, || Message::text(text));
    }

    /// Sends a binary message.
    pub fn binary(&mut self, to: ConnectionId, bytes: &[u8]) {
        self.send(to, || Message::binary(Bytes::copy_from_slice(bytes)));
    }

    /// Sends a ping without content.
    pub fn ping(&mut self, to: ConnectionId) {
        self.send(to, || Message::Ping(Bytes::new()));
    }

    /// Sends a close frame, and ends the connection once the client has answered it. A reason beyond 123 bytes is cut.
    pub fn close(&mut self, to: ConnectionId, code: u16, reason: &str) {
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.close(code, reason, self.limits);
        }
    }

    /// Ends the TCP connection at once, without a close frame and without its unsent output.
    pub fn cut(&mut self, to: ConnectionId) {
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.cut();
        }
    }

    /// Returns when bytes were ready for a socket for the last time, in ticks of the host's clock; zero for never.
    pub fn last_ready(&self) -> u64 {
        self.peers.values().map(WebPeer::last_ready).max().unwrap_or(0)
    }

    fn send(&mut self, to: ConnectionId, message: impl FnOnce() -> Message) {
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.send(message());
        }
    }
}
