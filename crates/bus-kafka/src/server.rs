//! Which servers a URL names, and what they can answer.

use std::fmt;
use std::net::Ipv6Addr;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use tickpath_bus_api::ConnectError;

/// Where Kafka listens if nobody says otherwise.
pub(crate) const PORT: u16 = 9092;

/// Settings of every client. Nothing is printed, nothing is measured for the server's owner, no topic is made by asking
/// for it, and every request ends.
const SETTINGS: [(&str, &str); 9] = [
    ("client.id", "tickpath"),
    ("log_level", "0"),
    ("enable.metrics.push", "false"),
    ("allow.auto.create.topics", "false"),
    // `socket.connection.setup.timeout.ms` stays at its 30 s: were it 5 s, it could end a connection just before a call
    // of ours says that nobody answered, and the library gives no reason then, as if the server had hung up.
    ("socket.timeout.ms", "5000"),
    ("socket.nagle.disable", "true"),
    ("reconnect.backoff.ms", "100"),
    ("reconnect.backoff.max.ms", "5000"),
    ("retry.backoff.ms", "20"),
];

/// A cluster, by the servers that know the others.
#[derive(Clone)]
pub(crate) struct Server {
    /// `HOST:PORT`, with commas between them.
    hosts: String,
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
    /// Somebody else listens.
    #[error("answers, but not as Kafka does; check the port")]
    NotKafka,
    /// It hung up.
    #[error(
        "closed the connection; if it wants a login or encryption, use a plain listener of it, \
         else look into its log and try again"
    )]
    Closed,
    /// The network failed.
    #[error("lost the connection ({0}); check the network, and try again")]
    Lost(String),
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
    /// Anything else that it says.
    #[error("refused: {0}; change the server's settings, or the rights of this client")]
    Refused(String),
}

impl Server {
    /// Reads a URL. The URL itself is not in errors: somebody may have put a password there.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        const FORM: &str = "use kafka://HOST:PORT[,HOST:PORT]";
        let wrong = |what: &str| ConnectError::Url(format!("{what}; {FORM}"));
        let list = url.strip_prefix("kafka://").ok_or_else(|| wrong("no Kafka URL"))?;
        if list.contains('@') {
            return Err(wrong("only listeners without a login are spoken to on Kafka"));
        }
        let hosts: Option<Vec<String>> = list.strip_suffix('/').unwrap_or(list).split(',').map(host_and_port).collect();
        let hosts = hosts.ok_or_else(|| wrong("no Kafka URL: a server is a host and a port"))?;
        Ok(Self { hosts: hosts.join(",") })
    }

    /// Its name for people.
    pub fn name(&self) -> String {
        format!("kafka://{}", self.hosts)
    }

    /// The settings of a client: those of all, and these.
    pub fn config(&self, settings: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Emerg);
        config.set("bootstrap.servers", self.hosts.as_str());
        for &(key, value) in SETTINGS.iter().chain(settings) {
            config.set(key, value);
        }
        config
    }

    /// An error for who wanted to connect.
    pub fn error(&self, error: &ServerError) -> ConnectError {
        ConnectError::Server { server: self.name(), what: error.to_string() }
    }

    /// A sentence for who uses a connection.
    pub fn sentence(&self, error: &ServerError) -> String {
        format!("{} {error}", self.name())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl ServerError {
    /// What the client library says about a connection, if it is a reason. The text begins with the address.
    pub fn of_connection(code: Code, text: &str) -> Option<Self> {
        let address = text.split_once('/').map_or(text, |(address, _)| address).to_owned();
        match code {
            Code::Resolve => Some(Self::Unresolved(text.to_owned())),
            Code::BadMessage | Code::Underflow => Some(Self::NotKafka),
            Code::BrokerTransportFailure if text.contains("refused") => Some(Self::NobodyListens(address)),
            Code::BrokerTransportFailure if text.contains("timed out") => Some(Self::Timeout),
            Code::BrokerTransportFailure => Some(Self::Lost(text.to_owned())),
            _ => None,
        }
    }

    /// What a receiver cannot get over by waiting; anything else passes by itself.
    pub fn lasting(error: &KafkaError) -> Option<Self> {
        let is_lasting = matches!(error, KafkaError::MessageConsumptionFatal(_))
            || matches!(
                error.rdkafka_error_code(),
                Some(
                    Code::UnknownTopicOrPartition
                        | Code::UnknownTopic
                        | Code::UnknownPartition
                        | Code::TopicAuthorizationFailed
                        | Code::ClusterAuthorizationFailed
                        | Code::UnsupportedVersion
                        | Code::BadCompression
                        | Code::InvalidMessage
                        | Code::Fatal
                )
            );
        is_lasting.then(|| error.into())
    }
}

impl From<&KafkaError> for ServerError {
    fn from(error: &KafkaError) -> Self {
        let code = match error {
            KafkaError::AdminOp(code) => Some(*code),
            other => other.rdkafka_error_code(),
        };
        match code {
            None => Self::Refused(error.to_string()),
            Some(
                Code::OperationTimedOut
                | Code::MessageTimedOut
                | Code::TimedOutQueue
                | Code::RequestTimedOut
                | Code::WaitingForCoordinator
                | Code::BrokerTransportFailure
                | Code::AllBrokersDown,
            ) => Self::Timeout,
            Some(Code::BadMessage) => Self::NotKafka,
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition) => Self::Gone,
            Some(Code::InvalidTopic) => Self::Name,
            Some(Code::MessageSizeTooLarge) => Self::Size,
            Some(code) => Self::Refused(code.to_string()),
        }
    }
}

