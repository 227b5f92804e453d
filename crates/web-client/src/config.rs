//! Parameters of a WebSocket connection.

use std::fmt;
use std::path::PathBuf;

use crate::target::without_secrets;

/// Parameters of a WebSocket connection.
#[derive(Clone, PartialEq, Eq)]
pub struct WebSocketConfig {
    /// `wss://HOST[:PORT]/PATH`, or `ws://` for this host's own loopback.
    pub url: String,
    /// PEM file of the trusted authorities; the host's own if none.
    pub ca: Option<PathBuf>,
    /// Further headers of the upgrade request, names and values.
    pub headers: Vec<(String, String)>,
    /// Max size of a received message in bytes.
    pub max_message_bytes: usize,
    /// Max time of a connect in nanoseconds: TCP, TLS and the upgrade together, without the name lookup.
    pub connect_timeout_ns: u64,
}

impl WebSocketConfig {
    /// Returns the parameters for a URL: no file of authorities, no headers, messages up to 16 MiB, ten seconds to
    /// connect.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ca: None,
            headers: Vec::new(),
            max_message_bytes: 16 << 20,
            connect_timeout_ns: 10_000_000_000,
        }
    }
}

impl fmt::Debug for WebSocketConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header_names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("WebSocketConfig")
            .field("url", &without_secrets(&self.url))
            .field("ca", &self.ca)
            .field("headers", &header_names)
            .field("max_message_bytes", &self.max_message_bytes)
            .field("connect_timeout_ns", &self.connect_timeout_ns)
            .finish()
    }
}
