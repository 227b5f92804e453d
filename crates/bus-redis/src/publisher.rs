//! Publishes one channel.

use std::sync::Arc;

use redis::{RedisError, Value};
use tickpath_bus_api::{BatchError, ConnectError, PublishError, Publisher};

use crate::MAX_PAYLOAD_BYTES;
use crate::resp;
use crate::server::{Server, ServerError};
use crate::wire::{self, FIRST_KIND};

/// A publisher with its own connection.
pub(crate) struct RedisPublisher {
    server: Arc<Server>,
    topic: String,
    /// None after an error, when replies may be left in it.
    connection: Option<redis::Connection>,
    /// Commands on their way; kept, so that publishing allocates nothing.
    packed: Vec<u8>,
}

impl RedisPublisher {
    /// Connects now, so that the first message does not pay for it.
    pub fn open(server: Arc<Server>, topic: &str) -> Result<Self, ConnectError> {
        let connection = server.dial().map_err(|e| server.error(&e))?;
        Ok(Self { server, topic: topic.to_owned(), connection: Some(connection), packed: Vec::new() })
    }

    /// Publishes all, once more on a new connection if the old one was lost. What has its reply is not sent again.
    fn publish_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        let mut result = self.attempt(stamp, kind, payloads, &mut done);
        if matches!(result, Err(ServerError::Closed | ServerError::Lost(_))) {
            self.connection = None;
            result = self.attempt(stamp, kind, payloads, &mut done);
        }
        result.map_err(|e| {
            self.connection = None;
            BatchError { done, error: PublishError::Other(format!("{} {e}", self.server.name()).into()) }
        })
    }

    /// Sends what is not done yet in one go, then counts the replies.
    fn attempt(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]], done: &mut usize) -> Result<(), ServerError> {
        if self.connection.is_none() {
            self.connection = Some(self.server.dial()?);
        }
        let connection = self.connection.as_mut().expect("connected");
        self.packed.clear();
        let header = wire::header(stamp, kind);
        for payload in &payloads[*done..] {
            resp::publish(&mut self.packed, self.topic.as_bytes(), &header, payload);
        }
        connection.send_packed_command(&self.packed)?;
        while *done < payloads.len() {
            match connection.recv_response()? {
                Value::Int(_receivers) => *done += 1,
                Value::ServerError(e) => return Err(RedisError::from(e).into()),
                _ => return Err(ServerError::NotRedis("an unexpected reply".to_owned())),
            }
        }
        Ok(())
    }
}

impl Publisher for RedisPublisher {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        check(kind, payload)?;
        self.publish_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        // What lies before a bad message is published, as without a batch.
        let bad = payloads.iter().enumerate().find_map(|(at, payload)| check(kind, payload).err().map(|e| (at, e)));
        let good = &payloads[..bad.as_ref().map_or(payloads.len(), |(at, _)| *at)];
        if !good.is_empty() {
            self.publish_all(stamp, kind, good)?;
        }
        bad.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
    }
}

fn check(kind: u8, payload: &[u8]) -> Result<(), PublishError> {
    if kind < FIRST_KIND {
        let sentence = format!("message kind {kind} is reserved; use {FIRST_KIND} to 255");
        return Err(PublishError::Other(sentence.into()));
    }
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(PublishError::TooLarge { bytes: payload.len(), limit: MAX_PAYLOAD_BYTES });
    }
    Ok(())
}
