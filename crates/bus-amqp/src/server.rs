//! The servers that a URL names, and the login.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism};
use tickpath_bus_api::url::{ClientTlsFiles, SILENCE_OPTION, ServerAddress, TLS_OPTIONS, Url};
use tickpath_bus_api::{ConnectError, TopicNames};
use tickpath_tls::{ALL_VERSIONS, ClientConfig, client_config};

use crate::error::{AmqpLoginKind, AmqpServerError};

pub(crate) const PORT: u16 = 5672;
const TLS_PORT: u16 = 5671;
/// The default ports of the management API, without and with TLS.
const MANAGEMENT_PORTS: [u16; 2] = [15672, 15671];
const MANAGEMENT_OPTION: &str = "management";
/// The default user name and password, which RabbitMQ accepts from loopback.
const GUEST: &str = "guest";
/// The default virtual host.
const VIRTUAL_HOST: &str = "/";
/// Max bytes of a virtual host's name in AMQP.
const MAX_VIRTUAL_HOST_BYTES: usize = 255;
/// Heartbeat intervals within a server's silence: the client library gives up after two, checked twice per interval.
const HEARTBEATS: f64 = 2.5;

/// Max bytes of a frame: the minimum that every RabbitMQ accepts. The client library allocates 64 of them at the login,
/// and parses nested tables by recursion: a publisher's headers in a longer frame would overflow the stack.
const MAX_FRAME_BYTES: u32 = 8 << 10;

/// The form of a URL of this transport, for errors.
const FORM: &str = "use amqp://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/VHOST][?durable[&replicas=N]][&silence=SECONDS][&management=PORT], or \
                    amqps:// for TLS, with ?ca=FILE[&cert=FILE&key=FILE]";

/// The nodes of one broker, and the login.
pub(crate) struct AmqpServer {
    scheme: &'static str,
    /// The hosts, in the order in which they are tried.
    pub hosts: Vec<AmqpHost>,
    /// User name and password, if the URL has them.
    login: Option<(String, String)>,
    pub virtual_host: String,
    /// None if TLS is not required.
    pub tls: Option<Arc<ClientConfig>>,
    /// True if we have a certificate of our own.
    has_certificate: bool,
    pub durability: Durability,
    /// The silence after which a connection counts as lost.
    silence: Duration,
    /// The port of the management API, and whether the URL names it.
    pub management_port: u16,
    pub names_management: bool,
    /// Names of topics on the broker.
    pub names: TopicNames,
}

pub(crate) struct AmqpHost {
    /// The name that its certificate must have.
    pub name: String,
    /// The AMQP port.
    pub port: u16,
    /// `HOST:PORT`.
    pub host_port: String,
}

/// The durability of topics, queues and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Lost with the broker.
    Transient,
    /// On disk; queues on the disks of this many nodes, or of as many as the broker chooses.
    Durable {
        /// The number of nodes that store a queue.
        replicas: Option<u16>,
    },
}

impl AmqpServer {
    /// Reads a URL, and the files that it names. Errors do not hold the URL, because it may have a password.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let options = [&TLS_OPTIONS[..], &["durable", "replicas", MANAGEMENT_OPTION, SILENCE_OPTION]].concat();
        let url = Url::parse(url, &options, FORM)?;
        parse_server(url).map_err(|what| ConnectError::Url(format!("no RabbitMQ URL: {what}; {FORM}")))
    }

    /// Returns the URL of the servers without a password, for sentences.
    pub fn name(&self) -> String {
        let hosts: Vec<&str> = self.hosts.iter().map(|host| host.host_port.as_str()).collect();
        format!("{}://{}", self.scheme, hosts.join(","))
    }

    pub fn login(&self) -> AmqpLoginKind {
        match self.login {
            Some(_) => AmqpLoginKind::Password,
            None if self.has_certificate => AmqpLoginKind::Certificate,
            None => AmqpLoginKind::Guest,
        }
    }

    pub fn user(&self) -> (String, String) {
        self.login.clone().unwrap_or_else(|| (GUEST.to_owned(), GUEST.to_owned()))
    }

    pub fn uri(&self, host: &AmqpHost) -> AMQPUri {
        let (username, password) = self.user();
        let userinfo = AMQPUserInfo { username, password };
        let auth_mechanism = (self.login() == AmqpLoginKind::Certificate).then_some(SASLMechanism::External);
        AMQPUri {
            // The stream that the library is given is already encrypted.
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority { userinfo, host: host.name.clone(), port: host.port },
            vhost: self.virtual_host.clone(),
            query: AMQPQueryString {
                frame_max: Some(MAX_FRAME_BYTES),
                // Whole seconds, at least one.
                heartbeat: Some((self.silence.as_secs_f64() / HEARTBEATS) as u16),
                auth_mechanism,
                ..AMQPQueryString::default()
            },
        }
    }

    pub fn sentence(&self, error: &AmqpServerError) -> String {
        format!("{} {error}", self.name())
    }

    pub fn error(&self, error: &AmqpServerError) -> ConnectError {
        ConnectError::Server { server: self.name(), what: error.to_string() }
    }
}

