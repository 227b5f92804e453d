//! The bus over the log, seen from outside.

mod conformance;
mod log_only;
mod queue;
mod removed;

use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};
use tickpath_bus_log::LogBus;

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(LogBus::connect(url)?))
}

/// What a child of the suite does; else a test of nothing.
#[test]
fn child_main() {
    run_child(connect);
}
