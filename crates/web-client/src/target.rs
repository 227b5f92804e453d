//! URLs of web servers: their parts, and their form that may be shown.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tungstenite::http::Uri;

use crate::WebClientError;

/// The two schemes of a protocol, and the form of its URLs.
pub(crate) struct UrlForm {
    secure: &'static str,
    plain: &'static str,
    form: &'static str,
}

/// URLs of WebSockets.
pub(crate) const WEB_SOCKET: UrlForm = UrlForm { secure: "wss", plain: "ws", form: "wss://HOST[:PORT]/PATH" };
/// URLs of HTTPS servers.
pub(crate) const HTTPS: UrlForm = UrlForm { secure: "https", plain: "http", form: "https://HOST[:PORT]" };

/// A checked URL.
pub(crate) struct WebTarget {
    pub(crate) is_secure: bool,
    /// Host name or IP address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) uri: Uri,
    /// URL without its query, which may hold a key.
    pub(crate) shown: String,
}

impl WebTarget {
    pub(crate) fn parse(url: &str, form: &UrlForm) -> Result<Self, WebClientError> {
        let shown = without_secrets(url);
        let refused = |why| WebClientError::Url { url: shown.clone(), why, form: form.form };
        let uri: Uri = url.parse().map_err(|_| refused("it is no URL"))?;
        let is_secure = match uri.scheme_str() {
            Some(scheme) if scheme == form.secure => true,
            Some(scheme) if scheme == form.plain => false,
            _ => return Err(refused("it has another scheme, or none")),
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let bracketed = uri.host().unwrap_or_default();
        let host = bracketed.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(refused("it has no host"));
        }
        if authority.contains('@') {
            return Err(refused("it has a user; send credentials as headers"));
        }
        if uri.path_and_query().is_some_and(|path| !path.as_str().starts_with('/')) {
            return Err(refused("its path does not begin with '/'"));
        }
        let port = match uri.port_u16() {
            Some(port) => port,
            None if authority.len() > bracketed.len() => return Err(refused("its port is no number up to 65535")),
            None if is_secure => 443,
            None => 80,
        };
        if !is_secure && !is_loopback(&host) {
            return Err(WebClientError::Unencrypted(shown));
        }
        Ok(Self { is_secure, host, port, uri, shown })
    }

    /// Looks up the addresses. Without encryption only those of this host count.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.map_err(|e| format!("the name '{}' cannot be looked up: {e}", self.host))?;
        Ok(found.filter(|address| self.is_secure || address.ip().is_loopback()).collect())
    }
}

/// Returns a URL without its query, its fragment and its user.
pub(crate) fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let shown = &url[..end];
    let Some((scheme, rest)) = shown.split_once("://") else { return shown.to_owned() };
    let path = rest.find('/').unwrap_or(rest.len());
    match rest[..path].rfind('@') {
        Some(user_end) => format!("{scheme}://{}", &rest[user_end + 1..]),
        None => shown.to_owned(),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
