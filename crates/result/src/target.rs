//! What a target is called, and what of its URL nobody is told.

/// What a target is called in names of comparisons and in tables: `log`, `redis`, `redis-streams`, `jetstream`, …;
/// by its scheme, if it has no other name here.
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
}
