//! URLs of servers, one syntax for every transport. Errors repeat only safe option names: the rest may be a password.
//!
//! ```text
//!   SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/PATH][?OPTION[=VALUE][&OPTION[=VALUE]…]]
//! ```
//! Option `name.TOPIC=NAME` sets the name of a topic on the server. `%20` and the like stand for bytes in the user, the
//! password, the path and values. An IPv6 address has brackets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::ConnectError;
use crate::topic_names::{NAME_OPTION, TopicNames};

/// Options of every transport over TCP: TLS required, trusted authorities, the client's certificate and its key.
pub const TLS_OPTIONS: [&str; 4] = ["tls", "ca", "cert", "key"];

/// Option that names the place of the password, which must replace it before the URL is parsed here.
pub const PASSWORD_OPTION: &str = "password";

/// Option for the password of Redis sentinels, where it differs; handled like [`PASSWORD_OPTION`].
pub const SENTINEL_PASSWORD_OPTION: &str = "sentinel-password";

/// Option of every transport over a network: seconds that a server may be silent. The client asks for a sign of life
/// before that time is over; a server that gives none is disconnected, reported as an outage, and connected to again.
pub const SILENCE_OPTION: &str = "silence";

/// Max silence of a server if the URL sets none.
pub const DEFAULT_SILENCE: Duration = Duration::from_secs(10);

/// Valid range of the silence option. Some servers send a sign of life once a second at most.
const SILENCE_SECONDS: std::ops::RangeInclusive<f64> = 3.0..=3600.0;
/// Max length of an unknown option name that an error repeats, in bytes.
const MAX_ECHOED_NAME_BYTES: usize = 20;

/// A URL, split into its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// The part before `://`.
    pub scheme: String,
    /// User name of the login.
    pub user: Option<String>,
    /// Password of the login.
    pub password: Option<String>,
    /// Servers, in the order of the URL; empty if it is a path alone.
    pub servers: Vec<ServerAddress>,
    /// The part after the slash that follows the servers, if there is one.
    pub path: Option<String>,
    /// Options by name; the value is empty where none is given.
    options: BTreeMap<String, String>,
    /// Names of topics on the server, where they differ.
    pub topic_names: TopicNames,
}

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerAddress {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// Port, if the URL has one.
    pub port: Option<u16>,
}

/// Files for TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientTlsFiles {
    /// Trusted authorities, PEM; this host's if none.
    pub ca: Option<PathBuf>,
    /// Client certificate and its key, PEM, for servers that require them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Url {
    /// Parses a URL that may have these options. `form` describes the valid syntax and ends the error of any other URL.
    pub fn parse(url: &str, options: &[&str], form: &str) -> Result<Self, ConnectError> {
        parse_url(url, options).map_err(|what| ConnectError::Url(format!("{what}; {form}")))
    }

    /// Returns whether the URL has this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    /// Returns the value of an option, empty if it has none; `None` if the URL has no such option.
    pub fn option(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// Returns how long a server may be silent. The error is a sentence.
    pub fn silence(&self) -> Result<Duration, String> {
        let Some(seconds) = self.option(SILENCE_OPTION) else { return Ok(DEFAULT_SILENCE) };
        let seconds = seconds.parse::<f64>().ok().filter(|seconds| SILENCE_SECONDS.contains(seconds));
        let (min, max) = (SILENCE_SECONDS.start(), SILENCE_SECONDS.end());
        let refusal = || format!("'{SILENCE_OPTION}' in the URL is a number of seconds from {min} to {max}");
        seconds.map(Duration::from_secs_f64).ok_or_else(refusal)
    }

    /// Returns the files for TLS if TLS is required, by the option `tls` or a secure scheme. The error is a sentence.
    pub fn tls(&self, is_secure_scheme: bool) -> Result<Option<ClientTlsFiles>, String> {
        let file = |option| match self.option(option) {
            Some("") => Err(format!("'{option}' in the URL names no file")),
            named => Ok(named.map(PathBuf::from)),
        };
        let (ca, cert, key) = (file("ca")?, file("cert")?, file("key")?);
        if !is_secure_scheme && !self.has("tls") {
            return match (ca, cert, key) {
                (None, None, None) => Ok(None),
                _ => Err("the URL names files for TLS without the option 'tls': add 'tls'".to_owned()),
            };
        }
        match (cert, key) {
            (Some(cert), Some(key)) => Ok(Some(ClientTlsFiles { ca, identity: Some((cert, key)) })),
            (None, None) => Ok(Some(ClientTlsFiles { ca, identity: None })),
            _ => Err("a certificate and its key go together: 'cert=FILE&key=FILE' in the URL".to_owned()),
        }
    }
}

