//! The publisher and pusher, which runs on the caller's thread, with a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use tickpath_bus_api::{BatchError, MessageId, Numbering, PublishError, Publisher, Pusher, wire};
use tickpath_clock::{Clock, HostClock};
use tokio::runtime::Handle;

use crate::blocking_connection::BlockingConnection;
use crate::connection::NatsConnection;
use crate::error::{NatsServerError, ServerResult};
use crate::publish_progress::{Outgoing, PublishProgress, publish_core, publish_stored};
use crate::server::NatsEndpoint;
use crate::stream;

const MAX_IN_FLIGHT: usize = 256;

/// The destination of a publisher's messages.
pub(crate) struct PublishTarget {
    pub subject: Subject,
    /// The stream that stores the subject's messages; none with core NATS.
    pub stream: Option<Config>,
}

/// A publisher with its own connection, which runs on the caller's thread.
pub(crate) struct NatsPublisher {
    server: Arc<NatsEndpoint>,
    target: PublishTarget,
    /// The connection; none after most errors.
    link: Option<BlockingConnection>,
    /// True after one answer has timed out. The server may only be slow, and the connection keeps the order of what was
    /// sent.
    has_timed_out: bool,
    reconnects: u64,
    /// The longest payload, in bytes, as found at the last connect.
    max_payload: usize,
    numbering: Numbering,
    /// The number of calls with refused messages whose numbers were used again for other messages.
    refusals: u16,
    /// The queue's duplicate window; none where a copy does no harm, as in a topic.
    duplicate_window: Option<Duration>,
    /// The messages that the last call has left in doubt.
    unknown: Vec<Outgoing>,
    /// The time at which those messages were first sent, in ticks.
    unknown_since: u64,
}

impl NatsPublisher {
    /// Connects at once, so that the first message does not pay for it.
    pub fn open(server: Arc<NatsEndpoint>, target: PublishTarget, clock: HostClock) -> ServerResult<Self> {
        let mut publisher = Self {
            server,
            target,
            link: None,
            has_timed_out: false,
            reconnects: 0,
            max_payload: 0,
            numbering: Numbering::new(clock),
            refusals: 0,
            duplicate_window: None,
            unknown: Vec::new(),
            unknown_since: clock.ticks(),
        };
        publisher.connect()?;
        Ok(publisher)
    }

    fn connect(&mut self) -> ServerResult {
        let wanted = self.target.stream.as_ref();
        let (link, stream) = self.server.try_each(|| {
            let link = BlockingConnection::open(&self.server)?;
            let Some(wanted) = wanted else { return Ok((link, None)) };
            let stream =
                link.run_until_leader(async |connected: &NatsConnection| stream::ensure(connected, wanted).await)?;
            Ok((link, Some(stream)))
        })?;
        let topic_bytes = match &stream {
            Some(stream) => {
                let stream_config = &stream.cached_info().config;
                let is_queue = stream_config.retention == RetentionPolicy::WorkQueue;
                self.duplicate_window = is_queue.then_some(stream_config.duplicate_window);
                Some(stream_config.max_bytes)
            }
            None => None,
        };
        let server_bytes = link.connected.client.max_payload();
        self.max_payload = stream::max_payload_bytes(server_bytes, self.is_stored(), topic_bytes);
        self.link = Some(link);
        self.has_timed_out = false;
        Ok(())
    }

