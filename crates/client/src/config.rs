//! How a client comes to its session.

use std::fmt;

/// Whom to connect to, as whom, and from where on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `unix:///path/oms.sock`, the same over shared memory `shm+unix:///path/oms.sock`, `tcp://HOST:PORT`, or encrypted `tls://HOST:PORT`: HOST is a name in the OMS's
    /// certificate, which is of an authority that this host trusts; or that `?ca=FILE` has, a PEM.
    pub url: String,
    /// The user.
    pub user: String,
    /// What proves it.
    pub password: Password,
    /// Which of the user's sessions; the first that nobody uses if it is none.
    pub session: Option<u16>,
    /// The reports to begin with.
    pub since: Since,
    /// After so long without a word either side takes the other for gone, in milliseconds; zero for the OMS's choice.
    pub heartbeat_ms: u32,
    /// How long making a connection may take, the logon included, in milliseconds.
    pub connect_timeout_ms: u32,
    /// Whether a lost connection is made again.
    pub reconnect: bool,
    /// Whether only a drop copy will do: a user who has none is refused, and takes no session.
    pub drop_copy: bool,
}

/// The first report that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The first of the day.
    Start,
    /// The first that is new.
    Now,
    /// One of a journal that the user's program has read before, as [`Client::since`](crate::Client::since) tells it.
    Report {
        /// The journal.
        journal: u64,
        /// The report.
        number: u64,
        /// The CRC-32C of the message of the one before it; zero if that is not known. An OMS that has said another one
        /// there tells it.
        last_sum: u32,
    },
}

/// A password, which is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Config {
    /// A client of what is new, in any of the user's sessions, that goes on over losses.
    pub fn new(url: impl Into<String>, user: impl Into<String>, password: impl Into<Password>) -> Self {
        Self {
            url: url.into(),
            user: user.into(),
            password: password.into(),
            session: None,
            since: Since::Now,
            heartbeat_ms: 0,
            connect_timeout_ms: 5_000,
            reconnect: true,
            drop_copy: false,
        }
    }
}

impl Password {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Password {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}
