//! The bus over NATS, seen from outside, against real servers.

mod conformance;
mod jetstream;
mod nats_server;
mod relay;
mod seen;
mod server;

use std::process::{Child, Command, Stdio};

use tickpath_bus_api::conformance::{Role, run_child};
use tickpath_bus_nats::NatsBus;

/// Role, URL and name for a process of this binary that is to be a child.
const CHILD: &str = "TICKPATH_TEST_CHILD";

/// Starts a child that runs [`child_main`] and nothing else.
fn spawn(role: Role, url: &str, name: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this binary has a path"));
    command.args(["child_main", "--exact", "--nocapture"]).env(CHILD, format!("{} {url} {name}", role.name()));
    command.stdout(Stdio::piped()).spawn().expect("a child is started")
}

/// What a child does. Without the order it is a test of nothing.
#[test]
fn child_main() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let [role, url, name] = order.split(' ').collect::<Vec<_>>()[..] else { panic!("no order: '{order}'") };
    let bus = NatsBus::connect(url).expect("the parent's server answers");
    run_child(&bus, Role::from_name(role).expect("a role"), name);
}
