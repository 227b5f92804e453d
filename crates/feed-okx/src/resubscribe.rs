//! Resubscriptions: a channel of a book is left and entered again, because OKX then sends another snapshot.

use tickpath_clock::{Calibration, RequestRate, TokenBucket};

use crate::channels::{ChannelKey, requests};

/// Requests of a resubscription: one that leaves the channel, one that enters it.
const REQUESTS_EACH: u32 = 2;
/// Nanoseconds of an hour for one of a second: the bucket counts by the second, OKX by the hour.
const SLOWDOWN: u64 = 3_600;

/// Resubscriptions of a connection, within OKX's hourly limit of requests.
#[derive(Debug)]
pub(crate) struct Resubscriptions {
    bucket: TokenBucket,
    pending: Vec<Resubscription>,
}

#[derive(Debug)]
struct Resubscription {
    key: ChannelKey,
    step: ResubscriptionStep,
    /// Time of the last request, in nanoseconds since the connect.
    since_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResubscriptionStep {
    Queued,
    Leaving,
    Entering,
}

impl Resubscriptions {
    /// Makes the state of a connection that may send `left` further requests within its first hour. The bucket has half
    /// of them at once and gets the other half within an hour, so that no hour has more than all.
    pub(crate) fn new(left: u32) -> Self {
        let half = (left / REQUESTS_EACH / 2).max(1);
        let rate = RequestRate { per_second: half, burst: half };
        Self { bucket: TokenBucket::new(rate, &Calibration::nanoseconds(), 0), pending: Vec::new() }
    }

    /// Queues a channel, unless its resubscription is pending: the snapshot of that one serves both.
    pub(crate) fn queue(&mut self, key: ChannelKey) {
        if self.pending.iter().all(|pending| pending.key != key) {
            self.pending.push(Resubscription { key, step: ResubscriptionStep::Queued, since_ns: 0 });
        }
    }

    /// Starts queued resubscriptions as far as the bucket has tokens, and passes on their requests.
    pub(crate) fn start_queued(&mut self, now_ns: u64, send: &mut dyn FnMut(String)) {
        for pending in self.pending.iter_mut().filter(|pending| pending.step == ResubscriptionStep::Queued) {
            if !self.bucket.try_take(|| now_ns / SLOWDOWN) {
                return;
            }
            pending.advance(ResubscriptionStep::Leaving, "unsubscribe", now_ns, send);
        }
    }

    /// Takes the acknowledgement that a channel is left, and passes on the request that enters it again. Returns false
    /// if no request has asked to leave it.
    pub(crate) fn note_left(&mut self, key: &ChannelKey, now_ns: u64, send: &mut dyn FnMut(String)) -> bool {
        let left = |pending: &&mut Resubscription| pending.step == ResubscriptionStep::Leaving && pending.key == *key;
        let Some(pending) = self.pending.iter_mut().find(left) else { return false };
        pending.advance(ResubscriptionStep::Entering, "subscribe", now_ns, send);
        true
    }

    /// Takes the acknowledgement that a channel is entered.
    pub(crate) fn note_entered(&mut self, key: &ChannelKey) {
        self.pending.retain(|pending| pending.step != ResubscriptionStep::Entering || pending.key != *key);
    }

    /// Returns whether a request is not yet acknowledged.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.pending.iter().any(|pending| pending.step != ResubscriptionStep::Queued)
    }

    /// Returns a channel whose last request was not acknowledged within `limit_ns`.
    pub(crate) fn overdue(&self, now_ns: u64, limit_ns: u64) -> Option<&ChannelKey> {
        let is_overdue = |pending: &&Resubscription| {
            pending.step != ResubscriptionStep::Queued && now_ns.saturating_sub(pending.since_ns) > limit_ns
        };
        self.pending.iter().find(is_overdue).map(|pending| &pending.key)
    }
}

impl Resubscription {
    fn advance(&mut self, step: ResubscriptionStep, operation: &str, now_ns: u64, send: &mut dyn FnMut(String)) {
        (self.step, self.since_ns) = (step, now_ns);
        requests(operation, std::slice::from_ref(&self.key)).into_iter().for_each(send);
    }
}
