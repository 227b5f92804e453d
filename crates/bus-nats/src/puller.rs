//! The pullers of a queue: over core NATS and over JetStream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::AckKind;
use tickpath_bus_api::{DeliveryGuarantee, Mailbox, Message, PulledMessage, Puller, QueueConfig, ReceiveError, wire};
use tickpath_clock::{Clock, HostClock, Wait};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::arrivals::{ArrivalReceiver, ArrivalSender, TopicArrival};
use crate::background::ReceiverThread;
use crate::backlog::Backlog;
use crate::connection::TIMEOUT;
use crate::core_feed::{CoreFeed, QueueGroup};
use crate::demand::{Demand, MAX_REQUESTED};
use crate::error::{NatsServerError, ServerResult};
use crate::names;
use crate::pulse::{age, safe_hold_time};
use crate::queue_feed::{DeliveredMessage, FeedRequest, QueueFeed, QueueFeedConfig, Settlement, SettlementOutcome};
use crate::receipt::Receipt;
use crate::server::NatsEndpoint;

/// The queue group of all pullers.
const GROUP: &str = "tickpath";

/// The shortest silence: the clocks of server and host are no finer.
const MIN_SILENCE: Duration = Duration::from_millis(100);

/// Max time that a call waits for the messages that it requested; a server that is not stalled needs less.
const FETCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Max time that a call waits for the answers to its acknowledgements: a little longer than its thread, which counts
/// them.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(6);

/// Max time that a puller tries to give back what it does not hand over.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A member of a queue group of core NATS.
pub(crate) struct CorePuller {
    arrivals: ArrivalReceiver<TopicArrival>,
    backlog: Backlog,
    foreign: Option<u8>,
    wait: Wait,
    background: ReceiverThread,
}

impl CorePuller {
    pub fn open(server: Arc<NatsEndpoint>, queue: &str, config: &QueueConfig, wait: Wait) -> ServerResult<Self> {
        let (mailbox, backlog, foreign) = (Mailbox::new(), Backlog::default(), config.foreign);
        let group = QueueGroup { name: GROUP, queue: queue.to_owned(), foreign };
        let arrived = ArrivalSender::new(mailbox.clone());
        let feed = CoreFeed::new(names::queue_subject(queue), Some(group), arrived, backlog.clone());
        let background = ReceiverThread::start(server, feed)?;
        Ok(Self { arrivals: ArrivalReceiver::new(mailbox), backlog, foreign, wait, background })
    }
}

impl Puller for CorePuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        let Self { arrivals, backlog, foreign, .. } = self;
        arrivals.take_arrivals(limit, false, |arrival| {
            // The feed of a group sends no gaps; it reports losses as news.
            let TopicArrival::Message { message, .. } = arrival else { return (0, None) };
            backlog.release(&message);
            let Some(message) = wire::decode_pulled(&message.payload, *foreign) else { return (0, None) };
            handler(PulledMessage::without_tag(message, false));
            (1, None)
        })
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        Ok(())
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.wait.sleeps() { self.arrivals.wait(timeout_ns) } else { self.wait.idle() }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }

    fn outage(&self) -> Option<String> {
        self.background.outage()
    }
}

/// A puller of a queue that JetStream keeps.
///
/// A call hands over what it requests, as far as messages are known to wait at the server. Only when none are known
/// does a request for one message lie at the server, so that the next message comes at once.
pub(crate) struct StreamPuller {
    /// The first field, so that it is dropped first: its thread gives back unread messages and takes orders until then.
    background: ReceiverThread,
    server: Arc<NatsEndpoint>,
    clock: HostClock,
    arrivals: ArrivalReceiver<DeliveredMessage>,
    /// The demand of the standing request: one message while the request lies at the server.
    demand: Demand,
    requests: UnboundedSender<FeedRequest>,
    /// The end of a fetch that is still in flight.
    fetch_end: Option<Receiver<()>>,
    /// The number of messages that are known to wait at the server and are not requested.
    pending: usize,
    config: QueueConfig,
    wait: Wait,
    /// The time without an acknowledgement after which a message is redelivered.
    silence: Duration,
    /// The messages about to be handed over; kept, so that pulling allocates nothing.
    batch: Vec<DeliveredMessage>,
    /// The messages that were handed over, all of one era; none for those that were given back.
    unacknowledged: Vec<Option<Unacknowledged>>,
    /// The tag of the first of `unacknowledged`; the others follow. No tag is used twice.
    first_tag: u64,
    /// The era of `unacknowledged`.
    epoch: u64,
}

