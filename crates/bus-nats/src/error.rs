//! Why a server cannot be used, in sentences, and which of the reasons pass by themselves.

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
use tickpath_tls::why_not;

/// What a server says while somebody logs in, in lower case, that passes by itself. It has no codes for it.
const PASSING: [&str; 4] = [
    "maximum connections exceeded",
    "maximum account active connections exceeded",
    "maximum subscriptions exceeded",
    "server shutdown",
];

/// What it says that has to do with who logs in.
const LOGINS: [&str; 2] = ["user authentication expired", "account authentication expired"];

/// The most characters of a server's own words that a sentence repeats.
const MOST_SAID: usize = 1024;

/// What a URL asks for, by which an error of connecting is understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Somebody is named who logs in.
    pub has_login: bool,
    /// By a file.
    pub has_login_file: bool,
    /// Over TLS.
    pub is_tls: bool,
    /// The names that a certificate must have one of.
    pub hosts: &'a str,
}

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
    /// Nothing comes from it, though it was asked for a sign of life.
    #[error(
        "has said nothing for {} s, and does not answer; a firewall may have forgotten the connection, or the server hangs: \
         it is connected to again",
        .0.as_secs_f64()
    )]
    Silent(Duration),
    /// Somebody else listens.
    #[error("answers, but not as NATS does ({0}); check the port")]
    NotNats(String),
    /// Its first line has no end, and is not read any further.
    #[error(
        "sends a first line of more than {0} MiB, which no NATS server has; the connection is closed: check that a NATS \
         server listens there, and look into its log"
    )]
    Endless(usize),
    /// The login failed.
    #[error("refused the user name or the password; check USER:PASSWORD@ or TOKEN@ in the URL")]
    Login,
    /// There was no login.
    #[error(
        "wants a password; write nats://USER:PASSWORD@HOST:PORT or nats://TOKEN@HOST:PORT, or name a file that logs \
         in: ?creds=FILE or ?nkey=FILE"
    )]
    NoLogin,
    /// The login by a file failed.
    #[error("refused the login by the file; check that its user is one of this server's, and has not expired")]
    LoginFile,
    /// A file that the URL names is of no use.
    #[error("was not asked: {0}")]
    File(String),
    /// There is no TLS, or nobody to trust.
    #[error("is not connected to over TLS: {0}")]
    Tls(String),
    /// It ended while TLS was agreed on, and did not say why.
    #[error(
        "hung up over TLS; look into its log: if it wants to know who comes, name a certificate of its authority and \
         the key: cert=FILE&key=FILE"
    )]
    TlsClosed,
    /// It wants TLS, and nobody has asked for it.
    #[error("wants TLS; add ?tls to the URL, and ca=FILE if its authority is none that this host trusts")]
    WantsTls,
    /// It has no room now.
    #[error("takes nothing now ({0}); try again in a moment, or give it more room")]
    Busy(String),
    /// It keeps nothing.
    #[error("has no JetStream; start nats-server with -js, or leave ?jetstream away")]
    NoJetStream,
    /// It is one of a cluster that has no leader, or none yet.
    #[error(
        "has no JetStream now, because its cluster has no leader; try again in a moment, or start its other servers"
    )]
    NoLeader,
    /// Removed: the stream of the topic or queue, or a consumer that was silent for too long.
    #[error(
        "has lost the topic or queue, or forgotten a reader that stood still; try again, or look who has removed the stream"
    )]
    StreamGone,
    /// The topic is there, but held in another way.
    #[error("holds the topic '{topic}' by the policy '{there}'; open it by that one, or remove it first")]
    OtherPolicy {
        /// Its subject.
        topic: String,
        /// How it is held.
        there: &'static str,
    },
    /// The topic is there, but its messages go at another age.
    #[error("keeps the messages of '{topic}' {there}; open it with that age, or remove it first")]
    OtherAge {
        /// Its subject.
        topic: String,
        /// For how long they are kept.
        there: String,
    },
    /// The topic or queue is there, but kept in another way.
    #[error("keeps '{subject}' {there}, and {wanted} was asked for; write the URL as it is kept, or remove it first")]
    OtherKeeping {
        /// Its subject.
        subject: String,
        /// How it is kept.
        there: String,
        /// How it is to be kept.
        wanted: String,
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

    /// Why the library could not connect.
    pub fn of_connect(error: &async_nats::ConnectError, asked: &Asked<'_>) -> Self {
        match error.kind() {
            ConnectErrorKind::Dns => Self::Unresolved(cause(error)),
            ConnectErrorKind::TimedOut => Self::Timeout,
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => Self::of_login(asked),
            ConnectErrorKind::Io => Self::of_io(error, asked),
            ConnectErrorKind::Tls if asked.is_tls => Self::Tls(cause(error)),
            ConnectErrorKind::Tls => Self::WantsTls,
            ConnectErrorKind::ServerParse | ConnectErrorKind::MaxReconnects => Self::Refused(cause(error)),
        }
    }

    /// True if it can pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens
            | Self::Timeout
            | Self::Silent(_)
            | Self::NoLeader
            | Self::Busy(_)
            | Self::StreamGone
            | Self::TlsClosed
            | Self::Closed
            | Self::Lost(_)
            | Self::NoThread(_) => true,
            Self::NotNats(_)
            | Self::Endless(_)
            | Self::Login
            | Self::NoLogin
            | Self::LoginFile
            | Self::File(_)
            | Self::Tls(_)
            | Self::WantsTls
            | Self::NoJetStream
            | Self::OtherPolicy { .. }
            | Self::OtherAge { .. }
            | Self::OtherKeeping { .. }
            | Self::Future { .. }
            | Self::Refused(_) => false,
        }
    }

    /// True if a new connection may do what the old one could not.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::StreamGone | Self::Closed | Self::Lost(_))
    }

    /// True if another server of the same URL may have what this one has not.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Self::NoLeader | Self::NoJetStream)
    }

    /// True if the server has said that what was published is not: the user has no right to.
    pub fn is_refused_publish(&self) -> bool {
        matches!(self, Self::Refused(what) if what.starts_with("Permissions Violation for Publish"))
    }

    fn of_login(asked: &Asked<'_>) -> Self {
        match (asked.has_login_file, asked.has_login) {
            (true, _) => Self::LoginFile,
            (false, true) => Self::Login,
            (false, false) => Self::NoLogin,
        }
    }

    /// What came instead of the first words of a server, or broke them off.
    fn of_io(error: &async_nats::ConnectError, asked: &Asked<'_>) -> Self {
        let text = cause(error);
        let Some(io) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) else {
            return Self::of_first_words(text, asked);
        };
        if let Some(sentence) = why_not(io, asked.hosts) {
            return if asked.is_tls { Self::Tls(sentence) } else { Self::WantsTls };
        }
        match io.kind() {
            io::ErrorKind::ConnectionRefused => Self::NobodyListens,
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Self::NotNats(text),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                Self::hung_up(asked)
            }
            kind => Self::Lost(io::Error::new(kind, text)),
        }
    }

    fn of_first_words(text: String, asked: &Asked<'_>) -> Self {
        let said = text.to_lowercase();
        let said = said.strip_prefix("nats: ").unwrap_or(&said);
        match said {
            // The last is for who was too slow to log in: on a busy host nobody's fault.
            "expected info, got nothing" | "broken pipe" | "authentication timeout" => Self::hung_up(asked),
            said if PASSING.iter().any(|passing| said.starts_with(passing)) => Self::Busy(said.to_owned()),
            said if LOGINS.contains(&said) => Self::of_login(asked),
            said if said.starts_with("expected info, got") && !text.contains("Error(") => Self::NotNats(text),
            _ => Self::Refused(text),
        }
    }

    fn hung_up(asked: &Asked<'_>) -> Self {
        if asked.is_tls { Self::TlsClosed } else { Self::Closed }
    }

    /// What JetStream answered: what passes by itself, by its codes, and what does not.
    fn of_jetstream(error: &jetstream::Error) -> Self {
        match error.error_code() {
            ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => Self::NoJetStream,
            ErrorCode::CLUSTER_NOT_AVAILABLE | ErrorCode::CLUSTER_NOT_LEADER => Self::NoLeader,
            ErrorCode::STREAM_NOT_FOUND | ErrorCode::CONSUMER_NOT_FOUND => Self::StreamGone,
            // The last one says that a stream which refuses new messages is full, or that its storage failed.
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
            | ErrorCode::STREAM_STORE_FAILED => Self::Busy(said(&error.to_string())),
            _ => Self::Refused(said(&error.to_string())),
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
            _ => match answer(&error) {
                Some(said) => Self::of_jetstream(said),
                None => Self::Refused(error.to_string()),
            },
        }
    }
}

