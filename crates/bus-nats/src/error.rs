//! Why a server cannot be used, in sentences.

use std::error::Error;
use std::io;

use async_nats::jetstream::context::{
    ConsumerInfoError, ConsumerInfoErrorKind, CreateStreamError, CreateStreamErrorKind, GetStreamError,
    GetStreamErrorKind, PublishError as StoreError, PublishErrorKind as StoreErrorKind, RequestError as ApiError,
    RequestErrorKind as ApiErrorKind,
};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{ConnectErrorKind, PublishError, PublishErrorKind, RequestError, RequestErrorKind};

/// Why a server cannot be used. Reads on after the server's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// No such host.
    #[error("its name cannot be resolved ({0}); check the host")]
    Unresolved(String),
    /// Nobody listens.
    #[error("refused the connection; start nats-server, or check host and port")]
    NobodyListens,
    /// Nobody answers.
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// Somebody else listens.
    #[error("answers, but not as NATS does ({0}); check the port")]
    NotNats(String),
    /// The login failed.
    #[error("refused the user name or the password; check USER:PASSWORD@ or TOKEN@ in the URL")]
    Login,
    /// There was no login.
    #[error("wants a password; write nats://USER:PASSWORD@HOST:PORT or nats://TOKEN@HOST:PORT")]
    NoLogin,
    /// It keeps nothing.
    #[error("has no JetStream; start nats-server with -js, or leave ?jetstream away")]
    NoJetStream,
    /// It is one of a cluster that has no leader, or none yet.
    #[error(
        "has no JetStream now, because its cluster has no leader; try again in a moment, or start its other servers"
    )]
    NoLeader,
    /// Somebody has removed what the topic or queue is kept in.
    #[error("has lost the topic or queue; try again, or look who has removed it")]
    StreamGone,
    /// The topic is there, but held in another way.
    #[error("holds the topic '{topic}' by the policy '{there}'; open it by that one, or remove it first")]
    OtherPolicy {
        /// Its subject.
        topic: String,
        /// How it is held.
        there: &'static str,
    },
    /// A subscription cannot start there.
    #[error("message {wanted} is not published yet: the topic has had {published}; start at one of them, or 'now'")]
    Future {
        /// The sequence number asked for.
        wanted: u64,
        /// How many messages were published.
        published: u64,
    },
    /// Anything else that it says.
    #[error("refused: {0}; change its settings, the URL or the name")]
    Refused(String),
    /// It hung up.
    #[error("closed the connection; look into its log, and try again")]
    Closed,
    /// The network failed.
    #[error("lost the connection ({0}); check the network, and try again")]
    Lost(io::Error),
    /// This process failed.
    #[error("was not asked, because this process could start no thread for it ({0}); check its limits")]
    NoThread(io::Error),
}

impl ServerError {
    /// What it means that the client library's side of the connection has ended.
    pub fn closed<E>(_ended: E) -> Self {
        Self::Closed
    }

    /// Why the library could not connect; `has_login` if somebody was named who logs in.
    pub fn of_connect(error: &async_nats::ConnectError, has_login: bool) -> Self {
        match error.kind() {
            ConnectErrorKind::Dns => Self::Unresolved(cause(error)),
            ConnectErrorKind::TimedOut => Self::Timeout,
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation if has_login => Self::Login,
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => Self::NoLogin,
            ConnectErrorKind::Io => Self::of_io(error),
            ConnectErrorKind::ServerParse | ConnectErrorKind::Tls | ConnectErrorKind::MaxReconnects => {
                Self::Refused(cause(error))
            }
        }
    }

