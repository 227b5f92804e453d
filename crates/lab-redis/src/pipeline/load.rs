//! The generator's work, its connections, and its progress.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, Lateness};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::samples::preallocated_rows;
use tickpath_lab_tools::redis_socket::RedisSocket;

use super::command::{RedisCommand, encode};
use super::control::ControlConnection;
use super::replies::{Replies, ReplyReceiver};
use super::usage::ResourceUsage;
use crate::address::BenchAddress;

/// Max commands that are written before any reply is read. The server holds the replies meanwhile; a client that writes
/// more has to read while writing.
pub(super) const MAX_UNREAD_COMMANDS: u64 = 10_000;

/// Bytes of a read.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// The shortest command, as typed into `nc`, and the length of its answer: `+PONG` and the line's end.
const INLINE_PING: &[u8] = b"PING\r\n";
const PONG_BYTES: u64 = 7;

/// Batches a second for which rows are preallocated; more batches only cost a moment of growing.
const BATCHES_PER_S: u64 = 300_000;
const MAX_ROWS: u64 = 4 << 20;

/// Role of the generator, which sends commands to a Redis server and counts the replies. The script for redis-py
/// receives the same settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PipelineRole {
    pub(super) address: BenchAddress,
    pub(super) key: String,
    pub(super) command: RedisCommand,
    /// The digest of the script, for a command that needs it.
    pub(super) digest: String,
    /// Whether replies are only counted by their bytes.
    pub(super) raw: bool,
    /// Commands per batch.
    pub(super) depth: u64,
    pub(super) connections: usize,
    /// Commands a second at intended times; a closed loop if there is none.
    pub(super) rate: Option<f64>,
    /// Whether it reads replies while it is still writing.
    pub(super) while_writing: bool,
    /// The end of the run.
    pub(super) until: RunLimit,
    pub(super) cpu: usize,
    /// The file of its stamps: intended, sent and answered, for each batch.
    pub(super) out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunLimit {
    /// The number of commands; if there is none, the run ends when the duration is over and `least` commands are sent.
    pub count: Option<u64>,
    pub duration_ns: u64,
    /// Min commands.
    pub least: u64,
    /// Max duration in any case, in nanoseconds.
    pub most_ns: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LoadReport {
    pub sent: u64,
    pub received: u64,
    pub errors: u64,
    pub first_error: Option<String>,
    /// Numbers that were not the previous number plus 1.
    pub disordered: u64,
    /// Time from the first send to the last receipt, in nanoseconds.
    pub elapsed_ns: u64,
    pub late_share: f64,
    pub used: ResourceUsage,
    /// The reason for an early end.
    pub failed: Option<String>,
}

impl PipelineRole {
    /// Returns whether a batch is written completely before its replies are read, over the single connection.
    pub fn writes_first(&self) -> bool {
        self.connections == 1 && self.rate.is_none() && !self.while_writing
    }

    /// Returns a command as bytes.
    fn bytes(&self) -> Vec<u8> {
        match self.raw {
            true => INLINE_PING.to_vec(),
            false => encode(&self.command.words(&self.key, &self.digest)),
        }
    }
}

/// A connection of the generator, and the state of its replies.
pub(super) struct GeneratorConnection {
    pub control: ControlConnection,
    pub replies: ReplyReceiver,
}

impl GeneratorConnection {
    pub fn open(role: &PipelineRole) -> Result<Self, LabError> {
        // A connection that shares a number with others cannot know the next value.
        let counts = role.command.is_counting() && role.connections == 1;
        let intake = match role.raw {
            true => ReplyReceiver::Bytes { of_reply: PONG_BYTES, seen: 0 },
            false => ReplyReceiver::Replies(Replies::new(counts.then_some(1))),
        };
        Ok(Self { control: ControlConnection::open(&role.address)?, replies: intake })
    }

    pub fn stream(&mut self) -> &mut RedisSocket {
        self.control.stream()
    }
}

/// The bytes of a batch's commands, made once; for a longer batch the part that is sent repeatedly.
pub(super) struct CommandBlock {
    pub bytes: Vec<u8>,
    command_bytes: usize,
}

impl CommandBlock {
    pub fn new(role: &PipelineRole) -> Self {
        let command = role.bytes();
        let commands = role.depth.min(MAX_UNREAD_COMMANDS) as usize;
        Self { bytes: command.repeat(commands), command_bytes: command.len() }
    }

    /// Returns the bytes of the first `commands` commands of the block.
    pub fn first(&self, commands: u64) -> &[u8] {
        &self.bytes[..commands as usize * self.command_bytes]
    }

    /// Returns the length of `commands` commands, in bytes.
    pub fn length(&self, commands: u64) -> u64 {
        commands * self.command_bytes as u64
    }
}

pub(super) struct LoadProgress {
    pub clock: HostClock,
    /// The intended, send and answer time of each batch, in ticks.
    pub rows: Vec<[u64; 3]>,
    pub sent: u64,
    /// The number of system calls.
    pub calls: u64,
    pub lateness: Lateness,
    /// The start of the run, and the time of the last reply, in ticks.
    pub first: u64,
    last: u64,
    depth: u64,
    until: RunLimit,
}

impl LoadProgress {
    pub fn new(role: &PipelineRole, clock: HostClock) -> Self {
        let commands = role.until.count.unwrap_or(role.until.duration_ns / 1_000 * BATCHES_PER_S / 1_000_000);
        let batches = (commands / role.depth + 1).min(MAX_ROWS);
        Self {
            clock,
            rows: preallocated_rows(batches as usize),
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

    /// Returns the number of commands of the next batch; `None` if the run is over.
    #[inline]
    pub fn next_batch(&self, now: u64) -> Option<u64> {
        let elapsed_ns = self.clock.ns_between(self.first, now) as u64;
        if elapsed_ns >= self.until.most_ns {
            return None;
        }
        match self.until.count {
            Some(count) => Some(self.depth.min(count - self.sent)).filter(|commands| *commands > 0),
            None => (elapsed_ns < self.until.duration_ns || self.sent < self.until.least).then_some(self.depth),
        }
    }

    #[inline]
    pub fn record_batch(&mut self, intended: u64, sent: u64, answered: u64) {
        self.rows.push([intended, sent, answered]);
        self.last = answered;
    }

    pub fn report(&self, links: &[GeneratorConnection], used: ResourceUsage, failed: Option<String>) -> LoadReport {
        let sum = |of: fn(&ReplyReceiver) -> u64| links.iter().map(|link| of(&link.replies)).sum();
        LoadReport {
            sent: self.sent,
            received: sum(ReplyReceiver::received),
            errors: sum(ReplyReceiver::errors),
            first_error: links.iter().find_map(|link| link.replies.first_error()),
            disordered: sum(ReplyReceiver::disordered),
            elapsed_ns: self.clock.ns_between(self.first, self.last).max(0) as u64,
            late_share: self.lateness.share(),
            used,
            failed,
        }
    }
}

/// Returns the error of a connection that the server has closed.
pub(super) fn closed() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
