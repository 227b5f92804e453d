//! Errors from servers and from the client library: their meaning, and their text.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use tickpath_bus_api::Fate;

use crate::retention::TopicRetention;

/// Meaning of an error for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// Nothing is done; the same request can succeed later.
    Retryable,
    /// The request may be done, now or later: no answer came, or an ambiguous one.
    InDoubt,
    /// Nothing is done, and retrying is futile until the configuration changes.
    Permanent,
}

/// Returns the meaning of an error, from the only table of error codes; none for a code that is not in it.
pub(crate) fn classify(error: &KafkaError) -> Option<ErrorMeaning> {
    match code_of(error)? {
        // The server has refused it for now, or it was never sent.
        Code::NotEnoughReplicas
        | Code::LeaderNotAvailable
        | Code::NotLeaderForPartition
        | Code::PreferredLeaderNotAvailable
        | Code::EligibleLeadersNotAvailable
        | Code::BrokerNotAvailable
        | Code::ReplicaNotAvailable
        | Code::OffsetNotAvailable
        | Code::FencedLeaderEpoch
        | Code::UnknownLeaderEpoch
        | Code::CoordinatorLoadInProgress
        | Code::CoordinatorNotAvailable
        | Code::NotCoordinator
        | Code::NotController
        | Code::ReassignmentInProgress
        | Code::RebalanceInProgress
        | Code::ThrottlingQuotaExceeded
        | Code::Resolve
        | Code::QueueFull => Some(ErrorMeaning::Retryable),
        // `PurgeQueue` too: messages sent before a connection broke wait in the queue for a resend.
        Code::MessageTimedOut
        | Code::OperationTimedOut
        | Code::RequestTimedOut
        | Code::TimedOutQueue
        | Code::WaitingForCoordinator
        | Code::NetworkException
        | Code::BrokerTransportFailure
        | Code::AllBrokersDown
        | Code::PurgeQueue
        | Code::PurgeInflight
        | Code::NotEnoughReplicasAfterAppend
        | Code::KafkaStorageError
        | Code::OutOfOrderSequenceNumber
        | Code::DuplicateSequenceNumber
        | Code::UnknownProducerId
        | Code::InvalidProducerEpoch
        | Code::ProducerFenced
        | Code::Fenced
        | Code::GaplessGuarantee
        | Code::Fatal
        | Code::BadMessage => Some(ErrorMeaning::InDoubt),
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::SSL
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SecurityDisabled
        | Code::UnknownTopicOrPartition
        | Code::UnknownTopic
        | Code::UnknownPartition
        | Code::UnknownTopicId
        | Code::InvalidTopic
        | Code::InvalidReplicationFactor
        | Code::PolicyViolation
        | Code::InvalidConfig
        | Code::UnsupportedVersion
        | Code::UnsupportedCompressionType
        | Code::BadCompression
        | Code::InvalidMessage
        | Code::InvalidMessageSize
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::MessageSizeTooLarge
        | Code::MessageBatchTooLarge => Some(ErrorMeaning::Permanent),
        _ => None,
    }
}

/// Returns the fate of a message that came back with this error. The client library resends after a lost answer and
/// reports the last answer only, so an earlier copy may be in the log whatever the error is.
pub(crate) fn fate(error: &KafkaError) -> Fate {
    match code_of(error) {
        // No copy of such a message is accepted.
        Some(Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidRecord) => Fate::NotPublished,
        _ => Fate::Unknown,
    }
}

/// Returns whether the same request can succeed later, if only the network or the servers change.
pub(crate) fn is_transient(error: &KafkaError) -> bool {
    matches!(classify(error), Some(ErrorMeaning::Retryable | ErrorMeaning::InDoubt))
}

/// Result of work that needs the server.
pub(crate) type ServerResult<T = ()> = Result<T, KafkaServerError>;

