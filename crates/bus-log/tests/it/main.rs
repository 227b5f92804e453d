//! Integration tests of the bus over the log, through its public interface.

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

/// Entry point of the conformance suite's child processes; without a child's environment the test does nothing.
#[test]
fn child_main() {
    run_child(connect);
}
