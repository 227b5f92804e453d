//! The suite.

use tickpath_bus_api::conformance::{CASES, Case, Fixture, QUEUE_CASES};
use tickpath_bus_redis::RedisBus;

use crate::redis_server::RedisServer;
use crate::spawn;

#[test]
fn publish_and_subscribe_keep_the_promises() {
    let server = RedisServer::start(&[]);
    check(&server.url(), CASES);
}

#[test]
fn lists_keep_the_promises() {
    let server = RedisServer::start(&[]);
    check(&server.url(), QUEUE_CASES);
}

#[test]
fn streams_keep_the_promises() {
    let server = RedisServer::start(&[]);
    check(&format!("{}?streams", server.url()), CASES);
}

#[test]
fn queues_on_streams_keep_the_promises() {
    let server = RedisServer::start(&[]);
    check(&format!("{}?streams", server.url()), QUEUE_CASES);
}

#[test]
fn a_unix_socket_carries_the_same() {
    let server = RedisServer::start(&[]);
    for url in [server.unix_url(), format!("{}?streams", server.unix_url())] {
        for cases in [CASES, QUEUE_CASES] {
            let order = cases.iter().position(|(name, _)| *name == "order").expect("there is a case of order");
            check(&url, &cases[order..=order]);
        }
    }
}

fn check(url: &str, cases: &[(&str, Case)]) {
    for (name, case) in cases {
        println!("{url}: {name}");
        case(&Fixture {
            connect: &|| Box::new(RedisBus::connect(url).expect("connected")),
            topic: format!("tickpath:test-{}-{name}", std::process::id()),
            spawn: &|role, topic| spawn(role, url, topic),
        });
    }
}
