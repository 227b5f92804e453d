//! Number of messages per request: the server counts messages, and an answer is bounded in bytes.

use crate::puller::MAX_PULLED_BYTES;

const MAX_BATCH: usize = 100;

/// Number of messages to request, from the sizes of recent ones. A long message counts at once, shorter ones gradually;
/// before the first message, one is assumed to fill an answer.
pub(crate) struct BatchSizer {
    expected_bytes: usize,
}

impl BatchSizer {
    /// Creates the estimate for a queue from which nothing has come.
    pub fn new() -> Self {
        Self { expected_bytes: MAX_PULLED_BYTES }
    }

    pub fn limit(&self, wanted: usize) -> usize {
        (MAX_PULLED_BYTES / self.expected_bytes.max(1)).clamp(1, MAX_BATCH).min(wanted)
    }

    /// Updates the estimate with a received message of this size.
    pub fn record_size(&mut self, bytes: usize) {
        self.expected_bytes = bytes.max(self.expected_bytes - self.expected_bytes.saturating_sub(bytes) / 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_asks_for_few_messages_while_they_are_long() {
        let mut portion = BatchSizer::new();
        assert_eq!(portion.limit(1000), 1, "their size is unknown");
        (0..100).for_each(|_| portion.record_size(40));
        assert_eq!((portion.limit(1000), portion.limit(3)), (MAX_BATCH, 3));
        for mebibytes in [1, 4, 16] {
            portion.record_size(mebibytes << 20);
            assert_eq!(portion.limit(1000), (8 / mebibytes).max(1), "one of {mebibytes} MiB came");
        }
        portion.record_size(0);
        assert_eq!(portion.limit(1000), 1, "one short message changes little");
    }

    #[test]
    fn an_answer_stays_bounded_while_messages_grow_slowly() {
        let mut portion = BatchSizer::new();
        for bytes in (0..MAX_PULLED_BYTES).step_by(1000) {
            let limit = portion.limit(usize::MAX);
            let is_bounded = limit == 1 || limit * bytes <= MAX_PULLED_BYTES + 1000 * limit;
            assert!(limit >= 1 && is_bounded, "{limit} of {bytes} bytes");
            portion.record_size(bytes);
        }
    }
}