/// A message that was handed over and is not acknowledged.
struct Unacknowledged {
    /// The subject of its acknowledgement.
    reply: Subject,
    /// A time before its arrival, in ticks.
    ticks: u64,
}

impl StreamPuller {
    /// Makes the queue if it does not exist, without pulling from it yet. `pulling` must belong to this `config`.
    pub fn open(
        server: Arc<NatsEndpoint>,
        feed_config: QueueFeedConfig,
        config: &QueueConfig,
        wait: Wait,
        clock: HostClock,
    ) -> ServerResult<Self> {
        let (mailbox, demand) = (Mailbox::new(), Demand::default());
        let (requests, receiver) = unbounded_channel();
        let silence = feed_config.silence;
        let feed = QueueFeed::new(feed_config, clock, ArrivalSender::new(mailbox.clone()), demand.clone(), receiver);
        Ok(Self {
            background: ReceiverThread::start(server.clone(), feed)?,
            server,
            clock,
            arrivals: ArrivalReceiver::new(mailbox),
            demand,
            requests,
            fetch_end: None,
            pending: 0,
            config: *config,
            wait,
            silence,
            batch: Vec::new(),
            unacknowledged: Vec::new(),
            first_tag: 1,
            epoch: 0,
        })
    }

    /// Leaves a request for the next message at the server, if no message is known to wait and no request lies there.
    fn request_next(&self) {
        if self.pending == 0 && self.demand.wanted() == 0 && self.arrivals.unread() == 0 {
            self.demand.raise(1);
        }
    }

    /// Fetches messages that are known to wait, up to the limit, and waits until they have come.
    fn fetch(&mut self, limit: usize) -> Result<(), ReceiveError> {
        let messages = self.pending.min(limit - self.batch.len()).min(MAX_REQUESTED);
        if messages == 0 {
            return Ok(());
        }
        if self.fetch_end.is_none() {
            let (done, fetched) = sync_channel(1);
            let request = FeedRequest::Fetch { messages, done };
            self.requests.send(request).map_err(|_ended| self.failure(&NatsServerError::Closed))?;
            self.fetch_end = Some(fetched);
        }
        let ended = self.fetch_end.as_ref().map(|fetched| fetched.recv_timeout(FETCH_TIMEOUT));
        if ended != Some(Err(RecvTimeoutError::Timeout)) {
            self.fetch_end = None;
            // The last message that came reports how many still wait.
            self.pending = 0;
        }
        self.take_arrived(limit)
    }

    /// Takes messages that have come and surely still belong to this puller. Those that lay unread for too long are
    /// given back.
    fn take_arrived(&mut self, limit: usize) -> Result<(), ReceiveError> {
        let (clock, now) = (self.clock, self.clock.ticks());
        let half_ns = self.silence.as_nanos() as i64 / 2;
        let mut stale = Vec::new();
        let Self { arrivals, batch, pending, epoch, .. } = self;
        let has_some = !batch.is_empty();
        let result = arrivals.take_arrivals(limit - batch.len(), has_some, |held| {
            *pending = usize::try_from(held.receipt.pending).unwrap_or(usize::MAX);
            *epoch = held.epoch;
            let age_ns = clock.ns_between(held.ticks, now);
            if age_ns < half_ns {
                batch.push(held);
                return (1, None);
            }
            // Past this age another puller may have the message, so it cannot be given back.
            if age_ns < half_ns + half_ns / 2 {
                stale.extend(held.message.reply);
            }
            (0, None)
        });
        if !stale.is_empty() {
            // A message that cannot be given back now is redelivered later.
            let _ = self.settle(stale, AckKind::Nak(None), false, CLOSE_TIMEOUT);
        }
        if let Err(ReceiveError::MessagesLost(_)) = result {
            // The messages are gone with their queue; their reply subjects now belong to other messages.
            self.forget_unacknowledged();
            self.pending = 0;
        }
        result.map(|_count| ())
    }

