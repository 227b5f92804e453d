//! The conformance suite over Redis: channels, lists, streams and queues on streams.

use tickpath_bus_api::conformance::{
    CASES, NetworkProxy, QUEUE_CASES, check, check_bounded_memory, check_silence_reported,
};

use crate::connect;
use crate::redis_server::RedisServer;

#[test]
fn publish_and_subscribe_conforms() {
    let server = RedisServer::start(&[]);
    check(&server.url(), "channel", CASES, connect);
}

#[test]
fn lists_conform() {
    let server = RedisServer::start(&[]);
    check(&server.url(), "list", QUEUE_CASES, connect);
}

#[test]
fn streams_conform() {
    let server = RedisServer::start(&[]);
    check(&format!("{}?streams", server.url()), "stream", CASES, connect);
}

#[test]
fn queues_on_streams_conform() {
    let server = RedisServer::start(&[]);
    check(&format!("{}?streams", server.url()), "stream-queue", QUEUE_CASES, connect);
}

#[test]
fn a_subscriber_that_never_polls_uses_bounded_memory() {
    let server = RedisServer::start(&[]);
    check_bounded_memory(&server.url(), connect);
    check_bounded_memory(&format!("{}?streams", server.url()), connect);
}

#[test]
fn a_unix_socket_conforms() {
    let server = RedisServer::start(&[]);
    for url in [server.unix_url(), format!("{}?streams", server.unix_url())] {
        for cases in [CASES, QUEUE_CASES] {
            let order = cases.iter().position(|(name, _)| *name == "order").expect("there is a case of order");
            check(&url, "unix", &cases[order..=order], connect);
        }
    }
}

#[test]
fn a_silently_dropped_connection_is_detected() {
    let server = RedisServer::start(&[]);
    let relay = NetworkProxy::to(&format!("127.0.0.1:{}", server.port()));
    let direct = server.url();
    let relayed = format!("redis://{}?silence=3", relay.address());
    check_silence_reported(&direct, &relayed, &relay, connect);
    check_silence_reported(&format!("{direct}?streams"), &format!("{relayed}&streams"), &relay, connect);
}
