//! The interface of a client in another language.

use std::rc::Rc;

use super::role::{PublisherRole, SubscriberRole};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::Run;

/// A ready client in another language: both ends are its processes, which speak the protocol of `docs/clients.md`.
pub trait ForeignClient: std::fmt::Debug {
    /// Returns the name on the command line and in results.
    fn name(&self) -> &'static str;

    /// Returns whether both ends support the wait modes of the settings; otherwise they wait as their library does.
    fn supports_wait_modes(&self) -> bool {
        false
    }

    /// Starts a publisher, and returns when it is ready.
    fn publisher(&self, lab: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError>;

    /// Starts a subscriber, and returns when it is subscribed.
    fn subscriber(&self, lab: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError>;

    /// Records in a run which library both ends use, and its runtime.
    fn describe_client(&self, run: &mut Run);
}

/// An entry in the list of clients.
#[derive(Debug)]
pub struct ClientEntry {
    /// The client's name on the command line and in results.
    pub name: &'static str,
    /// Refuses a target that the client does not support.
    pub check_target: fn(&str) -> Result<(), LabError>,
    /// Makes the client ready.
    pub prepare: fn(&Lab<'_>) -> Result<Rc<dyn ForeignClient>, LabError>,
}

/// Returns a target in the form of Redis client libraries; refuses every target but a Redis channel.
pub(super) fn channel_url(client: &str, target: &str) -> Result<String, LabError> {
    let path = target.strip_prefix("redis+unix://");
    match target.starts_with("redis://") || path.is_some() {
        true if !target.contains('?') => Ok(path.map_or(target.to_owned(), |path| format!("unix://{path}"))),
        _ => Err(LabError::Setting(format!(
            "--client {client} publishes and subscribes on Redis alone, and not on its streams; give --target \
             redis://HOST:PORT"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_redis_channels_are_accepted() {
        for (target, named) in [
            ("redis://ann:secret@host:1/2", Some("redis://ann:secret@host:1/2")),
            ("redis+unix:///run/redis.sock", Some("unix:///run/redis.sock")),
            ("redis://host:1?streams", None),
            ("redis+unix:///run/redis.sock?streams", None),
            ("nats://host:1", None),
            ("shm://", None),
        ] {
            assert_eq!(channel_url("go-redis", target).ok().as_deref(), named, "{target}");
        }
    }
}