    /// True if it can pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens
            | Self::Timeout
            | Self::NoLeader
            | Self::StreamGone
            | Self::Closed
            | Self::Lost(_)
            | Self::NoThread(_) => true,
            Self::NotNats(_)
            | Self::Login
            | Self::NoLogin
            | Self::NoJetStream
            | Self::OtherPolicy { .. }
            | Self::Future { .. }
            | Self::Refused(_) => false,
        }
    }

    /// True if a new connection may do what the old one could not.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::StreamGone | Self::Closed | Self::Lost(_))
    }

    /// What came instead of the first words of a server, or broke them off.
    fn of_io(error: &async_nats::ConnectError) -> Self {
        let text = cause(error);
        let Some(io) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) else {
            return match text.as_str() {
                // The last is for who was too slow to log in: on a busy host nobody's fault.
                "expected INFO, got nothing" | "broken pipe" | "nats: Authentication Timeout" => Self::Closed,
                other if other.starts_with("expected INFO, got") && !other.contains("Error(") => Self::NotNats(text),
                _ => Self::Refused(text),
            };
        };
        match io.kind() {
            io::ErrorKind::ConnectionRefused => Self::NobodyListens,
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Self::NotNats(text),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => Self::Closed,
            kind => Self::Lost(io::Error::new(kind, text)),
        }
    }

    /// What JetStream answered.
    fn of_jetstream(error: &jetstream::Error) -> Self {
        match error.error_code() {
            ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => Self::NoJetStream,
            ErrorCode::CLUSTER_NOT_AVAILABLE | ErrorCode::CLUSTER_NOT_LEADER => Self::NoLeader,
            ErrorCode::STREAM_NOT_FOUND => Self::StreamGone,
            _ => Self::Refused(error.to_string()),
        }
    }

    /// Why JetStream did not answer.
    fn of_silence(error: &(dyn Error + 'static)) -> Self {
        let request = error.source().and_then(|source| source.downcast_ref::<ApiError>());
        match request.map(|request| request.kind()) {
            Some(ApiErrorKind::NoResponders) => Self::NoJetStream,
            Some(ApiErrorKind::TimedOut) => Self::Timeout,
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<PublishError> for ServerError {
    fn from(error: PublishError) -> Self {
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => Self::Refused(error.to_string()),
            PublishErrorKind::InvalidSubject | PublishErrorKind::Send => Self::Closed,
        }
    }
}

impl From<RequestError> for ServerError {
    fn from(error: RequestError) -> Self {
        match error.kind() {
            RequestErrorKind::TimedOut => Self::Timeout,
            RequestErrorKind::NoResponders => Self::StreamGone,
            _ => Self::Closed,
        }
    }
}

impl From<StoreError> for ServerError {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::StreamNotFound => Self::StreamGone,
            StoreErrorKind::TimedOut => Self::Timeout,
            StoreErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<CreateStreamError> for ServerError {
    fn from(error: CreateStreamError) -> Self {
        match error.kind() {
            CreateStreamErrorKind::JetStream(said) => Self::of_jetstream(&said),
            CreateStreamErrorKind::JetStreamUnavailable => Self::NoJetStream,
            CreateStreamErrorKind::TimedOut => Self::Timeout,
            CreateStreamErrorKind::NotFound => Self::StreamGone,
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<GetStreamError> for ServerError {
    fn from(error: GetStreamError) -> Self {
        match error.kind() {
            GetStreamErrorKind::JetStream(said) => Self::of_jetstream(&said),
            _ => Self::of_silence(&error),
        }
    }
}

impl From<ConsumerError> for ServerError {
    fn from(error: ConsumerError) -> Self {
        match error.kind() {
            ConsumerErrorKind::JetStream(said) => Self::of_jetstream(&said),
            ConsumerErrorKind::TimedOut => Self::Timeout,
            _ => Self::of_silence(&error),
        }
    }
}

impl From<ConsumerInfoError> for ServerError {
    fn from(error: ConsumerInfoError) -> Self {
        match error.kind() {
            ConsumerInfoErrorKind::JetStream(said) => Self::of_jetstream(&said),
            ConsumerInfoErrorKind::StreamNotFound | ConsumerInfoErrorKind::NotFound => Self::StreamGone,
            ConsumerInfoErrorKind::NoResponders => Self::NoJetStream,
            ConsumerInfoErrorKind::TimedOut => Self::Timeout,
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// What lies behind an error of the library, on one line.
fn cause(error: &async_nats::ConnectError) -> String {
    let text = error.source().map_or_else(|| error.to_string(), |source| source.to_string());
    text.replace(['\r', '\n'], "")
}
