//! The thread's side of a topic in JetStream: follows the stream from the requested start.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::Message;
use async_nats::datetime::from_nanos;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::Stream;
use tickpath_bus_api::{Gap, Start};
use tokio::time::sleep;

use crate::arrivals::{Arrival, Arrived};
use crate::background::Feed;
use crate::backlog;
use crate::connected::Connected;
use crate::demand::Demand;
use crate::error::ServerError;
use crate::inbox::Inbox;
use crate::place::{Place, made_ns};
use crate::receipt::Receipt;
use crate::stream;

/// The interval at which a subscriber without a stream looks whether the topic exists by now.
const LOOK_FOR_STREAM: Duration = Duration::from_millis(50);

/// Max looks at a new leader that has fewer messages than were read: it may not have applied yet all that the cluster
/// agreed on.
const LOOKS_AT_LEADER: usize = 10;

/// The time for which the server keeps the consumer of a subscriber that requests nothing.
const KEEP_CONSUMER: Duration = Duration::from_secs(300);

/// The start of a subscription.
pub(crate) struct Beginning {
    /// The start that the caller asked for.
    pub start: Start,
    /// The place behind which it resumes, if a token names it.
    pub behind: Option<Place>,
    /// The place where the subscription began; set once it is known.
    pub begun: Arc<OnceLock<Place>>,
}

/// A topic's stream, and the progress in it.
pub(crate) struct TopicFeed {
    stream: String,
    beginning: Beginning,
    mailbox: Arrived<Arrival>,
    demand: Demand,
    /// The creation time of the followed stream: a topic that was removed and made anew begins anew.
    made_ns: Option<u64>,
    /// The place of the next message, from 0, once it is known.
    next: Option<u64>,
    /// The number of messages that the followed stream was seen to have had.
    seen: u64,
    /// The time at which the last message read came to the stream, in nanoseconds since 1970.
    read_ns: Option<u64>,
    /// The progress from before the stream came back with less, if it did.
    before: Option<Before>,
    /// The id of the last connection's server; a server has another id after each start.
    server: Option<String>,
    /// The consumer's inbox; none as long as the stream does not exist.
    inbox: Option<Inbox>,
}

/// The progress in a stream before it came back with less. A leader that catches up late may bring some of it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Before {
    /// The place of the next message at that time.
    next: u64,
    /// The time at which the last message had come, in nanoseconds since 1970.
    read_ns: u64,
}

impl Before {
    /// Combines the earlier progress with that made since, up to this place and time.
    fn and_on(before: Option<Self>, next: u64, read_ns: u64) -> Self {
        Self { next: before.map_or(next, |before| before.next.max(next)), read_ns }
    }

    /// Returns true if this message was read at that time.
    fn has(self, receipt: &Receipt) -> bool {
        receipt.sequence < self.next && receipt.time_ns <= self.read_ns
    }
}

impl TopicFeed {
    /// Makes a feed that is not attached yet.
    pub fn new(stream: String, beginning: Beginning, mailbox: Arrived<Arrival>, demand: Demand) -> Self {
        let behind = beginning.behind;
        let (next, made_ns) = (behind.map(|place| place.next), behind.map(|place| place.made_ns));
        let (seen, read_ns) = (next.unwrap_or(0), behind.and_then(|place| place.read_ns));
        let (before, server, inbox) = (None, None, None);
        Self { stream, beginning, mailbox, demand, made_ns, next, seen, read_ns, before, server, inbox }
    }

    /// Resumes in this stream: at the last place, or behind what it still has if it came back with fewer messages than
    /// were read, or at the beginning if it is another stream.
    async fn follow(&mut self, connected: &Connected, stream: Stream) -> Result<(), ServerError> {
        let stream = self.settled(connected, stream).await?;
        let info = stream.cached_info();
        let made_ns = made_ns(info.created);
        let oldest = info.state.first_sequence.saturating_sub(1);
        let last = info.state.last_sequence;
        let next = match (self.made_ns, self.next) {
            (Some(made), _) if made != made_ns => {
                (self.read_ns, self.before) = (None, None);
                self.tell_another(0, made_ns)
            }
            (Some(_), Some(next)) if last < self.seen => {
                let newer = self.first_newer(&stream, next.min(last)).await?;
                self.before = self.read_ns.map(|read_ns| Before::and_on(self.before, next, read_ns));
                self.tell_another(newer, made_ns)
            }
            (_, Some(next)) => next,
            (_, None) => first(self.beginning.start, oldest, last)?,
        };
        self.made_ns = Some(made_ns);
        (self.next, self.seen) = (Some(next), last);
        if next <= last {
            // All messages from now on lie behind this place.
            let _ = self.beginning.begun.set(Place { next, made_ns, read_ns: self.read_ns });
        }
        self.skip_to(oldest);
        let consumer = stream.create_consumer(reading_from(next.max(oldest))).await?;
        self.inbox = Some(Inbox::open(connected, consumer, self.demand.clone()).await?);
        Ok(())
    }

    /// Returns the stream once its leader seems to have applied all that the cluster agreed on.
    async fn settled(&self, connected: &Connected, stream: Stream) -> Result<Stream, ServerError> {
        let mut stream = stream;
        for _ in 0..LOOKS_AT_LEADER {
            let info = stream.cached_info();
            let is_same = self.made_ns == Some(made_ns(info.created));
            if !is_same || info.state.last_sequence >= self.seen || info.config.num_replicas <= 1 {
                break;
            }
            sleep(LOOK_FOR_STREAM).await;
            stream = stream::find(connected, &self.stream).await?.ok_or(ServerError::StreamGone)?;
        }
        Ok(stream)
    }

