//! Settings of `queue`, and the rules that refuse impossible ones.

use tickpath_bus::{Connection, DeliveryGuarantee};
use tickpath_clock::Wait;

use super::record::MIN_RECORD_BYTES;
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_result::{Params, named_variants, short_name};

/// Default time for a slow target, in seconds.
pub const DEFAULT_S: f64 = 4.0;

/// Max memory of the messages of a push.
const MAX_BATCH_BYTES: usize = 256 << 20;

/// Settings of `queue`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The transport's URL.
    pub target: String,
    /// The client that pushes and pulls.
    pub client: QueueClient,
    /// The number of messages.
    pub count: u64,
    /// Bytes of a message.
    pub size: usize,
    /// The number of pullers, each a process.
    pub pullers: usize,
    /// Messages per push.
    pub pipeline: usize,
    /// Max messages per pull.
    pub pull: usize,
    /// Whether the pullers share a queue.
    pub keys: QueueSharing,
    /// Fate of a message whose puller dies; the transport's usual delivery if there is none.
    pub delivery: Option<DeliveryGuarantee>,
    /// Messages a second; full speed if there is none.
    pub rate: Option<f64>,
    /// The pullers' wait mode for messages, and the pusher's for a message's time or for room.
    pub wait: Wait,
    /// The seed of the made-up records.
    pub seed: u64,
    /// The pusher's CPU, then the CPUs that the pullers share.
    pub cpus: Vec<usize>,
    /// The number of this repetition.
    pub repeat: u32,
}

/// Whether pullers share a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueSharing {
    /// A queue per puller; the pusher rotates over them.
    Each,
    /// A single queue for all pullers.
    Shared,
}

/// The client that pushes and pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueClient {
    /// Our own, over the bus.
    Rust,
    /// Python's redis-py, over Redis lists.
    RedisPy(RedisPy),
}

/// Options of redis-py.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisPy {
    /// The commands of a push.
    pub push: PushVariant,
    /// The commands of a pull.
    pub pull: PullVariant,
    /// Whether a pipeline is a transaction, which is redis-py's default.
    pub transaction: bool,
}

/// The commands of a push with redis-py.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushVariant {
    /// LPUSH.
    Push,
    /// LPUSH, then LTRIM to a length that loses nothing.
    PushLtrim,
}

/// The commands of a pull with redis-py.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullVariant {
    /// BRPOP, then a GET: two round trips for each message.
    Published,
    /// BRPOP.
    Brpop,
    /// RPOP with a count, and BRPOP where the list is empty.
    Count,
}

named_variants!(QueueSharing { Each = "each", Shared = "shared" });
named_variants!(PushVariant { Push = "push", PushLtrim = "push-ltrim" });
named_variants!(PullVariant { Published = "published", Brpop = "brpop", Count = "count" });

impl QueueClient {
    /// Returns the name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::RedisPy(_) => "redis-py",
        }
    }
}

impl PullVariant {
    /// Returns whether the variant can pull `limit` messages at once.
    pub const fn supports_limit(self, limit: usize) -> bool {
        limit == 1 || matches!(self, Self::Count)
    }
}

/// Returns whether a target's queues are Redis lists.
pub fn is_list(target: &str) -> bool {
    matches!(short_name(target).as_str(), "redis" | "redis-unix")
}

impl Settings {
    /// Returns the settings with the transport's usual delivery where none is named; refuses impossible settings.
    pub(super) fn resolved(&self, connection: &dyn Connection) -> Result<Self, LabError> {
        let capabilities = connection.queue_capabilities();
        self.check_numbers(capabilities.max_payload)?;
        self.check_cpus()?;
        let possible: &[DeliveryGuarantee] = match self.client {
            QueueClient::Rust => capabilities.deliveries,
            QueueClient::RedisPy(variants) => {
                self.check_python(variants)?;
                // Pops of redis-py take a message out of the list.
                &[DeliveryGuarantee::AtMostOnce]
            }
        };
        let delivery = self.delivery.unwrap_or(possible[0]);
        if !possible.contains(&delivery) {
            return Err(LabError::Setting(format!(
                "{} over {} cannot deliver {delivery}; use --delivery {}, or leave it out",
                self.client.name(),
                redact_logins(&self.target),
                possible[0]
            )));
        }
        Ok(Self { delivery: Some(delivery), ..self.clone() })
    }

