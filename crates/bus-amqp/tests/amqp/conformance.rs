//! The conformance suite.

use tickpath_bus_api::conformance::{CASES, QUEUE_CASES, Relay, check, silence_is_told, stays_bounded};

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

#[test]
fn who_never_looks_holds_a_bounded_part() {
    stays_bounded(&Broker::get().url(), connect);
}

#[test]
fn a_network_that_forgets_a_connection_is_told() {
    let broker = Broker::get();
    let relay = Relay::to(&broker.address);
    let relayed = format!("{}?silence=3", broker.url_at(&relay.address()));
    silence_is_told(&broker.url(), &relayed, &relay, connect);
}
