//! External tests of the bus over NATS, against real servers.

mod behind;
mod carried;
mod cluster;
mod conformance;
mod durable;
mod fates;
mod given_back;
mod hostile;
mod jetstream;
mod kills;
mod login;
mod nats_server;
mod opened;
mod relay;
mod server;
mod sharing;
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
