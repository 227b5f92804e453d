//! A subscription as Python's `Subscriber` holds it: what was taken out of it waits here until Python takes it.

use std::collections::VecDeque;

use smallvec::SmallVec;
use tickpath_bus::{Event, LendError, ReceiveError, ResumeToken};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Kind, TopOfBook, Trade};

use crate::handle::TURN_NS;
use crate::lookout::{self, Watched};
use crate::taken::Taken;

/// How long one turn may take where it spins.
const SPIN_NS: i64 = 1_000_000;

/// Spins between two looks at the clock.
const SPINS: u32 = 256;

/// The most events of one call.
pub const MOST: usize = 1 << 16;

/// A subscription that is opened.
pub struct Subscription {
    /// The bus's own.
    pub subscriber: Box<dyn tickpath_bus::Subscriber>,
    /// What was taken out, and is not handed over.
    waiting: VecDeque<Taken>,
    /// Where it stood before that, if it stood somewhere; none if nobody knows.
    before: Option<Option<ResumeToken>>,
    /// What went wrong while it waited, and is not told.
    error: Option<ReceiveError>,
    /// Room for the next ones that are taken out as records.
    records: Records,
    /// Its messages are lent, or nobody knows yet.
    lends: bool,
    /// It spins rather than sleeps.
    spins: bool,
    clock: HostClock,
}

/// Events that were taken out: mostly one, which is not worth an allocation.
pub type Batch = SmallVec<[Taken; 1]>;

/// Records that were taken out, with the stamp of each.
#[derive(Default)]
pub struct Records {
    /// All their bytes.
    pub bytes: Vec<u8>,
    /// The stamp of each.
    pub stamps: Vec<u64>,
}

impl Watched for Subscription {
    fn turn(&mut self) -> bool {
        let found = self.look_out(lookout::TURN_NS);
        self.is_news(found)
    }
}

impl Subscription {
    /// Of which nothing was taken out yet.
    pub fn new(subscriber: Box<dyn tickpath_bus::Subscriber>, spins: bool, clock: HostClock) -> Self {
        let (waiting, before, error, records) = (VecDeque::new(), None, None, Records::default());
        Self { subscriber, waiting, before, error, records, lends: true, spins, clock }
    }

    /// Takes out up to so many events: those that wait, then what is there behind them. What went wrong behind some of them is
    /// told when it comes again, or by the next call.
    #[inline]
    pub fn take(&mut self, limit: usize, taken: &mut Batch) -> Result<(), ReceiveError> {
        if self.waiting.is_empty() {
            self.tell_error()?;
        } else {
            let count = limit.min(self.waiting.len());
            taken.extend(self.waiting.drain(..count));
            if taken.len() >= limit || self.error.is_some() {
                return Ok(());
            }
        }
        match self.subscriber.poll(limit - taken.len(), &mut |event| taken.push(Taken::of(&event))) {
            Err(e) if taken.is_empty() => Err(e),
            _ => Ok(()),
        }
    }

    /// What went wrong while it waited, once.
    #[inline]
    fn tell_error(&mut self) -> Result<(), ReceiveError> {
        // Mostly there is none, and nothing is written.
        if self.error.is_none() { Ok(()) } else { self.error.take().map_or(Ok(()), Err) }
    }

    /// Takes out the next message as one that is lent, or the loss before it; none if nothing is there.
    pub fn lend(&mut self) -> Result<Option<Taken>, LendError> {
        if self.waiting.front().is_none_or(Taken::is_copy) {
            self.tell_error()?;
            // A copy waits because nothing is lent here, which is told now, or because it was taken back.
            let found = self.subscriber.lend()?;
            self.waiting.extend(Taken::of_lending(found));
        }
        Ok(self.waiting.pop_front().map(Taken::lent))
    }

    /// Up to so many ticks, or trades, up to the first event that is none.
    pub fn take_records(&mut self, kind: u8, room: usize) -> Result<Records, ReceiveError> {
        if kind == Kind::TopOfBook.code() {
            self.take_sized::<{ size_of::<TopOfBook>() }>(kind, room)
        } else {
            self.take_sized::<{ size_of::<Trade>() }>(kind, room)
        }
    }

    /// Room that was used, for the next records.
    pub fn reuse(&mut self, records: Records) {
        self.records = records;
    }

    /// Up to so many messages of this kind and size, which the compiler knows: it copies them in a few moves.
    fn take_sized<const BYTES: usize>(&mut self, kind: u8, room: usize) -> Result<Records, ReceiveError> {
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
        self.tell_error()?;
        let left = (room - records.stamps.len()).min(MOST);
        let Self { subscriber, waiting, before, .. } = self;
        let polled = subscriber.poll(left, &mut |event| {
            if let Event::Message(m) = &event
                && m.kind == kind
                && let Ok(record) = <&[u8; BYTES]>::try_from(m.payload)
                && waiting.is_empty()
            {
                records.bytes.extend_from_slice(record);
                records.stamps.push(m.stamp);
            } else {
                *before = None;
                waiting.push_back(Taken::of(&event));
            }
        });
        match polled {
            Err(e) if records.stamps.is_empty() && waiting.is_empty() => Err(e),
            _ => Ok(records),
        }
    }

    /// Takes back what was not handed over; where it stood before that nobody knows.
    pub fn take_back(&mut self, taken: Batch) {
        self.before = None;
        taken.into_iter().rev().for_each(|taken| self.waiting.push_front(taken));
    }

    /// Where it stands, if it stands somewhere; none if nobody knows.
    pub fn place(&self) -> Option<Option<ResumeToken>> {
        if self.waiting.is_empty() { Some(self.subscriber.token()) } else { self.before }
    }

    /// Waits for an event until the turn is over; true when one waits.
    pub fn look_out(&mut self, left_ns: u64) -> Result<bool, ReceiveError> {
        self.tell_error()?;
        let clock = self.clock;
        if self.waiting.is_empty() {
            self.before = Some(self.subscriber.token());
        }
        let begun = clock.ticks();
        loop {
            for _ in 0..SPINS {
                if !self.waiting.is_empty() {
                    return Ok(true);
                }
                if !self.look()? {
                    self.subscriber.wait(left_ns.min(TURN_NS));
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

    /// Looks once: whether an event or an error waits for the next call. The place before that event is not kept.
    pub fn has_event(&mut self) -> bool {
        if self.waiting.is_empty() && self.error.is_none() {
            self.before = None;
            let found = self.look();
            return self.is_news(found);
        }
        true
    }

    fn is_news(&mut self, found: Result<bool, ReceiveError>) -> bool {
        found.unwrap_or_else(|e| {
            self.error = Some(e);
            true
        })
    }

    /// Takes out the next event, if there is one. What can be lent is not copied: it waits where it lies, for nobody knows
    /// whether it is to be lent or polled.
    #[inline]
    fn look(&mut self) -> Result<bool, ReceiveError> {
        if self.lends {
            match self.subscriber.lend() {
                Ok(found) => {
                    self.waiting.extend(Taken::of_lending(found));
                    return Ok(!self.waiting.is_empty());
                }
                Err(LendError::Receive(e)) => return Err(e),
                Err(LendError::NotHere(_)) => self.lends = false,
            }
        }
        let Self { subscriber, waiting, .. } = self;
        Ok(subscriber.poll(1, &mut |event| waiting.push_back(Taken::of(&event)))? > 0)
    }
}
