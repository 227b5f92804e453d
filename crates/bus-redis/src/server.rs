//! Servers named by a URL, and the login to them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::url::{SENTINEL_PASSWORD_OPTION, SILENCE_OPTION, TLS_OPTIONS, Url};
use tickpath_bus_api::{ConnectError, ReceiveError, TopicNames};
use tickpath_clock::HostClock;
use tickpath_tls::{ALL_VERSIONS, ClientConfig, client_config};

use crate::error::RedisServerError;
use crate::slot::slot;

/// Timeout of a connect, and of an answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const PORT: u16 = 6379;

const SENTINEL_PORT: u16 = 26379;

const FORM: &str = "use redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT][/DATABASE][?streams][&tls][&cluster]\
                    [&sentinel=NAME[&sentinel-password=…]][&silence=SECONDS] or \
                    redis+unix:///PATH/TO/SOCKET[?streams][&silence=SECONDS]";

/// Max length of a Unix socket's path, in bytes.
const MAX_PATH_BYTES: usize = 107;

/// Candidate servers, of which one is the master, with the login and the mechanism to use.
#[derive(Clone)]
pub(crate) struct RedisEndpoint {
    /// Name for messages, without a password.
    pub name: String,
    /// Addresses, in the order in which they are tried.
    pub addresses: Vec<RedisServerAddress>,
    login: Option<(Option<String>, String)>,
    pub names: TopicNames,
    /// Number of the database; channels are the same in all.
    pub database: i64,
    pub mechanism: Mechanism,
    /// Name of the master; the addresses are then those of sentinels, which know where it is.
    pub sentinel: Option<String>,
    /// Password of the sentinels, if it differs from the servers' password.
    sentinel_password: Option<String>,
    pub is_cluster: bool,
    /// Cluster slot of the topic or queue to be used, which one node has.
    slot: Option<u16>,
    pub tls: Option<Arc<ClientConfig>>,
    /// Longest silence before a subscriber's connection counts as dead.
    pub silence: Duration,
    pub clock: HostClock,
}

/// Address on which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RedisServerAddress {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// Mechanism that carries topics and queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// Publish and subscribe, and lists.
    Plain,
    /// Streams for both.
    Streams,
}

impl RedisEndpoint {
    /// Parses a URL, and reads the files that it names. Errors do not repeat the URL, because it may hold a password.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let refused = |what: &str| ConnectError::Url(format!("{what}; {FORM}"));
        let is_unix = url.starts_with("redis+unix://");
        let [tls, ca, cert, key] = TLS_OPTIONS;
        let options = match is_unix {
            true => &["streams", SILENCE_OPTION][..],
            false => &["streams", "sentinel", SENTINEL_PASSWORD_OPTION, "cluster", SILENCE_OPTION, tls, ca, cert, key],
        };
        let url = Url::parse(url, options, FORM)?;
        for option in ["streams", "tls", "cluster"] {
            if url.option(option).is_some_and(|value| !value.is_empty()) {
                return Err(refused(&format!("'{option}' in the URL has no value")));
            }
        }
        if url.user.is_some() && url.password.is_none() {
            return Err(refused("there is a user name without a password (one without any is written USER:@)"));
        }
        let files = url.tls(url.scheme == "rediss").map_err(|what| refused(&what))?;
        let tls = files.map(|files| {
            let identity = files.identity.as_ref().map(|(cert, key)| (cert.as_path(), key.as_path()));
            client_config(files.ca.as_deref(), identity, ALL_VERSIONS).map(Arc::new)
        });
        let sentinel = url.option("sentinel").map(str::to_owned);
        if sentinel.as_deref() == Some("") {
            return Err(refused("'sentinel' in the URL names no master"));
        }
        let sentinel_password = url.option(SENTINEL_PASSWORD_OPTION).map(str::to_owned);
        if sentinel_password.is_some() && sentinel.is_none() {
            return Err(refused("there is a password of sentinels, and none are asked for: add 'sentinel=NAME'"));
        }
        let is_cluster = url.has("cluster");
        if is_cluster && sentinel.is_some() {
            return Err(refused("a cluster has no sentinels; write either of them"));
        }
        let addresses = if is_unix { unix(&url) } else { tcp(&url, sentinel.is_some()) };
        let database = if is_unix { Ok(0) } else { database(&url) };
        if is_cluster && database.is_ok_and(|number| number != 0) {
            return Err(refused("a cluster has the database 0 alone"));
        }
        Ok(Self {
            name: name(&url, tls.is_some()),
            addresses: addresses.map_err(|what| refused(&what))?,
            database: database.map_err(refused)?,
            mechanism: if url.has("streams") { Mechanism::Streams } else { Mechanism::Plain },
            sentinel,
            sentinel_password,
            is_cluster,
            slot: None,
            tls: tls.transpose().map_err(ConnectError::Url)?,
            silence: url.silence().map_err(|what| refused(&what))?,
            clock: HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?,
            login: url.password.map(|password| (url.user, password)),
            names: url.topic_names,
        })
    }

    /// Returns this server for the use of one topic or queue.
    pub fn for_name(&self, name: &str) -> Arc<Self> {
        Arc::new(Self { slot: Some(slot(name)), ..self.clone() })
    }

    /// Returns the cluster slot of the topic or queue in use; none where any node will do.
    pub fn slot(&self) -> Option<u16> {
        self.slot.filter(|_| self.is_cluster)
    }

    /// Returns the sentinels' user name, if any, and password.
    pub fn sentinel_login(&self) -> Option<(Option<&str>, &str)> {
        self.sentinel_password.as_deref().map(|password| (None, password)).or_else(|| self.login())
    }

    /// Returns whether one of several servers is the master.
    pub fn is_one_of_several(&self) -> bool {
        self.addresses.len() > 1 || self.sentinel.is_some()
    }

    pub fn login(&self) -> Option<(Option<&str>, &str)> {
        self.login.as_ref().map(|(user, password)| (user.as_deref(), password.as_str()))
    }

    pub fn error(&self, error: &RedisServerError) -> ConnectError {
        ConnectError::Server { server: self.name.clone(), what: error.to_string() }
    }

    pub fn receive_error(&self, error: &RedisServerError) -> ReceiveError {
        ReceiveError::Other(self.describe_error(error).into())
    }

    /// Formats an error with the server's name before it.
    pub fn describe_error(&self, error: &RedisServerError) -> String {
        format!("{} {error}", self.name)
    }
}

