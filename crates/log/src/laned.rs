//! A connection whose bytes go through lanes in shared memory, beside the socket that it was opened by.

use std::io::{self, Read, Write};

use crate::lanes::{LaneError, Lanes};

/// What is read of the socket at once: rings of the bell; and how often before the lanes have their turn.
const RINGS: usize = 4096;
const MOST_LOOKS: usize = 16;

/// Lanes, and their socket: a stream of bytes that never waits. What comes through the socket only wakes, and its end is
/// the end of the stream, behind all that was said before.
#[derive(Debug)]
pub struct Laned<S> {
    socket: S,
    lanes: Lanes,
    /// The socket may have something to say.
    is_called: bool,
}

impl<S: Read + Write> Laned<S> {
    /// From here on the socket must not wait.
    pub fn new(socket: S, lanes: Lanes) -> Self {
        Self { socket, lanes, is_called: true }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The same, for who waits for it.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The socket may have something to say: the next read that finds the lanes empty looks there.
    pub fn look_at_socket(&mut self) {
        self.is_called = true;
    }

    /// True if a read would find something in the lanes, or a write that found no room would find some now.
    #[inline]
    pub fn has_news(&mut self, wants_room: bool) -> bool {
        self.lanes.has_news() || wants_room && self.lanes.has_room()
    }

    /// Its thread goes to sleep until the socket wakes it: false if there is news, and it had better not.
    pub fn sleeps(&self) -> bool {
        self.lanes.sleeps()
    }

    /// Its thread is awake.
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
        // A socket that takes no more has rung enough.
        let _ = self.socket.write(&[0]);
    }

    /// What the socket has to say, all of it, for nobody tells of it twice; true if that was its last. One that does not
    /// stop ringing is looked at again.
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
                // It has gone without listening for the bell.
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
        // What it said before it went is there once it has gone.
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
