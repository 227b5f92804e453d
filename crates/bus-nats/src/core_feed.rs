//! The thread's side of a core NATS subscription.

use std::convert::Infallible;

use async_nats::{Message, Subject, Subscriber};
use futures_util::StreamExt;
use tickpath_bus_api::{Gap, wire};

use crate::arrivals::{ArrivalSender, FeedReport, TopicArrival};
use crate::background::BackgroundFeed;
use crate::backlog::Backlog;
use crate::connection::NatsConnection;
use crate::error::{NatsServerError, ServerResult};

/// A queue group: the pullers that share the messages of a subject.
pub(crate) struct QueueGroup {
    pub name: &'static str,
    pub queue: String,
    /// The kind of messages from other programs; they are skipped if none.
    pub foreign: Option<u8>,
}

/// A subject, subscribed alone or in a group that shares its messages.
pub(crate) struct CoreFeed {
    subject: Subject,
    group: Option<QueueGroup>,
    mailbox: ArrivalSender<TopicArrival>,
    backlog: Backlog,
    subscription: Option<Subscriber>,
}

impl CoreFeed {
    pub fn new(
        subject: String,
        group: Option<QueueGroup>,
        mailbox: ArrivalSender<TopicArrival>,
        backlog: Backlog,
    ) -> Self {
        Self { subject: subject.into(), group, mailbox, backlog, subscription: None }
    }

    /// Reports that messages may be lost, once for losses without a message in between.
    fn report_loss(&mut self) {
        self.mailbox.report_loss(match &self.group {
            None => Ok(TopicArrival::Gap { gap: Gap::Reconnected, position: None }),
            Some(group) => Err(FeedReport::MessagesLost(format!(
                "the connection to the queue '{}' was lost, or this puller was too slow; messages sent meanwhile are \
                 lost unless another puller got them",
                group.queue
            ))),
        });
    }

    /// Returns true if the caller wants this message: a queue takes those of other programs only if it was opened for
    /// them.
    fn is_wanted(&self, message: &Message) -> bool {
        self.group.as_ref().is_none_or(|group| wire::decode_pulled(&message.payload, group.foreign).is_some())
    }
}

impl BackgroundFeed for CoreFeed {
    async fn attach(&mut self, connected: &NatsConnection) -> ServerResult {
        let subscribed = match &self.group {
            Some(group) => connected.client.queue_subscribe(self.subject.clone(), group.name.to_owned()).await,
            None => connected.client.subscribe(self.subject.clone()).await,
        };
        let subscription = subscribed.map_err(NatsServerError::closed)?;
        connected.round_trip().await?;
        if self.subscription.replace(subscription).is_some() {
            self.report_loss();
        }
        Ok(())
    }

    async fn run(&mut self, _connected: &NatsConnection) -> ServerResult<Infallible> {
        loop {
            let subscription = self.subscription.as_mut().ok_or(NatsServerError::Closed)?;
            let message = subscription.next().await.ok_or(NatsServerError::Closed)?;
            if !self.is_wanted(&message) {
                continue;
            }
            if !self.backlog.admit(&message) {
                return Err(NatsServerError::Closed);
            }
            self.mailbox.put(TopicArrival::Message { receipt: None, message });
        }
    }

    async fn detach(&mut self, _connected: &NatsConnection) -> ServerResult {
        Ok(())
    }

    fn report_error(&mut self, sentence: String) {
        self.mailbox.report_permanent(sentence);
    }
}