impl fmt::Display for RedisServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for RedisEndpoint {
    /// Prints the name alone: the other fields may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn name(url: &Url, is_secure: bool) -> String {
    match &url.path {
        Some(path) if url.servers.is_empty() => format!("redis+unix:///{path}"),
        _ => {
            let port = if url.has("sentinel") { SENTINEL_PORT } else { PORT };
            let servers: Vec<String> = url.servers.iter().map(|server| server.with_port_or(port)).collect();
            format!("{}://{}", if is_secure { "rediss" } else { "redis" }, servers.join(","))
        }
    }
}

fn unix(url: &Url) -> Result<Vec<RedisServerAddress>, String> {
    let path = PathBuf::from(format!("/{}", url.path.as_deref().unwrap_or_default()));
    if !url.servers.is_empty() || path.file_name().is_none() {
        return Err("no path to a Unix socket".to_owned());
    }
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(format!("the path of a Unix socket has {MAX_PATH_BYTES} bytes at most"));
    }
    Ok(vec![RedisServerAddress::Unix(path)])
}

fn tcp(url: &Url, are_sentinels: bool) -> Result<Vec<RedisServerAddress>, String> {
    if url.servers.is_empty() {
        return Err("the URL names no host".to_owned());
    }
    let port = if are_sentinels { SENTINEL_PORT } else { PORT };
    let address = |server: &tickpath_bus_api::url::ServerAddress| RedisServerAddress::Tcp {
        host: server.host.clone(),
        port: server.port_or(port),
    };
    Ok(url.servers.iter().map(address).collect())
}

fn database(url: &Url) -> Result<i64, &'static str> {
    let digits = url.path.as_deref().unwrap_or_default();
    if digits.is_empty() {
        return Ok(0);
    }
    digits.parse::<u32>().map(i64::from).map_err(|_| "behind the slash stands the number of the database")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        for (url, name, login, database) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379", None, 0),
            ("redis://localhost", "redis://localhost:6379", None, 0),
            ("redis://[::1]:7000/3", "redis://[::1]:7000", None, 3),
            ("redis://:secret@host:1", "redis://host:1", Some((None, "secret")), 0),
            ("redis://ann:s%40cret@host:1/2", "redis://host:1", Some((Some("ann"), "s@cret")), 2),
            ("redis://:s%3Fcret@host:1", "redis://host:1", Some((None, "s?cret")), 0),
            ("redis://a:1,b,[::1]:3/4", "redis://a:1,b:6379,[::1]:3", None, 4),
            ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock", None, 0),
            ("redis+unix:///a%20b/redis.sock", "redis+unix:///a b/redis.sock", None, 0),
        ] {
            for (end, mechanism) in [("", Mechanism::Plain), ("?streams", Mechanism::Streams)] {
                let server = RedisEndpoint::parse(&format!("{url}{end}")).unwrap();
                assert_eq!(server.name, name, "{url}{end}");
                assert_eq!(
                    (server.login(), server.database, server.mechanism),
                    (login, database, mechanism),
                    "{url}{end}"
                );
            }
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_its_password() {
        let long = format!("redis+unix:///{}", "x".repeat(MAX_PATH_BYTES));
        for bad in [
            "redis://",
            "rediss://:secret@host:1?cert=/no/cert",
            "redis://:secret@host:1?ca=/no/ca",
            "redis://:secret@host:1/x",
            "redis://:secret@host:99999",
            "redis://:what?secret@host:1",
            "redis://:secret@host:1?stream",
            "redis://:secret@host:1?streams&db=1",
            "redis://:secret@host:1/1?cluster",
            "redis://:secret@host:1?cluster&sentinel=mine",
            "redis://:secret@host:1?cluster=yes",
            "redis+unix:///run/redis.sock?cluster",
            "redis://:secret@host:1?",
            "redis+unix://",
            "redis+unix:///",
            "redis+unix://relative/redis.sock",
            "redis+unix:///run/redis.sock?lists",
            long.as_str(),
        ] {
            let error = RedisEndpoint::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            let sentence = error.to_string();
            assert!(sentence.contains("?streams") && !sentence.contains("secret"), "{sentence}");
        }
    }
}
