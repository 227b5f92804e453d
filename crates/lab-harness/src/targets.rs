//! The default targets of a bench, the log and every broker named in the environment; and the removal of a run's topics
//! from its targets.

use std::sync::atomic::Ordering;

use tickpath_bus::{TRANSPORTS, Transport, connect, transport_of};
use tickpath_clock::sleep_ns;

use crate::error::LabError;
use crate::interruption::interruption;

/// Interval between two checks for a Ctrl-C, in nanoseconds.
const CHECK_INTERVAL_NS: u64 = 1_000_000;

/// Returns each transport that has a server, and the environment variable with its URL, as `scripts/brokers` sets it.
fn servers() -> impl Iterator<Item = (String, &'static Transport)> {
    let servers = TRANSPORTS.iter().filter(|transport| transport.is_server());
    servers.map(|server| (format!("TICKPATH_{}", server.schemes[0].to_uppercase()), server))
}

/// Returns the log in shared memory, then each broker of the environment in each of its modes.
pub fn all() -> Vec<String> {
    let brokers = servers().filter_map(|(name, server)| Some((std::env::var(name).ok()?, server.modes)));
    let urls = brokers.flat_map(|(url, ways)| ways.iter().map(move |way| format!("{url}{way}")));
    std::iter::once("shm://".to_owned()).chain(urls.filter(|url| url.contains("://"))).collect()
}

/// Returns the URLs of the brokers in the environment.
pub fn brokers() -> Vec<String> {
    servers().filter_map(|(name, _)| std::env::var(name).ok()).collect()
}

/// Returns a sentence on the brokers missing in the environment; none if all are set.
pub fn missing() -> Option<String> {
    let gone: Vec<String> = servers().map(|(name, _)| name).filter(|name| std::env::var(name).is_err()).collect();
    (!gone.is_empty()).then(|| {
        format!(
            "not measured, for {} is not set: start the brokers with `scripts/brokers run -- COMMAND`, or name targets \
             with --target",
            gone.join(", ")
        )
    })
}

/// Connects to a target and disconnects. A Ctrl-C ends the wait for a target that does not answer.
pub fn check_reachable(target: &str) -> Result<(), LabError> {
    let target = target.to_owned();
    let connecting = std::thread::spawn(move || connect(&target).map(drop));
    while !connecting.is_finished() {
        if interruption().load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        sleep_ns(CHECK_INTERVAL_NS);
    }
    Ok(connecting.join().expect("a transport does not panic")?)
}

/// Returns whether a target is a log, in memory or on a disk.
pub fn is_log(target: &str) -> bool {
    transport_of(target).is_some_and(|transport| !transport.is_server())
}

/// Guard that removes a topic however the run ends.
pub struct TopicGuard<'a> {
    /// URL of the transport.
    pub target: &'a str,
    /// Name of the topic.
    pub topic: &'a str,
}

impl Drop for TopicGuard<'_> {
    fn drop(&mut self) {
        // A lost server keeps the topic; the run's own error reports the loss.
        let _ = connect(self.target).map(|connection| connection.remove_topic(self.topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_without_a_server_are_logs() {
        for (target, is_one) in
            [("shm://", true), ("file:///x", true), ("redis+unix:///s?streams", false), ("shm", false), ("", false)]
        {
            assert_eq!(is_log(target), is_one, "{target}");
        }
    }

    #[test]
    fn each_server_has_the_variable_that_the_script_sets() {
        let names: Vec<String> = servers().map(|(name, _)| name).collect();
        assert_eq!(names, ["TICKPATH_REDIS", "TICKPATH_NATS", "TICKPATH_AMQP", "TICKPATH_KAFKA"]);
    }
}
