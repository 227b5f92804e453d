//! The bus over Redis, seen from outside, against a server of the tests' own.

mod breaks;
mod cluster;
mod conformance;
mod full;
mod give_back;
mod hostile;
mod kills;
mod not_ready;
mod queue_losses;
mod queues;
mod redis_server;
mod resume;
mod secure;
mod server;
mod streams;
mod wire;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_redis::RedisBus;

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(RedisBus::connect(url)?))
}

/// What a child of the suite does; else a test of nothing.
#[test]
fn child_main() {
    run_child(connect);
}
