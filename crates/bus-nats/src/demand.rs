//! The caller's demand for messages, by which the thread sends its requests.
//!
//! JetStream delivers what is requested: a request for more than the caller wants would keep messages from other
//! pullers, or fill the memory with unread ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Max messages requested ahead.
pub(crate) const MAX_REQUESTED: usize = 1024;

/// Unread bytes above which nothing more is requested, however few the messages are.
const REQUEST_STOP_BYTES: usize = 32 << 20;

/// A count of wanted messages, which the caller raises and the thread lowers with each message. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand {
    shared: Arc<DemandState>,
}

#[derive(Debug, Default)]
struct DemandState {
    wanted: AtomicUsize,
    /// The number of bytes that have come and are unread, where it is counted.
    unread_bytes: AtomicUsize,
    growth: Notify,
}

impl Demand {
    /// Returns the number of messages that are wanted and have not come.
    #[inline]
    pub fn wanted(&self) -> usize {
        // Pairs with `lower`: a caller that sees the lower count also sees the message.
        self.shared.wanted.load(Ordering::Acquire)
    }

    /// Raises the demand by this number, [`MAX_REQUESTED`] at most.
    pub fn raise(&self, messages: usize) {
        self.shared.wanted.fetch_add(messages.min(MAX_REQUESTED), Ordering::Relaxed);
        self.shared.growth.notify_one();
    }

    /// Raises the demand of a subscriber, unless half a window is outstanding or lies unread.
    #[inline]
    pub fn top_up(&self, unread: usize) {
        let wanted = self.wanted();
        if wanted <= MAX_REQUESTED / 2 && unread <= MAX_REQUESTED / 2 {
            self.raise(MAX_REQUESTED - wanted);
        }
    }

    /// Lowers the demand for a message that is in the mailbox. Only the thread lowers it.
    pub fn lower(&self) {
        let wanted = self.shared.wanted.load(Ordering::Relaxed);
        if wanted > 0 {
            // Pairs with `wanted`.
            self.shared.wanted.fetch_sub(1, Ordering::Release);
        }
    }

    pub fn add_unread(&self, bytes: usize) {
        self.shared.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn subtract_unread(&self, bytes: usize) {
        let before = self.shared.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before > REQUEST_STOP_BYTES && before - bytes <= REQUEST_STOP_BYTES {
            self.shared.growth.notify_one();
        }
    }

    pub fn has_room(&self) -> bool {
        self.shared.unread_bytes.load(Ordering::Relaxed) <= REQUEST_STOP_BYTES
    }

    /// Returns when the demand has grown, or there is room again.
    pub async fn wait_for_growth(&self) {
        self.shared.growth.notified().await;
    }
}
