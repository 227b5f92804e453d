//! A puller's process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Puller, ReceiveError, connect};
use tickpath_clock::{Clock, HostClock, Wait};

use super::queues::config;
use super::record;
use super::rows::numbers_file;
use tickpath_harness::quiet::Quiet;
use tickpath_harness::samples::{save, touched_rows};
use tickpath_harness::{LabError, Parent, Role, Thread};

/// Once the pusher has ended: how long a puller waits for what is still to come, and how long if it cannot know.
pub(super) const PATIENCE_NS: i64 = 30_000_000_000;
pub(super) const QUIET_NS: i64 = 1_000_000_000;

/// How long a puller sleeps that is not woken.
pub(super) const SLEEP_NS: u64 = 10_000_000;

/// Pulls from a queue.
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
    /// Messages that it asks for at once.
    pub limit: usize,
    /// Messages that will come to it; none if others may get them.
    pub share: Option<u64>,
    /// Messages to have room for; there may be more.
    pub expected: u64,
    /// Where it runs.
    pub thread: Thread,
    /// Where its calls go: of each that gave something when it began and returned, and how many messages it gave.
    /// Their numbers go beside it.
    pub out: PathBuf,
}

impl Role for QueuePullerRole {
    const NAME: &'static str = "puller";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let wait = self.thread.wait()?;
        let connection = connect(&self.target)?;
        let mut queue = connection.puller(&self.queue, &config(&self.delivery, self.size)?, wait)?;
        self.thread.settle()?;
        let mut pulling = Pulling {
            calls: touched_rows(self.expected.div_ceil(self.limit as u64) as usize),
            numbers: touched_rows(self.expected as usize),
            redelivered: 0,
        };
        parent.ready();
        if parent.hear().is_none() {
            return Ok(());
        }
        let failed = pulling.all(self, &clock, wait, queue.as_mut(), parent).err().map(|error| error.to_string());
        save(&self.out, &pulling.calls)?;
        save(&numbers_file(&self.out), &pulling.numbers)?;
        parent.result(&Pulled { redelivered: pulling.redelivered, reconnects: queue.reconnects(), failed });
        // Its queue stays open until the parent wants it to stop.
        while parent.hear().is_some() {}
        drop(queue);
        parent.result(&());
        Ok(())
    }
}

/// What a puller tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Pulled {
    /// Messages that were marked as redelivered.
    pub redelivered: u64,
    /// How often its connection was lost and made again, where the client tells.
    pub reconnects: Option<u64>,
    pub failed: Option<String>,
}

/// What a puller writes down.
struct Pulling {
    /// Of each pull that gave something: called, returned, messages.
    calls: Vec<[u64; 3]>,
    numbers: Vec<[u64; 1]>,
    redelivered: u64,
}

impl Pulling {
    /// Pulls until its share is there, or nothing more comes after the pusher has ended.
    fn all(
        &mut self,
        role: &QueuePullerRole,
        clock: &HostClock,
        wait: Wait,
        queue: &mut dyn Puller,
        parent: &Parent,
    ) -> Result<(), LabError> {
        let share = role.share.unwrap_or(u64::MAX);
        let mut quiet = Quiet::new(clock, if role.share.is_some() { PATIENCE_NS } else { QUIET_NS });
        while self.fresh() < share {
            let called = clock.ticks();
            let messages = self.pull(queue, role.limit)?;
            if messages > 0 {
                self.calls.push([called, clock.ticks(), messages as u64]);
                queue.acknowledge().map_err(|error| failed("acknowledging", &error))?;
                quiet.ends();
                continue;
            }
            queue.wait(SLEEP_NS);
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

    /// Messages that came for the first time, as far as they are marked.
    fn fresh(&self) -> u64 {
        self.numbers.len() as u64 - self.redelivered
    }
}

fn failed(what: &str, error: &ReceiveError) -> LabError {
    LabError::Failed(format!("{what} failed: {error}"))
}
