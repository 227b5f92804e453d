//! The address of an exchange: `tcp://HOST:PORT` or `unix:///PATH`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An address that a socket can connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineAddress {
    /// A TCP port.
    Tcp {
        /// The host's name or address, without brackets.
        host: String,
        /// The port; zero, in an address to listen at, for any free port.
        port: u16,
    },
    /// A Unix socket's absolute path.
    Unix(PathBuf),
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address of a line; use tcp://HOST:PORT or unix:///PATH")]
pub struct ParseAddressError(String);

/// Bytes of a Unix socket's path, with its final zero.
const MAX_PATH_BYTES: usize = 108;

impl FromStr for LineAddress {
    type Err = ParseAddressError;

    fn from_str(url: &str) -> Result<Self, ParseAddressError> {
        let read = || match url.split_once("://")? {
            ("unix", path) => (path.starts_with('/') && path.len() < MAX_PATH_BYTES).then(|| Self::Unix(path.into())),
            ("tcp", authority) => {
                let (host, port) = authority.strip_suffix('/').unwrap_or(authority).rsplit_once(':')?;
                let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
                let is_valid =
                    !host.is_empty() && !host.contains(['/', '@']) && (bare.is_some() || !host.contains(':'));
                is_valid.then_some(Self::Tcp { host: bare.unwrap_or(host).to_owned(), port: port.parse().ok()? })
            }
            _ => None,
        };
        read().ok_or_else(|| ParseAddressError(url.to_owned()))
    }
}

impl fmt::Display for LineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
        }
    }
}
