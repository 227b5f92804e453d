//! The Redis server under test, somebody's or a scratch one: where it is, what it is, and what it says of itself.
//! Nothing of it is changed; a channel leaves nothing behind.

use redis::{Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use tickpath_harness::{Lab, LabError};
use tickpath_result::Software;
use tickpath_scratch::about::{dial, field, no_answer, others, software};
use tickpath_scratch::redis::{Server, ServerSettings};

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

/// What a server counts of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Executed {
    pub calls: u64,
    pub microseconds: u64,
}

impl Target {
    /// The server of a URL.
    pub fn named(url: &str) -> Result<Self, LabError> {
        Self::open(url.to_owned(), None)
    }

    /// A server of our own.
    pub fn scratch(lab: &Lab<'_>, settings: &ServerSettings) -> Result<Self, LabError> {
        let server = Server::start(lab.folder(), settings, &lab.clock)?.ok_or_else(|| {
            LabError::Failed(
                "redis-server is not installed; install it with: apt-get install redis-server   (or name a server: \
                 tickpath explain redis://HOST:PORT)"
                    .to_owned(),
            )
        })?;
        Self::open(server.url(), Some(server))
    }

    fn open(url: String, scratch: Option<Server>) -> Result<Self, LabError> {
        let info = parsed(&url).ok_or_else(|| wrong_url(&url))?;
        let name = name(&info);
        let mut connection = dial(info.clone()).map_err(|e| no_answer(&name, &e))?;
        let about: String = redis::cmd("INFO").query(&mut connection).map_err(|e| no_answer(&name, &e))?;
        let software = software(&about, &mut connection);
        let notes = others(&about).filter(|_| scratch.is_none()).into_iter().collect();
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

    /// What its PUBLISH commands took until now; none if it does not tell.
    pub fn executed(&mut self) -> Option<Executed> {
        let about: String = redis::cmd("INFO").arg("commandstats").query(&mut self.connection).ok()?;
        // A server that has executed none has no line for it.
        Some(executed(&about).unwrap_or(Executed { calls: 0, microseconds: 0 }))
    }
}

impl Executed {
    /// What one took since then: the mean, in nanoseconds. None if there was none.
    pub fn since(self, before: Self) -> Option<f64> {
        let calls = self.calls.checked_sub(before.calls).filter(|calls| *calls > 0)?;
        Some(1_000.0 * self.microseconds.checked_sub(before.microseconds)? as f64 / calls as f64)
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
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let instead = match scheme {
        "nats" | "amqp" | "kafka" | "shm" | "file" | "redis" => "; on other ways it explains --client rust",
        _ => "",
    };
    LabError::Setting(format!(
        "redis-py is explained on a Redis server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or \
         redis+unix:///SOCKET, and nothing behind{instead}"
    ))
}

/// `cmdstat_publish:calls=10,usec=42,usec_per_call=4.20,…`
fn executed(about: &str) -> Option<Executed> {
    let line = field(about, "cmdstat_publish")?;
    let number = |name: &str| {
        let value = line.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        value.parse().ok()
    };
    Some(Executed { calls: number("calls")?, microseconds: number("usec")? })
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

    #[test]
    fn what_a_publish_takes_is_a_mean_of_what_came_since() {
        let about = |calls: u64, microseconds: u64| {
            let publish = format!("cmdstat_publish:calls={calls},usec={microseconds},usec_per_call=1.00");
            format!("# Commandstats\r\ncmdstat_ping:calls=9,usec=9\r\n{publish}\r\n")
        };
        let [before, after] = [about(10, 30), about(30, 100)].map(|text| executed(&text).unwrap());
        assert_eq!(after.since(before), Some(3_500.0));
        assert_eq!(before.since(before), None);
        assert_eq!(before.since(after), None);
        assert_eq!(executed("cmdstat_ping:calls=9,usec=9"), None);
    }
}
