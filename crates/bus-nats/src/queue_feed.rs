//! The thread's side of a queue in JetStream: one consumer, which all pullers share.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use async_nats::datetime::DateTime;
use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{Config, RawMessageErrorKind, Stream};
use async_nats::{Message, Subject};
use futures_util::future::{Either, select};
use tickpath_bus_api::wire;
use tickpath_clock::HostClock;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::arrivals::{Arrived, News};
use crate::background::Feed;
use crate::confirmations::Confirmations;
use crate::connected::Connected;
use crate::dead_letters::DeadLetters;
use crate::demand::Demand;
use crate::error::ServerError;
use crate::inbox::{Fetch, Inbox};
use crate::pulse::{Pulse, ours};
use crate::receipt::Receipt;
use crate::stream::{self, QUEUE_CONSUMER};

/// The delay until a message is redelivered that could not be moved to the dead-letter queue.
const BURY_AGAIN: Duration = Duration::from_secs(1);

/// A message that the server has delivered to this puller, and to no other puller for a while.
pub(crate) struct Held {
    /// The message, whose reply subject takes the acknowledgement.
    pub message: Message,
    /// The server's metadata of the message.
    pub receipt: Receipt,
    /// A time before its arrival, in ticks of the host's clock.
    pub ticks: u64,
    /// The era of its queue, which grows each time this puller sees the queue lost or restored.
    pub era: u64,
}

/// A request of the caller to the thread.
pub(crate) enum Order {
    /// Settle messages.
    Settle(Settlement),
    /// Fetch messages that wait at the server.
    Fetch(Fetching),
}

/// A request for messages that wait at the server.
pub(crate) struct Fetching {
    /// Max messages.
    pub messages: usize,
    /// The channel that signals the end, when the messages are in the mailbox. It is dropped if the connection is lost.
    pub done: SyncSender<()>,
}

/// An acknowledgement, or a negative one, of messages that were held.
pub(crate) struct Settlement {
    /// The reply subjects of the messages.
    pub replies: Vec<Subject>,
    /// The era of the messages: in another era the same subjects belong to other messages.
    pub era: u64,
    /// The kind: done, or not.
    pub kind: AckKind,
    /// True if the server's answers are waited for; else it is enough that the acknowledgements are sent.
    pub is_confirmed: bool,
    /// Set by the first side that decides: the thread, which then sends the settlement, or the caller after its
    /// timeout, which cancels it.
    pub is_decided: Arc<AtomicBool>,
    /// The channel to the waiting caller.
    pub done: SyncSender<Settled>,
}

/// The outcome of a settlement.
pub(crate) struct Settled {
    /// The number of messages that the server has confirmed.
    pub confirmed: usize,
    /// True if the settlement was sent, so that it may have arrived for the unconfirmed messages, too.
    pub has_gone_out: bool,
    /// The reason why it was not sent, or not confirmed for all.
    pub error: Option<ServerError>,
}

/// The configuration of a queue's feed.
pub(crate) struct Pulling {
    /// The queue's name.
    pub queue: String,
    /// The configuration of its stream.
    pub stream: Config,
    /// The time without an acknowledgement after which any puller may get a message again.
    pub silence: Duration,
    /// The kind of messages from other programs; they are skipped if none.
    pub foreign: Option<u8>,
    /// The queue for messages that were delivered too often, if there is a limit.
    pub dead_letters: Option<DeadLetters>,
}

/// A queue's stream and its consumer.
pub(crate) struct QueueFeed {
    pulling: Pulling,
    pulse: Pulse<HostClock>,
    mailbox: Arrived<Held>,
    demand: Demand,
    orders: UnboundedReceiver<Order>,
    inbox: Option<Inbox>,
    confirmations: Option<Confirmations>,
    /// The creation time of the stream: a stream that was lost and made anew holds nothing that was pushed before.
    made: Option<DateTime>,
    /// The number of messages that the stream was seen to have had. A stream that has come back with fewer gives their
    /// places to other messages.
    seen: u64,
    /// The received message with the highest place in the stream.
    newest: Option<Receipt>,
    /// The number of times that the stream was lost or came back older.
    era: u64,
    /// True after a failure to move a message to the dead-letter queue was reported, until a message is moved.
    is_bury_told: bool,
}

impl QueueFeed {
    /// Makes a feed that is not attached yet.
    pub fn new(
        pulling: Pulling,
        clock: HostClock,
        mailbox: Arrived<Held>,
        demand: Demand,
        orders: UnboundedReceiver<Order>,
    ) -> Self {
        Self {
            pulse: Pulse::new(clock, pulling.silence),
            pulling,
            mailbox,
            demand,
            orders,
            inbox: None,
            confirmations: None,
            made: None,
            seen: 0,
            newest: None,
            era: 0,
            is_bury_told: false,
        }
    }

