//! Which server a URL names, and what it can answer.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use tickpath_bus_api::{ConnectError, ReceiveError};
use tickpath_clock::HostClock;

use crate::resp::Malformed;

/// How long a server may take to accept, and to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// What a URL of this transport looks like.
const FORM: &str =
    "use redis://[USER:PASSWORD@]HOST:PORT[/DATABASE][?streams] or redis+unix:///PATH/TO/SOCKET[?streams]";

/// The longest path that a Unix socket can have, in bytes.
const MAX_PATH_BYTES: usize = 107;

/// A server, how to log in to it, and what to use there.
pub(crate) struct Server {
    info: ConnectionInfo,
    address: Address,
    mechanism: Mechanism,
    clock: HostClock,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// What carries topics and queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// Publish and subscribe, and lists.
    Plain,
    /// Streams for both.
    Streams,
}

/// Why a server cannot be used. Reads on after the server's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// No such host.
    #[error("its name cannot be resolved ({0}); check the host")]
    Unresolved(io::Error),
    /// Nobody listens.
    #[error("refused the connection; start redis-server, or check host and port")]
    NobodyListens,
    /// No such Unix socket.
    #[error("has no socket there; start redis-server with 'unixsocket PATH', or check the path")]
    NoSocket,
    /// Somebody else's Unix socket.
    #[error("does not let this user open its socket; set 'unixsocketperm' of redis-server, or run as its user")]
    Forbidden,
    /// Nobody answers.
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// Somebody else listens.
    #[error("answers, but not as Redis does ({0}); check the port")]
    NotRedis(String),
    /// The login failed.
    #[error("refused the user name or the password; check USER:PASSWORD@ in the URL")]
    Login,
    /// There was no login.
    #[error("wants a password; write redis://:PASSWORD@HOST:PORT or redis://USER:PASSWORD@HOST:PORT")]
    NoLogin,
    /// It starts.
    #[error("is still loading its data; try again when it has finished")]
    Loading,
    /// It is a replica, set to answer nothing meanwhile.
    #[error("has lost its master, and answers nothing without it; try again when it is back, or use the master")]
    MasterDown,
    /// Somebody's script runs, and nobody else's command until it ends.
    #[error("is busy with a script; try again when it has ended, or end it by SCRIPT KILL")]
    Busy,
    /// Somebody removed the queue under a puller.
    #[error("has the queue no more ({0}); pull again, and it is made anew")]
    NoQueue(String),
    /// Anything else that it says.
    #[error("refused: {0}; change the server's settings, or the URL")]
    Refused(String),
    /// It hung up.
    #[error("closed the connection; look into its log, and try again")]
    Closed,
    /// The network failed.
    #[error("lost the connection ({0}); check the network, and try again")]
    Lost(io::Error),
}

