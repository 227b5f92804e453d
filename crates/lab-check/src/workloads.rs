//! Lies to the other workloads: messages are dropped on the way to their server.

use tickpath_clock::{Priority, Wait};
use tickpath_lab_bus::{pubsub, queue};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_path::path;
use tickpath_lab_result::Run;

use crate::context::{CheckContext, FaultReport};
use crate::fault_relay::{FaultRelay, RelayFault};
use crate::messages::{judge_broken_run, judge_count};

/// Ticks or records a second, and their total.
const RATE: f64 = 1_000.0;
const COUNT: u64 = 1_500;

/// Length of the round-trip run, in seconds.
const SECONDS: f64 = 2.0;

pub(crate) fn dropped_ticks(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    dropped(stage, |url| {
        let settings = path::Settings {
            target: url.to_owned(),
            external_client: None,
            layout: Default::default(),
            wait: Wait::Block,
            cpus: stage.cpus,
            venue_cpu: None,
            generator_wait: None,
            priority: Priority::Normal,
            ticks: path::TickSource {
                file: None,
                seed: 1,
                rate: Some(RATE),
                arrivals: ArrivalProcess::Steady,
                speed: 1.0,
                count: COUNT,
            },
            repeat: 1,
        };
        path::run(stage.lab, &settings)
    })
}

/// Drops pushed messages. Two pullers share the queue, so that neither waits long for a message that never arrives.
pub(crate) fn dropped_pushes(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    dropped(stage, |url| {
        let settings = queue::Settings {
            target: url.to_owned(),
            client: queue::QueueClient::Rust,
            count: COUNT,
            size: 200,
            pullers: 2,
            pipeline: 1,
            pull: 1,
            keys: queue::QueueSharing::Shared,
            delivery: None,
            rate: Some(RATE),
            wait: Wait::Block,
            seed: 1,
            cpus: stage.cpus.to_vec(),
            repeat: 1,
        };
        let mut runs = Vec::new();
        queue::run(stage.lab, &settings, &mut runs)?;
        runs.pop().ok_or_else(|| LabError::Failed("the queue made no run".to_owned()))
    })
}

/// Drops a message whose sender waits for the answer before the next one: the run must break off and name the message.
pub(crate) fn dropped_answer(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let server = stage.server()?;
    let relay = FaultRelay::start(server.port, RelayFault::Drop)?;
    let run = pubsub::round_trip(stage.lab, &stage.settings(&relay.url()), SECONDS);
    Ok(judge_broken_run(run, &format!("{} message dropped", relay.faults()), &["message ", " had no answer"]))
}

fn dropped(
    stage: &CheckContext<'_>,
    measure: impl FnOnce(&str) -> Result<Run, LabError>,
) -> Result<FaultReport, LabError> {
    let server = stage.server()?;
    let relay = FaultRelay::start(server.port, RelayFault::Drop)?;
    let run = measure(&relay.url())?;
    Ok(judge_count(&run, relay.faults(), run.counts.lost, "lost", "were lost"))
}