    /// Returns the delivery of resolved settings.
    pub(super) fn usual_delivery(&self) -> DeliveryGuarantee {
        self.delivery.expect("resolved")
    }

    pub(super) fn queues(&self) -> usize {
        match self.keys {
            QueueSharing::Each => self.pullers,
            QueueSharing::Shared => 1,
        }
    }

    pub(super) fn queue_of(&self, puller: usize) -> usize {
        puller % self.queues()
    }

    pub(super) fn cpu_of(&self, puller: usize) -> usize {
        self.cpus[1 + puller % (self.cpus.len() - 1)]
    }

    /// Returns the number of messages that a puller is to get; `None` if that is decided while the run lasts.
    pub(super) fn share(&self, puller: usize) -> Option<u64> {
        if self.pullers == 1 {
            return Some(self.count);
        }
        if self.keys == QueueSharing::Shared {
            return None;
        }
        // Our pusher rotates over the queues with each batch, redis-py's with each message of a pipeline.
        let together = match self.client {
            QueueClient::Rust => self.pipeline as u64,
            QueueClient::RedisPy(_) => 1,
        };
        let (puller, pullers) = (puller as u64, self.pullers as u64);
        let (batches, rest) = (self.count / together, self.count % together);
        let full = batches / pullers + u64::from(puller < batches % pullers);
        Some(full * together + if puller == batches % pullers { rest } else { 0 })
    }

    /// Estimates the number of messages that a puller gets.
    pub(super) fn expected(&self, puller: usize) -> u64 {
        self.share(puller).unwrap_or(self.count.div_ceil(self.pullers as u64))
    }

    /// Estimates the duration of a run for the progress display, if a slow target gets `slow` seconds.
    pub fn estimated_seconds(&self, slow: f64) -> f64 {
        /// Messages a second of a Python process that takes them one at a time, and of one that takes many.
        const SINGLE_PULL_RATE: f64 = 4_000.0;
        const BATCH_PULL_RATE: f64 = 20_000.0;
        match (self.rate, self.client) {
            (Some(rate), _) => self.count as f64 / rate,
            (None, QueueClient::RedisPy(_)) => {
                self.count as f64 / if self.pull == 1 { SINGLE_PULL_RATE } else { BATCH_PULL_RATE }
            }
            (None, QueueClient::Rust) if is_log(&self.target) => 1.0,
            (None, QueueClient::Rust) => slow,
        }
    }

    /// Returns the time after which a process is considered hung: it should have given up by itself.
    pub(super) fn hang_timeout_s(&self) -> f64 {
        let message = if is_log(&self.target) { 1e-5 } else { 1e-2 };
        let paced = self.rate.map_or(0.0, |rate| self.count as f64 / rate);
        2.0 * paced + self.count as f64 * (message + self.size as f64 * 1e-8)
    }

    /// Adds the settings to the parameters of a result.
    pub(super) fn describe(&self, params: &mut Params) {
        params.set("size_bytes", self.size as u64);
        params.set("count", self.count);
        params.set("pullers", self.pullers as u64);
        params.set("pull", self.pull as u64);
        params.set("keys", self.keys.name());
        params.set("delivery", self.usual_delivery().name());
        params.set("seed", self.seed);
        let used = self.cpus.len().min(1 + self.pullers);
        params.set("cpus", self.cpus[..used].to_vec());
        match self.rate {
            Some(rate) => params.set("rate_per_s", rate),
            None => params.set("rate_per_s", "max"),
        }
        match self.client {
            QueueClient::Rust => {
                params.set("wait", self.wait.name());
                params.set("encoding", "JSON, made before; the number is put in before the push begins");
            }
            QueueClient::RedisPy(variants) => {
                params.set("push_variant", variants.push.name());
                params.set("pull_variant", variants.pull.name());
                params.set("transaction", variants.transaction);
                params.set("encoding", "JSON, made within the push");
            }
        }
    }

