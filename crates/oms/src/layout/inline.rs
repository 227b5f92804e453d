//! `inline`: one thread does everything, or polls it between other things.

use tickpath_clock::Clock;
use tickpath_log::{Reader, sleep_until_any};

use super::source::{Source, open_ticks, poll_ticks};
use crate::OmsError;
use crate::agent::Agent;
use crate::config::Config;
use crate::front::{Front, NoFront, Opening};
use crate::sequencer::Sequencer;

/// The OMS on one thread, to be polled by it.
pub struct Inline<C, F = NoFront> {
    clock: C,
    sequencer: Sequencer<C>,
    sources: Vec<Source>,
    ticks: Option<Reader>,
    front: Option<F>,
}

impl<C: Clock> Inline<C> {
    /// Opens lanes and journal, and replays what is there. `ticks` brings reference prices.
    pub fn open(clock: C, config: &Config, ticks: Option<Reader>) -> Result<Self, OmsError> {
        Self::with_front(clock, config, None::<fn(&mut Sequencer<C>, Opening) -> Result<NoFront, OmsError>>, ticks)
    }
}

impl<C: Clock, F: Front> Inline<C, F> {
    /// The same with a front, which is opened then.
    pub fn with_front(
        clock: C,
        config: &Config,
        front: Option<impl FnOnce(&mut Sequencer<C>, Opening) -> Result<F, OmsError>>,
        ticks: Option<Reader>,
    ) -> Result<Self, OmsError> {
        let (mut sequencer, inbound) = Sequencer::open(clock.clone(), config)?;
        let opening = Opening::inline(inbound.next_request);
        let front = front.map(|open| open(&mut sequencer, opening)).transpose()?;
        let mut ticks = ticks;
        open_ticks(&mut ticks, &mut sequencer)?;
        Ok(Self { clock, sequencer, sources: inbound.sources, ticks, front })
    }

    /// The sequencer.
    pub fn sequencer(&mut self) -> &mut Sequencer<C> {
        &mut self.sequencer
    }
}

impl<C: Clock, F: Front> Agent for Inline<C, F> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sequencer, sources, ticks, front } = self;
        // Prices first: the first orders after a start must not be checked without one.
        let mut done = poll_ticks(ticks, sequencer)?;
        for source in sources {
            done += source.turn(clock, |lane, event| sequencer.event(lane, clock.ticks(), event))?;
        }
        if let Some(front) = front {
            done += front.poll(&mut |lane, received, event| sequencer.event(lane, received, event))?;
        }
        done += sequencer.poll_lines()?;
        done += sequencer.chores(done == 0)?;
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        // Sockets and memory cannot be slept on together.
        if self.sequencer.held() > 0 || self.front.is_some() || self.sequencer.has_lines() {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.sources.iter().filter_map(Source::reader).collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}
