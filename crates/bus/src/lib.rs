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

mod suggestion;
mod transports;
mod url_source;

pub use suggestion::suggest_url;
pub use tickpath_bus_api::*;
pub use tickpath_bus_log::{absent_log_path, list_logs, topic_log_path};
pub use transports::{TRANSPORTS, add_transports, first_server, server_prefixes, transport_of};
pub use url_source::resolve_url;

/// Connects to the topics and queues of a URL, which may be stored elsewhere, as may its password: see [`resolve`].
pub fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    let url = &*resolve_url(url)?;
    if let Some(transport) = transport_of(url) {
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
    let remedy = match suggest_url(url) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("use {}", transports::url_syntaxes()),
    };
    Err(ConnectError::Url(format!("'{shown}' names no transport; {remedy}")))
}