    /// Acknowledges the messages about to be handed over, for delivery at most once. Fails unless the server has
    /// confirmed all of them, and nothing is handed over then.
    fn acknowledge_batch(&mut self) -> Result<(), ReceiveError> {
        let replies = self.batch.iter().filter_map(|held| held.message.reply.clone()).collect();
        let patience = (self.silence / 2).min(TIMEOUT);
        let error = self.settle(replies, AckKind::Ack, true, patience).error;
        let is_late = self.batch.iter().any(|held| self.age(held.ticks) >= self.silence);
        if error.is_none() && !is_late {
            return Ok(());
        }
        let count = self.batch.len();
        self.batch.clear();
        let Some(error) = error else {
            return Err(ReceiveError::MessagesLost(format!(
                "{count} messages for delivery at most once came too long ago, because this process was paused: \
                 another puller may have had them, and they are not handed over"
            )));
        };
        if !error.is_transient() {
            return Err(self.failure(&error));
        }
        Err(ReceiveError::MessagesLost(format!(
            "{} {error}; that was while {count} messages were to be handed over at most once: those that it knows to \
             be taken are gone, and the others come again",
            self.server.name
        )))
    }

    /// Forgets the messages that were handed over so far: they do not belong to this puller any more.
    fn forget_unacknowledged(&mut self) {
        self.first_tag += self.unacknowledged.len() as u64;
        self.unacknowledged.clear();
    }

    fn age(&self, ticks: u64) -> Duration {
        age(&self.clock, ticks)
    }

    /// Returns how long a message that came at `ticks` can still be given back.
    fn return_time_left(&self, ticks: u64) -> Duration {
        safe_hold_time(self.silence).saturating_sub(self.age(ticks))
    }

    /// Settles messages with the server's confirmation, on a second connection if the first is lost: the server knows a
    /// message by its position in the queue.
    fn settle_with_retry(&self, replies: Vec<Subject>, kind: AckKind, patience: Duration) -> SettlementOutcome {
        let begun = self.clock.ticks();
        let first = self.settle(replies.clone(), kind, true, patience);
        if !first.error.as_ref().is_some_and(NatsServerError::is_retryable) {
            return first;
        }
        let second = self.settle(replies, kind, true, patience.saturating_sub(self.age(begun)));
        SettlementOutcome { was_sent: first.was_sent || second.was_sent, ..second }
    }

    /// Has the thread settle messages, and waits for the outcome.
    fn settle(
        &self,
        replies: Vec<Subject>,
        kind: AckKind,
        is_confirmed: bool,
        patience: Duration,
    ) -> SettlementOutcome {
        let (done, settled) = sync_channel(1);
        let is_decided = Arc::new(AtomicBool::new(false));
        let settlement =
            Settlement { replies, epoch: self.epoch, kind, is_confirmed, is_decided: Arc::clone(&is_decided), done };
        if self.requests.send(FeedRequest::Settle(settlement)).is_err() {
            return SettlementOutcome { confirmed: 0, was_sent: false, error: Some(NatsServerError::Closed) };
        }
        settled.recv_timeout(patience).unwrap_or_else(|e| {
            // A settlement that the thread has not begun by now is dropped.
            let was_sent = is_decided.swap(true, Ordering::Relaxed);
            let error = match e {
                RecvTimeoutError::Timeout => NatsServerError::Timeout,
                RecvTimeoutError::Disconnected => NatsServerError::Closed,
            };
            SettlementOutcome { confirmed: 0, was_sent, error: Some(error) }
        })
    }

    fn failure(&self, error: &NatsServerError) -> ReceiveError {
        ReceiveError::Other(format!("{} {error}", self.server.name).into())
    }
}

