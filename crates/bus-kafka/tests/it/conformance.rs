//! The suite of all transports, run against Kafka.

use tickpath_bus_api::conformance::{CASES, Case, Fixture, QUEUE_CASES};
use tickpath_bus_kafka::KafkaBus;

use crate::{spawn, url};

#[test]
fn kafka_keeps_the_promises_of_topics() {
    check(CASES, "topic");
}

#[test]
fn kafka_keeps_the_promises_of_queues() {
    check(QUEUE_CASES, "queue");
}

fn check(cases: &[(&str, Case)], what: &str) {
    let url = url();
    for (name, case) in cases {
        println!("{url}: {what} {name}");
        case(&Fixture {
            connect: &|| Box::new(KafkaBus::connect(&url).expect("connected")),
            topic: format!("tickpath:test-{}-{what}-{name}", std::process::id()),
            spawn: &|role, topic| spawn(role, &url, topic),
        });
    }
}
