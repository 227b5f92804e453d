//! The suite of all transports, run against Kafka.

use tickpath_bus_api::conformance::{
    CASES, Case, QUEUE_CASES, Relay, check, free_port, silence_is_told, stays_bounded,
};

use crate::kafka_server::{KafkaServer, in_turn};
use crate::{connect, url};

#[test]
fn kafka_keeps_the_promises_of_topics() {
    check(&url(), "topic", CASES, connect);
}

#[test]
fn kafka_keeps_the_promises_of_queues() {
    check(&url(), "queue", &queue_cases(false), connect);
}

/// A separate test, because these cases wait until a death is detected.
#[test]
fn kafka_keeps_the_promises_of_queues_whoever_is_killed() {
    check(&url(), "queue", &queue_cases(true), connect);
}

#[test]
fn who_never_looks_holds_a_bounded_part() {
    stays_bounded(&url(), connect);
}

/// The test starts its own server, which advertises the relay's address to its clients.
#[test]
fn a_network_that_forgets_a_connection_is_told() {
    let _turn = in_turn(1);
    let (far, near) = (free_port(), free_port());
    let advertised = format!(
        "advertised.listeners=PLAINTEXT://127.0.0.1:PORT,FAR://127.0.0.1:{near}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,FAR:PLAINTEXT\n"
    );
    let server = KafkaServer::start(&format!(",FAR://127.0.0.1:{far}"), &advertised);
    let relay = Relay::at(near, &format!("127.0.0.1:{far}"));
    silence_is_told(&server.url(), &format!("kafka://{}?silence=3", relay.address()), &relay, connect);
}

/// Returns the queue cases that kill a process, or those that do not.
fn queue_cases(is_killed: bool) -> Vec<(&'static str, Case)> {
    QUEUE_CASES.iter().copied().filter(|(name, _)| name.contains("killed") == is_killed).collect()
}
