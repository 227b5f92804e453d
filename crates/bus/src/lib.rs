//! `connect(url)` opens the transport that a URL names; this crate does nothing else.
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
//! A URL can name several servers, with commas between. `?tls`, with `ca=FILE`, `cert=FILE` and `key=FILE`, requires
//! TLS; `?password=env:NAME` or `?password=file:PATH` names the place of a password.
//!
//! NATS, RabbitMQ and Kafka belong to the feature `brokers`, which is on by default.

mod meant;
mod secret;
mod transports;

pub use meant::meant;
pub use secret::resolve;
pub use tickpath_bus_api::*;
pub use tickpath_bus_log::{absent, log_of, within};
pub use transports::{TRANSPORTS, add, address, servers, transport};

/// Connects to the topics and queues of a URL, which may be stored elsewhere, as may its password: see [`resolve`].
pub fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    let url = &*resolve(url)?;
    if let Some(transport) = transport(url) {
        return (transport.connect)(url);
    }
    // The part before the host may be a password.
    let shown = match url.rsplit_once('@') {
        Some((login, place)) => match login.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://{place}"),
            None => place.to_owned(),
        },
        None => url.to_owned(),
    };
    let remedy = match meant(url) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("use {}", transports::forms()),
    };
    Err(ConnectError::Url(format!("'{shown}' names no transport; {remedy}")))
}
