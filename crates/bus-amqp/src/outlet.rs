//! Sends messages to a topic or a queue, and waits until the broker has confirmed them.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::maybe_done;
use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Confirmation, PublisherConfirm};
use tickpath_bus_api::{BatchError, ConnectError, PublishError, Publisher, Pusher, wire};

use crate::error::ServerError;
use crate::link::Link;
use crate::place::Place;
use crate::server::Server;

/// The longest payload, in bytes: an eighth of what a server with default settings takes.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// The most messages of a batch that are on their way at a time.
const WINDOW_MESSAGES: usize = 1024;

/// The most bytes of a batch that are on their way at a time, if it is more than one message.
const WINDOW_BYTES: usize = 4 << 20;

/// A publisher of a topic, or a pusher of a queue.
pub(crate) struct Outlet {
    server: Arc<Server>,
    place: Place,
    /// None after an error.
    channel: Option<ConfirmChannel>,
    reconnects: u64,
}

impl Outlet {
    /// Connects now, so that the first message does not pay for it.
    pub fn open(server: Arc<Server>, place: Place) -> Result<Self, ConnectError> {
        let channel = ConfirmChannel::open(&server, &place).map_err(|e| server.error(&e))?;
        Ok(Self { server, place, channel: Some(channel), reconnects: 0 })
    }

    /// Sends all that fit, up to the first one that does not.
    fn send(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let check = |payload: &&[u8]| wire::check_message(kind, payload, MAX_PAYLOAD_BYTES).err();
        let bad = payloads.iter().enumerate().find_map(|(at, payload)| check(payload).map(|error| (at, error)));
        let good = &payloads[..bad.as_ref().map_or(payloads.len(), |(at, _)| *at)];
        if !good.is_empty() {
            self.send_good(stamp, kind, good)?;
        }
        bad.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
    }

    /// Sends all, once more on a new connection if the old one was lost. What is confirmed is not sent again.
    fn send_good(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        let mut result = self.attempt(stamp, kind, payloads, &mut done);
        if result.as_ref().is_err_and(ServerError::is_loss) {
            self.channel = None;
            result = self.attempt(stamp, kind, payloads, &mut done);
        }
        result.map_err(|e| {
            self.channel = None;
            BatchError { done, error: PublishError::Other(format!("{} {e}", self.server.name()).into()) }
        })
    }

    /// Sends what is not done yet, a window at a time, then counts the confirmations.
    fn attempt(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]], done: &mut usize) -> Result<(), ServerError> {
        if self.channel.is_none() {
            self.channel = Some(ConfirmChannel::open(&self.server, &self.place)?);
            self.reconnects += 1;
        }
        let channel = self.channel.as_ref().expect("opened");
        while *done < payloads.len() {
            let left = &payloads[*done..];
            let bodies: Vec<_> =
                left[..window(left)].iter().map(|payload| wire::encode(stamp, kind, payload)).collect();
            for confirm in channel.publish(&self.place, &bodies)? {
                match channel.link.answer(confirm)? {
                    Confirmation::Ack(None) => *done += 1,
                    Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => return Err(ServerError::NoQueue),
                    Confirmation::Nack(None) | Confirmation::NotRequested => return Err(ServerError::NotConfirmed),
                }
            }
        }
        Ok(())
    }
}

impl Publisher for Outlet {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send(stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for Outlet {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send(stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

/// A connection whose channel confirms.
struct ConfirmChannel {
    link: Link,
    channel: Channel,
}

impl ConfirmChannel {
    fn open(server: &Server, place: &Place) -> Result<Self, ServerError> {
        let link = Link::open(server)?;
        let channel = link.channel()?;
        place.declare(&link, &channel)?;
        link.answer(channel.confirm_select(ConfirmSelectOptions::default()))?;
        Ok(Self { link, channel })
    }

    /// Writes all to the socket; gives their confirmations to come.
    fn publish(&self, place: &Place, bodies: &[Vec<u8>]) -> Result<Vec<PublisherConfirm>, ServerError> {
        let bodies = bodies.iter();
        let mut writing: Vec<_> = bodies.map(|body| Box::pin(maybe_done(place.publish(&self.channel, body)))).collect();
        for publishing in &mut writing {
            // All are begun, in their order, before any is waited for.
            let _begun = publishing.now_or_never();
        }
        let written = writing.into_iter().map(|mut publishing| {
            self.link.answer(async move {
                publishing.as_mut().await;
                publishing.as_mut().take_output().expect("it is done")
            })
        });
        written.collect()
    }
}

/// How many of these messages, the first ones, may be on their way together: at least one.
fn window(payloads: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let fits = |payload: &&&[u8]| {
        bytes += payload.len();
        bytes <= WINDOW_BYTES
    };
    payloads.iter().take(WINDOW_MESSAGES).take_while(fits).count().max(1)
}
