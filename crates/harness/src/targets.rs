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

/// The brokers of the environment.
pub fn brokers() -> Vec<String> {
    VARIABLES.iter().filter_map(|(name, _)| std::env::var(name).ok()).collect()
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

/// Whether a target is a log, in memory or on a disk.
pub fn is_log(target: &str) -> bool {
    matches!(target.split("://").next(), Some("shm" | "file"))
}
