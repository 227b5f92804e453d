//! The thread's side of a topic in JetStream: follows the stream from the requested start.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::Message;
use async_nats::datetime::from_nanos;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::Stream;
use tickpath_bus_api::{Gap, StartPosition};
use tokio::time::sleep;

use crate::arrivals::{ArrivalSender, TopicArrival};
use crate::background::BackgroundFeed;
use crate::backlog;
use crate::connection::NatsConnection;
use crate::demand::Demand;
use crate::error::{NatsServerError, ServerResult};
use crate::inbox::ConsumerInbox;
use crate::position::{JetStreamPosition, created_ns};
use crate::receipt::Receipt;
use crate::stream;

/// The interval at which a subscriber without a stream looks whether the topic exists by now.
const STREAM_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Max looks at a new leader that has fewer messages than were read: it may not have applied yet all that the cluster
/// agreed on.
const MAX_LEADER_CHECKS: usize = 10;

/// The time for which the server keeps the consumer of a subscriber that requests nothing.
const CONSUMER_EXPIRY: Duration = Duration::from_secs(300);

pub(crate) struct SubscriptionStart {
    pub start: StartPosition,
    /// The position behind which it resumes, if a token names it.
    pub resume_at: Option<JetStreamPosition>,
    /// The position where the subscription began; set once it is known.
    pub start_position: Arc<OnceLock<JetStreamPosition>>,
}

pub(crate) struct TopicFeed {
    stream: String,
    beginning: SubscriptionStart,
    mailbox: ArrivalSender<TopicArrival>,
    demand: Demand,
    /// The creation time of the followed stream: a topic that was removed and made anew begins anew.
    created_ns: Option<u64>,
    /// The position of the next message, from 0, once it is known.
    next: Option<u64>,
    /// The number of messages that the followed stream was seen to have had.
    seen_count: u64,
    /// The time at which the last message read came to the stream, in nanoseconds since 1970.
    last_read_ns: Option<u64>,
    /// The progress from before the stream came back with less, if it did.
    earlier: Option<EarlierProgress>,
    /// The id of the last connection's server; a server has another id after each start.
    server: Option<String>,
    /// The consumer's inbox; none as long as the stream does not exist.
    inbox: Option<ConsumerInbox>,
}

/// The progress in a stream before it came back with less. A leader that catches up late may bring some of it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EarlierProgress {
    /// The position of the next message at that time.
    next: u64,
    /// The time at which the last message had come, in nanoseconds since 1970.
    last_read_ns: u64,
}

impl EarlierProgress {
    /// Combines the earlier progress with that made since, up to this position and time.
    fn combine(before: Option<Self>, next: u64, last_read_ns: u64) -> Self {
        Self { next: before.map_or(next, |before| before.next.max(next)), last_read_ns }
    }

    /// Returns true if this message was read at that time.
    fn includes(self, receipt: &Receipt) -> bool {
        receipt.sequence < self.next && receipt.time_ns <= self.last_read_ns
    }
}

impl TopicFeed {
    pub fn new(
        stream: String,
        beginning: SubscriptionStart,
        mailbox: ArrivalSender<TopicArrival>,
        demand: Demand,
    ) -> Self {
        let behind = beginning.resume_at;
        let (next, created_ns) = (behind.map(|position| position.next), behind.map(|position| position.created_ns));
        let (seen_count, last_read_ns) = (next.unwrap_or(0), behind.and_then(|position| position.last_read_ns));
        Self {
            stream,
            beginning,
            mailbox,
            demand,
            created_ns,
            next,
            seen_count,
            last_read_ns,
            earlier: None,
            server: None,
            inbox: None,
        }
    }

