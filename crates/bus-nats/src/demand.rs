//! How many messages a caller wants, told to the thread that asks the server for them.
//!
//! JetStream hands out what it is asked for. Who asked for more than is wanted would keep messages from other pullers,
//! or fill the memory with what nobody reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The most that is asked for ahead, in messages.
pub(crate) const WINDOW: usize = 1024;

/// As long as more bytes than these lie here unread, no more is asked for, however few messages they are.
const ENOUGH_BYTES: usize = 32 << 20;

/// A count that the caller raises, and the thread lowers with each message. Clones are the same count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicUsize,
    /// Bytes that have come and are not read, where that is counted.
    unread_bytes: AtomicUsize,
    grown: Notify,
}

impl Demand {
    /// Messages that are wanted and have not come.
    #[inline]
    pub fn wanted(&self) -> usize {
        // Pairs with `meet`: who sees the count sees the message.
        self.shared.wanted.load(Ordering::Acquire)
    }

    /// So many more are wanted, up to [`WINDOW`].
    pub fn raise(&self, messages: usize) {
        self.shared.wanted.fetch_add(messages.min(WINDOW), Ordering::Relaxed);
        self.shared.grown.notify_one();
    }

    /// For a reader of everything: wants on, unless half a window is on its way or lies there unread.
    #[inline]
    pub fn keep_up(&self, unread: usize) {
        let wanted = self.wanted();
        if wanted <= WINDOW / 2 && unread <= WINDOW / 2 {
            self.raise(WINDOW - wanted);
        }
    }

    /// One has come, and lies where the caller finds it. Only the thread lowers the count.
    pub fn meet(&self) {
        let wanted = self.shared.wanted.load(Ordering::Relaxed);
        if wanted > 0 {
            // Pairs with `wanted`.
            self.shared.wanted.fetch_sub(1, Ordering::Release);
        }
    }

    /// So many bytes have come, and lie where the caller finds them.
    pub fn hold(&self, bytes: usize) {
        self.shared.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes of those were read.
    pub fn release(&self, bytes: usize) {
        let before = self.shared.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before > ENOUGH_BYTES && before - bytes <= ENOUGH_BYTES {
            self.shared.grown.notify_one();
        }
    }

    /// Whether there is room for more.
    pub fn has_room(&self) -> bool {
        self.shared.unread_bytes.load(Ordering::Relaxed) <= ENOUGH_BYTES
    }

    /// Returns when more is wanted than before, or there is room again.
    pub async fn grown(&self) {
        self.shared.grown.notified().await;
    }
}
