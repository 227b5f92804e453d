//! `inline`: one thread does everything, or polls it between other things.

use tickpath_clock::Clock;
use tickpath_log::{Reader, sleep_until_any};

use super::Config;
use super::source::{Source, poll_ticks};
use crate::OmsError;
use crate::agent::Agent;
use crate::sequencer::Sequencer;
use crate::server::Gateway;

/// The OMS on one thread, to be polled by it.
pub struct Inline<C> {
    clock: C,
    sequencer: Sequencer<C>,
    sources: Vec<Source>,
    ticks: Option<Reader>,
    gateway: Option<Gateway<C>>,
}

impl<C: Clock> Inline<C> {
    /// Opens lanes and journal, and replays what is there. `ticks` brings reference prices.
    pub fn open(clock: C, config: &Config, ticks: Option<Reader>) -> Result<Self, OmsError> {
        let (mut sequencer, inbound) = Sequencer::open(clock.clone(), config)?;
        let gateway = sequencer.open_gateway(config, inbound.next_request, false)?;
        Ok(Self { clock, sequencer, sources: inbound.sources, ticks, gateway })
    }

    /// The sequencer.
    pub fn sequencer(&mut self) -> &mut Sequencer<C> {
        &mut self.sequencer
    }
}

impl<C: Clock> Agent for Inline<C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sequencer, sources, ticks, gateway } = self;
        // Prices first: the first orders after a start must not be checked without one.
        let mut done = poll_ticks(ticks, sequencer)?;
        for source in sources {
            done += source.turn(clock, |lane, event| sequencer.event(lane, clock.ticks(), event))?;
        }
        if let Some(gateway) = gateway {
            done += gateway.poll(&mut |lane, received, event| sequencer.event(lane, received, event))?;
        }
        done += sequencer.chores(done == 0)?;
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        // Sockets and memory cannot be slept on together.
        if self.sequencer.held() > 0 || self.gateway.is_some() {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.sources.iter().filter_map(Source::reader).collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}
