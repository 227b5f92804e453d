//! The processes of a run, and what they report.

use tickpath_clock::{HostClock, Priority};

use super::puller::{PATIENCE_NS, Pulled, QUIET_NS, QueuePullerRole};
use super::pusher::{Pushed, QueuePusherRole};
use super::queues::Queues;
use super::rows::{puller_file, pusher_file};
use super::settings::Settings;
use tickpath_harness::{Child, Lab, LabError, Thread};
use tickpath_result::Software;

/// The processes of a run.
pub(super) struct Ends {
    pub pusher: Child,
    pub pullers: Vec<Child>,
    pub software: Software,
}

/// What they reported, and what is left.
pub(super) struct Outcome {
    pub pushed: Pushed,
    pub pulled: Vec<Pulled>,
    pub software: Software,
    /// Messages that wait still.
    pub left: u64,
    /// Whether the transport promises to keep what nobody pulls yet.
    pub keeps: bool,
    /// How the server may lose messages of the queues, by its own settings.
    pub drops: Vec<String>,
    /// Why the run broke off, if it did.
    pub failed: Option<String>,
}

impl Ends {
    /// Our own; the pusher first, so that a queue that must be made is there.
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
            thread: Thread::new(settings.cpus[0], settings.wait, Priority::Normal),
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
                thread: Thread::new(settings.cpu_of(index), settings.wait, Priority::Normal),
                out: puller_file(lab, index),
            })
        };
        let software = lab.software(&settings.target);
        let pusher = lab.spawn(&pusher)?;
        let pullers = (0..settings.pullers).map(puller).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { pusher, pullers, software })
    }

    /// From the first push until all is pulled.
    pub fn work(mut self, settings: &Settings, queues: &Queues, clock: &HostClock) -> Result<Outcome, LabError> {
        for puller in &mut self.pullers {
            puller.tell("go")?;
        }
        self.pusher.tell("go")?;
        let pushed: Pushed = self.pusher.result(settings.bound_seconds())?;
        let mut failed = pushed.failed.clone();
        if failed.is_none() && settings.share(0).is_none() {
            // A puller that shares a queue cannot know what is still to come to it.
            failed = queues.until_taken(clock, PATIENCE_NS).err().map(|error| error.to_string());
        }
        for puller in &mut self.pullers {
            // It may have failed, and be gone.
            let _ = puller.tell("ended");
        }
        let results = self.pullers.iter_mut().map(|puller| puller.result::<Pulled>(settings.bound_seconds()));
        let pulled = results.collect::<Result<Vec<_>, _>>()?;
        failed = failed.or_else(|| pulled.iter().find_map(|pulled| pulled.failed.clone()));
        let left = match queues.until_taken(clock, QUIET_NS) {
            Ok(left) => left,
            Err(error) => {
                failed = failed.or(Some(error.to_string()));
                0
            }
        };
        for child in self.pullers.into_iter().chain([self.pusher]) {
            // All of them leave in order only now: where members of a group are told of each other, leaving disturbs.
            let _left = child.stop::<()>();
        }
        let told = pushed.server_version.clone().or(self.software.server_version.clone());
        let software = Software { server_version: told, ..self.software };
        let (keeps, drops) = (queues.keep(), queues.drops());
        Ok(Outcome { pushed, pulled, software, left, keeps, drops, failed })
    }
}
