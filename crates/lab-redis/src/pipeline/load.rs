//! What the generator is to send, over which connections, and how far it is.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, Lateness};
use tickpath_harness::LabError;
use tickpath_harness::samples::touched_rows;

use super::command::{Command, encode};
use super::control::Control;
use super::replies::{Intake, Replies};
use super::usage::Usage;
use crate::address::{Address, Stream};

/// Commands that are written before any reply is read. The server keeps the replies meanwhile; who would write more
/// must read while writing.
pub(super) const MOST_AT_ONCE: u64 = 10_000;

/// Bytes that one read takes.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// What the shortest command is, as people type it into `nc`, and how long its answer is: `+PONG` and the line's end.
const INLINE_PING: &[u8] = b"PING\r\n";
const PONG_BYTES: u64 = 7;

/// Batches a second that there is room for from the start; more only cost a moment of making room.
const BATCHES_PER_S: u64 = 300_000;
const MOST_ROWS: u64 = 4 << 20;

/// Sends commands to a Redis server and counts the replies. The script for redis-py is told the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PipelineRole {
    /// Where the server is.
    pub(super) address: Address,
    /// The key that its commands are about.
    pub(super) key: String,
    /// What it sends.
    pub(super) command: Command,
    /// The digest of the script, for a command that needs it.
    pub(super) digest: String,
    /// Whether replies are only counted by their bytes.
    pub(super) raw: bool,
    /// Commands of a batch.
    pub(super) depth: u64,
    /// Connections.
    pub(super) connections: usize,
    /// Commands a second at intended times; the next batch when the one before is answered if there is none.
    pub(super) rate: Option<f64>,
    /// Whether it reads replies while it is still writing.
    pub(super) while_writing: bool,
    /// When it ends.
    pub(super) until: Until,
    /// Its CPU.
    pub(super) cpu: usize,
    /// Where its stamps go: intended, sent and answered, for each batch.
    pub(super) out: PathBuf,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Until {
    /// After so many commands; if there is none, when the time is over and the least is sent.
    pub count: Option<u64>,
    /// The time, in nanoseconds.
    pub duration_ns: u64,
    /// The least.
    pub least: u64,
    /// Whatever came of it, after this, in nanoseconds.
    pub most_ns: u64,
}

/// What a generator tells at its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LoadReport {
    /// Commands.
    pub sent: u64,
    /// Replies.
    pub received: u64,
    /// Those that were errors.
    pub errors: u64,
    /// What the first error said.
    pub first_error: Option<String>,
    /// Numbers that were not the one before and one.
    pub disordered: u64,
    /// From the first send to the last receipt, in nanoseconds.
    pub elapsed_ns: u64,
    /// Batches that were sent late among all, 0 to 1.
    pub late_share: f64,
    /// What it took from the machine meanwhile.
    pub used: Usage,
    /// Why it ended before its time.
    pub failed: Option<String>,
}

impl PipelineRole {
    /// Whether a batch is written whole before its replies are read, over the one connection.
    pub fn writes_first(&self) -> bool {
        self.connections == 1 && self.rate.is_none() && !self.while_writing
    }

    /// One command as bytes.
    fn bytes(&self) -> Vec<u8> {
        match self.raw {
            true => INLINE_PING.to_vec(),
            false => encode(&self.command.words(&self.key, &self.digest)),
        }
    }
}

/// A connection of the generator, with what has come over it.
pub(super) struct Link {
    pub control: Control,
    pub intake: Intake,
}

impl Link {
    pub fn open(role: &PipelineRole) -> Result<Self, LabError> {
        // Who shares a number with others cannot know which is the next one.
        let counts = role.command.is_counting() && role.connections == 1;
        let intake = match role.raw {
            true => Intake::Bytes { of_reply: PONG_BYTES, seen: 0 },
            false => Intake::Replies(Replies::new(counts.then_some(1))),
        };
        Ok(Self { control: Control::open(&role.address)?, intake })
    }

    pub fn stream(&mut self) -> &mut Stream {
        self.control.stream()
    }
}

/// The commands of a batch as bytes, made once; of a longer batch the part that is sent again and again.
pub(super) struct Block {
    pub bytes: Vec<u8>,
    command_bytes: usize,
}

impl Block {
    pub fn new(role: &PipelineRole) -> Self {
        let command = role.bytes();
        let commands = role.depth.min(MOST_AT_ONCE) as usize;
        Self { bytes: command.repeat(commands), command_bytes: command.len() }
    }

    /// So many commands, of those that one block has.
    pub fn first(&self, commands: u64) -> &[u8] {
        &self.bytes[..commands as usize * self.command_bytes]
    }

    /// The length of so many commands, in bytes.
    pub fn length(&self, commands: u64) -> u64 {
        commands * self.command_bytes as u64
    }
}

/// How far the run is.
pub(super) struct Tally {
    pub clock: HostClock,
    /// When each batch was meant to be sent, was sent, and was answered, in ticks.
    pub rows: Vec<[u64; 3]>,
    /// Commands.
    pub sent: u64,
    /// System calls.
    pub calls: u64,
    pub lateness: Lateness,
    /// When the run began, and when the last reply came, in ticks.
    pub first: u64,
    last: u64,
    depth: u64,
    until: Until,
}

impl Tally {
    pub fn new(role: &PipelineRole, clock: HostClock) -> Self {
        let commands = role.until.count.unwrap_or(role.until.duration_ns / 1_000 * BATCHES_PER_S / 1_000_000);
        let batches = (commands / role.depth + 1).min(MOST_ROWS);
        Self {
            clock,
            rows: touched_rows(batches as usize),
            sent: 0,
            calls: 0,
            lateness: Lateness::default(),
            first: 0,
            last: 0,
            depth: role.depth,
            until: role.until,
        }
    }

    pub fn start(&mut self) {
        self.first = self.clock.ticks();
        self.last = self.first;
    }

    /// How many commands the next batch has; none if there is none any more.
    #[inline]
    pub fn next(&self, now: u64) -> Option<u64> {
        let elapsed_ns = self.clock.ns_between(self.first, now) as u64;
        if elapsed_ns >= self.until.most_ns {
            return None;
        }
        match self.until.count {
            Some(count) => Some(self.depth.min(count - self.sent)).filter(|commands| *commands > 0),
            None => (elapsed_ns < self.until.duration_ns || self.sent < self.until.least).then_some(self.depth),
        }
    }

    /// A batch was answered.
    #[inline]
    pub fn row(&mut self, intended: u64, sent: u64, answered: u64) {
        self.rows.push([intended, sent, answered]);
        self.last = answered;
    }

    pub fn report(&self, links: &[Link], used: Usage, failed: Option<String>) -> LoadReport {
        let sum = |of: fn(&Intake) -> u64| links.iter().map(|link| of(&link.intake)).sum();
        LoadReport {
            sent: self.sent,
            received: sum(Intake::received),
            errors: sum(Intake::errors),
            first_error: links.iter().find_map(|link| link.intake.first_error()),
            disordered: sum(Intake::disordered),
            elapsed_ns: self.clock.ns_between(self.first, self.last).max(0) as u64,
            late_share: self.lateness.share(),
            used,
            failed,
        }
    }
}

/// A server that has hung up.
pub(super) fn closed() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
