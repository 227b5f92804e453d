//! Random kills. This broker takes seconds to start.

use tickpath_bus_api::conformance::Kills;

use crate::connect;
use crate::kafka_server::{KafkaServer, in_turn};

#[test]
fn nothing_is_lost_in_silence_or_doubled_whoever_falls() {
    let _turn = in_turn(1);
    let mut server = KafkaServer::start("", "");
    let (name, url) = ("Kafka", server.url());
    Kills { name, url: &url, connect, kills: Kills::count(), one_in: 50, keeps: true }.run(
        &mut server,
        KafkaServer::kill,
        KafkaServer::restart,
    );
}
