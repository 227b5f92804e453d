//! Resubscriptions: a channel of a book is left and entered again, because OKX then sends another snapshot, and a
//! channel that has ended is entered again.
//!
//! ```text
//!   Queued ── pause over, a token ──> Leaving ──> Entering ──> Awaiting ── snapshot ──> (none)
//!     ^                └── an ended channel ─────────^  │          │
//!     └───────────────── refused, or no snapshot in time ──────────┘
//! ```
//!
//! The pause between two resubscriptions of a channel doubles, and is forgotten after a while without any.

use std::collections::HashMap;

use tickpath_clock::{Calibration, RequestRate, TokenBucket};
use tickpath_market::SymbolId;

use crate::channels::{BOOKS, ChannelKey, requests};

/// Requests of a resubscription: one that leaves the channel, one that enters it.
const REQUESTS_EACH: u32 = 2;
/// Nanoseconds of an hour for one of a second: the bucket counts by the second, OKX by the hour.
const SLOWDOWN: u64 = 3_600;
/// Pause between the first and the second resubscription of a channel, in nanoseconds.
const MIN_PAUSE_NS: u64 = 250_000_000;
/// Longest pause between two resubscriptions of a channel, and the time after which its pause is forgotten.
const MAX_PAUSE_NS: u64 = 60_000_000_000;
/// Number of times that a pause doubles: then it is beyond the longest one.
const MAX_DOUBLINGS: u32 = 8;

/// Resubscriptions of a connection, within OKX's hourly limit of requests. Times are in nanoseconds since the connect.
#[derive(Debug)]
pub(crate) struct Resubscriptions {
    bucket: TokenBucket,
    pending: Vec<Resubscription>,
    pauses: HashMap<ChannelKey, ResubscriptionPause>,
}

#[derive(Debug)]
struct Resubscription {
    key: ChannelKey,
    symbol: SymbolId,
    step: ResubscriptionStep,
    /// The channel need not be left before it is entered.
    has_ended: bool,
    /// Time of the last request, or of its acknowledgement.
    since_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResubscriptionStep {
    Queued,
    Leaving,
    Entering,
    /// The channel is entered, and its snapshot has not arrived.
    Awaiting,
}

/// Pause of a channel between two resubscriptions.
#[derive(Debug, Default)]
struct ResubscriptionPause {
    until_ns: u64,
    doublings: u32,
}

impl Resubscriptions {
    /// Makes the state of a connection that may send `left` further requests within its first hour. The bucket has half
    /// of them at once and gets the other half within an hour, so that no hour has more than all.
    pub(crate) fn new(left: u32) -> Self {
        let half = (left / REQUESTS_EACH / 2).max(1);
        let rate = RequestRate { per_second: half, burst: half };
        let bucket = TokenBucket::new(rate, &Calibration::nanoseconds(), 0);
        Self { bucket, pending: Vec::new(), pauses: HashMap::new() }
    }

    /// Notes that the snapshot of a channel that was subscribed at the connect must follow.
    pub(crate) fn await_snapshot(&mut self, key: ChannelKey, symbol: SymbolId, now_ns: u64) {
        let step = ResubscriptionStep::Awaiting;
        self.pending.push(Resubscription { key, symbol, step, has_ended: false, since_ns: now_ns });
    }

    /// Queues a channel for another snapshot, unless its resubscription is pending, whose snapshot serves both.
    pub(crate) fn queue(&mut self, key: ChannelKey, symbol: SymbolId) {
        if !self.is_pending(&key) {
            let step = ResubscriptionStep::Queued;
            self.pending.push(Resubscription { key, symbol, step, has_ended: false, since_ns: 0 });
        }
    }

    /// Queues a channel that has ended. Returns false if it was known to have ended.
    pub(crate) fn queue_ended(&mut self, key: &ChannelKey, symbol: SymbolId) -> bool {
        self.queue(key.clone(), symbol);
        let pending = self.pending.iter_mut().find(|pending| pending.key == *key).expect("it is queued");
        pending.step = ResubscriptionStep::Queued;
        !std::mem::replace(&mut pending.has_ended, true)
    }

