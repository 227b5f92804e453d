//! A publisher and a subscriber with redis-py, or with the package `tickpath` in its place, each in its own process,
//! that stay connected and take orders.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_clock::Calibration;

use super::records::ProcessTrace;
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::{Hop, MessageCounts, median};
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::scripts::Library;

/// Scripts, their common module, and each library's module.
const BLOCKING: (&str, &str) = ("pair_blocking.py", include_str!("python/pair_blocking.py"));
const ASYNCIO: (&str, &str) = ("pair_asyncio.py", include_str!("python/pair_asyncio.py"));
const COMMON: (&str, &str) = ("pair.py", include_str!("python/pair.py"));
const REDIS_PY_MODULE: (&str, &str) = ("by_redis_py.py", include_str!("python/by_redis_py.py"));
const TICKPATH_MODULE: (&str, &str) = ("by_tickpath.py", include_str!("python/by_tickpath.py"));

/// Max time of a process without a message, in seconds.
const MAX_SILENCE_S: f64 = 10.0;

/// Max share of late sends in a valid batch.
const MAX_LATE_SHARE: f64 = 0.01;

/// Bytes of a message if a script's are unknown, and of the shortest one, which holds its number.
pub(super) const MESSAGE_BYTES: usize = 32;
pub(super) const MIN_MESSAGE_BYTES: usize = 12;

/// Use of redis-py, or of the package in its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PairConfig {
    /// URL of the server as redis-py writes it, or of the log.
    pub url: String,
    pub library: Library,
    pub flavour: Flavour,
    pub path: MessagePath,
    pub receive: ReceiveMode,
    /// Bytes of a message.
    pub size: usize,
    /// Whether hiredis parses the protocol; otherwise redis-py does, as `pip install redis` leaves it.
    pub hiredis: bool,
    /// CPUs of publisher and subscriber; not pinned if none.
    pub cpus: Option<[usize; 2]>,
}

/// Client of redis-py.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Flavour {
    Blocking,
    Asyncio,
    Uvloop,
}

/// Path of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessagePath {
    /// A channel to publish to, or the log's topic.
    Channel,
    /// A list to push to, or the log's queue.
    Queue,
}

/// Waiting of the subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReceiveMode {
    /// A blocking loop over `listen()`, or over `blpop()`.
    Listen,
    /// Polling `get_message()` continuously.
    Spin,
    /// Polling `get_message()` with a millisecond of sleep, as in redis-py's own example.
    Sleep,
}

impl ReceiveMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Listen => "listen",
            Self::Spin => "spin on get_message",
            Self::Sleep => "get_message, sleep 1 ms",
        }
    }
}

/// Order to the publisher: a number of messages at a rate, or each after a pause.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct BatchPlan {
    pub count: u64,
    pub every_ns: u64,
    pub pause_ns: u64,
}

impl BatchPlan {
    pub fn rate(&self) -> f64 {
        1e9 / self.every_ns as f64
    }

    pub fn seconds(&self) -> f64 {
        self.count as f64 * self.every_ns.max(self.pause_ns) as f64 / 1e9
    }
}

#[derive(Serialize)]
struct Settings<'a> {
    role: &'a str,
    channel: &'a str,
    /// Module that carries the messages.
    library: &'a str,
    #[serde(rename = "loop")]
    flavour: Flavour,
    way: MessagePath,
    receive: ReceiveMode,
    size: usize,
    parser: &'a str,
    cpu: Option<usize>,
    hook: Option<&'a Path>,
    silence_s: f64,
}

pub(super) struct ProcessPair {
    publisher: Child,
    subscriber: Child,
    /// Files of their stamps, if stamps are taken.
    rows: Option<[PathBuf; 2]>,
}

/// Outcome of an order; stamps are nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct BatchResult {
    /// For each message in order: intended, called, returned.
    pub published: Vec<[u64; 3]>,
    /// Each message's number, and the time when the script had it.
    pub received: Vec<[u64; 2]>,
    /// CPU use of the subscriber, in percent of one processor.
    pub cpu_percent: f64,
    /// Stamps of both sides, if they were taken.
    pub traces: Option<[ProcessTrace; 2]>,
}

#[derive(Deserialize)]
struct PublisherStamps {
    stamps: Vec<[u64; 3]>,
}

#[derive(Deserialize)]
struct SubscriberStamps {
    stamps: Vec<[u64; 2]>,
    cpu_ns: u64,
    took_ns: u64,
}

