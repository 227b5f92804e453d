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

/// Beside the others, for they wait until a death shows.
#[test]
fn kafka_keeps_the_promises_of_queues_whoever_is_killed() {
    check(&url(), "queue", &queue_cases(true), connect);
}

#[test]
fn who_never_looks_holds_a_bounded_part() {
    stays_bounded(&url(), connect);
}

/// A server tells its clients where it is: whoever comes through the relay is told of the relay.
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

/// Those in which somebody is killed, or those in which nobody is.
fn queue_cases(is_killed: bool) -> Vec<(&'static str, Case)> {
    QUEUE_CASES.iter().copied().filter(|(name, _)| name.contains("killed") == is_killed).collect()
}