/// Reason for which a server cannot be used. Its text follows the server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KafkaServerError {
    #[error("its name cannot be resolved ({0}); check the host, and what the server says in advertised.listeners")]
    Unresolved(String),
    #[error("refused the connection to {0}; start Kafka, or check host and port")]
    ConnectionRefused(String),
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// No acknowledgement came in time.
    #[error("did not acknowledge within 30 s; look whether a leader is being elected, or replicas are missing")]
    AckTimeout,
    #[error("answers, but not as Kafka does; check the port, or ask for TLS if it speaks that: ?tls")]
    NotKafka,
    #[error(
        "closed the connection; if it wants TLS or a login, put them into the URL \
         (kafka://USER:PASSWORD@HOST:PORT?tls), else look into its log and try again"
    )]
    Closed,
    /// The client library reports no reason: it gives none for a silent server, nor for one that closes at once.
    #[error(
        "closed the connection or did not answer in time; check host and port, and whether the server hangs; if it \
         wants TLS or a login, put them into the URL (kafka://USER:PASSWORD@HOST:PORT?tls), else try again"
    )]
    ClosedOrSilent,
    /// The server closed the connection before the TLS handshake was done: it just stopped, or does not speak TLS.
    #[error(
        "closed the connection in the middle of the TLS handshake; try again, and if that lasts, it speaks no TLS \
         there: ask for none, or check the port for one that does"
    )]
    TlsInterrupted,
    #[error("lost the connection ({0}); check the network, and try again")]
    ConnectionLost(String),
    /// The TLS handshake failed, or the peer is not the expected one. The text is a sentence of its own.
    #[error("{0}")]
    Tls(String),
    #[error("refused the login ({0}); check user and password, and the mechanism: sasl=MECHANISM in the URL")]
    LoginRefused(String),
    #[error("asks for no login there; leave user and password out of the URL, or use another port of it")]
    LoginUnsupported,
    #[error("does not take a login of this kind; name one of its own with 'sasl=' in the URL: {0}")]
    UnsupportedMechanism(String),
    /// The client library cannot decode a message of a batch.
    #[error(
        "has a message that cannot be read here ({0}); let its publishers, and compression.type of the topic, use \
         none, gzip, snappy or lz4, or start behind it"
    )]
    Unreadable(String),
    #[error("has no such topic any more; open it again, which makes it anew")]
    TopicGone,
    /// Kafka treats the name as the same as another topic's.
    #[error("refused the name; it takes names that differ only in '.' and '_' for the same: use another one")]
    NameConflict,
    #[error("takes no message of this size; raise max.message.bytes of the topic")]
    MessageTooLarge,
    #[error("still has the places of this queue's pullers; drop the pullers, and remove it again")]
    QueueInUse,
    #[error(
        "keeps the topic '{topic}' on {has} servers, not on the {wanted} that 'replicas' asks for; \
         give it more replicas there, use another name, or ask for fewer"
    )]
    TooFewReplicas {
        topic: String,
        /// Number of replicas of the partition that has fewest.
        has: usize,
        wanted: usize,
    },
    #[error(
        "keeps of the topic '{topic}' {has}, not {wanted}, by its cleanup.policy, retention.bytes and retention.ms; \
         publish as it is there, change it there, or use another name"
    )]
    RetentionMismatch { topic: String, has: TopicRetention, wanted: TopicRetention },
    #[error("does not report the retention of the topic '{0}'; give this client the right DescribeConfigs on it")]
    RetentionUnreadable(String),
    #[error("has fewer servers than replicas are asked for; start more of them, or ask for fewer: replicas=N")]
    TooFewServers,
    /// The server is not ready, by its own error.
    #[error("takes nothing now: {0}; try again, and look into its log if that lasts")]
    NotReady(String),
    #[error("refused: {0}; change the server's settings, or the rights of this client")]
    Refused(String),
}

/// OpenSSL's texts for bytes that are not TLS.
const NOT_TLS_TEXTS: [&str; 3] = ["wrong version number", "packet length too long", "http request"];

/// Texts of a closed connection. A server that wants a login closes it on a client without one, and a server without
/// TLS on a TLS greeting.
const CLOSED_TEXTS: [&str; 4] = ["unexpected eof", "Disconnected", "Connection reset", "Broken pipe"];

