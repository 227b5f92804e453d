//! The conformance suite, with core NATS and with JetStream.

use tickpath_bus_api::conformance::{
    CASES, NetworkProxy, QUEUE_CASES, check, check_bounded_memory, check_silence_reported,
};

use crate::connect;

#[test]
fn core_nats_conforms() {
    check(&url(""), "core", CASES, connect);
    check(&url(""), "core-queue", QUEUE_CASES, connect);
}

#[test]
fn jetstream_conforms() {
    check(&url("?jetstream"), "stream", CASES, connect);
    check(&url("?jetstream"), "stream-queue", QUEUE_CASES, connect);
}

#[test]
fn a_subscriber_that_never_polls_uses_bounded_memory() {
    check_bounded_memory(&url(""), connect);
    check_bounded_memory(&url("?jetstream"), connect);
}

#[test]
fn a_silently_dropped_connection_is_detected() {
    let direct = url("");
    let relay = NetworkProxy::to(direct.strip_prefix("nats://").expect("it is a NATS URL"));
    let relayed = format!("nats://{}?silence=3", relay.address());
    check_silence_reported(&direct, &relayed, &relay, connect);
    check_silence_reported(&url("?jetstream"), &format!("{relayed}&jetstream"), &relay, connect);
}

/// Returns the server's URL with these options.
fn url(query: &str) -> String {
    let server = std::env::var("TICKPATH_NATS");
    let server = server.unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"));
    format!("{server}{query}")
}
