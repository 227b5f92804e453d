//! External tests of the bus over Kafka, against the server in TICKPATH_KAFKA, and servers of single tests.

mod cluster;
mod conformance;
mod kafka_server;
mod kills;
mod outage;
mod record_details;
mod retention;
mod server;
mod tls_and_logins;
mod transactions;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::{Clock, HostClock, sleep_ns};

/// Returns the server's URL.
fn url() -> String {
    std::env::var("TICKPATH_KAFKA").unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"))
}

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(KafkaBus::connect(url)?))
}

/// Polls about every millisecond until the condition holds, for about two minutes.
fn until(mut is_so: impl FnMut() -> bool) {
    const LONG_NS: i64 = 120_000_000_000;
    let clock = HostClock::get().unwrap();
    let start = clock.ticks();
    while !is_so() {
        assert!(clock.ns_between(start, clock.ticks()) < LONG_NS, "it never came to be so");
        sleep_ns(1_000_000);
    }
}

/// Entry point of the suite's child processes; otherwise tests nothing.
#[test]
fn child_main() {
    run_child(connect);
}
