//! The caller's demand for messages, by which the thread sends its requests.
//!
//! JetStream delivers what is requested: a request for more than the caller wants would keep messages from other
//! pullers, or fill the memory with unread ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Max messages requested ahead.
pub(crate) const WINDOW: usize = 1024;

/// Unread bytes above which nothing more is requested, however few the messages are.
const ENOUGH_BYTES: usize = 32 << 20;

/// A count of wanted messages, which the caller raises and the thread lowers with each message. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicUsize,
    /// The number of bytes that have come and are unread, where it is counted.
    unread_bytes: AtomicUsize,
    grown: Notify,
}

impl Demand {
    /// Returns the number of messages that are wanted and have not come.
    #[inline]
    pub fn wanted(&self) -> usize {
        // Pairs with `meet`: a caller that sees the lower count also sees the message.
        self.shared.wanted.load(Ordering::Acquire)
    }

    /// Raises the demand by this number, [`WINDOW`] at most.
    pub fn raise(&self, messages: usize) {
        self.shared.wanted.fetch_add(messages.min(WINDOW), Ordering::Relaxed);
        self.shared.grown.notify_one();
    }

    /// Raises the demand of a subscriber, unless half a window is outstanding or lies unread.
    #[inline]
    pub fn keep_up(&self, unread: usize) {
        let wanted = self.wanted();
        if wanted <= WINDOW / 2 && unread <= WINDOW / 2 {
            self.raise(WINDOW - wanted);
        }
    }

    /// Lowers the demand for a message that is in the mailbox. Only the thread lowers it.
    pub fn meet(&self) {
        let wanted = self.shared.wanted.load(Ordering::Relaxed);
        if wanted > 0 {
            // Pairs with `wanted`.
            self.shared.wanted.fetch_sub(1, Ordering::Release);
        }
    }

    /// Counts bytes that are in the mailbox.
    pub fn hold(&self, bytes: usize) {
        self.shared.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes that were read.
    pub fn release(&self, bytes: usize) {
        let before = self.shared.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before > ENOUGH_BYTES && before - bytes <= ENOUGH_BYTES {
            self.shared.grown.notify_one();
        }
    }

    /// Returns true if there is room for more messages.
    pub fn has_room(&self) -> bool {
        self.shared.unread_bytes.load(Ordering::Relaxed) <= ENOUGH_BYTES
    }

    /// Returns when the demand has grown, or there is room again.
    pub async fn grown(&self) {
        self.shared.grown.notified().await;
    }
}
