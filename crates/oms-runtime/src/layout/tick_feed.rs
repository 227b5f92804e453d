//! Ticks of the market, as the core's thread reads them.

use std::ops::DerefMut;

use tickpath_clock::Clock;
use tickpath_log::{LogMessage, Reader, ReaderStart, Registration};
use tickpath_market::{Kind, TopOfBook, Trade};
use zerocopy::FromBytes;

use crate::OmsError;
use crate::lane_source::poll_log;
use crate::sequencer::Sequencer;

/// Takes all pending ticks before the first request: no order is checked without a price, or armed on an old price.
pub(super) fn catch_up_ticks<C: Clock>(
    ticks: &mut Option<Reader>,
    sequencer: &mut Sequencer<C>,
) -> Result<(), OmsError> {
    if ticks.is_some() {
        sequencer.expect_market_data();
    }
    sequencer.market.triggers.set_catching_up(true);
    while poll_ticks(ticks, sequencer)? > 0 {}
    sequencer.market.triggers.set_catching_up(false);
    Ok(())
}

/// Takes a turn's ticks.
#[inline]
pub(super) fn poll_ticks<C: Clock>(
    ticks: &mut Option<Reader>,
    sequencer: &mut Sequencer<C>,
) -> Result<usize, OmsError> {
    let Some(ticks) = ticks else { return Ok(0) };
    let mut done = poll_log(ticks, |message| apply_tick(message, || &mut *sequencer))?;
    if done == 0
        && sequencer.housekeeping.is_ticks_check_due()
        && ticks.is_removed()
        && let Ok(made) = Reader::open(ticks.path(), ReaderStart::Oldest, Registration::Registered)
    {
        // The publisher made the topic anew and writes to the old log no more: the rest of the old log comes first.
        loop {
            match poll_log(ticks, |message| apply_tick(message, || &mut *sequencer))? {
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
pub(super) fn apply_tick<C: Clock, S: DerefMut<Target = Sequencer<C>>>(
    message: &LogMessage<'_>,
    sequencer: impl FnOnce() -> S,
) -> Result<(), OmsError> {
    if message.kind == Kind::TopOfBook.code() {
        return match TopOfBook::read_from_bytes(message.payload) {
            Ok(tick) => sequencer().apply_top_of_book(message.stamp, &tick),
            Err(_) => Ok(()),
        };
    }
    match Trade::read_from_bytes(message.payload) {
        Ok(trade) if message.kind == Kind::Trade.code() => sequencer().trade(message.stamp, &trade),
        _ => Ok(()),
    }
}
