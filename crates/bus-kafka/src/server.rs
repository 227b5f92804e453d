//! Servers named by a URL, and the client settings for them.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;
use tickpath_bus_api::url::{ClientTlsFiles, SILENCE_OPTION, ServerAddress, Url};
use tickpath_bus_api::{ConnectError, TopicNames};

use crate::brokers;
use crate::deadline::TIMEOUT;
use crate::error::{KafkaServerError, ServerResult};
use crate::reasons::OutageReasons;

pub(crate) const PORT: u16 = 9092;

const FORM: &str = "use kafka://HOST:PORT[,HOST:PORT], with USER:PASSWORD@ in front of the hosts for a login, and \
                    behind them ?tls, ca=FILE, cert=FILE, key=FILE, sasl=MECHANISM, replicas=N and silence=SECONDS, \
                    with '&' in between";

const OPTIONS: [&str; 7] = ["tls", "ca", "cert", "key", "sasl", "replicas", SILENCE_OPTION];

/// Login mechanisms, as written in a URL and as Kafka names them; the default first.
const MECHANISMS: [(&str, &str); 3] =
    [("scram-sha-512", "SCRAM-SHA-512"), ("scram-sha-256", "SCRAM-SHA-256"), (PLAIN, "PLAIN")];

/// The mechanism that sends the password in clear text.
const PLAIN: &str = "plain";

/// Longest response of a server, in bytes: twelve times a fetch, because one message may exceed that.
const MAX_ANSWER_BYTES: &str = "100000000";

/// Max delay of the client library's request timeout: a fetch waits half a second at the server, and the library checks
/// for overdue requests once a second.
const TIMEOUT_SLACK: Duration = Duration::from_millis(1_500);

const MIN_REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

/// Settings of every client: no output, no metrics pushed to the server, no topic created by a lookup, and a timeout
/// for every request.
const SETTINGS: [(&str, &str); 9] = [
    ("client.id", "tickpath"),
    ("log_level", "0"),
    ("enable.metrics.push", "false"),
    ("allow.auto.create.topics", "false"),
    // `socket.connection.setup.timeout.ms` stays at its 30 s: at 5 s it could end a connection just before our call
    // times out, and the library gives no reason then, as if the server had closed it.
    ("socket.nagle.disable", "true"),
    ("reconnect.backoff.ms", "100"),
    ("reconnect.backoff.max.ms", "5000"),
    ("retry.backoff.ms", "20"),
    // Limit for responses of any server: one that announces more is no Kafka server, and is disconnected.
    ("receive.message.max.bytes", MAX_ANSWER_BYTES),
];

/// A cluster, by the servers that the URL names.
#[derive(Clone)]
pub(crate) struct KafkaEndpoint {
    addresses: Vec<ServerAddress>,
    /// TLS files, if TLS is asked for; TLS is then mandatory.
    pub tls: Option<ClientTlsFiles>,
    login: Option<KafkaLogin>,
    silence: Duration,
    /// Number of replicas of a new topic; the cluster's default if none.
    pub replicas: Option<i32>,
    pub names: TopicNames,
}

#[derive(Clone)]
struct KafkaLogin {
    user: String,
    password: String,
    mechanism: &'static str,
}

