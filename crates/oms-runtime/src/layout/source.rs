//! Sources of messages: a turn of each lane.

use std::ops::DerefMut;

use tickpath_clock::{Bucket, Clock};
use tickpath_log::{Message, Next, ReadError, Reader, Registration, Start};
use tickpath_market::{Kind, TopOfBook, Trade};
use tickpath_oms_journal::LaneKind;
use zerocopy::FromBytes;

use crate::OmsError;
use crate::lanes::Event;
use crate::sequencer::Sequencer;

/// Max messages that a turn takes from a lane before it moves to the others.
const TURN: usize = 16;

/// Nanoseconds between two checks that a client is still connected.
const WATCH_NS: u64 = 10_000_000;

/// A lane that others write. A writer that damages its lane loses that lane only.
pub(crate) struct Source {
    lane: LaneKind,
    /// `None` once the lane is set aside.
    reader: Option<Reader>,
    /// Reader of the operator's lane once that lane is set aside: it still marks a running OMS.
    mark: Option<Reader>,
    bucket: Bucket,
    watch: Option<Watch>,
}

/// Watch over the client of a session.
struct Watch {
    /// `None` before the first check, so that a client that left while no OMS ran is also reported.
    is_up: Option<bool>,
    looked: u64,
}

impl Source {
    /// Returns a lane that is read through a token bucket; `watches` reports when its writer connects and disconnects.
    pub fn new(lane: LaneKind, reader: Option<Reader>, bucket: Bucket, watches: bool) -> Self {
        let watch = watches.then_some(Watch { is_up: None, looked: 0 });
        Self { lane, reader, mark: None, bucket, watch }
    }

    pub fn lane(&self) -> LaneKind {
        self.lane
    }

    /// Returns the reader to sleep on; `None` for a lane that was set aside, which would never let a thread sleep.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// Stops the automatic cursor: from here on only `confirm` moves it.
    pub fn hold_cursor(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.hold_cursor();
        }
    }

    /// Confirms that all messages below this number are in the journal.
    #[inline]
    pub fn confirm(&self, sequence: u64) {
        if let Some(reader) = &self.reader {
            reader.confirm(sequence);
        }
    }

    /// Does one turn: takes messages until the lane or the token bucket is empty, or the turn is full.
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
        // A second OMS of the same name finds the first by the reader of its control lane.
        self.mark = self.reader.take().filter(|_| self.lane == LaneKind::Control);
        take(self.lane, Event::Damaged(why.to_string()))
    }

    /// Reports when the lane's writer connects, and when it disconnects, once all its messages are taken.
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

/// Splits lanes by thread: those of clients and operators, and those of venues.
pub(super) fn split_sources<S>(
    sources: impl IntoIterator<Item = S>,
    lane: impl Fn(&S) -> LaneKind,
) -> (Vec<S>, Vec<S>) {
    sources.into_iter().partition(|source| !matches!(lane(source), LaneKind::VenueReports(_)))
}

/// Takes up to a turn's messages from a log of the OMS's own.
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

/// Takes all pending ticks before the first request: no order is checked without a price, or armed on an old price.
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
        // The publisher made the topic anew and writes to the old log no more: the rest of the old log comes first.
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

/// Applies a message that is a top of book or a trade; other messages bring no price.
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
