//! A connection in private memory, for the warm-up of an idle thread: a message of its own passes through the WebSocket
//! and TLS code that the next real message takes. Design: `docs/design/warm-up.md`.

use std::io;
use std::mem;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};
use tickpath_clock::HostClock;
use tungstenite::protocol::{Role, WebSocketConfig as ProtocolLimits};
use tungstenite::{Message, WebSocket};

use crate::secure_stream::{SecureStream, WebStream, read_message, send_message};
use crate::timed_stream::TimedStream;

/// The name in the certificate of the other side.
const NAME: &str = "rehearsal.invalid";
/// First byte of a text frame that is whole.
const TEXT_FRAME: u8 = 0x81;
/// Length from which a frame's head has two bytes of it, and the mark for that.
const TWO_BYTES_FROM: usize = 126;

/// A WebSocket over TLS whose two ends are in this thread's memory. Nothing leaves it.
pub struct Rehearsal {
    socket: WebSocket<WebStream>,
    server: ServerConnection,
    /// Bytes on their way to the client, and room for those that arrive at the server.
    bytes: Vec<u8>,
}

impl Rehearsal {
    /// Connects both ends. None if this host cannot: then only a message after a silence takes longer.
    pub fn new(clock: HostClock) -> Option<Self> {
        let mut this = Self::unconnected(clock).ok()?;
        // A handshake has two round trips at most.
        for _ in 0..4 {
            if this.client()?.handshake().ok()? {
                this.exchange().ok()?;
                return Some(this);
            }
            this.exchange().ok()?;
        }
        None
    }

    fn unconnected(clock: HostClock) -> Result<Self, Box<dyn std::error::Error>> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.into()))?;
        let stream = SecureStream::new(TimedStream::in_memory(clock)?, Arc::new(client), ServerName::try_from(NAME)?)?;
        let limits = ProtocolLimits::default().write_buffer_size(0);
        let socket = WebSocket::from_raw_socket(WebStream::Secure(Box::new(stream)), Role::Client, Some(limits));
        Ok(Self { socket, server: ServerConnection::new(Arc::new(server))?, bytes: Vec::new() })
    }

    /// Sends a text message, which the other side reads and drops.
    #[inline]
    pub fn send_text(&mut self, text: &str) {
        // A failure would show that nothing is warm, and changes nothing.
        let _ = send_message(&mut self.socket, Message::text(text))
            .map_err(drop)
            .and_then(|()| self.exchange().map_err(drop));
    }

    /// Lets the other side send a text message of up to 65,535 bytes, and passes it on.
    #[inline]
    pub fn receive_text(&mut self, text: &[u8], take: &mut dyn FnMut(&[u8])) {
        if self.write_frame(text).is_err() || self.exchange().is_err() {
            return;
        }
        if let Ok(Message::Text(received)) = read_message(&mut self.socket) {
            take(received.as_bytes());
        }
        // Until there is nothing more, as a poll does.
        let _ = read_message(&mut self.socket);
    }

    fn write_frame(&mut self, text: &[u8]) -> io::Result<()> {
        use std::io::Write;
        let length = u16::try_from(text.len()).map_err(io::Error::other)?;
        self.bytes.clear();
        self.bytes.push(TEXT_FRAME);
        match text.len() < TWO_BYTES_FROM {
            true => self.bytes.push(length as u8),
            false => {
                self.bytes.push(TWO_BYTES_FROM as u8);
                self.bytes.extend(length.to_be_bytes());
            }
        }
        self.bytes.extend(text);
        self.server.writer().write_all(&self.bytes)
    }

    /// Carries the bytes of both sides to the other one.
    fn exchange(&mut self) -> io::Result<()> {
        use std::io::Read;
        let mut bytes = mem::take(&mut self.bytes);
        if let Some(pipe) = self.client().and_then(SecureStream::memory) {
            bytes.clear();
            mem::swap(&mut bytes, &mut pipe.outgoing);
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            self.server.read_tls(&mut rest)?;
            self.server.process_new_packets().map_err(io::Error::other)?;
        }
        bytes.resize(bytes.capacity().max(1 << 10), 0);
        while self.server.reader().read(&mut bytes).is_ok_and(|read| read > 0) {}
        self.bytes = bytes;
        while self.server.wants_write() {
            let Self { socket, server, .. } = self;
            let WebStream::Secure(stream) = socket.get_mut() else { break };
            let Some(pipe) = stream.memory() else { break };
            server.write_tls(&mut pipe.incoming)?;
        }
        Ok(())
    }

    fn client(&mut self) -> Option<&mut SecureStream> {
        match self.socket.get_mut() {
            WebStream::Secure(stream) => Some(stream),
            WebStream::Plain(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_pass_both_ways_and_stay_in_memory() {
        let mut rehearsal = Rehearsal::new(HostClock::get().expect("this host has a clock")).expect("two ends connect");
        for turn in 0..1_000_usize {
            let text = "x".repeat(turn % 300);
            rehearsal.send_text(&text);
            let mut received = Vec::new();
            rehearsal.receive_text(text.as_bytes(), &mut |text| received.push(text.to_vec()));
            assert_eq!(received, [text.into_bytes()], "turn {turn}");
        }
    }
}