    fn check_numbers(&self, max_payload: usize) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Setting(what));
        if !(MIN_RECORD_BYTES..=max_payload).contains(&self.size) {
            return wrong(format!(
                "a size of {} bytes is not possible over {}; use {MIN_RECORD_BYTES} to {max_payload}",
                self.size,
                redact_logins(&self.target)
            ));
        }
        let counts = [self.count, self.pullers as u64, self.pipeline as u64, self.pull as u64];
        if counts.contains(&0) || self.pullers > 256 {
            return wrong("counts, pullers, pipelines and pulls start at 1; pullers end at 256".to_owned());
        }
        check_batch(self.pipeline, self.size)?;
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
            return wrong("--rate takes a number above 0, up to 100000000, or max".to_owned());
        }
        Ok(())
    }

    fn check_cpus(&self) -> Result<(), LabError> {
        if self.cpus.len() < 2 {
            return Err(LabError::Setting("a queue needs two CPUs, which may be the same: --cpus 0,0".to_owned()));
        }
        let mut used = vec![self.cpus[0]];
        for cpu in (0..self.pullers).map(|puller| self.cpu_of(puller)) {
            if self.wait.spins() && used.contains(&cpu) {
                return Err(LabError::Setting(format!(
                    "two processes would both spin on CPU {cpu}; name more with --cpus, or use --wait yield or block"
                )));
            }
            used.push(cpu);
        }
        Ok(())
    }

    fn check_python(&self, variants: RedisPy) -> Result<(), LabError> {
        if !is_list(&self.target) {
            return Err(LabError::Setting(format!(
                "{} has no Redis lists, which redis-py needs here; use --target redis://HOST:PORT, or --client rust",
                redact_logins(&self.target)
            )));
        }
        if !variants.pull.supports_limit(self.pull) {
            return Err(LabError::Setting(format!(
                "--pull-variant {} pulls one at a time; use --pull 1, or --pull-variant count",
                variants.pull.name()
            )));
        }
        Ok(())
    }
}

/// Refuses batches that would fill the memory.
pub(super) fn check_batch(messages: usize, size: usize) -> Result<(), LabError> {
    match messages.checked_mul(size) {
        Some(bytes) if bytes <= MAX_BATCH_BYTES => Ok(()),
        _ => Err(LabError::Setting(format!(
            "{messages} messages of {size} bytes at a time are too many; use at most {} of this size",
            MAX_BATCH_BYTES / size
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distributes messages as the pushers do, and checks each puller's share against that.
    fn check(client: QueueClient, together: u64) {
        for (count, pullers, pipeline) in [(1, 2, 1), (7, 3, 1), (100, 5, 7), (1_000, 5, 100), (999, 4, 1_000)] {
            let settings = Settings {
                target: String::new(),
                client,
                count,
                size: MIN_RECORD_BYTES,
                pullers,
                pipeline,
                pull: 1,
                keys: QueueSharing::Each,
                delivery: None,
                rate: None,
                wait: Wait::Block,
                seed: 1,
                cpus: vec![0, 1],
                repeat: 1,
            };
            let together = if together == 0 { pipeline as u64 } else { together };
            let mut dealt = vec![0u64; pullers];
            (0..count).for_each(|number| dealt[(number / together) as usize % pullers] += 1);
            let shares: Vec<u64> = (0..pullers).filter_map(|puller| settings.share(puller)).collect();
            assert_eq!(shares, dealt, "{count} messages, {pullers} pullers, {pipeline} together");
        }
    }

    #[test]
    fn each_puller_has_its_share_of_messages() {
        check(QueueClient::Rust, 0);
        let variants = RedisPy { push: PushVariant::Push, pull: PullVariant::Brpop, transaction: false };
        check(QueueClient::RedisPy(variants), 1);
    }
}
