//! The servers that a URL names, the login, and how topics and queues are stored there.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::rustls::crypto::ring;
use async_nats::rustls::{ClientConfig, RootCertStore};
use tickpath_bus_api::url::{ClientTlsFiles, SILENCE_OPTION, ServerAddress, TLS_OPTIONS, Url};
use tickpath_bus_api::{ConnectError, TopicNames};
use tickpath_clock::HostClock;
use tickpath_tls::{ALL_VERSIONS, client_config};

use crate::error::{ErrorContext, NatsServerError, ServerResult};

pub(crate) const PORT: u16 = 4222;

const FORM: &str = "use nats://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…][?jetstream[&durable][&replicas=N]][&tls]\
                    [&silence=SECONDS] or nats://TOKEN@HOST:PORT, or log in by a file: ?creds=FILE or ?nkey=FILE";

/// Max copies that JetStream keeps of a stream.
const MAX_REPLICAS: usize = 5;

/// The servers of a URL, of which the first that answers is used, and the login.
pub(crate) struct NatsEndpoint {
    /// URL of the servers without a password, for errors.
    pub name: String,
    hosts: String,
    addresses: Vec<ServerAddress>,
    login: Option<NatsLogin>,
    tls: Option<ClientTlsFiles>,
    /// The storage of topics and queues; none with core NATS, which keeps nothing.
    pub storage: Option<StreamStorage>,
    /// Longest silence of the server before the connection of a subscriber or puller counts as lost.
    pub silence: Duration,
    pub clock: HostClock,
    /// The index of the address that is tried first, modulo the number of addresses.
    first: AtomicUsize,
    pub names: TopicNames,
}

/// The storage of the streams that this process makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamStorage {
    /// True for files, false for the server's memory.
    pub is_durable: bool,
    /// The number of servers that hold a copy.
    pub replicas: usize,
}

enum NatsLogin {
    Token(String),
    User {
        name: String,
        password: String,
    },
    /// A file with a signed token and the seed of a key.
    Creds(PathBuf),
    /// A file with the seed of a key.
    Nkey(PathBuf),
}

impl NatsEndpoint {
    /// Reads a URL. Errors hold neither the password nor the token.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let [tls, ca, cert, key] = TLS_OPTIONS;
        let options = ["jetstream", "durable", "replicas", "creds", "nkey", SILENCE_OPTION, tls, ca, cert, key];
        let url = Url::parse(url, &options, FORM)?;
        Self::of(&url).map_err(|what| ConnectError::Url(format!("{what}; {FORM}")))
    }

    fn of(url: &Url) -> Result<Self, String> {
        if url.servers.is_empty() {
            return Err("the NATS URL names no host".to_owned());
        }
        if url.path.as_ref().is_some_and(|path| !path.is_empty()) {
            return Err("in a NATS URL nothing but '?' follows the servers".to_owned());
        }
        for option in ["jetstream", "durable", "tls"] {
            if url.option(option).is_some_and(|value| !value.is_empty()) {
                return Err(format!("'{option}' in the URL has no value"));
            }
        }
        let hosts_and_ports: Vec<String> = url.servers.iter().map(|server| server.with_port_or(PORT)).collect();
        let hosts: Vec<&str> = url.servers.iter().map(|server| server.host.as_str()).collect();
        Ok(Self {
            name: format!("{}://{}", url.scheme, hosts_and_ports.join(",")),
            hosts: hosts.join(","),
            addresses: url.servers.clone(),
            login: read_login(url)?,
            tls: url.tls(url.scheme == "tls")?,
            storage: read_storage(url)?,
            silence: url.silence()?,
            clock: HostClock::get().map_err(|e| e.to_string())?,
            first: AtomicUsize::new(0),
            names: read_names(url)?,
        })
    }

    /// Returns one URL per server, as the client library expects it, in the order in which the servers are to be tried.
    pub fn urls(&self) -> Vec<String> {
        let mut addresses = self.addresses.clone();
        let first = self.first() % addresses.len();
        addresses.rotate_left(first);
        addresses.iter().map(|address| format!("nats://{}", address.with_port_or(PORT))).collect()
    }

    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Returns the index of the server that is tried first now, for [`Self::skip_server`].
    pub fn first(&self) -> usize {
        self.first.load(Ordering::Relaxed)
    }

    /// Tries the next server first from now on, because the server at index `first` was of no use. Does nothing if
    /// another caller has already passed over that server.
    pub fn skip_server(&self, first: usize) {
        let _ = self.first.compare_exchange(first, first.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Runs `work`, which connects, for one server after the other, as long as it fails for want of JetStream or of a
    /// leader.
    pub fn try_each<T>(&self, mut work: impl FnMut() -> ServerResult<T>) -> ServerResult<T> {
        for _ in 1..self.count() {
            let first = self.first();
            match work() {
                Err(e) if e.is_server_specific() => self.skip_server(first),
                done => return done,
            }
        }
        let first = self.first();
        work().inspect_err(|e| {
            if e.is_server_specific() {
                self.skip_server(first);
            }
        })
    }

    pub fn addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        self.addresses.iter().map(|address| (address.host.as_str(), address.port_or(PORT)))
    }

    pub fn is_jetstream(&self) -> bool {
        self.storage.is_some()
    }

    /// Returns the options that decide what a connect error means.
    pub fn error_context(&self) -> ErrorContext<'_> {
        ErrorContext {
            has_login: self.login.is_some(),
            has_login_file: matches!(self.login, Some(NatsLogin::Creds(_) | NatsLogin::Nkey(_))),
            is_tls: self.tls.is_some(),
            hosts: &self.hosts,
        }
    }

    /// Returns the client library's options, with login and TLS. Reads the files that the URL names.
    pub fn options(&self) -> ServerResult<ConnectOptions> {
        let options = match &self.login {
            None => ConnectOptions::new(),
            Some(NatsLogin::Token(token)) => ConnectOptions::with_token(token.clone()),
            Some(NatsLogin::User { name, password }) => {
                ConnectOptions::with_user_and_password(name.clone(), password.clone())
            }
            Some(NatsLogin::Creds(file)) => credentials_options(file)?,
            Some(NatsLogin::Nkey(file)) => ConnectOptions::with_nkey(read_seed(file)?),
        };
        let config = match &self.tls {
            Some(files) => trusting_config(files)?,
            None => untrusting_config(),
        };
        Ok(options.require_tls(self.tls.is_some()).tls_client_config(config))
    }

    pub fn error(&self, error: &NatsServerError) -> ConnectError {
        match error {
            NatsServerError::FutureSequence { .. } => ConnectError::Other(error.to_string().into()),
            _ => ConnectError::Server { server: self.name.clone(), what: error.to_string() },
        }
    }
}

