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

use crate::arrivals::{ArrivalSender, FeedReport};
use crate::background::BackgroundFeed;
use crate::confirmations::Confirmations;
use crate::connection::NatsConnection;
use crate::dead_letters::DeadLetterQueue;
use crate::demand::Demand;
use crate::error::{NatsServerError, ServerResult};
use crate::inbox::{ConsumerInbox, InboxFetch};
use crate::pulse::{Pulse, safe_hold_time};
use crate::receipt::Receipt;
use crate::stream::{self, QUEUE_CONSUMER};

/// The delay until a message is redelivered that could not be moved to the dead-letter queue.
const DEAD_LETTER_RETRY: Duration = Duration::from_secs(1);

/// A message that the server has delivered to this puller, and to no other puller for a while.
pub(crate) struct DeliveredMessage {
    /// The message, whose reply subject takes the acknowledgement.
    pub message: Message,
    pub receipt: Receipt,
    /// A time before its arrival, in ticks of the host's clock.
    pub ticks: u64,
    /// The era of its queue, which grows each time this puller sees the queue lost or restored.
    pub epoch: u64,
}

/// A request of the caller to the thread.
pub(crate) enum FeedRequest {
    Settle(Settlement),
    /// Fetches at most this many messages that wait at the server.
    Fetch {
        messages: usize,
        /// The channel that signals the end, when the messages are in the mailbox; dropped if the connection is lost.
        done: SyncSender<()>,
    },
}

/// An acknowledgement, or a negative one, of messages that were held.
pub(crate) struct Settlement {
    pub replies: Vec<Subject>,
    /// The era of the messages: in another era the same subjects belong to other messages.
    pub epoch: u64,
    pub kind: AckKind,
    /// True if the server's answers are waited for; else it is enough that the acknowledgements are sent.
    pub is_confirmed: bool,
    /// Set by the first side that decides: the thread, which then sends the settlement, or the caller after its
    /// timeout, which cancels it.
    pub is_decided: Arc<AtomicBool>,
    /// The channel to the waiting caller.
    pub done: SyncSender<SettlementOutcome>,
}

pub(crate) struct SettlementOutcome {
    pub confirmed: usize,
    /// True if the settlement was sent, so that it may have arrived for the unconfirmed messages, too.
    pub was_sent: bool,
    /// The reason why it was not sent, or not confirmed for all.
    pub error: Option<NatsServerError>,
}

pub(crate) struct QueueFeedConfig {
    pub queue: String,
    pub stream: Config,
    /// The time without an acknowledgement after which any puller may get a message again.
    pub silence: Duration,
    /// The kind of messages from other programs; they are skipped if none.
    pub foreign: Option<u8>,
    /// The queue for messages that were delivered too often, if there is a limit.
    pub dead_letters: Option<DeadLetterQueue>,
}

/// A queue's stream and its consumer.
pub(crate) struct QueueFeed {
    config: QueueFeedConfig,
    pulse: Pulse<HostClock>,
    mailbox: ArrivalSender<DeliveredMessage>,
    demand: Demand,
    requests: UnboundedReceiver<FeedRequest>,
    inbox: Option<ConsumerInbox>,
    confirmations: Option<Confirmations>,
    /// The creation time of the stream: a stream that was lost and made anew holds nothing that was pushed before.
    created: Option<DateTime>,
    /// The number of messages that the stream was seen to have had. A stream that has come back with fewer gives their
    /// positions to other messages.
    seen_count: u64,
    /// The received message with the highest position in the stream.
    newest: Option<Receipt>,
    /// The number of times that the stream was lost or came back older.
    epoch: u64,
    /// True after a failure to move a message to the dead-letter queue was reported, until a message is moved.
    has_reported_failure: bool,
}

impl QueueFeed {
    pub fn new(
        config: QueueFeedConfig,
        clock: HostClock,
        mailbox: ArrivalSender<DeliveredMessage>,
        demand: Demand,
        requests: UnboundedReceiver<FeedRequest>,
    ) -> Self {
        Self {
            pulse: Pulse::new(clock, config.silence),
            config,
            mailbox,
            demand,
            requests,
            inbox: None,
            confirmations: None,
            created: None,
            seen_count: 0,
            newest: None,
            epoch: 0,
            has_reported_failure: false,
        }
    }

