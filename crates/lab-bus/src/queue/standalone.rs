//! One side of a queue alone, for pushers and pullers in containers of their own; it reports its progress in lines of
//! text.

use tickpath_bus::{BatchError, Connection, DeliveryGuarantee, PublishError, QueueConfig, ReceiveError, connect};
use tickpath_clock::{Clock, HostClock, Wait};

use super::puller::{POLL_SLEEP_NS, QUIET_TIMEOUT_NS};
use super::pusher::FULL_TIMEOUT_NS;
use super::queues::{config, loss_setting, refuse_waiting};
use super::record::{KIND, MIN_RECORD_BYTES, PreparedRecords};
use super::settings::check_batch;
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::LabError;
use tickpath_lab_report::{count, figure};

/// Max duration of a puller.
const MAX_PULL_NS: i64 = 600_000_000_000;

const SECOND_NS: i64 = 1_000_000_000;

/// Settings of one side alone.
#[derive(Debug, Clone)]
pub struct StandaloneSettings {
    /// The transport's URL.
    pub target: String,
    /// The queue, which stays after the run.
    pub queue: String,
    /// Messages to push.
    pub count: u64,
    /// Bytes of a message.
    pub size: usize,
    /// Messages per push.
    pub pipeline: usize,
    /// Max messages per pull.
    pub pull: usize,
    /// Fate of a message whose puller dies; the transport's usual delivery if there is none.
    pub delivery: Option<DeliveryGuarantee>,
    /// The puller's wait mode for messages, and the pusher's for room.
    pub wait: Wait,
    /// The seed of the made-up records.
    pub seed: u64,
}

/// Pushes all messages; reports its rate each second, and its total. Refuses a queue that holds messages already.
pub fn push_standalone(alone: &StandaloneSettings, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let connection = connect(&alone.target)?;
    let config = alone.config(&*connection)?;
    refuse_waiting(&*connection, &alone.target, &alone.queue)?;
    let mut queue = connection.pusher(&alone.queue, &config)?;
    loss_setting(&*connection, &alone.queue).iter().for_each(|why| say(why));
    let mut records = PreparedRecords::new(alone.size, alone.pipeline, alone.seed);
    let mut meter = RateReporter::new(clock, "pushed", say);
    while meter.total < alone.count {
        let batch = (alone.count - meter.total).min(alone.pipeline as u64) as usize;
        let payloads = records.numbered(meter.total, batch);
        match queue.push_batch(clock.ticks(), KIND, &payloads) {
            Ok(()) => meter.count(batch as u64),
            Err(BatchError { done, error: PublishError::Full, .. }) => {
                meter.count(done as u64);
                if meter.idle_ns() > FULL_TIMEOUT_NS {
                    let what = format!("the queue {} was full for 30 s; does a puller pull from it?", alone.queue);
                    return Err(LabError::Failed(what));
                }
                alone.wait.idle();
            }
            Err(BatchError { done, error, .. }) => {
                meter.count(done as u64);
                meter.report_total();
                return Err(LabError::Failed(format!("pushing to {} failed: {error}", alone.queue)));
            }
        }
    }
    meter.report_total();
    Ok(())
}

/// Pulls until no message has arrived for a second after the first, ten minutes at most; reports its rate each second,
/// and its total.
pub fn pull_standalone(alone: &StandaloneSettings, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let connection = connect(&alone.target)?;
    let config = alone.config(&*connection)?;
    let mut queue = connection.puller(&alone.queue, &config, alone.wait)?;
    loss_setting(&*connection, &alone.queue).iter().for_each(|why| say(why));
    let failed = |error: ReceiveError| LabError::Failed(format!("pulling from {} failed: {error}", alone.queue));
    let mut meter = RateReporter::new(clock, "pulled", say);
    let began = clock.ticks();
    loop {
        let pulled = queue.pull(alone.pull, &mut |_| {}).map_err(failed)?;
        meter.count(pulled as u64);
        match pulled {
            0 if meter.total > 0 && meter.idle_ns() > QUIET_TIMEOUT_NS => break,
            0 => queue.wait(POLL_SLEEP_NS),
            _ => queue.acknowledge().map_err(failed)?,
        }
        if clock.ns_between(began, clock.ticks()) > MAX_PULL_NS {
            break;
        }
    }
    if meter.total == 0 {
        return Err(LabError::Failed(format!(
            "nothing came in ten minutes; start a pusher with --queue {} on {}",
            alone.queue,
            redact_logins(&alone.target)
        )));
    }
    meter.report_total();
    Ok(())
}

impl StandaloneSettings {
    fn config(&self, connection: &dyn Connection) -> Result<QueueConfig, LabError> {
        let capabilities = connection.queue_capabilities();
        let max = capabilities.max_payload;
        if !(MIN_RECORD_BYTES..=max).contains(&self.size) || self.pipeline == 0 || self.pull == 0 {
            return Err(LabError::Setting(format!(
                "{} bytes, {} pushed and {} pulled at a time are not possible; use {MIN_RECORD_BYTES} to {max} bytes, \
                 and at least one message",
                self.size, self.pipeline, self.pull
            )));
        }
        check_batch(self.pipeline, self.size)?;
        config(self.delivery.unwrap_or(capabilities.deliveries[0]).name(), self.size)
    }
}

/// Counter of messages that reports each second and at the end.
struct RateReporter<'a> {
    clock: HostClock,
    /// `pushed` or `pulled`.
    verb: &'static str,
    report: &'a mut dyn FnMut(&str),
    total: u64,
    /// The times of the first and the last messages; `None` before the first.
    message_times: Option<(u64, u64)>,
    /// The time of the last line, and the total at that time.
    last_report: (u64, u64),
    started: u64,
}

impl<'a> RateReporter<'a> {
    fn new(clock: HostClock, done: &'static str, say: &'a mut dyn FnMut(&str)) -> Self {
        let now = clock.ticks();
        Self { clock, verb: done, report: say, total: 0, message_times: None, last_report: (now, 0), started: now }
    }

    fn count(&mut self, messages: u64) {
        let now = self.clock.ticks();
        if messages > 0 {
            let (first, _) = *self.message_times.get_or_insert((now, now));
            self.message_times = Some((first, now));
            self.total += messages;
        }
        let ns = self.clock.ns_between(self.last_report.0, now);
        if ns >= SECOND_NS {
            let new = self.total - self.last_report.1;
            if new > 0 {
                (self.report)(&format!("{} {}", self.verb, figure("rate_per_s", new as f64 * 1e9 / ns as f64)));
            }
            self.last_report = (now, self.total);
        }
    }

    /// Returns the time since the last message.
    fn idle_ns(&self) -> i64 {
        let last = self.message_times.map_or(self.started, |(_, last)| last);
        self.clock.ns_between(last, self.clock.ticks())
    }

    /// Reports the total, and the rate from the first message to the last one.
    fn report_total(&mut self) {
        let ns = self.message_times.map_or(0, |(first, last)| self.clock.ns_between(first, last));
        let rate = (ns > 0).then(|| format!(", {}", figure("rate_per_s", self.total as f64 * 1e9 / ns as f64)));
        let (total, seconds) = (count(self.total), ns as f64 / 1e9);
        (self.report)(&format!("{} {total} messages in {seconds:.3} s{}", self.verb, rate.unwrap_or_default()));
    }
}
