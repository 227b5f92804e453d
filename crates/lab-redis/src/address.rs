//! Address of a Redis server, and its login.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use redis::{ConnectionAddr, IntoConnectionInfo};
use serde::{Deserialize, Serialize};

use tickpath_lab_harness::LabError;
use tickpath_lab_tools::redis_socket::RedisSocket;

/// Max time for a server to accept, and to answer.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The form of a valid URL.
const URL_FORM: &str =
    "use redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or redis+unix:///PATH/TO/SOCKET, and nothing behind";

/// Address and login of a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BenchAddress {
    host: String,
    port: u16,
    /// A Unix socket, instead of host and port.
    socket: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
    database: i64,
}

impl BenchAddress {
    /// Parses a URL. Errors do not contain the URL, because it may hold a password.
    pub fn parse(url: &str) -> Result<Self, LabError> {
        let refused = |what: &str| LabError::Setting(format!("{what}; {URL_FORM}"));
        if !matches!(url.split_once("://"), Some(("redis" | "redis+unix" | "unix", _))) || url.contains('?') {
            return Err(refused("no URL of a Redis server, or one with a '?' (in a password, write %3F)"));
        }
        let info = url.into_connection_info().map_err(|e| refused(&format!("no URL of a Redis server: {e}")))?;
        let (host, port, socket) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => (host.clone(), *port, None),
            ConnectionAddr::Unix(path) => (String::new(), 0, Some(path.clone())),
            _ => return Err(refused("only plain TCP and Unix sockets are measured here")),
        };
        let login = info.redis_settings();
        Ok(Self {
            host,
            port,
            socket,
            username: login.username().map(str::to_owned),
            password: login.password().map(str::to_owned),
            database: login.db(),
        })
    }

    /// Returns the same server through `proxy`, given as `HOST:PORT`.
    pub fn via_proxy(&self, proxy: &str) -> Self {
        let (host, port) = proxy.rsplit_once(':').expect("a proxy's address has a port");
        Self { host: host.to_owned(), port: port.parse().expect("a proxy's port is a number"), ..self.clone() }
    }

    /// Returns the server's display name, without a password.
    pub fn name(&self) -> String {
        match &self.socket {
            Some(path) => format!("redis+unix://{}", path.display()),
            None => format!("redis://{}", self.endpoint()),
        }
    }

    /// Returns `HOST:PORT` of a server that is reached by TCP.
    pub fn endpoint(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns whether the server needs a password, which redis-benchmark accepts only on its command line, readable by
    /// every user of this host.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns redis-benchmark's arguments for this server, without a password.
    pub fn arguments(&self) -> Vec<String> {
        let target = match &self.socket {
            Some(path) => vec![("-s", path.display().to_string())],
            None => vec![("-h", self.host.clone()), ("-p", self.port.to_string())],
        };
        let login = [(self.database != 0).then(|| ("--dbnum", self.database.to_string()))];
        let all = target.into_iter().chain(login.into_iter().flatten());
        all.flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }

    pub fn login(&self) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        if let Some(password) = &self.password {
            let arguments = ["AUTH".to_owned()].into_iter().chain(self.username.clone()).chain([password.clone()]);
            commands.push(arguments.collect());
        }
        if self.database != 0 {
            commands.push(vec!["SELECT".to_owned(), self.database.to_string()]);
        }
        commands
    }

    /// Opens a socket to the server, which times out after a silence of [`SERVER_TIMEOUT`].
    pub fn connect(&self) -> io::Result<RedisSocket> {
        match &self.socket {
            Some(path) => RedisSocket::unix(path, SERVER_TIMEOUT),
            None => RedisSocket::tcp((self.host.as_str(), self.port), SERVER_TIMEOUT),
        }
    }

    /// Returns an I/O error as a sentence with the remedy.
    pub fn error_sentence(&self, error: &io::Error) -> String {
        let name = self.name();
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => format!(
                "{name} did not answer within {} s; look whether it hangs, and whether the network is there",
                SERVER_TIMEOUT.as_secs()
            ),
            io::ErrorKind::ConnectionRefused => {
                format!("{name} refused the connection; start redis-server, or check host and port")
            }
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                format!("{name} closed the connection; look into its log whether it was ended, and try again")
            }
            io::ErrorKind::InvalidData => format!("{name} answers, but not as Redis does ({error}); check the port"),
            _ => format!("{name} does not answer ({error}); check host and port, and whether the server runs"),
        }
    }
}

impl fmt::Debug for BenchAddress {
    /// Shows the name only: the rest may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_hide_the_password() {
        for (url, name, arguments) in [
            ("redis://127.0.0.1:7000", "redis://127.0.0.1:7000", "-h 127.0.0.1 -p 7000"),
            ("redis://localhost", "redis://localhost:6379", "-h localhost -p 6379"),
            ("redis://[::1]:7000/3", "redis://[::1]:7000", "-h ::1 -p 7000 --dbnum 3"),
            ("redis://ann:secret@h:1", "redis://h:1", "-h h -p 1"),
            ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock", "-s /run/redis.sock"),
        ] {
            let address = BenchAddress::parse(url).unwrap();
            assert_eq!((address.name(), address.arguments().join(" ")), (name.to_owned(), arguments.to_owned()));
            assert!(!format!("{address:?}").contains("secret"), "{url}");
        }
    }

    #[test]
    fn bad_urls_are_refused_without_their_password() {
        for url in ["", "shm://", "redis://", "rediss://:secret@h:1", "redis://:secret@h:1?streams", "h:1"] {
            let sentence = BenchAddress::parse(url).unwrap_err().to_string();
            assert!(sentence.contains("redis+unix://") && !sentence.contains("secret"), "{url}: {sentence}");
        }
    }
}