    /// Resumes in this stream: at the last position, or behind what it still has if it came back with fewer messages
    /// than were read, or at the beginning if it is another stream.
    async fn follow(&mut self, connected: &NatsConnection, stream: Stream) -> ServerResult {
        let stream = self.caught_up(connected, stream).await?;
        let info = stream.cached_info();
        let created_ns = created_ns(info.created);
        let oldest = info.state.first_sequence.saturating_sub(1);
        let last = info.state.last_sequence;
        let next = match (self.created_ns, self.next) {
            (Some(made), _) if made != created_ns => {
                (self.last_read_ns, self.earlier) = (None, None);
                self.report_replaced(0, created_ns)
            }
            (Some(_), Some(next)) if last < self.seen_count => {
                let newer = self.first_unread(&stream, next.min(last)).await?;
                self.earlier =
                    self.last_read_ns.map(|last_read_ns| EarlierProgress::combine(self.earlier, next, last_read_ns));
                self.report_replaced(newer, created_ns)
            }
            (_, Some(next)) => next,
            (_, None) => first_sequence(self.beginning.start, oldest, last)?,
        };
        self.created_ns = Some(created_ns);
        (self.next, self.seen_count) = (Some(next), last);
        if next <= last {
            // All messages from now on lie behind this position.
            let _ = self.beginning.start_position.set(JetStreamPosition {
                next,
                created_ns,
                last_read_ns: self.last_read_ns,
            });
        }
        self.report_missed(oldest);
        let consumer = stream.create_consumer(own_consumer_config(next.max(oldest))).await?;
        self.inbox = Some(ConsumerInbox::open(connected, consumer, self.demand.clone()).await?);
        Ok(())
    }

    /// Returns the stream once its leader seems to have applied all that the cluster agreed on.
    async fn caught_up(&self, connected: &NatsConnection, stream: Stream) -> ServerResult<Stream> {
        let mut stream = stream;
        for _ in 0..MAX_LEADER_CHECKS {
            let info = stream.cached_info();
            let is_same = self.created_ns == Some(created_ns(info.created));
            if !is_same || info.state.last_sequence >= self.seen_count || info.config.num_replicas <= 1 {
                break;
            }
            sleep(STREAM_POLL_INTERVAL).await;
            stream = stream::find(connected, &self.stream).await?.ok_or(NatsServerError::StreamGone)?;
        }
        Ok(stream)
    }

    /// Returns the first position in a stream that came back with less whose message is newer than all that was read;
    /// `position` at most.
    async fn first_unread(&self, stream: &Stream, position: u64) -> ServerResult<u64> {
        let Some(start_time) = self.last_read_ns.and_then(|ns| from_nanos(i128::from(ns) + 1).ok()) else {
            return Ok(position);
        };
        let by_time =
            pull::Config { deliver_policy: DeliverPolicy::ByStartTime { start_time }, ..own_consumer_config(0) };
        let consumer = stream.create_consumer(by_time).await?;
        let info = consumer.cached_info();
        stream.delete_consumer(&info.name).await?;
        Ok(info.delivered.stream_sequence.min(position))
    }

    /// Reports a gap of unknown size, because the topic is not what it was; returns the position where it resumes.
    fn report_replaced(&mut self, next: u64, created_ns: u64) -> u64 {
        let position = Some(JetStreamPosition { next, created_ns, last_read_ns: self.last_read_ns });
        self.mailbox.put(TopicArrival::Gap { gap: Gap::Reconnected, position });
        next
    }

    /// Reports the messages before this position as missed.
    fn report_missed(&mut self, sequence: u64) {
        let (Some(next), Some(created_ns)) = (self.next, self.created_ns) else { return };
        if sequence > next {
            let position = Some(JetStreamPosition { next: sequence, created_ns, last_read_ns: self.last_read_ns });
            self.mailbox.put(TopicArrival::Gap { gap: Gap::Missed(sequence - next), position });
            self.next = Some(sequence);
        }
    }

    fn forward(&mut self, message: Message) -> ServerResult {
        let receipt = message.reply.as_deref().and_then(Receipt::parse);
        let receipt = receipt.ok_or_else(|| NatsServerError::NotNats("a message without a receipt".to_owned()))?;
        if self.next.is_some_and(|next| receipt.sequence < next) {
            // The message lies before the requested position.
            return Ok(());
        }
        if let (None, Some(next), Some(created_ns)) = (self.beginning.start_position.get(), self.next, self.created_ns)
        {
            // The stream has reached the requested position.
            let _ = self.beginning.start_position.set(JetStreamPosition {
                next,
                created_ns,
                last_read_ns: self.last_read_ns,
            });
        }
        self.report_missed(receipt.sequence);
        self.next = Some(receipt.sequence + 1);
        self.seen_count = self.seen_count.max(receipt.sequence + 1);
        if self.earlier.is_some_and(|before| before.includes(&receipt)) {
            return Ok(());
        }
        self.last_read_ns = Some(receipt.time_ns);
        self.demand.add_unread(backlog::bytes(&message));
        self.mailbox.put(TopicArrival::Message { receipt: Some(receipt), message });
        self.demand.lower();
        Ok(())
    }
}