impl Server {
    /// Reads a URL. The URL itself is not in errors, because it may hold a password.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let refused = |what: &str| ConnectError::Url(format!("{what}; {FORM}"));
        let (place, mechanism) = match url.split_once('?') {
            None => (url, Mechanism::Plain),
            Some((place, "streams")) => (place, Mechanism::Streams),
            // What stands there is not repeated: it may be a password that has a '?'.
            Some(_) => return Err(refused("behind '?' a Redis URL has only 'streams' (in a password, write %3F)")),
        };
        let info = place.into_connection_info().map_err(|e| refused(&format!("no Redis URL: {e}")))?;
        let address = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Address::Tcp { host: host.clone(), port: *port },
            ConnectionAddr::Unix(path) if path.file_name().is_none() => {
                return Err(refused("no path to a Unix socket"));
            }
            ConnectionAddr::Unix(path) if path.as_os_str().len() > MAX_PATH_BYTES => {
                return Err(refused(&format!("the path of a Unix socket has {MAX_PATH_BYTES} bytes at most")));
            }
            ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return Err(refused("only plain TCP and Unix sockets are spoken to Redis here")),
        };
        if info.redis_settings().username().is_some() && info.redis_settings().password().is_none() {
            return Err(refused("there is a user name without a password (one without any is written USER:@)"));
        }
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        Ok(Self { info, address, mechanism, clock })
    }

    /// Its name for people, without a password.
    pub fn name(&self) -> String {
        match &self.address {
            Address::Tcp { host, port } if host.contains(':') => format!("redis://[{host}]:{port}"),
            Address::Tcp { host, port } => format!("redis://{host}:{port}"),
            Address::Unix(path) => format!("redis+unix://{}", path.display()),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What carries topics and queues there.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// What waiting for it goes by.
    pub fn clock(&self) -> HostClock {
        self.clock
    }

    /// User name, if any, and password.
    pub fn login(&self) -> Option<(Option<&str>, &str)> {
        let settings = self.info.redis_settings();
        settings.password().map(|password| (settings.username(), password))
    }

    /// The number of the database; channels are the same in all.
    pub fn database(&self) -> i64 {
        self.info.redis_settings().db()
    }

    /// An error for who wanted to connect.
    pub fn error(&self, error: &ServerError) -> ConnectError {
        ConnectError::Server { server: self.name(), what: error.to_string() }
    }

    /// An error for who receives or pulls.
    pub fn receive_error(&self, error: &ServerError) -> ReceiveError {
        ReceiveError::Other(format!("{} {error}", self.name()).into())
    }
}

impl fmt::Debug for Server {
    /// The name alone: the rest may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl ServerError {
    /// What an error line means.
    pub fn from_line(line: &[u8]) -> Self {
        let line = String::from_utf8_lossy(line);
        match line.split_whitespace().next() {
            Some("WRONGPASS") => Self::Login,
            Some("NOAUTH") => Self::NoLogin,
            Some("LOADING") => Self::Loading,
            Some("MASTERDOWN") => Self::MasterDown,
            Some("BUSY") => Self::Busy,
            Some("NOGROUP" | "UNBLOCKED") => Self::NoQueue(line.into_owned()),
            // What servers before version 6 say to a wrong password, and all to one that they do not want.
            Some("ERR") if line.contains("invalid password") || line.contains("AUTH") => Self::Login,
            _ => Self::Refused(line.into_owned()),
        }
    }

    /// True if the server answers everything so, and something else when it is ready.
    pub fn is_not_ready(&self) -> bool {
        matches!(self, Self::Loading | Self::MasterDown | Self::Busy)
    }

    /// True if it can pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens
            | Self::NoSocket
            | Self::Timeout
            | Self::Loading
            | Self::MasterDown
            | Self::Busy
            | Self::NoQueue(_)
            | Self::Closed
            | Self::Lost(_) => true,
            Self::Forbidden | Self::NotRedis(_) | Self::Login | Self::NoLogin | Self::Refused(_) => false,
        }
    }
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::NobodyListens,
            io::ErrorKind::NotFound => Self::NoSocket,
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Timeout,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Lost(error),
        }
    }
}

impl From<Malformed> for ServerError {
    fn from(error: Malformed) -> Self {
        Self::NotRedis(error.to_string())
    }
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
            ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock", None, 0),
            ("redis+unix:///a%20b/redis.sock", "redis+unix:///a b/redis.sock", None, 0),
        ] {
            for (end, mechanism) in [("", Mechanism::Plain), ("?streams", Mechanism::Streams)] {
                let server = Server::parse(&format!("{url}{end}")).unwrap();
                assert_eq!(server.name(), name, "{url}{end}");
                assert_eq!(
                    (server.login(), server.database(), server.mechanism()),
                    (login, database, mechanism),
                    "{url}{end}"
                );
            }
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_telling_the_password() {
        let long = format!("redis+unix:///{}", "x".repeat(MAX_PATH_BYTES));
        for bad in [
            "redis://",
            "rediss://:secret@host:1",
            "redis://:secret@host:1/x",
            "redis://:secret@host:99999",
            "redis://:what?secret@host:1",
            "redis://:secret@host:1?stream",
            "redis://:secret@host:1?streams&db=1",
            "redis://:secret@host:1?",
            "redis+unix://",
            "redis+unix:///",
            "redis+unix://relative/redis.sock",
            "redis+unix:///run/redis.sock?lists",
            long.as_str(),
        ] {
            let error = Server::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            let sentence = error.to_string();
            assert!(sentence.contains("?streams") && !sentence.contains("secret"), "{sentence}");
        }
    }

    #[test]
    fn error_lines_become_sentences() {
        for (line, word) in [
            ("WRONGPASS invalid username-password pair or user is disabled.", "refused the user name"),
            ("ERR invalid password", "refused the user name"),
            ("NOAUTH Authentication required.", "wants a password"),
            ("LOADING Redis is loading the dataset in memory", "loading"),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "lost its master"),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "SCRIPT KILL"),
            ("READONLY You can't write against a read only replica.", "refused: READONLY"),
            ("NOGROUP No such key 'x' or consumer group 'tickpath'", "pull again"),
            ("NOPERM this user has no permissions to access the 'x' channel", "NOPERM"),
        ] {
            let sentence = ServerError::from_line(line.as_bytes()).to_string();
            assert!(sentence.contains(word), "{line}: {sentence}");
        }
    }
}
