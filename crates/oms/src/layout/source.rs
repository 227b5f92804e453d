//! Where messages come from: a turn of each lane.

use tickpath_clock::Clock;
use tickpath_log::{Message, Next, Reader};
use tickpath_market::{Kind, TopOfBook};
use zerocopy::FromBytes;

use crate::OmsError;
use crate::sequencer::Sequencer;

/// Messages that one turn takes from one lane before it looks at the others.
const TURN: usize = 16;

/// A lane that others write. A client that damages its lane loses its session, and nobody else does; without the
/// venue's there is no OMS.
pub(super) struct Source {
    pub reader: Reader,
    of_client: bool,
    broken: bool,
}

impl Source {
    pub fn of_client(reader: Reader) -> Self {
        Self { reader, of_client: true, broken: false }
    }

    pub fn of_venue(reader: Reader) -> Self {
        Self { reader, of_client: false, broken: false }
    }

    /// One turn; nothing, for ever, once a client has damaged it.
    #[inline]
    pub fn turn(&mut self, take: impl FnMut(&Message<'_>) -> Result<(), OmsError>) -> Result<usize, OmsError> {
        if self.broken {
            return Ok(0);
        }
        match turn(&mut self.reader, take) {
            Err(OmsError::Read(_)) if self.of_client => {
                self.broken = true;
                Ok(0)
            }
            done => done,
        }
    }
}

/// Takes up to a turn's messages from one lane.
#[inline]
pub(super) fn turn(
    lane: &mut Reader,
    mut take: impl FnMut(&Message<'_>) -> Result<(), OmsError>,
) -> Result<usize, OmsError> {
    for done in 0..TURN {
        match lane.next()? {
            Next::Message(message) => take(&message)?,
            Next::Gap(_) => {}
            Next::Empty => return Ok(done),
        }
    }
    Ok(TURN)
}

/// Takes a turn's reference prices.
#[inline]
pub(super) fn poll_ticks<C: Clock>(
    ticks: &mut Option<Reader>,
    sequencer: &mut Sequencer<C>,
) -> Result<usize, OmsError> {
    let Some(ticks) = ticks else { return Ok(0) };
    turn(ticks, |message| {
        take_tick(message, |stamp, tick| sequencer.tick(stamp, tick));
        Ok(())
    })
}

/// Takes a message that is a top of book; others bring no price.
#[inline]
pub(super) fn take_tick(message: &Message<'_>, take: impl FnOnce(u64, &TopOfBook)) {
    if message.kind == Kind::TopOfBook.code()
        && let Ok(tick) = TopOfBook::read_from_bytes(message.payload)
    {
        take(message.stamp, &tick);
    }
}
