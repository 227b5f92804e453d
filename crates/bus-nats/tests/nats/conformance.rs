//! The suite, with core NATS and with JetStream.

use tickpath_bus_api::conformance::{CASES, QUEUE_CASES, check, stays_bounded};

use crate::connect;

#[test]
fn core_nats_keeps_the_promises() {
    check(&url(""), "core", CASES, connect);
    check(&url(""), "core-queue", QUEUE_CASES, connect);
}

#[test]
fn jetstream_keeps_the_promises() {
    check(&url("?jetstream"), "stream", CASES, connect);
    check(&url("?jetstream"), "stream-queue", QUEUE_CASES, connect);
}

#[test]
fn who_never_looks_holds_a_bounded_part() {
    stays_bounded(&url(""), connect);
    stays_bounded(&url("?jetstream"), connect);
}

/// The server's URL with a way to use it.
fn url(query: &str) -> String {
    let server = std::env::var("TICKPATH_NATS");
    let server = server.unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"));
    format!("{server}{query}")
}
