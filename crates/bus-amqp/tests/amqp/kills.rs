//! Random kills. This broker takes seconds to start.

use tickpath_bus_api::conformance::Kills;

use crate::connect;
use crate::own::Own;

#[test]
fn nothing_is_lost_in_silence_or_doubled_whoever_falls() {
    let mut own = Own::start("", &[]);
    let (name, url) = ("RabbitMQ", own.url(""));
    Kills { name, url: &url, connect, kills: Kills::count(), one_in: 50, keeps: false }.run(
        &mut own,
        Own::kill,
        Own::run,
    );
}
