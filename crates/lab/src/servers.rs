//! What servers say of themselves to whoever connects: name and version, beside what is measured. Read only.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

use crate::redis::about;
use tickpath_result::Software;
use tickpath_result::without_login;

/// How long a server may take to say what it is; a result goes without that rather than wait. Redis may take as long as
/// anywhere.
const PATIENCE: Duration = Duration::from_secs(2);

/// What answers at a URL; nothing of a log, and no version where the server does not tell.
pub(crate) fn software(url: &str) -> Software {
    let scheme = url.split("://").next().unwrap_or(url);
    let address = address(url);
    let version =
        |ask: fn(&str, Duration) -> Result<Option<String>, String>| ask(address.as_deref()?, PATIENCE).ok()?;
    let (name, version) = match scheme {
        "redis" | "redis+unix" => return redis(url),
        "nats" => ("nats-server", version(|address, patience| Ok(text(&nats(address, patience)?, "version")))),
        "amqp" => ("RabbitMQ", version(rabbitmq)),
        "kafka" => ("Kafka", None),
        _ => return Software::default(),
    };
    Software { server: Some(name.to_owned()), server_version: version, ..Software::default() }
}

/// What names the place of a URL's topics, however the URL is written: the server's own identity, and what of the URL
/// keeps topics of one name apart. None where the server tells none.
pub(crate) fn identity(url: &str) -> Option<String> {
    let (bare, way) = url.split_once('?').unwrap_or((url, ""));
    match url.split("://").next()? {
        "redis" | "redis+unix" => {
            let mut connection = about::dial(bare).ok()?;
            let told: String = redis::cmd("INFO").arg("server").query(&mut connection).ok()?;
            let server = about::field(&told, "run_id")?;
            // A channel is the same in all databases, a stream is not.
            let info = redis::IntoConnectionInfo::into_connection_info(bare).ok()?;
            let place = if way.is_empty() { String::new() } else { format!("{}?{way}", info.redis_settings().db()) };
            Some(format!("redis {server} {place}"))
        }
        // A stream of JetStream has the subject that core NATS has.
        "nats" => text(&nats(&address(url)?, PATIENCE).ok()?, "server_id").map(|server| format!("nats {server}")),
        _ => None,
    }
}

fn redis(url: &str) -> Software {
    let url = url.split('?').next().unwrap_or(url);
    let asked = about::dial(url).and_then(|mut connection| {
        let told: String = redis::cmd("INFO").query(&mut connection)?;
        Ok(about::software(&told, &mut connection))
    });
    asked.unwrap_or_else(|_| Software { server: Some("redis-server".to_owned()), ..Software::default() })
}

/// Where the first server of a URL listens: `HOST:PORT`.
pub(crate) fn address(url: &str) -> Option<String> {
    let url = without_login(url);
    let (scheme, rest) = url.split_once("://")?;
    let port = match scheme {
        "redis" => 6379,
        "nats" => 4222,
        "amqp" => 5672,
        "kafka" => 9092,
        _ => return None,
    };
    let host = rest.split([',', '/', '?']).next()?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if has_port && !host.ends_with(']') { host.to_owned() } else { format!("{host}:{port}") })
}

/// A connection whose calls end.
pub(crate) fn connect(address: &str, patience: Duration) -> Result<TcpStream, String> {
    let found = address.to_socket_addrs().map_err(|e| format!("{e}; write HOST:PORT"))?;
    let mut tried = found.map(|found| TcpStream::connect_timeout(&found, patience));
    let first = tried.next().ok_or_else(|| "no such host".to_owned())?;
    let stream = tried.fold(first, Result::or).map_err(|e| format!("{e}; is the server up?"))?;
    let set = stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_write_timeout(Some(patience)));
    set.map_err(|e| e.to_string()).map(|()| stream)
}

/// Why nothing was read.
pub(crate) fn silence(error: &std::io::Error, patience: Duration) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("it did not answer within {} s; look whether it hangs", patience.as_secs_f64())
        }
        _ => format!("{error}; look into its log"),
    }
}

/// What a NATS server says first.
pub(crate) fn nats(address: &str, patience: Duration) -> Result<Value, String> {
    let mut line = String::new();
    let mut stream = BufReader::new(connect(address, patience)?);
    stream.read_line(&mut line).map_err(|e| silence(&e, patience))?;
    let info = line.strip_prefix("INFO ").ok_or("it does not answer as NATS does; check the port")?;
    serde_json::from_str(info).map_err(|e| format!("its INFO cannot be read ({e})"))
}

/// A field of that, as text.
pub(crate) fn text(info: &Value, name: &str) -> Option<String> {
    let field = info.get(name)?;
    Some(field.as_str().map_or_else(|| field.to_string(), str::to_owned))
}

/// The version that a RabbitMQ server says first; none if it says none.
pub(crate) fn rabbitmq(address: &str, patience: Duration) -> Result<Option<String>, String> {
    let mut stream = connect(address, patience)?;
    stream.write_all(b"AMQP\0\0\x09\x01").map_err(|e| e.to_string())?;
    let mut frame = vec![0; 4096];
    let read = stream.read(&mut frame).map_err(|e| silence(&e, patience))?;
    let text = String::from_utf8_lossy(&frame[..read]).into_owned();
    if read < 8 || !text.contains("product") {
        return Err("it does not answer as RabbitMQ does; check the port".to_owned());
    }
    // A table's text: its name, the letter S, its length in four bytes, its bytes.
    Ok(text.split_once("versionS").map(|(_, rest)| {
        let digits = rest.chars().skip(4);
        digits.take_while(|c| c.is_ascii_digit() || *c == '.').collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_by_its_url() {
        for (url, found) in [
            ("nats://ann:secret@127.0.0.1", Some("127.0.0.1:4222")),
            ("kafka://127.0.0.1:19092,127.0.0.1:2", Some("127.0.0.1:19092")),
            ("amqp://127.0.0.1:5/vhost", Some("127.0.0.1:5")),
            ("redis://127.0.0.1?streams", Some("127.0.0.1:6379")),
            ("nats://[::1]", Some("[::1]:4222")),
            ("nats://[::1]:5", Some("[::1]:5")),
            ("redis+unix:///run/redis.sock", None),
        ] {
            assert_eq!(address(url).as_deref(), found, "{url}");
        }
    }

    #[test]
    fn a_log_has_no_server_and_one_that_does_not_answer_no_version() {
        assert!(software("shm://").is_unknown());
        let unknown = software("nats://127.0.0.1:1");
        assert_eq!((unknown.server.as_deref(), unknown.server_version), (Some("nats-server"), None));
    }
}
