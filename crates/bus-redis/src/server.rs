//! Which server a URL names, and what it can answer.

use std::fmt;
use std::io;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError};
use tickpath_bus_api::ConnectError;

use crate::resp::Malformed;

/// How long a server may take to accept, and to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// A server, and how to log in to it.
pub(crate) struct Server {
    info: ConnectionInfo,
    host: String,
    port: u16,
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
        const FORM: &str = "use redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]";
        let info = url.into_connection_info().map_err(|e| ConnectError::Url(format!("no Redis URL: {e}; {FORM}")))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(ConnectError::Url(format!("only plain TCP is spoken to Redis here; {FORM}")));
        };
        let (host, port) = (host.clone(), *port);
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        Ok(Self { info, host, port })
    }

    /// Its name for people, without a password.
    pub fn name(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("redis://[{host}]:{port}") } else { format!("redis://{host}:{port}") }
    }

    /// Host and port.
    pub fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
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

    /// A connection of the client library, logged in, whose calls end after [`TIMEOUT`].
    pub fn dial(&self) -> Result<redis::Connection, ServerError> {
        let client = redis::Client::open(self.info.clone()).map_err(ServerError::from)?;
        let connection = client.get_connection_with_timeout(TIMEOUT)?;
        connection.set_read_timeout(Some(TIMEOUT))?;
        connection.set_write_timeout(Some(TIMEOUT))?;
        Ok(connection)
    }

    /// An error for who wanted to connect.
    pub fn error(&self, error: &ServerError) -> ConnectError {
        ConnectError::Server { server: self.name(), what: error.to_string() }
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
            // What servers before version 6 say to a wrong password, and all to one that they do not want.
            Some("ERR") if line.contains("invalid password") || line.contains("AUTH") => Self::Login,
            _ => Self::Refused(line.into_owned()),
        }
    }

    /// True if it can pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens
            | Self::Timeout
            | Self::Loading
            | Self::Closed
            | Self::Lost(_) => true,
            Self::NotRedis(_) | Self::Login | Self::NoLogin | Self::Refused(_) => false,
        }
    }
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::NobodyListens,
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

impl From<RedisError> for ServerError {
    fn from(error: RedisError) -> Self {
        if error.is_connection_refusal() {
            Self::NobodyListens
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_io_error() {
            Self::Lost(io::Error::other(error.to_string()))
        } else if error.kind() == ErrorKind::AuthenticationFailed {
            Self::Login
        } else {
            Self::Refused(error.to_string())
        }
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
        ] {
            let server = Server::parse(url).unwrap();
            assert_eq!((server.name().as_str(), server.login(), server.database()), (name, login, database), "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_telling_the_password() {
        for bad in ["redis://", "rediss://:secret@host:1", "redis://:secret@host:1/x", "redis://:secret@host:99999"] {
            let error = Server::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn error_lines_become_sentences() {
        for (line, word) in [
            ("WRONGPASS invalid username-password pair or user is disabled.", "refused the user name"),
            ("ERR invalid password", "refused the user name"),
            ("NOAUTH Authentication required.", "wants a password"),
            ("LOADING Redis is loading the dataset in memory", "loading"),
            ("NOPERM this user has no permissions to access the 'x' channel", "NOPERM"),
        ] {
            let sentence = ServerError::from_line(line.as_bytes()).to_string();
            assert!(sentence.contains(word), "{line}: {sentence}");
        }
    }
}