impl fmt::Debug for NatsEndpoint {
    /// Prints the name alone: the other fields may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn read_login(url: &Url) -> Result<Option<NatsLogin>, String> {
    let file = |option: &str| match url.option(option) {
        Some("") => Err(format!("'{option}' in the URL names no file")),
        named => Ok(named.map(PathBuf::from)),
    };
    let written = match (&url.user, &url.password) {
        (None, None) => None,
        (None, Some(_)) => return Err("a password in a NATS URL needs a user name".to_owned()),
        (Some(token), None) => Some(NatsLogin::Token(token.clone())),
        (Some(name), Some(password)) => Some(NatsLogin::User { name: name.clone(), password: password.clone() }),
    };
    let mut logins =
        [written, file("creds")?.map(NatsLogin::Creds), file("nkey")?.map(NatsLogin::Nkey)].into_iter().flatten();
    let login = logins.next();
    match logins.next() {
        Some(_) => Err("there is more than one login in the URL".to_owned()),
        None => Ok(login),
    }
}

/// Reads the names of topics as plain subjects; with JetStream they are refused, because its streams have our own
/// names.
fn read_names(url: &Url) -> Result<TopicNames, String> {
    if url.has("jetstream") && !url.topic_names.is_empty() {
        return Err(
            "topics of ?jetstream are streams of ours, and have no other names; read a subject without it".to_owned()
        );
    }
    let is_subject = |subject: &str| {
        let tokens = subject.split('.').all(|token| !token.is_empty() && token != "*" && token != ">");
        tokens && !subject.contains(char::is_whitespace)
    };
    match url.topic_names.server_names().all(is_subject) {
        true => Ok(url.topic_names.clone()),
        false => {
            Err("a name in the URL is no subject of NATS: it has white space, a wildcard, or an empty token".to_owned())
        }
    }
}

fn read_storage(url: &Url) -> Result<Option<StreamStorage>, String> {
    if !url.has("jetstream") {
        return match ["durable", "replicas"].into_iter().find(|option| url.has(option)) {
            Some(option) => Err(format!("'{option}' is for JetStream: add 'jetstream' to it")),
            None => Ok(None),
        };
    }
    let replicas = url.option("replicas").map_or(Some(1), |text| text.parse().ok());
    let replicas = replicas.filter(|copies| (1..=MAX_REPLICAS).contains(copies));
    let replicas = replicas.ok_or_else(|| format!("'replicas' in the URL is a number from 1 to {MAX_REPLICAS}"))?;
    Ok(Some(StreamStorage { is_durable: url.has("durable"), replicas }))
}

fn credentials_options(file: &Path) -> ServerResult<ConnectOptions> {
    let text = read(file, "creds")?;
    let path = file.display();
    ConnectOptions::with_credentials(&text).map_err(|e| {
        NatsServerError::File(format!("{path}: {e}; 'creds' must be a file as 'nsc generate creds' writes it"))
    })
}

