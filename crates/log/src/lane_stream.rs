//! A connection whose bytes travel by lanes in shared memory, beside the socket that opened it.

use std::io::{self, Read, Write};

use crate::lanes::{LaneError, LanePair};

/// Max bytes (rings of the bell) per read of the socket, and max reads before the lanes have their turn.
const WAKE_BYTES_PER_READ: usize = 4096;
const MAX_SOCKET_READS: usize = 16;

/// Non-blocking byte stream over lanes. Bytes of their socket only wake; its end ends the stream behind all bytes.
#[derive(Debug)]
pub struct LaneStream<S> {
    socket: S,
    lanes: LanePair,
    /// Set if the socket may be readable.
    socket_may_be_readable: bool,
}

impl<S: Read + Write> LaneStream<S> {
    /// Builds the stream. The socket must be non-blocking from here on.
    pub fn new(socket: S, lanes: LanePair) -> Self {
        Self { socket, lanes, socket_may_be_readable: true }
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
    pub fn mark_socket_readable(&mut self) {
        self.socket_may_be_readable = true;
    }

    /// Returns true if a read would find bytes in the lanes, or with `wants_room` a write would find room.
    #[inline]
    pub fn has_news(&mut self, wants_room: bool) -> bool {
        self.lanes.has_news() || wants_room && self.lanes.has_room()
    }

    /// Announces that the thread sleeps until the socket wakes it; returns false if it must not, because there is news.
    pub fn announce_sleep(&self) -> bool {
        self.lanes.announce_sleep()
    }

    /// Withdraws the announcement of sleep.
    pub fn withdraw_sleep(&self) {
        self.lanes.withdraw_sleep();
    }

    fn read_lanes(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.lanes.read(room).map_err(broken)?;
        if bytes > 0 && self.lanes.must_wake_sender() {
            self.wake_peer();
        }
        Ok(bytes)
    }

    fn wake_peer(&mut self) {
        // A full socket buffer already holds enough rings.
        let _ = self.socket.write(&[0]);
    }

    /// Drains the socket, because readiness is reported only once; returns true at its end. After 16 reads fails with
    /// `Interrupted`, so that a peer that rings without end is read again later.
    fn drain_socket(&mut self) -> io::Result<bool> {
        for _ in 0..MAX_SOCKET_READS {
            match self.socket.read(&mut [0; WAKE_BYTES_PER_READ]) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.socket_may_be_readable = false;
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

impl<S: Read + Write> Read for LaneStream<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.read_lanes(room)? {
            0 => {}
            bytes => return Ok(bytes),
        }
        // Bytes sent before the close are in the lane by the time of the close.
        if self.socket_may_be_readable && self.drain_socket()? {
            return self.read_lanes(room);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl<S: Read + Write> Write for LaneStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.lanes.write(bytes).map_err(broken)?;
        if sent == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.lanes.must_wake_receiver() {
            self.wake_peer();
        }
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn broken(e: LaneError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e)
}
