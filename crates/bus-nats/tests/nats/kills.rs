//! Random kills.

use tickpath_bus_api::conformance::Kills;

use crate::connect;
use crate::nats_server::NatsServer;

#[test]
fn nothing_is_lost_in_silence_or_doubled_whoever_falls() {
    for (name, way, keeps) in [
        ("NATS core", "", false),
        ("JetStream in memory", "?jetstream", false),
        ("JetStream, durable", "?jetstream&durable", true),
    ] {
        let mut server = NatsServer::start(&[]);
        let url = format!("{}{way}", server.url());
        Kills { name, url: &url, connect, kills: Kills::count(), one_in: 4, keeps }.run(
            &mut server,
            NatsServer::kill,
            NatsServer::restart,
        );
    }
}