impl BackgroundFeed for TopicFeed {
    async fn attach(&mut self, connected: &NatsConnection) -> ServerResult {
        self.inbox = None;
        let found = stream::find(connected, &self.stream).await?;
        let server = connected.client.server_info().server_id;
        if self.created_ns.is_none() && self.server.as_ref().is_some_and(|before| *before != server) {
            // The server restarted, or is another one: a stream may have been made and lost there without this
            // subscriber.
            self.mailbox.report_loss(Ok(TopicArrival::Gap { gap: Gap::Reconnected, position: None }));
        }
        match found {
            Some(stream) => self.follow(connected, stream).await?,
            // `Now` of a topic that does not exist yet begins at its first message.
            None => {
                self.next.get_or_insert(match self.beginning.start {
                    StartPosition::Now | StartPosition::Oldest | StartPosition::After(_) => 0,
                    StartPosition::Sequence(sequence) => sequence,
                });
            }
        }
        self.server = Some(server);
        Ok(())
    }

    async fn run(&mut self, connected: &NatsConnection) -> ServerResult<Infallible> {
        loop {
            if let Some(inbox) = &mut self.inbox {
                let message = inbox.next().await?;
                self.forward(message)?;
                continue;
            }
            sleep(STREAM_POLL_INTERVAL).await;
            if let Some(stream) = stream::find(connected, &self.stream).await? {
                self.follow(connected, stream).await?;
            }
        }
    }

    async fn detach(&mut self, connected: &NatsConnection) -> ServerResult {
        if let Some(inbox) = self.inbox.take() {
            connected.context.delete_consumer_from_stream(inbox.consumer(), &self.stream).await?;
        }
        Ok(())
    }

    fn report_error(&mut self, sentence: String) {
        self.mailbox.report_permanent(sentence);
    }
}

/// Returns the first position to read in an existing stream from which nothing was read yet.
fn first_sequence(start: StartPosition, oldest: u64, published: u64) -> ServerResult<u64> {
    match start {
        StartPosition::Now => Ok(published),
        StartPosition::Oldest | StartPosition::After(_) => Ok(oldest),
        StartPosition::Sequence(wanted) if wanted > published => {
            Err(NatsServerError::FutureSequence { wanted, published })
        }
        StartPosition::Sequence(wanted) => Ok(wanted),
    }
}

/// Configures a consumer for this subscriber alone, which the server removes when it requests nothing for long.
fn own_consumer_config(next: u64) -> pull::Config {
    pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next.saturating_add(1) },
        ack_policy: AckPolicy::None,
        inactive_threshold: CONSUMER_EXPIRY,
        memory_storage: true,
        ..pull::Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_recovered_by_a_late_leader_are_recognized() {
        let receipt = |sequence, time_ns| Receipt { sequence, deliveries: 1, time_ns, pending: 0 };
        // 100 messages were read, the last of them at 1000; the stream came back with 95.
        let before = EarlierProgress::combine(None, 100, 1000);
        for (sequence, time_ns, is_known) in [
            (95, 960, true),
            (99, 1000, true),
            (95, 1001, false),
            (99, 2000, false),
            // A server whose clock was set back.
            (100, 500, false),
        ] {
            assert_eq!(before.includes(&receipt(sequence, time_ns)), is_known, "{sequence} of {time_ns}");
        }
        // The stream comes back with less once more when it has 97 messages, the last of them at 2000.
        let before = EarlierProgress::combine(Some(before), 97, 2000);
        assert!(
            before.includes(&receipt(96, 2000))
                && before.includes(&receipt(99, 1000))
                && !before.includes(&receipt(97, 2001))
        );
    }
}