impl KafkaServerError {
    /// Converts a connection error of the client library, if it is a reason. The text begins with the address.
    pub fn from_connection(code: Code, text: &str) -> Option<Self> {
        let text = text.split_once("://").map_or(text, |(_protocol, rest)| rest);
        let address = text.split_once('/').map_or(text, |(address, _)| address).to_owned();
        match code {
            Code::Resolve => Some(Self::Unresolved(text.to_owned())),
            Code::BadMessage | Code::Underflow => Some(Self::NotKafka),
            Code::Authentication | Code::SaslAuthenticationFailed => Some(Self::from_login(text)),
            Code::SSL if NOT_TLS_TEXTS.iter().any(|sign| text.contains(sign)) => {
                let sentence = "what answers there speaks no TLS; ask for none, or check the port for one that does";
                Some(Self::Tls(sentence.to_owned()))
            }
            Code::SSL | Code::BrokerTransportFailure if CLOSED_TEXTS.iter().any(|sign| text.contains(sign)) => {
                Some(if text.contains("handshake") { Self::TlsInterrupted } else { Self::Closed })
            }
            Code::SSL if text.contains("SSL transport error") => Some(Self::ConnectionLost(text.to_owned())),
            Code::SSL => Some(Self::Tls(format!("there is no TLS with it ({})", reason(text)))),
            Code::BrokerTransportFailure if text.contains("refused") => Some(Self::ConnectionRefused(address)),
            Code::BrokerTransportFailure if text.contains("timed out") => Some(Self::Timeout),
            Code::BrokerTransportFailure => Some(Self::ConnectionLost(text.to_owned())),
            Code::OperationTimedOut if text.contains("request(s) timed out") => Some(Self::Timeout),
            _ => None,
        }
    }

    fn from_login(text: &str) -> Self {
        match text.split_once("supported mechanisms:") {
            Some(_) if text.contains("current SASL state") => Self::LoginUnsupported,
            Some((_, mechanisms)) => Self::UnsupportedMechanism(reason(mechanisms).to_lowercase()),
            None => Self::LoginRefused(reason(text).to_owned()),
        }
    }

    /// Returns an error that waiting does not cure; none for errors that pass by themselves.
    pub fn permanent(error: &KafkaError) -> Option<Self> {
        let is_lasting = matches!(error, KafkaError::MessageConsumptionFatal(_))
            || code_of(error) == Some(Code::Fatal)
            || classify(error) == Some(ErrorMeaning::Permanent) && !is_connection_error(error);
        is_lasting.then(|| error.into())
    }

    /// Returns whether a server was reached, and refused us, or was not the expected one.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::LoginRefused(_) | Self::LoginUnsupported | Self::UnsupportedMechanism(_))
    }

    /// Converts an error of the client library about a message that it cannot read, if it is one.
    pub fn from_message(code: Code, text: &str) -> Option<Self> {
        let is_one = match code {
            Code::NotImplemented | Code::BadCompression => true,
            // Without an offset the error is about a connection.
            Code::BadMessage => text.contains("at offset"),
            _ => false,
        };
        let what = if text.contains("codec 0x4") { "it is compressed by zstd" } else { text };
        is_one.then(|| Self::Unreadable(what.to_owned()))
    }

    /// Returns whether the same request can succeed later, if only the network or the servers change.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::ConnectionRefused(_)
            | Self::Timeout
            | Self::AckTimeout
            | Self::Closed
            | Self::ClosedOrSilent
            | Self::TlsInterrupted
            | Self::ConnectionLost(_)
            | Self::NotReady(_) => true,
            Self::NotKafka
            | Self::Tls(_)
            | Self::LoginRefused(_)
            | Self::LoginUnsupported
            | Self::UnsupportedMechanism(_)
            | Self::Unreadable(_)
            | Self::TopicGone
            | Self::NameConflict
            | Self::MessageTooLarge
            | Self::QueueInUse
            | Self::TooFewReplicas { .. }
            | Self::RetentionMismatch { .. }
            | Self::RetentionUnreadable(_)
            | Self::TooFewServers
            | Self::Refused(_) => false,
        }
    }
}

