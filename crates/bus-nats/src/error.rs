//! Errors of a server as sentences, and which of them pass by themselves.

use std::error::Error;
use std::io;
use std::time::Duration;

use async_nats::jetstream::context::{
    ConsumerInfoError, ConsumerInfoErrorKind, CreateStreamError, CreateStreamErrorKind, GetStreamError,
    GetStreamErrorKind, PublishError as StoreError, PublishErrorKind as StoreErrorKind, RequestError as ApiError,
    RequestErrorKind as ApiErrorKind,
};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind, RawMessageError, RawMessageErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{ConnectErrorKind, PublishError, PublishErrorKind, RequestError, RequestErrorKind};
use tickpath_tls::tls_failure;

/// Errors that a server sends during a login, in lower case, and that pass by themselves. NATS has no codes for them.
const TRANSIENT_ERRORS: [&str; 4] = [
    "maximum connections exceeded",
    "maximum account active connections exceeded",
    "maximum subscriptions exceeded",
    "server shutdown",
];

/// Errors that mean that the login itself was refused.
const LOGIN_ERRORS: [&str; 2] = ["user authentication expired", "account authentication expired"];

/// Max characters of a server's own text that a sentence repeats.
const MAX_TEXT_CHARS: usize = 1024;

/// The options of a URL that decide what a connect error means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorContext<'a> {
    pub has_login: bool,
    pub has_login_file: bool,
    pub is_tls: bool,
    /// The host names, of which a certificate must have one.
    pub hosts: &'a str,
}

/// Result of work that needs the server.
pub(crate) type ServerResult<T = ()> = Result<T, NatsServerError>;

/// The reason why a server cannot be used, as a sentence that continues after the server's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NatsServerError {
    #[error("its name cannot be resolved ({0}); check the host")]
    Unresolved(String),
    #[error("refused the connection; start nats-server, or check host and port")]
    ConnectionRefused,
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// The server sent nothing for this long, though it was pinged.
    #[error(
        "sent nothing for {} s, and does not answer; a firewall may have dropped the connection, or the server hangs: \
         the client reconnects",
        .0.as_secs_f64()
    )]
    Silent(Duration),
    #[error("answers, but not as NATS does ({0}); check the port")]
    NotNats(String),
    /// The server's first line exceeds the limit, in MiB, and is not read any further.
    #[error(
        "sends a first line of more than {0} MiB, which no NATS server has; the connection is closed: check that a \
         NATS server listens there, and look into its log"
    )]
    FirstLineTooLong(usize),
    #[error("refused the user name or the password; check USER:PASSWORD@ or TOKEN@ in the URL")]
    LoginRefused,
    #[error(
        "wants a password; write nats://USER:PASSWORD@HOST:PORT or nats://TOKEN@HOST:PORT, or name a file that logs \
         in: ?creds=FILE or ?nkey=FILE"
    )]
    LoginRequired,
    #[error("refused the login by the file; check that its user is one of this server's, and has not expired")]
    LoginFileRefused,
    #[error("was not asked: {0}")]
    File(String),
    #[error("cannot be used over TLS: {0}")]
    Tls(String),
    /// The server closed the connection during the TLS handshake, without a reason.
    #[error(
        "closed the connection in the TLS handshake; look into its log: if it requires a client certificate, name one \
         and its key: cert=FILE&key=FILE"
    )]
    TlsClosed,
    #[error("wants TLS; add ?tls to the URL, and ca=FILE if its authority is none that this host trusts")]
    TlsRequired,
    #[error("takes nothing now ({0}); try again in a moment, or give it more room")]
    Busy(String),
    #[error("has no JetStream; start nats-server with -js, or leave ?jetstream away")]
    NoJetStream,
    #[error(
        "has no JetStream now, because its cluster has no leader; try again in a moment, or start its other servers"
    )]
    NoLeader,
    /// The stream of the topic or queue is removed, or its consumer was removed after it was silent for too long.
    #[error(
        "has lost the topic or queue, or removed the consumer of a paused reader; try again, or find what removed \
         the stream"
    )]
    StreamGone,
    #[error("holds the topic '{topic}' by the policy '{existing}'; open it by that one, or remove it first")]
    PolicyMismatch { topic: String, existing: &'static str },
    #[error("keeps the messages of '{topic}' {existing}; open it with that age, or remove it first")]
    MaxAgeMismatch {
        topic: String,
        /// The age limit that the topic has, in words.
        existing: String,
    },
    #[error(
        "keeps '{subject}' {existing}, and {wanted} was asked for; write the URL as it is kept, or remove it first"
    )]
    StorageMismatch {
        subject: String,
        /// The storage that it has, in words of the URL.
        existing: String,
        wanted: String,
    },
    #[error("message {wanted} is not published yet: the topic has had {published}; start at one of them, or 'now'")]
    FutureSequence { wanted: u64, published: u64 },
    /// Any other refusal, in the server's own text.
    #[error("refused: {0}; change its settings, the URL or the name")]
    Refused(String),
    #[error("closed the connection; look into its log, and try again")]
    Closed,
    #[error("lost the connection ({0}); check the network, and try again")]
    ConnectionLost(io::Error),
    #[error("was not asked, because this process could start no thread for it ({0}); check its limits")]
    NoThread(io::Error),
}

