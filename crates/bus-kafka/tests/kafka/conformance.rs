//! The suite of all transports, run against Kafka.

use tickpath_bus_api::conformance::{CASES, Case, QUEUE_CASES, check, stays_bounded};

use crate::{connect, url};

#[test]
fn kafka_keeps_the_promises_of_topics() {
    check(&url(), "topic", CASES, connect);
}

#[test]
fn kafka_keeps_the_promises_of_queues() {
    check(&url(), "queue", &queue_cases(false), connect);
}

/// Beside the others, for they wait until a death shows.
#[test]
fn kafka_keeps_the_promises_of_queues_whoever_is_killed() {
    check(&url(), "queue", &queue_cases(true), connect);
}

#[test]
fn who_never_looks_holds_a_bounded_part() {
    stays_bounded(&url(), connect);
}

/// Those in which somebody is killed, or those in which nobody is.
fn queue_cases(is_killed: bool) -> Vec<(&'static str, Case)> {
    QUEUE_CASES.iter().copied().filter(|(name, _)| name.contains("killed") == is_killed).collect()
}
