//! Retention of a topic: the settings of a new topic, and those found on an existing one.

use std::fmt;

use tickpath_bus_api::{Policy, TopicConfig};

/// No limit, as Kafka writes it.
const UNLIMITED: i64 = -1;

/// Smallest segment in bytes, because servers refuse less. Old messages are deleted by the segment.
const MIN_SEGMENT_BYTES: i64 = 1 << 20;

const MAX_SEGMENT_BYTES: i64 = 1 << 30;

/// Approximate number of segments of a topic's capacity.
const SEGMENTS: i64 = 4;

/// Shortest interval between new segments, in milliseconds.
const MIN_SEGMENT_MS: i64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TopicRetention {
    /// Max size in bytes; -1 if unlimited.
    bytes: i64,
    /// Max age in milliseconds; -1 if unlimited.
    age_ms: i64,
    /// Only the last message of each key stays; our messages have no key.
    is_compacted: bool,
}

impl TopicRetention {
    pub const ALL: Self = Self { bytes: UNLIMITED, age_ms: UNLIMITED, is_compacted: false };

    /// Unlimited retention of a topic created by a subscriber, until the first publisher decides.
    pub const UNDECIDED: Self = Self { age_ms: i64::MAX, ..Self::ALL };

    /// Returns whether old messages expire by age or size, and nothing else is deleted.
    pub fn expires(&self) -> bool {
        !self.is_compacted && *self != Self::ALL && *self != Self::UNDECIDED
    }

    /// Returns the retention that a publisher asks for; none for a policy that this transport does not support.
    pub fn from_config(config: &TopicConfig) -> Option<Self> {
        match config.policy {
            Policy::Fail => None,
            Policy::Keep => Some(Self::ALL),
            Policy::Overwrite => Some(Self {
                bytes: i64::try_from(config.capacity_bytes).unwrap_or(i64::MAX).max(1),
                age_ms: config.max_age_ns.map_or(UNLIMITED, |ns| ns.div_ceil(1_000_000).max(1) as i64),
                is_compacted: false,
            }),
        }
    }

    /// Reads the settings of a topic; none if the server does not return them.
    pub fn read<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let number = |name: &str| setting(name)?.parse::<i64>().ok();
        Some(Self {
            bytes: number("retention.bytes")?.max(UNLIMITED),
            age_ms: number("retention.ms")?.max(UNLIMITED),
            is_compacted: setting("cleanup.policy")?.contains("compact"),
        })
    }

    /// Returns the settings of a new topic with this retention.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("cleanup.policy", "delete".to_owned()),
            ("retention.bytes", self.bytes.to_string()),
            ("retention.ms", self.age_ms.to_string()),
        ];
        if self.bytes != UNLIMITED {
            let segment = (self.bytes / SEGMENTS).clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
            settings.push(("segment.bytes", segment.to_string()));
        }
        if self.age_ms != UNLIMITED && *self != Self::UNDECIDED {
            settings.push(("segment.ms", (self.age_ms / SEGMENTS).max(MIN_SEGMENT_MS).to_string()));
        }
        settings
    }
}

impl fmt::Display for TopicRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_compacted, self.bytes, self.age_ms) {
            (true, _, _) => f.write_str("the last message of each key"),
            (false, UNLIMITED, UNLIMITED | i64::MAX) => f.write_str("everything"),
            (false, bytes, UNLIMITED) => write!(f, "the newest {bytes} bytes"),
            (false, UNLIMITED, age_ms) => write!(f, "the last {age_ms} ms"),
            (false, bytes, age_ms) => write!(f, "the newest {bytes} bytes of the last {age_ms} ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_settings_round_trip() {
        let usual = TopicConfig::new(Policy::Overwrite);
        type Settings = &'static [(&'static str, &'static str)];
        let cases: [(TopicConfig, &str, Settings); 5] = [
            (TopicConfig::new(Policy::Keep), "everything", &[("retention.bytes", "-1"), ("retention.ms", "-1")]),
            (usual, "the newest 1048576 bytes", &[("segment.bytes", "1048576"), ("retention.ms", "-1")]),
            (TopicConfig { capacity_bytes: 1 << 30, ..usual }, "1073741824 bytes", &[("segment.bytes", "268435456")]),
            (TopicConfig { capacity_bytes: usize::MAX, ..usual }, "bytes", &[("segment.bytes", "1073741824")]),
            (
                TopicConfig { max_age_ns: Some(60_000_000_001), ..usual },
                "the newest 1048576 bytes of the last 60001 ms",
                &[("retention.ms", "60001"), ("segment.ms", "15000")],
            ),
        ];
        for (config, words, expected) in cases {
            let retention = TopicRetention::from_config(&config).unwrap();
            let settings = retention.settings();
            let named = |name: &str| settings.iter().find(|(known, _)| *known == name);
            let setting = |name: &str| named(name).map(|(_, value)| value.as_str());
            assert_eq!(TopicRetention::read(setting), Some(retention));
            assert!(retention.to_string().contains(words), "{retention}");
            for &(name, value) in expected {
                assert_eq!(setting(name), Some(value), "{name} of {config:?}");
            }
        }
        assert_eq!(TopicRetention::from_config(&TopicConfig::new(Policy::Fail)), None);
        let undecided = TopicRetention::UNDECIDED.settings();
        let setting = |name: &str| undecided.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!(TopicRetention::read(setting), Some(TopicRetention::UNDECIDED));
        assert!(!TopicRetention::UNDECIDED.expires() && setting("segment.ms").is_none());
    }

    #[test]
    fn foreign_topic_settings_are_read() {
        let read = |cleanup, bytes, age_ms| {
            TopicRetention::read(move |name| match name {
                "cleanup.policy" => cleanup,
                "retention.bytes" => bytes,
                "retention.ms" => age_ms,
                _ => None,
            })
        };
        let week = read(Some("delete"), Some("-1"), Some("604800000")).unwrap();
        assert_eq!(week.to_string(), "the last 604800000 ms");
        let compacted = read(Some("compact,delete"), Some("-1"), Some("-1")).unwrap();
        assert_eq!(compacted.to_string(), "the last message of each key");
        assert_ne!(compacted, TopicRetention::ALL);
        assert_eq!(read(Some("delete"), None, Some("-1")), None);
        assert_eq!(read(None, Some("-1"), Some("-1")), None);
    }
}
