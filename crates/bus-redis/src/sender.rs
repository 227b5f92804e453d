//! Sends messages, each by one command: to a channel, to a list, or to a stream.

use std::sync::Arc;

use tickpath_bus_api::wire::{check_message, header};
use tickpath_bus_api::{BatchError, ConnectError, PublishError, Publisher, Pusher};

use crate::link::Link;
use crate::resp::{self, Item, Items, Malformed, UNEXPECTED};
use crate::server::{Server, ServerError, TIMEOUT};

/// The longest payload, in bytes: half of what a server with default settings buffers before it drops a subscriber.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// How a sender connects.
pub(crate) type Connect = fn(&Server) -> Result<Link, ServerError>;

/// A publisher or a pusher, with its own connection.
pub(crate) struct Sender {
    server: Arc<Server>,
    connect: Connect,
    /// The command up to the message.
    head: Vec<u8>,
    /// None after an error, when replies may be left in it.
    link: Option<Link>,
    reconnects: u64,
    /// Commands on their way; kept, so that sending allocates nothing.
    packed: Vec<u8>,
}

impl Sender {
    /// Connects now, so that the first message does not pay for it. The message is the last part of the command.
    pub fn open(server: Arc<Server>, connect: Connect, command: &[&str]) -> Result<Self, ConnectError> {
        let link = connect(&server).map_err(|e| server.error(&e))?;
        let mut head = Vec::new();
        resp::head(&mut head, command);
        Ok(Self { server, connect, head, link: Some(link), reconnects: 0, packed: Vec::new() })
    }

    fn send(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn send_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        // What lies before a bad message is sent, as without a batch.
        let check = |payload: &[u8]| check_message(kind, payload, MAX_PAYLOAD_BYTES).err();
        let bad = payloads.iter().enumerate().find_map(|(at, payload)| check(payload).map(|e| (at, e)));
        let good = &payloads[..bad.as_ref().map_or(payloads.len(), |(at, _)| *at)];
        if !good.is_empty() {
            self.send_all(stamp, kind, good)?;
        }
        bad.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
    }

    /// Sends all, once more on a new connection if the old one was lost. What has its reply is not sent again.
    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        let mut result = self.attempt(stamp, kind, payloads, &mut done);
        if matches!(result, Err(ServerError::Closed | ServerError::Lost(_))) {
            result = self.attempt(stamp, kind, payloads, &mut done);
        }
        result
            .map_err(|e| BatchError { done, error: PublishError::Other(format!("{} {e}", self.server.name()).into()) })
    }

    /// Sends what is not done yet in one go, then counts the replies.
    fn attempt(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]], done: &mut usize) -> Result<(), ServerError> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => {
                let link = (self.connect)(&self.server)?;
                self.reconnects += 1;
                link
            }
        };
        self.packed.clear();
        let header = header(stamp, kind);
        for payload in &payloads[*done..] {
            self.packed.extend_from_slice(&self.head);
            resp::bulk(&mut self.packed, &[&header, payload]);
        }
        link.send(&self.packed)?;
        while *done < payloads.len() {
            link.answer(TIMEOUT, is_taken)?;
            *done += 1;
        }
        self.link = Some(link);
        Ok(())
    }
}

impl Publisher for Sender {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, payload)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for Sender {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

/// The server says how many receive the message, how many messages there are, or the message's id.
fn is_taken(items: &mut Items<'_>) -> Result<(), Malformed> {
    match items.item()? {
        Some(Item::Integer(_) | Item::Bulk(_)) => Ok(()),
        _ => Err(UNEXPECTED),
    }
}
