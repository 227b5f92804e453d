//! What servers answer, and the client library for them: what it means, and in which words it is told.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use tickpath_bus_api::Fate;

/// What an error means to who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing is done; the same can go well later.
    NotYet,
    /// It may be done, or be so later: no answer came, or one that leaves it open.
    Unanswered,
    /// Nothing is done, and will not be before somebody changes something.
    Final,
}

/// The one table of what passes and what does not; of what is not in it, it is not known.
pub(crate) fn meaning(error: &KafkaError) -> Option<Meaning> {
    match code_of(error)? {
        // The server has looked at it, and its log takes nothing now; or it never left.
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
        | Code::QueueFull => Some(Meaning::NotYet),
        // `PurgeQueue` too: what was sent before a connection broke waits in the queue to be sent again.
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
        | Code::BadMessage => Some(Meaning::Unanswered),
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
        | Code::MessageBatchTooLarge => Some(Meaning::Final),
        _ => None,
    }
}

/// What became of a message that came back with this. The client library sends a message again when an answer is lost, and
/// tells the last answer only: the copy before may be in the log, whatever that is.
pub(crate) fn fate(error: &KafkaError) -> Fate {
    match code_of(error) {
        // Of such a message no copy passes.
        Some(Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidRecord) => Fate::NotPublished,
        _ => Fate::Unknown,
    }
}

/// Whether the same can go well later, with nobody changing anything but the network or the servers.
pub(crate) fn may_pass(error: &KafkaError) -> bool {
    matches!(meaning(error), Some(Meaning::NotYet | Meaning::Unanswered))
}

/// Why a server cannot be used. Reads on after the server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServerError {
    /// No such host.
    #[error("its name cannot be resolved ({0}); check the host, and what the server says in advertised.listeners")]
    Unresolved(String),
    /// Nobody listens.
    #[error("refused the connection to {0}; start Kafka, or check host and port")]
    NobodyListens(String),
    /// Nobody answers.
    #[error("did not answer within 5 s; check host, port and firewall, or whether the server hangs")]
    Timeout,
    /// Nobody acknowledges.
    #[error("did not acknowledge within 30 s; look whether a leader is being elected, or replicas are missing")]
    Late,
    /// Somebody else listens.
    #[error("answers, but not as Kafka does; check the port, or ask for TLS if it speaks that: ?tls")]
    NotKafka,
    /// It hung up.
    #[error(
        "closed the connection; if it wants TLS or a login, put them into the URL \
         (kafka://USER:PASSWORD@HOST:PORT?tls), else look into its log and try again"
    )]
    Closed,
    /// The network failed.
    #[error("lost the connection ({0}); check the network, and try again")]
    Lost(String),
    /// There is no TLS, or not with whom it should be. A sentence of its own.
    #[error("{0}")]
    Tls(String),
    /// It does not let us in.
    #[error("refused the login ({0}); check user and password, and the mechanism: sasl=MECHANISM in the URL")]
    Login(String),
    /// It lets everybody in.
    #[error("asks for no login there; leave user and password out of the URL, or use another port of it")]
    NoLogin,
    /// It lets us in by another mechanism.
    #[error("does not take a login of this kind; name one of its own with 'sasl=' in the URL: {0}")]
    Mechanism(String),
    /// The topic is not there.
    #[error("has no such topic any more; open it again, which makes it anew")]
    Gone,
    /// The name is taken, almost.
    #[error("refused the name; it takes names that differ only in '.' and '_' for the same: use another one")]
    Name,
    /// The topic's own limit is lower than ours.
    #[error("takes no message of this size; raise max.message.bytes of the topic")]
    Size,
    /// A queue that is removed is still pulled from.
    #[error("still has the places of this queue's pullers; drop the pullers, and remove it again")]
    Pulled,
    /// Fewer copies than asked for.
    #[error(
        "keeps the topic '{topic}' on {has} servers, not on the {wanted} that 'replicas' asks for; \
         give it more replicas there, use another name, or ask for fewer"
    )]
    Copies {
        /// As it is called on the server.
        topic: String,
        /// Replicas of the partition that has fewest.
        has: usize,
        /// What the URL says.
        wanted: usize,
    },
    /// More copies than servers.
    #[error("has fewer servers than replicas are asked for; start more of them, or ask for fewer: replicas=N")]
    FewServers,
    /// Not ready, by its own words.
    #[error("takes nothing now: {0}; try again, and look into its log if that lasts")]
    NotYet(String),
    /// Anything else that it says.
    #[error("refused: {0}; change the server's settings, or the rights of this client")]
    Refused(String),
}

