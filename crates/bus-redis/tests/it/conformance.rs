//! The suite.

use tickpath_bus_api::conformance::{CASES, Fixture};
use tickpath_bus_redis::RedisBus;

use crate::redis_server::RedisServer;
use crate::spawn;

#[test]
fn redis_keeps_the_promises() {
    let server = RedisServer::start(&[]);
    let url = server.url();
    for (name, case) in CASES {
        println!("{url}: {name}");
        case(&Fixture {
            connect: &|| Box::new(RedisBus::connect(&url).expect("connected")),
            topic: format!("tickpath:test-{}-{name}", std::process::id()),
            spawn: &|role, topic| spawn(role, &url, topic),
        });
    }
}
