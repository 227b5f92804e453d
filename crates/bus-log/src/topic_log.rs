//! The log of a topic or queue: its size, batch publishing, and its errors as errors of the bus.

use tickpath_bus_api::{BatchError, ConnectError, PublishError};
use tickpath_log::{LogOpenError, LogPathError, LogPublishError, Writer};

/// Name of this transport, in its tokens too.
pub(crate) const NAME: &str = "log";
/// Number of segments in the ring of a topic or queue.
pub(crate) const SEGMENTS: usize = 8;
/// The longest payload that is sure to pass with the default sizes, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 64 << 10;
/// Interval at which a reader that may sleep checks whether its topic or queue exists, in nanoseconds.
pub(crate) const ATTACH_INTERVAL_NS: u64 = 1_000_000;

/// Returns the bytes of a segment of a ring of this capacity.
pub(crate) fn segment_bytes(capacity_bytes: usize) -> usize {
    (capacity_bytes / SEGMENTS).next_multiple_of(4096).max(4096)
}

pub(crate) fn publish_batch(writer: &mut Writer, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
    let published = writer.publish_batch(stamp, kind, payloads);
    published.map_err(|e| BatchError::failed_at(e.done, publish_error(e.error)))
}

pub(crate) fn name_error(error: LogPathError) -> ConnectError {
    ConnectError::Name(error.to_string())
}

pub(crate) fn connect_error(error: LogOpenError) -> ConnectError {
    match error {
        LogOpenError::Place(e) => name_error(e),
        LogOpenError::HasWriter { .. } => ConnectError::HasPublisher(error.to_string()),
        e => ConnectError::Other(Box::new(e)),
    }
}

pub(crate) fn publish_error(error: LogPublishError) -> PublishError {
    match error {
        LogPublishError::Full => PublishError::Full,
        LogPublishError::NoReader => PublishError::NoSubscriber,
        LogPublishError::TooLarge { bytes, limit } => PublishError::TooLarge { bytes, limit },
        // A full disk may have room again later.
        e @ LogPublishError::Grow(_) => PublishError::Unavailable(e.to_string()),
        e => PublishError::Other(Box::new(e)),
    }
}