impl ServerError {
    /// What the client library says about a connection, if it is a reason. The text begins with the address.
    pub fn of_connection(code: Code, text: &str) -> Option<Self> {
        let text = text.split_once("://").map_or(text, |(_protocol, rest)| rest);
        let address = text.split_once('/').map_or(text, |(address, _)| address).to_owned();
        match code {
            Code::Resolve => Some(Self::Unresolved(text.to_owned())),
            Code::BadMessage | Code::Underflow => Some(Self::NotKafka),
            Code::Authentication | Code::SaslAuthenticationFailed => Some(Self::of_login(text)),
            // Who speaks none takes a greeting for nonsense, and hangs up.
            Code::SSL | Code::BrokerTransportFailure
                if text.contains("PLAINTEXT broker listener") || text.contains("unexpected eof") =>
            {
                let sentence = "what answers there speaks no TLS; ask for none, or check the port for one that does";
                Some(Self::Tls(sentence.to_owned()))
            }
            Code::SSL => Some(Self::Tls(format!("there is no TLS with it ({})", reason(text)))),
            Code::BrokerTransportFailure if text.contains("refused") => Some(Self::NobodyListens(address)),
            Code::BrokerTransportFailure if text.contains("timed out") => Some(Self::Timeout),
            // However that shows: who wants a login hangs up on who has none.
            Code::BrokerTransportFailure
                if ["Broken pipe", "Connection reset", "Disconnected"].iter().any(|end| text.contains(end)) =>
            {
                Some(Self::Closed)
            }
            Code::BrokerTransportFailure => Some(Self::Lost(text.to_owned())),
            _ => None,
        }
    }

    /// Why a login went wrong.
    fn of_login(text: &str) -> Self {
        match text.split_once("supported mechanisms:") {
            Some(_) if text.contains("current SASL state") => Self::NoLogin,
            Some((_, mechanisms)) => Self::Mechanism(reason(mechanisms).to_lowercase()),
            None => Self::Login(reason(text).to_owned()),
        }
    }

    /// What a receiver cannot get over by waiting; anything else passes by itself.
    pub fn lasting(error: &KafkaError) -> Option<Self> {
        let is_lasting = matches!(error, KafkaError::MessageConsumptionFatal(_))
            || code_of(error) == Some(Code::Fatal)
            || meaning(error) == Some(Meaning::Final) && !is_of_a_connection(error);
        is_lasting.then(|| error.into())
    }

    /// Whether the same can go well later, with nobody changing anything but the network or the servers.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved(_)
            | Self::NobodyListens(_)
            | Self::Timeout
            | Self::Late
            | Self::Closed
            | Self::Lost(_)
            | Self::NotYet(_) => true,
            Self::NotKafka
            | Self::Tls(_)
            | Self::Login(_)
            | Self::NoLogin
            | Self::Mechanism(_)
            | Self::Gone
            | Self::Name
            | Self::Size
            | Self::Pulled
            | Self::Copies { .. }
            | Self::FewServers
            | Self::Refused(_) => false,
        }
    }
}

impl From<&KafkaError> for ServerError {
    fn from(error: &KafkaError) -> Self {
        let Some(code) = code_of(error) else { return Self::Refused(error.to_string()) };
        match code {
            Code::MessageTimedOut => Self::Late,
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
                Self::Gone
            }
            Code::InvalidTopic => Self::Name,
            Code::InvalidReplicationFactor => Self::FewServers,
            Code::MessageSizeTooLarge | Code::MessageBatchTooLarge => Self::Size,
            Code::SaslAuthenticationFailed | Code::Authentication => Self::Login(code.to_string()),
            code if meaning(error) == Some(Meaning::NotYet) => Self::NotYet(code.to_string()),
            code => Self::Refused(code.to_string()),
        }
    }
}

/// The code in an error, if it has one.
pub(crate) fn code_of(error: &KafkaError) -> Option<Code> {
    match error {
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    }
}

/// Whether it is about one connection: of several servers another one may do, and the same one when it is made again.
fn is_of_a_connection(error: &KafkaError) -> bool {
    matches!(code_of(error), Some(Code::SSL))
}

/// What stands in a text of the client library between the address and the state that it was in.
fn reason(text: &str) -> &str {
    let text = text.split_once(" (after ").map_or(text, |(reason, _state)| reason);
    let text = text.split_once("bootstrap: ").map_or(text, |(_address, reason)| reason);
    text.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_says_becomes_a_reason() {
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
                "speaks no TLS",
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
            let sentence = ServerError::of_connection(code, text).unwrap().to_string();
            assert!(sentence.contains(word), "{text}: {sentence}");
        }
        assert_eq!(ServerError::of_connection(Code::AllBrokersDown, "1/1 brokers are down"), None);
    }

    #[test]
    fn what_may_have_arrived_is_never_told_as_not_published() {
        for (code, fate_of_it, passes) in [
            (Code::MessageTimedOut, Fate::Unknown, true),
            (Code::NetworkException, Fate::Unknown, true),
            (Code::PurgeInflight, Fate::Unknown, true),
            (Code::PurgeQueue, Fate::Unknown, true),
            (Code::NotEnoughReplicasAfterAppend, Fate::Unknown, true),
            // A copy before may have arrived, and its answer was lost.
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
            assert_eq!((fate(&error), may_pass(&error)), (fate_of_it, passes), "{code:?}");
        }
    }

    #[test]
    fn a_receiver_ends_by_what_does_not_pass() {
        for (code, is_lasting) in [
            (Code::NotLeaderForPartition, false),
            (Code::BrokerTransportFailure, false),
            (Code::AllBrokersDown, false),
            (Code::SSL, false),
            (Code::TopicAuthorizationFailed, true),
            (Code::Authentication, true),
            (Code::UnknownTopicOrPartition, true),
        ] {
            let error = KafkaError::MessageConsumption(code);
            assert_eq!(ServerError::lasting(&error).is_some(), is_lasting, "{code:?}");
        }
    }
}
