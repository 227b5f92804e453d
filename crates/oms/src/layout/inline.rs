//! `inline`: one thread does everything, or polls it between other things.

use tickpath_clock::Clock;
use tickpath_log::{Reader, sleep_until_any};

use super::Config;
use super::source::{Source, poll_ticks, turn};
use crate::OmsError;
use crate::agent::Agent;
use crate::recover::Inbound;
use crate::sequencer::Sequencer;

/// The OMS on one thread, to be polled by it.
pub struct Inline<C> {
    clock: C,
    sequencer: Sequencer<C>,
    requests: Vec<Source>,
    from_venue: Reader,
    ticks: Option<Reader>,
}

impl<C: Clock> Inline<C> {
    /// Opens lanes and journal, and replays what is there. `ticks` brings reference prices.
    pub fn open(clock: C, config: &Config, ticks: Option<Reader>) -> Result<Self, OmsError> {
        let (sequencer, Inbound { requests, from_venue }) = Sequencer::open(clock.clone(), config)?;
        Ok(Self {
            clock,
            sequencer,
            requests: requests.into_iter().map(Source::of_client).collect(),
            from_venue,
            ticks,
        })
    }

    /// The sequencer.
    pub fn sequencer(&mut self) -> &mut Sequencer<C> {
        &mut self.sequencer
    }
}

impl<C: Clock> Agent for Inline<C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sequencer, requests, from_venue, ticks } = self;
        // Prices first: the first orders after a start must not be checked without one.
        let mut done = poll_ticks(ticks, sequencer)?;
        for (session, lane) in requests.iter_mut().enumerate() {
            done += lane.turn(|message| sequencer.request(session as u16, clock.ticks(), message))?;
        }
        done += turn(from_venue, |message| sequencer.report(clock.ticks(), message))?;
        if sequencer.queued() > 0 {
            done += sequencer.flush()?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        let mut sources: Vec<&Reader> = self.requests.iter().map(|lane| &lane.reader).collect();
        sources.push(&self.from_venue);
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}
