//! What a target is called, and what of its URL nobody is told.

/// What a target is called in names of comparisons and in tables: `log`, `redis`, `redis-streams`, `jetstream`, …
pub fn short_name(url: &str) -> String {
    let scheme = url.split("://").next().unwrap_or(url);
    match (scheme, url.split_once('?').map(|(_, way)| way)) {
        ("shm", _) => "log".to_owned(),
        ("file", _) => "log-on-disk".to_owned(),
        ("nats", Some("jetstream")) => "jetstream".to_owned(),
        ("redis" | "redis+unix", Some(way)) => format!("redis-{way}"),
        ("redis+unix", None) => "redis-unix".to_owned(),
        ("amqp", _) => "rabbitmq".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// A text whose URLs name no user and no password.
pub fn without_login(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once("://") {
        Some((scheme, rest)) => {
            let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
            format!("{scheme}://{place}")
        }
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Where the first server of a URL listens: `HOST:PORT`.
pub fn address(url: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_not_told() {
        for (text, told) in [
            ("bench queue --target redis://ann:s@cret@h:1?streams -q", "bench queue --target redis://h:1?streams -q"),
            ("--target=amqp://:secret@h:1/v", "--target=amqp://h:1/v"),
            ("bench host --json a@b", "bench host --json a@b"),
        ] {
            assert_eq!(without_login(text), told);
        }
    }

    #[test]
    fn targets_have_short_names() {
        for (url, name) in [
            ("shm://", "log"),
            ("shm://x", "log"),
            ("file:///tmp/x", "log-on-disk"),
            ("redis://h:1", "redis"),
            ("redis://h:1?streams", "redis-streams"),
            ("redis+unix:///s", "redis-unix"),
            ("redis+unix:///s?streams", "redis-streams"),
            ("nats://h:1", "nats"),
            ("nats://h:1?jetstream", "jetstream"),
            ("amqp://h:1", "rabbitmq"),
            ("kafka://h:1", "kafka"),
        ] {
            assert_eq!(short_name(url), name, "{url}");
        }
    }

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
}
