//! The suite of all transports, run against Kafka.

use tickpath_bus_api::conformance::{CASES, QUEUE_CASES, check, stays_bounded};

use crate::{connect, url};

#[test]
fn kafka_keeps_the_promises_of_topics() {
    check(&url(), "topic", CASES, connect);
}

#[test]
fn kafka_keeps_the_promises_of_queues() {
    check(&url(), "queue", QUEUE_CASES, connect);
}

#[test]
fn who_never_looks_holds_a_bounded_part() {
    stays_bounded(&url(), connect);
}
