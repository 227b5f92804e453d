//! The suite of all transports, run against Kafka.

use tickpath_bus_api::conformance::{
    CASES, ConformanceCase, NetworkProxy, QUEUE_CASES, check, check_bounded_memory, check_silence_reported, free_port,
};

use crate::kafka_server::{KafkaServer, acquire_permit};
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
    check_bounded_memory(&url(), connect);
}

/// The test starts its own server, which advertises the relay's address to its clients.
#[test]
fn a_network_that_forgets_a_connection_is_told() {
    let _turn = acquire_permit(1);
    let (far, near) = (free_port(), free_port());
    let advertised = format!(
        "advertised.listeners=PLAINTEXT://127.0.0.1:PORT,FAR://127.0.0.1:{near}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,FAR:PLAINTEXT\n"
    );
    let server = KafkaServer::start(&format!(",FAR://127.0.0.1:{far}"), &advertised);
    let relay = NetworkProxy::at(near, &format!("127.0.0.1:{far}"));
    check_silence_reported(&server.url(), &format!("kafka://{}?silence=3", relay.address()), &relay, connect);
}

/// Returns the queue cases that kill a process, or those that do not.
fn queue_cases(is_killed: bool) -> Vec<(&'static str, ConformanceCase)> {
    QUEUE_CASES.iter().copied().filter(|(name, _)| name.contains("killed") == is_killed).collect()
}
