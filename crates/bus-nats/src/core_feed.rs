//! A subscription of core NATS.

use std::convert::Infallible;

use async_nats::{Subject, Subscriber};
use futures_util::StreamExt;
use tickpath_bus_api::{Gap, wire};

use crate::arrivals::{Arrival, Arrived};
use crate::background::Feed;
use crate::connected::Connected;
use crate::error::ServerError;

/// The most messages that lie here unread. Who is further behind is cut off, as the server does it, and told of a gap.
const MOST_UNREAD: usize = 1 << 18;

/// A subject, alone or with a group that shares its messages.
pub(crate) struct CoreFeed {
    subject: Subject,
    group: Option<String>,
    mailbox: Arrived<Arrival>,
    subscription: Option<Subscriber>,
}

impl CoreFeed {
    /// Not subscribed yet.
    pub fn new(subject: String, group: Option<&str>, mailbox: Arrived<Arrival>) -> Self {
        Self { subject: subject.into(), group: group.map(str::to_owned), mailbox, subscription: None }
    }
}

impl Feed for CoreFeed {
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        let subscribed = match &self.group {
            Some(group) => connected.client.queue_subscribe(self.subject.clone(), group.clone()).await,
            None => connected.client.subscribe(self.subject.clone()).await,
        };
        let subscription = subscribed.map_err(ServerError::closed)?;
        connected.round_trip().await?;
        let is_again = self.subscription.replace(subscription).is_some();
        if is_again && self.group.is_none() {
            self.mailbox.put(Ok(Arrival::Gap(Gap::Reconnected)));
        }
        Ok(())
    }

    async fn run(&mut self, _connected: &Connected) -> Result<Infallible, ServerError> {
        let subscription = self.subscription.as_mut().ok_or(ServerError::Closed)?;
        while let Some(message) = subscription.next().await {
            if self.group.is_none() && self.mailbox.len() >= MOST_UNREAD {
                return Err(ServerError::Closed);
            }
            // A queue has no place for what others push.
            if self.group.is_none() || wire::decode(&message.payload).is_some() {
                self.mailbox.put(Ok(Arrival::Message { sequence: None, message }));
            }
        }
        Err(ServerError::Closed)
    }

    async fn detach(&mut self, _connected: &Connected) -> Result<(), ServerError> {
        Ok(())
    }

    fn tell(&self, sentence: String) {
        self.mailbox.put(Err(sentence));
    }
}
