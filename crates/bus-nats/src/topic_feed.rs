//! A topic that JetStream keeps, followed from wherever it was asked for.

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

/// How often a subscriber that came first looks whether its topic exists by now.
const LOOK_FOR_STREAM: Duration = Duration::from_millis(50);

/// How often a new leader is asked again that has fewer messages than were read: it may not have done yet all that was
/// agreed on.
const LOOKS_AT_LEADER: usize = 10;

/// How long the server keeps the place of a subscriber that asks for nothing.
const KEEP_CONSUMER: Duration = Duration::from_secs(300);

/// Where a subscription begins.
pub(crate) struct Beginning {
    /// As it was asked for.
    pub start: Start,
    /// Behind this, if a token says so.
    pub behind: Option<Place>,
    /// Told to the caller once it is known.
    pub begun: Arc<OnceLock<Place>>,
}

/// A topic's stream, and how far it is read.
pub(crate) struct TopicFeed {
    stream: String,
    beginning: Beginning,
    mailbox: Arrived<Arrival>,
    demand: Demand,
    /// When the stream that is followed was made: a topic that was removed and made anew begins anew.
    made_ns: Option<u64>,
    /// The place of the next message, from 0, once that is known.
    next: Option<u64>,
    /// So many messages the stream that is followed was seen to have had.
    seen: u64,
    /// When the last message that was read came to the stream, in nanoseconds since 1970.
    read_ns: Option<u64>,
    /// What was read before the stream came back with less, if it did.
    before: Option<Before>,
    /// The server of the last connection, which has another id after each start.
    server: Option<String>,
    /// None as long as the stream is not there.
    inbox: Option<Inbox>,
}

/// What was read of a stream before it came back with less. A leader that catches up late may bring some of it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Before {
    /// The place of the next message then.
    next: u64,
    /// When the last message had come, in nanoseconds since 1970.
    read_ns: u64,
}

impl Before {
    /// With what was read since, up to this place and time.
    fn and_on(before: Option<Self>, next: u64, read_ns: u64) -> Self {
        Self { next: before.map_or(next, |before| before.next.max(next)), read_ns }
    }

    /// Whether this message was read then.
    fn has(self, receipt: &Receipt) -> bool {
        receipt.sequence < self.next && receipt.time_ns <= self.read_ns
    }
}

impl TopicFeed {
    /// Not attached yet.
    pub fn new(stream: String, beginning: Beginning, mailbox: Arrived<Arrival>, demand: Demand) -> Self {
        let behind = beginning.behind;
        let (next, made_ns) = (behind.map(|place| place.next), behind.map(|place| place.made_ns));
        let (seen, read_ns) = (next.unwrap_or(0), behind.and_then(|place| place.read_ns));
        let (before, server, inbox) = (None, None, None);
        Self { stream, beginning, mailbox, demand, made_ns, next, seen, read_ns, before, server, inbox }
    }

    /// Goes on in this stream: where it was left, at its end if it has come back with less than was read, or at its
    /// beginning if it is another one than before.
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
            // What is told from now on lies behind that.
            let _ = self.beginning.begun.set(Place { next, made_ns, read_ns: self.read_ns });
        }
        self.skip_to(oldest);
        let consumer = stream.create_consumer(reading_from(next.max(oldest))).await?;
        self.inbox = Some(Inbox::open(connected, consumer, self.demand.clone()).await?);
        Ok(())
    }

    /// The stream as its leader has it when it has done all that was agreed on, or so it seems.
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

    /// Where a stream that has come back with less has what came after all that was read: this place, or one before it.
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

    /// Nobody knows what was missed in a topic that is not what it was; gives where it goes on.
    fn tell_another(&mut self, next: u64, made_ns: u64) -> u64 {
        let place = Some(Place { next, made_ns, read_ns: self.read_ns });
        self.mailbox.put(Arrival::Gap { gap: Gap::Reconnected, place });
        next
    }

    /// Counts what is gone before this place.
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
            // Before the place that was asked for.
            return Ok(());
        }
        if let (None, Some(next), Some(made_ns)) = (self.beginning.begun.get(), self.next, self.made_ns) {
            // It has come as far as was asked for.
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
            // The one before was started again, or is another one: a stream may have been made there and lost with it
            // before anybody looked.
            self.mailbox.tell_loss(Ok(Arrival::Gap { gap: Gap::Reconnected, place: None }));
        }
        match found {
            Some(stream) => self.follow(connected, stream).await?,
            // Whatever comes first is "from now on".
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

/// Where a subscription begins in a stream that is there, and that nothing was read of.
fn first(start: Start, oldest: u64, published: u64) -> Result<u64, ServerError> {
    match start {
        Start::Now => Ok(published),
        Start::Oldest | Start::After(_) => Ok(oldest),
        Start::Sequence(wanted) if wanted > published => Err(ServerError::Future { wanted, published }),
        Start::Sequence(wanted) => Ok(wanted),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_late_leader_brings_again_is_known_and_what_is_new_is_not() {
        let came = |sequence, time_ns| Receipt { sequence, deliveries: 1, time_ns, pending: 0 };
        // 100 messages were read, the last one at 1000; it came back with 95.
        let before = Before::and_on(None, 100, 1000);
        for (sequence, time_ns, is_known) in [
            (95, 960, true),
            (99, 1000, true),
            (95, 1001, false),
            (99, 2000, false),
            // By a server whose clock was put back.
            (100, 500, false),
        ] {
            assert_eq!(before.has(&came(sequence, time_ns)), is_known, "{sequence} of {time_ns}");
        }
        // It comes back with less once more when 97 messages are there, the last one of 2000.
        let before = Before::and_on(Some(before), 97, 2000);
        assert!(before.has(&came(96, 2000)) && before.has(&came(99, 1000)) && !before.has(&came(97, 2001)));
    }
}