    /// Reports a loss if the stream is not the one of the last connection, or has come back with less: with fewer
    /// messages than were seen, or with other messages at the positions of those that were received.
    fn detect_loss(&mut self, created: DateTime, last: u64, is_replaced: bool) {
        let before = self.created.replace(created);
        let seen = std::mem::replace(&mut self.seen_count, last);
        let queue = &self.config.queue;
        let sentence = match before {
            Some(made) if made != created => format!(
                "the queue '{queue}' was lost with the server, or removed; its messages are gone; it is recreated"
            ),
            Some(_) if last < seen || is_replaced => format!(
                "the queue '{queue}' has come back as it was some time ago; what was pushed since is gone, and what \
                 was acknowledged since may come again"
            ),
            _ => return,
        };
        self.epoch += 1;
        self.newest = None;
        self.mailbox.report_loss(Err(FeedReport::MessagesLost(sentence)));
    }

    /// Reports whether another message has the position of the newest message that was received.
    async fn is_replaced(&self, stream: &Stream) -> ServerResult<bool> {
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
    async fn forward(&mut self, connected: &NatsConnection, message: Message) -> ServerResult<bool> {
        let receipt = message.reply.as_deref().and_then(Receipt::parse);
        let receipt = receipt.ok_or_else(|| NatsServerError::NotNats("a message without a receipt".to_owned()))?;
        self.seen_count = self.seen_count.max(receipt.sequence + 1);
        if self.newest.is_none_or(|newest| newest.sequence < receipt.sequence) {
            self.newest = Some(receipt);
        }
        if wire::decode_pulled(&message.payload, self.config.foreign).is_some() {
            if self.config.dead_letters.as_ref().is_some_and(|dead_letters| dead_letters.is_over_limit(&receipt)) {
                self.move_to_dead_letters(connected, &message, &receipt).await?;
                return Ok(false);
            }
            self.mailbox.put(DeliveredMessage { message, receipt, ticks: self.pulse.since(), epoch: self.epoch });
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
    async fn move_to_dead_letters(
        &mut self,
        connected: &NatsConnection,
        message: &Message,
        receipt: &Receipt,
    ) -> ServerResult {
        let Self { config, confirmations, .. } = self;
        let (Some(dead_letters), Some(confirmations)) = (&config.dead_letters, confirmations) else { return Ok(()) };
        let moving = async {
            dead_letters.store(connected, message, receipt).await?;
            confirmations.confirm(connected, message.reply.as_slice(), AckKind::Ack, &mut 0).await
        };
        let error = match connected.with_timeout(moving).await {
            Err(e) if e.is_retryable() => return Err(e),
            Err(e) => e,
            Ok(()) => {
                self.has_reported_failure = false;
                return Ok(());
            }
        };
        send_acks(connected, message.reply.as_slice(), AckKind::Nak(Some(DEAD_LETTER_RETRY))).await?;
        if !std::mem::replace(&mut self.has_reported_failure, true) {
            let sentence = format!(
                "a message of the queue '{}' that was delivered too often is not moved to its dead letters, because \
                 the server {error}; it comes again until it is moved, and is not handed over",
                self.config.queue
            );
            self.mailbox.report(FeedReport::NotAcknowledged(sentence));
        }
        Ok(())
    }

    /// Returns true if a message of that era, which came after `ticks`, is surely held by this puller alone.
    fn is_held(&self, epoch: u64, ticks: u64) -> bool {
        epoch == self.epoch && self.pulse.age(ticks) < safe_hold_time(self.config.silence)
    }

    async fn handle_request(&mut self, connected: &NatsConnection, request: FeedRequest) -> ServerResult {
        match request {
            FeedRequest::Settle(settlement) => self.settle(connected, settlement).await,
            FeedRequest::Fetch { messages, done } => {
                connected.with_timeout(self.fetch(connected, messages)).await?;
                // The caller may have given up waiting.
                let _ = done.try_send(());
                Ok(())
            }
        }
    }

    async fn fetch(&mut self, connected: &NatsConnection, messages: usize) -> ServerResult {
        let inbox = self.inbox.as_mut().ok_or(NatsServerError::Closed)?;
        let mut fetch = inbox.fetch(messages).await?;
        self.forward_fetched(connected, &mut fetch).await?;
        if fetch.is_too_small() {
            let inbox = self.inbox.as_mut().ok_or(NatsServerError::Closed)?;
            fetch = inbox.fetch_long().await?;
            self.forward_fetched(connected, &mut fetch).await?;
        }
        Ok(())
    }

    /// Hands on all messages of a fetch.
    async fn forward_fetched(&mut self, connected: &NatsConnection, fetch: &mut InboxFetch) -> ServerResult {
        loop {
            let inbox = self.inbox.as_mut().ok_or(NatsServerError::Closed)?;
            let Some(message) = inbox.next_fetched(fetch).await? else { return Ok(()) };
            self.forward(connected, message).await?;
        }
    }

    /// Sends a settlement, and fails if the connection is lost: the caller then sends it again on the next connection.
    async fn settle(&mut self, connected: &NatsConnection, settlement: Settlement) -> ServerResult {
        let Settlement { replies, epoch, kind, is_confirmed, is_decided, done } = settlement;
        // Relaxed: the flag orders no other memory.
        if is_decided.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        // Messages of another era are gone with their queue. Their subjects now belong to other messages, so nothing is
        // sent, and the caller gets an error.
        let is_of_now = epoch == self.epoch;
        let (mut confirmed, mut was_sent) = (0, false);
        let (confirmations, counted, sent_flag) = (&mut self.confirmations, &mut confirmed, &mut was_sent);
        let settled = connected.with_timeout(async move {
            connected.process_incoming(false).await?;
            if !is_of_now {
                return Err(NatsServerError::StreamGone);
            }
            *sent_flag = true;
            match confirmations {
                Some(confirmations) if is_confirmed => confirmations.confirm(connected, &replies, kind, counted).await,
                _ => send_acks(connected, &replies, kind).await,
            }
        });
        let error = settled.await.err();
        let is_lost = is_of_now && error.as_ref().is_some_and(NatsServerError::is_retryable);
        // The caller may have given up waiting.
        let _ = done.try_send(SettlementOutcome { confirmed, was_sent, error });
        if is_lost { Err(NatsServerError::Closed) } else { Ok(()) }
    }
}

impl BackgroundFeed for QueueFeed {
    async fn attach(&mut self, connected: &NatsConnection) -> ServerResult {
        self.inbox = None;
        let stream = stream::ensure(connected, &self.config.stream).await?;
        let consumer = stream.create_consumer(shared_consumer_config(self.config.silence)).await?;
        let is_replaced = self.is_replaced(&stream).await?;
        let info = stream.cached_info();
        self.detect_loss(info.created, info.state.last_sequence, is_replaced);
        self.confirmations = Some(Confirmations::open(connected).await?);
        self.inbox = Some(ConsumerInbox::open(connected, consumer, self.demand.clone()).await?);
        self.pulse.restart();
        Ok(())
    }

    async fn run(&mut self, connected: &NatsConnection) -> ServerResult<Infallible> {
        loop {
            let inbox = self.inbox.as_mut().ok_or(NatsServerError::Closed)?;
            let next = {
                let request = pin!(self.requests.recv());
                let message = pin!(inbox.next());
                let mut waiting = select(request, message);
                loop {
                    let event = timeout(self.pulse.interval(), &mut waiting).await;
                    self.pulse.beat();
                    match event {
                        Ok(Either::Left((request, _))) => break Either::Left(request),
                        Ok(Either::Right((message, _))) => break Either::Right(message),
                        Err(_elapsed) => {}
                    }
                }
            };
            match next {
                Either::Left(Some(request)) => self.handle_request(connected, request).await?,
                Either::Left(None) => return Err(NatsServerError::Closed),
                Either::Right(message) => {
                    if self.forward(connected, message?).await? {
                        self.demand.lower();
                    }
                }
            }
        }
    }

    /// Gives back the messages that came and were not handed over, so that another puller gets them at once. Leaves
    /// alone those that another puller may have by now.
    async fn detach(&mut self, connected: &NatsConnection) -> ServerResult {
        let mut unread: Vec<Message> = Vec::new();
        while let Some(held) = self.mailbox.take_back() {
            unread.extend(held.ok().filter(|held| self.is_held(held.epoch, held.ticks)).map(|held| held.message));
        }
        let may_return = self.is_held(self.epoch, self.pulse.since());
        if let Some(inbox) = self.inbox.take() {
            unread.extend(inbox.close().await.into_iter().filter(|_| may_return));
        }
        let replies: Vec<Subject> = unread.into_iter().filter_map(|message| message.reply).collect();
        send_acks(connected, &replies, AckKind::Nak(None)).await?;
        connected.round_trip().await
    }

    fn report_error(&mut self, sentence: String) {
        self.mailbox.report_permanent(sentence);
    }
}

/// Returns when the acknowledgements are sent.
async fn send_acks(connected: &NatsConnection, replies: &[Subject], kind: AckKind) -> ServerResult {
    for reply in replies {
        connected.client.publish(reply.clone(), kind.into()).await?;
    }
    connected.client.flush().await.map_err(NatsServerError::closed)
}

/// Configures the one consumer that all pullers of a queue share; the consumer stays when they disconnect.
fn shared_consumer_config(silence: Duration) -> pull::Config {
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
