//! The queues of a run: making, inspecting and removing them.

use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_bus::{ConnectError, Connection, DeliveryGuarantee, QueueConfig};
use tickpath_clock::{Clock, HostClock, sleep_ns};

use super::settings::Settings;
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{Lab, LabError};

/// Capacity of a bounded queue in bytes, and its min capacity in messages, however long.
const CAPACITY_BYTES: usize = 16 << 20;
const CAPACITY_MESSAGES: usize = 64;

/// Interval between two checks of the number of waiting messages.
const CHECK_INTERVAL_NS: u64 = 50_000_000;

/// The queues of a run, removed at its end, however it ends.
pub(super) struct Queues {
    connection: Box<dyn Connection>,
    pub names: Vec<String>,
}

impl Queues {
    /// Names a single queue, or a queue per puller; refuses queues that hold messages already.
    pub fn create(lab: &Lab<'_>, connection: Box<dyn Connection>, settings: &Settings) -> Result<Self, LabError> {
        let names: Vec<String> = (0..settings.queues()).map(|_| name(lab, &settings.target)).collect();
        for name in &names {
            refuse_waiting(&*connection, &settings.target, name)?;
        }
        Ok(Self { connection, names })
    }

    /// Waits until no message waits, as far as the transport reports that, and gives up once the number has not fallen
    /// for `patience_ns`. Returns the number of messages that still wait.
    pub fn wait_until_pulled(&self, clock: &HostClock, patience_ns: i64) -> Result<u64, ConnectError> {
        let (mut least, mut since) = (u64::MAX, clock.ticks());
        loop {
            let waiting = self.waiting()?;
            if waiting < least {
                (least, since) = (waiting, clock.ticks());
            }
            if waiting == 0 || clock.ns_between(since, clock.ticks()) > patience_ns {
                return Ok(waiting);
            }
            sleep_ns(CHECK_INTERVAL_NS);
        }
    }

    /// Returns the ways in which the server may lose messages of the queues by its own settings, as far as it reports
    /// them.
    pub fn loss_settings(&self) -> Vec<String> {
        self.names.iter().filter_map(|name| loss_setting(&*self.connection, name)).collect()
    }

    /// Returns the number of messages that no puller has taken; zero where the transport cannot report it.
    fn waiting(&self) -> Result<u64, ConnectError> {
        let mut waiting = 0;
        for name in &self.names {
            waiting += self.connection.count_waiting(name)?.unwrap_or(0);
        }
        Ok(waiting)
    }

    /// Returns whether the transport promises to keep messages without a puller.
    pub fn is_durable(&self) -> bool {
        self.connection.queue_capabilities().keeps_without_puller
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        for name in &self.names {
            // A server that is gone keeps its queue; the run's own error reports that.
            let _ = self.connection.remove_queue(name);
        }
    }
}

/// Returns a name that was never used before: a broker may still be removing the last queue. On a shared server the
/// prefix shows that the queue is ours.
fn name(lab: &Lab<'_>, target: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    match is_log(target) {
        true => format!("{}.queue{number}", lab.name),
        false => format!("tickpath:{}:queue:{number}", lab.name),
    }
}

/// Refuses a queue that holds messages already: they would count as this run's.
pub(super) fn refuse_waiting(connection: &dyn Connection, target: &str, queue: &str) -> Result<(), LabError> {
    match connection.count_waiting(queue)? {
        Some(waiting @ 1..) => Err(LabError::Failed(format!(
            "the queue {queue} of {} holds {waiting} messages already; pull or remove them, or use another queue",
            redact_logins(target)
        ))),
        _ => Ok(()),
    }
}

/// Returns the configuration with which both ends open a queue for messages of `size` bytes.
pub(super) fn config(delivery: &str, size: usize) -> Result<QueueConfig, LabError> {
    /// Max overhead of a message beside its payload, in bytes.
    const MAX_OVERHEAD: usize = 64;
    let delivery = DeliveryGuarantee::ALL.into_iter().find(|one| one.name() == delivery).ok_or_else(|| {
        let all = DeliveryGuarantee::ALL.map(DeliveryGuarantee::name).join(" or ");
        LabError::Setting(format!("'{delivery}' is no delivery; use {all}"))
    })?;
    let capacity_bytes = CAPACITY_BYTES.max(CAPACITY_MESSAGES * (size + MAX_OVERHEAD));
    Ok(QueueConfig { capacity_bytes, ..QueueConfig::new(delivery) })
}

/// Returns the way in which the server may lose messages of a queue by its own settings, if it reports any.
pub(super) fn loss_setting(connection: &dyn Connection, queue: &str) -> Option<String> {
    let why = connection.loss_risk(queue).ok().flatten()?;
    Some(format!("the server may lose messages of the queue {queue}, without an error: {why}"))
}
