//! Configuration of a client.

use std::fmt;

/// Address, user, session and first report of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// URL: `unix:///path/oms.sock`, the same over shared memory `shm+unix:///path/oms.sock`, `tcp://HOST:PORT`, or
    /// encrypted `tls://HOST:PORT`. With TLS, HOST is a name in the OMS's certificate, whose authority this host
    /// trusts, or the PEM file of `?ca=FILE` holds.
    pub url: String,
    /// User of the session.
    pub user: String,
    /// Password of the user.
    pub password: ClientPassword,
    /// Session of the user; none takes the first free session.
    pub session: Option<u16>,
    /// First report to receive.
    pub since: Since,
    /// Silence after which either side takes the other as dead, in milliseconds; zero takes the OMS's choice.
    pub heartbeat_ms: u32,
    /// Max time to connect, the logon included, in milliseconds.
    pub connect_timeout_ms: u32,
    /// True to reconnect after a loss.
    pub reconnect: bool,
    /// True to accept only a drop copy: a user without one is refused, and takes no session.
    pub drop_copy: bool,
}

/// The first report that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The first report of the day.
    Start,
    /// The first new report.
    Now,
    /// A report of a journal that the program has read before, as [`Client::since`](crate::Client::since) returned it.
    Report {
        /// The journal.
        journal: u64,
        /// The report.
        number: u64,
        /// CRC-32C of the message before it; zero if unknown. An OMS whose message there differs reports that.
        last_sum: u32,
    },
}

/// A password, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientPassword(String);

impl Config {
    /// Creates a configuration for new reports, in any session of the user, with reconnects.
    pub fn new(url: impl Into<String>, user: impl Into<String>, password: impl Into<ClientPassword>) -> Self {
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

impl ClientPassword {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for ClientPassword {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ClientPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}
