//! Which server a URL names, and how to log in to it.

use std::fmt;

use async_nats::{ConnectOptions, ServerAddr};
use tickpath_bus_api::ConnectError;

use crate::error::ServerError;

/// A server, and how to log in to it.
pub(crate) struct Server {
    name: String,
    host: String,
    port: u16,
    login: Option<Login>,
    is_jetstream: bool,
}

enum Login {
    Token(String),
    User { name: String, password: String },
}

impl Server {
    /// Reads a URL. Neither the password nor the token is in errors.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let address: ServerAddr = url.parse().map_err(|e: std::io::Error| wrong(&e.to_string()))?;
        if address.scheme() != "nats" {
            return Err(wrong("only plain TCP is spoken to NATS here"));
        }
        let (host, port) = (address.host().to_owned(), address.port());
        if host.is_empty() {
            return Err(wrong("the NATS URL names no host"));
        }
        let login = read_login(&address)?;
        let is_jetstream = read_rest(address)?;
        let name = if host.contains(':') { format!("nats://[{host}]:{port}") } else { format!("nats://{host}:{port}") };
        Ok(Self { name, host, port, login, is_jetstream })
    }

    /// Its name for people, which is also its address: a URL without a password.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Host and port.
    pub fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Topics and queues are kept in JetStream.
    pub fn is_jetstream(&self) -> bool {
        self.is_jetstream
    }

    /// Somebody is named who logs in.
    pub fn has_login(&self) -> bool {
        self.login.is_some()
    }

    /// The client library's options, with the login.
    pub fn options(&self) -> ConnectOptions {
        match &self.login {
            None => ConnectOptions::new(),
            Some(Login::Token(token)) => ConnectOptions::with_token(token.clone()),
            Some(Login::User { name, password }) => {
                ConnectOptions::with_user_and_password(name.clone(), password.clone())
            }
        }
    }

    /// An error for who wanted to connect.
    pub fn error(&self, error: &ServerError) -> ConnectError {
        match error {
            ServerError::Future { .. } => ConnectError::Other(error.to_string().into()),
            _ => ConnectError::Server { server: self.name.clone(), what: error.to_string() },
        }
    }
}

impl fmt::Debug for Server {
    /// The name alone: the rest may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn wrong(what: &str) -> ConnectError {
    const FORM: &str = "use nats://[USER:PASSWORD@]HOST:PORT[?jetstream] or nats://TOKEN@HOST:PORT[?jetstream]";
    ConnectError::Url(format!("{what}; {FORM}"))
}

fn read_login(address: &ServerAddr) -> Result<Option<Login>, ConnectError> {
    let decoded = |text| decode(text).ok_or_else(|| wrong("a '%' in a NATS URL begins two hexadecimal digits"));
    Ok(match (address.username(), address.password()) {
        (None, None) => None,
        (None, Some(_)) => return Err(wrong("a password in a NATS URL needs a user name")),
        (Some(token), None) => Some(Login::Token(decoded(token)?)),
        (Some(name), Some(password)) => Some(Login::User { name: decoded(name)?, password: decoded(password)? }),
    })
}

/// Whether `?jetstream` follows the port; anything else is refused.
fn read_rest(address: ServerAddr) -> Result<bool, ConnectError> {
    let url = address.into_inner();
    if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
        return Err(wrong("nothing but ?jetstream can follow the port of a NATS URL"));
    }
    match url.query() {
        None => Ok(false),
        Some("jetstream") => Ok(true),
        // What stands there is not repeated: it may be a password that has a '?'.
        Some(_) => Err(wrong("behind '?' a NATS URL has only 'jetstream' (in a password, write %3F)")),
    }
}

/// The text that `%` escapes stand for; none if it is no text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, tail) = tail.split_first_chunk::<2>()?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        for (url, name, login, is_jetstream) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222", None, false),
            ("nats://localhost", "nats://localhost:4222", None, false),
            ("nats://localhost:7000/?jetstream", "nats://localhost:7000", None, true),
            ("nats://[::1]:7000?jetstream", "nats://[::1]:7000", None, true),
            ("nats://secret@host:1", "nats://host:1", Some(("secret", None)), false),
            ("nats://ann:s%40cret@host:1?jetstream", "nats://host:1", Some(("ann", Some("s@cret"))), true),
        ] {
            let server = Server::parse(url).unwrap();
            let found = server.login.as_ref().map(|login| match login {
                Login::Token(token) => (token.as_str(), None),
                Login::User { name, password } => (name.as_str(), Some(password.as_str())),
            });
            assert_eq!((server.name(), found, server.is_jetstream()), (name, login, is_jetstream), "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_with_the_form_and_without_the_password() {
        for bad in [
            "nats://",
            "tls://ann:secret@host:1",
            "nats://:secret@host:1",
            "nats://ann:secret@host:99999",
            "nats://ann:secret%4@host:1",
            "nats://ann:secret@host:1/topic",
            "nats://ann:secret@host:1?streams",
            "nats://ann:secret@host:1?jetstream=no",
        ] {
            let error = Server::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            let sentence = error.to_string();
            assert!(sentence.contains("HOST:PORT[?jetstream]") && !sentence.contains("secret"), "{bad}: {sentence}");
        }
    }
}
