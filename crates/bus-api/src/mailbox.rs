//! Mailbox between a client library's own threads and the thread that polls.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue between a client library's thread and the polling thread. Clones share one mailbox.
#[derive(Debug)]
pub struct Mailbox<T> {
    inner: Arc<MailboxInner<T>>,
}

#[derive(Debug)]
struct MailboxInner<T> {
    items: Mutex<VecDeque<T>>,
    /// Number of items, so that an empty poll takes no lock.
    length: AtomicUsize,
    arrived: Condvar,
}

impl<T> Mailbox<T> {
    /// Creates an empty mailbox.
    pub fn new() -> Self {
        let items = Mutex::new(VecDeque::new());
        Self { inner: Arc::new(MailboxInner { items, length: AtomicUsize::new(0), arrived: Condvar::new() }) }
    }

    /// Appends an item, and wakes a waiting thread.
    pub fn push(&self, item: T) {
        let mut items = self.items();
        items.push_back(item);
        self.inner.length.store(items.len(), Ordering::Release);
        drop(items);
        self.inner.arrived.notify_one();
    }

    /// Takes the oldest item, if there is one. Never waits.
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut items = self.items();
        let item = items.pop_front();
        self.inner.length.store(items.len(), Ordering::Release);
        item
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.inner.length.load(Ordering::Acquire)
    }

    /// Returns whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sleeps until there is an item, or until the timeout is over.
    pub fn wait(&self, timeout_ns: u64) {
        let items = self.items();
        let timeout = Duration::from_nanos(timeout_ns);
        let _slept = self.inner.arrived.wait_timeout_while(items, timeout, |items| items.is_empty());
    }

    /// Locks the items, even after another thread panicked: each change is one call of the queue, so they are whole.
    fn items(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.inner.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_arrive_in_order_and_wake_a_sleeping_thread() {
        const COUNT: u32 = 10_000;
        let mailbox = Mailbox::new();
        let other = mailbox.clone();
        let putting = std::thread::spawn(move || (0..COUNT).for_each(|item| other.push(item)));
        let mut next = 0;
        while next < COUNT {
            mailbox.wait(60_000_000_000);
            while let Some(item) = mailbox.pop() {
                assert_eq!(item, next);
                next += 1;
            }
        }
        putting.join().unwrap();
        assert!(mailbox.is_empty() && mailbox.pop().is_none());
        mailbox.wait(1_000);
    }
}
