//! The bus over Kafka, seen from outside, against the server that TICKPATH_KAFKA names.

mod conformance;
mod server;

use std::process::{Child, Command, Stdio};

use tickpath_bus_api::conformance::{Role, run_child};
use tickpath_bus_kafka::KafkaBus;

/// Role, URL and topic for a process of this binary that is to be a child.
const CHILD: &str = "TICKPATH_TEST_CHILD";

/// The server's URL.
fn url() -> String {
    std::env::var("TICKPATH_KAFKA").unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"))
}

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
    let bus = KafkaBus::connect(url).expect("the parent's server answers");
    run_child(&bus, Role::from_name(role).expect("a role"), topic);
}
