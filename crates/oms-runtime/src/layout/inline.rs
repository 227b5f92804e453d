//! `inline`: one thread does everything, or polls the OMS between other work.

use tickpath_clock::Clock;
use tickpath_log::{Reader, sleep_until_any};

use super::tick_feed::{catch_up_ticks, poll_ticks};
use crate::OmsError;
use crate::agent::Agent;
use crate::config::Config;
use crate::front_end::{
    ControlPort, FrontEndState, NoFrontEnd, OpenFrontEnd, OpenNoFrontEnd, SessionFrontEnd, open_front_end,
};
use crate::lane_source::LaneSource;
use crate::sequencer::Sequencer;
use crate::warm_up::{IdleTurns, WarmUpClient};

/// The OMS on one thread, which polls it.
pub struct Inline<C, F = NoFrontEnd> {
    clock: C,
    sequencer: Sequencer<C>,
    sources: Vec<LaneSource>,
    ticks: Option<Reader>,
    front: Option<F>,
    control: Option<Box<dyn ControlPort<C>>>,
    warm_up: Option<InlineWarmUp<C, F>>,
    idle_turns: IdleTurns,
}

/// Warm-up: a second OMS, and the client that sends it orders.
struct InlineWarmUp<C, F> {
    oms: Box<Inline<C, F>>,
    client: WarmUpClient,
}

impl<C: Clock> Inline<C> {
    /// Opens lanes and journal, and replays the journal. `ticks` brings reference prices.
    pub fn open(clock: C, config: &Config, ticks: Option<Reader>) -> Result<Self, OmsError> {
        Self::with_front_end(clock, config, None::<OpenNoFrontEnd<C>>, ticks)
    }
}

impl<C: Clock, F: SessionFrontEnd> Inline<C, F> {
    /// Opens an OMS with a front end, which is opened after lanes and journal.
    pub fn with_front_end(
        clock: C,
        config: &Config,
        front: Option<impl FnOnce(&mut Sequencer<C>, FrontEndState) -> Result<OpenFrontEnd<C, F>, OmsError>>,
        mut ticks: Option<Reader>,
    ) -> Result<Self, OmsError> {
        let (mut sequencer, inbound) = Sequencer::open(clock.clone(), config)?;
        let front = open_front_end(front, &mut sequencer, FrontEndState::new(inbound.next_request, None))?;
        let (front, control) = front.map_or((None, None), |front| (Some(front.sessions), front.control));
        catch_up_ticks(&mut ticks, &mut sequencer)?;
        let warm_up = sequencer.warm_up_for(config);
        let mut inline = Self::of(sequencer, inbound.sources);
        inline.idle_turns = IdleTurns::new(front.is_some() || inline.sequencer.has_lines());
        (inline.ticks, inline.front, inline.control) = (ticks, front, control);
        inline.warm_up = warm_up
            .map(|(second, source, client)| InlineWarmUp { oms: Box::new(Self::of(second, vec![source])), client });
        (0..WarmUpClient::WARM_UPS).for_each(|_| _ = inline.run_warm_up());
        Ok(inline)
    }

    fn of(sequencer: Sequencer<C>, sources: Vec<LaneSource>) -> Self {
        let (clock, idle_turns) = (sequencer.clock().clone(), IdleTurns::new(sequencer.has_lines()));
        let (ticks, front, control, warm_up) = (None, None, None, None);
        Self { clock, sequencer, sources, ticks, front, control, warm_up, idle_turns }
    }

    /// Takes a warm-up order through the OMS's own code, on private lanes and a private journal. Returns false without
    /// a warm-up.
    #[inline(never)]
    fn run_warm_up(&mut self) -> bool {
        let Some(InlineWarmUp { oms, client }) = &mut self.warm_up else { return false };
        if client.send_order(&self.sequencer, &mut oms.sequencer).and_then(|()| oms.poll()).is_err() {
            // A failed warm-up costs latency only.
            self.warm_up = None;
        }
        self.sequencer.warm_up_lines();
        true
    }

    /// Returns the number of warm-up orders, and of their outputs: two for each order, unless it was denied.
    pub fn warm_up_counts(&self) -> (u64, u64) {
        let Some(InlineWarmUp { oms, client }) = &self.warm_up else { return (0, 0) };
        (client.sent, oms.sequencer.core.digest().outputs)
    }

    /// Notes that the thread has slept: the next idle turn is for a warm-up.
    pub fn note_sleep(&mut self) {
        self.idle_turns.note_sleep();
    }

    /// Returns the sequencer.
    pub fn sequencer(&mut self) -> &mut Sequencer<C> {
        &mut self.sequencer
    }
}

impl<C: Clock, F: SessionFrontEnd> Agent for Inline<C, F> {
    // Never inlined: a copy of the function for the warm-up would keep the OMS's own code cold.
    #[inline(never)]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sequencer, sources, ticks, front, control, idle_turns, .. } = self;
        // Prices first: the first orders after a start must not be checked without a price.
        let mut done = poll_ticks(ticks, sequencer)?;
        for source in sources {
            done += source.poll(clock, |lane, event| sequencer.handle_event(lane, clock.ticks(), event))?;
        }
        if let Some(front) = front {
            done += front.poll(&mut |lane, received, event| sequencer.handle_event(lane, received, event))?;
        }
        done += sequencer.poll_lines()?;
        done += sequencer.do_housekeeping(done == 0, control)?;
        idle_turns.note_work(done);
        Ok(done)
    }

    #[inline]
    fn idle(&mut self) -> bool {
        self.idle_turns.is_due() && self.run_warm_up()
    }

    fn sleep(&mut self, timeout_ns: u64) {
        // A thread cannot sleep on sockets and memory together.
        if self.sequencer.held() > 0 || self.front.is_some() || self.sequencer.has_lines() {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.sources.iter().filter_map(LaneSource::reader).collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
        self.note_sleep();
    }
}
