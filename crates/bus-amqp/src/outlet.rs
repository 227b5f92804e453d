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

use tickpath_bus_api::{BatchError, ConnectError, Fate, Numbering, Origin, PublishError, Publisher, Pusher, wire};
use tickpath_clock::{Clock, HostClock};

use crate::doubts::Doubts;
use crate::error::ServerError;
use crate::link::TIMEOUT;
use crate::place::Place;
use crate::policies;
use crate::sending::{ConfirmChannel, Sent, fates, wait_for};
use crate::server::Server;

/// Max payload, in bytes: an eighth of what a server with default settings takes.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Max messages of a batch in flight.
const WINDOW_MESSAGES: usize = 1024;

/// Max bytes of a batch in flight, unless a single message is longer.
const WINDOW_BYTES: usize = 4 << 20;

/// A publisher of a topic, or a pusher of a queue.
pub(crate) struct Outlet {
    server: Arc<Server>,
    place: Place,
    /// The connection; none after an error that ended it.
    channel: Option<ConfirmChannel>,
    numbering: Numbering,
    /// The messages in doubt, until they are sent again or given up.
    doubts: Doubts,
    /// The unanswered messages that were given up.
    given_up: Vec<Sent>,
    reconnects: u64,
    clock: HostClock,
    /// The time of the last request for policies, in ticks, and the policy that refuses messages.
    refusal: Option<(u64, Option<String>)>,
}

/// The header fields of the messages of one call.
#[derive(Debug, Clone, Copy)]
struct Heading {
    stamp: u64,
    kind: u8,
    /// The origin of a message from elsewhere; none for messages that are numbered here.
    carried: Option<Origin>,
}

/// The outcome of a window.
struct Settled {
    /// The fate of each message.
    fates: Vec<Fate>,
    /// The error of the first message that is not published.
    why: Option<ServerError>,
}