impl ProcessPair {
    /// Starts both processes, which connect; their calls are stamped if there is a hook.
    pub fn open(
        lab: &Lab<'_>,
        python: &Python,
        config: &PairConfig,
        channel: &str,
        hook: Option<&Path>,
    ) -> Result<Self, LabError> {
        let script = if config.flavour == Flavour::Blocking { BLOCKING } else { ASYNCIO };
        let by = match config.library {
            Library::RedisPy => REDIS_PY_MODULE,
            Library::Tickpath => TICKPATH_MODULE,
        };
        let [publisher_cpu, subscriber_cpu] = config.cpus.map_or([None, None], |cpus| cpus.map(Some));
        let spawn = |role: &'static str, cpu| {
            let parser = if config.hiredis { "hiredis" } else { "python" };
            let settings = Settings {
                role,
                channel,
                library: by.0.trim_end_matches(".py"),
                flavour: config.flavour,
                way: config.path,
                receive: config.receive,
                size: config.size,
                parser,
                cpu,
                hook,
                silence_s: MAX_SILENCE_S,
            };
            python.spawn(lab, role, &[script, COMMON, by], &settings)
        };
        let mut subscriber = spawn("subscriber", subscriber_cpu)?;
        let mut publisher = spawn("publisher", publisher_cpu)?;
        // The URL goes to standard input, because settings are visible to all users and it may hold a password.
        let url = serde_json::to_string(&config.url).expect("a text");
        for child in [&mut subscriber, &mut publisher] {
            child.send(&url)?;
            child.result::<()>(MAX_SILENCE_S)?;
        }
        let rows = hook.map(|_| ["publisher", "subscriber"].map(|name| lab.folder().join(format!("{name}.jsonl"))));
        Ok(Self { publisher, subscriber, rows })
    }

    pub fn run(&mut self, order: BatchPlan) -> Result<BatchResult, LabError> {
        let [publisher_rows, subscriber_rows] = self.rows.clone().map_or([None, None], |rows| rows.map(Some));
        self.subscriber.send(&serde_json::json!({ "out": subscriber_rows }).to_string())?;
        let BatchPlan { count, every_ns, pause_ns } = order;
        let command = serde_json::json!({
            "count": count, "every_ns": every_ns, "pause_ns": pause_ns, "out": publisher_rows,
        });
        self.publisher.send(&command.to_string())?;
        let published: PublisherStamps = self.publisher.result(order.seconds() * 3.0)?;
        let received: SubscriberStamps = self.subscriber.result(MAX_SILENCE_S)?;
        let watched = match &self.rows {
            Some([publisher, subscriber]) => {
                let mut publisher = read_trace(publisher)?;
                // The last message only marks the end.
                publisher.sent.truncate(published.stamps.len());
                Some([publisher, read_trace(subscriber)?])
            }
            None => None,
        };
        Ok(BatchResult {
            published: published.stamps,
            received: received.stamps,
            cpu_percent: 100.0 * received.cpu_ns as f64 / received.took_ns.max(1) as f64,
            traces: watched,
        })
    }
}

/// Reads a file of stamps, and removes it for the next batch.
fn read_trace(path: &Path) -> Result<ProcessTrace, LabError> {
    let watched = ProcessTrace::load(path)?;
    std::fs::remove_file(path).map_err(|e| LabError::file(path, e))?;
    Ok(watched)
}

impl BatchResult {
    pub fn counts(&self) -> MessageCounts {
        let (sent, received) = (self.published.len() as u64, self.received.len() as u64);
        let numbers: HashSet<u64> = self.received.iter().map(|[number, _]| *number).collect();
        let duplicated = received - numbers.len() as u64;
        let falls = self.received.windows(2).filter(|pair| pair[1][0] < pair[0][0]).count() as u64;
        MessageCounts {
            sent,
            received,
            lost: sent.saturating_sub(numbers.len() as u64),
            duplicated,
            reordered: falls.saturating_sub(duplicated),
            ..MessageCounts::default()
        }
    }

    /// Returns the hop from the intended time until the script has the message.
    pub fn one_way(&self) -> Hop {
        hop(self.arrivals(0))
    }

    /// Returns the hop from the call until the script has the message.
    pub fn service(&self) -> Hop {
        hop(self.arrivals(1))
    }

    pub fn publish(&self) -> Hop {
        hop(self.published.iter().map(|&[_, called, returned]| (called, returned)).collect())
    }

