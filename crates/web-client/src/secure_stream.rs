//! The stream below a WebSocket: TLS over TCP, or TCP alone. An operation that would have to wait returns
//! [`io::ErrorKind::WouldBlock`].

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};
use tungstenite::{Message, WebSocket};

use crate::timed_stream::{FrameArrival, MemoryPipe, TimedStream};

/// A stream to a web server.
pub(crate) enum WebStream {
    Plain(TimedStream),
    Secure(Box<SecureStream>),
}

impl WebStream {
    #[inline]
    pub(crate) fn arrival(&self) -> FrameArrival {
        match self {
            Self::Plain(tcp) => tcp.arrival(),
            Self::Secure(tls) => tls.tcp.arrival(),
        }
    }

    /// Returns when the bytes of the last write were ready for the socket, in ticks; zero before the first.
    #[inline]
    pub(crate) fn last_ready(&self) -> u64 {
        match self {
            Self::Plain(tcp) => tcp.last_ready(),
            Self::Secure(stream) => stream.last_ready,
        }
    }

    /// Returns whether TLS has output that the socket has not taken.
    #[inline]
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Secure(stream) => stream.tls.wants_write(),
        }
    }

    /// Notifies the server of the end, as far as the socket takes the notice.
    pub(crate) fn end(&mut self) {
        if let Self::Secure(stream) = self {
            stream.tls.send_close_notify();
            let _ = stream.push();
        }
    }
}

impl Read for WebStream {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(room),
            Self::Secure(stream) => stream.read(room),
        }
    }
}

impl Write for WebStream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(bytes),
            Self::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}

impl AsFd for WebStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(tcp) => tcp.as_fd(),
            Self::Secure(stream) => stream.as_fd(),
        }
    }
}

/// Reads a message. Real messages and those of a [`Rehearsal`](crate::Rehearsal) share this function and the next: a copy
/// of the code would keep nothing warm.
#[inline(never)]
pub(crate) fn read_message(socket: &mut WebSocket<WebStream>) -> Result<Message, tungstenite::Error> {
    socket.read()
}

/// Sends a message, as far as the socket takes it now.
#[inline(never)]
pub(crate) fn send_message(socket: &mut WebSocket<WebStream>, message: Message) -> Result<(), tungstenite::Error> {
    socket.send(message)
}

/// An encrypted stream. The socket is read only while no decrypted byte is left, so that the stamps of the last read
/// belong to the bytes that a read returns.
pub(crate) struct SecureStream {
    tls: ClientConnection,
    tcp: TimedStream,
    /// When the last bytes were encrypted, in ticks.
    last_ready: u64,
}

impl SecureStream {
    pub(crate) fn new(tcp: TimedStream, config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        Ok(Self { tls: ClientConnection::new(config, name)?, tcp, last_ready: 0 })
    }

    /// Returns the bytes of a stream in memory; none of a socket.
    pub(crate) fn memory(&mut self) -> Option<&mut MemoryPipe> {
        self.tcp.memory()
    }

    /// Continues the handshake as far as the server has answered. Returns true when the handshake is done.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        loop {
            if !self.push()? {
                return Ok(false);
            }
            if !self.tls.is_handshaking() {
                return Ok(true);
            }
            match self.pull() {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
    }

    /// Reads from the socket once, and decrypts what is complete.
    #[inline]
    fn pull(&mut self) -> io::Result<usize> {
        let bytes = self.tls.read_tls(&mut self.tcp)?;
        let processed = self.tls.process_new_packets();
        // Sends an alert or new keys; a failure shows at the next write.
        let _ = self.push();
        processed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        Ok(bytes)
    }

    /// Writes as much as the socket takes now. Returns true if nothing is left.
    #[inline]
    fn push(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}

impl Read for SecureStream {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(room) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.pull()?,
                done => return done,
            };
        }
    }
}

impl Write for SecureStream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.push()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let written = self.tls.writer().write(bytes)?;
        self.last_ready = self.tcp.ticks();
        // The bytes are taken, whether or not the socket takes them now; a failure shows at the next write.
        let _ = self.push();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.push()? { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

impl AsFd for SecureStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}
