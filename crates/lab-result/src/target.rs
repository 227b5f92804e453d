//! Short names of targets.

/// Returns the name of a target in comparisons and tables: `log`, `redis`, `redis-streams`, `jetstream`, …;
/// by its scheme, if it has no other name here.
pub fn short_name(url: &str) -> String {
    let scheme = url.split("://").next().unwrap_or(url);
    // How long a server may be silent, or what a topic is called there, is no other way to use it.
    let query =
        url.split_once('?').map(|(_, options)| options_but(options, &["silence", "management", "name.", SECRET]));
    match (scheme, query.as_deref().filter(|query| !query.is_empty())) {
        ("shm", _) => "log".to_owned(),
        ("file", _) => "log-on-disk".to_owned(),
        ("nats", Some("jetstream")) => "jetstream".to_owned(),
        ("redis" | "redis+unix", Some(query)) => format!("redis-{query}"),
        ("redis+unix", None) => "redis-unix".to_owned(),
        ("amqp", _) => "rabbitmq".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// Option of a URL that holds a password, and that names no other way to use the server.
const SECRET: &str = "sentinel-password";

/// Options of a URL without those of these names.
fn options_but(options: &str, names: &[&str]) -> String {
    let is_kept = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        !names.iter().any(|&dropped| name == dropped || dropped.ends_with('.') && name.starts_with(dropped))
    };
    options.split('&').filter(is_kept).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("redis://h:1?silence=5", "redis"),
            ("redis://h:1?silence=5&streams", "redis-streams"),
            ("nats://h:1?jetstream&silence=5", "jetstream"),
            ("redis://h:1?name.btc=market:BTC/USDT", "redis"),
            ("nats://h:1", "nats"),
            ("nats://h:1?jetstream", "jetstream"),
            ("amqp://h:1", "rabbitmq"),
            ("kafka://h:1", "kafka"),
        ] {
            assert_eq!(short_name(url), name, "{url}");
        }
    }
}
