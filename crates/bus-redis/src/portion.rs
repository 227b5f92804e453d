//! How many messages are asked for at once: the server counts them, and what an answer has is bounded in bytes.

use crate::puller::MAX_PULLED_BYTES;

/// The most messages that are asked for at once.
const MOST: usize = 100;

/// How many messages to ask for at once, by the bytes of those that came last: a long one counts at once, shorter ones bit
/// by bit, and as long as none has come it may be one that fills an answer.
pub(crate) struct Portion {
    /// Of a message as it may come next.
    bytes: usize,
}

impl Portion {
    /// Of a queue of which nothing has come.
    pub fn new() -> Self {
        Self { bytes: MAX_PULLED_BYTES }
    }

    /// How many to ask for where so many are wanted.
    pub fn limit(&self, wanted: usize) -> usize {
        (MAX_PULLED_BYTES / self.bytes.max(1)).clamp(1, MOST).min(wanted)
    }

    /// A message of so many bytes came.
    pub fn came(&mut self, bytes: usize) {
        self.bytes = bytes.max(self.bytes - self.bytes.saturating_sub(bytes) / 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_asked_for_while_they_are_long() {
        let mut portion = Portion::new();
        assert_eq!(portion.limit(1000), 1, "nobody knows how long they are");
        (0..100).for_each(|_| portion.came(40));
        assert_eq!((portion.limit(1000), portion.limit(3)), (MOST, 3));
        for mebibytes in [1, 4, 16] {
            portion.came(mebibytes << 20);
            assert_eq!(portion.limit(1000), (8 / mebibytes).max(1), "one of {mebibytes} MiB came");
        }
        portion.came(0);
        assert_eq!(portion.limit(1000), 1, "one short message says little");
    }

    #[test]
    fn an_answer_of_messages_that_grow_slowly_stays_within_bounds() {
        let mut portion = Portion::new();
        for bytes in (0..MAX_PULLED_BYTES).step_by(1000) {
            let limit = portion.limit(usize::MAX);
            let is_bounded = limit == 1 || limit * bytes <= MAX_PULLED_BYTES + 1000 * limit;
            assert!(limit >= 1 && is_bounded, "{limit} of {bytes} bytes");
            portion.came(bytes);
        }
    }
}