    fn is_stored(&self) -> bool {
        self.target.stream.is_some()
    }

    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let (first, refusals) = (self.numbering.peek(0), self.refusals);
        let message = |index: usize| {
            let origin = MessageId { sequence: first.sequence + index as u64, ..first };
            Outgoing { origin, refusals, bytes: wire::encode(stamp, kind, origin, payloads[index]) }
        };
        let (used, result) = self.send_new(payloads.len(), &message);
        self.numbering.advance(used);
        result
    }

    /// Sends new messages, and keeps those in doubt. Returns the number of used sequence numbers beside the result.
    fn send_new(&mut self, count: usize, message: &dyn Fn(usize) -> Outgoing) -> (usize, Result<(), BatchError>) {
        let since = self.server.clock.ticks();
        let (sending, result) = self.deliver(count, message, since);
        self.count_refusal(&sending);
        let result = result.map_err(|error| {
            self.unknown = sending.unknown().map(message).collect();
            self.unknown_since = since;
            BatchError::from_failure(&sending.fates, self.sentence(&error), error.is_transient())
        });
        (sending.used(), result)
    }

    /// Counts a refusal if numbers were sent and refused: they are used again, so that subscribers see no gap.
    fn count_refusal(&mut self, sending: &PublishProgress) {
        if sending.handed_over > sending.used() {
            self.refusals = self.refusals.wrapping_add(1);
        }
    }

    /// Returns the queue's duplicate window if it may be over for a message first sent at `since`. Half of the window
    /// is left for the delivery.
    fn expired_window(&self, since: u64) -> Option<Duration> {
        let clock = self.server.clock;
        let ago_ns = i128::from(clock.ns_between(since, clock.ticks()));
        self.duplicate_window.filter(|window| ago_ns > window.as_nanos() as i128 / 2)
    }

    fn duplicate_error(&self, window: Duration) -> PublishError {
        PublishError::Unknown(format!(
            "{} knows a message again for {} s, which is too short to send it once more: it might be kept twice; look \
             whether it has come, or push it anew",
            self.server.name,
            window.as_secs_f64()
        ))
    }

    /// Reports whether core NATS has received all that was sent before: a connection keeps its order, so an answer now
    /// proves it.
    fn is_received(&mut self) -> bool {
        if !self.has_timed_out || self.is_stored() {
            return false;
        }
        let has_passed = self.link.as_ref().is_some_and(|link| link.run(link.connected.round_trip()).is_ok());
        if !has_passed {
            self.link = None;
        }
        self.has_timed_out = false;
        has_passed
    }

    /// Sends all messages. After a lost connection it reconnects and sends again what is not published: with JetStream
    /// within the duplicate window, with core NATS only if no message is in doubt.
    fn deliver(
        &mut self,
        count: usize,
        message: &dyn Fn(usize) -> Outgoing,
        since: u64,
    ) -> (PublishProgress, ServerResult) {
        let mut sending = PublishProgress::new(count);
        let mut result = self.attempt(message, &mut sending);
        let is_known_again = self.is_stored() && self.expired_window(since).is_none();
        let may_repeat = is_known_again || sending.unknown().next().is_none();
        if may_repeat && result.as_ref().is_err_and(NatsServerError::is_retryable) {
            self.link = None;
            let sent: Vec<usize> = sending.unknown().collect();
            result = self.attempt(message, &mut sending);
            sending.mark_unknown(sent);
        }
        match &result {
            Ok(()) => self.has_timed_out = false,
            Err(NatsServerError::Timeout) if !self.has_timed_out => self.has_timed_out = self.link.is_some(),
            Err(NatsServerError::Busy(_)) => {}
            Err(error) => {
                if error.is_server_specific()
                    && let Some(link) = &self.link
                {
                    self.server.skip_server(link.first_server);
                }
                self.link = None;
            }
        }
        (sending, result)
    }

    fn attempt(&mut self, message: &dyn Fn(usize) -> Outgoing, sending: &mut PublishProgress) -> ServerResult {
        if self.link.is_none() {
            self.connect()?;
            self.reconnects += 1;
        }
        let link = self.link.as_ref().expect("connected");
        let PublishTarget { subject, stream } = &self.target;
        for together in sending.not_published().chunks(MAX_IN_FLIGHT) {
            let sent = match stream {
                Some(_) => link.run(publish_stored(&link.connected, subject, together, message, sending)),
                None => link.run(publish_core(&link.connected, subject, together, message, sending)),
            };
            sent.map_err(|e| sending.first_error(e))?;
        }
        Ok(())
    }

    fn sentence(&self, error: &NatsServerError) -> String {
        format!("{} {error}", self.server.name)
    }
}

impl Publisher for NatsPublisher {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.unknown.clear();
        wire::check_message(kind, payload, self.max_payload)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.unknown.clear();
        wire::send_valid(kind, payloads, self.max_payload, |good| self.send_all(stamp, kind, good))
    }

    fn publish_with_id(&mut self, origin: MessageId, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.unknown.clear();
        wire::check_message(kind, payload, self.max_payload)?;
        let refusals = self.refusals;
        let message = |_index: usize| Outgoing { origin, refusals, bytes: wire::encode(stamp, kind, origin, payload) };
        let (_used, result) = self.send_new(1, &message);
        result.map_err(|e| e.error)
    }

    /// Finds out what became of the messages in doubt, or sends the same messages again.
    fn resend(&mut self) -> Result<(), BatchError> {
        let kept = std::mem::take(&mut self.unknown);
        if kept.is_empty() || self.is_received() {
            return Ok(());
        }
        if let Some(window) = self.expired_window(self.unknown_since) {
            self.unknown = kept;
            return Err(BatchError::all_unknown(self.unknown.len(), self.duplicate_error(window)));
        }
        let (mut sending, result) = self.deliver(kept.len(), &|index: usize| kept[index].clone(), self.unknown_since);
        let Err(error) = result else { return Ok(()) };
        // A message that was not sent by this attempt was sent by an earlier one.
        sending.mark_unknown(0..kept.len());
        self.unknown = sending.unknown().map(|index| kept[index].clone()).collect();
        // Applies to permanent errors, too: an earlier attempt may have arrived.
        Err(BatchError::from_fates(&sending.fates, PublishError::Unknown(self.sentence(&error))))
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for NatsPublisher {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.publish(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.publish_batch(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        Publisher::resend(self)
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
            && !self.has_timed_out
            && Handle::try_current().is_err()
        {
            let _ = link.run(link.connected.round_trip());
        }
    }
}
