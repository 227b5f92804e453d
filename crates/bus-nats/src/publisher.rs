//! The publisher and pusher, which runs on the caller's thread, with a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use tickpath_bus_api::{BatchError, Fate, Numbering, Origin, PublishError, Publisher, Pusher, wire};
use tickpath_clock::{Clock, HostClock};
use tokio::runtime::Handle;

use crate::connected::Connected;
use crate::error::ServerError;
use crate::link::Link;
use crate::sending::{Outgoing, Sending, store, write};
use crate::server::Server;
use crate::stream;

/// Max messages in flight at once.
const TOGETHER: usize = 256;

/// The destination of a publisher's messages.
pub(crate) struct Target {
    /// The subject.
    pub subject: Subject,
    /// The stream that stores the subject's messages; none with core NATS.
    pub stream: Option<Config>,
}

/// A publisher with its own connection, which runs on the caller's thread.
pub(crate) struct NatsPublisher {
    server: Arc<Server>,
    target: Target,
    /// The connection; none after most errors.
    link: Option<Link>,
    /// True after one answer has timed out. The server may only be slow, and the connection keeps the order of what was
    /// sent.
    is_doubtful: bool,
    reconnects: u64,
    /// The longest payload, in bytes, as found at the last connect.
    limit: usize,
    numbering: Numbering,
    /// The number of calls with refused messages whose numbers were used again for other messages.
    refusals: u16,
    /// The queue's duplicate window; none where a copy does no harm, as in a topic.
    known_for: Option<Duration>,
    /// The messages that the last call has left in doubt.
    unknown: Vec<Outgoing>,
    /// The time at which those messages were first sent, in ticks.
    unknown_since: u64,
}

impl NatsPublisher {
    /// Connects at once, so that the first message does not pay for it.
    pub fn open(server: Arc<Server>, target: Target, clock: HostClock) -> Result<Self, ServerError> {
        let mut publisher = Self {
            server,
            target,
            link: None,
            is_doubtful: false,
            reconnects: 0,
            limit: 0,
            numbering: Numbering::new(clock),
            refusals: 0,
            known_for: None,
            unknown: Vec::new(),
            unknown_since: clock.ticks(),
        };
        publisher.connect()?;
        Ok(publisher)
    }

    fn connect(&mut self) -> Result<(), ServerError> {
        let wanted = self.target.stream.as_ref();
        let (link, stream) = self.server.on_each(|| {
            let link = Link::open(&self.server)?;
            let Some(wanted) = wanted else { return Ok((link, None)) };
            let stream = link.run_patiently(async |connected: &Connected| stream::ensure(connected, wanted).await)?;
            Ok((link, Some(stream)))
        })?;
        let topic_bytes = match &stream {
            Some(stream) => {
                let there = &stream.cached_info().config;
                let is_queue = there.retention == RetentionPolicy::WorkQueue;
                self.known_for = is_queue.then_some(there.duplicate_window);
                Some(there.max_bytes)
            }
            None => None,
        };
        let server_bytes = link.connected().client.max_payload();
        self.limit = stream::longest_payload(server_bytes, self.is_stored(), topic_bytes);
        self.link = Some(link);
        self.is_doubtful = false;
        Ok(())
    }

    fn is_stored(&self) -> bool {
        self.target.stream.is_some()
    }

