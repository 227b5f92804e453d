//! A connection whose bytes travel by lanes in shared memory, beside the socket that opened it.

use std::io::{self, Read, Write};

use crate::lanes::{LaneError, Lanes};

/// Max bytes (rings of the bell) per read of the socket, and max reads before the lanes have their turn.
const RINGS: usize = 4096;
const MOST_LOOKS: usize = 16;

/// Non-blocking byte stream over lanes and their socket. Bytes through the socket only wake; its end is the end of the
/// stream, behind all bytes sent before.
#[derive(Debug)]
pub struct Laned<S> {
    socket: S,
    lanes: Lanes,
    /// Set if the socket may be readable.
    is_called: bool,
}

impl<S: Read + Write> Laned<S> {
    /// Builds the stream. The socket must be non-blocking from here on.
    pub fn new(socket: S, lanes: Lanes) -> Self {
        Self { socket, lanes, is_called: true }
    }

    /// Returns the socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Returns the socket mutably, for registration with a poller.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Marks the socket as possibly readable: the next read that finds the lanes empty reads it.
    pub fn look_at_socket(&mut self) {
        self.is_called = true;
    }

    /// Returns true if a read would find bytes in the lanes, or with `wants_room` a write would find room.
    #[inline]
    pub fn has_news(&mut self, wants_room: bool) -> bool {
        self.lanes.has_news() || wants_room && self.lanes.has_room()
    }

    /// Announces that the thread sleeps until the socket wakes it; returns false if there is news, and it must not sleep.
    pub fn sleeps(&self) -> bool {
        self.lanes.sleeps()
    }

    /// Withdraws the announcement of sleep.
    pub fn wakes(&self) {
        self.lanes.wakes();
    }

    fn take(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.lanes.read(room).map_err(broken)?;
        if bytes > 0 && self.lanes.must_ring_for_room() {
            self.ring();
        }
        Ok(bytes)
    }

    fn ring(&mut self) {
        // A full socket buffer already holds enough rings.
        let _ = self.socket.write(&[0]);
    }

    /// Drains the socket, because readiness is reported only once; returns true at its end. After 16 reads fails with
    /// `Interrupted`, so that a peer that rings without end is read again later.
    fn has_ended(&mut self) -> io::Result<bool> {
        for _ in 0..MOST_LOOKS {
            match self.socket.read(&mut [0; RINGS]) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.is_called = false;
                    return Ok(false);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The peer has closed without reading its rings.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(true),
                Err(e) => return Err(e),
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    }
}

impl<S: Read + Write> Read for Laned<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.take(room)? {
            0 => {}
            bytes => return Ok(bytes),
        }
        // Bytes sent before the close are in the lane by the time of the close.
        if self.is_called && self.has_ended()? {
            return self.take(room);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl<S: Read + Write> Write for Laned<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let said = self.lanes.write(bytes).map_err(broken)?;
        if said == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.lanes.must_ring_for_news() {
            self.ring();
        }
        Ok(said)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn broken(e: LaneError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e)
}