    /// Returns the first place in a stream that came back with less whose message is newer than all that was read;
    /// `place` at most.
    async fn first_newer(&self, stream: &Stream, place: u64) -> Result<u64, ServerError> {
        let Some(start_time) = self.read_ns.and_then(|ns| from_nanos(i128::from(ns) + 1).ok()) else {
            return Ok(place);
        };
        let by_time = pull::Config { deliver_policy: DeliverPolicy::ByStartTime { start_time }, ..reading_from(0) };
        let consumer = stream.create_consumer(by_time).await?;
        let info = consumer.cached_info();
        stream.delete_consumer(&info.name).await?;
        Ok(info.delivered.stream_sequence.min(place))
    }

    /// Reports a gap of unknown size, because the topic is not what it was; returns the place where it resumes.
    fn tell_another(&mut self, next: u64, made_ns: u64) -> u64 {
        let place = Some(Place { next, made_ns, read_ns: self.read_ns });
        self.mailbox.put(Arrival::Gap { gap: Gap::Reconnected, place });
        next
    }

    /// Reports the messages before this place as missed.
    fn skip_to(&mut self, sequence: u64) {
        let (Some(next), Some(made_ns)) = (self.next, self.made_ns) else { return };
        if sequence > next {
            let place = Some(Place { next: sequence, made_ns, read_ns: self.read_ns });
            self.mailbox.put(Arrival::Gap { gap: Gap::Missed(sequence - next), place });
            self.next = Some(sequence);
        }
    }

    fn hand_on(&mut self, message: Message) -> Result<(), ServerError> {
        let receipt = message.reply.as_deref().and_then(Receipt::parse);
        let receipt = receipt.ok_or_else(|| ServerError::NotNats("a message without a receipt".to_owned()))?;
        if self.next.is_some_and(|next| receipt.sequence < next) {
            // The message lies before the requested place.
            return Ok(());
        }
        if let (None, Some(next), Some(made_ns)) = (self.beginning.begun.get(), self.next, self.made_ns) {
            // The stream has reached the requested place.
            let _ = self.beginning.begun.set(Place { next, made_ns, read_ns: self.read_ns });
        }
        self.skip_to(receipt.sequence);
        self.next = Some(receipt.sequence + 1);
        self.seen = self.seen.max(receipt.sequence + 1);
        if self.before.is_some_and(|before| before.has(&receipt)) {
            return Ok(());
        }
        self.read_ns = Some(receipt.time_ns);
        self.demand.hold(backlog::bytes(&message));
        self.mailbox.put(Arrival::Message { receipt: Some(receipt), message });
        self.demand.meet();
        Ok(())
    }
}

impl Feed for TopicFeed {
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError> {
        self.inbox = None;
        let found = stream::find(connected, &self.stream).await?;
        let server = connected.client.server_info().server_id;
        if self.made_ns.is_none() && self.server.as_ref().is_some_and(|before| *before != server) {
            // The server restarted, or is another one: a stream may have been made and lost there without this
            // subscriber.
            self.mailbox.tell_loss(Ok(Arrival::Gap { gap: Gap::Reconnected, place: None }));
        }
        match found {
            Some(stream) => self.follow(connected, stream).await?,
            // `Now` of a topic that does not exist yet begins at its first message.
            None => {
                self.next.get_or_insert(match self.beginning.start {
                    Start::Now | Start::Oldest | Start::After(_) => 0,
                    Start::Sequence(sequence) => sequence,
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
                self.follow(connected, stream).await?;
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

/// Returns the first place to read in an existing stream from which nothing was read yet.
fn first(start: Start, oldest: u64, published: u64) -> Result<u64, ServerError> {
    match start {
        Start::Now => Ok(published),
        Start::Oldest | Start::After(_) => Ok(oldest),
        Start::Sequence(wanted) if wanted > published => Err(ServerError::Future { wanted, published }),
        Start::Sequence(wanted) => Ok(wanted),
    }
}

/// Configures a consumer for this subscriber alone, which the server removes when it requests nothing for long.
fn reading_from(next: u64) -> pull::Config {
    pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next.saturating_add(1) },
        ack_policy: AckPolicy::None,
        inactive_threshold: KEEP_CONSUMER,
        memory_storage: true,
        ..pull::Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_late_leader_brings_again_is_known_and_what_is_new_is_not() {
        let came = |sequence, time_ns| Receipt { sequence, deliveries: 1, time_ns, pending: 0 };
        // 100 messages were read, the last of them at 1000; the stream came back with 95.
        let before = Before::and_on(None, 100, 1000);
        for (sequence, time_ns, is_known) in [
            (95, 960, true),
            (99, 1000, true),
            (95, 1001, false),
            (99, 2000, false),
            // A server whose clock was set back.
            (100, 500, false),
        ] {
            assert_eq!(before.has(&came(sequence, time_ns)), is_known, "{sequence} of {time_ns}");
        }
        // The stream comes back with less once more when it has 97 messages, the last of them at 2000.
        let before = Before::and_on(Some(before), 97, 2000);
        assert!(before.has(&came(96, 2000)) && before.has(&came(99, 1000)) && !before.has(&came(97, 2001)));
    }
}
