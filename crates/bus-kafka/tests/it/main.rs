//! The bus over Kafka, seen from outside, against the server that TICKPATH_KAFKA names.

mod conformance;
mod server;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_kafka::KafkaBus;

/// The server's URL.
fn url() -> String {
    std::env::var("TICKPATH_KAFKA").unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"))
}

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(KafkaBus::connect(url)?))
}

/// What a child of the suite does; else a test of nothing.
#[test]
fn child_main() {
    run_child(connect);
}
