//! The Redis server under test, the user's or a scratch one: its address, its description, and its own statistics.
//! Nothing on it is changed; a channel leaves no trace.

use redis::{Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use tickpath_bus::transport_of;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::Software;
use tickpath_lab_tools::redis::{Persistence, ScratchServer, ServerSettings};
use tickpath_lab_tools::redis_stats::{CommandStats, connect, no_answer, other_clients};

/// The command that publishes, as a server counts it.
pub(super) const PUBLISH: &str = "publish";

/// A server, with a connection to it that is not measured.
pub(super) struct ExplainedServer {
    connection: Connection,
    pub info: ConnectionInfo,
    /// URL for our own transports.
    pub url: String,
    /// Display form of the URL, without a password.
    pub name: String,
    pub software: Software,
    pub notes: Vec<String>,
    /// Process of a scratch server, which ends with this value; none for the user's server.
    scratch: Option<ScratchServer>,
}

impl ExplainedServer {
    pub fn named(lab: &Lab<'_>, url: &str) -> Result<Self, LabError> {
        Self::open(lab, url.to_owned(), None)
    }

    /// Starts a scratch server, which has a Unix socket too.
    pub fn scratch(lab: &Lab<'_>, persistence: Persistence, cpu: Option<usize>) -> Result<Self, LabError> {
        let settings = ServerSettings { cpu, unix_socket: true, persistence };
        let instead = "   (or name a server: tickpath explain redis://HOST:PORT)";
        let server = ScratchServer::require(lab, &settings, instead)?;
        Self::open(lab, server.url(), Some(server))
    }

    fn open(lab: &Lab<'_>, url: String, scratch: Option<ScratchServer>) -> Result<Self, LabError> {
        let info = parsed(&url).ok_or_else(|| wrong_url(&url))?;
        let name = name(&info);
        let (software, others) = (lab.software(&url), other_clients(lab, &url));
        let mut connection = connect(info.clone()).map_err(|e| no_answer(&name, &e))?;
        redis::cmd("PING").exec(&mut connection).map_err(|e| no_answer(&name, &e))?;
        let notes = others.filter(|_| scratch.is_none()).into_iter().collect();
        Ok(Self { connection, info, url, name, software, notes, scratch })
    }

    /// Returns the URL as redis-py writes it.
    pub fn python_url(&self) -> String {
        match self.url.strip_prefix("redis+") {
            Some(rest) => rest.to_owned(),
            None => self.url.clone(),
        }
    }

    /// Returns the URL of a scratch server's Unix socket, as redis-py writes it.
    pub fn python_unix_url(&self) -> Option<String> {
        let path = self.scratch.as_ref()?.unix_path()?;
        Some(format!("unix://{}", path.display()))
    }

    /// Returns the statistics of a command, in lower case, until now; none if the server does not report them.
    pub fn command_stats(&mut self, command: &str) -> Option<CommandStats> {
        CommandStats::of(command, &mut self.connection)
    }

    /// Removes one of our lists, if it still exists: Redis removes an empty list by itself.
    pub fn remove(&mut self, list: &str) {
        // A list on a server that is gone cannot be removed.
        let _ = redis::cmd("DEL").arg(list).exec(&mut self.connection);
    }
}

/// Returns whether a URL names a Redis server and its channels, whose clients can be explained; otherwise only our own
/// bus can be.
pub fn is_redis(url: &str) -> bool {
    ["redis://", "redis+unix://"].iter().any(|scheme| url.starts_with(scheme)) && !url.contains('?')
}

/// Rejects a URL that is not understood by every client here.
pub(super) fn check(url: &str) -> Result<(), LabError> {
    parsed(url).map(|_| ()).ok_or_else(|| wrong_url(url))
}

fn parsed(url: &str) -> Option<ConnectionInfo> {
    if !is_redis(url) {
        return None;
    }
    let info = url.into_connection_info().ok()?;
    matches!(info.addr(), ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_)).then_some(info)
}

/// Returns the display form of a URL.
fn name(info: &ConnectionInfo) -> String {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) if host.contains(':') => format!("redis://[{host}]:{port}"),
        ConnectionAddr::Unix(path) => format!("redis+unix://{}", path.display()),
        other => format!("redis://{other}"),
    }
}

/// Returns an error without the URL, because it may hold a password.
fn wrong_url(url: &str) -> LabError {
    let instead = if transport_of(url).is_some() { "; on other ways it explains --client rust" } else { "" };
    LabError::Setting(format!(
        "redis-py is explained on a Redis server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or \
         redis+unix:///SOCKET, and nothing behind{instead}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_urls_are_accepted_and_others_refused_with_a_remedy() {
        for (url, word) in [
            ("redis://127.0.0.1:6379", None),
            ("redis://ann:secret@host:1/2", None),
            ("redis+unix:///run/redis.sock", None),
            ("redis://host:1?streams", Some("nothing behind")),
            ("nats://host:1", Some("--client rust")),
            ("host:1", Some("redis://")),
            ("rediss://ann:secret@host:1", Some("redis://")),
        ] {
            let error = check(url).err().map(|e| e.to_string());
            assert_eq!(error.is_some(), word.is_some(), "{url}: {error:?}");
            let error = error.unwrap_or_default();
            assert!(error.contains(word.unwrap_or_default()) && !error.contains("secret"), "{url}: {error}");
        }
    }

    #[test]
    fn names_hold_no_password() {
        for (url, shown) in [
            ("redis://ann:s%40cret@host:1/2", "redis://host:1"),
            ("redis://[::1]:7000", "redis://[::1]:7000"),
            ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ] {
            assert_eq!(name(&parsed(url).unwrap()), shown, "{url}");
        }
    }
}
