//! A puller's process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Puller, ReceiveError, connect};
use tickpath_clock::{Clock, HostClock, Wait};

use super::queues::config;
use super::record;
use super::rows::numbers_file;
use tickpath_lab_harness::quiet_timer::QuietTimer;
use tickpath_lab_harness::samples::{preallocated_rows, save};
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};

/// Max wait of a puller for its remaining messages after the pusher has ended, and the wait of a puller that cannot
/// know their number.
pub(super) const PULL_TIMEOUT_NS: i64 = 30_000_000_000;
pub(super) const QUIET_TIMEOUT_NS: i64 = 1_000_000_000;

/// Sleep of a puller that no message wakes.
pub(super) const POLL_SLEEP_NS: u64 = 10_000_000;

/// Role of a puller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuePullerRole {
    /// The transport's URL.
    pub target: String,
    /// The queue.
    pub queue: String,
    /// `at-most-once` or `at-least-once`.
    pub delivery: String,
    /// Bytes of a message.
    pub size: usize,
    /// Max messages per pull.
    pub limit: usize,
    /// The number of messages that it will get; `None` if other pullers may get them.
    pub share: Option<u64>,
    /// The number of messages to allocate room for; more may arrive.
    pub expected: u64,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of its calls: the start, the return and the number of messages of each pull that returned some. The
    /// messages' numbers go into a file beside it.
    pub out: PathBuf,
}

impl ProcessRole for QueuePullerRole {
    const NAME: &'static str = "puller";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let wait = self.thread.wait()?;
        let connection = connect(&self.target)?;
        let mut queue = connection.puller(&self.queue, &config(&self.delivery, self.size)?, wait)?;
        self.thread.apply()?;
        let mut pulling = PullerRun {
            calls: preallocated_rows(self.expected.div_ceil(self.limit as u64) as usize),
            numbers: preallocated_rows(self.expected as usize),
            redelivered: 0,
        };
        parent.ready();
        if parent.receive().is_none() {
            return Ok(());
        }
        let failed = pulling.pull_all(self, &clock, wait, queue.as_mut(), parent).err().map(|error| error.to_string());
        save(&self.out, &pulling.calls)?;
        save(&numbers_file(&self.out), &pulling.numbers)?;
        parent.result(&PullerResult { redelivered: pulling.redelivered, reconnects: queue.reconnects(), failed });
        // Its queue stays open until the parent stops it.
        while parent.receive().is_some() {}
        drop(queue);
        parent.result(&());
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PullerResult {
    /// Messages that were marked as redelivered.
    pub redelivered: u64,
    /// The number of reconnects, where the client reports it.
    pub reconnects: Option<u64>,
    pub failed: Option<String>,
}

struct PullerRun {
    /// Each pull that returned messages: called, returned, messages.
    calls: Vec<[u64; 3]>,
    numbers: Vec<[u64; 1]>,
    redelivered: u64,
}

impl PullerRun {
    /// Pulls until its share is there, or no more messages arrive after the pusher has ended.
    fn pull_all(
        &mut self,
        role: &QueuePullerRole,
        clock: &HostClock,
        wait: Wait,
        queue: &mut dyn Puller,
        parent: &Parent,
    ) -> Result<(), LabError> {
        let share = role.share.unwrap_or(u64::MAX);
        let mut quiet = QuietTimer::new(clock, if role.share.is_some() { PULL_TIMEOUT_NS } else { QUIET_TIMEOUT_NS });
        // A redelivered message is no part of the share.
        while self.numbers.len() as u64 - self.redelivered < share {
            let called = clock.ticks();
            let messages = self.pull(queue, role.limit)?;
            if messages > 0 {
                self.calls.push([called, clock.ticks(), messages as u64]);
                queue.acknowledge().map_err(|error| failed("acknowledging", &error))?;
                quiet.restart();
                continue;
            }
            queue.wait(POLL_SLEEP_NS);
            if quiet.is_over_after(wait, parent) {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn pull(&mut self, queue: &mut dyn Puller, limit: usize) -> Result<usize, LabError> {
        let Self { numbers, redelivered, .. } = self;
        let pulled = queue.pull(limit, &mut |pulled| {
            numbers.push([record::number(pulled.message.payload)]);
            *redelivered += u64::from(pulled.redelivered);
        });
        pulled.map_err(|error| failed("pulling", &error))
    }
}

fn failed(what: &str, error: &ReceiveError) -> LabError {
    LabError::Failed(format!("{what} failed: {error}"))
}
