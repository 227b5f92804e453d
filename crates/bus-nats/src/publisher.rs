//! Publishes a topic, and pushes to a queue: for the server the same.

use std::sync::Arc;

use async_nats::Subject;
use async_nats::jetstream::stream::Config;
use tickpath_bus_api::{BatchError, PublishError, Publisher, Pusher, wire};
use tokio::runtime::Handle;

use crate::connected::{Connected, patiently};
use crate::error::ServerError;
use crate::link::Link;
use crate::server::Server;
use crate::stream;

/// Messages that are on their way together, at most.
const TOGETHER: usize = 256;

/// Where messages go.
pub(crate) struct Target {
    /// The subject.
    pub subject: Subject,
    /// The stream that keeps what comes to the subject; none with core NATS.
    pub stream: Option<Config>,
}

/// A publisher with its own connection, which runs on the caller's thread.
pub(crate) struct NatsPublisher {
    server: Arc<Server>,
    target: Target,
    /// None after an error: nothing of the last call may come out of it later.
    link: Option<Link>,
    reconnects: u64,
    /// The longest payload, in bytes, by the last connection.
    limit: usize,
}

impl NatsPublisher {
    /// Connects now, so that the first message does not pay for it.
    pub fn open(server: Arc<Server>, target: Target) -> Result<Self, ServerError> {
        let mut publisher = Self { server, target, link: None, reconnects: 0, limit: 0 };
        publisher.connect()?;
        Ok(publisher)
    }

    fn connect(&mut self) -> Result<(), ServerError> {
        let link = Link::open(&self.server)?;
        let topic_bytes = match &self.target.stream {
            Some(wanted) => {
                let stream = link.run(patiently(async || stream::ensure(link.connected(), wanted).await))?;
                Some(stream.cached_info().config.max_bytes)
            }
            None => None,
        };
        self.limit = stream::longest_payload(link.connected().client.max_payload(), topic_bytes);
        self.link = Some(link);
        Ok(())
    }

    fn send(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        wire::check_message(kind, payload, self.limit)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn send_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let check = |payload: &[u8]| wire::check_message(kind, payload, self.limit).err();
        let bad = payloads.iter().enumerate().find_map(|(at, &payload)| check(payload).map(|error| (at, error)));
        // What lies before a bad message is published, as without a batch.
        let good = &payloads[..bad.as_ref().map_or(payloads.len(), |(at, _)| *at)];
        if !good.is_empty() {
            self.send_all(stamp, kind, good)?;
        }
        bad.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
    }

    /// Sends all, once more on a new connection if the old one was lost. What is confirmed is not sent again.
    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        let mut result = self.attempt(stamp, kind, payloads, &mut done);
        if result.as_ref().is_err_and(ServerError::is_loss) {
            self.link = None;
            result = self.attempt(stamp, kind, payloads, &mut done);
        }
        result.map_err(|e| {
            self.link = None;
            BatchError { done, error: PublishError::Other(format!("{} {e}", self.server.name()).into()) }
        })
    }

    fn attempt(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]], done: &mut usize) -> Result<(), ServerError> {
        if self.link.is_none() {
            self.connect()?;
            self.reconnects += 1;
        }
        let link = self.link.as_ref().expect("connected");
        let Target { subject, stream } = &self.target;
        for together in payloads[*done..].chunks(TOGETHER) {
            let messages = together.iter().map(|payload| wire::encode(stamp, kind, payload));
            match stream {
                Some(_) => link.run(store(link.connected(), subject, messages, done))?,
                None => {
                    link.run(write(link.connected(), subject, messages))?;
                    *done += together.len();
                }
            }
        }
        Ok(())
    }
}

impl Publisher for NatsPublisher {
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

impl Pusher for NatsPublisher {
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

impl Drop for NatsPublisher {
    /// A connection that is closed while the server has said something cuts off what is still on its way: so the server
    /// is heard out first. Where a thread must not wait, that is left out.
    fn drop(&mut self) {
        if let Some(link) = &self.link
            && self.target.stream.is_none()
            && Handle::try_current().is_err()
        {
            let _ = link.run(link.connected().round_trip());
        }
    }
}

/// Returns when all is written to the socket. More is not confirmed.
async fn write(
    connected: &Connected,
    subject: &Subject,
    messages: impl Iterator<Item = Vec<u8>>,
) -> Result<(), ServerError> {
    for message in messages {
        connected.client.publish(subject.clone(), message.into()).await?;
    }
    connected.client.flush().await.map_err(ServerError::closed)
}

/// Sends all, then waits for the confirmations in the same order.
async fn store(
    connected: &Connected,
    subject: &Subject,
    messages: impl Iterator<Item = Vec<u8>>,
    done: &mut usize,
) -> Result<(), ServerError> {
    let mut confirmations = Vec::new();
    for message in messages {
        confirmations.push(connected.context.publish(subject.clone(), message.into()).await?);
    }
    for confirmation in confirmations {
        confirmation.await?;
        *done += 1;
    }
    Ok(())
}
