//! Sources of messages: a turn of each lane.

use tickpath_clock::{Clock, TokenBucket};
use tickpath_log::{LogMessage, LogReadError, Next, Reader};
use tickpath_oms_journal::LaneKind;

use crate::OmsError;
use crate::lanes::InputEvent;

/// Max messages that a turn takes from a lane before it moves to the others.
const MAX_TURN_MESSAGES: usize = 16;

/// Nanoseconds between two checks that a client is still connected.
const CLIENT_CHECK_NS: u64 = 10_000_000;

/// A lane that others write. A writer that damages its lane loses that lane only.
pub(crate) struct LaneSource {
    pub lane: LaneKind,
    /// `None` once the lane is set aside.
    reader: Option<Reader>,
    /// Reader of the operator's lane once that lane is set aside: it still marks a running OMS.
    control_mark: Option<Reader>,
    bucket: TokenBucket,
    watch: Option<ClientWatch>,
}

/// Watch over the client of a session.
struct ClientWatch {
    /// `None` before the first check, so that a client that left while no OMS ran is also reported.
    is_up: Option<bool>,
    checked: u64,
}

impl LaneSource {
    /// Returns a lane that is read through a token bucket; `watches` reports when its writer connects and disconnects.
    pub fn new(lane: LaneKind, reader: Option<Reader>, bucket: TokenBucket, watches: bool) -> Self {
        let watch = watches.then_some(ClientWatch { is_up: None, checked: 0 });
        Self { lane, reader, control_mark: None, bucket, watch }
    }

    /// Returns the reader to sleep on; `None` for a lane that was set aside, which would never let a thread sleep.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// Stops the automatic cursor: from here on only `confirm` moves it.
    pub fn hold_cursor(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.freeze_cursor();
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
    pub fn poll<C: Clock>(
        &mut self,
        clock: &C,
        mut sink: impl FnMut(LaneKind, InputEvent<'_>) -> Result<(), OmsError>,
    ) -> Result<usize, OmsError> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        for done in 0..MAX_TURN_MESSAGES {
            if !self.bucket.try_take(|| clock.ticks()) {
                return Ok(done);
            }
            match reader.next() {
                Ok(Next::Message(message)) => sink(self.lane, InputEvent::Message(&message))?,
                Ok(Next::Gap(missed)) => sink(self.lane, InputEvent::Missed(missed))?,
                Ok(Next::Empty) => {
                    self.bucket.refund();
                    if self.watch.is_some() {
                        self.check_client(clock, sink)?;
                    }
                    return Ok(done);
                }
                Err(e) => return self.quarantine(&e, sink).map(|()| done + 1),
            }
        }
        Ok(MAX_TURN_MESSAGES)
    }

    #[cold]
    fn quarantine(
        &mut self,
        why: &LogReadError,
        mut sink: impl FnMut(LaneKind, InputEvent<'_>) -> Result<(), OmsError>,
    ) -> Result<(), OmsError> {
        // A second OMS of the same name finds the first by the reader of its control lane.
        self.control_mark = self.reader.take().filter(|_| self.lane == LaneKind::Control);
        sink(self.lane, InputEvent::Damaged(why.to_string()))
    }

    /// Reports when the lane's writer connects, and when it disconnects, once all its messages are taken.
    #[cold]
    fn check_client<C: Clock>(
        &mut self,
        clock: &C,
        mut sink: impl FnMut(LaneKind, InputEvent<'_>) -> Result<(), OmsError>,
    ) -> Result<(), OmsError> {
        let (Some(watch), Some(reader)) = (&mut self.watch, &self.reader) else { return Ok(()) };
        let now = clock.ticks();
        if now.wrapping_sub(watch.checked) < clock.calibration().ticks_of_ns(CLIENT_CHECK_NS) && watch.checked != 0 {
            return Ok(());
        }
        watch.checked = now;
        let is_up = reader.writer().is_some();
        if watch.is_up.replace(is_up) != Some(is_up) {
            sink(self.lane, InputEvent::Login(is_up))?;
        }
        Ok(())
    }
}

/// Splits lanes by thread: those of clients and operators, and those of venues.
pub(crate) fn split_sources<S>(
    sources: impl IntoIterator<Item = S>,
    lane: impl Fn(&S) -> LaneKind,
) -> (Vec<S>, Vec<S>) {
    sources.into_iter().partition(|source| !matches!(lane(source), LaneKind::VenueReports(_)))
}

/// Takes up to a turn's messages from a log of the OMS's own.
#[inline]
pub(crate) fn poll_log(
    log: &mut Reader,
    mut sink: impl FnMut(&LogMessage<'_>) -> Result<(), OmsError>,
) -> Result<usize, OmsError> {
    for done in 0..MAX_TURN_MESSAGES {
        match log.next()? {
            Next::Message(message) => sink(&message)?,
            Next::Gap(_) => {}
            Next::Empty => return Ok(done),
        }
    }
    Ok(MAX_TURN_MESSAGES)
}