/// Whether it is sure that the message is not kept: nobody was there who could, or JetStream has said no.
pub(crate) fn is_not_stored(error: &StoreError) -> bool {
    match error.kind() {
        StoreErrorKind::StreamNotFound
        | StoreErrorKind::WrongLastMessageId
        | StoreErrorKind::WrongLastSequence
        | StoreErrorKind::MaxAckPending
        | StoreErrorKind::MaxPayloadExceeded => true,
        StoreErrorKind::TimedOut | StoreErrorKind::BrokenPipe => false,
        // One with the same id is being kept just now: that can be this message.
        StoreErrorKind::Other => {
            answer(error).is_some_and(|said| said.error_code() != ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT)
        }
    }
}

/// What JetStream has said to a message.
fn answer(error: &StoreError) -> Option<&jetstream::Error> {
    error.source()?.downcast_ref()
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

impl From<RawMessageError> for ServerError {
    fn from(error: RawMessageError) -> Self {
        match error.kind() {
            RawMessageErrorKind::JetStream(said) => Self::of_jetstream(&said),
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
    said(&text.replace(['\r', '\n'], ""))
}

/// A server's own words as a sentence repeats them: cut, and without the characters that a terminal obeys.
pub(crate) fn said(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().take(MOST_SAID).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_repeats_few_of_a_servers_words_and_none_that_a_terminal_obeys() {
        let told = said(&["\u{1b}[2J\u{7}".to_owned(), "x".repeat(8000)].concat());
        assert!(told.contains("[2J") && !told.chars().any(char::is_control), "{told:?}");
        assert_eq!(told.chars().count(), MOST_SAID);
    }
}
