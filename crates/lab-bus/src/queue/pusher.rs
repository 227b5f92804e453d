//! The pusher's process.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_bus::{BatchError, PublishError, Pusher, connect};
use tickpath_clock::{Calibration, Clock, HostClock, Lateness, Pacer, Wait};

use super::queues::config;
use super::record::{KIND, PreparedRecords};
use tickpath_lab_harness::samples::{preallocated_rows, save};
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};

/// Time between the `go` command and the first message's time.
const START_DELAY_NS: u64 = 1_000_000;

/// Max time that a queue may stay full.
pub(super) const FULL_TIMEOUT_NS: i64 = 30_000_000_000;

/// Role of the pusher.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuePusherRole {
    /// The transport's URL.
    pub target: String,
    /// The queues; each push goes to the next one.
    pub queues: Vec<String>,
    /// `at-most-once` or `at-least-once`.
    pub delivery: String,
    /// Bytes of a message.
    pub size: usize,
    /// The number of messages.
    pub count: u64,
    /// Messages a second; full speed if there is none.
    pub rate: Option<f64>,
    /// Messages per push.
    pub batch: usize,
    /// The seed of the made-up records.
    pub seed: u64,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of its calls: the start and the return of each.
    pub out: PathBuf,
}

impl ProcessRole for QueuePusherRole {
    const NAME: &'static str = "pusher";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let connection = connect(&self.target)?;
        let config = config(&self.delivery, self.size)?;
        let open = |queue: &String| connection.pusher(queue, &config);
        let mut queues = self.queues.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        self.thread.apply()?;
        let mut pushing = PusherRun {
            role: self,
            clock,
            wait: self.thread.wait()?,
            stop: parent.stop_flag(),
            calls: preallocated_rows(self.count.div_ceil(self.batch as u64) as usize),
            start: 0,
            sent: 0,
            full: 0,
            lateness: Lateness::default(),
        };
        parent.ready();
        if parent.receive().is_none() {
            return Ok(());
        }
        pushing.start = clock.ticks() + clock.calibration().ticks_of_ns(START_DELAY_NS);
        let failed = pushing.push_all(&mut queues).err().map(|error| error.to_string());
        save(&self.out, &pushing.calls)?;
        parent.result(&PusherResult {
            sent: pushing.sent,
            full: pushing.full,
            start: pushing.start,
            late_share: pushing.lateness.share(),
            reconnects: queues.iter().map(|queue| queue.reconnects()).sum(),
            failed,
            server_version: None,
        });
        // Its queues stay open until the parent stops it.
        while parent.receive().is_some() {}
        drop(queues);
        parent.result(&());
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PusherResult {
    pub sent: u64,
    /// Pushes that found the queue full.
    pub full: u64,
    /// The intended time of message 0, in the process's own ticks.
    pub start: u64,
    pub late_share: f64,
    /// The number of reconnects, where the client reports it.
    pub reconnects: Option<u64>,
    pub failed: Option<String>,
    pub server_version: Option<String>,
}

/// Returns a message's intended time in ticks.
pub(super) fn intended_time(calibration: &Calibration, start: u64, number: u64, rate: f64) -> u64 {
    start + calibration.ticks_of_ns((number as f64 * 1e9 / rate) as u64)
}

struct PusherRun<'a> {
    role: &'a QueuePusherRole,
    clock: HostClock,
    wait: Wait,
    stop: Arc<AtomicBool>,
    /// Each push: called, returned.
    calls: Vec<[u64; 2]>,
    /// The intended time of message 0.
    start: u64,
    sent: u64,
    full: u64,
    lateness: Lateness,
}

impl PusherRun<'_> {
    fn push_all(&mut self, queues: &mut [Box<dyn Pusher>]) -> Result<(), LabError> {
        let role = self.role;
        let mut records = PreparedRecords::new(role.size, role.batch, role.seed);
        let mut pacer = Pacer::new(self.clock, self.wait);
        let mut turns = (0..queues.len()).cycle();
        while self.sent < role.count {
            let batch = (role.count - self.sent).min(role.batch as u64);
            let payloads = records.numbered(self.sent, batch as usize);
            if let Some(rate) = role.rate {
                self.wait_for_time(&mut pacer, rate, batch);
            }
            let turn = turns.next().expect("a pusher has a queue");
            let called = self.clock.ticks();
            self.push(queues[turn].as_mut(), called, &payloads)?;
            self.calls.push([called, self.clock.ticks()]);
        }
        Ok(())
    }

    /// Waits for the intended time of the batch's last message: the batch is complete only then.
    fn wait_for_time(&mut self, pacer: &mut Pacer<HostClock>, rate: f64, batch: u64) {
        let due = intended_time(self.clock.calibration(), self.start, self.sent + batch - 1, rate);
        let actual = pacer.until(due);
        let interval_ns = batch as f64 * 1e9 / rate;
        self.lateness.count(pacer.own_lateness_ns(due, actual), interval_ns.max(10_000.0) as u64);
    }

    /// Pushes messages, and retries the rest while the queue is full.
    fn push(&mut self, queue: &mut dyn Pusher, stamp: u64, payloads: &[&[u8]]) -> Result<(), LabError> {
        let mut rest = payloads;
        let mut full_since = None;
        loop {
            let pushed = match rest {
                [one] => queue.push(stamp, KIND, one).map_err(|error| BatchError::failed_at(0, error)),
                several => queue.push_batch(stamp, KIND, several),
            };
            let done = pushed.as_ref().map_or_else(|error| error.done, |_| rest.len());
            self.sent += done as u64;
            rest = &rest[done..];
            match pushed {
                Ok(()) => return Ok(()),
                Err(BatchError { error: PublishError::Full, .. }) => self.wait_for_room(&mut full_since)?,
                Err(BatchError { error, .. }) => return Err(LabError::Failed(format!("pushing failed: {error}"))),
            }
        }
    }

    fn wait_for_room(&mut self, since: &mut Option<u64>) -> Result<(), LabError> {
        let now = self.clock.ticks();
        if since.is_none() {
            self.full += 1;
        }
        if self.clock.ns_between(*since.get_or_insert(now), now) > FULL_TIMEOUT_NS {
            let what = "the queue was full for 30 s; look whether its pullers still pull";
            return Err(LabError::Failed(what.to_owned()));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(LabError::Failed("the bench was stopped".to_owned()));
        }
        self.wait.idle();
        Ok(())
    }
}
