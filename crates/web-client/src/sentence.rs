//! The reasons of a loss as sentences.

use std::io;

use tickpath_tls::tls_failure;
use tungstenite::Error;
use tungstenite::error::{CapacityError, ProtocolError};
use tungstenite::protocol::CloseFrame;

/// Max characters of a server's text that are shown.
const MAX_CHARACTERS: usize = 200;

/// Returns the reason why a connection to this host was lost.
pub(crate) fn loss(error: &Error, host: &str) -> String {
    match error {
        Error::Io(e) => io_failure(e, host),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => abrupt_end(),
        Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => format!(
            "it sends a message of at least {size} bytes, longer than the limit of {max_size} bytes; raise the limit \
             if such messages are expected"
        ),
        Error::Utf8(_) => "it sends a text message that is not valid UTF-8".to_owned(),
        Error::Protocol(why) => format!("it breaks the WebSocket protocol: {why}"),
        other => other.to_string(),
    }
}

/// Returns the reason why a server did not upgrade the connection to a WebSocket.
pub(crate) fn upgrade_failure(error: &Error, host: &str) -> String {
    match error {
        Error::Http(response) => {
            let body = excerpt(response.body().as_deref().unwrap_or_default());
            let separator = if body.is_empty() { "" } else { ": " };
            format!("it refuses the WebSocket with status {}{separator}{body}", response.status())
        }
        Error::Protocol(ProtocolError::HandshakeIncomplete) => early_end(),
        Error::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => early_end(),
        Error::Protocol(why) => format!("no WebSocket server answers: {why}; check the port and the path"),
        Error::Capacity(_) | Error::AttackAttempt => {
            "no WebSocket server answers: its headers are too long; check the port and the path".to_owned()
        }
        other => loss(other, host),
    }
}

/// Returns the reason why a TLS handshake with this host failed.
pub(crate) fn handshake_failure(error: &io::Error, host: &str) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ended the connection during the TLS handshake; check the port".to_owned(),
        _ => io_failure(error, host),
    }
}

/// Returns the reason that the server gave for the end.
pub(crate) fn close_reason(frame: Option<&CloseFrame>) -> String {
    let Some(CloseFrame { code, reason }) = frame else {
        return "it closed the connection without a code".to_owned();
    };
    let reason = excerpt(reason.as_bytes());
    let separator = if reason.is_empty() { "" } else { ": " };
    format!("it closed the connection with code {code}{separator}{reason}")
}

fn io_failure(error: &io::Error, host: &str) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => abrupt_end(),
        _ => tls_failure(error, host).unwrap_or_else(|| format!("the connection failed: {error}")),
    }
}

fn early_end() -> String {
    "it ended the connection before it answered the WebSocket handshake".to_owned()
}

fn abrupt_end() -> String {
    "it ended the connection without a close frame".to_owned()
}

/// Returns the printable characters of a server's text in one line, [`MAX_CHARACTERS`] at most.
fn excerpt(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MAX_CHARACTERS)]);
    let spaced: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    words.join(" ").chars().take(MAX_CHARACTERS).collect()
}

/// Returns whether a character can change no terminal and no line of a log: no control, no bidirectional mark.
fn is_printable(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\') || c.escape_debug().count() == 1
}