/// Reads the first word that can be a user's seed; tools write comments around it.
fn read_seed(file: &Path) -> ServerResult<String> {
    let text = read(file, "nkey")?;
    let seed = text.split_whitespace().find(|word| word.starts_with("SU") && word.len() > 40);
    let path = file.display();
    let none = || NatsServerError::File(format!("{path}: there is no seed in it; 'nkey' must be a file with one: SU…"));
    seed.map(str::to_owned).ok_or_else(none)
}

fn read(file: &Path, option: &str) -> ServerResult<String> {
    let path = file.display();
    fs::read_to_string(file).map_err(|e| NatsServerError::File(format!("{path}: {e}; check '{option}' in the URL")))
}

fn trusting_config(files: &ClientTlsFiles) -> ServerResult<ClientConfig> {
    let identity = files.identity.as_ref().map(|(cert, key)| (cert.as_path(), key.as_path()));
    client_config(files.ca.as_deref(), identity, ALL_VERSIONS).map_err(NatsServerError::File)
}

/// Trusts no certificate, because the library switches to TLS by itself if the server requires it. A URL without `tls`
/// then fails with an error, instead of using a connection whose other end is not verified.
fn untrusting_config() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has these versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        let memory = Some(StreamStorage { is_durable: false, replicas: 1 });
        for (url, name, login, keeping) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222", "", None),
            ("nats://localhost", "nats://localhost:4222", "", None),
            ("nats://localhost:7000/?jetstream", "nats://localhost:7000", "", memory),
            ("nats://[::1]:7000,b?jetstream", "nats://[::1]:7000,b:4222", "", memory),
            ("nats://secret@host:1", "nats://host:1", "token secret", None),
            ("nats://ann:s%40cret@host:1?jetstream", "nats://host:1", "ann s@cret", memory),
            ("tls://host?creds=/c", "tls://host:4222", "creds /c", None),
            ("nats://host?tls&nkey=/n", "nats://host:4222", "nkey /n", None),
            (
                "nats://host?jetstream&durable&replicas=3",
                "nats://host:4222",
                "",
                Some(StreamStorage { is_durable: true, replicas: 3 }),
            ),
        ] {
            let server = NatsEndpoint::parse(url).unwrap();
            let found = match &server.login {
                None => String::new(),
                Some(NatsLogin::Token(token)) => format!("token {token}"),
                Some(NatsLogin::User { name, password }) => format!("{name} {password}"),
                Some(NatsLogin::Creds(file)) => format!("creds {}", file.display()),
                Some(NatsLogin::Nkey(file)) => format!("nkey {}", file.display()),
            };
            assert_eq!((server.name.as_str(), found.as_str(), server.storage), (name, login, keeping), "{url}");
            assert_eq!(server.tls.is_some(), url.contains("tls"), "{url}");
            assert_eq!(format!("{server:?}"), name);
        }
    }

    #[test]
    fn a_skipped_server_is_tried_last() {
        let server = NatsEndpoint::parse("nats://a:1,b:2,c:3?jetstream").unwrap();
        let then = server.first();
        assert_eq!(server.urls(), ["nats://a:1", "nats://b:2", "nats://c:3"]);
        // Two callers pass over the same server.
        (0..2).for_each(|_| server.skip_server(then));
        assert_eq!(server.urls(), ["nats://b:2", "nats://c:3", "nats://a:1"]);
        let mut tried = Vec::new();
        let done = server.try_each(|| {
            tried.push(server.urls().remove(0));
            if tried.len() < 3 { Err(NatsServerError::NoLeader) } else { Ok(()) }
        });
        assert!(done.is_ok());
        assert_eq!(tried, ["nats://b:2", "nats://c:3", "nats://a:1"]);
        assert!(matches!(server.try_each(|| Err::<(), _>(NatsServerError::Timeout)), Err(NatsServerError::Timeout)));
        assert_eq!(server.urls()[0], "nats://a:1", "it was no answer");
    }

    #[test]
    fn a_bad_url_is_refused_with_the_form_and_without_the_password() {
        for bad in [
            "nats://",
            "nats://:secret@host:1",
            "nats://ann:secret@host:99999",
            "nats://ann:secret%4@host:1",
            "nats://ann:secret@host:1/topic",
            "nats://ann:secret@host:1?streams",
            "nats://ann:secret@host:1?jetstream=no",
            "nats://ann:secret@host:1?durable",
            "nats://ann:secret@host:1?replicas=2",
            "nats://ann:secret@host:1?jetstream&replicas=6",
            "nats://ann:secret@host:1?jetstream&replicas=0",
            "nats://ann:secret@host:1?creds=/c",
            "nats://host:1?creds=/c&nkey=/n",
            "nats://host:1?nkey",
            "nats://ann:secret@host:1?ca=/c",
        ] {
            let error = NatsEndpoint::parse(bad).unwrap_err();
            assert!(matches!(error, ConnectError::Url(_)), "{bad}: {error}");
            let sentence = error.to_string();
            assert!(sentence.contains("HOST:PORT[,HOST:PORT…]") && !sentence.contains("secret"), "{bad}: {sentence}");
        }
    }
}
