//! The targets that a bench takes when none is named: the log, and every broker that the environment tells of.

/// The variables that `scripts/brokers` sets, and the further ways to use each broker.
const VARIABLES: [(&str, &[&str]); 4] = [
    ("TICKPATH_REDIS", &["", "?streams"]),
    ("TICKPATH_NATS", &["", "?jetstream"]),
    ("TICKPATH_AMQP", &[""]),
    ("TICKPATH_KAFKA", &[""]),
];

/// The log in shared memory, then each broker of the environment, in each of its ways.
pub fn all() -> Vec<String> {
    let brokers = VARIABLES.iter().filter_map(|(name, ways)| Some((std::env::var(name).ok()?, ways)));
    let urls = brokers.flat_map(|(url, ways)| ways.iter().map(move |way| format!("{url}{way}")));
    std::iter::once("shm://".to_owned()).chain(urls.filter(|url| url.contains("://"))).collect()
}

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

/// What is missing for all brokers to take part; none if nothing is.
pub fn missing() -> Option<String> {
    let gone: Vec<&str> = VARIABLES.iter().map(|(name, _)| *name).filter(|name| std::env::var(name).is_err()).collect();
    (!gone.is_empty()).then(|| {
        format!(
            "not measured, for {} is not set: start the brokers with `scripts/brokers run -- COMMAND`, or name targets \
             with --target",
            gone.join(", ")
        )
    })
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