impl KafkaEndpoint {
    /// Parses a URL. Errors do not contain the URL, because it may hold a password.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let wrong = |what: String| ConnectError::Url(format!("{what}; {FORM}"));
        let url = Url::parse(url, &OPTIONS, FORM)?;
        if url.scheme != "kafka" || url.servers.is_empty() {
            return Err(wrong("no Kafka URL".to_owned()));
        }
        if url.path.as_ref().is_some_and(|path| !path.is_empty()) {
            return Err(wrong("behind the servers stands something that Kafka has none of".to_owned()));
        }
        let tls = url.tls(false).map_err(wrong)?;
        let login = login(&url, tls.is_some()).map_err(wrong)?;
        let replicas = replicas(&url).map_err(wrong)?;
        let silence = url.silence().map_err(wrong)?;
        Ok(Self { addresses: url.servers, tls, login, silence, replicas, names: url.topic_names })
    }

    pub fn name(&self) -> String {
        format!("kafka://{}", self.hosts())
    }

    /// Returns hosts and ports, in the order of the URL.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        self.addresses.iter().map(|address| (address.host.as_str(), address.port_or(PORT)))
    }

    /// Adds the URL's servers to a client again.
    pub fn add_brokers_again<C: ClientContext>(&self, client: &Client<C>) {
        brokers::add_brokers(client, &self.hosts());
    }

    /// Returns the settings of a client: the common ones and `settings`.
    pub fn config(&self, settings: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Emerg);
        config.set("bootstrap.servers", self.hosts());
        for &(key, value) in SETTINGS.iter().chain(settings) {
            config.set(key, value);
        }
        let silence = self.silence.saturating_sub(TIMEOUT_SLACK).clamp(MIN_REQUEST_TIMEOUT, TIMEOUT);
        config.set("socket.timeout.ms", silence.as_millis().to_string());
        self.secure(&mut config);
        config
    }

    pub fn error(&self, error: &KafkaServerError) -> ConnectError {
        ConnectError::Server { server: self.name(), what: error.to_string() }
    }

    /// Creates a consumer that notes the reasons of an outage, with the common settings and `settings`.
    pub fn consumer(&self, settings: &[(&str, &str)]) -> ServerResult<BaseConsumer<OutageReasons>> {
        self.config(settings).create_with_context(OutageReasons::default()).map_err(|e| KafkaServerError::from(&e))
    }

    /// Returns the sentence of an error on an open connection.
    pub fn describe_error(&self, error: &KafkaServerError) -> String {
        format!("{} {error}", self.name())
    }

    fn hosts(&self) -> String {
        let hosts: Vec<String> = self.addresses.iter().map(|address| address.with_port_or(PORT)).collect();
        hosts.join(",")
    }

    fn secure(&self, config: &mut ClientConfig) {
        let protocol = match (&self.tls, &self.login) {
            (None, None) => "plaintext",
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        };
        config.set("security.protocol", protocol);
        if let Some(files) = &self.tls {
            // The library searches the system's usual places for its certificate authorities.
            config.set("ssl.ca.location", files.ca.as_deref().map_or("probe".to_owned(), text));
            config.set("enable.ssl.certificate.verification", "true");
            config.set("ssl.endpoint.identification.algorithm", "https");
            if let Some((cert, key)) = &files.identity {
                config.set("ssl.certificate.location", text(cert));
                config.set("ssl.key.location", text(key));
            }
        }
        if let Some(login) = &self.login {
            config.set("sasl.mechanism", login.mechanism);
            config.set("sasl.username", login.user.as_str());
            config.set("sasl.password", login.password.as_str());
        }
    }
}

impl fmt::Debug for KafkaEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Converts a path, which came as text, back to text.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn login(url: &Url, is_encrypted: bool) -> Result<Option<KafkaLogin>, String> {
    let (user, password) = match (&url.user, &url.password) {
        (None, None) if url.has("sasl") => return Err("'sasl' needs a user and a password".to_owned()),
        (None, None) => return Ok(None),
        (Some(user), Some(password)) => (user.clone(), password.clone()),
        _ => return Err("a login is a user and a password".to_owned()),
    };
    if user.contains('\0') || password.contains('\0') {
        return Err("a login has no zero byte".to_owned());
    }
    let wanted = url.option("sasl").unwrap_or(MECHANISMS[0].0);
    let Some(&(name, mechanism)) = MECHANISMS.iter().find(|(name, _)| *name == wanted) else {
        let names = MECHANISMS.map(|(name, _)| name);
        return Err(format!("'sasl' is one of {}", names.join(", ")));
    };
    if name == PLAIN && !is_encrypted && !url.servers.iter().all(is_loopback) {
        return Err("'sasl=plain' without 'tls' would send the password over the network for all to read".to_owned());
    }
    Ok(Some(KafkaLogin { user, password, mechanism }))
}

