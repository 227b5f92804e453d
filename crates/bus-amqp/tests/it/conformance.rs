//! The suite.

use tickpath_bus_api::conformance::{CASES, QUEUE_CASES, check};

use crate::broker::Broker;
use crate::connect;

#[test]
fn rabbitmq_keeps_the_promises_of_topics() {
    check(&Broker::get().url(), "topic", CASES, connect);
}

#[test]
fn rabbitmq_keeps_the_promises_of_queues() {
    check(&Broker::get().url(), "queue", QUEUE_CASES, connect);
}
