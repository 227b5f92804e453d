//! Connects to the transport that a URL names, lists transports, and resolves URLs stored in files or the environment.
//!
//! ```
//! use tickpath_bus::{Policy, StartPosition, SubscriptionEvent, TopicConfig, connect};
//! use tickpath_clock::{Clock, HostClock, Wait};
//!
//! let clock = HostClock::get()?;
//! let bus = connect("shm://")?;
//! let topic = format!("doc-bus-{}", std::process::id());
//! let mut publisher = bus.publisher(&topic, &TopicConfig::new(Policy::Overwrite))?;
//! let mut subscriber = bus.subscriber(&topic, StartPosition::Now, Wait::Block)?;
//! publisher.publish(clock.ticks(), 200, b"101.5")?;
//! let received = subscriber.poll(64, &mut |event| {
//!     let SubscriptionEvent::Message(message) = event else { panic!("nothing was lost") };
//!     assert_eq!(message.payload, b"101.5");
//! })?;
//! assert_eq!(received, 1);
//! bus.remove_topic(&topic)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//!
//! Invariant: this crate is the only one that knows all transports, and the places where a URL or its password may be
//! kept (`url_source.rs`).
//!
//! # Features
//!
//! * `brokers`, on by default: NATS, RabbitMQ and Kafka, whose clients take longest to build. Without this feature
//!   their URLs are refused, with the remedy.
//! * `vendored-tls`: Kafka's client builds OpenSSL and links it statically, so that the program needs no OpenSSL of the
//!   host.

mod suggestion;
mod transports;
mod url_source;

pub use suggestion::suggest_url;
pub use tickpath_bus_api::*;
pub use tickpath_bus_log::{absent_log_path, list_logs, topic_log_path};
pub use transports::{TRANSPORTS, add_transports, first_server, server_prefixes, transport_of};
pub use url_source::resolve_url;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// Connects to the topics and queues of a URL, which may be stored elsewhere, as may its password: see [`resolve_url`].
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
