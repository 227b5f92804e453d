//! Which server a URL names.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use tickpath_bus_api::ConnectError;

use crate::error::ServerError;

/// The port if the URL has none.
pub(crate) const PORT: u16 = 5672;

/// The user name and the password if the URL has none: what RabbitMQ takes from loopback.
const GUEST: &str = "guest";

/// The virtual host if the URL has none.
const VIRTUAL_HOST: &str = "/";

/// The longest name of a virtual host that AMQP can carry, in bytes.
const MAX_VIRTUAL_HOST_BYTES: usize = 255;

/// Seconds between signs of life on an idle connection; a server that is silent for twice as long is lost.
const HEARTBEAT_S: u16 = 10;

/// A server, and how to log in to it.
pub(crate) struct Server {
    host: String,
    port: u16,
    /// User name and password, if the URL has them.
    login: Option<(String, String)>,
    virtual_host: String,
}

impl Server {
    /// Reads a URL. The URL itself is not in errors, because it may hold a password.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        const FORM: &str = "use amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]";
        read(url).map_err(|what| ConnectError::Url(format!("no RabbitMQ URL: {what}; {FORM}")))
    }

    /// Its name for people, without a password.
    pub fn name(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("amqp://[{host}]:{port}") } else { format!("amqp://{host}:{port}") }
    }

    /// Where it may listen.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, ServerError> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs().map_err(ServerError::Unresolved)?;
        Ok(addresses.collect())
    }

    /// Whether the URL has a user name and a password.
    pub fn has_login(&self) -> bool {
        self.login.is_some()
    }

    /// As the client library wants it.
    pub fn uri(&self) -> AMQPUri {
        let (username, password) = self.login.clone().unwrap_or_else(|| (GUEST.to_owned(), GUEST.to_owned()));
        AMQPUri {
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo { username, password },
                host: self.host.clone(),
                port: self.port,
            },
            vhost: self.virtual_host.clone(),
            query: AMQPQueryString { heartbeat: Some(HEARTBEAT_S), ..AMQPQueryString::default() },
        }
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

fn read(url: &str) -> Result<Server, &'static str> {
    let rest = url.strip_prefix("amqp://").ok_or("only plain TCP is spoken here, which begins with amqp://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, address) = match authority.rsplit_once('@') {
        Some((login, address)) => (Some(read_login(login)?), address),
        None => (None, authority),
    };
    let (host, port) = read_address(address)?;
    Ok(Server { host, port, login, virtual_host: read_virtual_host(path)? })
}

fn read_login(login: &str) -> Result<(String, String), &'static str> {
    let (user, password) = login.split_once(':').ok_or("there is a user name without a password")?;
    let part = |text: &str| decode(text).ok_or("a '%' in the login is not followed by two hexadecimal digits");
    Ok((part(user)?, part(password)?))
}

fn read_address(address: &str) -> Result<(String, u16), &'static str> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("a '[' in the address is not closed")?,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err("there is no host, or none that can be");
    }
    let port = match port.strip_prefix(':') {
        Some(digits) => read_port(digits)?,
        None if port.is_empty() => PORT,
        None => return Err("something other than a port follows the host"),
    };
    Ok((host.to_owned(), port))
}

fn read_port(digits: &str) -> Result<u16, &'static str> {
    digits.parse::<u16>().ok().filter(|&port| port != 0).ok_or("the port is no number from 1 to 65535")
}

fn read_virtual_host(path: &str) -> Result<String, &'static str> {
    if path.is_empty() {
        return Ok(VIRTUAL_HOST.to_owned());
    }
    if path.contains(['/', '?', '#']) {
        return Err("something follows the virtual host; a '/' in its name is written %2F");
    }
    let name = decode(path).ok_or("a '%' in the virtual host is not followed by two hexadecimal digits")?;
    if name.len() > MAX_VIRTUAL_HOST_BYTES {
        return Err("the virtual host is longer than 255 bytes");
    }
    Ok(name)
}

/// The text behind `%20` and its like.
fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        for (url, name, login, virtual_host) in [
            ("amqp://127.0.0.1:5672", "amqp://127.0.0.1:5672", ("guest", "guest"), "/"),
            ("amqp://localhost", "amqp://localhost:5672", ("guest", "guest"), "/"),
            ("amqp://localhost/", "amqp://localhost:5672", ("guest", "guest"), "/"),
            ("amqp://[::1]:7000/%2F", "amqp://[::1]:7000", ("guest", "guest"), "/"),
            ("amqp://[::1]/prod", "amqp://[::1]:5672", ("guest", "guest"), "prod"),
            ("amqp://ann:s%40c:ret@host:1/a%2fb", "amqp://host:1", ("ann", "s@c:ret"), "a/b"),
            ("amqp://ann:s@cret@host:1", "amqp://host:1", ("ann", "s@cret"), "/"),
        ] {
            let server = Server::parse(url).unwrap_or_else(|e| panic!("{url}: {e}"));
            let uri = server.uri();
            let userinfo = (uri.authority.userinfo.username.as_str(), uri.authority.userinfo.password.as_str());
            assert_eq!((server.name().as_str(), userinfo, uri.vhost.as_str()), (name, login, virtual_host), "{url}");
            assert_eq!(server.has_login(), url.contains('@'), "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_telling_the_password() {
        let long = format!("amqp://host/{}", "x".repeat(256));
        for bad in [
            "amqp://",
            "amqp://:5672",
            "amqp:///vhost",
            "amqps://ann:secret@host:1",
            "amqp://ann@host:1",
            "amqp://ann:secret%4@host:1",
            "amqp://ann:secret@host:99999",
            "amqp://ann:secret@host:0",
            "amqp://ann:secret@host:",
            "amqp://ann:secret@::1:5672",
            "amqp://ann:secret@[::1",
            "amqp://ann:secret@[::1]5672",
            "amqp://ann:secret@host:1/a/b",
            "amqp://ann:secret@host:1/a?heartbeat=5",
            "amqp://ann:secret@host:1/%zz",
            "amqp://ho st",
            long.as_str(),
        ] {
            let error = Server::parse(bad).expect_err(bad).to_string();
            assert!(error.contains("use amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]"), "{bad}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
