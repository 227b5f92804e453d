//! `inline`: one thread does everything, or polls the OMS between other work.

use tickpath_clock::Clock;
use tickpath_log::{Reader, sleep_until_any};

use super::source::{Source, open_ticks, poll_ticks};
use crate::OmsError;
use crate::agent::Agent;
use crate::config::Config;
use crate::front::{Front, NoFront, Opening};
use crate::rehearsal::{Client, Turns};
use crate::sequencer::Sequencer;

/// The OMS on one thread, which polls it.
pub struct Inline<C, F = NoFront> {
    clock: C,
    sequencer: Sequencer<C>,
    sources: Vec<Source>,
    ticks: Option<Reader>,
    front: Option<F>,
    rehearsal: Option<Rehearsal<C, F>>,
    turns: Turns,
}

/// Warm-up: a second OMS, and the client that sends it orders.
struct Rehearsal<C, F> {
    oms: Box<Inline<C, F>>,
    client: Client,
}

impl<C: Clock> Inline<C> {
    /// Opens lanes and journal, and replays the journal. `ticks` brings reference prices.
    pub fn open(clock: C, config: &Config, ticks: Option<Reader>) -> Result<Self, OmsError> {
        Self::with_front(clock, config, None::<fn(&mut Sequencer<C>, Opening) -> Result<NoFront, OmsError>>, ticks)
    }
}

impl<C: Clock, F: Front> Inline<C, F> {
    /// Opens an OMS with a front end, which is opened after lanes and journal.
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
        let rehearsal = sequencer.rehearsal_of(config);
        let mut inline = Self::of(sequencer, inbound.sources);
        (inline.ticks, inline.front) = (ticks, front);
        inline.rehearsal = rehearsal.map(|(second, source, client)| {
            let oms = Box::new(Self::of(second, vec![source]));
            Rehearsal { oms, client }
        });
        (0..Client::REHEARSALS).for_each(|_| _ = inline.rehearse());
        Ok(inline)
    }

    fn of(sequencer: Sequencer<C>, sources: Vec<Source>) -> Self {
        let clock = sequencer.clock().clone();
        Self { clock, sequencer, sources, ticks: None, front: None, rehearsal: None, turns: Turns::default() }
    }

    /// Takes a warm-up order through the OMS's own code, on private lanes and a private journal. Returns false without
    /// a warm-up.
    #[inline(never)]
    fn rehearse(&mut self) -> bool {
        let Some(Rehearsal { oms, client }) = &mut self.rehearsal else { return false };
        if client.send(&self.sequencer, &mut oms.sequencer).and_then(|()| oms.poll()).is_err() {
            // A failed warm-up costs latency only.
            self.rehearsal = None;
        }
        true
    }

    /// Returns the number of warm-up orders, and of their outputs: two for each order, unless it was denied.
    pub fn rehearsed(&self) -> (u64, u64) {
        let Some(Rehearsal { oms, client }) = &self.rehearsal else { return (0, 0) };
        (client.sent(), oms.sequencer.core.digest().outputs)
    }

    /// Notes that the thread has slept: the next idle turn is for a warm-up.
    pub fn is_cold(&mut self) {
        self.turns.are_cold();
    }

    /// Returns the sequencer.
    pub fn sequencer(&mut self) -> &mut Sequencer<C> {
        &mut self.sequencer
    }
}

impl<C: Clock, F: Front> Agent for Inline<C, F> {
    // Never inlined: a copy of the function for the warm-up would keep the OMS's own code cold.
    #[inline(never)]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sequencer, sources, ticks, front, turns, .. } = self;
        // Prices first: the first orders after a start must not be checked without a price.
        let mut done = poll_ticks(ticks, sequencer)?;
        for source in sources {
            done += source.turn(clock, |lane, event| sequencer.event(lane, clock.ticks(), event))?;
        }
        if let Some(front) = front {
            done += front.poll(&mut |lane, received, event| sequencer.event(lane, received, event))?;
        }
        done += sequencer.poll_lines()?;
        done += sequencer.chores(done == 0)?;
        turns.have_done(done);
        Ok(done)
    }

    #[inline]
    fn idle(&mut self) -> bool {
        self.turns.is_due() && self.rehearse()
    }

    fn sleep(&mut self, timeout_ns: u64) {
        // A thread cannot sleep on sockets and memory together.
        if self.sequencer.held() > 0 || self.front.is_some() || self.sequencer.has_lines() {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.sources.iter().filter_map(Source::reader).collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
        self.is_cold();
    }
}
