//! Trimming of a stream: to about so many bytes, and to a max age.
//!
//! A server counts entries, not bytes, so the size limit is a count: the topic's bytes over the mean size of its
//! messages. A trim to that count is sent once in a number of messages, and the server rounds up to whole nodes of 100
//! entries or 4 KiB. Entry ids are times of the server's clock, and trimming by age is exact.

use tickpath_bus_api::{Policy, TopicConfig};

use crate::connection::RedisConnection;
use crate::error::ServerResult;
use crate::resp;
use crate::stream::{EntryId, read_entries};

/// Number of newest entries from which a new publisher learns the mean size.
const SAMPLE: usize = 8;

/// Number of messages that the mean covers, about.
const MEAN_WINDOW: u64 = 1024;

/// Max number of messages between two trims.
const MAX_TRIM_INTERVAL: u64 = 64;

/// Size and age limits of a stream, as one publisher applies them.
pub(crate) struct StreamRetention {
    topic: String,
    capacity_bytes: u64,
    max_age_ms: Option<u64>,
    /// Bytes and number of the messages that make up the mean.
    bytes: u64,
    messages: u64,
    /// Messages since the last trim by size.
    since_trim: u64,
    /// Time of the last trim by age, by the server's clock.
    last_age_trim_ms: u64,
}

impl StreamRetention {
    /// Returns the limits of this configuration; none if everything stays.
    pub fn from_config(topic: &str, config: &TopicConfig) -> Option<Self> {
        (config.policy == Policy::Overwrite).then(|| Self {
            topic: topic.to_owned(),
            capacity_bytes: config.capacity_bytes as u64,
            max_age_ms: config.max_age_ns.map(|ns| ns.div_ceil(1_000_000)),
            bytes: 0,
            messages: 0,
            since_trim: 0,
            last_age_trim_ms: 0,
        })
    }

    /// Learns the mean size from the newest entries, and checks that this user may trim the stream.
    pub fn learn_mean_size(&mut self, link: &mut RedisConnection) -> ServerResult {
        let mut lengths = Vec::new();
        let sample = SAMPLE.to_string();
        let newest = ["XREVRANGE", self.topic.as_str(), "+", "-", "COUNT", sample.as_str()];
        link.request_messages(SAMPLE, &newest, |items| {
            read_entries(items, &mut |entry| lengths.push(entry.message_or_json().len()))
        })?;
        lengths.into_iter().for_each(|bytes| self.count_message(bytes));
        self.since_trim = 0;
        let max_entries = self.max_entries().unwrap_or(i64::MAX as u64).to_string();
        link.request(&["XTRIM", &self.topic, "MAXLEN", "~", &max_entries], |items| items.integer())?;
        Ok(())
    }

    pub fn count_message(&mut self, bytes: usize) {
        if self.messages >= MEAN_WINDOW {
            (self.bytes, self.messages) = (self.bytes / 2, self.messages / 2);
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.messages += 1;
        self.since_trim += 1;
    }

    /// Returns the trims that are due; `last` is the id of the newest entry.
    pub fn due_trims(&mut self, last: EntryId) -> Vec<Vec<u8>> {
        let mut cuts = Vec::new();
        if let Some(max_entries) = self.max_entries()
            && self.since_trim >= (max_entries / 8).clamp(1, MAX_TRIM_INTERVAL)
        {
            self.since_trim = 0;
            cuts.push(self.trim_command(&["MAXLEN", "~", &max_entries.to_string()]));
        }
        let [now_ms, _] = last.numbers();
        if let Some(age_ms) = self.max_age_ms
            && now_ms.saturating_sub(self.last_age_trim_ms) >= (age_ms / 16).max(1)
        {
            self.last_age_trim_ms = now_ms;
            cuts.push(self.trim_command(&["MINID", &now_ms.saturating_sub(age_ms).to_string()]));
        }
        cuts
    }

    fn trim_command(&self, to: &[&str]) -> Vec<u8> {
        resp::encode_command(&[&["XTRIM", self.topic.as_str()][..], to].concat())
    }

    /// Returns the max number of entries: capacity over mean size. None before the first message.
    fn max_entries(&self) -> Option<u64> {
        let mean = self.bytes.checked_div(self.messages)?.max(1);
        Some((self.capacity_bytes / mean).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retention(capacity_bytes: usize, max_age_ns: Option<u64>) -> StreamRetention {
        let config = TopicConfig { capacity_bytes, max_age_ns, ..TopicConfig::new(Policy::Overwrite) };
        StreamRetention::from_config("ticks", &config).expect("it overwrites")
    }

    /// Adds a message of this size at this millisecond, and returns the trims that are due.
    fn cuts(retention: &mut StreamRetention, bytes: usize, ms: u64) -> Vec<String> {
        retention.count_message(bytes);
        let cuts = retention.due_trims(EntryId::new(ms, 0));
        let words = |cut: Vec<u8>| {
            let text = String::from_utf8(cut).unwrap();
            text.split("\r\n").filter(|word| !word.starts_with(['*', '$'])).collect::<Vec<_>>().join(" ")
        };
        cuts.into_iter().map(|cut| words(cut).trim().to_owned()).collect()
    }

    #[test]
    fn a_keeping_topic_has_no_retention() {
        assert!(StreamRetention::from_config("ticks", &TopicConfig::new(Policy::Keep)).is_none());
    }

    #[test]
    fn the_size_limit_is_a_count_by_mean_size_and_trimmed_in_intervals() {
        let mut small = retention(100_000, None);
        assert_eq!(cuts(&mut small, 100, 1), Vec::<String>::new());
        let cut: Vec<Vec<String>> = (1..128).map(|_| cuts(&mut small, 100, 1)).filter(|cut| !cut.is_empty()).collect();
        assert_eq!(cut, [["XTRIM ticks MAXLEN ~ 1000"]; 2]);
        for _ in 0..5000 {
            cuts(&mut small, 400, 1);
        }
        let max_entries = small.max_entries().unwrap();
        assert!((250..300).contains(&max_entries), "{max_entries}");
        let mut large = retention(100, None);
        assert_eq!(cuts(&mut large, 1000, 1), ["XTRIM ticks MAXLEN ~ 1"]);
    }

    #[test]
    fn old_entries_are_trimmed_by_the_servers_clock() {
        let mut aged = retention(1 << 30, Some(1_600_000_000));
        assert_eq!(cuts(&mut aged, 1, 50_000), ["XTRIM ticks MINID 48400"]);
        assert_eq!(cuts(&mut aged, 1, 50_099), Vec::<String>::new());
        assert_eq!(cuts(&mut aged, 1, 50_100), ["XTRIM ticks MINID 48500"]);
        assert_eq!(retention(1, Some(1)).max_age_ms, Some(1), "rounded up");
    }
}
