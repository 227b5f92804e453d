//! The address of an OMS.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::ClientError;

/// An address that a socket can connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OmsAddress {
    Unix(PathBuf),
    /// A Unix socket, and shared-memory lanes from the logon on.
    Lanes(PathBuf),
    Tcp {
        host: String,
        port: u16,
    },
    /// TLS, with the file of the trusted authorities; without a file, the host's own authorities.
    Tls {
        host: String,
        port: u16,
        ca: Option<PathBuf>,
    },
}

impl FromStr for OmsAddress {
    type Err = ClientError;

    fn from_str(url: &str) -> Result<Self, ClientError> {
        let read = || match url.split_once("://")? {
            ("unix", path) => path.starts_with('/').then(|| Self::Unix(path.into())),
            ("shm+unix", path) => path.starts_with('/').then(|| Self::Lanes(path.into())),
            ("tcp", address) => host_and_port(address).map(|(host, port)| Self::Tcp { host, port }),
            ("tls", address) => {
                let (address, ca) = address.split_once('?').map_or((address, None), |(before, ca)| (before, Some(ca)));
                let ca = ca.map(|rest| rest.strip_prefix("ca=").filter(|file| !file.is_empty()).map(Into::into));
                let (host, port) = host_and_port(address)?;
                Some(Self::Tls { host, port, ca: ca.map_or(Some(None), |ca| ca.map(Some))? })
            }
            _ => None,
        };
        read().ok_or_else(|| ClientError::Address(without_login(url)))
    }
}

impl fmt::Display for OmsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Lanes(path) => write!(f, "shm+unix://{}", path.display()),
            Self::Tcp { host, port } => write_address(f, "tcp", host, *port),
            Self::Tls { host, port, .. } => write_address(f, "tls", host, *port),
        }
    }
}

fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.strip_suffix('/').unwrap_or(address).rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let sound = !host.is_empty() && !host.contains(['/', '@']) && (bare.is_some() || !host.contains(':'));
    sound.then_some((bare.unwrap_or(host).to_owned(), port.parse().ok()?))
}

fn write_address(f: &mut fmt::Formatter<'_>, scheme: &str, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') { write!(f, "{scheme}://[{host}]:{port}") } else { write!(f, "{scheme}://{host}:{port}") }
}

/// Removes a login from a URL for an error message, because the user may have written a password there.
fn without_login(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, address)) => format!("...@{address}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (url, written) in [
            ("unix:///run/oms.sock", "unix:///run/oms.sock"),
            ("shm+unix:///run/oms.sock", "shm+unix:///run/oms.sock"),
            ("tcp://127.0.0.1:7001", "tcp://127.0.0.1:7001"),
            ("tcp://desk-1.example:7001/", "tcp://desk-1.example:7001"),
            ("tcp://[::1]:7001", "tcp://[::1]:7001"),
            ("tls://desk-1.example:7001", "tls://desk-1.example:7001"),
            ("tls://[::1]:7001?ca=/etc/desk/ca.pem", "tls://[::1]:7001"),
        ] {
            let address: OmsAddress = url.parse().unwrap();
            assert_eq!(address.to_string(), written);
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_the_forms() {
        for url in [
            "",
            "oms.sock",
            "unix://oms.sock",
            "tcp://",
            "tcp://host",
            "tcp://:1",
            "tcp://host:0x1",
            "tcp://host:65536",
            "tcp://::1:7001",
            "tcp://host/a:1",
            "redis://host:1",
            "tls://host",
            "tls://host:1?ca=",
            "tls://host:1?key=file",
            "tcp://host:1?ca=file",
            "tcp://anna:horse@host:1",
        ] {
            let error = url.parse::<OmsAddress>().unwrap_err().to_string();
            assert!(error.contains("tcp://HOST:PORT") && !error.contains("horse"), "{error}");
        }
    }
}
