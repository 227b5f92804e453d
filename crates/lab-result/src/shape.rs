//! The shape of the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hop::Hop;

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "tickpath.result/1";

/// One result file: everything that one command measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ResultFile {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The workload: `host`, `pubsub`, `path`, `orders`, `queue`, `pipeline`, `clients`, `own`, …
    pub workload: String,
    /// The title of its page, where that is more than its workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The command line that made the file.
    pub command: String,
    /// When the command began, in RFC 3339.
    pub started_at: String,
    /// The version of Tickpath.
    pub tickpath: String,
    /// The source commit it was built from, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The Cargo profile that it was built with, by its folder's name: `release`, `demo`, `debug`; where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The machine and its own floor.
    pub host: Host,
    /// The runs, in the order in which they ran.
    pub runs: Vec<Run>,
    /// Ratios between runs of this file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// Conclusions of the workload from all runs, in sentences, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Published figures that runs of this file repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedFigure>,
}

/// The machine, and what it costs or steals before any message moves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Host {
    /// The processor's name.
    pub cpu: String,
    /// Processors that the system offers.
    pub cores: u32,
    /// The kernel and its version.
    pub kernel: String,
    /// The frequency governor, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The hypervisor, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// Where stamps come from.
    pub clock_source: String,
    /// The cost of one stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_cost_ns: Option<f64>,
    /// One cache line from one processor to the other: the median of half a round trip between two processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_line_transfer_ns: Option<f64>,
    /// The 99.99th percentile of the gaps in a loop that only reads the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_gap_p9999_ns: Option<f64>,
    /// The share of time that the hypervisor gave to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
}

/// One run of one target.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// Target of the measurement, as a URL.
    pub target: String,
    /// The client that was driven: `rust`, `redis-py`, …
    pub client: String,
    /// Which repetition, from 1.
    pub repeat: u32,
    /// State of the path.
    pub phase: RunPhase,
    /// How the parts were put on threads: `inline`, `split`, `mutex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Messages or commands sent together; for orders the group's name: `g6`, `d6`, `paced`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Value>,
    /// Whether the run kept the rules of honest measuring; `notes` says why not.
    pub valid: bool,
    /// Sentences for the reader: why a run is invalid, what is special about it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Conclusions from the run beyond its leading hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// From which moment on a message of the stages is timed: its `call`, its `intended time`, or its `read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_from: Option<String>,
    /// Server that answered, and client that asked.
    #[serde(default, skip_serializing_if = "Software::is_unknown")]
    pub software: Software,
    /// The settings of the run.
    #[serde(default)]
    pub params: Params,
    /// Outcome of the messages.
    pub counts: MessageCounts,
    /// Messages received a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_s: Option<f64>,
    /// From the first send to the last receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// Memory of the system under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// The machine just before and just after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Floor>,
    /// Values that are neither hops nor counts; [`FIGURES`](crate::FIGURES) names them all.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// The share of each process or worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<Actor>,
    /// Events during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// Where the time of one message goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Latencies by name; [`HOPS`](crate::HOPS) and [`OWN_HOP`](crate::OWN_HOP) name them all.
    #[serde(default)]
    pub hops: BTreeMap<String, Hop>,
}

/// Cold, first after idle and steady are three results, never one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The first message of a new process, connecting included.
    Cold,
    /// The first message after a pause.
    Idle,
    /// Messages in a row.
    #[default]
    Steady,
}

/// Server that answered, and client that asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Software {
    /// The server's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The server's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// The settings of the server that matter for the figures.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub server_settings: Params,
    /// The client library's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The client library's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Runtime of the client: an interpreter and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
}

/// Settings by name, in the order of their names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(
    /// The settings.
    pub BTreeMap<String, Value>,
);

/// Outcome of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageCounts {
    /// Handed to the transport.
    pub sent: u64,
    /// Taken by the receiver.
    pub received: u64,
    /// Sent and never received.
    pub lost: u64,
    /// Received more than once.
    pub duplicated: u64,
    /// Received after a later one.
    pub reordered: u64,
    /// Still waiting when the run ended.
    pub left: u64,
    /// Calls that failed.
    pub errors: u64,
}

/// Memory of the system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Resident before the first message.
    pub before_bytes: u64,
    /// Resident after the last message.
    pub after_bytes: u64,
    /// The most that was resident.
    pub peak_bytes: u64,
}

/// The machine around one run: two of its processors, before and after.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Floor {
    /// One cache line from the one to the other before the run: the median of half a round trip.
    pub cache_line_transfer_before_ns: f64,
    /// The same after the run.
    pub cache_line_transfer_after_ns: f64,
    /// The counters of the two differ by this at most, before and after.
    pub counter_offset_ns: u64,
    /// The share of time that the hypervisor gave to others meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
}

/// One process or worker, and its share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Actor {
    /// Which one.
    pub name: String,
    /// Role of the process: `pusher`, `puller`, `publisher`, …
    pub role: String,
    /// Messages that it handled.
    pub count: u64,
    /// Messages that it handled a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
}

