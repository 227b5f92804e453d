//! The transports, and facts about a URL that follow from its transport alone.

use std::sync::OnceLock;

use tickpath_bus_api::Transport;

/// Built-in transports, one line each.
pub const TRANSPORTS: &[Transport] = &[
    tickpath_bus_log::TRANSPORT,
    tickpath_bus_redis::TRANSPORT,
    #[cfg(feature = "brokers")]
    tickpath_bus_nats::TRANSPORT,
    #[cfg(feature = "brokers")]
    tickpath_bus_amqp::TRANSPORT,
    #[cfg(feature = "brokers")]
    tickpath_bus_kafka::TRANSPORT,
    #[cfg(not(feature = "brokers"))]
    left_out::transport(&["nats"], 4222),
    #[cfg(not(feature = "brokers"))]
    left_out::transport(&["amqp"], 5672),
    #[cfg(not(feature = "brokers"))]
    left_out::transport(&["kafka"], 9092),
];

/// Transports that the program adds.
static ADDED: OnceLock<&'static [Transport]> = OnceLock::new();

/// Adds transports that only this program has: once, before the first connection.
pub fn add_transports(transports: &'static [Transport]) {
    // The first caller is the program itself; a later call has no effect.
    let _ = ADDED.set(transports);
}

/// Returns the transport that a URL names, if any.
pub fn transport_of(url: &str) -> Option<&'static Transport> {
    let (scheme, _) = url.split_once("://")?;
    let more = ADDED.get().copied().unwrap_or_default();
    TRANSPORTS.iter().chain(more).find(|transport| transport.schemes.contains(&scheme))
}

/// Returns the address of a URL's first server, `HOST:PORT`; `None` if the URL names no server, or one without a port.
pub fn first_server(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let port = transport_of(url)?.port?;
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let host = place.split([',', '/', '?']).next().filter(|host| !host.is_empty())?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if has_port && !host.ends_with(']') { host.to_owned() } else { format!("{host}:{port}") })
}

/// Returns the URL prefixes of built-in transports with a server: `redis://, nats://, amqp:// or kafka://`.
pub fn server_prefixes() -> String {
    let servers = TRANSPORTS.iter().filter(|transport| transport.is_server());
    join_alternatives(servers.map(|server| format!("{}://", server.schemes[0])).collect())
}

/// Returns the URL syntax of every built-in transport.
pub(crate) fn url_syntaxes() -> String {
    let named = TRANSPORTS.iter().filter(|transport| !transport.url_syntax.is_empty());
    join_alternatives(named.map(|transport| transport.url_syntax.to_owned()).collect())
}

fn join_alternatives(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}

/// Transports that a binary without the feature `brokers` refuses, with the remedy.
#[cfg(not(feature = "brokers"))]
mod left_out {
    use tickpath_bus_api::{ConnectError, Connection, Transport};

    pub const fn transport(schemes: &'static [&'static str], port: u16) -> Transport {
        let (name, port) = (schemes[0], Some(port));
        Transport { name, schemes, url_syntax: "", modes: &[""], port, connect: refuse, advise: |_about| Vec::new() }
    }

    fn refuse(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
        let scheme = url.split("://").next().unwrap_or_default();
        Err(ConnectError::Url(format!(
            "{scheme}:// is not in this build, which has shm, file and redis alone; `cargo build --release`, or \
             `TICKPATH_BROKERS=1 pip install .`, makes one that has every transport"
        )))
    }
}
