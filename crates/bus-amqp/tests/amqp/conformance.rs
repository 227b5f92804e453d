//! The conformance suite.

use tickpath_bus_api::conformance::{
    CASES, NetworkProxy, QUEUE_CASES, check, check_bounded_memory, check_silence_reported,
};

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
    check_bounded_memory(&Broker::get().url(), connect);
}

#[test]
fn a_network_that_forgets_a_connection_is_told() {
    let broker = Broker::get();
    let relay = NetworkProxy::to(&broker.address);
    let relayed = format!("{}?silence=3", broker.url_at(&relay.address()));
    check_silence_reported(&broker.url(), &relayed, &relay, connect);
}
