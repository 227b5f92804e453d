//! Both ends with go-redis, over a channel of Redis.

use tickpath_harness::{Child, Lab, LabError};
use tickpath_result::Software;
use tickpath_scratch::go::Go;

use super::role::{PublisherRole, SubscriberRole};

/// The name of this client in results and on the command line.
pub const NAME: &str = "go-redis";

/// What both ends run.
const SOURCE: (&str, &str) = ("pubsub.go", include_str!("../go/pubsub.go"));

/// The program of both ends, built if it is not there yet. Any target but a channel of Redis is refused before.
pub fn prepare(lab: &Lab<'_>, targets: &[String]) -> Result<Go, LabError> {
    targets.iter().try_for_each(|target| url(target).map(|_| ()))?;
    Ok(Go::prepare(lab.progress, SOURCE)?)
}

/// Starts both; they are ready then.
pub(super) fn spawn(
    go: &Go,
    publisher: &PublisherRole,
    subscriber: &SubscriberRole,
) -> Result<(Child, Child), LabError> {
    let publisher = PublisherRole { target: url(&publisher.target)?, ..publisher.clone() };
    let subscriber = SubscriberRole { target: url(&subscriber.target)?, ..subscriber.clone() };
    let sends = go.spawn("publisher", publisher.thread.cpu, &publisher)?;
    let receives = go.spawn("subscriber", subscriber.thread.cpu, &subscriber)?;
    Ok((sends, receives))
}

/// Says what runs at both ends.
pub(super) fn name(go: &Go, software: &mut Software) {
    software.client = Some(NAME.to_owned());
    software.client_version = Some(Go::library_version().to_owned());
    software.runtime = Some(go.runtime.clone());
}

/// A target as the library names it.
fn url(target: &str) -> Result<String, LabError> {
    let path = target.strip_prefix("redis+unix://");
    match target.starts_with("redis://") || path.is_some() {
        true if !target.contains('?') => Ok(path.map_or(target.to_owned(), |path| format!("unix://{path}"))),
        _ => Err(LabError::Setting(format!(
            "--client {NAME} publishes and subscribes on Redis alone, and not on its streams; give --target \
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
            assert_eq!(url(target).ok().as_deref(), named, "{target}");
        }
    }
}
