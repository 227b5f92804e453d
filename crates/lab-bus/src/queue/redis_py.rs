//! The same two processes with redis-py: scripts in the usual style, and as in the published experiment.

use std::path::Path;

use serde::Serialize;

use super::processes::QueueProcesses;
use super::puller::{PULL_TIMEOUT_NS, QUIET_TIMEOUT_NS};
use super::rows::{numbers_file, puller_file, pusher_file};
use super::settings::{RedisPy, Settings};
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::Software;
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::scripts::RECONNECTS;

/// The scripts, and the module that both import.
const PUSHER: (&str, &str) = ("queue_pusher.py", include_str!("../python/queue_pusher.py"));
const PULLER: (&str, &str) = ("queue_puller.py", include_str!("../python/queue_puller.py"));
const COMMON: (&str, &str) = ("queue_end.py", include_str!("../python/queue_end.py"));

#[derive(Serialize)]
struct PusherSettings<'a> {
    url: &'a str,
    queues: &'a [String],
    size: usize,
    count: u64,
    rate: Option<f64>,
    batch: usize,
    variant: &'static str,
    transaction: bool,
    seed: u64,
    cpu: usize,
    out: &'a Path,
}

#[derive(Serialize)]
struct PullerSettings<'a> {
    url: &'a str,
    queue: &'a str,
    limit: usize,
    variant: &'static str,
    share: Option<u64>,
    patience_ns: i64,
    cpu: usize,
    out: &'a Path,
    numbers: &'a Path,
}

pub(super) fn spawn(
    lab: &Lab<'_>,
    settings: &Settings,
    variants: RedisPy,
    queues: &[String],
) -> Result<QueueProcesses, LabError> {
    let python = Python::prepare(lab.progress)?;
    let url = url(&settings.target);
    let out = pusher_file(lab);
    let pusher = PusherSettings {
        url: &url,
        queues,
        size: settings.size,
        count: settings.count,
        rate: settings.rate,
        batch: settings.pipeline,
        variant: variants.push.name(),
        transaction: variants.transaction,
        seed: settings.seed,
        cpu: settings.cpus[0],
        out: &out,
    };
    let puller = |index: usize| {
        let out = puller_file(lab, index);
        let numbers = numbers_file(&out);
        let share = settings.share(index);
        let script_settings = PullerSettings {
            url: &url,
            queue: &queues[settings.queue_of(index)],
            limit: settings.pull,
            variant: variants.pull.name(),
            share,
            patience_ns: if share.is_some() { PULL_TIMEOUT_NS } else { QUIET_TIMEOUT_NS },
            cpu: settings.cpu_of(index),
            out: &out,
            numbers: &numbers,
        };
        python.spawn(lab, "puller", &[PULLER, COMMON, RECONNECTS], &script_settings)
    };
    let software = Software {
        server: Some("redis-server".to_owned()),
        client: Some("redis-py".to_owned()),
        client_version: python.version_of("redis").map(str::to_owned),
        runtime: Some(python.runtime.clone()),
        ..Software::default()
    };
    let pusher = python.spawn(lab, "pusher", &[PUSHER, COMMON, RECONNECTS], &pusher)?;
    let pullers = (0..settings.pullers).map(puller).collect::<Result<Vec<_>, _>>()?;
    Ok(QueueProcesses { pusher, pullers, software })
}

/// Returns a target in redis-py's form.
fn url(target: &str) -> String {
    target.strip_prefix("redis+unix://").map_or_else(|| target.to_owned(), |path| format!("unix://{path}"))
}