/// Returns the URL without names of topics, and the topic's name on its server.
pub fn resolve_topic(url: &str, topic: &str) -> (String, String) {
    let Some((place, options)) = url.split_once('?') else { return (url.to_owned(), topic.to_owned()) };
    let is_name = |option: &&str| option.starts_with(NAME_OPTION);
    let (names, others): (Vec<&str>, Vec<&str>) = options.split('&').partition(is_name);
    let value =
        |option: &&str| option.strip_prefix(NAME_OPTION)?.strip_prefix(topic)?.strip_prefix('=').map(percent_decode);
    let name = names.iter().find_map(value).and_then(Result::ok);
    let url = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
    (url, name.unwrap_or_else(|| topic.to_owned()))
}

impl std::fmt::Debug for Url {
    /// Leaves out the parts that may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Url").field("scheme", &self.scheme).field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl ServerAddress {
    /// Returns the port of the URL, or else this one.
    pub fn port_or(&self, port: u16) -> u16 {
        self.port.unwrap_or(port)
    }

    /// Returns `HOST:PORT`, as written in a URL.
    pub fn with_port_or(&self, port: u16) -> String {
        let Self { host, .. } = self;
        let port = self.port_or(port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

fn parse_url(url: &str, known: &[&str]) -> Result<Url, String> {
    let (scheme, rest) = url.split_once("://").ok_or("a URL begins with a scheme and '://'")?;
    let (place, options) = rest.split_once('?').map_or((rest, None), |(place, options)| (place, Some(options)));
    let (servers, path) = place.split_once('/').map_or((place, None), |(servers, path)| (servers, Some(path)));
    let (login, servers) = servers.rsplit_once('@').map_or((None, servers), |(login, rest)| (Some(login), rest));
    let (user, password) = read_login(login.unwrap_or_default())?;
    let (options, topic_names) = read_options(options, known)?;
    let (scheme, servers) = (scheme.to_owned(), read_servers(servers)?);
    let path = path.map(percent_decode).transpose()?;
    Ok(Url { scheme, user, password, servers, path, options, topic_names })
}

fn read_login(login: &str) -> Result<(Option<String>, Option<String>), String> {
    let (user, password) = login.split_once(':').map_or((login, None), |(user, rest)| (user, Some(rest)));
    let user = (!user.is_empty()).then(|| percent_decode(user)).transpose()?;
    Ok((user, password.map(percent_decode).transpose()?))
}

fn read_servers(servers: &str) -> Result<Vec<ServerAddress>, String> {
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    servers.split(',').map(read_address).collect()
}

fn read_address(text: &str) -> Result<ServerAddress, String> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(open) => {
            let (host, rest) = open.split_once(']').ok_or("a '[' in the address is not closed")?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| "there is no IPv6 address between '[' and ']'")?;
            (host, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err("there is no host, or none that can be".to_owned());
    }
    let port = match rest.strip_prefix(':') {
        Some(digits) => {
            Some(digits.parse::<u16>().ok().filter(|&port| port != 0).ok_or("a port is a number from 1 to 65535")?)
        }
        None if rest.is_empty() => None,
        None => return Err("something other than a port follows the host".to_owned()),
    };
    Ok(ServerAddress { host: host.to_owned(), port })
}

fn read_options(options: Option<&str>, known: &[&str]) -> Result<(BTreeMap<String, String>, TopicNames), String> {
    let (mut found, mut names) = (BTreeMap::new(), TopicNames::default());
    let Some(options) = options else { return Ok((found, names)) };
    for option in options.split('&') {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let server_name = value.filter(|name| !name.is_empty());
        if let Some((topic, server_name)) = name.strip_prefix(NAME_OPTION).zip(server_name) {
            if server_name.contains('@') {
                return Err(format!("'{NAME_OPTION}{topic}' in the URL has an '@'; write %40"));
            }
            names.add(topic, percent_decode(server_name)?)?;
            continue;
        }
        if !known.contains(&name) {
            return Err(unknown_option(name, options, known));
        }
        if value == Some("") {
            return Err(format!("'{name}=' in the URL has no value"));
        }
        if found.insert(name.to_owned(), percent_decode(value.unwrap_or_default())?).is_some() {
            return Err(format!("'{name}' is twice in the URL"));
        }
    }
    Ok((found, names))
}

/// Returns the error for an unknown option, with its name only if that cannot be part of a password with a '?'.
fn unknown_option(name: &str, options: &str, known: &[&str]) -> String {
    let is_name_byte = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
    let is_named = (1..=MAX_ECHOED_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_name_byte);
    let what = if is_named && !options.contains('@') { format!("'{name}'") } else { "text after '?'".to_owned() };
    format!(
        "{what} is no option here: there are {}, {NAME_OPTION}TOPIC and {PASSWORD_OPTION}, with '&' in between (in a \
         password, write %3F)",
        known.join(", ")
    )
}

/// Decodes `%20` and the like.
fn percent_decode(text: &str) -> Result<String, String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let digits = digit().zip(digit());
        let (high, low) = digits.ok_or("a '%' is not followed by two hexadecimal digits")?;
        decoded.push((high * 16 + low) as u8);
    }
    String::from_utf8(decoded).map_err(|_| "the bytes that '%' encodes are no UTF-8".to_owned())
}

