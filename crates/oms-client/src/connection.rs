//! A connection, from its logon to its loss.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::{Clock, HostClock};
use tickpath_oms_protocol::{FrameBuffer, FrameKind, Welcome, write_frame, write_frame_with_text};

use crate::ClientError;
use crate::logon::CompletedLogon;
use crate::socket::OmsSocket;

const MAX_PENDING_BYTES: usize = 256 << 10;
/// Reads of the lanes between two checks of their socket.
const READS_PER_CHECK: u32 = 64;
/// Max time to send the remaining output at a close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct OmsConnection {
    clock: HostClock,
    socket: OmsSocket,
    pub inbox: FrameBuffer,
    pub welcome: Welcome,
    /// True if the OMS stamps with this host's clock.
    pub shares_clock: bool,
    out: Vec<u8>,
    sent: usize,
    /// Times of its begin, of the last receive, and of the last heartbeat sent, in ticks.
    connected_at: u64,
    last_received: u64,
    last_heartbeat: u64,
    /// Heartbeat time, in ticks; none without heartbeats.
    heartbeat: Option<u64>,
    reads: u32,
    /// Reason why writing has failed. Received bytes are still read first.
    write_error: Option<ClientError>,
}

impl OmsConnection {
    pub fn new(clock: HostClock, CompletedLogon { socket, inbox, welcome, shares_clock }: CompletedLogon) -> Self {
        let now = clock.ticks();
        let whole_ns = u64::from(welcome.heartbeat_ms) * 1_000_000;
        let heartbeat = (whole_ns > 0).then(|| clock.calibration().ticks_of_ns(whole_ns));
        Self {
            clock,
            socket,
            inbox,
            welcome,
            shares_clock,
            out: Vec::new(),
            sent: 0,
            connected_at: now,
            last_received: now,
            last_heartbeat: now,
            heartbeat,
            reads: 0,
            write_error: None,
        }
    }

    pub fn now(&self) -> u64 {
        self.clock.ticks()
    }

    pub fn age_ns(&self) -> u64 {
        self.clock.ns_between(self.connected_at, self.clock.ticks()).max(0) as u64
    }

    pub fn is_broken(&self) -> bool {
        self.write_error.is_some()
    }

    pub fn is_full(&self) -> bool {
        self.out.len() - self.sent >= MAX_PENDING_BYTES
    }

    /// Appends a frame to the pending output. The next [`Self::flush`] sends it.
    pub fn queue_frame(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8]) {
        write_frame(&mut self.out, kind, number, stamp, message);
    }

    pub fn flush(&mut self) {
        while self.sent < self.out.len() && self.write_error.is_none() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => self.write_error = Some(ClientError::Closed),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.write_error = Some(ClientError::lost(e)),
            }
        }
        // Bytes that TLS has taken may still wait for the socket.
        if let Err(e) = self.socket.flush()
            && self.write_error.is_none()
        {
            self.write_error = Some(ClientError::lost(e));
        }
        if self.sent == self.out.len() || self.sent >= MAX_PENDING_BYTES {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Reads once. Returns true if bytes arrived; the error is the end of the connection.
    pub fn read(&mut self) -> Result<bool, ClientError> {
        // Lanes are read without a system call, so their socket is checked now and then.
        self.reads = self.reads.wrapping_add(1);
        if self.reads.is_multiple_of(READS_PER_CHECK)
            && let Some(lanes) = self.socket.lanes()
        {
            lanes.mark_socket_readable();
        }
        match self.socket.read(self.inbox.free_space()) {
            Ok(0) => Err(self.write_error.take().unwrap_or(ClientError::Closed)),
            Ok(bytes) => {
                self.inbox.advance(bytes);
                self.last_received = self.clock.ticks();
                Ok(true)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(e) => Err(ClientError::lost(e)),
        }
    }

    /// Checks that the connection is alive. Call it when nothing is left to read.
    pub fn check_liveness(&mut self, now: u64) -> Result<(), ClientError> {
        let is_silent = self.heartbeat.is_some_and(|whole| now.saturating_sub(self.last_received) > whole);
        match self.write_error.take() {
            Some(why) => Err(why),
            None if is_silent => Err(ClientError::Silent(self.welcome.heartbeat_ms)),
            None => Ok(()),
        }
    }

    /// Sends a heartbeat, when it is due.
    pub fn heartbeat_if_due(&mut self, now: u64, next_report: u64) {
        if self.heartbeat.is_some_and(|whole| now.saturating_sub(self.last_heartbeat) >= whole / 2) {
            self.last_heartbeat = now;
            // Behind pending output the heartbeat would arrive no sooner than that output.
            if self.sent == self.out.len() {
                self.queue_frame(FrameKind::Heartbeat.code(), next_report, now, &[]);
            }
        }
    }

    /// Sleeps until there is something to read, room for pending output, a heartbeat due, or the timeout.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.arm_wakeup() {
            return;
        }
        let must_write = self.sent < self.out.len() || self.socket.wants_write();
        let is_laned = self.socket.lanes().is_some();
        // The OMS wakes the client when there is room in a full lane.
        let waiting = if must_write && !is_laned { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let ns = timeout_ns.min(self.due_ns());
        let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        // An interrupted sleep ends like any other: the next poll finds the events.
        let _ = poll(&mut [PollFd::new(&self.socket, waiting)], Some(&timeout));
        self.wake();
    }

    /// Returns false if there may be something to read already; otherwise writers of its lanes wake the client.
    fn arm_wakeup(&mut self) -> bool {
        if self.write_error.is_some() || self.socket.has_more() {
            return false;
        }
        if self.socket.lanes().is_some_and(|lanes| !lanes.announce_sleep()) {
            self.wake();
            return false;
        }
        true
    }

    /// Returns the descriptor that an event loop waits for, and the max time; none if there may be something to read
    /// already. Pending output is tried again in a millisecond.
    pub fn prepare_sleep(&mut self) -> Option<(BorrowedFd<'_>, u64)> {
        const AGAIN_NS: u64 = 1_000_000;
        if !self.arm_wakeup() {
            return None;
        }
        let must_write = self.sent < self.out.len() || self.socket.wants_write();
        let due_ns = if must_write { AGAIN_NS.min(self.due_ns()) } else { self.due_ns() };
        Some((self.socket.as_fd(), due_ns))
    }

    pub fn wake(&mut self) {
        if let Some(lanes) = self.socket.lanes() {
            lanes.withdraw_sleep();
            lanes.mark_socket_readable();
        }
    }

    /// Sends a logout, and gives pending output a moment to be sent.
    pub fn close(mut self) {
        let (kind, now) = (FrameKind::Logout.code(), self.clock.ticks());
        write_frame_with_text(&mut self.out, kind, 0, now, &[], b"the client has closed");
        let rest = &self.out[self.sent..];
        let ready = self.socket.set_nonblocking(false).and(self.socket.set_timeout(CLOSE_TIMEOUT));
        // An OMS that does not receive it detects the end of the connection.
        let _ = ready.and_then(|()| self.socket.write_all(rest));
    }

    /// Returns the time until the next heartbeat or check is due.
    fn due_ns(&self) -> u64 {
        let Some(whole) = self.heartbeat else { return u64::MAX };
        let now = self.clock.ticks();
        let left = |since: u64, ticks: u64| self.clock.ns_between(now, since + ticks).max(0) as u64;
        // One nanosecond more, because the time must be over by then.
        left(self.last_heartbeat, whole / 2).min(left(self.last_received, whole)) + 1
    }
}
