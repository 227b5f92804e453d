//! The subscription behind Python's `Subscriber`: events taken out of it are buffered here until Python takes them.

use std::collections::VecDeque;

use smallvec::SmallVec;
use tickpath_bus::{LendError, ReceiveError, ResumeToken, SubscriptionEvent};
use tickpath_clock::{Clock, HostClock};

use crate::buffered_event::BufferedEvent;
use crate::handle::MAX_TURN_NS;
use crate::notifier::{self, Waitable};
use crate::record::{RECORD_BYTES, TRADE_BYTES, record_bytes};

/// Max duration of one spinning turn, in nanoseconds.
const SPIN_NS: i64 = 1_000_000;

/// Spins between two looks at the clock.
const SPINS: u32 = 256;

/// Max events of one call.
pub const MAX_EVENTS: usize = 1 << 16;

/// An open subscription with its buffered events.
pub struct Subscription {
    pub subscriber: Box<dyn tickpath_bus::Subscriber>,
    /// Events taken out and not handed over.
    waiting: VecDeque<BufferedEvent>,
    /// Position before the buffered events, if there is one; None if unknown.
    position: Option<Option<ResumeToken>>,
    /// Error during a wait, not reported yet.
    error: Option<ReceiveError>,
    /// Buffers reused for the next records.
    pub records: TickRecords,
    /// The topic lends its messages, or this is not known yet.
    lends: bool,
    /// The subscriber spins instead of sleeping.
    spins: bool,
    clock: HostClock,
}

/// Events taken out: usually a single one, stored without an allocation.
pub type EventBatch = SmallVec<[BufferedEvent; 1]>;

/// Records taken out, with the stamp of each.
#[derive(Default)]
pub struct TickRecords {
    /// The bytes of all records.
    pub bytes: Vec<u8>,
    /// The stamp of each record.
    pub stamps: Vec<u64>,
}

impl Waitable for Subscription {
    fn wait_turn(&mut self) -> bool {
        let found = self.wait_event(notifier::MAX_NOTIFIER_TURN_NS);
        self.store_error(found)
    }
}

impl Subscription {
    pub fn new(subscriber: Box<dyn tickpath_bus::Subscriber>, spins: bool, clock: HostClock) -> Self {
        let (waiting, before, error, records) = (VecDeque::new(), None, None, TickRecords::default());
        Self { subscriber, waiting, position: before, error, records, lends: true, spins, clock }
    }

    /// Takes out up to `limit` events: the buffered ones, then those available. An error after some events is returned
    /// when it occurs again, or by the next call.
    #[inline]
    pub fn take(&mut self, limit: usize, taken: &mut EventBatch) -> Result<(), ReceiveError> {
        if self.waiting.is_empty() {
            self.take_error()?;
        } else {
            let count = limit.min(self.waiting.len());
            taken.extend(self.waiting.drain(..count));
            if taken.len() >= limit || self.error.is_some() {
                return Ok(());
            }
        }
        match self.subscriber.poll(limit - taken.len(), &mut |event| taken.push(BufferedEvent::of(&event))) {
            Err(e) if taken.is_empty() => Err(e),
            _ => Ok(()),
        }
    }

    /// Returns the error of a wait, once.
    #[inline]
    fn take_error(&mut self) -> Result<(), ReceiveError> {
        // In the usual case without an error, nothing is written.
        if self.error.is_none() { Ok(()) } else { self.error.take().map_or(Ok(()), Err) }
    }

    /// Takes out the next message as a lent one, or the gap before it; None if nothing has arrived.
    pub fn lend(&mut self) -> Result<Option<BufferedEvent>, LendError> {
        if self.waiting.front().is_none_or(BufferedEvent::is_copy) {
            self.take_error()?;
            // A buffered copy was put back, or its topic lends nothing, which is reported here.
            let found = self.subscriber.lend()?;
            self.waiting.extend(BufferedEvent::of_lending(found));
        }
        Ok(self.waiting.pop_front().map(BufferedEvent::into_lent))
    }

    /// Takes up to `room` records of a kind, up to the first event of another kind.
    pub fn take_records(&mut self, kind: u8, room: usize) -> Result<TickRecords, ReceiveError> {
        if record_bytes(kind) == Some(TRADE_BYTES) {
            self.take_sized::<TRADE_BYTES>(kind, room)
        } else {
            self.take_sized::<RECORD_BYTES>(kind, room)
        }
    }