impl Puller for StreamPuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        self.take_arrived(limit)?;
        self.fetch(limit)?;
        if self.batch.is_empty() {
            self.request_next();
            return Ok(0);
        }
        if self.config.delivery == DeliveryGuarantee::AtMostOnce {
            self.acknowledge_batch()?;
        }
        let mut count = 0;
        for DeliveredMessage { message, receipt, ticks, .. } in self.batch.drain(..) {
            let is_kept = self.config.delivery == DeliveryGuarantee::AtLeastOnce;
            if let Some(found) = wire::decode_pulled(&message.payload, self.config.foreign) {
                let Receipt { sequence, deliveries, .. } = receipt;
                handler(PulledMessage {
                    message: Message { sequence: Some(sequence), ..found },
                    redelivered: deliveries > 1,
                    deliveries: Some(deliveries),
                    tag: if is_kept { self.first_tag + self.unacknowledged.len() as u64 } else { 0 },
                });
                count += 1;
            }
            if is_kept {
                self.unacknowledged.push(message.reply.map(|reply| Unacknowledged { reply, ticks }));
            }
        }
        Ok(count)
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        let held = || self.unacknowledged.iter().flatten();
        let replies: Vec<Subject> = held().map(|held| held.reply.clone()).collect();
        let late = held().filter(|held| self.age(held.ticks) >= self.silence).count();
        self.forget_unacknowledged();
        if replies.is_empty() {
            return Ok(());
        }
        let count = replies.len();
        let SettlementOutcome { confirmed, was_sent, error } =
            self.settle_with_retry(replies, AckKind::Ack, SETTLE_TIMEOUT);
        let left = count - confirmed;
        match error {
            None if late == 0 => Ok(()),
            None => Err(ReceiveError::NotAcknowledged(format!(
                "{late} messages were held for longer than a puller may be silent, and are acknowledged too late: \
                 another puller may have them, too; acknowledge sooner, or open the queue with a longer silence"
            ))),
            Some(e) if e.is_transient() && was_sent => Err(ReceiveError::NotAcknowledged(format!(
                "{} {e}; {left} messages are in doubt: they are acknowledged, or come again",
                self.server.name
            ))),
            Some(e) if e.is_transient() => Err(ReceiveError::NotAcknowledged(format!(
                "{} {e}; {left} messages are not acknowledged, and come again",
                self.server.name
            ))),
            Some(e) => Err(self.failure(&e)),
        }
    }

    fn give_back(&mut self, tag: u64) -> Result<(), ReceiveError> {
        let index = tag.checked_sub(self.first_tag).and_then(|index| usize::try_from(index).ok());
        let held = index.and_then(|index| self.unacknowledged.get_mut(index)).and_then(Option::take);
        let Some(Unacknowledged { reply, ticks }) = held else {
            return Err(ReceiveError::NotAcknowledged(format!(
                "no message with the tag {tag} is held here any more, and none is given back; give back what was \
                 handed over at least once and is not acknowledged"
            )));
        };
        let left = self.return_time_left(ticks);
        if left.is_zero() {
            return Err(ReceiveError::NotAcknowledged(format!(
                "the message with the tag {tag} was held for so long that another puller may have it by now, and is \
                 not given back; it comes again by itself; give back sooner, or open the queue with a longer silence"
            )));
        }
        match self.settle_with_retry(vec![reply], AckKind::Nak(None), left.min(SETTLE_TIMEOUT)).error {
            None => Ok(()),
            Some(e) if e.is_transient() => Err(ReceiveError::NotAcknowledged(format!(
                "{} {e}; the message with the tag {tag} may not be given back, and comes again later",
                self.server.name
            ))),
            Some(e) => Err(self.failure(&e)),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        // `pull` waits for the messages that are known to wait at the server.
        if self.pending == 0 {
            self.request_next();
            self.arrivals.wait(timeout_ns);
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }

    fn outage(&self) -> Option<String> {
        self.background.outage()
    }
}

impl Drop for StreamPuller {
    /// Gives back the messages that were handed over and not acknowledged, so that another puller gets them at once.
    /// Leaves alone those that another puller may have by now.
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.unacknowledged).into_iter().flatten();
        let returnable = held.filter(|held| !self.return_time_left(held.ticks).is_zero());
        let replies: Vec<Subject> = returnable.map(|held| held.reply).collect();
        if !replies.is_empty() {
            // Messages that cannot be given back now are redelivered after the silence.
            let _ = self.settle(replies, AckKind::Nak(None), false, CLOSE_TIMEOUT);
        }
    }
}

/// Returns how long a puller of this queue may be silent.
pub(crate) fn silence(config: &QueueConfig) -> Duration {
    Duration::from_nanos(config.silence_ns).max(MIN_SILENCE)
}
