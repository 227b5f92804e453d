//! External tests of the bus over RabbitMQ, against a running broker.

mod broker;
mod broker_failure;
mod conformance;
mod dedicated_broker;
mod hostile;
mod kills;
mod losses;
mod message_ids;
mod policies;
mod queues;
mod server;
mod tls;

use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::conformance::run_child;
use tickpath_bus_api::{ConnectError, Connection};

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(Box::new(AmqpBus::connect(url)?))
}

/// Entry point of the suite's child processes; otherwise tests nothing.
#[test]
fn child_main() {
    run_child(connect);
}
