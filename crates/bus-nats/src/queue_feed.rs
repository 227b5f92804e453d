//! A queue that JetStream keeps, pulled by a consumer that all pullers share.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::Config;
use async_nats::{Message, Subject};
use futures_util::future::{Either, select};
use tickpath_bus_api::wire;
use tickpath_clock::{Clock, HostClock};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::yield_now;

use crate::arrivals::Arrived;
use crate::background::Feed;
use crate::connected::Connected;
use crate::demand::Demand;
use crate::error::ServerError;
use crate::inbox::Inbox;
use crate::receipt::Receipt;
use crate::stream::{self, QUEUE_CONSUMER};

/// A message that the server has handed to this puller, and to nobody else for a while.
pub(crate) struct Held {
    /// The message, whose reply subject takes the acknowledgement.
    pub message: Message,
    /// What the server says about it.
    pub receipt: Receipt,
    /// When it came, in ticks of the host's clock.
    pub ticks: u64,
}

/// What is to be said about messages that were held.
pub(crate) struct Settlement {
    /// Their reply subjects.
    pub replies: Vec<Subject>,
    /// Done with, or not.
    pub kind: AckKind,
    /// Whether the server's answer is waited for; else it is enough that the words are on their way.
    pub is_confirmed: bool,
    /// Who waits for this.
    pub done: SyncSender<Result<(), ServerError>>,
}

/// A queue's stream and what is pulled from it.
pub(crate) struct QueueFeed {
    stream: Config,
    silence: Duration,
    clock: HostClock,
    mailbox: Arrived<Held>,
    demand: Demand,
    settlements: UnboundedReceiver<Settlement>,
    inbox: Option<Inbox>,
}

impl QueueFeed {
    /// Not attached yet. What is not acknowledged for this long comes again, to whomever.
    pub fn new(
        stream: Config,
        silence: Duration,
        clock: HostClock,
        mailbox: Arrived<Held>,
        demand: Demand,
        settlements: UnboundedReceiver<Settlement>,
    ) -> Self {
        Self { stream, silence, clock, mailbox, demand, settlements, inbox: None }
    }

    async fn hand_on(&mut self, connected: &Connected, message: Message) -> Result<(), ServerError> {
        let receipt = message.reply.as_deref().and_then(Receipt::parse);
        let receipt = receipt.ok_or_else(|| ServerError::NotNats("a message without a receipt".to_owned()))?;
        if wire::decode(&message.payload).is_some() {
            self.mailbox.put(Ok(Held { message, receipt, ticks: self.clock.ticks() }));
            self.demand.meet();
        } else if let Some(reply) = message.reply {
            // None of ours: skipped for ever, or it would come again and again.
            connected.client.publish(reply, AckKind::Term.into()).await?;
        }
        Ok(())
    }
}

impl Feed for QueueFeed {
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        self.inbox = None;
        let stream = stream::ensure(connected, &self.stream).await?;
        let consumer = stream.create_consumer(shared_by_pullers(self.silence)).await?;
        self.inbox = Some(Inbox::open(connected, consumer, self.demand.clone()).await?);
        Ok(())
    }

    async fn run(&mut self, connected: &Connected) -> Result<Infallible, ServerError> {
        loop {
            let inbox = self.inbox.as_mut().ok_or(ServerError::Closed)?;
            let next = {
                let settlement = pin!(self.settlements.recv());
                let message = pin!(inbox.next());
                match select(settlement, message).await {
                    Either::Left((settlement, _)) => Either::Left(settlement),
                    Either::Right((message, _)) => Either::Right(message),
                }
            };
            match next {
                Either::Left(Some(settlement)) => settle(connected, settlement).await?,
                Either::Left(None) => return Err(ServerError::Closed),
                Either::Right(message) => self.hand_on(connected, message?).await?,
            }
        }
    }

    /// What came and was not handed over comes again at once, to somebody else.
    async fn detach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        let mut unread: Vec<Message> = Vec::new();
        while let Some(held) = self.mailbox.take() {
            unread.extend(held.ok().map(|held| held.message));
        }
        if let Some(inbox) = self.inbox.take() {
            unread.extend(inbox.close().await);
        }
        let replies: Vec<Subject> = unread.into_iter().filter_map(|message| message.reply).collect();
        say(connected, &replies, AckKind::Nak(None)).await?;
        connected.round_trip().await
    }

    fn tell(&self, sentence: String) {
        self.mailbox.put(Err(sentence));
    }
}

/// Fails where the connection is lost: who says it once more says it on the next one.
async fn settle(connected: &Connected, settlement: Settlement) -> Result<(), ServerError> {
    let Settlement { replies, kind, is_confirmed, done } = settlement;
    let settled = connected.bounded(async {
        // What the server has said is heard first: it may have hung up.
        yield_now().await;
        match replies.split_last() {
            // One answer is enough: the server takes one after the other.
            Some((last, before)) if is_confirmed => {
                say(connected, before, kind).await?;
                connected.client.request(last.clone(), kind.into()).await?;
                Ok(())
            }
            _ => say(connected, &replies, kind).await,
        }
    });
    let settled = settled.await;
    let is_lost = settled.as_ref().is_err_and(ServerError::is_loss);
    // Who waited may have given up.
    let _ = done.send(settled);
    if is_lost { Err(ServerError::Closed) } else { Ok(()) }
}

/// Returns when the words are on their way.
async fn say(connected: &Connected, replies: &[Subject], kind: AckKind) -> Result<(), ServerError> {
    for reply in replies {
        connected.client.publish(reply.clone(), kind.into()).await?;
    }
    connected.client.flush().await.map_err(ServerError::closed)
}

/// One consumer for all pullers of a queue. It stays when they go.
fn shared_by_pullers(silence: Duration) -> pull::Config {
    pull::Config {
        durable_name: Some(QUEUE_CONSUMER.to_owned()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: silence,
        max_deliver: -1,
        max_ack_pending: -1,
        ..pull::Config::default()
    }
}
