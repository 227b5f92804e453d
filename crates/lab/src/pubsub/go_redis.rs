//! Both ends with go-redis, over a channel of Redis.

use std::rc::Rc;

use super::role::{ForeignClient, PublisherRole, SubscriberRole};
use tickpath_harness::{Child, Lab, LabError};
use tickpath_result::Software;
use tickpath_scratch::go::Go;

/// The name of this client in results and on the command line.
pub(super) const NAME: &str = "go-redis";

/// What both ends run.
const SOURCE: (&str, &str) = ("pubsub.go", include_str!("../go/pubsub.go"));

/// The program of both ends.
#[derive(Debug)]
struct GoRedis(Go);

/// The program, built if it is not there yet. Any target but a channel of Redis is refused before.
pub(super) fn prepare(lab: &Lab<'_>, targets: &[String]) -> Result<Rc<dyn ForeignClient>, LabError> {
    targets.iter().try_for_each(|target| url(target).map(|_| ()))?;
    Ok(Rc::new(GoRedis(Go::prepare(lab.progress, SOURCE)?)))
}

impl ForeignClient for GoRedis {
    fn name(&self) -> &'static str {
        NAME
    }

    fn publisher(&self, _: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError> {
        let role = PublisherRole { target: url(&role.target)?, ..role.clone() };
        self.0.spawn("publisher", role.thread.cpu, &role)
    }

    fn subscriber(&self, _: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError> {
        let role = SubscriberRole { target: url(&role.target)?, ..role.clone() };
        self.0.spawn("subscriber", role.thread.cpu, &role)
    }

    fn tell(&self, software: &mut Software) {
        software.client = Some(NAME.to_owned());
        software.client_version = Some(Go::library_version().to_owned());
        software.runtime = Some(self.0.runtime.clone());
    }
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
