//! Random kills. This broker takes seconds to start.

use tickpath_bus_api::conformance::KillRun;

use crate::connect;
use crate::dedicated_broker::DedicatedBroker;

#[test]
fn no_message_is_lost_silently_or_doubled_by_kills() {
    let mut own = DedicatedBroker::start("", &[]);
    let (name, url) = ("RabbitMQ", own.url(""));
    KillRun { name, url: &url, connect, kills: KillRun::count(), broker_one_in: 50, is_durable: false }.run(
        &mut own,
        DedicatedBroker::kill,
        DedicatedBroker::run,
    );
}
