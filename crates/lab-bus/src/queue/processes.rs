//! The processes of a run, and their reports.

use tickpath_clock::{HostClock, Priority};

use super::puller::{PULL_TIMEOUT_NS, PullerResult, QUIET_TIMEOUT_NS, QueuePullerRole};
use super::pusher::{PusherResult, QueuePusherRole};
use super::queues::Queues;
use super::rows::{puller_file, pusher_file};
use super::settings::Settings;
use tickpath_lab_harness::{Child, Lab, LabError, ThreadConfig};
use tickpath_lab_result::Software;

pub(super) struct QueueProcesses {
    pub pusher: Child,
    pub pullers: Vec<Child>,
    pub software: Software,
}

/// The reports of the processes, and the messages that are left.
pub(super) struct QueueReports {
    pub pushed: PusherResult,
    pub pulled: Vec<PullerResult>,
    pub software: Software,
    /// Messages that still wait.
    pub remaining: u64,
    /// Whether the transport promises to keep messages without a puller.
    pub is_durable: bool,
    /// The ways in which the server may lose messages of the queues, by its own settings.
    pub loss_settings: Vec<String>,
    /// The reason for breaking off, if the run did.
    pub failed: Option<String>,
}

impl QueueProcesses {
    /// Starts our own processes; the pusher first, so that a queue that must be made exists.
    pub fn spawn(lab: &Lab<'_>, settings: &Settings, queues: &[String]) -> Result<Self, LabError> {
        let pusher = QueuePusherRole {
            target: settings.target.clone(),
            queues: queues.to_vec(),
            delivery: settings.usual_delivery().name().to_owned(),
            size: settings.size,
            count: settings.count,
            rate: settings.rate,
            batch: settings.pipeline,
            seed: settings.seed,
            thread: ThreadConfig::new(settings.cpus[0], settings.wait, Priority::Normal),
            out: pusher_file(lab),
        };
        let puller = |index: usize| {
            lab.spawn(&QueuePullerRole {
                target: settings.target.clone(),
                queue: queues[settings.queue_of(index)].clone(),
                delivery: settings.usual_delivery().name().to_owned(),
                size: settings.size,
                limit: settings.pull,
                share: settings.share(index),
                expected: settings.expected(index),
                thread: ThreadConfig::new(settings.cpu_of(index), settings.wait, Priority::Normal),
                out: puller_file(lab, index),
            })
        };
        let software = lab.software(&settings.target);
        let pusher = lab.spawn(&pusher)?;
        let pullers = (0..settings.pullers).map(puller).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { pusher, pullers, software })
    }

    /// Runs from the first push until all messages are pulled.
    pub fn run(mut self, settings: &Settings, queues: &Queues, clock: &HostClock) -> Result<QueueReports, LabError> {
        for puller in &mut self.pullers {
            puller.send("go")?;
        }
        self.pusher.send("go")?;
        let pushed: PusherResult = self.pusher.result(settings.hang_timeout_s())?;
        let mut failed = pushed.failed.clone();
        if failed.is_none() && settings.share(0).is_none() {
            // A puller that shares a queue cannot know how many more messages it will get.
            failed = queues.wait_until_pulled(clock, PULL_TIMEOUT_NS).err().map(|error| error.to_string());
        }
        for puller in &mut self.pullers {
            // The puller may have failed and exited.
            let _ = puller.send("ended");
        }
        let results = self.pullers.iter_mut().map(|puller| puller.result::<PullerResult>(settings.hang_timeout_s()));
        let pulled = results.collect::<Result<Vec<_>, _>>()?;
        failed = failed.or_else(|| pulled.iter().find_map(|pulled| pulled.failed.clone()));
        let left = match queues.wait_until_pulled(clock, QUIET_TIMEOUT_NS) {
            Ok(left) => left,
            Err(error) => {
                failed = failed.or(Some(error.to_string()));
                0
            }
        };
        for child in self.pullers.into_iter().chain([self.pusher]) {
            // All pullers leave only now, in order: where members of a group are notified of each other, leaving
            // disturbs.
            let _left = child.stop::<()>();
        }
        let version = pushed.server_version.clone().or(self.software.server_version.clone());
        let software = Software { server_version: version, ..self.software };
        let (keeps, drops) = (queues.is_durable(), queues.loss_settings());
        Ok(QueueReports { pushed, pulled, software, remaining: left, is_durable: keeps, loss_settings: drops, failed })
    }
}
