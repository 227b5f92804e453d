//! The publisher and pusher: sends messages, and waits until the broker has confirmed them.
//!
//! ```text
//!   publish ──> ready? ──> a window is sent ──> confirmed: the next window
//!                 │              ├─ nothing of the rest was sent ──> once more, on a new connection
//!                 │              └─ in doubt ──> doubts, until `resend` or until something else is sent
//!                 └─ the broker is blocked, and owes the last answer ──> Unavailable
//! ```

use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::{BatchError, ConnectError, Fate, MessageId, Numbering, PublishError, Publisher, Pusher, wire};
use tickpath_clock::{Clock, HostClock};

use crate::confirm_channel::{ConfirmChannel, SentMessage, fates, wait_for_answers};
use crate::connection::TIMEOUT;
use crate::destination::AmqpDestination;
use crate::error::AmqpServerError;
use crate::in_doubt::InDoubtMessages;
use crate::policies;
use crate::server::AmqpServer;

/// Max payload, in bytes: an eighth of what a server with default settings takes.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Max messages of a batch in flight.
const WINDOW_MESSAGES: usize = 1024;
/// Max bytes of a batch in flight, unless a single message is longer.
const WINDOW_BYTES: usize = 4 << 20;

/// A publisher of a topic, or a pusher of a queue.
pub(crate) struct AmqpSender {
    server: Arc<AmqpServer>,
    destination: AmqpDestination,
    /// The connection; none after an error that ended it.
    channel: Option<ConfirmChannel>,
    numbering: Numbering,
    /// The messages in doubt, until they are sent again or given up.
    in_doubt: InDoubtMessages,
    /// The unanswered messages that were given up.
    abandoned: Vec<SentMessage>,
    reconnects: u64,
    clock: HostClock,
    /// The time of the last request for policies, in ticks, and the policy that refuses messages.
    refusing_policy: Option<(u64, Option<String>)>,
}

/// The header fields of the messages of one call.
#[derive(Debug, Clone, Copy)]
struct BatchHeader {
    stamp: u64,
    kind: u8,
    /// The origin of a message from elsewhere; none for messages that are numbered here.
    id: Option<MessageId>,
}

struct WindowOutcome {
    fates: Vec<Fate>,
    /// The error of the first message that is not published.
    error: Option<AmqpServerError>,
}

