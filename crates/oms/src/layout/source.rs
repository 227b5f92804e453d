//! Where messages come from: a turn of each lane.

use std::ops::DerefMut;

use tickpath_clock::{Bucket, Clock};
use tickpath_log::{Message, Next, ReadError, Reader, Registration, Start};
use tickpath_market::{Kind, TopOfBook, Trade};
use tickpath_oms_journal::LaneKind;
use zerocopy::FromBytes;

use crate::OmsError;
use crate::lanes::Event;
use crate::sequencer::Sequencer;

/// Messages that one turn takes from one lane before it looks at the others.
const TURN: usize = 16;

/// Between two looks whether a client is still there.
const WATCH_NS: u64 = 10_000_000;

/// A lane that others write. Who damages it loses it, and nobody else does.
pub(crate) struct Source {
    lane: LaneKind,
    /// None once it is set aside.
    reader: Option<Reader>,
    /// The operator's lane that is set aside.
    mark: Option<Reader>,
    bucket: Bucket,
    watch: Option<Watch>,
}

/// Whether a session's client is there.
struct Watch {
    /// None until it was looked for the first time: a client that went while no OMS was there is gone, too.
    is_up: Option<bool>,
    looked: u64,
}

impl Source {
    /// A lane that is read through a bucket; `watches` if it matters whether its writer is there.
    pub fn new(lane: LaneKind, reader: Option<Reader>, bucket: Bucket, watches: bool) -> Self {
        let watch = watches.then_some(Watch { is_up: None, looked: 0 });
        Self { lane, reader, mark: None, bucket, watch }
    }

    pub fn lane(&self) -> LaneKind {
        self.lane
    }

    /// Who can be slept on: a lane that was set aside has news for ever.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// From here on the cursor moves only when it is told to.
    pub fn hold_cursor(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.hold_cursor();
        }
    }

    /// Everything below this number is in the journal.
    #[inline]
    pub fn confirm(&self, sequence: u64) {
        if let Some(reader) = &self.reader {
            reader.confirm(sequence);
        }
    }

    /// One turn: takes messages until there are none, or enough, or the bucket is empty.
    #[inline]
    pub fn turn<C: Clock>(
        &mut self,
        clock: &C,
        mut take: impl FnMut(LaneKind, Event<'_>) -> Result<(), OmsError>,
    ) -> Result<usize, OmsError> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        for done in 0..TURN {
            if !self.bucket.take(|| clock.ticks()) {
                return Ok(done);
            }
            match reader.next() {
                Ok(Next::Message(message)) => take(self.lane, Event::Message(&message))?,
                Ok(Next::Gap(missed)) => take(self.lane, Event::Missed(missed))?,
                Ok(Next::Empty) => {
                    self.bucket.give_back();
                    if self.watch.is_some() {
                        self.look_after_client(clock, take)?;
                    }
                    return Ok(done);
                }
                Err(e) => return self.set_aside(&e, take).map(|()| done + 1),
            }
        }
        Ok(TURN)
    }

    #[cold]
    fn set_aside(
        &mut self,
        why: &ReadError,
        mut take: impl FnMut(LaneKind, Event<'_>) -> Result<(), OmsError>,
    ) -> Result<(), OmsError> {
        // Of two OMSes of one name the second finds the first by who reads its operator's words.
        self.mark = self.reader.take().filter(|_| self.lane == LaneKind::Control);
        take(self.lane, Event::Damaged(why.to_string()))
    }

    /// Tells when the lane's writer has come, and, once all that it wrote is taken, when it is gone.
    #[cold]
    fn look_after_client<C: Clock>(
        &mut self,
        clock: &C,
        mut take: impl FnMut(LaneKind, Event<'_>) -> Result<(), OmsError>,
    ) -> Result<(), OmsError> {
        let (Some(watch), Some(reader)) = (&mut self.watch, &self.reader) else { return Ok(()) };
        let now = clock.ticks();
        if now.wrapping_sub(watch.looked) < clock.calibration().ticks_of_ns(WATCH_NS) && watch.looked != 0 {
            return Ok(());
        }
        watch.looked = now;
        let is_up = reader.writer().is_some();
        if watch.is_up.replace(is_up) != Some(is_up) {
            take(self.lane, Event::Login(is_up))?;
        }
        Ok(())
    }
}

/// The lanes of clients and operators, and those of venues: each for a thread.
pub(super) fn split_sources<S>(
    sources: impl IntoIterator<Item = S>,
    lane: impl Fn(&S) -> LaneKind,
) -> (Vec<S>, Vec<S>) {
    sources.into_iter().partition(|source| !matches!(lane(source), LaneKind::VenueReports(_)))
}

/// Takes up to a turn's messages from a log of our own.
#[inline]
pub(super) fn turn(
    log: &mut Reader,
    mut take: impl FnMut(&Message<'_>) -> Result<(), OmsError>,
) -> Result<usize, OmsError> {
    for done in 0..TURN {
        match log.next()? {
            Next::Message(message) => take(&message)?,
            Next::Gap(_) => {}
            Next::Empty => return Ok(done),
        }
    }
    Ok(TURN)
}

/// Takes all ticks that are there, before the first request: no order is checked without a price, or armed on an old one.
pub(super) fn open_ticks<C: Clock>(ticks: &mut Option<Reader>, sequencer: &mut Sequencer<C>) -> Result<(), OmsError> {
    if ticks.is_some() {
        sequencer.expect_ticks();
    }
    sequencer.read_again(true);
    while poll_ticks(ticks, sequencer)? > 0 {}
    sequencer.read_again(false);
    Ok(())
}

/// Takes a turn's ticks.
#[inline]
pub(super) fn poll_ticks<C: Clock>(
    ticks: &mut Option<Reader>,
    sequencer: &mut Sequencer<C>,
) -> Result<usize, OmsError> {
    let Some(ticks) = ticks else { return Ok(0) };
    let mut done = turn(ticks, |message| take_tick(message, || &mut *sequencer))?;
    if done == 0
        && sequencer.is_time_to_look_at_ticks()
        && ticks.is_removed()
        && let Ok(made) = Reader::open(ticks.place(), Start::Oldest, Registration::Registered)
    {
        // Its publisher has made it anew, and writes to the old one no more: what is left there comes first.
        loop {
            match turn(ticks, |message| take_tick(message, || &mut *sequencer))? {
                0 => break,
                some => done += some,
            }
        }
        *ticks = made;
    }
    Ok(done)
}

/// Takes a message that is a top of book or a trade; others bring no price.
#[inline]
pub(super) fn take_tick<C: Clock, S: DerefMut<Target = Sequencer<C>>>(
    message: &Message<'_>,
    sequencer: impl FnOnce() -> S,
) -> Result<(), OmsError> {
    if message.kind == Kind::TopOfBook.code() {
        return match TopOfBook::read_from_bytes(message.payload) {
            Ok(tick) => sequencer().tick(message.stamp, &tick),
            Err(_) => Ok(()),
        };
    }
    match Trade::read_from_bytes(message.payload) {
        Ok(trade) if message.kind == Kind::Trade.code() => sequencer().trade(message.stamp, &trade),
        _ => Ok(()),
    }
}