impl fmt::Debug for AmqpServer {
    /// Prints the name alone: the other fields may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl AmqpHost {
    fn new(address: &ServerAddress, port: u16) -> Self {
        let ServerAddress { host, .. } = address;
        Self { name: host.clone(), port: address.port_or(port), host_port: address.with_port_or(port) }
    }

    /// Resolves the host's addresses, with this port.
    pub fn addresses(&self, port: u16) -> Result<Vec<SocketAddr>, AmqpServerError> {
        let addresses = (self.name.as_str(), port).to_socket_addrs().map_err(AmqpServerError::Unresolved)?;
        Ok(addresses.collect())
    }
}

fn parse_server(url: Url) -> Result<AmqpServer, String> {
    let scheme = match url.scheme.as_str() {
        "amqp" => "amqp",
        "amqps" => "amqps",
        _ => return Err("it begins with neither amqp:// nor amqps://".to_owned()),
    };
    if url.servers.is_empty() {
        return Err("there is no host".to_owned());
    }
    let files = url.tls(scheme == "amqps")?;
    let port = if files.is_some() { TLS_PORT } else { PORT };
    let durability = read_durability(&url)?;
    let has_certificate = files.as_ref().is_some_and(|files| files.identity.is_some());
    let tls = files.map(|files| read_files(&files)).transpose()?.map(Arc::new);
    let hosts = url.servers.iter().map(|address| AmqpHost::new(address, port)).collect();
    let silence = url.silence()?;
    let (management_port, names_management) = match url.option(MANAGEMENT_OPTION) {
        None => (MANAGEMENT_PORTS[usize::from(tls.is_some())], false),
        Some(port) => (port.parse().map_err(|_| format!("'{port}' is no port of the management API"))?, true),
    };
    if url.topic_names.server_names().any(|name| name.starts_with("amq.")) {
        return Err("exchanges whose names begin with 'amq.' are the broker's own, and no topics".to_owned());
    }
    let login = read_login(url.user, url.password)?;
    let virtual_host = url.path.filter(|path| !path.is_empty()).unwrap_or_else(|| VIRTUAL_HOST.to_owned());
    if virtual_host.len() > MAX_VIRTUAL_HOST_BYTES {
        return Err("the virtual host is longer than 255 bytes".to_owned());
    }
    Ok(AmqpServer {
        scheme,
        hosts,
        login,
        virtual_host,
        tls,
        has_certificate,
        durability,
        silence,
        management_port,
        names_management,
        names: url.topic_names,
    })
}

fn read_files(files: &ClientTlsFiles) -> Result<ClientConfig, String> {
    let identity = files.identity.as_ref().map(|(cert, key)| (cert.as_path(), key.as_path()));
    client_config(files.ca.as_deref(), identity, ALL_VERSIONS)
}

fn read_login(user: Option<String>, password: Option<String>) -> Result<Option<(String, String)>, String> {
    match (user, password) {
        (Some(user), Some(password)) => Ok(Some((user, password))),
        (None, None) => Ok(None),
        (Some(_), None) => Err("there is a user name without a password".to_owned()),
        (None, Some(_)) => Err("there is a password without a user name".to_owned()),
    }
}

