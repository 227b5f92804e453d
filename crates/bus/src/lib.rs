//! `connect(url)`: the transport that a URL names, and nothing else.
//!
//! | URL                                      | topics                  | queues               |
//! |------------------------------------------|-------------------------|----------------------|
//! | `shm://`, `shm://PREFIX`                 | logs in shared memory   | the same             |
//! | `file:///FOLDER`                         | logs on a disk          | the same             |
//! | `redis://HOST:PORT`, `redis+unix:///PATH`| publish and subscribe   | lists                |
//! | … `?streams`                             | streams                 | streams, with groups |
//! | `nats://HOST:PORT`                       | core subjects           | queue groups         |
//! | … `?jetstream`                           | JetStream               | JetStream            |
//! | `amqp://HOST:PORT[/VHOST]`               | RabbitMQ exchanges      | RabbitMQ queues      |
//! | `kafka://HOST:PORT`                      | Kafka, one partition    | consumer groups      |
//!
//! NATS, RabbitMQ and Kafka are the feature `brokers`, on unless it is turned off.

mod meant;

pub use meant::meant;
pub use tickpath_bus_api::*;

#[cfg(feature = "brokers")]
use tickpath_bus_amqp::AmqpBus;
#[cfg(feature = "brokers")]
use tickpath_bus_kafka::KafkaBus;
use tickpath_bus_log::LogBus;
#[cfg(feature = "brokers")]
use tickpath_bus_nats::NatsBus;
use tickpath_bus_redis::RedisBus;

/// Connects to where topics and queues live.
pub fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    Ok(match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("shm" | "file") => Box::new(LogBus::connect(url)?),
        Some("redis" | "redis+unix") => Box::new(RedisBus::connect(url)?),
        #[cfg(feature = "brokers")]
        Some("nats") => Box::new(NatsBus::connect(url)?),
        #[cfg(feature = "brokers")]
        Some("amqp") => Box::new(AmqpBus::connect(url)?),
        #[cfg(feature = "brokers")]
        Some("kafka") => Box::new(KafkaBus::connect(url)?),
        #[cfg(not(feature = "brokers"))]
        Some(scheme @ ("nats" | "amqp" | "kafka")) => {
            return Err(ConnectError::Url(format!(
                "{scheme}:// is not in this binary, which was built for the demo; `cargo build --release` makes one that has \
                 every transport"
            )));
        }
        _ => {
            // What stands before the host may be a password.
            let shown = match url.rsplit_once('@') {
                Some((login, place)) => match login.split_once("://") {
                    Some((scheme, _)) => format!("{scheme}://{place}"),
                    None => place.to_owned(),
                },
                None => url.to_owned(),
            };
            if let Some(meant) = meant(url) {
                return Err(ConnectError::Url(format!("'{shown}' names no transport; did you mean {meant}?")));
            }
            return Err(ConnectError::Url(format!(
                "'{shown}' names no transport; use shm://, shm://PREFIX, file:///FOLDER, redis://HOST:PORT[?streams], \
                 nats://HOST:PORT[?jetstream], amqp://HOST:PORT or kafka://HOST:PORT"
            )));
        }
    })
}
