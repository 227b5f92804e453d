//! A queue that JetStream keeps, pulled by a consumer that all pullers share.

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

/// After so long a message comes again that could not be moved to the dead letters.
const BURY_AGAIN: Duration = Duration::from_secs(1);

/// A message that the server has handed to this puller, and to nobody else for a while.
pub(crate) struct Held {
    /// The message, whose reply subject takes the acknowledgement.
    pub message: Message,
    /// What the server says about it.
    pub receipt: Receipt,
    /// It came after this, in ticks of the host's clock.
    pub ticks: u64,
    /// Of how many queues of this name it is one, as far as this puller has seen them come and go.
    pub era: u64,
}

/// What the caller has the thread do.
pub(crate) enum Order {
    /// Say something about messages.
    Settle(Settlement),
    /// Ask for messages that are there.
    Fetch(Fetching),
}

/// Messages that are to be fetched now.
pub(crate) struct Fetching {
    /// So many at most.
    pub messages: usize,
    /// Who waits for the end of it; messages are in the mailbox then. It is dropped if the connection is lost.
    pub done: SyncSender<()>,
}

/// What is to be said about messages that were held.
pub(crate) struct Settlement {
    /// Their reply subjects.
    pub replies: Vec<Subject>,
    /// Their era: in another one the same subjects are those of other messages.
    pub era: u64,
    /// Done with, or not.
    pub kind: AckKind,
    /// Whether the server's answers are waited for; else it is enough that the words are on their way.
    pub is_confirmed: bool,
    /// Set by who is first: the thread, which says it then, or who has waited for too long, for whom it is not said.
    pub is_decided: Arc<AtomicBool>,
    /// Who waits for this.
    pub done: SyncSender<Settled>,
}

/// What has come of it.
pub(crate) struct Settled {
    /// Of so many the server has said that it knows.
    pub confirmed: usize,
    /// It was on its way, and may have arrived of the others, too.
    pub has_gone_out: bool,
    /// Why it is not said, or not of all.
    pub error: Option<ServerError>,
}

/// How a queue is pulled.
pub(crate) struct Pulling {
    /// The queue's name.
    pub queue: String,
    /// How it is kept.
    pub stream: Config,
    /// What is not acknowledged for this long comes again, to whomever.
    pub silence: Duration,
    /// Of which kind are messages that others push; they are skipped if none.
    pub foreign: Option<u8>,
    /// Where messages go that were delivered too often, if there is a limit.
    pub dead_letters: Option<DeadLetters>,
}

/// A queue's stream and what is pulled from it.
pub(crate) struct QueueFeed {
    pulling: Pulling,
    pulse: Pulse<HostClock>,
    mailbox: Arrived<Held>,
    demand: Demand,
    orders: UnboundedReceiver<Order>,
    inbox: Option<Inbox>,
    confirmations: Option<Confirmations>,
    /// When the stream was made: one that was lost and made anew holds nothing of what was pushed before.
    made: Option<DateTime>,
    /// So many messages that stream was seen to have had: one that has come back with fewer gives their places to
    /// others.
    seen: u64,
    /// Of the messages that came from it the one with the highest place.
    newest: Option<Receipt>,
    /// How often that has happened.
    era: u64,
    /// It was told that a message could not be moved to the dead letters, and none was moved since.
    is_bury_told: bool,
}

impl QueueFeed {
    /// Not attached yet.
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

    /// Tells if this is another stream than before, or has come back with less than it had: it has not grown as far
    /// since, or others have the places now of what came from it.
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

    /// Whether another message has the place by now of the newest one that came.
    async fn is_replaced(&self, stream: &Stream) -> Result<bool, ServerError> {
        let Some(newest) = self.newest else { return Ok(false) };
        match stream.get_raw_message(newest.sequence + 1).await {
            Ok(found) => Ok(found.time.unix_timestamp_nanos() != i128::from(newest.time_ns)),
            // It is done with.
            Err(e) if e.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Leaves a message where the caller finds it, and tells so; but for what is none of a queue, or came too often.
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
            // None of ours: skipped for ever, or it would come again and again.
            connected.client.publish(reply, AckKind::Term.into()).await?;
        }
        Ok(false)
    }

    /// Moves a message to the dead letters: it is there before it is gone here. One that cannot be moved comes again
    /// later, and keeps no others waiting.
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

    /// Whether a message of that era is surely held by this puller alone, if it came after that.
    fn is_ours(&self, era: u64, ticks: u64) -> bool {
        era == self.era && self.pulse.age(ticks) < ours(self.pulling.silence)
    }

    async fn follow(&mut self, connected: &Connected, order: Order) -> Result<(), ServerError> {
        match order {
            Order::Settle(settlement) => self.settle(connected, settlement).await,
            Order::Fetch(Fetching { messages, done }) => {
                connected.bounded(self.fetch(connected, messages)).await?;
                // Who waited may have given up.
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

    /// Leaves all that is fetched where the caller finds it.
    async fn leave(&mut self, connected: &Connected, fetch: &mut Fetch) -> Result<(), ServerError> {
        loop {
            let inbox = self.inbox.as_mut().ok_or(ServerError::Closed)?;
            let Some(message) = inbox.fetched(fetch).await? else { return Ok(()) };
            self.hand_on(connected, message).await?;
        }
    }

    /// Fails where the connection is lost: who says it once more says it on the next one.
    async fn settle(&mut self, connected: &Connected, settlement: Settlement) -> Result<(), ServerError> {
        let Settlement { replies, era, kind, is_confirmed, is_decided, done } = settlement;
        // Relaxed: nothing else is read by who sees it.
        if is_decided.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        // Those of another era are gone with their queue: nothing is to be said of those that have their places now,
        // and who waits is told so.
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
        // Who waited may have given up.
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

    /// What came and was not handed over comes again at once, to somebody else. What somebody else may have by now is
    /// left alone.
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
