//! External tests of the bus over NATS, against real servers.

mod cluster;
mod conformance;
mod durable;
mod forwarded;
mod helpers;
mod hostile_server;
mod jetstream;
mod kills;
mod login;
mod nats_server;
mod outcomes;
mod redelivered;
mod server;
mod sharing;
mod slow_consumers;
mod tls;
mod tokens;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_nats::NatsBus;

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(NatsBus::connect(url)?))
}

/// Entry point of the suite's child processes; otherwise tests nothing.
#[test]
fn child_main() {
    run_child(connect);
}
