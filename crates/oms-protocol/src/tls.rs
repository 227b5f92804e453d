//! TLS over any stream that reads and writes, also over a non-blocking stream.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{Connection, Error, ServerConfig};

use crate::scram::{BINDING_LABEL, Binding};

/// Returns a server's configuration: version 1.3 only, no data before the handshake is done, no session resumption.
pub fn server_config(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let certified = CertifiedKey::from_der(chain, key, &provider)?;
    let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// An encrypted stream. Both sides use version 1.3 only.
pub struct TlsStream<S: Read + Write> {
    socket: S,
    tls: Connection,
    /// The last read filled its buffer: more decrypted data may be left, which no poll of the socket reports.
    has_more: bool,
}

impl<S: Read + Write> TlsStream<S> {
    /// Wraps a socket; no byte is sent yet.
    pub fn new(socket: S, tls: impl Into<Connection>) -> Self {
        Self { socket, tls: tls.into(), has_more: false }
    }

    /// Returns the stream under the encryption.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Returns the stream under the encryption, for registration with a poll.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Runs one step of the handshake; true when the handshake is done.
    pub fn handshake(&mut self) -> io::Result<bool> {
        self.push()?;
        if self.tls.is_handshaking() && self.pull()? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(!self.tls.is_handshaking())
    }

    /// Returns the channel binding of a logon to this connection, once the handshake is done.
    pub fn binding(&self) -> io::Result<Binding> {
        self.tls.export_keying_material(Binding::default(), BINDING_LABEL, None).map_err(io::Error::other)
    }

    /// Returns whether more data may be left to read that no poll of the socket reports.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns whether the socket has not taken all that was written.
    pub fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Reads from the socket once, so that a peer that sends bit by bit cannot hold the caller.
    fn pull(&mut self) -> io::Result<usize> {
        let bytes = self.tls.read_tls(&mut self.socket)?;
        let processed = self.tls.process_new_packets();
        // Sends the alert, so that the peer learns the error.
        let pushed = self.push();
        processed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        pushed.map(|()| bytes)
    }

    /// Writes to the socket as much as it takes now.
    fn push(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes decrypted data; `None` if there is nothing yet.
    fn read_decrypted(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tls.reader().read(room) {
            Ok(bytes) => {
                self.has_more = bytes > 0 && bytes == room.len();
                Ok(Some(bytes))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // Cut without a close notification, as by a killed process: the sequence numbers show the loss.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
            Err(e) => Err(e),
        }
    }
}

impl<S: Read + Write> Read for TlsStream<S> {
    /// Reads decrypted data. Returns [`io::ErrorKind::Interrupted`] if the data received is no whole record yet.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.has_more = false;
        if let Some(bytes) = self.read_decrypted(room)? {
            return Ok(bytes);
        }
        self.pull()?;
        self.read_decrypted(room)?.ok_or_else(|| io::ErrorKind::Interrupted.into())
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        if self.tls.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let written = self.tls.writer().write(bytes)?;
        self.push().map(|()| written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}

impl<S: Read + Write> Drop for TlsStream<S> {
    fn drop(&mut self) {
        self.tls.send_close_notify();
        let _ = self.push();
    }
}

impl<S: Read + Write> fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream").field("handshaking", &self.tls.is_handshaking()).finish_non_exhaustive()
    }
}
