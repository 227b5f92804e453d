//! The stream to a client: TCP, or TLS over TCP, with a queue of unsent output. A read that would have to wait returns
//! [`io::ErrorKind::WouldBlock`], and a write takes all of its bytes.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustls::{Error, ServerConfig, ServerConnection};
use tickpath_clock::HostClock;
use tickpath_web_client::{FrameArrival, TimedStream};

/// Max bytes of unsent output before a write; more ends the connection.
const MAX_UNSENT_BYTES: usize = 8 << 20;
/// Capacity of the queue that is kept once the queue is empty.
const KEPT_CAPACITY: usize = 64 << 10;
/// Max bytes that a connection takes from its socket in a turn.
const TURN_BYTES: usize = 256 << 10;

/// A stream to a client.
pub(crate) struct PeerStream {
    tcp: TimedStream,
    tls: Option<Box<ServerConnection>>,
    /// Output that neither TLS nor the socket has taken.
    unsent: VecDeque<u8>,
    /// Bytes that the connection may still take from its socket in this turn.
    allowance: usize,
}

impl PeerStream {
    /// Wraps a non-blocking stream. With a configuration the client must begin with a TLS handshake.
    pub(crate) fn new(tcp: TcpStream, tls: Option<&Arc<ServerConfig>>, clock: HostClock) -> Result<Self, Error> {
        let tls = tls.map(|config| ServerConnection::new(config.clone())).transpose()?.map(Box::new);
        Ok(Self { tcp: TimedStream::new(tcp, clock), tls, unsent: VecDeque::new(), allowance: TURN_BYTES })
    }

    /// Returns the stamps of the last read that brought bytes.
    pub(crate) fn arrival(&self) -> FrameArrival {
        self.tcp.arrival()
    }

    /// Returns when bytes were last ready for the socket, in ticks.
    pub(crate) fn last_ready(&self) -> u64 {
        self.tcp.last_ready()
    }

    /// Begins a turn: reads may take bytes from the socket again.
    pub(crate) fn begin_turn(&mut self) {
        self.allowance = TURN_BYTES;
    }

    /// Returns whether reads of this turn have ended while the socket may have more.
    pub(crate) fn is_throttled(&self) -> bool {
        self.allowance == 0
    }

    /// Returns whether output waits for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends as much of the output as the socket takes now.
    pub(crate) fn push(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let (front, _) = self.unsent.as_slices();
            let taken = pass_on(&mut self.tcp, self.tls.as_deref_mut(), front)?;
            if taken == 0 {
                return Ok(());
            }
            self.unsent.drain(..taken);
        }
        self.unsent.shrink_to(KEPT_CAPACITY);
        if let Some(tls) = &mut self.tls {
            push_records(&mut self.tcp, tls)?;
        }
        Ok(())
    }

    /// Notifies the client that nothing more is sent.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            push_records(&mut self.tcp, tls)?;
        }
        self.tcp.finish()
    }

    fn read_secure(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        loop {
            match tls.reader().read(room) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                // The end of TCP without an end of TLS, which many clients leave out.
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            if self.allowance == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            match tls.read_tls(&mut self.tcp) {
                Ok(bytes) => self.allowance = self.allowance.saturating_sub(bytes),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            let processed = tls.process_new_packets();
            // Sends a part of the handshake, or an alert; a failure shows at the next write.
            let _ = push_records(&mut self.tcp, tls);
            processed.map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        }
    }

    fn read_plain(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.allowance == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        loop {
            match self.tcp.read(room) {
                Ok(bytes) => {
                    self.allowance = self.allowance.saturating_sub(bytes);
                    return Ok(bytes);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Read for PeerStream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.tls.is_some() { self.read_secure(room) } else { self.read_plain(room) }
    }
}

impl Write for PeerStream {
    /// Takes all bytes, and queues those that the socket does not take now. Fails if the queue was too long before.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsent.len() > MAX_UNSENT_BYTES {
            return Err(io::Error::other("the client does not read its input"));
        }
        let taken = match self.unsent.is_empty() {
            true => pass_on(&mut self.tcp, self.tls.as_deref_mut(), bytes)?,
            false => 0,
        };
        self.unsent.extend(&bytes[taken..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for PeerStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

/// Passes bytes to the socket, through TLS if there is any. Returns the number of bytes taken.
fn pass_on(tcp: &mut TimedStream, tls: Option<&mut ServerConnection>, bytes: &[u8]) -> io::Result<usize> {
    let Some(tls) = tls else { return write_now(tcp, bytes) };
    let mut taken = 0;
    while push_records(tcp, tls)? && taken < bytes.len() {
        match tls.writer().write(&bytes[taken..])? {
            0 => break,
            more => taken += more,
        }
    }
    Ok(taken)
}

/// Sends the records of TLS as far as the socket takes them. Returns true if none is left.
fn push_records(tcp: &mut TimedStream, tls: &mut ServerConnection) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(tcp) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

fn write_now(tcp: &mut TimedStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match tcp.write(bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
            done => return done,
        }
    }
}