impl AmqpSender {
    /// Connects at once, so that the first message does not pay for it.
    pub fn open(server: Arc<AmqpServer>, destination: AmqpDestination) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let channel = ConfirmChannel::open(&server, &destination).map_err(|e| server.error(&e))?;
        Ok(Self {
            server,
            destination,
            channel: Some(channel),
            numbering: Numbering::new(clock),
            in_doubt: InDoubtMessages::default(),
            abandoned: Vec::new(),
            reconnects: 0,
            clock,
            refusing_policy: None,
        })
    }

    /// Sends the messages up to the first invalid one.
    fn send(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_batch(BatchHeader { stamp, kind, id: None }, payloads)
    }

    fn send_batch(&mut self, header: BatchHeader, payloads: &[&[u8]]) -> Result<(), BatchError> {
        wire::send_valid(header.kind, payloads, MAX_PAYLOAD_BYTES, |good| self.send_valid(header, good))
    }

    /// Sends all messages by windows, up to one that fails; messages that did not leave are resent on a new connection.
    fn send_valid(&mut self, header: BatchHeader, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        let mut may_connect = self.ensure_connected().map_err(|e| BatchError::failed_at(done, self.unpublished(&e)))?;
        self.abandon_in_doubt();
        while done < payloads.len() {
            let left = &payloads[done..];
            let left = &left[..window_length(left)];
            let WindowOutcome { fates, error: why } = self.send_window(header, left);
            let Some(why) = why else {
                done += left.len();
                continue;
            };
            let published = fates.iter().take_while(|&&fate| fate == Fate::Published).count();
            if may_connect
                && why.is_connection_loss()
                && fates[published..].iter().all(|&fate| fate == Fate::NotPublished)
            {
                may_connect = false;
                done += published;
                self.reopen().map_err(|e| BatchError::failed_at(done, self.unpublished(&e)))?;
                continue;
            }
            let why = self.add_refusing_policy(why);
            let fates = [vec![Fate::Published; done], fates].concat();
            return Err(BatchError::from_failure(&fates, format!("{} {why}", self.server.name()), why.is_transient()));
        }
        Ok(())
    }

    /// Adds to a negative acknowledgement the queue's policy that may be its reason.
    fn add_refusing_policy(&mut self, why: AmqpServerError) -> AmqpServerError {
        const CACHE_TIME: Duration = Duration::from_secs(5);
        if !matches!(why, AmqpServerError::NotConfirmed) {
            return why;
        }
        let now = self.clock.ticks();
        let is_known = |asked: u64| self.clock.ns_between(asked, now) < CACHE_TIME.as_nanos() as i64;
        if !self.refusing_policy.as_ref().is_some_and(|(asked, _)| is_known(*asked)) {
            self.refusing_policy = Some((now, policies::refusing_policy(&self.server, &self.destination)));
        }
        let policy = self.refusing_policy.as_ref().and_then(|(_, policy)| policy.clone());
        policy.map_or(AmqpServerError::NotConfirmed, AmqpServerError::Policy)
    }

    /// Sends one window. The sequence numbers of trailing messages that surely are not published are used again.
    fn send_window(&mut self, header: BatchHeader, payloads: &[&[u8]]) -> WindowOutcome {
        let BatchHeader { stamp, kind, id: carried_id } = header;
        let id = |index: usize| carried_id.unwrap_or_else(|| self.numbering.peek(index));
        let encode = |index: usize| wire::encode(stamp, kind, id(index), payloads[index]);
        let numbers: Vec<u64> = (0..payloads.len()).map(|index| id(index).sequence).collect();
        let Some(channel) = &self.channel else {
            // Not reached: `ensure_connected` has connected.
            let fates = vec![Fate::NotPublished; payloads.len()];
            return WindowOutcome { fates, error: Some(AmqpServerError::Closed) };
        };
        let sent = channel.send(&self.destination, (0..payloads.len()).map(encode));
        let settled = WindowOutcome::new(fates(&sent, &numbers, &self.destination, || channel.silence()));
        for (index, sent) in sent.into_iter().enumerate() {
            if settled.fates[index] == Fate::Unknown {
                self.in_doubt.add(numbers[index], encode(index), sent);
            }
        }
        if carried_id.is_none() {
            self.numbering.advance(Fate::used(&settled.fates));
        }
        self.keep_or_drop(settled.error.as_ref());
        settled
    }

    /// Finds out what became of the messages in doubt, and sends again those that stay in doubt.
    fn resend_in_doubt(&mut self) -> Result<(), BatchError> {
        let is_up = self.channel.as_ref().is_some_and(ConfirmChannel::is_up);
        wait_for_answers(&mut self.in_doubt.sent, if is_up { TIMEOUT } else { Duration::ZERO });
        let mut fates = self.in_doubt.settle(&self.destination);
        if self.in_doubt.sent.is_empty() {
            return Ok(());
        }
        let Some((why, still)) = self.send_in_doubt() else { return Ok(()) };
        let unknown = fates.iter_mut().filter(|fate| **fate == Fate::Unknown);
        for (fate, now) in unknown.zip(still) {
            *fate = now;
        }
        Err(BatchError::from_fates(&fates, why.unknown(&self.server.name())))
    }

    /// Sends the messages in doubt once more. If any stay in doubt, returns the reason, and the fate of each.
    fn send_in_doubt(&mut self) -> Option<(AmqpServerError, Vec<Fate>)> {
        let unknown = vec![Fate::Unknown; self.in_doubt.sent.len()];
        let is_up = self.channel.as_ref().is_some_and(ConfirmChannel::is_up);
        let is_blocked = self.channel.as_ref().is_some_and(ConfirmChannel::is_blocked);
        if is_up && is_blocked && self.in_doubt.is_waiting() {
            // The first messages are still in flight.
            return Some((AmqpServerError::Blocked, unknown));
        }
        // A broker that neither answers nor reports that it is blocked gets a new connection.
        let is_usable = is_up && !self.in_doubt.is_waiting();
        if !is_usable && let Err(e) = self.reopen() {
            return Some((e, unknown));
        }
        let channel = self.channel.as_ref()?;
        self.in_doubt.sent = channel.send(&self.destination, self.in_doubt.bodies());
        let InDoubtMessages { sent, numbers, .. } = &self.in_doubt;
        let why = WindowOutcome::new(fates(sent, numbers, &self.destination, || channel.silence())).error;
        let still = self.in_doubt.settle(&self.destination);
        self.keep_or_drop(why.as_ref());
        why.map(|why| (why, still))
    }

    /// Connects if there is no usable connection. Returns true if the old one is kept, which may have ended unnoticed;
    /// while the broker is blocked and owes answers, it is sent nothing more.
    fn ensure_connected(&mut self) -> Result<bool, AmqpServerError> {
        if let Some(channel) = &self.channel
            && channel.is_up()
        {
            let patience = if channel.is_blocked() { TIMEOUT } else { Duration::ZERO };
            wait_for_answers(&mut self.abandoned, patience);
            self.abandoned.retain(SentMessage::is_waiting);
            let patience = if self.abandoned.is_empty() { patience } else { Duration::ZERO };
            wait_for_answers(&mut self.in_doubt.sent, patience);
            if self.abandoned.is_empty() && !self.in_doubt.is_waiting() {
                return Ok(true);
            }
            if channel.is_blocked() {
                return Err(AmqpServerError::Blocked);
            }
        }
        self.reopen().map(|()| false)
    }

    fn reopen(&mut self) -> Result<(), AmqpServerError> {
        // The old connection is closed before the new one opens, so that none of its messages arrives later.
        self.channel = None;
        self.abandoned.clear();
        self.channel = Some(ConfirmChannel::open(&self.server, &self.destination)?);
        self.reconnects += 1;
        Ok(())
    }

    /// Gives up the messages in doubt, because other messages are sent now.
    fn abandon_in_doubt(&mut self) {
        let first = std::mem::take(&mut self.in_doubt).sent;
        self.abandoned.extend(first.into_iter().filter(SentMessage::is_waiting));
    }

    /// Keeps the connection after an error if it is up, because answers may still come; drops it if the queue is gone.
    fn keep_or_drop(&mut self, why: Option<&AmqpServerError>) {
        let is_queue_gone = matches!(why, Some(AmqpServerError::QueueRemoved));
        if is_queue_gone || !self.channel.as_ref().is_some_and(ConfirmChannel::is_up) {
            self.channel = None;
        }
    }

    fn unpublished(&self, error: &AmqpServerError) -> PublishError {
        error.not_published(&self.server.name())
    }
}

impl WindowOutcome {
    fn new(settled: Vec<(Fate, Option<AmqpServerError>)>) -> Self {
        let (fates, whys): (Vec<Fate>, Vec<Option<AmqpServerError>>) = settled.into_iter().unzip();
        Self { fates, error: whys.into_iter().flatten().next() }
    }
}

impl Publisher for AmqpSender {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send(stamp, kind, payloads)
    }

    fn publish_with_id(&mut self, origin: MessageId, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        let header = BatchHeader { stamp, kind, id: Some(origin) };
        self.send_batch(header, &[payload]).map_err(|e| e.error)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.resend_in_doubt()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for AmqpSender {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.resend_in_doubt()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

/// Returns how many messages of the beginning may be in flight together: at least one.
fn window_length(payloads: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let fits = |payload: &&&[u8]| {
        bytes += payload.len();
        bytes <= WINDOW_BYTES
    };
    payloads.iter().take(WINDOW_MESSAGES).take_while(fits).count().max(1)
}
