//! The suite, with core NATS and with JetStream.

use tickpath_bus_api::conformance::{CASES, Case, Fixture, QUEUE_CASES};
use tickpath_bus_nats::NatsBus;

use crate::spawn;

#[test]
fn core_nats_keeps_the_promises() {
    check("core", "", CASES);
    check("core-queue", "", QUEUE_CASES);
}

#[test]
fn jetstream_keeps_the_promises() {
    check("stream", "?jetstream", CASES);
    check("stream-queue", "?jetstream", QUEUE_CASES);
}

fn check(what: &str, query: &str, cases: &[(&str, Case)]) {
    let server = std::env::var("TICKPATH_NATS");
    let server = server.unwrap_or_else(|_| panic!("start the brokers: scripts/brokers run -- cargo test"));
    let url = format!("{server}{query}");
    for (name, case) in cases {
        println!("{url}: {name}");
        case(&Fixture {
            connect: &|| Box::new(NatsBus::connect(&url).expect("connected")),
            topic: format!("tickpath:test-{}-{what}-{name}", std::process::id()),
            spawn: &|role, name| spawn(role, &url, name),
        });
    }
}
