//! Random kills.

use tickpath_bus_api::conformance::KillRun;

use crate::connect;
use crate::nats_server::NatsServer;

#[test]
fn killed_processes_lose_nothing_silently_and_duplicate_nothing() {
    for (name, way, keeps) in [
        ("NATS core", "", false),
        ("JetStream in memory", "?jetstream", false),
        ("JetStream, durable", "?jetstream&durable", true),
    ] {
        let mut server = NatsServer::start(&[]);
        let url = format!("{}{way}", server.url());
        KillRun { name, url: &url, connect, kills: KillRun::count(), broker_one_in: 4, is_durable: keeps }.run(
            &mut server,
            NatsServer::kill,
            NatsServer::restart,
        );
    }
}
