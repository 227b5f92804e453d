//! What a client in another language is.

use std::rc::Rc;

use super::role::{PublisherRole, SubscriberRole};
use tickpath_harness::{Child, Lab, LabError};
use tickpath_result::Run;

/// A client in another language that is ready: both ends are processes of it, which speak as `docs/clients.md` says.
pub trait ForeignClient: std::fmt::Debug {
    /// The word on the command line and in results.
    fn name(&self) -> &'static str;

    /// Whether both ends wait as they are told, or in one way, their library's.
    fn waits(&self) -> bool {
        false
    }

    /// Starts a publisher; it is ready then.
    fn publisher(&self, lab: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError>;

    /// Starts a subscriber; it hears the topic then.
    fn subscriber(&self, lab: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError>;

    /// Says of a run which library both use, and what it runs on.
    fn tell(&self, run: &mut Run);
}

/// One that may be asked for.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// Refuses a target that it does not have.
    pub has: fn(&str) -> Result<(), LabError>,
    /// Makes it ready.
    pub prepare: fn(&Lab<'_>) -> Result<Rc<dyn ForeignClient>, LabError>,
}

/// A target as client libraries of Redis name it; any but a channel of Redis is refused.
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
    fn channels_of_redis_are_taken_and_nothing_else() {
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
