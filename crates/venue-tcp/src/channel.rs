//! Frames on a socket that never waits, with the heartbeats of both sides: what the two ends of a line have in common.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_clock::{Clock, HostClock};
use tickpath_session::{Frame, HEAD_BYTES, Head, Inbox, MOST_PAYLOAD, write_with_text};
use zerocopy::IntoBytes;

use crate::Socket;
use crate::wire::{HEARTBEAT, SILENCE_MS};

/// Bytes that wait for the other side to take them, at most; more only for reports that it asked for.
const MOST_PENDING: usize = 256 << 10;
/// Turns without a word between two looks at the clock.
const LOOK_EVERY: u32 = 64;
/// A message that is sent from the stack.
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
    /// When something last came, and when a heartbeat last went, in ticks.
    heard: u64,
    beaten: u64,
    quiet_turns: u32,
    /// Why nothing more can be written; what can still be read comes first.
    broken: Option<String>,
}

impl Channel {
    /// On a socket that does not wait.
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

    /// True if nothing more should be said before some of it was taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.out.len() - self.sent >= MOST_PENDING
    }

    /// True if nothing can be written any more.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Sends one message at once; what the socket does not take waits here. False if it can take nothing any more.
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

    /// Writes a frame behind what waits; [`Self::flush`] sends it.
    pub fn say(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8], text: &[u8]) {
        debug_assert!(message.len() <= MOST_PAYLOAD);
        write_with_text(&mut self.out, kind, number, stamp, message, text);
    }

    /// Sends what the socket takes now. True if some went.
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

    /// Reads once. True if something came; the error is the end, and why.
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

    /// The next frame that is whole.
    #[expect(clippy::should_implement_trait, reason = "a frame borrows its channel, an iterator cannot lend")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, String> {
        self.inbox.next().map_err(|e| e.to_string())
    }

    /// To be called at each turn that found nothing: says now and then that this side lives and has everything below
    /// `next`, and finds out when the other side says nothing any more.
    pub fn rest(&mut self, next: u64) -> Result<(), String> {
        self.quiet_turns = self.quiet_turns.wrapping_add(1);
        if self.quiet_turns.is_multiple_of(LOOK_EVERY) { self.look(next) } else { Ok(()) }
    }

    /// Nothing is read on purpose: the other side's silence counts from now on.
    pub fn forgive(&mut self) {
        self.heard = self.clock.ticks();
    }

    /// As [`Self::rest`], at once: for who sleeps between its turns.
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
