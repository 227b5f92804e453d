//! The queues of a run: how they are made, looked at and removed.

use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_bus::{ConnectError, Connection, Delivery, QueueConfig};
use tickpath_clock::{Clock, HostClock, sleep_ns};

use super::settings::Settings;
use tickpath_harness::targets::is_log;
use tickpath_harness::{Lab, LabError};
use tickpath_result::without_login;

/// What a queue with a bound holds: so many bytes, and so many messages if they are long.
const CAPACITY_BYTES: usize = 16 << 20;
const CAPACITY_MESSAGES: usize = 64;

/// Between two looks at how many messages wait.
const LOOK_NS: u64 = 50_000_000;

/// The queues of a run, removed at its end, however it ends.
pub(super) struct Queues {
    connection: Box<dyn Connection>,
    pub names: Vec<String>,
}

impl Queues {
    /// One, or one a puller; refused if somebody has them already.
    pub fn fresh(lab: &Lab<'_>, connection: Box<dyn Connection>, settings: &Settings) -> Result<Self, LabError> {
        let names: Vec<String> = (0..settings.queues()).map(|_| name(lab, &settings.target)).collect();
        for name in &names {
            refuse_waiting(&*connection, &settings.target, name)?;
        }
        Ok(Self { connection, names })
    }

    /// Waits until all is taken, as far as the transport can tell; a number that stands still for so long is not waited
    /// for. Gives how many messages wait still.
    pub fn until_taken(&self, clock: &HostClock, patience_ns: i64) -> Result<u64, ConnectError> {
        let (mut least, mut since) = (u64::MAX, clock.ticks());
        loop {
            let waiting = self.waiting()?;
            if waiting < least {
                (least, since) = (waiting, clock.ticks());
            }
            if waiting == 0 || clock.ns_between(since, clock.ticks()) > patience_ns {
                return Ok(waiting);
            }
            sleep_ns(LOOK_NS);
        }
    }

    /// How the server may lose messages of them, by its own settings, as far as it tells.
    pub fn drops(&self) -> Vec<String> {
        self.names.iter().filter_map(|name| drops(&*self.connection, name)).collect()
    }

    /// Messages that nobody has taken; none where the transport cannot tell.
    fn waiting(&self) -> Result<u64, ConnectError> {
        let mut waiting = 0;
        for name in &self.names {
            waiting += self.connection.waiting(name)?.unwrap_or(0);
        }
        Ok(waiting)
    }

    /// Whether the transport promises to keep what nobody pulls yet.
    pub fn keep(&self) -> bool {
        self.connection.queue_capabilities().keeps_without_puller
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        for name in &self.names {
            // A server that has gone keeps what it has; the run's own error says so.
            let _ = self.connection.remove_queue(name);
        }
    }
}

/// A name that was never used before: a broker may still be removing the last one. On somebody's server it says whose
/// it is.
fn name(lab: &Lab<'_>, target: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    match is_log(target) {
        true => format!("{}.queue{number}", lab.name),
        false => format!("tickpath:{}:queue:{number}", lab.name),
    }
}

/// Messages that are there already would be counted as this run's.
pub(super) fn refuse_waiting(connection: &dyn Connection, target: &str, queue: &str) -> Result<(), LabError> {
    match connection.waiting(queue)? {
        Some(waiting @ 1..) => Err(LabError::Failed(format!(
            "the queue {queue} of {} holds {waiting} messages already; pull or remove them, or use another queue",
            without_login(target)
        ))),
        _ => Ok(()),
    }
}

/// How both ends open a queue of messages of this size.
pub(super) fn config(delivery: &str, size: usize) -> Result<QueueConfig, LabError> {
    /// What a message takes beside its payload, at most, in bytes.
    const AROUND: usize = 64;
    let delivery = Delivery::ALL.into_iter().find(|one| one.name() == delivery).ok_or_else(|| {
        let all = Delivery::ALL.map(Delivery::name).join(" or ");
        LabError::Setting(format!("'{delivery}' is no delivery; use {all}"))
    })?;
    let capacity_bytes = CAPACITY_BYTES.max(CAPACITY_MESSAGES * (size + AROUND));
    Ok(QueueConfig { capacity_bytes, ..QueueConfig::new(delivery) })
}

/// How the server may lose messages of a queue, by its own settings, if it tells.
pub(super) fn drops(connection: &dyn Connection, queue: &str) -> Option<String> {
    let why = connection.may_drop(queue).ok().flatten()?;
    Some(format!("the server may lose messages of the queue {queue}, and tells nobody: {why}"))
}
