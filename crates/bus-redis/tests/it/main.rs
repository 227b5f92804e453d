//! The bus over Redis, seen from outside, against a server of the tests' own.

mod conformance;
mod queues;
mod redis_server;
mod seen;
mod server;
mod streams;

use std::process::{Child, Command, Stdio};

use tickpath_bus_api::conformance::{Role, run_child};
use tickpath_bus_redis::RedisBus;

/// Role, URL and topic for a process of this binary that is to be a child.
const CHILD: &str = "TICKPATH_TEST_CHILD";

/// Starts a child that runs [`child_main`] and nothing else.
fn spawn(role: Role, url: &str, topic: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this binary has a path"));
    command.args(["child_main", "--exact", "--nocapture"]).env(CHILD, format!("{} {url} {topic}", role.name()));
    command.stdout(Stdio::piped()).spawn().expect("a child is started")
}

/// What a child does. Without the order it is a test of nothing.
#[test]
fn child_main() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let [role, url, topic] = order.split(' ').collect::<Vec<_>>()[..] else { panic!("no order: '{order}'") };
    let bus = RedisBus::connect(url).expect("the parent's server answers");
    run_child(&bus, Role::from_name(role).expect("a role"), topic);
}