    /// Starts queued resubscriptions as far as the bucket has tokens, and passes on their requests.
    pub(crate) fn start_queued(&mut self, now_ns: u64, send: &mut dyn FnMut(String)) {
        let Self { bucket, pending, pauses } = self;
        for pending in pending.iter_mut().filter(|pending| pending.step == ResubscriptionStep::Queued) {
            if pauses.get(&pending.key).is_some_and(|pause| now_ns < pause.until_ns) {
                continue;
            }
            if !bucket.try_take(|| now_ns / SLOWDOWN) {
                return;
            }
            pauses.entry(pending.key.clone()).or_default().begin(now_ns);
            match pending.has_ended {
                true => pending.advance(ResubscriptionStep::Entering, "subscribe", now_ns, send),
                false => pending.advance(ResubscriptionStep::Leaving, "unsubscribe", now_ns, send),
            }
        }
    }

    /// Takes the acknowledgement that a channel is left, and passes on the request that enters it again. Returns false
    /// if no request has asked to leave it.
    pub(crate) fn note_left(&mut self, key: &ChannelKey, now_ns: u64, send: &mut dyn FnMut(String)) -> bool {
        let left = |pending: &&mut Resubscription| pending.step == ResubscriptionStep::Leaving && pending.key == *key;
        let Some(pending) = self.pending.iter_mut().find(left) else { return false };
        pending.has_ended = true;
        pending.advance(ResubscriptionStep::Entering, "subscribe", now_ns, send);
        true
    }

    /// Takes the acknowledgement that a channel is entered.
    pub(crate) fn note_entered(&mut self, key: &ChannelKey, now_ns: u64) {
        let is_entered = |pending: &Resubscription| pending.step == ResubscriptionStep::Entering && pending.key == *key;
        if key.channel != BOOKS {
            self.pending.retain(|pending| !is_entered(pending));
        } else if let Some(pending) = self.pending.iter_mut().find(|pending| is_entered(pending)) {
            (pending.step, pending.has_ended, pending.since_ns) = (ResubscriptionStep::Awaiting, false, now_ns);
        }
    }

    /// Takes the snapshot of a book. It may arrive before the acknowledgement.
    pub(crate) fn note_snapshot(&mut self, symbol: SymbolId) {
        let is_served = |pending: &Resubscription| {
            let is_entered = matches!(pending.step, ResubscriptionStep::Entering | ResubscriptionStep::Awaiting);
            is_entered && pending.symbol == symbol && pending.key.channel == BOOKS
        };
        self.pending.retain(|pending| !is_served(pending));
    }

    /// Queues each channel again whose snapshot has not arrived within `limit_ns`, and passes it on.
    pub(crate) fn retry_late(&mut self, now_ns: u64, limit_ns: u64, late: &mut dyn FnMut(&ChannelKey)) {
        for pending in &mut self.pending {
            if pending.step == ResubscriptionStep::Awaiting && now_ns.saturating_sub(pending.since_ns) > limit_ns {
                pending.step = ResubscriptionStep::Queued;
                late(&pending.key);
            }
        }
    }

    /// Returns whether a channel waits to be left, entered, or for its snapshot.
    pub(crate) fn is_pending(&self, key: &ChannelKey) -> bool {
        self.pending.iter().any(|pending| pending.key == *key)
    }

    /// Returns whether a request is not yet acknowledged.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.pending.iter().any(Resubscription::is_requested)
    }

    /// Returns a channel whose last request was not acknowledged within `limit_ns`.
    pub(crate) fn overdue(&self, now_ns: u64, limit_ns: u64) -> Option<&ChannelKey> {
        let is_overdue =
            |pending: &&Resubscription| pending.is_requested() && now_ns.saturating_sub(pending.since_ns) > limit_ns;
        self.pending.iter().find(is_overdue).map(|pending| &pending.key)
    }
}

impl Resubscription {
    fn is_requested(&self) -> bool {
        matches!(self.step, ResubscriptionStep::Leaving | ResubscriptionStep::Entering)
    }

    fn advance(&mut self, step: ResubscriptionStep, operation: &str, now_ns: u64, send: &mut dyn FnMut(String)) {
        (self.step, self.since_ns) = (step, now_ns);
        requests(operation, std::slice::from_ref(&self.key)).into_iter().for_each(send);
    }
}

impl ResubscriptionPause {
    /// Begins the pause after a resubscription.
    fn begin(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.until_ns) > MAX_PAUSE_NS {
            self.doublings = 0;
        }
        self.until_ns = now_ns + (MIN_PAUSE_NS << self.doublings).min(MAX_PAUSE_NS);
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
    }
}
