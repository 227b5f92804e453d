//! The bound on unread messages of a subject. A reader that is further behind is cut off, as the server does it, and
//! reports the loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_nats::Message;

/// Max unread bytes of a subject of core NATS in a subscriber or puller, before it is cut off and reports that messages
/// are lost.
pub const MAX_UNREAD_BYTES: usize = 64 << 20;

/// The memory that a message takes beside its own bytes, about. So there are never more than 262,144 messages, however
/// short.
const MESSAGE_BYTES: usize = 256;

/// A count of unread bytes, which the thread raises and the caller lowers. Clones share the count.
#[derive(Clone, Default)]
pub(crate) struct Backlog {
    /// The count; relaxed, because the mailbox orders the messages.
    bytes: Arc<AtomicUsize>,
}

impl Backlog {
    /// Counts a message in; returns false if there is no room. A single message always has room.
    pub fn admit(&self, message: &Message) -> bool {
        let unread = self.bytes.load(Ordering::Relaxed);
        let has_room = unread == 0 || unread + bytes(message) <= MAX_UNREAD_BYTES;
        if has_room {
            self.bytes.fetch_add(bytes(message), Ordering::Relaxed);
        }
        has_room
    }

    pub fn release(&self, message: &Message) {
        self.bytes.fetch_sub(bytes(message), Ordering::Relaxed);
    }
}

/// Returns the memory that a message takes, in bytes, about.
pub(crate) fn bytes(message: &Message) -> usize {
    message.length + MESSAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: usize) -> Message {
        let payload = vec![0; payload];
        Message {
            subject: "a".into(),
            reply: None,
            length: payload.len() + 1,
            payload: payload.into(),
            headers: None,
            status: None,
            description: None,
        }
    }

    #[test]
    fn the_backlog_is_bounded_in_bytes_and_messages() {
        for payload in [0, 100, 1 << 20, MAX_UNREAD_BYTES] {
            let (backlog, message) = (Backlog::default(), message(payload));
            let admitted = (0..1 << 20).take_while(|_| backlog.admit(&message)).count();
            assert!(admitted == 1 || admitted * bytes(&message) <= MAX_UNREAD_BYTES, "{admitted} of {payload} bytes");
            assert!((1..=MAX_UNREAD_BYTES / MESSAGE_BYTES).contains(&admitted), "{admitted} of {payload} bytes");
            backlog.release(&message);
            assert!(backlog.admit(&message), "there is room again");
        }
    }
}
