//! Messages of a JetStream consumer, asked for as they are wanted.
//!
//! A request for so many messages lies at the server until it is met, so that each message comes at once. While it lies
//! there the server gives signs of life; where they stay out, the consumer or its stream is gone, which nobody says.

use std::pin::pin;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{Message, StatusCode, Subject, Subscriber};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::time::timeout;

use crate::connected::{Connected, TIMEOUT};
use crate::demand::Demand;
use crate::error::ServerError;

/// How long a request lies at the server before it is made again.
const EXPIRES: Duration = Duration::from_secs(30);

/// The server's signs of life; two of them fit into [`TIMEOUT`].
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Where a consumer's messages come to.
pub(crate) struct Inbox {
    consumer: PullConsumer,
    address: Subject,
    subscription: Subscriber,
    demand: Demand,
    /// Messages that the server was asked for and has not sent.
    asked: usize,
}

impl Inbox {
    /// Subscribes. The first request goes out with the first call of [`Self::next`].
    pub async fn open(connected: &Connected, consumer: PullConsumer, demand: Demand) -> Result<Self, ServerError> {
        let address = Subject::from(connected.client.new_inbox());
        let subscription = connected.client.subscribe(address.clone()).await.map_err(ServerError::closed)?;
        Ok(Self { consumer, address, subscription, demand, asked: 0 })
    }

    /// The consumer's name at the server.
    pub fn consumer(&self) -> &str {
        &self.consumer.cached_info().name
    }

    /// The next message. Nothing is lost if this is dropped before it is done.
    pub async fn next(&mut self) -> Result<Message, ServerError> {
        loop {
            self.ask().await?;
            let silence = if self.asked > 0 { TIMEOUT } else { Duration::MAX };
            let came = {
                let coming = pin!(timeout(silence, self.subscription.next()));
                let grown = pin!(self.demand.grown());
                match select(coming, grown).await {
                    Either::Left((came, _)) => came,
                    Either::Right(_) => continue,
                }
            };
            let message = came.map_err(|_elapsed| ServerError::StreamGone)?.ok_or(ServerError::Closed)?;
            if self.is_message(&message)? {
                return Ok(message);
            }
        }
    }

    /// Ends the subscription; gives the messages that had come by then.
    pub async fn close(mut self) -> Vec<Message> {
        let mut left = Vec::new();
        if self.subscription.drain().await.is_ok() {
            while let Some(message) = self.subscription.next().await {
                if message.status.is_none() {
                    left.push(message);
                }
            }
        }
        left
    }

    /// Asks for what is wanted beyond what was asked for.
    async fn ask(&mut self) -> Result<(), ServerError> {
        let missing = self.demand.wanted().saturating_sub(self.asked);
        if missing > 0 {
            let request = BatchConfig {
                batch: missing,
                expires: Some(EXPIRES),
                idle_heartbeat: HEARTBEAT,
                ..BatchConfig::default()
            };
            self.consumer.request_batch(request, self.address.clone()).await.map_err(ServerError::closed)?;
            self.asked += missing;
        }
        Ok(())
    }

    /// Whether this is a message, and not a word about a request.
    fn is_message(&mut self, message: &Message) -> Result<bool, ServerError> {
        match message.status {
            None | Some(StatusCode::OK) => {
                self.asked = self.asked.saturating_sub(1);
                return Ok(true);
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(StatusCode::TIMEOUT) => self.forget(unmet(message).unwrap_or(self.asked)),
            Some(StatusCode::REQUEST_TERMINATED) => self.forget(unmet(message).ok_or(ServerError::StreamGone)?),
            Some(StatusCode::NO_RESPONDERS) => return Err(ServerError::StreamGone),
            Some(status) => {
                let description = message.description.as_deref().unwrap_or_default();
                return Err(ServerError::Refused(format!("{status} {description}")));
            }
        }
        Ok(false)
    }

    /// A request has ended; so many messages will not come by it.
    fn forget(&mut self, messages: usize) {
        self.asked = self.asked.saturating_sub(messages);
    }
}

/// How many messages a request that has ended was still to bring.
fn unmet(message: &Message) -> Option<usize> {
    message.headers.as_ref()?.get("Nats-Pending-Messages")?.as_str().parse().ok()
}
