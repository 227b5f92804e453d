//! TLS over any stream that reads and writes, also one that never waits.

use std::fmt;
use std::io::{self, Read, Write};

use rustls::Connection;

use crate::scram::{BINDING_LABEL, Binding};

/// A stream, encrypted. Both sides use version 1.3 and no other.
pub struct Secure<S: Read + Write> {
    socket: S,
    tls: Connection,
    /// The last read took all the room that it had: there may be more that no poll of the socket tells.
    has_more: bool,
}

impl<S: Read + Write> Secure<S> {
    /// Begins; nothing is said yet.
    pub fn new(socket: S, tls: impl Into<Connection>) -> Self {
        Self { socket, tls: tls.into(), has_more: false }
    }

    /// What is under the encryption.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The same, for who waits for it.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// One step of the handshake; true when it is done.
    pub fn greet(&mut self) -> io::Result<bool> {
        self.push()?;
        if self.tls.is_handshaking() && self.pull()? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(!self.tls.is_handshaking())
    }

    /// What ties a logon to this connection, once the handshake is done.
    pub fn binding(&self) -> io::Result<Binding> {
        self.tls.export_keying_material(Binding::default(), BINDING_LABEL, None).map_err(io::Error::other)
    }

    /// True if there may be more to read that no poll of the socket tells.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// True if the socket has not taken all that was written.
    pub fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Takes what the socket has: once, so that a peer that sends bit by bit cannot hold its caller.
    fn pull(&mut self) -> io::Result<usize> {
        let bytes = self.tls.read_tls(&mut self.socket)?;
        let processed = self.tls.process_new_packets();
        // The peer hears what was wrong.
        let pushed = self.push();
        processed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        pushed.map(|()| bytes)
    }

    /// Gives the socket what it takes now.
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

    /// What is decrypted; none if that is nothing.
    fn take(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tls.reader().read(room) {
            Ok(bytes) => {
                self.has_more = bytes > 0 && bytes == room.len();
                Ok(Some(bytes))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // Cut off without a farewell, as by a process that was killed: what is lost by that the numbers tell.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
            Err(e) => Err(e),
        }
    }
}

impl<S: Read + Write> Read for Secure<S> {
    /// [`io::ErrorKind::Interrupted`] if something came that is not whole yet.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.has_more = false;
        if let Some(bytes) = self.take(room)? {
            return Ok(bytes);
        }
        self.pull()?;
        self.take(room)?.ok_or_else(|| io::ErrorKind::Interrupted.into())
    }
}

impl<S: Read + Write> Write for Secure<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        if self.tls.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write(bytes)?;
        self.push().map(|()| taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}

impl<S: Read + Write> Drop for Secure<S> {
    fn drop(&mut self) {
        self.tls.send_close_notify();
        let _ = self.push();
    }
}

impl<S: Read + Write> fmt::Debug for Secure<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").field("handshaking", &self.tls.is_handshaking()).finish_non_exhaustive()
    }
}