impl Outlet {
    /// Connects at once, so that the first message does not pay for it.
    pub fn open(server: Arc<Server>, place: Place) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let channel = ConfirmChannel::open(&server, &place).map_err(|e| server.error(&e))?;
        let (numbering, doubts, given_up) = (Numbering::new(clock), Doubts::default(), Vec::new());
        let (channel, refusal) = (Some(channel), None);
        Ok(Self { server, place, channel, numbering, doubts, given_up, reconnects: 0, clock, refusal })
    }

    /// Sends the messages up to the first invalid one.
    fn send(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send_as(Heading { stamp, kind, carried: None }, payloads)
    }

    fn send_as(&mut self, heading: Heading, payloads: &[&[u8]]) -> Result<(), BatchError> {
        wire::send_good(heading.kind, payloads, MAX_PAYLOAD_BYTES, |good| self.send_good(heading, good))
    }

    /// Sends all messages, a window at a time, up to the first window that fails. If the connection was lost, messages
    /// that surely did not leave are sent once more, on a new one.
    fn send_good(&mut self, heading: Heading, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        let mut may_connect = self.get_ready().map_err(|e| BatchError::at(done, self.unpublished(&e)))?;
        self.give_up();
        while done < payloads.len() {
            let left = &payloads[done..];
            let left = &left[..window(left)];
            let Settled { fates, why } = self.send_window(heading, left);
            let Some(why) = why else {
                done += left.len();
                continue;
            };
            let sure = fates.iter().take_while(|&&fate| fate == Fate::Published).count();
            if may_connect && why.is_loss() && fates[sure..].iter().all(|&fate| fate == Fate::NotPublished) {
                may_connect = false;
                done += sure;
                self.reopen().map_err(|e| BatchError::at(done, self.unpublished(&e)))?;
                continue;
            }
            let why = self.named(why);
            let error = match fates.get(sure) {
                Some(Fate::Unknown) => why.unknown(&self.server.name()),
                _ => self.unpublished(&why),
            };
            let fates = [vec![Fate::Published; done], fates].concat();
            return Err(BatchError::of(&fates, error));
        }
        Ok(())
    }

    /// Adds to a negative acknowledgement the queue's policy that may be its reason.
    fn named(&mut self, why: ServerError) -> ServerError {
        const LASTS: Duration = Duration::from_secs(5);
        if !matches!(why, ServerError::NotConfirmed) {
            return why;
        }
        let now = self.clock.ticks();
        let is_known = |asked: u64| self.clock.ns_between(asked, now) < LASTS.as_nanos() as i64;
        if !self.refusal.as_ref().is_some_and(|(asked, _)| is_known(*asked)) {
            self.refusal = Some((now, policies::refusal(&self.server, &self.place)));
        }
        let policy = self.refusal.as_ref().and_then(|(_, policy)| policy.clone());
        policy.map_or(ServerError::NotConfirmed, ServerError::Policy)
    }

    /// Sends one window. The sequence numbers of trailing messages that surely are not published are used again.
    fn send_window(&mut self, heading: Heading, payloads: &[&[u8]]) -> Settled {
        let Heading { stamp, kind, carried } = heading;
        let origin = |at: usize| carried.unwrap_or_else(|| self.numbering.ahead(at));
        let encode = |at: usize| wire::encode(stamp, kind, origin(at), payloads[at]);
        let numbers: Vec<u64> = (0..payloads.len()).map(|at| origin(at).number).collect();
        let Some(channel) = &self.channel else {
            // Not reached: `get_ready` has connected.
            return Settled { fates: vec![Fate::NotPublished; payloads.len()], why: Some(ServerError::Closed) };
        };
        let sent = channel.send(&self.place, (0..payloads.len()).map(encode));
        let silence = || if channel.is_blocked() { ServerError::Blocked } else { ServerError::Timeout };
        let settled = Settled::new(fates(&sent, &numbers, &self.place, silence));
        for (at, sent) in sent.into_iter().enumerate() {
            if settled.fates[at] == Fate::Unknown {
                self.doubts.add(numbers[at], encode(at), sent);
            }
        }
        if carried.is_none() {
            self.numbering.advance(Fate::used(&settled.fates));
        }
        self.keep_or_drop(settled.why.as_ref());
        settled
    }

    /// Finds out what became of the messages in doubt, and sends again those that stay in doubt.
    fn send_again(&mut self) -> Result<(), BatchError> {
        let is_up = self.channel.as_ref().is_some_and(ConfirmChannel::is_up);
        wait_for(&mut self.doubts.sent, if is_up { TIMEOUT } else { Duration::ZERO });
        let mut all = self.doubts.settle(&self.place);
        if self.doubts.is_empty() {
            return Ok(());
        }
        let Some((why, still)) = self.send_doubts() else { return Ok(()) };
        let open = all.iter_mut().filter(|fate| **fate == Fate::Unknown);
        for (fate, now) in open.zip(still) {
            *fate = now;
        }
        Err(BatchError::of(&all, why.unknown(&self.server.name())))
    }

    /// Sends the messages in doubt once more. If any stay in doubt, returns the reason, and the fate of each.
    fn send_doubts(&mut self) -> Option<(ServerError, Vec<Fate>)> {
        let unknown = vec![Fate::Unknown; self.doubts.sent.len()];
        let is_up = self.channel.as_ref().is_some_and(ConfirmChannel::is_up);
        let is_blocked = self.channel.as_ref().is_some_and(ConfirmChannel::is_blocked);
        if is_up && is_blocked && self.doubts.wait() {
            // The first messages are still in flight.
            return Some((ServerError::Blocked, unknown));
        }
        // A broker that neither answers nor reports that it is blocked gets a new connection.
        let is_of_use = is_up && !self.doubts.wait();
        if !is_of_use && let Err(e) = self.reopen() {
            return Some((e, unknown));
        }
        let channel = self.channel.as_ref()?;
        self.doubts.sent = channel.send(&self.place, self.doubts.bodies());
        let silence = || if channel.is_blocked() { ServerError::Blocked } else { ServerError::Timeout };
        let why = Settled::new(fates(&self.doubts.sent, self.doubts.numbers(), &self.place, silence)).why;
        let still = self.doubts.settle(&self.place);
        self.keep_or_drop(why.as_ref());
        why.map(|why| (why, still))
    }

    /// Connects if there is no usable connection. Returns true if the old one is kept, which may have ended unnoticed;
    /// while the broker is blocked and owes answers, it is sent nothing more.
    fn get_ready(&mut self) -> Result<bool, ServerError> {
        if let Some(channel) = &self.channel
            && channel.is_up()
        {
            let patience = if channel.is_blocked() { TIMEOUT } else { Duration::ZERO };
            wait_for(&mut self.given_up, patience);
            self.given_up.retain(Sent::is_waiting);
            let patience = if self.given_up.is_empty() { patience } else { Duration::ZERO };
            wait_for(&mut self.doubts.sent, patience);
            if self.given_up.is_empty() && !self.doubts.wait() {
                return Ok(true);
            }
            if channel.is_blocked() {
                return Err(ServerError::Blocked);
            }
        }
        self.reopen().map(|()| false)
    }

    fn reopen(&mut self) -> Result<(), ServerError> {
        // The old connection is closed before the new one opens, so that none of its messages arrives later.
        self.channel = None;
        self.given_up.clear();
        self.channel = Some(ConfirmChannel::open(&self.server, &self.place)?);
        self.reconnects += 1;
        Ok(())
    }

    /// Gives up the messages in doubt, because other messages are sent now.
    fn give_up(&mut self) {
        let first = std::mem::take(&mut self.doubts).sent;
        self.given_up.extend(first.into_iter().filter(Sent::is_waiting));
    }

    /// Keeps the connection after an error if it is up, because answers may still come; drops it if the queue is gone.
    fn keep_or_drop(&mut self, why: Option<&ServerError>) {
        let is_queue_gone = matches!(why, Some(ServerError::NoQueue));
        if is_queue_gone || !self.channel.as_ref().is_some_and(ConfirmChannel::is_up) {
            self.channel = None;
        }
    }

    fn unpublished(&self, error: &ServerError) -> PublishError {
        error.unpublished(&self.server.name())
    }
}

impl Settled {
    fn new(settled: Vec<(Fate, Option<ServerError>)>) -> Self {
        let (fates, whys): (Vec<Fate>, Vec<Option<ServerError>>) = settled.into_iter().unzip();
        Self { fates, why: whys.into_iter().flatten().next() }
    }
}

impl Publisher for Outlet {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send(stamp, kind, payloads)
    }

    fn carry(&mut self, origin: Origin, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        let heading = Heading { stamp, kind, carried: Some(origin) };
        self.send_as(heading, &[payload]).map_err(|e| e.error)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.send_again()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

impl Pusher for Outlet {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.send(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.send(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        self.send_again()
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.reconnects)
    }
}

/// Returns how many messages of the beginning may be in flight together: at least one.
fn window(payloads: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let fits = |payload: &&&[u8]| {
        bytes += payload.len();
        bytes <= WINDOW_BYTES
    };
    payloads.iter().take(WINDOW_MESSAGES).take_while(fits).count().max(1)
}
