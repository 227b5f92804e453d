//! Version, settings and identity that a server reports about itself.

use std::collections::BTreeMap;

use tickpath_bus_api::ServerDescription;

use crate::connection::RedisConnection;
use crate::error::{ServerResult, printable_server_text};
use crate::info::RedisInfo;
use crate::server::{Mechanism, RedisEndpoint};

/// Settings that decide what the server keeps and what that costs.
const SETTINGS: [&str; 8] = [
    "save",
    "appendonly",
    "appendfsync",
    "client-output-buffer-limit",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-to-write",
    "slowlog-log-slower-than",
];

/// Collects everything about the server. Each setting that it refuses to report, or all if it does not answer, holds
/// the error.
pub(crate) fn about(server: &RedisEndpoint) -> ServerDescription {
    match fetch_about(server) {
        Ok(about) => about,
        Err(error) => ServerDescription {
            server: Some("redis-server".to_owned()),
            settings: SETTINGS.map(|name| (name, Err(error.to_string()))).into(),
            ..ServerDescription::default()
        },
    }
}

fn fetch_about(server: &RedisEndpoint) -> ServerResult<ServerDescription> {
    let mut link = RedisConnection::open_ready(server)?;
    let info = RedisInfo::request(&mut link).map_err(|e| e.to_string());
    let field = |name: &str| {
        info.as_ref().ok().and_then(|info| info.field(name)).map(|value| printable_server_text(value.as_bytes()))
    };
    let mut settings = BTreeMap::new();
    for name in SETTINGS {
        let value = link.request(&["CONFIG", "GET", name], |items| match items.array()? {
            0 => Ok(None),
            _ => items.bulk().and_then(|_name| Ok(Some(printable_server_text(items.bulk()?)))),
        });
        let value = value.map_err(|e| e.to_string());
        settings.insert(name, value.and_then(|value| value.ok_or_else(|| format!("it has no setting '{name}'"))));
    }
    let slow = link.request(&["SLOWLOG", "LEN"], |items| items.integer());
    settings.insert("slowlog-len", slow.map(|count| count.to_string()).map_err(|e| e.to_string()));
    let refused = info.as_ref().err().map_or("INFO does not report it", String::as_str);
    let clients = field("connected_clients").ok_or_else(|| refused.to_owned());
    settings.insert("connected_clients", clients);
    let replicas = field("connected_slaves").ok_or_else(|| refused.to_owned());
    settings.insert("connected_slaves", replicas);
    let valkey = field("valkey_version");
    // A channel is the same in all databases, a stream is not. Any node of a cluster may answer, so a cluster has no
    // identity.
    let identity = field("run_id").filter(|_| !server.is_cluster).map(|id| match server.mechanism {
        Mechanism::Plain => format!("redis {id}"),
        Mechanism::Streams => format!("redis {id} {}?streams", server.database),
    });
    Ok(ServerDescription {
        server: Some(if valkey.is_some() { "valkey-server" } else { "redis-server" }.to_owned()),
        version: valkey.or_else(|| field("redis_version")),
        identity,
        settings,
    })
}
