//! A run, from claiming its key to its result.

use std::path::Path;

use super::assemble::{assemble, check_number};
use super::load::{LoadReport, PipelineRole};
use super::settings::{PipelineClient, Settings};
use super::target::ClaimedKey;
use tickpath_lab_harness::{Child, Lab, LabError, StabilityCheck};
use tickpath_lab_result::Run;

/// Runs once and adds the run to `runs`, even if it failed in the middle, with its result so far.
pub fn run(lab: &Lab<'_>, settings: &Settings, runs: &mut Vec<Run>) -> Result<(), LabError> {
    settings.check()?;
    lab.step(&settings.to_string(), settings.seconds)?;
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let mut key = ClaimedKey::claim(lab, &settings.target, settings.command)?;
    let out = lab.folder().join("pipeline");
    let mut client = spawn(lab, settings, &mut key, &out)?;
    let before = settings.target.usage();
    client.send("go")?;
    let report: LoadReport = client.result(settings.run_limit().most_ns as f64 / 1e9)?;
    let served = settings.target.usage().since(before);
    drop(client);
    let mut run = assemble(lab, settings, &report, served, &out)?;
    if settings.command.is_counting() {
        check_number(&mut run, key.number());
    }
    let first = runs.len();
    runs.push(run);
    report.failed.map_or(Ok(()), |what| Err(LabError::Failed(what))).and(around.end(lab, &mut runs[first..]))
}

fn spawn(lab: &Lab<'_>, settings: &Settings, key: &mut ClaimedKey, out: &Path) -> Result<Child, LabError> {
    let digest = if settings.command.is_by_digest() { key.load_script()? } else { String::new() };
    let role = PipelineRole {
        address: settings.target.generator_address.clone(),
        key: key.name.clone(),
        command: settings.command,
        digest,
        raw: settings.client == PipelineClient::Raw,
        depth: settings.depth,
        connections: settings.connections,
        rate: settings.rate,
        while_writing: settings.reads_while_writing(),
        until: settings.run_limit(),
        cpu: settings.cpus[0],
        out: out.to_owned(),
    };
    match (settings.client, &settings.python) {
        (PipelineClient::Rust | PipelineClient::Raw, _) => lab.spawn(&role),
        (PipelineClient::RedisPy, Some(python)) => {
            python.spawn(lab, "redis-py", &[("pipeline.py", include_str!("../python/pipeline.py"))], &role)
        }
        (PipelineClient::RedisPy, None) => {
            Err(LabError::Setting("redis-py needs a Python environment; prepare one, or leave redis-py out".to_owned()))
        }
    }
}
