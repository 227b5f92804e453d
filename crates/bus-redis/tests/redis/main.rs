//! Integration tests of the bus over Redis, against `redis-server` processes that the tests start.

mod cluster;
mod conformance;
mod failures;
mod fault_proxy;
mod full_memory;
mod hostile_server;
mod kills;
mod not_ready;
mod queue_losses;
mod queues;
mod redis_server;
mod resume;
mod returned_messages;
mod server;
mod streams;
mod tls_and_users;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_redis::RedisBus;

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(RedisBus::connect(url)?))
}

/// Entry point of the conformance suite's child processes; without a child's environment the test does nothing.
#[test]
fn child_main() {
    run_child(connect);
}