fn is_loopback(address: &ServerAddress) -> bool {
    address.host == "localhost" || address.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn replicas(url: &Url) -> Result<Option<i32>, String> {
    let Some(number) = url.option("replicas") else { return Ok(None) };
    match number.parse::<i16>() {
        Ok(replicas) if replicas > 0 => Ok(Some(i32::from(replicas))),
        _ => Err("'replicas' is a number of servers, from 1 on".to_owned()),
    }
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
            ("kafka://ann:secret@a,b?tls&sasl=plain&replicas=3", "kafka://a:9092,b:9092"),
        ] {
            let server = KafkaEndpoint::parse(url).unwrap();
            assert_eq!((server.name(), format!("{server:?}")), (name.to_owned(), name.to_owned()), "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_with_the_form_and_without_a_password() {
        for bad in [
            "kafka://",
            "redis://host:1",
            "kafka://ann@host:1",
            "kafka://:secret@host:1",
            "kafka://ann:secret%00@host:1",
            "kafka://ann:secret@host:1?sasl=gssapi",
            "kafka://ann:secret@127.0.0.1,host:1?sasl=plain",
            "kafka://host:1?sasl=plain",
            "kafka://host:1?ca=/secret",
            "kafka://host:1?tls&cert=/secret",
            "kafka://host:1?replicas=0",
            "kafka://host:1?replicas=secret",
            "kafka://host:0",
            "kafka://host:99999",
            "kafka://host:port",
            "kafka://a:1,",
            "kafka://::1:9092",
            "kafka://a b:1",
            "kafka://host:1/topic",
        ] {
            let error = KafkaEndpoint::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            let sentence = error.to_string();
            assert!(sentence.contains("use kafka://HOST:PORT") && !sentence.contains("secret"), "{sentence}");
        }
    }

    #[test]
    fn every_client_bounds_what_a_server_may_answer() {
        let server = KafkaEndpoint::parse("kafka://a").unwrap();
        let fetching = [("fetch.max.bytes", "8388608")];
        for settings in [&fetching[..0], &fetching[..]] {
            assert_eq!(server.config(settings).get("receive.message.max.bytes"), Some("100000000"));
        }
    }

    #[test]
    fn encryption_and_logins_are_mandatory_once_requested() {
        let cases: [(&str, &[(&str, &str)]); 6] = [
            ("kafka://a", &[("security.protocol", "plaintext")]),
            (
                "kafka://a?tls",
                &[
                    ("security.protocol", "ssl"),
                    ("ssl.ca.location", "probe"),
                    ("enable.ssl.certificate.verification", "true"),
                    ("ssl.endpoint.identification.algorithm", "https"),
                ],
            ),
            (
                "kafka://a?tls&ca=/c&cert=/d&key=/k",
                &[("ssl.ca.location", "/c"), ("ssl.certificate.location", "/d"), ("ssl.key.location", "/k")],
            ),
            (
                "kafka://ann:s%40c@a?tls",
                &[
                    ("security.protocol", "sasl_ssl"),
                    ("sasl.mechanism", "SCRAM-SHA-512"),
                    ("sasl.username", "ann"),
                    ("sasl.password", "s@c"),
                ],
            ),
            (
                "kafka://ann:s@127.0.0.1,[::1],localhost?sasl=plain",
                &[("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "PLAIN")],
            ),
            ("kafka://ann:s@a?sasl=scram-sha-256", &[("sasl.mechanism", "SCRAM-SHA-256")]),
        ];
        for (url, settings) in cases {
            let config = KafkaEndpoint::parse(url).unwrap().config(&[]);
            for (key, value) in settings {
                assert_eq!(config.get(key), Some(*value), "{key} of {url}");
            }
        }
    }
}
