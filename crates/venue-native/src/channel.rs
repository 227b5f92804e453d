//! Frames on a nonblocking socket, with the heartbeats of both sides; both ends of a line use it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_clock::{Clock, HostClock};
use tickpath_oms_protocol::{Frame, HEAD_BYTES, Head, Inbox, MOST_PAYLOAD, write_with_text};
use zerocopy::IntoBytes;

use crate::Socket;
use crate::wire::{HEARTBEAT, SILENCE_MS};

/// Max pending output in bytes; only reports that the other side has asked for may exceed it.
const MOST_PENDING: usize = 256 << 10;
/// Idle turns between two reads of the clock.
const LOOK_EVERY: u32 = 64;
/// Max size of a message that is sent from the stack.
const SHORT: usize = 256;

/// A connection.
#[derive(Debug)]
pub struct Channel {
    clock: HostClock,
    socket: Socket,
    inbox: Inbox,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    /// Times of the last receive and of the last heartbeat sent, in ticks.
    heard: u64,
    beaten: u64,
    quiet_turns: u32,
    /// Reason why writing has failed; received bytes are still read first.
    broken: Option<String>,
}

impl Channel {
    /// Creates a channel on a nonblocking socket.
    pub fn new(clock: HostClock, socket: Socket) -> Self {
        let now = clock.ticks();
        Self {
            clock,
            socket,
            inbox: Inbox::default(),
            out: Vec::new(),
            sent: 0,
            heard: now,
            beaten: now,
            quiet_turns: 0,
            broken: None,
        }
    }

    /// Returns whether the pending output has reached its limit, so that the caller should send no more for now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.out.len() - self.sent >= MOST_PENDING
    }

    /// Returns whether writing has failed for good.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Sends a message, and keeps the bytes that the socket does not take. Returns false if writing has failed.
    #[inline]
    pub fn send(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8]) -> bool {
        if self.sent < self.out.len() || message.len() > SHORT - HEAD_BYTES {
            self.say(kind, number, stamp, message, &[]);
            return !self.is_broken();
        }
        let mut frame = [0; SHORT];
        let length = HEAD_BYTES + message.len();
        let fixed = message.len() as u16;
        let head = Head { length: message.len() as u32, kind, reserved: 0, fixed, sequence: number, stamp };
        frame[..HEAD_BYTES].copy_from_slice(head.as_bytes());
        frame[HEAD_BYTES..length].copy_from_slice(message);
        match self.socket.write(&frame[..length]) {
            Ok(bytes) if bytes == length => true,
            Ok(bytes) => self.keep(&frame[bytes..length]),
            Err(e) if is_for_now(&e) => self.keep(&frame[..length]),
            Err(e) => {
                self.broken = Some(e.to_string());
                false
            }
        }
    }

    /// Appends a frame to the pending output; [`Self::flush`] sends it.
    pub fn say(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8], text: &[u8]) {
        debug_assert!(message.len() <= MOST_PAYLOAD);
        write_with_text(&mut self.out, kind, number, stamp, message, text);
    }

    /// Sends the bytes that the socket takes now. Returns true if some were sent.
    pub fn flush(&mut self) -> bool {
        let before = self.sent;
        while self.sent < self.out.len() && self.broken.is_none() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => self.broken = Some("it was closed".to_owned()),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if is_for_now(&e) => break,
                Err(e) => self.broken = Some(e.to_string()),
            }
        }
        let went = self.sent > before;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent >= MOST_PENDING {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        went
    }

    /// Reads once. Returns true if bytes arrived; the error is the end of the connection, with its reason.
    pub fn read(&mut self) -> Result<bool, String> {
        match self.socket.read(self.inbox.room()) {
            Ok(0) => Err(self.broken.take().unwrap_or_else(|| "the other side has closed it".to_owned())),
            Ok(bytes) => {
                self.inbox.filled(bytes);
                self.quiet_turns = 0;
                self.heard = self.clock.ticks();
                Ok(true)
            }
            Err(e) if is_for_now(&e) => self.broken.take().map_or(Ok(false), Err),
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
    pub fn rest(&mut self, next: u64) -> Result<(), String> {
        self.quiet_turns = self.quiet_turns.wrapping_add(1);
        if self.quiet_turns.is_multiple_of(LOOK_EVERY) { self.look(next) } else { Ok(()) }
    }

    /// Restarts the measurement of the other side's silence, after a time in which this side did not read on purpose.
    pub fn forgive(&mut self) {
        self.heard = self.clock.ticks();
    }

    /// Does the work of [`Self::rest`] at once, for a thread that sleeps between its turns.
    pub fn look(&mut self, next: u64) -> Result<(), String> {
        let now = self.clock.ticks();
        let ms = |from: u64| self.clock.ns_between(from, now).max(0) as u64 / 1_000_000;
        if ms(self.heard) > u64::from(SILENCE_MS) {
            return Err(format!("it has said nothing for {SILENCE_MS} ms"));
        }
        if ms(self.beaten) >= u64::from(SILENCE_MS) / 4 {
            self.beaten = now;
            self.say(HEARTBEAT, next, now, &[], &[]);
            self.flush();
        }
        Ok(())
    }

    fn keep(&mut self, rest: &[u8]) -> bool {
        self.out.extend_from_slice(rest);
        true
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_for_now(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