/// Removes user, password and password options from each URL of a text. Words are separated by spaces.
pub fn redact_logins(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let Some((place, options)) = place.split_once('?') else { return format!("{scheme}://{place}") };
        let is_kept = |option: &&str| option.split('=').next() != Some(SENTINEL_PASSWORD_OPTION);
        let options = options.split('&').filter(is_kept).collect::<Vec<_>>().join("&");
        format!("{scheme}://{place}{}{options}", if options.is_empty() { "" } else { "?" })
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "use x://HOST";

    fn parse(url: &str) -> Result<Url, ConnectError> {
        Url::parse(url, &["streams", "tls", "ca", "cert", "key"], FORM)
    }

    #[test]
    fn a_topic_has_the_name_on_its_server_that_the_url_sets() {
        for (url, topic, resolved) in [
            ("x://a", "btc", ("x://a", "btc")),
            ("x://a?name.btc=m:BTC%40t&tls", "btc", ("x://a?tls", "m:BTC@t")),
            ("x://a?name.btc=m", "eth", ("x://a", "eth")),
            ("x://a?name.bt=m&streams", "btc", ("x://a?streams", "btc")),
        ] {
            assert_eq!(resolve_topic(url, topic), (resolved.0.to_owned(), resolved.1.to_owned()), "{url}");
        }
    }

    #[test]
    fn urls_are_read() {
        for (url, user, password, servers, path) in [
            ("x://a", None, None, "a:7", None),
            ("x://a:1,b,[::1]:3/", None, None, "a:1,b:7,[::1]:3", Some("")),
            ("x://ann@a:1/0?streams", Some("ann"), None, "a:1", Some("0")),
            ("x://:s%40c@a", None, Some("s@c"), "a:7", None),
            ("x://ann:s@c:r@a/a%2Fb", Some("ann"), Some("s@c:r"), "a:7", Some("a/b")),
            ("x:///run/a%20b", None, None, "", Some("run/a b")),
        ] {
            let read = parse(url).unwrap_or_else(|e| panic!("{url}: {e}"));
            let shown: Vec<String> = read.servers.iter().map(|server| server.with_port_or(7)).collect();
            let found = (read.user.as_deref(), read.password.as_deref(), shown.join(","), read.path.as_deref());
            assert_eq!(found, (user, password, servers.to_owned(), path), "{url}");
            assert_eq!(read.has("streams"), url.contains("?streams"), "{url}");
        }
    }

    #[test]
    fn the_error_of_a_bad_url_does_not_repeat_the_password() {
        let bad = "a:1 x://:secret@ x://:secret@a:0 x://:secret@a:99999 x://:secret@a: x://:secret@::1:5 \
                   x://:secret@[::1 x://:secret@[::1]5 x://:secret@a,,b x://:secret%4@a x://:what?secret@a:1 \
                   x://:secret@a?stream x://:secret@a?streams&streams x://ann:12?secret@a:1 \
                   x://ann:12?streams&secret@a:1 x://a?strem=secret x://:secret@a?ca= x://:secret@a?";
        for bad in bad.split(' ').chain(["x://:secret@a b"]) {
            let refused = match parse(bad) {
                Err(error) => error.to_string(),
                Ok(url) if url.servers.is_empty() => continue,
                Ok(url) => panic!("{bad} is {url:?}"),
            };
            assert!(refused.ends_with(FORM) && !refused.contains("secret"), "{bad}: {refused}");
        }
        let shown = format!("{:?}", parse("x://ann:secret@a").unwrap());
        assert!(!shown.contains("secret") && !shown.contains("ann"), "{shown}");
    }

    #[test]
    fn an_unknown_option_is_named_unless_it_may_be_a_password() {
        for (url, expected) in [
            (
                "x://ann:p@a?strem",
                "'strem' is no option here: there are streams, tls, ca, cert, key, name.TOPIC and password",
            ),
            ("x://a?tls&streams-=1", "'streams-' is no option here: there are streams"),
            ("x://ann:12?strem@a", "text after '?' is no option here: there are streams"),
            ("x://a?tls&", "text after '?' is no option here"),
            ("x://a?p4ssword", "text after '?' is no option here"),
            ("x://a?streamsstreamsstreamsstreams", "text after '?' is no option here"),
        ] {
            let refused = parse(url).unwrap_err().to_string();
            assert!(refused.starts_with(expected) && refused.ends_with(FORM), "{url}: {refused}");
        }
    }

    #[test]
    fn tls_is_required_or_absent() {
        let tls = |url: &str, secure: bool| parse(url).unwrap().tls(secure);
        assert_eq!(tls("x://a", false), Ok(None));
        assert_eq!(tls("x://a?tls", false), Ok(Some(ClientTlsFiles::default())));
        assert_eq!(tls("x://a", true), Ok(Some(ClientTlsFiles::default())));
        let files = ClientTlsFiles { ca: Some("/c".into()), identity: Some(("/d".into(), "/k".into())) };
        assert_eq!(tls("x://a?tls&ca=/c&cert=/d&key=/k", false), Ok(Some(files)));
        assert!(tls("x://a?ca=/c", false).unwrap_err().contains("add 'tls'"));
        assert!(tls("x://a?tls&cert=/c", false).unwrap_err().contains("go together"));
        assert!(tls("x://a?tls&ca", false).unwrap_err().contains("names no file"));
    }

    #[test]
    fn logins_are_removed_from_a_text() {
        for (text, shown) in [
            ("bench queue --target redis://ann:s@cret@h:1?streams -q", "bench queue --target redis://h:1?streams -q"),
            ("--target=amqp://:secret@h:1/v", "--target=amqp://h:1/v"),
            ("redis://h?sentinel=m&sentinel-password=secret&streams", "redis://h?sentinel=m&streams"),
            ("redis://h?sentinel-password=secret", "redis://h"),
            ("bench host --json a@b", "bench host --json a@b"),
        ] {
            assert_eq!(redact_logins(text), shown);
        }
    }
}
