//! How much of a stream stays: about so many bytes, and nothing that is older.
//!
//! A server counts entries and not bytes, so that the size is a count: the bytes that the topic may have, over the mean of
//! its messages. It is told every so many messages to forget what is beyond that, and rounds up to whole nodes of 100
//! entries or 4 KiB. Ids are times of the server's clock, by which what is too old goes, to the entry.

use tickpath_bus_api::{Policy, TopicConfig};

use crate::error::ServerError;
use crate::link::Link;
use crate::resp;
use crate::stream::{Id, read_entries};

/// The newest entries by which a publisher that comes learns the mean.
const SAMPLE: usize = 8;

/// The mean is that of about so many messages.
const MEAN_OF: u64 = 1024;

/// The most messages between two cuts.
const MOST_BETWEEN: u64 = 64;

/// Cuts a stream to its size and age, as its publisher knows it.
pub(crate) struct Retention {
    topic: String,
    capacity_bytes: u64,
    max_age_ms: Option<u64>,
    /// What the mean is made of: bytes, and how many messages have these.
    bytes: u64,
    messages: u64,
    /// Messages since the last cut.
    since: u64,
    /// When the last cut by age was, by the server's clock.
    aged_ms: u64,
}

impl Retention {
    /// What this configuration asks for; none if everything stays.
    pub fn of(topic: &str, config: &TopicConfig) -> Option<Self> {
        (config.policy == Policy::Overwrite).then(|| Self {
            topic: topic.to_owned(),
            capacity_bytes: config.capacity_bytes as u64,
            max_age_ms: config.max_age_ns.map(|ns| ns.div_ceil(1_000_000)),
            bytes: 0,
            messages: 0,
            since: 0,
            aged_ms: 0,
        })
    }

    /// Learns what messages the stream has by now, and whether it may be cut.
    pub fn begin(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let mut lengths = Vec::new();
        let sample = SAMPLE.to_string();
        let newest = ["XREVRANGE", self.topic.as_str(), "+", "-", "COUNT", sample.as_str()];
        link.ask_for(SAMPLE, &newest, |items| read_entries(items, &mut |entry| lengths.push(entry.whole().len())))?;
        lengths.into_iter().for_each(|bytes| self.add(bytes));
        self.since = 0;
        let most = self.most_entries().unwrap_or(i64::MAX as u64).to_string();
        link.ask(&["XTRIM", &self.topic, "MAXLEN", "~", &most], |items| items.integer())?;
        Ok(())
    }

    /// A message of so many bytes was added.
    pub fn add(&mut self, bytes: usize) {
        if self.messages >= MEAN_OF {
            (self.bytes, self.messages) = (self.bytes / 2, self.messages / 2);
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.messages += 1;
        self.since += 1;
    }

    /// The commands that cut the stream, where it is time for that; `last` is the entry that was added last.
    pub fn cuts(&mut self, last: Id) -> Vec<Vec<u8>> {
        let mut cuts = Vec::new();
        if let Some(most) = self.most_entries()
            && self.since >= (most / 8).clamp(1, MOST_BETWEEN)
        {
            self.since = 0;
            cuts.push(self.cut(&["MAXLEN", "~", &most.to_string()]));
        }
        let [now_ms, _] = last.numbers();
        if let Some(age_ms) = self.max_age_ms
            && now_ms.saturating_sub(self.aged_ms) >= (age_ms / 16).max(1)
        {
            self.aged_ms = now_ms;
            cuts.push(self.cut(&["MINID", &now_ms.saturating_sub(age_ms).to_string()]));
        }
        cuts
    }

    fn cut(&self, to: &[&str]) -> Vec<u8> {
        let mut command = Vec::new();
        resp::command(&mut command, &[&["XTRIM", self.topic.as_str()][..], to].concat());
        command
    }

    /// How many entries have about the bytes that the topic may have; none as long as there was no message.
    fn most_entries(&self) -> Option<u64> {
        let mean = self.bytes.checked_div(self.messages)?.max(1);
        Some((self.capacity_bytes / mean).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retention(capacity_bytes: usize, max_age_ns: Option<u64>) -> Retention {
        let config = TopicConfig { capacity_bytes, max_age_ns, ..TopicConfig::new(Policy::Overwrite) };
        Retention::of("ticks", &config).expect("it overwrites")
    }

    /// What is cut when a message of so many bytes was added at this millisecond.
    fn cuts(retention: &mut Retention, bytes: usize, ms: u64) -> Vec<String> {
        retention.add(bytes);
        let cuts = retention.cuts(Id::new(ms, 0));
        let words = |cut: Vec<u8>| {
            let text = String::from_utf8(cut).unwrap();
            text.split("\r\n").filter(|word| !word.starts_with(['*', '$'])).collect::<Vec<_>>().join(" ")
        };
        cuts.into_iter().map(|cut| words(cut).trim().to_owned()).collect()
    }

    #[test]
    fn what_keeps_everything_cuts_nothing() {
        assert!(Retention::of("ticks", &TopicConfig::new(Policy::Keep)).is_none());
    }

    #[test]
    fn the_size_is_a_count_by_the_mean_and_cut_to_every_so_many_messages() {
        let mut small = retention(100_000, None);
        assert_eq!(cuts(&mut small, 100, 1), Vec::<String>::new());
        let cut: Vec<Vec<String>> = (1..128).map(|_| cuts(&mut small, 100, 1)).filter(|cut| !cut.is_empty()).collect();
        assert_eq!(cut, [["XTRIM ticks MAXLEN ~ 1000"]; 2]);
        for _ in 0..5000 {
            cuts(&mut small, 400, 1);
        }
        let most = small.most_entries().unwrap();
        assert!((250..300).contains(&most), "{most}");
        let mut large = retention(100, None);
        assert_eq!(cuts(&mut large, 1000, 1), ["XTRIM ticks MAXLEN ~ 1"]);
    }

    #[test]
    fn what_is_too_old_goes_by_the_clock_of_the_server() {
        let mut aged = retention(1 << 30, Some(1_600_000_000));
        assert_eq!(cuts(&mut aged, 1, 50_000), ["XTRIM ticks MINID 48400"]);
        assert_eq!(cuts(&mut aged, 1, 50_099), Vec::<String>::new());
        assert_eq!(cuts(&mut aged, 1, 50_100), ["XTRIM ticks MINID 48500"]);
        assert_eq!(retention(1, Some(1)).max_age_ms, Some(1), "rounded up");
    }
}
