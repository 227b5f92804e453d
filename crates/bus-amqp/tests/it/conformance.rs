//! The suite.

use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::conformance::{CASES, Case, Fixture, QUEUE_CASES};

use crate::broker::Broker;
use crate::spawn;

#[test]
fn rabbitmq_keeps_the_promises_of_topics() {
    check(CASES);
}

#[test]
fn rabbitmq_keeps_the_promises_of_queues() {
    check(QUEUE_CASES);
}

fn check(cases: &[(&str, Case)]) {
    let url = Broker::get().url();
    for (name, case) in cases {
        println!("{name}");
        case(&Fixture {
            connect: &|| Box::new(AmqpBus::connect(&url).unwrap_or_else(|e| panic!("{e}"))),
            topic: format!("tickpath:test-{}-{name}", std::process::id()),
            spawn: &|role, name| spawn(role, &url, name),
        });
    }
}
