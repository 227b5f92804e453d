//! The suite of all transports, run against Kafka.

use tickpath_bus_api::conformance::{
    CASES, ConformanceCase, NetworkProxy, QUEUE_CASES, check, check_bounded_memory, check_silence_reported, free_port,
};

use crate::kafka_server::{KafkaServer, acquire_permit};
use crate::{connect, url};

#[test]
fn topics_conform() {
    check(&url(), "topic", CASES, connect);
}

#[test]
fn queues_conform() {
    check(&url(), "queue", &queue_cases(false), connect);
}

/// A separate test, because these cases wait until a death is detected.
#[test]
fn queues_conform_when_processes_are_killed() {
    check(&url(), "queue", &queue_cases(true), connect);
}

#[test]
fn a_subscriber_that_never_polls_uses_bounded_memory() {
    check_bounded_memory(&url(), connect);
}

/// The test starts its own server, which advertises the relay's address to its clients.
#[test]
fn a_silently_dropped_connection_is_detected() {
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
