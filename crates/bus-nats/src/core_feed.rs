//! A subscription of core NATS.

use std::convert::Infallible;

use async_nats::{Message, Subject, Subscriber};
use futures_util::StreamExt;
use tickpath_bus_api::{Gap, wire};

use crate::arrivals::{Arrival, Arrived, News};
use crate::background::Feed;
use crate::backlog::Backlog;
use crate::connected::Connected;
use crate::error::ServerError;

/// Who shares the messages of a subject: the pullers of a queue.
pub(crate) struct Group {
    /// Its name on the server.
    pub name: &'static str,
    /// The queue's name.
    pub queue: String,
    /// Of which kind are messages that others push; they are skipped if none.
    pub foreign: Option<u8>,
}

/// A subject, alone or with a group that shares its messages.
pub(crate) struct CoreFeed {
    subject: Subject,
    group: Option<Group>,
    mailbox: Arrived<Arrival>,
    backlog: Backlog,
    subscription: Option<Subscriber>,
}

impl CoreFeed {
    /// Not subscribed yet.
    pub fn new(subject: String, group: Option<Group>, mailbox: Arrived<Arrival>, backlog: Backlog) -> Self {
        Self { subject: subject.into(), group, mailbox, backlog, subscription: None }
    }

    /// Tells that messages may be lost, once for all that was lost together.
    fn tell_loss(&mut self) {
        self.mailbox.tell_loss(match &self.group {
            None => Ok(Arrival::Gap { gap: Gap::Reconnected, place: None }),
            Some(group) => Err(News::Gone(format!(
                "the connection to the queue '{}' was lost, or this puller was too slow; what came meanwhile is gone \
                 if nobody else pulled it",
                group.queue
            ))),
        });
    }

    /// Whether this is for the caller: a queue has a place for what others push only if that was asked for.
    fn is_wanted(&self, message: &Message) -> bool {
        self.group.as_ref().is_none_or(|group| wire::pulled(&message.payload, group.foreign).is_some())
    }
}

impl Feed for CoreFeed {
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        let subscribed = match &self.group {
            Some(group) => connected.client.queue_subscribe(self.subject.clone(), group.name.to_owned()).await,
            None => connected.client.subscribe(self.subject.clone()).await,
        };
        let subscription = subscribed.map_err(ServerError::closed)?;
        connected.round_trip().await?;
        if self.subscription.replace(subscription).is_some() {
            self.tell_loss();
        }
        Ok(())
    }

    async fn run(&mut self, _connected: &Connected) -> Result<Infallible, ServerError> {
        loop {
            let subscription = self.subscription.as_mut().ok_or(ServerError::Closed)?;
            let message = subscription.next().await.ok_or(ServerError::Closed)?;
            if !self.is_wanted(&message) {
                continue;
            }
            if !self.backlog.admit(&message) {
                return Err(ServerError::Closed);
            }
            self.mailbox.put(Arrival::Message { receipt: None, message });
        }
    }

    async fn detach(&mut self, _connected: &Connected) -> Result<(), ServerError> {
        Ok(())
    }

    fn tell(&mut self, sentence: String) {
        self.mailbox.tell_final(sentence);
    }
}
