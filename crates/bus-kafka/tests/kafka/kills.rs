//! Random kills. This broker takes seconds to start.

use tickpath_bus_api::conformance::KillRun;

use crate::connect;
use crate::kafka_server::{KafkaServer, acquire_permit};

#[test]
fn killed_processes_lose_nothing_silently_and_duplicate_nothing() {
    let _turn = acquire_permit(1);
    let mut server = KafkaServer::start("", "");
    let (name, url) = ("Kafka", server.url());
    KillRun { name, url: &url, connect, kills: KillRun::count(), broker_one_in: 50, is_durable: true }.run(
        &mut server,
        KafkaServer::kill,
        KafkaServer::restart,
    );
}
