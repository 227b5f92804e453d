//! Effects of a broker's policies on the messages of its queues. AMQP does not report policies; the management API
//! does, where the plugin `rabbitmq_management` runs and the user has the tag `management`.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use tickpath_clock::{Clock, HostClock};

use crate::broker_version::dial;
use crate::destination::{AmqpDestination, AmqpObject};
use crate::error::AmqpLoginKind;
use crate::server::{AmqpHost, AmqpServer};

/// Max time to connect to the management API, to wait for a part of its answer, and to read all of it.
const API_TIMEOUT: Duration = Duration::from_secs(2);
/// Max bytes of an answer: some ten thousand queues.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The text of a 404 for a queue that does not exist; other 404s have another text.
const NOT_FOUND: &[u8] = b"Object Not Found";
/// Max queues that a sentence names; the others are counted.
const MAX_NAMED_QUEUES: usize = 3;
/// The columns requested of a queue, without its statistics.
const COLUMNS: &str = "?columns=name,policy,operator_policy,effective_policy_definition";

/// Returns how a queue may lose or refuse pushed messages, in a sentence; none if it keeps all.
pub(crate) fn queue_loss_risk(server: &AmqpServer, destination: &AmqpDestination) -> Result<Option<String>, String> {
    Ok(query_queue(server, destination)?.as_ref().and_then(loss_sentence))
}

/// Returns a policy that refuses pushed messages, if the URL names the port: the request carries the login.
pub(crate) fn refusing_policy(server: &AmqpServer, destination: &AmqpDestination) -> Option<String> {
    let queue = server.names_management.then(|| query_queue(server, destination).ok()).flatten().flatten()?;
    let refuses = queue["effective_policy_definition"]["overflow"].as_str()?.starts_with("reject");
    if refuses { loss_sentence(&queue) } else { None }
}

fn query_queue(server: &AmqpServer, destination: &AmqpDestination) -> Result<Option<Value>, String> {
    let AmqpObject::Queue(queue) = &destination.object else { return Ok(None) };
    let path = format!("/api/queues/{}/{}{COLUMNS}", escaped(&server.virtual_host), escaped(queue.as_str()));
    query_any_host(server, &path)
}

/// Returns which queues of the virtual host may lose or refuse messages, and how; none if all keep theirs.
pub(crate) fn all_loss_risks(server: &AmqpServer) -> Result<Option<String>, String> {
    let path = format!("/api/queues/{}{COLUMNS}", escaped(&server.virtual_host));
    let queues = query_any_host(server, &path)?.ok_or("the management API has no such virtual host")?;
    let losing = queues.as_array().into_iter().flatten().filter_map(|queue| {
        let name = queue["name"].as_str()?;
        Some(format!("{name}: {}", loss_sentence(queue)?))
    });
    let losing: Vec<String> = losing.collect();
    let more = losing.len().saturating_sub(MAX_NAMED_QUEUES);
    let named = losing.iter().take(MAX_NAMED_QUEUES).cloned().collect::<Vec<_>>().join("; ");
    Ok((!losing.is_empty()).then(|| if more > 0 { format!("{named}; and {more} more") } else { named }))
}

/// Returns the effect of the policy that applies to a queue, in a sentence; none if it keeps all.
fn loss_sentence(queue: &Value) -> Option<String> {
    let definition = queue["effective_policy_definition"].as_object()?;
    let policies = ["policy", "operator_policy"].into_iter().filter_map(|which| queue[which].as_str());
    let policies: Vec<String> = policies.filter(|name| !name.is_empty()).map(|name| format!("'{name}'")).collect();
    let effects = policy_effects(definition);
    (!effects.is_empty()).then(|| format!("the policy {} {}", policies.join(" and "), effects.join(", ")))
}

fn policy_effects(definition: &Map<String, Value>) -> Vec<String> {
    let limit = |key: &str, unit: &str| Some(format!("{} {unit}", definition.get(key)?.as_u64()?));
    let limits: Vec<String> =
        [limit("max-length", "messages"), limit("max-length-bytes", "bytes")].into_iter().flatten().collect();
    let refuses = definition.get("overflow").and_then(Value::as_str).is_some_and(|mode| mode.starts_with("reject"));
    let beyond = if refuses { "refuses messages beyond" } else { "drops the oldest message beyond" };
    let limits = (!limits.is_empty()).then(|| format!("{beyond} {}", limits.join(" or ")));
    let age = limit("message-ttl", "ms").map(|age| format!("drops messages that are not pulled within {age}"));
    let idle = limit("expires", "ms").map(|idle| format!("removes the queue when it is unused for {idle}"));
    let tries = limit("delivery-limit", "deliveries").map(|tries| format!("gives up a message after {tries}"));
    let mut effects: Vec<String> = [limits, age, idle, tries].into_iter().flatten().collect();
    let dead_letters = definition.get("dead-letter-exchange").and_then(Value::as_str);
    if let Some(exchange) = dead_letters.filter(|_| !effects.is_empty()) {
        effects.push(format!("and sends dropped messages to the exchange '{exchange}'"));
    }
    effects
}

