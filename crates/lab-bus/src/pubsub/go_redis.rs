//! Both ends with go-redis, over a channel of Redis.

use std::rc::Rc;

use super::client::{ClientEntry, ForeignClient, channel_url};
use super::role::{PublisherRole, SubscriberRole};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::Run;
use tickpath_lab_tools::go::Go;

const NAME: &str = "go-redis";

/// Source of the program that both ends run.
const SOURCE: (&str, &str) = ("pubsub.go", include_str!("../go/pubsub.go"));

pub(super) const GO_REDIS: ClientEntry =
    ClientEntry { name: NAME, check_target: |target| url(target).map(|_| ()), prepare };

/// The program of both ends.
#[derive(Debug)]
struct GoRedis(Go);

/// Prepares the program; builds it if it is missing.
fn prepare(lab: &Lab<'_>) -> Result<Rc<dyn ForeignClient>, LabError> {
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

    fn describe_client(&self, run: &mut Run) {
        run.software.client = Some(NAME.to_owned());
        run.software.client_version = Some(Go::library_version().to_owned());
        run.software.runtime = Some(self.0.runtime.clone());
    }
}

fn url(target: &str) -> Result<String, LabError> {
    channel_url(NAME, target)
}