fn read_durability(url: &Url) -> Result<Durability, String> {
    let replicas = match url.option("replicas") {
        None => None,
        Some(digits) => {
            let replicas = digits.parse::<u16>().ok().filter(|&replicas| replicas != 0);
            Some(replicas.ok_or("'replicas' is no number of nodes from 1 on")?)
        }
    };
    match (url.option("durable"), replicas) {
        (Some(""), replicas) => Ok(Durability::Durable { replicas }),
        (Some(_), _) => Err("'durable' has no value".to_owned()),
        (None, None) => Ok(Durability::Transient),
        (None, Some(_)) => Err("'replicas' needs a durable queue: add 'durable'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        for (url, name, login, virtual_host) in [
            ("amqp://127.0.0.1:5672", "amqp://127.0.0.1:5672", ("guest", "guest"), "/"),
            ("amqp://localhost", "amqp://localhost:5672", ("guest", "guest"), "/"),
            ("amqp://localhost/", "amqp://localhost:5672", ("guest", "guest"), "/"),
            ("amqp://[::1]:7000/%2F", "amqp://[::1]:7000", ("guest", "guest"), "/"),
            ("amqp://[::1]/prod", "amqp://[::1]:5672", ("guest", "guest"), "prod"),
            ("amqp://ann:s%40c:ret@host:1/a%2fb", "amqp://host:1", ("ann", "s@c:ret"), "a/b"),
            ("amqp://ann:s@cret@host:1", "amqp://host:1", ("ann", "s@cret"), "/"),
            ("amqp://one,two:7/v?durable", "amqp://one:5672,two:7", ("guest", "guest"), "v"),
        ] {
            let server = AmqpServer::parse(url).unwrap_or_else(|e| panic!("{url}: {e}"));
            let uri = server.uri(&server.hosts[0]);
            let userinfo = (uri.authority.userinfo.username.as_str(), uri.authority.userinfo.password.as_str());
            assert_eq!((server.name().as_str(), userinfo, uri.vhost.as_str()), (name, login, virtual_host), "{url}");
            assert_eq!(server.login() == AmqpLoginKind::Password, url.contains('@'), "{url}");
            assert!(server.tls.is_none() && uri.query.auth_mechanism.is_none(), "{url}");
        }
    }

    #[test]
    fn the_durable_option_decides_the_durability() {
        let durability = |url: &str| AmqpServer::parse(url).unwrap_or_else(|e| panic!("{url}: {e}")).durability;
        assert_eq!(durability("amqp://h"), Durability::Transient);
        assert_eq!(durability("amqp://h?durable"), Durability::Durable { replicas: None });
        assert_eq!(durability("amqp://h?durable&replicas=3"), Durability::Durable { replicas: Some(3) });
    }

    #[test]
    fn the_error_of_a_bad_url_does_not_repeat_the_password() {
        let long = format!("amqp://host/{}", "x".repeat(256));
        let bad = "amqp:// amqp://:5672 amqp:///vhost http://ann:secret@host:1 \
                   amqps://ann:secret@host:1?ca=/no/such/file amqp://ann:secret@host:1?ca=/no/such/file \
                   amqp://ann@host:1 amqp://:secret@host:1 \
                   amqp://ann:secret%4@host:1 amqp://ann:secret@host:99999 amqp://ann:secret@host:0 \
                   amqp://ann:secret@host: amqp://ann:secret@::1:5672 amqp://ann:secret@[::1 \
                   amqp://ann:secret@[::1]5672 amqp://ann:secret@host:1/a?heartbeat=5 \
                   amqp://ann:secret@host:1?replicas=3 amqp://ann:secret@host:1?durable&replicas=0 \
                   amqp://ann:secret@host:1?durable=yes amqp://ann:secret@host:1/%zz";
        for bad in bad.split(' ').chain(["amqp://ho st", long.as_str()]) {
            let error = AmqpServer::parse(bad).expect_err(bad).to_string();
            assert!(error.contains("use amqp://[USER:PASSWORD@]HOST[:PORT]"), "{bad}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
