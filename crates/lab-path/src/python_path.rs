//! The path in usual Python code: feed, strategy and venue over Redis, JSON both ways, redis-py throughout; and the
//! same scripts over the log, with the package `tickpath` in its place.
//!
//! ```text
//!   feed ─publish→ Redis ─listen→ strategy ─publish→ Redis ─listen→ venue
//!   intended                     seen   released                    arrived
//!     ├────────── one_way ────────┤         │                          │
//!     ├─────────────── tick_to_order ───────┤                          │
//!     └─────────────────────── tick_to_venue ──────────────────────────┘
//! ```
//! No risk check and no journal: the order is only published. That is less work than our own path does.

use std::collections::BTreeMap;

use serde::Serialize;
use tickpath_clock::Calibration;

use tickpath_lab_harness::rules::note_reconnects;
use tickpath_lab_harness::samples::{Samples, load};
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::{MessageCounts, Run};
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::scripts::{Library, RECONNECTS};

/// The script of the parts, and one module per library.
const PATH: (&str, &str) = ("path.py", include_str!("python/path.py"));
const TICKPATH_MODULE: (&str, &str) = ("path_tickpath.py", include_str!("python/path_tickpath.py"));
const REDIS_PY_MODULE: (&str, &str) = ("path_redis_py.py", include_str!("python/path_redis_py.py"));

/// The transport of ticks and orders, and the interpreter of the scripts.
#[derive(Debug, Clone, Copy)]
pub struct ScriptTransport<'a> {
    pub library: Library,
    /// An interpreter that has the library.
    pub python: &'a Python,
    /// The URL of both topics.
    pub url: &'a str,
}

#[derive(Debug, Serialize)]
struct PathScriptSettings<'a> {
    role: &'a str,
    /// The module that carries its messages.
    library: &'a str,
    url: &'a str,
    name: &'a str,
    count: u64,
    rate: u64,
    cpu: usize,
    out: std::path::PathBuf,
}

/// Runs `count` ticks at `rate` a second; feed and venue on the first CPU, the strategy on the second, as on our own
/// path.
pub fn run(
    lab: &Lab<'_>,
    ScriptTransport { library, python, url }: ScriptTransport<'_>,
    [generator, system]: [usize; 2],
    rate: u64,
    count: u64,
    repeat: u32,
) -> Result<Run, LabError> {
    let seconds = count as f64 / rate as f64;
    let (by, target, bus) = match library {
        Library::Tickpath => (TICKPATH_MODULE, "shm://", "the log"),
        Library::RedisPy => (REDIS_PY_MODULE, "redis://", "Redis"),
    };
    lab.step(&format!("the path in Python over {bus}"), seconds + 1.0)?;
    // Leftovers in shared memory are removed with the lab.
    let name = format!("{}.python.{repeat}", lab.name);
    let out = |role: &str| lab.folder().join(format!("python-{role}"));
    let spawn = |role: &'static str| {
        let cpu = if role == "strategy" { system } else { generator };
        let library = by.0.trim_end_matches(".py");
        let part = PathScriptSettings { role, library, url, name: &name, count, rate, cpu, out: out(role) };
        python.spawn(lab, role, &[PATH, by, RECONNECTS], &part)
    };
    let mut venue = spawn("venue")?;
    let mut strategy = spawn("strategy")?;
    let mut feed = spawn("feed")?;
    feed.send("go")?;
    let mut reconnects = Vec::new();
    for (who, part) in [("feed", &mut feed), ("strategy", &mut strategy), ("venue", &mut venue)] {
        reconnects.push((who, part.result::<u64>(seconds * 3.0)?));
    }
    let arrived: BTreeMap<u64, u64> = load::<2>(&out("venue"))?.into_iter().map(|[number, at]| (number, at)).collect();
    let ticks = load::<4>(&out("strategy"))?;
    let mut run = Run {
        target: target.to_owned(),
        client: library.client().to_owned(),
        repeat,
        valid: true,
        counts: MessageCounts {
            sent: count,
            received: ticks.len() as u64,
            lost: count.saturating_sub(ticks.len() as u64),
            ..MessageCounts::default()
        },
        notes: vec![format!("Python on both sides of {bus}: JSON, a blocking wait, no risk check and no journal")],
        ..Run::default()
    };
    run.params.set("rate_per_s", rate);
    run.params.set("wait", "block");
    run.params.set("cpus", vec![generator, system]);
    run.params.set("threads", format!("feed and venue on CPU {generator}; strategy on CPU {system}"));
    library.describe_client(python, &mut run);
    // All stamps are Python's, in nanoseconds.
    let ns = Calibration::nanoseconds();
    let hop = |samples: Vec<(u64, u64)>| Samples(samples).hop(&ns, &[]);
    let to_venue = ticks.iter().filter_map(|&[number, intended, ..]| Some((intended, *arrived.get(&number)?)));
    run.hops.insert("tick_to_venue".to_owned(), hop(to_venue.collect()));
    run.hops.insert("one_way".to_owned(), hop(ticks.iter().map(|&[_, intended, seen, _]| (intended, seen)).collect()));
    run.hops.insert(
        "tick_to_order".to_owned(),
        hop(ticks.iter().map(|&[_, from, _, released]| (from, released)).collect()),
    );
    tickpath_lab_harness::attribution::drop_attribution(&mut run);
    reconnects.into_iter().for_each(|(who, count)| note_reconnects(&mut run, who, Some(count)));
    let allowed_ns = (1_000_000_000 / rate).max(10_000);
    let sends = load::<2>(&out("feed"))?;
    let late = sends.iter().filter(|[intended, called]| called.saturating_sub(*intended) > allowed_ns).count();
    if 100 * late > sends.len() {
        run.refuse(format!("{late} of {} ticks left late by more than the interval", sends.len()));
    }
    if run.counts.lost > 0 || arrived.len() < ticks.len() {
        run.refuse(format!("{} ticks and {} orders were lost", run.counts.lost, ticks.len() - arrived.len()));
    }
    Ok(run)
}