    fn send(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.unknown.clear();
        wire::check_message(kind, payload, self.limit)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn send_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.unknown.clear();
        wire::send_good(kind, payloads, self.limit, |good| self.send_all(stamp, kind, good))
    }

    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let (first, refusals) = (self.numbering.ahead(0), self.refusals);
        let message = |at: usize| {
            let origin = Origin { number: first.number + at as u64, ..first };
            Outgoing { origin, refusals, bytes: wire::encode(stamp, kind, origin, payloads[at]) }
        };
        let since = self.server.clock().ticks();
        let (sending, result) = self.deliver(payloads.len(), &message, since);
        self.numbering.advance(sending.used());
        self.count_refusal(&sending);
        let Err(error) = result else { return Ok(()) };
        self.unknown = sending.unknown().map(message).collect();
        self.unknown_since = since;
        Err(BatchError::of(&sending.fates, self.sentence(&error, sending.first_fate())))
    }

    fn send_carried(&mut self, origin: Origin, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.unknown.clear();
        wire::check_message(kind, payload, self.limit)?;
        let refusals = self.refusals;
        let message = |_at: usize| Outgoing { origin, refusals, bytes: wire::encode(stamp, kind, origin, payload) };
        let since = self.server.clock().ticks();
        let (sending, result) = self.deliver(1, &message, since);
        self.count_refusal(&sending);
        let Err(error) = result else { return Ok(()) };
        self.unknown = sending.unknown().map(message).collect();
        self.unknown_since = since;
        Err(self.sentence(&error, sending.first_fate()))
    }

    /// Counts a refusal if numbers were sent and refused: they are used again, so that subscribers see no gap.
    fn count_refusal(&mut self, sending: &Sending) {
        if sending.handed_over > sending.used() {
            self.refusals = self.refusals.wrapping_add(1);
        }
    }

    /// Finds out what became of the messages in doubt, or sends the same messages again.
    fn send_again(&mut self) -> Result<(), BatchError> {
        let kept = std::mem::take(&mut self.unknown);
        if kept.is_empty() || self.has_passed() {
            return Ok(());
        }
        if let Some(known_for) = self.forgotten(self.unknown_since) {
            let fates = vec![Fate::Unknown; kept.len()];
            self.unknown = kept;
            return Err(BatchError::of(&fates, self.would_double(known_for)));
        }
        let (mut sending, result) = self.deliver(kept.len(), &|at: usize| kept[at].clone(), self.unknown_since);
        let Err(error) = result else { return Ok(()) };
        // A message that was not sent by this attempt was sent by an earlier one.
        sending.doubt(0..kept.len());
        self.unknown = sending.unknown().map(|at| kept[at].clone()).collect();
        Err(BatchError::of(&sending.fates, self.sentence(&error, Fate::Unknown)))
    }

    /// Returns the queue's duplicate window if it may be over for a message first sent at `since`. Half of the window
    /// is left for the delivery.
    fn forgotten(&self, since: u64) -> Option<Duration> {
        let clock = self.server.clock();
        let ago_ns = i128::from(clock.ns_between(since, clock.ticks()));
        self.known_for.filter(|known_for| ago_ns > known_for.as_nanos() as i128 / 2)
    }

    fn would_double(&self, known_for: Duration) -> PublishError {
        PublishError::Unknown(format!(
            "{} knows a message again for {} s, which is too short to send it once more: it might be kept twice; look \
             whether it has come, or push it anew",
            self.server.name(),
            known_for.as_secs_f64()
        ))
    }

    /// Reports whether core NATS has received all that was sent before: a connection keeps its order, so an answer now
    /// proves it.
    fn has_passed(&mut self) -> bool {
        if !self.is_doubtful || self.is_stored() {
            return false;
        }
        let has_passed = self.link.as_ref().is_some_and(|link| link.run(link.connected().round_trip()).is_ok());
        if !has_passed {
            self.link = None;
        }
        self.is_doubtful = false;
        has_passed
    }

    /// Sends all messages. After a lost connection it reconnects and sends again what is not published: with JetStream
    /// within the duplicate window, with core NATS only if no message is in doubt.
    fn deliver(
        &mut self,
        count: usize,
        message: &dyn Fn(usize) -> Outgoing,
        since: u64,
    ) -> (Sending, Result<(), ServerError>) {
        let mut sending = Sending::of(count);
        let mut result = self.attempt(message, &mut sending);
        let is_known_again = self.is_stored() && self.forgotten(since).is_none();
        let may_repeat = is_known_again || sending.unknown().next().is_none();
        if may_repeat && result.as_ref().is_err_and(ServerError::is_loss) {
            self.link = None;
            let sent: Vec<usize> = sending.unknown().collect();
            result = self.attempt(message, &mut sending);
            sending.doubt(sent);
        }
        match &result {
            Ok(()) => self.is_doubtful = false,
            Err(ServerError::Timeout) if !self.is_doubtful => self.is_doubtful = self.link.is_some(),
            Err(ServerError::Busy(_)) => {}
            Err(error) => {
                if error.is_elsewhere()
                    && let Some(link) = &self.link
                {
                    self.server.pass_over(link.first());
                }
                self.link = None;
            }
        }
        (sending, result)
    }

    fn attempt(&mut self, message: &dyn Fn(usize) -> Outgoing, sending: &mut Sending) -> Result<(), ServerError> {
        if self.link.is_none() {
            self.connect()?;
            self.reconnects += 1;
        }
        let link = self.link.as_ref().expect("connected");
        let Target { subject, stream } = &self.target;
        for together in sending.not_published().chunks(TOGETHER) {
            let sent = match stream {
                Some(_) => link.run(store(link.connected(), subject, together, message, sending)),
                None => link.run(write(link.connected(), subject, together, message, sending)),
            };
            sent.map_err(|e| sending.first_error(e))?;
        }
        Ok(())
    }

    fn sentence(&self, error: &ServerError, fate: Fate) -> PublishError {
        let sentence = format!("{} {error}", self.server.name());
        match fate {
            // Applies to permanent errors, too: an earlier attempt may have arrived.
            Fate::Unknown => PublishError::Unknown(sentence),
            Fate::Published | Fate::NotPublished => PublishError::not_published(sentence, error.may_pass()),
        }
    }
}

impl Publisher for NatsPublisher {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, payload)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(stamp, kind, payloads)
    }

    fn carry(&mut self, origin: Origin, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send_carried(origin, stamp, kind, payload)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.send_again()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for NatsPublisher {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.send_again()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Drop for NatsPublisher {
    /// Waits for one round trip first, because closing a connection with unread input discards what is still being
    /// sent. Skipped on a thread that must not wait.
    fn drop(&mut self) {
        if let Some(link) = &self.link
            && !self.is_stored()
            && !self.is_doubtful
            && Handle::try_current().is_err()
        {
            let _ = link.run(link.connected().round_trip());
        }
    }
}
