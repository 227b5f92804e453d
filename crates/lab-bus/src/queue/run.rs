//! A whole run, from its queues to its result.

use tickpath_bus::connect;

use super::processes::QueueProcesses;
use super::queues::Queues;
use super::settings::{DEFAULT_S, QueueClient, Settings};
use super::{join, redis_py};
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::{Lab, LabError, StabilityCheck};
use tickpath_lab_result::Run;

/// Runs once and adds the run to `runs`. A run that broke off is added too, with its measurements and marked invalid,
/// before its error is returned.
pub fn run(lab: &Lab<'_>, settings: &Settings, runs: &mut Vec<Run>) -> Result<(), LabError> {
    let connection = connect(&settings.target)?;
    let settings = &settings.resolved(&*connection)?;
    let what = format!(
        "queue {}, {} pushed and {} pulled at a time",
        redact_logins(&settings.target),
        settings.pipeline,
        settings.pull
    );
    lab.step(&what, settings.estimated_seconds(DEFAULT_S))?;
    let around = StabilityCheck::begin(lab, [settings.cpus[0], settings.cpu_of(0)])?;
    let queues = Queues::create(lab, connection, settings)?;
    let ends = match settings.client {
        QueueClient::Rust => QueueProcesses::spawn(lab, settings, &queues.names)?,
        QueueClient::RedisPy(variants) => redis_py::spawn(lab, settings, variants, &queues.names)?,
    };
    let outcome = ends.run(settings, &queues, &lab.clock)?;
    let mut run = join::assemble(lab, settings, &outcome)?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    runs.push(run);
    outcome.failed.map_or(Ok(()), |what| Err(LabError::Failed(what)))
}