    /// Takes up to `room` messages of this kind and size. The size is known to the compiler, so that a copy takes a few
    /// moves.
    fn take_sized<const BYTES: usize>(&mut self, kind: u8, room: usize) -> Result<TickRecords, ReceiveError> {
        let mut records = std::mem::take(&mut self.records);
        records.bytes.clear();
        records.stamps.clear();
        while records.stamps.len() < room
            && let Some(waits) = self.waiting.pop_front_if(|taken| taken.kind() == Some(kind))
        {
            waits.append(&mut records.bytes, &mut records.stamps);
        }
        let has_some = !records.stamps.is_empty();
        if !self.waiting.is_empty() || has_some && (records.stamps.len() >= room || self.error.is_some()) {
            return Ok(records);
        }
        self.take_error()?;
        let left = (room - records.stamps.len()).min(MAX_EVENTS);
        let Self { subscriber, waiting, position: before, .. } = self;
        let polled = subscriber.poll(left, &mut |event| {
            if let SubscriptionEvent::Message(m) = &event
                && m.kind == kind
                && let Ok(record) = <&[u8; BYTES]>::try_from(m.payload)
                && waiting.is_empty()
            {
                records.bytes.extend_from_slice(record);
                records.stamps.push(m.stamp);
            } else {
                *before = None;
                waiting.push_back(BufferedEvent::of(&event));
            }
        });
        match polled {
            Err(e) if records.stamps.is_empty() && waiting.is_empty() => Err(e),
            _ => Ok(records),
        }
    }

    /// Puts back events that could not be handed over; the position before them is unknown.
    pub fn put_back(&mut self, taken: EventBatch) {
        self.position = None;
        taken.into_iter().rev().for_each(|taken| self.waiting.push_front(taken));
    }

    /// Returns the position before the next event, if there is one; None if unknown.
    pub fn resume_position(&self) -> Option<Option<ResumeToken>> {
        if self.waiting.is_empty() { Some(self.subscriber.resume_token()) } else { self.position }
    }

    /// Waits for an event until the turn is over; returns true if there is an event.
    pub fn wait_event(&mut self, left_ns: u64) -> Result<bool, ReceiveError> {
        self.take_error()?;
        let clock = self.clock;
        if self.waiting.is_empty() {
            self.position = Some(self.subscriber.resume_token());
        }
        let begun = clock.ticks();
        loop {
            for _ in 0..SPINS {
                if !self.waiting.is_empty() {
                    return Ok(true);
                }
                if !self.buffer_next()? {
                    self.subscriber.wait(left_ns.min(MAX_TURN_NS));
                    if !self.spins {
                        return Ok(false);
                    }
                }
            }
            if clock.ns_between(begun, clock.ticks()) >= SPIN_NS.min(i64::try_from(left_ns).unwrap_or(i64::MAX)) {
                return Ok(!self.waiting.is_empty());
            }
        }
    }

    /// Polls once; returns whether an event or an error is there for the next call. The position before that event is
    /// not kept.
    pub fn has_event(&mut self) -> bool {
        if self.waiting.is_empty() && self.error.is_none() {
            self.position = None;
            let found = self.buffer_next();
            return self.store_error(found);
        }
        true
    }

    fn store_error(&mut self, found: Result<bool, ReceiveError>) -> bool {
        found.unwrap_or_else(|e| {
            self.error = Some(e);
            true
        })
    }

    /// Takes out the next event, if there is one. A lendable message is not copied yet, since the next call may lend
    /// it.
    #[inline]
    fn buffer_next(&mut self) -> Result<bool, ReceiveError> {
        if self.lends {
            match self.subscriber.lend() {
                Ok(found) => {
                    self.waiting.extend(BufferedEvent::of_lending(found));
                    return Ok(!self.waiting.is_empty());
                }
                Err(LendError::Receive(e)) => return Err(e),
                Err(LendError::Unsupported(_)) => self.lends = false,
            }
        }
        let Self { subscriber, waiting, .. } = self;
        Ok(subscriber.poll(1, &mut |event| waiting.push_back(BufferedEvent::of(&event)))? > 0)
    }
}