impl From<&KafkaError> for KafkaServerError {
    fn from(error: &KafkaError) -> Self {
        let Some(code) = code_of(error) else { return Self::Refused(error.to_string()) };
        match code {
            Code::MessageTimedOut => Self::AckTimeout,
            Code::OperationTimedOut
            | Code::TimedOutQueue
            | Code::RequestTimedOut
            | Code::WaitingForCoordinator
            | Code::NetworkException
            | Code::BrokerTransportFailure
            | Code::PurgeQueue
            | Code::PurgeInflight
            | Code::AllBrokersDown => Self::Timeout,
            Code::BadMessage => Self::NotKafka,
            Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition | Code::UnknownTopicId => {
                Self::TopicGone
            }
            Code::InvalidTopic => Self::NameConflict,
            Code::InvalidReplicationFactor => Self::TooFewServers,
            Code::MessageSizeTooLarge | Code::MessageBatchTooLarge => Self::MessageTooLarge,
            Code::SaslAuthenticationFailed | Code::Authentication => Self::LoginRefused(code.to_string()),
            code if classify(error) == Some(ErrorMeaning::Retryable) => Self::NotReady(code.to_string()),
            code => Self::Refused(code.to_string()),
        }
    }
}

/// Returns the code of an error, if it has one.
pub(crate) fn code_of(error: &KafkaError) -> Option<Code> {
    match error {
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    }
}

/// Returns whether an error is about connections: another server, or a new connection to the same one, may work.
pub(crate) fn is_connection_error(error: &KafkaError) -> bool {
    matches!(
        code_of(error),
        Some(
            Code::AllBrokersDown
                | Code::SSL
                | Code::Authentication
                | Code::SaslAuthenticationFailed
                | Code::UnsupportedSASLMechanism
                | Code::IllegalSASLState
        )
    )
}

