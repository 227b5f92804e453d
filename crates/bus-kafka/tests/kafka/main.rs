//! The bus over Kafka, seen from outside, against the server that TICKPATH_KAFKA names, and servers of single tests.

mod cluster;
mod conformance;
mod kafka_server;
mod kills;
mod outage;
mod retention;
mod secure;
mod server;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::sleep_ns;

/// The server's URL.
fn url() -> String {
    std::env::var("TICKPATH_KAFKA").unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"))
}

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(KafkaBus::connect(url)?))
}

/// Looks every millisecond or so whether this is so, for a minute or so.
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        sleep_ns(1_000_000);
    }
    panic!("it never came to be so");
}

/// What a child of the suite does; else a test of nothing.
#[test]
fn child_main() {
    run_child(connect);
}
