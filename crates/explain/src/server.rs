//! The Redis server under test, somebody's or a scratch one: where it is, what it is, and what it says of itself.
//! Nothing of it is changed; a channel leaves nothing behind.

use redis::{Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use tickpath_bus::transport;
use tickpath_harness::{Lab, LabError};
use tickpath_result::Software;
use tickpath_scratch::about::{Executed, dial, no_answer, others};
use tickpath_scratch::redis::{Persistence, Server, ServerSettings};

/// The command that publishes, as a server counts it.
pub(super) const PUBLISH: &str = "publish";

/// A server, and a connection to it that is not measured.
pub(super) struct Target {
    connection: Connection,
    info: ConnectionInfo,
    /// Its URL for our own transports.
    pub url: String,
    /// What people may read of that: no password.
    pub name: String,
    /// What it is.
    pub software: Software,
    /// What a reader of the figures must know about it.
    pub notes: Vec<String>,
    /// Ends with this value; none if the server is somebody's.
    scratch: Option<Server>,
}

impl Target {
    /// The server of a URL.
    pub fn named(lab: &Lab<'_>, url: &str) -> Result<Self, LabError> {
        Self::open(lab, url.to_owned(), None)
    }

    /// A server of our own; it has a Unix socket too.
    pub fn scratch(lab: &Lab<'_>, persistence: Persistence, cpu: Option<usize>) -> Result<Self, LabError> {
        let settings = ServerSettings { cpu, unix_socket: true, persistence };
        let server = Server::start(lab.folder(), &settings, &lab.clock)?.ok_or_else(|| {
            LabError::Failed(
                "redis-server is not installed; install it with: apt-get install redis-server   (or name a server: \
                 tickpath explain redis://HOST:PORT)"
                    .to_owned(),
            )
        })?;
        Self::open(lab, server.url(), Some(server))
    }

    fn open(lab: &Lab<'_>, url: String, scratch: Option<Server>) -> Result<Self, LabError> {
        let info = parsed(&url).ok_or_else(|| wrong_url(&url))?;
        let name = name(&info);
        let (software, others) = (lab.software(&url), others(lab, &url));
        let mut connection = dial(info.clone()).map_err(|e| no_answer(&name, &e))?;
        redis::cmd("PING").exec(&mut connection).map_err(|e| no_answer(&name, &e))?;
        let notes = others.filter(|_| scratch.is_none()).into_iter().collect();
        Ok(Self { connection, info, url, name, software, notes, scratch })
    }

    /// Its URL as redis-py writes it.
    pub fn python_url(&self) -> String {
        match self.url.strip_prefix("redis+") {
            Some(rest) => rest.to_owned(),
            None => self.url.clone(),
        }
    }

    /// The URL of a scratch server's Unix socket, as redis-py writes it.
    pub fn python_unix_url(&self) -> Option<String> {
        let path = self.scratch.as_ref()?.unix_path()?;
        Some(format!("unix://{}", path.display()))
    }

    /// Where it listens, and how to log in.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// What its commands of this name, in small letters, took until now; none if it does not tell.
    pub fn executed(&mut self, command: &str) -> Option<Executed> {
        Executed::of(command, &mut self.connection)
    }

    /// Takes away a list of ours, if it is there still: one whose messages were all popped is not.
    pub fn remove(&mut self, list: &str) {
        // A server that is gone keeps what it had, and nobody can change that.
        let _ = redis::cmd("DEL").arg(list).exec(&mut self.connection);
    }
}

/// Whether a URL names a Redis server and its channels, whose clients can be explained; else it is our own bus that can.
pub fn is_redis(url: &str) -> bool {
    ["redis://", "redis+unix://"].iter().any(|scheme| url.starts_with(scheme)) && !url.contains('?')
}

/// Refuses a URL that names no Redis server which every client here knows.
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

/// What people may read of a URL.
fn name(info: &ConnectionInfo) -> String {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) if host.contains(':') => format!("redis://[{host}]:{port}"),
        ConnectionAddr::Unix(path) => format!("redis+unix://{}", path.display()),
        other => format!("redis://{other}"),
    }
}

/// The URL itself is not told, for it may hold a password.
fn wrong_url(url: &str) -> LabError {
    let instead = if transport(url).is_some() { "; on other ways it explains --client rust" } else { "" };
    LabError::Setting(format!(
        "redis-py is explained on a Redis server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or \
         redis+unix:///SOCKET, and nothing behind{instead}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_redis_are_taken_and_others_told_where_to_go() {
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