/// Asks the first host that answers; none if the object does not exist.
fn query_any_host(server: &AmqpServer, path: &str) -> Result<Option<Value>, String> {
    if server.login() == AmqpLoginKind::Certificate {
        return Err("the management API needs a user name and a password, and the URL has none".to_owned());
    }
    let mut failed = String::new();
    for host in &server.hosts {
        match get(server, host, path) {
            Ok(answer) => return answer,
            Err(e) => {
                failed = format!(
                    "the management API at {}:{} does not answer ({e}); `rabbitmq-plugins enable rabbitmq_management`, or name \
                     its port: ?management=PORT",
                    host.name, server.management_port
                );
            }
        }
    }
    Err(failed)
}

fn get(server: &AmqpServer, host: &AmqpHost, path: &str) -> io::Result<Result<Option<Value>, String>> {
    let clock = HostClock::get().map_err(io::Error::other)?;
    let begun = clock.ticks();
    let mut stream = dial(server, host, server.management_port, API_TIMEOUT)?;
    let (user, password) = server.user();
    let login = STANDARD.encode(format!("{user}:{password}"));
    // An HTTP/1.0 answer comes in one piece, and ends with the connection.
    let name = if host.name.contains(':') { format!("[{}]", host.name) } else { host.name.clone() };
    let head = format!("GET {path} HTTP/1.0\r\nHost: {name}\r\nAuthorization: Basic {login}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&part[..count]),
            // A server that closes the connection without a TLS close_notify has sent its whole answer.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::other(format!("its answer is longer than {MAX_ANSWER_BYTES} bytes")));
        }
        if clock.ns_between(begun, clock.ticks()) > API_TIMEOUT.as_nanos() as i64 {
            return Err(io::Error::other("its answer does not end"));
        }
    }
    let no_http = || io::Error::other("it speaks no HTTP");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(no_http)?;
    let status = answer.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    match status {
        b"200" => serde_json::from_slice(&answer[end + 4..]).map(|found| Ok(Some(found))).map_err(io::Error::other),
        b"404" if answer[end..].windows(NOT_FOUND.len()).any(|words| words == NOT_FOUND) => Ok(Ok(None)),
        b"401" | b"403" => Ok(Err(format!(
            "the management API at {}:{} does not let this user in; `rabbitmqctl set_user_tags USER management`",
            host.name, server.management_port
        ))),
        other => Err(io::Error::other(format!("status {}", String::from_utf8_lossy(other)))),
    }
}

/// Percent-encodes a name for the path of a URL.
fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_described_by_its_effects_on_messages() {
        for (definition, effects) in [
            (json!({}), None),
            (json!([]), None),
            (json!({"ha-mode": "all"}), None),
            (json!({"max-length": 10}), Some("drops the oldest message beyond 10 messages")),
            (
                json!({"max-length": 10, "max-length-bytes": 5000, "overflow": "reject-publish"}),
                Some("refuses messages beyond 10 messages or 5000 bytes"),
            ),
            (json!({"message-ttl": 1000}), Some("drops messages that are not pulled within 1000 ms")),
            (
                json!({"message-ttl": 0, "expires": 60000, "dead-letter-exchange": "dead"}),
                Some(
                    "drops messages that are not pulled within 0 ms, removes the queue when it is unused for 60000 ms, \
                     and sends dropped messages to the exchange 'dead'",
                ),
            ),
        ] {
            let queue = json!({"name": "orders", "policy": "P", "effective_policy_definition": definition});
            let expected = effects.map(|effects| format!("the policy 'P' {effects}"));
            assert_eq!(loss_sentence(&queue), expected, "{definition}");
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!((escaped("/"), escaped("a b:é")), ("%2F".to_owned(), "a%20b%3A%C3%A9".to_owned()));
    }
}
