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
fn a_subscriber_that_never_polls_holds_bounded_memory() {
    check_bounded_memory(&Broker::get().url(), connect);
}

#[test]
fn receivers_report_a_silently_dropped_connection() {
    let broker = Broker::get();
    let relay = NetworkProxy::to(&broker.address);
    let relayed = format!("{}?silence=3", broker.url_at(&relay.address()));
    check_silence_reported(&broker.url(), &relayed, &relay, connect);
}
