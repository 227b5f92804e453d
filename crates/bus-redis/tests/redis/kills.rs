//! Random kills of publishers, subscribers and the server.

use tickpath_bus_api::conformance::KillRun;

use crate::connect;
use crate::redis_server::RedisServer;

#[test]
fn killed_processes_lose_nothing_silently_and_duplicate_nothing() {
    let synced = &["--appendonly", "yes", "--appendfsync", "always"][..];
    for (name, way, settings, keeps) in [
        ("Redis publish and subscribe", "", &[][..], false),
        ("Redis streams, appendfsync always", "?streams", synced, true),
        ("Redis streams, nothing on disk", "?streams", &[], false),
    ] {
        let mut server = RedisServer::start(settings);
        let url = format!("{}{way}", server.url());
        KillRun { name, url: &url, connect, kills: KillRun::count(), broker_one_in: 8, is_durable: keeps }.run(
            &mut server,
            RedisServer::kill,
            RedisServer::restart,
        );
    }
}
