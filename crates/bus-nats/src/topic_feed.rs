//! A topic that JetStream keeps, followed from wherever it was asked for.

use std::convert::Infallible;
use std::time::Duration;

use async_nats::Message;
use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{State, Stream};
use tickpath_bus_api::{Gap, Start};
use tokio::time::sleep;

use crate::arrivals::{Arrival, Arrived};
use crate::background::Feed;
use crate::connected::Connected;
use crate::demand::Demand;
use crate::error::ServerError;
use crate::inbox::Inbox;
use crate::receipt::Receipt;
use crate::stream;

/// How often a subscriber that came first looks whether its topic exists by now.
const LOOK_FOR_STREAM: Duration = Duration::from_millis(50);

/// How long the server keeps the place of a subscriber that asks for nothing.
const KEEP_CONSUMER: Duration = Duration::from_secs(300);

/// A topic's stream, and how far it is read.
pub(crate) struct TopicFeed {
    stream: String,
    start: Start,
    mailbox: Arrived<Arrival>,
    demand: Demand,
    /// When the stream that is followed was made: a topic that was removed and made anew begins anew.
    made: Option<DateTime>,
    /// The place of the next message, from 0, once that is known.
    next: Option<u64>,
    /// The server of the last connection, which has another id after each start.
    server: Option<String>,
    /// None as long as the stream is not there.
    inbox: Option<Inbox>,
}

impl TopicFeed {
    /// Not attached yet.
    pub fn new(stream: String, start: Start, mailbox: Arrived<Arrival>, demand: Demand) -> Self {
        Self { stream, start, mailbox, demand, made: None, next: None, server: None, inbox: None }
    }

    /// Goes on in this stream: where it was left, or at its beginning if it is another one than before.
    async fn follow(&mut self, connected: &Connected, stream: &Stream) -> Result<(), ServerError> {
        let info = stream.cached_info();
        let is_another = self.made.is_some_and(|made| made != info.created);
        let next = match self.next {
            _ if is_another => {
                self.mailbox.put(Arrival::Gap(Gap::Reconnected));
                0
            }
            Some(next) => next,
            None => first(self.start, &info.state)?,
        };
        self.made = Some(info.created);
        self.next = Some(next);
        let consumer = stream.create_consumer(reading_from(next)).await?;
        self.inbox = Some(Inbox::open(connected, consumer, self.demand.clone()).await?);
        Ok(())
    }

    fn hand_on(&mut self, message: Message) -> Result<(), ServerError> {
        let receipt = message.reply.as_deref().and_then(Receipt::parse);
        let receipt = receipt.ok_or_else(|| ServerError::NotNats("a message without a receipt".to_owned()))?;
        let next = self.next.unwrap_or(receipt.sequence);
        if receipt.sequence < next {
            // Before the place that was asked for.
            return Ok(());
        }
        if receipt.sequence > next {
            self.mailbox.put(Arrival::Gap(Gap::Missed(receipt.sequence - next)));
        }
        self.next = Some(receipt.sequence + 1);
        self.mailbox.put(Arrival::Message { sequence: Some(receipt.sequence), message });
        self.demand.meet();
        Ok(())
    }
}

impl Feed for TopicFeed {
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        self.inbox = None;
        let found = stream::find(connected, &self.stream).await?;
        let server = connected.client.server_info().server_id;
        if self.made.is_none() && self.server.as_ref().is_some_and(|before| *before != server) {
            // The one before was started again, or is another one: a stream may have been made there and lost with it
            // before anybody looked.
            self.mailbox.tell_loss(Ok(Arrival::Gap(Gap::Reconnected)));
        }
        match found {
            Some(stream) => self.follow(connected, &stream).await?,
            // Whatever comes first is "from now on".
            None => {
                self.next.get_or_insert(match self.start {
                    Start::Now | Start::Oldest => 0,
                    Start::Sequence(sequence) => sequence,
                    Start::After(_) => 0,
                });
            }
        }
        self.server = Some(server);
        Ok(())
    }

    async fn run(&mut self, connected: &Connected) -> Result<Infallible, ServerError> {
        loop {
            if let Some(inbox) = &mut self.inbox {
                let message = inbox.next().await?;
                self.hand_on(message)?;
                continue;
            }
            sleep(LOOK_FOR_STREAM).await;
            if let Some(stream) = stream::find(connected, &self.stream).await? {
                self.follow(connected, &stream).await?;
            }
        }
    }

    async fn detach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        if let Some(inbox) = self.inbox.take() {
            connected.context.delete_consumer_from_stream(inbox.consumer(), &self.stream).await?;
        }
        Ok(())
    }

    fn tell(&mut self, sentence: String) {
        self.mailbox.tell_final(sentence);
    }
}

/// Where a subscription begins in a stream that is there.
fn first(start: Start, state: &State) -> Result<u64, ServerError> {
    match start {
        Start::Now => Ok(state.last_sequence),
        Start::Oldest => Ok(state.first_sequence.saturating_sub(1)),
        Start::Sequence(wanted) if wanted > state.last_sequence => {
            Err(ServerError::Future { wanted, published: state.last_sequence })
        }
        Start::Sequence(wanted) => Ok(wanted),
        Start::After(_) => Err(ServerError::NotNats("not yet".to_owned())),
    }
}

/// A reader of its own, which the server forgets when nobody asks for long.
fn reading_from(next: u64) -> pull::Config {
    pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next.saturating_add(1) },
        ack_policy: AckPolicy::None,
        inactive_threshold: KEEP_CONSUMER,
        memory_storage: true,
        ..pull::Config::default()
    }
}