    /// Returns the median time from the intended time until the script has the message; none without messages.
    pub fn one_way_p50_ns(&self) -> Option<f64> {
        median(self.arrivals(0).into_iter().map(|(from, to)| to.saturating_sub(from) as f64).collect())
    }

    pub fn lateness_ns(&self) -> Vec<f64> {
        self.published.iter().map(|[intended, called, _]| called.saturating_sub(*intended) as f64).collect()
    }

    /// Returns the broken rules of honest measuring: rate, punctuality, and that all messages arrive.
    pub fn broken_rules(&self, order: &BatchPlan) -> Vec<String> {
        let (late, lost) = (self.lateness_ns(), self.counts().lost);
        let mut wrong = Vec::new();
        if order.pause_ns == 0 && !late.is_empty() {
            let allowance = order.every_ns.max(10_000) as f64;
            let share = late.iter().filter(|ns| **ns > allowance).count() as f64 / late.len() as f64;
            if share > MAX_LATE_SHARE {
                wrong.push(format!(
                    "{:.1} % of sends came late by more than a millisecond; let nothing else run, or use fewer processes",
                    100.0 * share
                ));
            }
            let (first, last) = (self.published.first(), self.published.last());
            let took = last.map_or(0, |stamps| stamps[1]) - first.map_or(0, |stamps| stamps[0]);
            let planned = order.every_ns * order.count.saturating_sub(1);
            if took > 0 && (planned as f64) < 0.99 * took as f64 {
                wrong.push(format!("the generator reached {:.1} % of its rate", 100.0 * planned as f64 / took as f64));
            }
        }
        if lost > 0 {
            wrong.push(format!("{lost} messages were lost; look whether the server dropped the subscriber"));
        }
        wrong
    }

    /// Returns the times from one of the publisher's stamps until the script has the message.
    fn arrivals(&self, stamp: usize) -> Vec<(u64, u64)> {
        let from = |number: u64| self.published.get(number as usize).map(|stamps| stamps[stamp]);
        self.received.iter().filter_map(|&[number, ticks]| Some((from(number)?, ticks))).collect()
    }
}

/// Converts Python's stamps, which are nanoseconds already; gaps of the host were not watched.
pub(super) fn hop(samples: Vec<(u64, u64)>) -> Hop {
    Samples(samples).unwatched_hop(&Calibration::nanoseconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_duplicate_messages_are_counted_by_number() {
        for (received, lost, duplicated, reordered) in [
            (vec![0, 1, 2, 3], 0, 0, 0),
            (vec![0, 1, 3], 1, 0, 0),
            (vec![0, 2, 1, 3], 0, 0, 1),
            (vec![0, 1, 1, 3], 1, 1, 0),
            (vec![], 4, 0, 0),
        ] {
            let batch = BatchResult {
                published: vec![[0, 1, 2]; 4],
                received: received.iter().map(|&number| [number, 10]).collect(),
                ..BatchResult::default()
            };
            let counts = batch.counts();
            let found = (counts.lost, counts.duplicated, counts.reordered);
            assert_eq!(found, (lost, duplicated, reordered), "{received:?}");
            assert_eq!(counts.received, received.len() as u64);
        }
    }

    #[test]
    fn a_batch_that_lost_a_message_or_came_late_breaks_a_rule() {
        let order = BatchPlan { count: 100, every_ns: 1_000_000, pause_ns: 0 };
        // Each message is on time, except that those from an index on are late, and that the last ones are dropped.
        for (late_from, late_ns, dropped, fault) in [
            (100, 0, 0, None),
            (0, 900_000, 0, None),
            (50, 2_000_000, 0, Some("came late")),
            (99, 9_000_000, 0, Some("of its rate")),
            (100, 0, 1, Some("1 messages were lost")),
        ] {
            let intended = |number: u64| number * order.every_ns;
            let late = |number: u64| if number >= late_from { late_ns } else { 0 };
            let batch = BatchResult {
                published: (0..order.count)
                    .map(|n| [intended(n), intended(n) + late(n), intended(n) + late(n)])
                    .collect(),
                received: (0..order.count - dropped).map(|n| [n, intended(n) + late(n) + 100_000]).collect(),
                ..BatchResult::default()
            };
            let broken = batch.broken_rules(&order).join("; ");
            assert_eq!(!broken.is_empty(), fault.is_some(), "{broken}");
            assert!(fault.is_none_or(|words| broken.contains(words)), "{broken}");
        }
    }
}
