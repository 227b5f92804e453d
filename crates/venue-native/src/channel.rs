//! Frames on a nonblocking socket, with the heartbeats of both sides; both ends of a line use it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_clock::{Clock, HostClock};
use tickpath_oms_protocol::{Frame, FrameBuffer, FrameHeader, HEADER_BYTES, MAX_PAYLOAD, write_frame_with_text};
use zerocopy::IntoBytes;

use crate::LineSocket;
use crate::wire::{HEARTBEAT, SILENCE_MS};

/// Max pending output in bytes; only reports that the other side has asked for may exceed it.
const MAX_PENDING_BYTES: usize = 256 << 10;
/// Idle turns between two reads of the clock.
const CLOCK_CHECK_TURNS: u32 = 64;
/// Max size of a message that is sent from the stack.
const STACK_FRAME_BYTES: usize = 256;

/// A connection.
#[derive(Debug)]
pub struct FrameChannel {
    clock: HostClock,
    socket: LineSocket,
    inbox: FrameBuffer,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    /// Times of the last receive and of the last heartbeat sent, in ticks.
    last_received: u64,
    last_heartbeat: u64,
    idle_turns: u32,
    /// Reason why writing has failed; received bytes are still read first.
    broken: Option<String>,
}

impl FrameChannel {
    /// Creates a channel on a nonblocking socket.
    pub fn new(clock: HostClock, socket: LineSocket) -> Self {
        let now = clock.ticks();
        Self {
            clock,
            socket,
            inbox: FrameBuffer::default(),
            out: Vec::new(),
            sent: 0,
            last_received: now,
            last_heartbeat: now,
            idle_turns: 0,
            broken: None,
        }
    }

    /// Returns whether the pending output has reached its limit, so that the caller should send no more for now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.out.len() - self.sent >= MAX_PENDING_BYTES
    }

    /// Returns whether writing has failed for good.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Sends a message, and keeps the bytes that the socket does not take. Returns false if writing has failed.
    #[inline]
    pub fn send(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8]) -> bool {
        if self.sent < self.out.len() || message.len() > STACK_FRAME_BYTES - HEADER_BYTES {
            self.queue(kind, number, stamp, message, &[]);
            return !self.is_broken();
        }
        let mut frame = [0; STACK_FRAME_BYTES];
        let length = HEADER_BYTES + message.len();
        let fixed = message.len() as u16;
        let head = FrameHeader { length: message.len() as u32, kind, reserved: 0, fixed, sequence: number, stamp };
        frame[..HEADER_BYTES].copy_from_slice(head.as_bytes());
        frame[HEADER_BYTES..length].copy_from_slice(message);
        match self.socket.write(&frame[..length]) {
            Ok(bytes) if bytes == length => true,
            Ok(bytes) => self.queue_unsent(&frame[bytes..length]),
            Err(e) if is_transient(&e) => self.queue_unsent(&frame[..length]),
            Err(e) => {
                self.broken = Some(e.to_string());
                false
            }
        }
    }

    /// Appends a frame to the pending output; [`Self::flush`] sends it.
    pub fn queue(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8], text: &[u8]) {
        debug_assert!(message.len() <= MAX_PAYLOAD);
        write_frame_with_text(&mut self.out, kind, number, stamp, message, text);
    }

    /// Sends the bytes that the socket takes now. Returns true if some were sent.
    pub fn flush(&mut self) -> bool {
        let before = self.sent;
        while self.sent < self.out.len() && self.broken.is_none() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => self.broken = Some("it was closed".to_owned()),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if is_transient(&e) => break,
                Err(e) => self.broken = Some(e.to_string()),
            }
        }
        let has_sent = self.sent > before;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent >= MAX_PENDING_BYTES {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        has_sent
    }

    /// Reads once. Returns true if bytes arrived; the error is the end of the connection, with its reason.
    pub fn read(&mut self) -> Result<bool, String> {
        match self.socket.read(self.inbox.free_space()) {
            Ok(0) => Err(self.broken.take().unwrap_or_else(|| "the other side has closed it".to_owned())),
            Ok(bytes) => {
                self.inbox.advance(bytes);
                self.idle_turns = 0;
                self.last_received = self.clock.ticks();
                Ok(true)
            }
            Err(e) if is_transient(&e) => self.broken.take().map_or(Ok(false), Err),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Returns the next complete frame.
    #[expect(clippy::should_implement_trait, reason = "a frame borrows its channel, an iterator cannot lend")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, String> {
        self.inbox.next().map_err(|e| e.to_string())
    }

    /// Does the periodic work of an idle turn: sends a heartbeat that acknowledges all numbers below `next`, and fails
    /// if the other side is silent for too long. Call it at each turn without input.
    pub fn idle(&mut self, next: u64) -> Result<(), String> {
        self.idle_turns = self.idle_turns.wrapping_add(1);
        if self.idle_turns.is_multiple_of(CLOCK_CHECK_TURNS) { self.check_liveness(next) } else { Ok(()) }
    }

    /// Restarts the measurement of the other side's silence, after a time in which this side did not read on purpose.
    pub fn restart_silence(&mut self) {
        self.last_received = self.clock.ticks();
    }

    /// Does the work of [`Self::idle`] at once, for a thread that sleeps between its turns.
    pub fn check_liveness(&mut self, next: u64) -> Result<(), String> {
        let now = self.clock.ticks();
        let ms = |from: u64| self.clock.ns_between(from, now).max(0) as u64 / 1_000_000;
        if ms(self.last_received) > u64::from(SILENCE_MS) {
            return Err(format!("it has sent nothing for {SILENCE_MS} ms"));
        }
        if ms(self.last_heartbeat) >= u64::from(SILENCE_MS) / 4 {
            self.last_heartbeat = now;
            self.queue(HEARTBEAT, next, now, &[], &[]);
            self.flush();
        }
        Ok(())
    }

    fn queue_unsent(&mut self, rest: &[u8]) -> bool {
        self.out.extend_from_slice(rest);
        true
    }
}

impl AsFd for FrameChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_transient(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