/// Returns the part of a client library's text between the address and the connection state.
fn reason(text: &str) -> &str {
    let text = text.split_once(" (after ").map_or(text, |(reason, _state)| reason);
    let text = text.split_once("bootstrap: ").map_or(text, |(_address, reason)| reason);
    text.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_errors_map_to_reasons() {
        for (code, text, word) in [
            (Code::BrokerTransportFailure, "a:1/bootstrap: Connect failed: Connection refused", "to a:1; start Kafka"),
            (
                Code::BrokerTransportFailure,
                "sasl_ssl://a:1/bootstrap: Connect failed: Connection refused",
                "to a:1; start Kafka",
            ),
            (Code::BrokerTransportFailure, "a:1/2: Connection setup timed out in state CONNECT", "did not answer"),
            (Code::BrokerTransportFailure, "a:1/2: Receive failed: Connection reset", "closed the connection"),
            (
                Code::BrokerTransportFailure,
                "ssl://a:1/bootstrap: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
                "in the middle of the TLS handshake",
            ),
            (
                Code::SSL,
                "ssl://a:1/2: SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading",
                "in the middle of the TLS handshake",
            ),
            (
                Code::BrokerTransportFailure,
                "ssl://a:1/2: Receive failed: error:0A000126:SSL routines::unexpected eof while reading",
                "closed the connection;",
            ),
            (Code::SSL, "ssl://a:1/2: SSL handshake failed: SSL transport error: No route", "check the network"),
            (
                Code::SSL,
                "ssl://a:1/2: SSL handshake failed: error:0A00010B:SSL routines::wrong version number",
                "speaks no TLS;",
            ),
            (Code::Resolve, "a:1/bootstrap: Failed to resolve 'a:1'", "cannot be resolved"),
            (Code::BadMessage, "a:1/bootstrap: Invalid response size", "not as Kafka does"),
            (
                Code::Authentication,
                "sasl_ssl://a:1/bootstrap: SASL authentication error: Authentication failed (after 9ms in state UP)",
                "refused the login (SASL authentication error: Authentication failed)",
            ),
            (
                Code::Authentication,
                "a:1/bootstrap: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's \
                 supported mechanisms: SCRAM-SHA-512 (after 9ms in state AUTH_HANDSHAKE)",
                "'sasl=' in the URL: scram-sha-512",
            ),
        ] {
            let sentence = KafkaServerError::from_connection(code, text).unwrap().to_string();
            assert!(sentence.contains(word), "{text}: {sentence}");
        }
        assert_eq!(KafkaServerError::from_connection(Code::AllBrokersDown, "1/1 brokers are down"), None);
    }

    #[test]
    fn a_closed_handshake_is_transient() {
        let text = "ssl://a:1/2: SSL handshake failed: Disconnected: connection closed by peer";
        for (code, text, passes) in [
            (Code::BrokerTransportFailure, text, true),
            (Code::SSL, "ssl://a:1/2: SSL handshake failed: unexpected eof while reading", true),
            (Code::SSL, "ssl://a:1/2: SSL handshake failed: wrong version number", false),
            (Code::SSL, "ssl://a:1/2: SSL handshake failed: certificate verify failed", false),
        ] {
            let error = KafkaServerError::from_connection(code, text).unwrap();
            assert_eq!((error.is_transient(), error.is_refusal()), (passes, !passes), "{text}");
        }
    }

    #[test]
    fn an_unreadable_message_is_distinguished_from_a_connection_error() {
        for (code, text, words) in [
            (Code::NotImplemented, "Decompression (codec 0x4) of message at 5 of 60 bytes failed", Some("zstd")),
            (Code::BadCompression, "Decompression (codec 0x1) of message at 5 of 60 bytes failed", Some("codec 0x1")),
            (Code::BadMessage, "MessageSet at offset 7 (90 bytes) failed CRC32C check", Some("offset 7")),
            (Code::BadMessage, "a:1/bootstrap: Invalid response size", None),
            (Code::SSL, "at offset", None),
        ] {
            let sentence = KafkaServerError::from_message(code, text).map(|error| error.to_string());
            assert_eq!(sentence.is_some(), words.is_some(), "{text}");
            assert!(sentence.unwrap_or_default().contains(words.unwrap_or_default()), "{text}");
        }
    }

    #[test]
    fn a_message_that_may_have_arrived_is_in_doubt() {
        for (code, fate_of_it, passes) in [
            (Code::MessageTimedOut, Fate::Unknown, true),
            (Code::NetworkException, Fate::Unknown, true),
            (Code::PurgeInflight, Fate::Unknown, true),
            (Code::PurgeQueue, Fate::Unknown, true),
            (Code::NotEnoughReplicasAfterAppend, Fate::Unknown, true),
            // An earlier copy may have arrived, with its answer lost.
            (Code::NotEnoughReplicas, Fate::Unknown, true),
            (Code::LeaderNotAvailable, Fate::Unknown, true),
            (Code::UnknownTopic, Fate::Unknown, false),
            (Code::UnknownTopicOrPartition, Fate::Unknown, false),
            (Code::UnknownPartition, Fate::Unknown, false),
            (Code::TopicAuthorizationFailed, Fate::Unknown, false),
            (Code::PolicyViolation, Fate::Unknown, false),
            (Code::ListenerNotFound, Fate::Unknown, false),
            (Code::MessageSizeTooLarge, Fate::NotPublished, false),
            (Code::InvalidRecord, Fate::NotPublished, false),
        ] {
            let error = KafkaError::MessageProduction(code);
            assert_eq!((fate(&error), is_transient(&error)), (fate_of_it, passes), "{code:?}");
        }
    }

    #[test]
    fn permanent_errors_end_a_receiver() {
        for (code, is_lasting) in [
            (Code::NotLeaderForPartition, false),
            (Code::BrokerTransportFailure, false),
            (Code::AllBrokersDown, false),
            (Code::SSL, false),
            (Code::TopicAuthorizationFailed, true),
            // One server's refusal; that all refuse is checked separately.
            (Code::Authentication, false),
            (Code::UnknownTopicOrPartition, true),
        ] {
            let error = KafkaError::MessageConsumption(code);
            assert_eq!(KafkaServerError::permanent(&error).is_some(), is_lasting, "{code:?}");
        }
    }
}