/// A value over the time of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// Name of the value, its unit last.
    pub name: String,
    /// When, from the start of the run.
    pub t_ns: Vec<u64>,
    /// The value then; as long as `t_ns`.
    pub value: Vec<f64>,
}

/// A part of the time that one message takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stage {
    /// Which part; `FROM_to_TO` for the way between two stations of the path.
    pub name: String,
    /// Content of the step, where the name alone does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its median; null if there is none.
    pub p50_ns: Option<f64>,
    /// The least and the most that it can be, where it is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds_ns: Option<[f64; 2]>,
    /// How it is known.
    pub kind: StageKind,
}

/// How the time of a stage is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// Two stamps were taken around it.
    #[default]
    Measured,
    /// It has no stamps of its own: its time was had elsewhere, or by a share, and lies between two bounds.
    Bounded,
    /// Remainder of the whole.
    Unexplained,
}

/// Two runs of this file, compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// Name of the comparison: `redis_to_log_tick_to_order` is Redis divided by the log.
    pub name: String,
    /// Compared value: `p50_ns`, `throughput_per_s`, …
    pub figure: String,
    /// The first system's figure.
    pub a: Option<f64>,
    /// The second system's figure.
    pub b: Option<f64>,
    /// `a` divided by `b`; null if it cannot be.
    pub ratio: Option<f64>,
    /// The lower end of the interval of the ratio over the repeats.
    pub low: Option<f64>,
    /// The upper end of that interval.
    pub high: Option<f64>,
    /// How often such an interval holds the true ratio, at least, although it is one of as many as its table has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_percent: Option<f64>,
    /// The pairs that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// Bounds of the ratio, or the reason why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The difference between the two, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// Names of `a` and `b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<[String; 2]>,
}

/// One published figure, and what this file measured for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Which experiment.
    pub experiment: String,
    /// Compared value.
    pub what: String,
    /// Meaning of both figures.
    pub unit: PublishedUnit,
    /// The published figure.
    pub published: f64,
    /// On what machine.
    pub machine: String,
    /// Ours.
    pub ours: f64,
    /// The command that made ours.
    pub command: String,
    /// Fault or special condition of the published figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// The unit of a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedUnit {
    /// Nanoseconds.
    #[default]
    Ns,
    /// So many a second.
    PerS,
    /// So many times as much.
    Times,
}

impl ResultFile {
    /// An empty result of this version; `started_at` is in RFC 3339.
    pub fn new(workload: &str, command: &str, started_at: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            workload: workload.to_owned(),
            command: command.to_owned(),
            started_at: started_at.to_owned(),
            tickpath: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }
}

impl ResultFile {
    /// The title of its page.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.workload)
    }
}

impl Run {
    /// Marks the run as not valid, and notes the reason.
    pub fn refuse(&mut self, why: impl Into<String>) {
        self.valid = false;
        self.notes.push(why.into());
    }

    /// Messages that were sent together, as text.
    pub fn batch_text(&self) -> Option<String> {
        match self.batch.as_ref()? {
            Value::String(name) => Some(name.clone()),
            number => Some(number.to_string()),
        }
    }
}

/// Implements `ALL`, the variants, and `name`, a variant's name on the command line and in results.
#[macro_export]
macro_rules! named_variants {
    ($type:ident { $($variant:ident = $name:literal),+ }) => {
        impl $type {
            /// All variants.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name on the command line and in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

impl RunPhase {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Idle => "idle",
            Self::Steady => "steady",
        }
    }
}

impl StageKind {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Bounded => "bounded",
            Self::Unexplained => "unexplained",
        }
    }
}

impl Software {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The server and the client, each with its version, and what the client runs on: as much as is known.
    pub fn names(&self) -> Vec<String> {
        let pair = |name: &Option<String>, version: &Option<String>| {
            let known: Vec<&str> = [name, version].into_iter().flatten().map(String::as_str).collect();
            (!known.is_empty()).then(|| known.join(" "))
        };
        let pairs = [pair(&self.server, &self.server_version), pair(&self.client, &self.client_version)];
        pairs.into_iter().flatten().chain(self.runtime.clone()).collect()
    }
}

impl Params {
    /// Sets one.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// One as text: a text without its quotes, anything else as JSON.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// One as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// One as a whole number.
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Comparison {
    /// Divides `a` by `b`; `interval` is the low and high end of the ratio over the repeats.
    pub fn new(name: &str, figure: &str, a: f64, b: f64, interval: Option<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            figure: figure.to_owned(),
            a: Some(a),
            b: Some(b),
            ratio: Some(a / b).filter(|ratio| ratio.is_finite()),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            ..Self::default()
        }
    }
}

/// Each once, in the order in which it first came.
pub fn distinct<T: PartialEq>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut firsts = Vec::new();
    for thing in things {
        if !firsts.contains(&thing) {
            firsts.push(thing);
        }
    }
    firsts
}

/// The middle one; none of none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
