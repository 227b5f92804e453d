//! Errors of the clients, one type per operation.

use tickpath_clock::CalibrationError;

/// Errors of creating a client.
#[derive(Debug, thiserror::Error)]
pub enum WebClientError {
    /// The URL does not name a server.
    #[error("'{url}' does not name a server: {why}; write {form}")]
    Url {
        /// URL without its query.
        url: String,
        /// Reason.
        why: &'static str,
        /// Form of such a URL.
        form: &'static str,
    },
    /// The URL is unencrypted and leads to another host.
    #[error("'{0}' is not encrypted, which is accepted for this host's own loopback only; write wss:// or https://")]
    Unencrypted(String),
    /// TLS cannot be set up.
    #[error("no connection to {url} is possible: {why}")]
    Tls {
        /// URL without its query.
        url: String,
        /// Reason and remedy.
        why: String,
    },
    /// HTTP forbids a character of a header.
    #[error("the header '{0}' has a character that HTTP forbids, in its name or its value; correct it")]
    Header(String),
    /// This host's clock cannot be read.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
}

/// The end of a WebSocket connection, with its reason as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WebSocketLost(pub String);

/// Errors of sending a message. Nothing of the message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketSendError {
    /// The unsent output has no room for the message.
    #[error("the server does not take the output fast enough; send the message again after a poll")]
    Full,
    /// There is no connection.
    #[error("the connection is down; connect first, and wait until it is up")]
    Down,
}

/// The failure of an HTTPS request, with its reason as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(pub String);