/// `HOST:PORT` from what stands between commas.
fn host_and_port(text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, PORT),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b)),
    };
    (is_host && port != 0).then(|| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        for (url, name) in [
            ("kafka://127.0.0.1:9092", "kafka://127.0.0.1:9092"),
            ("kafka://broker-1.example", "kafka://broker-1.example:9092"),
            ("kafka://a:1,b:2,c/", "kafka://a:1,b:2,c:9092"),
            ("kafka://[::1]:7000,[fe80::1]", "kafka://[::1]:7000,[fe80::1]:9092"),
        ] {
            assert_eq!(Server::parse(url).unwrap().name(), name, "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_with_the_form_and_without_a_password() {
        for bad in [
            "kafka://",
            "redis://host:1",
            "kafka://ann:secret@host:1",
            "kafka://host:0",
            "kafka://host:99999",
            "kafka://host:port",
            "kafka://a:1,",
            "kafka://::1:9092",
            "kafka://a b:1",
            "kafka://host:1/topic",
        ] {
            let error = Server::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            let sentence = error.to_string();
            assert!(sentence.contains("use kafka://HOST:PORT") && !sentence.contains("secret"), "{sentence}");
        }
    }

    #[test]
    fn what_the_library_says_becomes_a_reason() {
        for (code, text, word) in [
            (Code::BrokerTransportFailure, "a:1/bootstrap: Connect failed: Connection refused", "to a:1; start Kafka"),
            (Code::BrokerTransportFailure, "a:1/2: Connection setup timed out in state CONNECT", "did not answer"),
            (Code::BrokerTransportFailure, "a:1/2: Receive failed: Connection reset", "lost the connection"),
            (Code::Resolve, "a:1/bootstrap: Failed to resolve 'a:1'", "cannot be resolved"),
            (Code::BadMessage, "a:1/bootstrap: Invalid response size", "not as Kafka does"),
        ] {
            let sentence = ServerError::of_connection(code, text).unwrap().to_string();
            assert!(sentence.contains(word), "{text}: {sentence}");
        }
        assert_eq!(ServerError::of_connection(Code::AllBrokersDown, "1/1 brokers are down"), None);
    }
}