impl NatsServerError {
    /// Returns [`Self::Closed`], for any error that means that the client library's side of the connection has ended.
    pub fn closed<E>(_ended: E) -> Self {
        Self::Closed
    }

    pub fn from_connect(error: &async_nats::ConnectError, context: &ErrorContext<'_>) -> Self {
        match error.kind() {
            ConnectErrorKind::Dns => Self::Unresolved(cause(error)),
            ConnectErrorKind::TimedOut => Self::Timeout,
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => Self::from_login(context),
            ConnectErrorKind::Io => Self::from_io(error, context),
            ConnectErrorKind::Tls if context.is_tls => Self::Tls(cause(error)),
            ConnectErrorKind::Tls => Self::TlsRequired,
            ConnectErrorKind::ServerParse | ConnectErrorKind::MaxReconnects => Self::Refused(cause(error)),
        }
    }

    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::ConnectionRefused
            | Self::Timeout
            | Self::Silent(_)
            | Self::NoLeader
            | Self::Busy(_)
            | Self::StreamGone
            | Self::TlsClosed
            | Self::Closed
            | Self::ConnectionLost(_)
            | Self::NoThread(_) => true,
            Self::NotNats(_)
            | Self::FirstLineTooLong(_)
            | Self::LoginRefused
            | Self::LoginRequired
            | Self::LoginFileRefused
            | Self::File(_)
            | Self::Tls(_)
            | Self::TlsRequired
            | Self::NoJetStream
            | Self::PolicyMismatch { .. }
            | Self::MaxAgeMismatch { .. }
            | Self::StorageMismatch { .. }
            | Self::FutureSequence { .. }
            | Self::Refused(_) => false,
        }
    }

    /// Returns true if the same call may succeed on a new connection.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::StreamGone | Self::Closed | Self::ConnectionLost(_))
    }

    /// Returns true if another server of the same URL may have what this server lacks.
    pub fn is_server_specific(&self) -> bool {
        matches!(self, Self::NoLeader | Self::NoJetStream)
    }

    /// Returns true if the server refused a publish because the user lacks the permission.
    pub fn is_refused_publish(&self) -> bool {
        matches!(self, Self::Refused(what) if what.starts_with("Permissions Violation for Publish"))
    }

    fn from_login(context: &ErrorContext<'_>) -> Self {
        match (context.has_login_file, context.has_login) {
            (true, _) => Self::LoginFileRefused,
            (false, true) => Self::LoginRefused,
            (false, false) => Self::LoginRequired,
        }
    }

    /// Translates an I/O error during the connect: a missing, broken-off or foreign first line, or a failed TLS
    /// handshake.
    fn from_io(error: &async_nats::ConnectError, context: &ErrorContext<'_>) -> Self {
        let text = cause(error);
        let Some(io) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) else {
            return Self::from_first_line(text, context);
        };
        if let Some(sentence) = tls_failure(io, context.hosts) {
            return if context.is_tls { Self::Tls(sentence) } else { Self::TlsRequired };
        }
        match io.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Self::NotNats(text),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                Self::closed_early(context)
            }
            kind => Self::ConnectionLost(io::Error::new(kind, text)),
        }
    }

    fn from_first_line(text: String, context: &ErrorContext<'_>) -> Self {
        let reply = text.to_lowercase();
        let reply = reply.strip_prefix("nats: ").unwrap_or(&reply);
        match reply {
            // The last one is for a client that was too slow to log in, as happens on a busy host.
            "expected info, got nothing" | "broken pipe" | "authentication timeout" => Self::closed_early(context),
            reply if TRANSIENT_ERRORS.iter().any(|passing| reply.starts_with(passing)) => Self::Busy(reply.to_owned()),
            reply if LOGIN_ERRORS.contains(&reply) => Self::from_login(context),
            reply if reply.starts_with("expected info, got") && !text.contains("Error(") => Self::NotNats(text),
            _ => Self::Refused(text),
        }
    }

    fn closed_early(context: &ErrorContext<'_>) -> Self {
        if context.is_tls { Self::TlsClosed } else { Self::Closed }
    }

    /// Translates an answer of JetStream, by its error code.
    fn from_jetstream(error: &jetstream::Error) -> Self {
        match error.error_code() {
            ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => Self::NoJetStream,
            ErrorCode::CLUSTER_NOT_AVAILABLE | ErrorCode::CLUSTER_NOT_LEADER => Self::NoLeader,
            ErrorCode::STREAM_NOT_FOUND | ErrorCode::CONSUMER_NOT_FOUND => Self::StreamGone,
            // The last code means that a stream which refuses new messages is full, or that its storage failed.
            ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
            | ErrorCode::INSUFFICIENT_RESOURCES
            | ErrorCode::MEMORY_RESOURCES_EXCEEDED
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::CLUSTER_NO_PEERS
            | ErrorCode::CLUSTER_INCOMPLETE
            | ErrorCode::CLUSTER_NOT_ASSIGNED
            | ErrorCode::RAFT_GENERAL
            | ErrorCode::STREAM_OFFLINE
            | ErrorCode::CONSUMER_OFFLINE
            | ErrorCode::STREAM_TOO_MANY_REQUESTS
            | ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT
            | ErrorCode::STREAM_STORE_FAILED => Self::Busy(printable_server_text(&error.to_string())),
            _ => Self::Refused(printable_server_text(&error.to_string())),
        }
    }

    fn refused(error: &(dyn Error + 'static)) -> Self {
        Self::Refused(error.to_string())
    }

    /// Translates a failed request to JetStream that has no answer of its own.
    fn from_missing_answer(error: &(dyn Error + 'static)) -> Self {
        let request = error.source().and_then(|source| source.downcast_ref::<ApiError>());
        match request.map(|request| request.kind()) {
            Some(ApiErrorKind::NoResponders) => Self::NoJetStream,
            Some(ApiErrorKind::TimedOut) => Self::Timeout,
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<PublishError> for NatsServerError {
    fn from(error: PublishError) -> Self {
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => Self::Refused(error.to_string()),
            PublishErrorKind::InvalidSubject | PublishErrorKind::Send => Self::Closed,
        }
    }
}

impl From<RequestError> for NatsServerError {
    fn from(error: RequestError) -> Self {
        match error.kind() {
            RequestErrorKind::TimedOut => Self::Timeout,
            RequestErrorKind::NoResponders => Self::StreamGone,
            _ => Self::Closed,
        }
    }
}

impl From<StoreError> for NatsServerError {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::StreamNotFound => Self::StreamGone,
            StoreErrorKind::TimedOut => Self::Timeout,
            StoreErrorKind::BrokenPipe => Self::Closed,
            _ => match answer(&error) {
                Some(reply) => Self::from_jetstream(reply),
                None => Self::Refused(error.to_string()),
            },
        }
    }
}

/// Returns true if the message is surely not stored: no server took it, or JetStream refused it.
pub(crate) fn is_not_stored(error: &StoreError) -> bool {
    match error.kind() {
        StoreErrorKind::StreamNotFound
        | StoreErrorKind::WrongLastMessageId
        | StoreErrorKind::WrongLastSequence
        | StoreErrorKind::MaxAckPending
        | StoreErrorKind::MaxPayloadExceeded => true,
        StoreErrorKind::TimedOut | StoreErrorKind::BrokenPipe => false,
        // A message with the same id is being stored right now, which may be this message.
        StoreErrorKind::Other => {
            answer(error).is_some_and(|reply| reply.error_code() != ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT)
        }
    }
}

/// Returns JetStream's answer to a message, if the error holds one.
fn answer(error: &StoreError) -> Option<&jetstream::Error> {
    error.source()?.downcast_ref()
}

/// Translates errors of requests to JetStream: an answer by its code, the listed kinds, and the others by a function.
macro_rules! jetstream_errors {
    ($($error:ident, $kind:ident { $($($name:ident)|+ => $meaning:ident),* } else $other:ident;)*) => {$(
        impl From<$error> for NatsServerError {
            fn from(error: $error) -> Self {
                match error.kind() {
                    $kind::JetStream(reply) => Self::from_jetstream(&reply),
                    $($($kind::$name)|+ => Self::$meaning,)*
                    _ => Self::$other(&error),
                }
            }
        }
    )*};
}

jetstream_errors! {
    CreateStreamError, CreateStreamErrorKind {
        JetStreamUnavailable => NoJetStream, TimedOut => Timeout, NotFound => StreamGone
    } else refused;
    GetStreamError, GetStreamErrorKind {} else from_missing_answer;
    ConsumerError, ConsumerErrorKind { TimedOut => Timeout } else from_missing_answer;
    RawMessageError, RawMessageErrorKind {} else from_missing_answer;
    ConsumerInfoError, ConsumerInfoErrorKind {
        StreamNotFound | NotFound => StreamGone, NoResponders => NoJetStream, TimedOut => Timeout
    } else refused;
}

/// Returns the cause of a library error, on one line.
fn cause(error: &async_nats::ConnectError) -> String {
    let text = error.source().map_or_else(|| error.to_string(), |source| source.to_string());
    printable_server_text(&text.replace(['\r', '\n'], ""))
}

/// Returns a server's own text fit for a sentence: cut to a length, without the control characters that a terminal
/// obeys.
pub(crate) fn printable_server_text(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().take(MAX_TEXT_CHARS).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_cuts_a_servers_text_and_strips_its_control_characters() {
        let shown = printable_server_text(&["\u{1b}[2J\u{7}".to_owned(), "x".repeat(8000)].concat());
        assert!(shown.contains("[2J") && !shown.chars().any(char::is_control), "{shown:?}");
        assert_eq!(shown.chars().count(), MAX_TEXT_CHARS);
    }
}