    /// Reports a loss if the stream is not the one of the last connection, or has come back with less: with fewer
    /// messages than were seen, or with other messages at the places of those that were received.
    fn compare(&mut self, created: DateTime, last: u64, is_replaced: bool) {
        let before = self.made.replace(created);
        let seen = std::mem::replace(&mut self.seen, last);
        let queue = &self.pulling.queue;
        let sentence = match before {
            Some(made) if made != created => format!(
                "the queue '{queue}' was lost with the server, or removed; what was in it is gone; it is made anew"
            ),
            Some(_) if last < seen || is_replaced => format!(
                "the queue '{queue}' has come back as it was some time ago; what was pushed since is gone, and what \
                 was acknowledged since may come again"
            ),
            _ => return,
        };
        self.era += 1;
        self.newest = None;
        self.mailbox.tell_loss(Err(News::Gone(sentence)));
    }

    /// Reports whether another message has the place of the newest message that was received.
    async fn is_replaced(&self, stream: &Stream) -> Result<bool, ServerError> {
        let Some(newest) = self.newest else { return Ok(false) };
        match stream.get_raw_message(newest.sequence + 1).await {
            Ok(found) => Ok(found.time.unix_timestamp_nanos() != i128::from(newest.time_ns)),
            // The message is acknowledged and removed.
            Err(e) if e.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Puts a message into the mailbox and returns true; a foreign message is dropped, and one that was delivered too
    /// often is moved to the dead letters.
    async fn hand_on(&mut self, connected: &Connected, message: Message) -> Result<bool, ServerError> {
        let receipt = message.reply.as_deref().and_then(Receipt::parse);
        let receipt = receipt.ok_or_else(|| ServerError::NotNats("a message without a receipt".to_owned()))?;
        self.seen = self.seen.max(receipt.sequence + 1);
        if self.newest.is_none_or(|newest| newest.sequence < receipt.sequence) {
            self.newest = Some(receipt);
        }
        if wire::pulled(&message.payload, self.pulling.foreign).is_some() {
            if self.pulling.dead_letters.as_ref().is_some_and(|dead_letters| dead_letters.takes(&receipt)) {
                self.bury(connected, &message, &receipt).await?;
                return Ok(false);
            }
            self.mailbox.put(Held { message, receipt, ticks: self.pulse.since(), era: self.era });
            return Ok(true);
        }
        if let Some(reply) = message.reply {
            // A foreign message is terminated for good; else it would be redelivered again and again.
            connected.client.publish(reply, AckKind::Term.into()).await?;
        }
        Ok(false)
    }

    /// Moves a message to the dead-letter queue, where it is stored before it is removed here. A message that cannot be
    /// moved is redelivered later, and delays no other message.
    async fn bury(&mut self, connected: &Connected, message: &Message, receipt: &Receipt) -> Result<(), ServerError> {
        let Self { pulling, confirmations, .. } = self;
        let (Some(dead_letters), Some(confirmations)) = (&pulling.dead_letters, confirmations) else { return Ok(()) };
        let moving = async {
            dead_letters.keep(connected, message, receipt).await?;
            confirmations.ask(connected, message.reply.as_slice(), AckKind::Ack, &mut 0).await
        };
        let error = match connected.bounded(moving).await {
            Err(e) if e.is_loss() => return Err(e),
            Err(e) => e,
            Ok(()) => {
                self.is_bury_told = false;
                return Ok(());
            }
        };
        say(connected, message.reply.as_slice(), AckKind::Nak(Some(BURY_AGAIN))).await?;
        if !std::mem::replace(&mut self.is_bury_told, true) {
            let sentence = format!(
                "a message of the queue '{}' that was delivered too often is not moved to its dead letters, because \
                 the server {error}; it comes again until it is moved, and is not handed over",
                self.pulling.queue
            );
            self.mailbox.tell(News::NotAcknowledged(sentence));
        }
        Ok(())
    }

    /// Returns true if a message of that era, which came after `ticks`, is surely held by this puller alone.
    fn is_ours(&self, era: u64, ticks: u64) -> bool {
        era == self.era && self.pulse.age(ticks) < ours(self.pulling.silence)
    }

    async fn follow(&mut self, connected: &Connected, order: Order) -> Result<(), ServerError> {
        match order {
            Order::Settle(settlement) => self.settle(connected, settlement).await,
            Order::Fetch(Fetching { messages, done }) => {
                connected.bounded(self.fetch(connected, messages)).await?;
                // The caller may have given up waiting.
                let _ = done.try_send(());
                Ok(())
            }
        }
    }

    async fn fetch(&mut self, connected: &Connected, messages: usize) -> Result<(), ServerError> {
        let inbox = self.inbox.as_mut().ok_or(ServerError::Closed)?;
        let mut fetch = inbox.fetch(messages).await?;
        self.leave(connected, &mut fetch).await?;
        if fetch.is_too_small() {
            let inbox = self.inbox.as_mut().ok_or(ServerError::Closed)?;
            fetch = inbox.fetch_long().await?;
            self.leave(connected, &mut fetch).await?;
        }
        Ok(())
    }

    /// Hands on all messages of a fetch.
    async fn leave(&mut self, connected: &Connected, fetch: &mut Fetch) -> Result<(), ServerError> {
        loop {
            let inbox = self.inbox.as_mut().ok_or(ServerError::Closed)?;
            let Some(message) = inbox.fetched(fetch).await? else { return Ok(()) };
            self.hand_on(connected, message).await?;
        }
    }

    /// Sends a settlement, and fails if the connection is lost: the caller then sends it again on the next connection.
    async fn settle(&mut self, connected: &Connected, settlement: Settlement) -> Result<(), ServerError> {
        let Settlement { replies, era, kind, is_confirmed, is_decided, done } = settlement;
        // Relaxed: the flag orders no other memory.
        if is_decided.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        // Messages of another era are gone with their queue. Their subjects now belong to other messages, so nothing is
        // sent, and the caller gets an error.
        let is_of_now = era == self.era;
        let (mut confirmed, mut has_gone_out) = (0, false);
        let (confirmations, counted, gone_out) = (&mut self.confirmations, &mut confirmed, &mut has_gone_out);
        let settled = connected.bounded(async move {
            connected.listen(false).await?;
            if !is_of_now {
                return Err(ServerError::StreamGone);
            }
            *gone_out = true;
            match confirmations {
                Some(confirmations) if is_confirmed => confirmations.ask(connected, &replies, kind, counted).await,
                _ => say(connected, &replies, kind).await,
            }
        });
        let error = settled.await.err();
        let is_lost = is_of_now && error.as_ref().is_some_and(ServerError::is_loss);
        // The caller may have given up waiting.
        let _ = done.try_send(Settled { confirmed, has_gone_out, error });
        if is_lost { Err(ServerError::Closed) } else { Ok(()) }
    }
}

impl Feed for QueueFeed {
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        self.inbox = None;
        let stream = stream::ensure(connected, &self.pulling.stream).await?;
        let consumer = stream.create_consumer(shared_by_pullers(self.pulling.silence)).await?;
        let is_replaced = self.is_replaced(&stream).await?;
        let info = stream.cached_info();
        self.compare(info.created, info.state.last_sequence, is_replaced);
        self.confirmations = Some(Confirmations::open(connected).await?);
        self.inbox = Some(Inbox::open(connected, consumer, self.demand.clone()).await?);
        self.pulse.restart();
        Ok(())
    }

    async fn run(&mut self, connected: &Connected) -> Result<Infallible, ServerError> {
        loop {
            let inbox = self.inbox.as_mut().ok_or(ServerError::Closed)?;
            let next = {
                let order = pin!(self.orders.recv());
                let message = pin!(inbox.next());
                let mut waiting = select(order, message);
                loop {
                    let came = timeout(self.pulse.interval(), &mut waiting).await;
                    self.pulse.beat();
                    match came {
                        Ok(Either::Left((order, _))) => break Either::Left(order),
                        Ok(Either::Right((message, _))) => break Either::Right(message),
                        Err(_elapsed) => {}
                    }
                }
            };
            match next {
                Either::Left(Some(order)) => self.follow(connected, order).await?,
                Either::Left(None) => return Err(ServerError::Closed),
                Either::Right(message) => {
                    if self.hand_on(connected, message?).await? {
                        self.demand.meet();
                    }
                }
            }
        }
    }

    /// Gives back the messages that came and were not handed over, so that another puller gets them at once. Leaves
    /// alone those that another puller may have by now.
    async fn detach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        let mut unread: Vec<Message> = Vec::new();
        while let Some(held) = self.mailbox.take() {
            unread.extend(held.ok().filter(|held| self.is_ours(held.era, held.ticks)).map(|held| held.message));
        }
        let is_ours = self.is_ours(self.era, self.pulse.since());
        if let Some(inbox) = self.inbox.take() {
            unread.extend(inbox.close().await.into_iter().filter(|_| is_ours));
        }
        let replies: Vec<Subject> = unread.into_iter().filter_map(|message| message.reply).collect();
        say(connected, &replies, AckKind::Nak(None)).await?;
        connected.round_trip().await
    }

    fn tell(&mut self, sentence: String) {
        self.mailbox.tell_final(sentence);
    }
}

/// Returns when the acknowledgements are sent.
async fn say(connected: &Connected, replies: &[Subject], kind: AckKind) -> Result<(), ServerError> {
    for reply in replies {
        connected.client.publish(reply.clone(), kind.into()).await?;
    }
    connected.client.flush().await.map_err(ServerError::closed)
}

/// Configures the one consumer that all pullers of a queue share; the consumer stays when they disconnect.
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
