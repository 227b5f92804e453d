//! Configuration of a carried feed.

use std::path::PathBuf;

use tickpath_clock::Wait;

use crate::TargetConfig;

/// Configuration of a carried feed.
#[derive(Debug, Clone)]
pub struct FeedRelayConfig {
    /// URL of the bus to publish on.
    pub url: String,
    /// Name of the topic.
    pub topic: String,
    /// Configuration of the topic.
    pub target: TargetConfig,
    /// Way to wait for frames, and for the times of a replay.
    pub wait: Wait,
    /// Time without market data after which a silence is reported, in nanoseconds.
    pub silence_ns: u64,
    /// New file for the frames of the first connection as they arrive. Each further connection, and one that takes over
    /// from another, has a file of its own, with its number before the first point of the name, so that a replay has
    /// the frames of one connection.
    pub raw: Option<PathBuf>,
    /// Number of messages, events of the feed included, after which the carrier ends.
    pub count: Option<u64>,
    /// Max duration, in nanoseconds.
    pub duration_ns: Option<u64>,
}
