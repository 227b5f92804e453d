//! Names of topics and queues on a Kafka server, one to one.
//!
//! | name in this API | name on the server |
//! |---|---|
//! | topic `ticks.BTC-USDT` | `ticks.BTC-USDT`, unchanged |
//! | topic `md:BTC-USDT` | `.md-.BTC--USDT`: a leading point, `:` as `-.` and `-` as `--` |
//! | queue `orders` | `.orders-queue`: the same, with `-queue` appended |
//!
//! A name in this API never begins with a point, so that a leading point is unambiguous; and a single `-` before a
//! letter occurs only in the suffix of a queue. Kafka treats names that differ only in `.` and `_` as the same, and
//! refuses the second one.

use tickpath_bus_api::{ConnectError, TopicNames, wire};

/// Name of this transport in errors.
pub(crate) const TRANSPORT: &str = "Kafka";

/// Longest topic name on a server, in bytes.
const MAX_BYTES: usize = 249;

/// Returns the name of a topic on the server; `names` has those of the URL.
pub(crate) fn topic(name: &str, names: &TopicNames) -> Result<String, ConnectError> {
    if let Some(mapped) = names.server_name(name) {
        return Ok(mapped.to_owned());
    }
    wire::check_name("topic", name)?;
    if name.starts_with("__") {
        return Err(ConnectError::Name(format!(
            "'{name}' is a name of Kafka's own; use one that does not begin with two underscores"
        )));
    }
    if name.contains(':') { check_length(name, format!(".{}", escape(name))) } else { Ok(name.to_owned()) }
}

/// Returns the name of a queue's topic and of its consumer group on the server.
pub(crate) fn queue(name: &str) -> Result<String, ConnectError> {
    wire::check_name("queue", name)?;
    check_length(name, format!(".{}-queue", escape(name)))
}

fn escape(name: &str) -> String {
    name.replace('-', "--").replace(':', "-.")
}

fn check_length(name: &str, server_name: String) -> Result<String, ConnectError> {
    if server_name.len() <= MAX_BYTES {
        return Ok(server_name);
    }
    Err(ConnectError::Name(format!(
        "'{name}' is too long for Kafka, where each '-' and ':' of it takes two bytes of {MAX_BYTES}; \
         use fewer of them"
    )))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_stay_distinct_and_valid_on_the_server() {
        let pieces = ["", "a", "-", ":", ".", "_", "queue"];
        let mut used = BTreeMap::new();
        let mut check = |server_name: String, api_name: String| {
            let good = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            assert!(
                server_name.bytes().all(good) && server_name != "." && server_name != "..",
                "{api_name} is {server_name}"
            );
            let other = used.entry(server_name.clone()).or_insert_with(|| api_name.clone());
            assert_eq!(*other, api_name, "both are {server_name}");
        };
        for number in 0..7usize.pow(4) {
            let name: String = (0..4).map(|digit| pieces[number / 7usize.pow(digit) % 7]).collect();
            if let Ok(server_name) = topic(&name, &TopicNames::default()) {
                check(server_name, format!("topic {name}"));
            }
            if let Ok(server_name) = queue(&name) {
                check(server_name, format!("queue {name}"));
            }
        }
        assert!(used.len() > 1_000, "{} names", used.len());
    }

    #[test]
    fn plain_topics_keep_their_names() {
        for (name, server_name) in
            [("ticks.BTC-USDT", "ticks.BTC-USDT"), ("md:BTC-USDT", ".md-.BTC--USDT"), ("_a", "_a")]
        {
            assert_eq!(topic(name, &TopicNames::default()).unwrap(), server_name);
        }
        assert_eq!(queue("orders").unwrap(), ".orders-queue");
    }

    #[test]
    fn names_that_kafka_cannot_carry_are_refused() {
        for bad in ["__consumer_offsets", "", ".hidden", "a/b", &":".repeat(128)] {
            assert!(matches!(topic(bad, &TopicNames::default()), Err(ConnectError::Name(_))), "{bad}");
        }
        assert!(matches!(queue(&"-".repeat(128)), Err(ConnectError::Name(_))));
        assert!(topic(&"x".repeat(128), &TopicNames::default()).is_ok() && queue(&"x".repeat(128)).is_ok());
    }
}
