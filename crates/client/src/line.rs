//! One connection, from its logon to its loss.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::{Clock, HostClock};
use tickpath_session::{Inbox, Kind, Welcome, write_frame, write_with_text};

use crate::ClientError;
use crate::logon::Arrived;
use crate::socket::Socket;

/// Bytes that wait for the OMS to take them, at most.
const MOST_PENDING: usize = 256 << 10;
/// Reads of lanes between two looks at their socket.
const LOOK_EVERY: u32 = 64;
/// How long the last words of a client may take.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    clock: HostClock,
    socket: Socket,
    pub inbox: Inbox,
    pub welcome: Welcome,
    /// The OMS stamps with this host's clock.
    pub shares_clock: bool,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    /// When it was made, when something last came, and when it last said that it lives: in ticks.
    made: u64,
    heard: u64,
    beaten: u64,
    /// The heartbeat time, in ticks; none if there are no heartbeats.
    heartbeat: Option<u64>,
    reads: u32,
    /// Why nothing more can be written. What can still be read comes first.
    broken: Option<ClientError>,
}

impl Line {
    pub fn new(clock: HostClock, Arrived { socket, inbox, welcome, shares_clock }: Arrived) -> Self {
        let now = clock.ticks();
        let (made, heard, beaten) = (now, now, now);
        let whole_ns = u64::from(welcome.heartbeat_ms) * 1_000_000;
        let heartbeat = (whole_ns > 0).then(|| clock.calibration().ticks_of_ns(whole_ns));
        let (out, sent, reads, broken) = (Vec::new(), 0, 0, None);
        Self { clock, socket, inbox, welcome, shares_clock, out, sent, made, heard, beaten, heartbeat, reads, broken }
    }

    /// This moment, in ticks.
    pub fn now(&self) -> u64 {
        self.clock.ticks()
    }

    /// How long it has lived.
    pub fn age_ns(&self) -> u64 {
        self.clock.ns_between(self.made, self.clock.ticks()).max(0) as u64
    }

    /// True if nothing more can be written.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// True if so much waits to be taken that nothing more may be said.
    pub fn is_full(&self) -> bool {
        self.out.len() - self.sent >= MOST_PENDING
    }

    /// Writes a frame behind what waits. It leaves with the next [`Self::flush`].
    pub fn say(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8]) {
        write_frame(&mut self.out, kind, number, stamp, message);
    }

    /// Hands over what the socket takes now.
    pub fn flush(&mut self) {
        while self.sent < self.out.len() && self.broken.is_none() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => self.broken = Some(ClientError::Closed),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.broken = Some(ClientError::lost(e)),
            }
        }
        // What TLS has taken may wait for the socket.
        if let Err(e) = self.socket.flush()
            && self.broken.is_none()
        {
            self.broken = Some(ClientError::lost(e));
        }
        if self.sent == self.out.len() || self.sent >= MOST_PENDING {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Reads once. True if something came; the error is the end of the connection.
    pub fn read(&mut self) -> Result<bool, ClientError> {
        self.look_at_socket();
        match self.socket.read(self.inbox.room()) {
            Ok(0) => Err(self.broken.take().unwrap_or(ClientError::Closed)),
            Ok(bytes) => {
                self.inbox.filled(bytes);
                self.heard = self.clock.ticks();
                Ok(true)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(e) => Err(ClientError::lost(e)),
        }
    }

    /// Looks whether the connection lives at this moment. To be called when nothing is left to read.
    pub fn check(&mut self, now: u64) -> Result<(), ClientError> {
        let is_silent = self.heartbeat.is_some_and(|whole| now.saturating_sub(self.heard) > whole);
        match self.broken.take() {
            Some(why) => Err(why),
            None if is_silent => Err(ClientError::Silent(self.welcome.heartbeat_ms)),
            None => Ok(()),
        }
    }

    /// Says that this side lives, when it is time to.
    pub fn beat(&mut self, now: u64, next_report: u64) {
        if self.heartbeat.is_some_and(|whole| now.saturating_sub(self.beaten) >= whole / 2) {
            self.beaten = now;
            // Behind what already waits it would tell nothing sooner.
            if self.sent == self.out.len() {
                self.say(Kind::Heartbeat.code(), next_report, now, &[]);
            }
        }
    }

    /// Whether the socket of lanes lives, every so often: they are read without a call of the operating system.
    fn look_at_socket(&mut self) {
        self.reads = self.reads.wrapping_add(1);
        if self.reads.is_multiple_of(LOOK_EVERY)
            && let Some(lanes) = self.socket.lanes()
        {
            lanes.look_at_socket();
        }
    }

    /// Sleeps until there is something to read, room to write what waits, a heartbeat due, or the time is over.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.lies_down() {
            return;
        }
        let must_write = self.sent < self.out.len() || self.socket.wants_write();
        let is_laned = self.socket.lanes().is_some();
        // Who waits for room in a lane is rung for.
        let waiting = if must_write && !is_laned { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let ns = timeout_ns.min(self.due_ns());
        let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        // An interrupted sleep is over like any other: who polls then finds what there is.
        let _ = poll(&mut [PollFd::new(&self.socket, waiting)], Some(&timeout));
        self.wake();
    }

    /// False if there may be something to read already; else who writes to its lanes rings from here on.
    fn lies_down(&mut self) -> bool {
        if self.broken.is_some() || self.socket.has_more() {
            return false;
        }
        if self.socket.lanes().is_some_and(|lanes| !lanes.sleeps()) {
            self.wake();
            return false;
        }
        true
    }

    /// The descriptor that an event loop waits for, and for how long at most; none if there may be something to read already. What waits to
    /// be written is tried again in a millisecond.
    pub fn sleeps(&mut self) -> Option<(BorrowedFd<'_>, u64)> {
        const AGAIN_NS: u64 = 1_000_000;
        if !self.lies_down() {
            return None;
        }
        let must_write = self.sent < self.out.len() || self.socket.wants_write();
        let due_ns = if must_write { AGAIN_NS.min(self.due_ns()) } else { self.due_ns() };
        Some((self.socket.as_fd(), due_ns))
    }

    pub fn wake(&mut self) {
        if let Some(lanes) = self.socket.lanes() {
            lanes.wakes();
            lanes.look_at_socket();
        }
    }

    /// Says goodbye, and gives what waits a moment to leave.
    pub fn close(mut self) {
        write_with_text(&mut self.out, Kind::Logout.code(), 0, self.clock.ticks(), &[], b"the client is done");
        let rest = &self.out[self.sent..];
        let ready = self.socket.set_nonblocking(false).and(self.socket.set_timeout(LAST_WORDS));
        // Whoever does not take it learns it from the end of the connection.
        let _ = ready.and_then(|()| self.socket.write_all(rest));
    }

    /// Until when something must be done, from now.
    fn due_ns(&self) -> u64 {
        let Some(whole) = self.heartbeat else { return u64::MAX };
        let now = self.clock.ticks();
        let left = |since: u64, ticks: u64| self.clock.ns_between(now, since + ticks).max(0) as u64;
        // A nanosecond more, for the time must be over then.
        left(self.beaten, whole / 2).min(left(self.heard, whole)) + 1
    }
}
