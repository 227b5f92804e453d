//! Outbound logs of the venues: the lane of a venue, or the lanes of its lines.

use std::sync::Arc;

use tickpath_clock::{Calibration, Clock};
use tickpath_log::Writer;
use tickpath_market::VenueId;
use tickpath_oms_core::AccountLimits;
use tickpath_oms_journal::{LaneLedger, LineId};

use crate::OmsError;
use crate::lanes::LanesConfig;
use crate::line_config::OmsLineConfig;
use crate::lines::{LineAgent, LineWaker, LinesContext, VenueLines};
use crate::outbound::Outbound;

/// Outbound logs of the venues, by venue, and the lines among them.
#[derive(Default)]
pub(crate) struct VenueOutputs {
    logs: Vec<Option<Outbound>>,
    /// Lines of all venues: the venue, and the line's index among the venue's lines.
    lines: Vec<(VenueId, usize)>,
    /// State that all lines share; `None` without lines.
    context: Option<LinesContext>,
}

impl VenueOutputs {
    /// Returns the numbers of all venues up to the highest one, also those without a log.
    pub fn numbers(&self) -> impl Iterator<Item = VenueId> + use<> {
        (0..self.logs.len()).map(|index| VenueId(index as u16))
    }

    /// Returns the venues that have a log.
    pub fn configured(&self) -> impl Iterator<Item = VenueId> {
        self.numbers().filter(move |&venue| self.has(venue))
    }

    /// Returns whether a venue has a log.
    pub fn has(&self, venue: VenueId) -> bool {
        self.log(venue).is_some()
    }

    /// Returns a venue's log.
    pub fn log(&self, venue: VenueId) -> Option<&Outbound> {
        self.logs.get(usize::from(venue.0))?.as_ref()
    }

    /// Returns a venue's log.
    #[inline]
    pub fn log_mut(&mut self, venue: VenueId) -> Option<&mut Outbound> {
        self.logs.get_mut(usize::from(venue.0))?.as_mut()
    }

    /// Returns a venue's lines; `None` for a venue that is reached by lanes.
    #[inline]
    pub fn lines_mut(&mut self, venue: VenueId) -> Option<&mut VenueLines> {
        self.log_mut(venue)?.lines()
    }

    /// Sets a venue's log.
    pub fn install(&mut self, venue: VenueId, log: Outbound) {
        let index = usize::from(venue.0);
        if self.logs.len() <= index {
            self.logs.resize_with(index + 1, || None);
        }
        self.logs[index] = Some(log);
    }

    /// Adds a line to its venue. The line is down until the venue has reported which requests it has.
    pub fn install_line<C: Clock>(
        &mut self,
        line: &OmsLineConfig,
        lanes: &LanesConfig,
        lane: Writer,
        ledger: &LaneLedger,
        clock: &C,
    ) -> Result<(), OmsError> {
        let venue = line.id.venue;
        if self.lines_mut(venue).is_none() {
            let context = match &self.context {
                Some(context) => context.clone(),
                None => LinesContext { waker: Arc::new(LineWaker::new()?), validity: Arc::default() },
            };
            self.context = Some(context.clone());
            self.install(venue, Outbound::with_lines(VenueLines::new(clock, context)));
        }
        if let Some(lines) = self.lines_mut(venue) {
            let index = lines.len();
            lines.add(line, lanes, lane, ledger, clock)?;
            self.lines.push((venue, index));
        }
        Ok(())
    }

    /// Sets the max ages of requests, as the lines check them.
    pub fn set_max_ages(&self, accounts: &[AccountLimits], calibration: &Calibration) {
        if let Some(context) = &self.context {
            context.validity.set(accounts, calibration);
        }
    }

    /// Returns the number of lines of all venues.
    #[inline]
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the agent of the line at this index among all lines, if the agent runs on the core's thread.
    #[inline]
    pub fn agent_mut(&mut self, index: usize) -> Option<&mut LineAgent> {
        let &(venue, index) = self.lines.get(index)?;
        self.lines_mut(venue)?.agent_mut(index)
    }

    /// Removes and returns the agents of all lines, which run on a thread of their own from then on.
    pub fn take_agents(&mut self) -> Vec<(LineId, Box<LineAgent>)> {
        let mut agents = Vec::new();
        for (venue, index) in self.lines.clone() {
            let line = LineId { venue, line: index as u8 };
            let agent = self.lines_mut(venue).and_then(|lines| lines.take_agent(index));
            debug_assert!(agent.is_some(), "{line} has no agent");
            agents.extend(agent);
        }
        agents
    }

    /// Returns whether any line is down, but not yet for so long that its requests are in doubt.
    pub fn awaits_lines(&mut self) -> bool {
        self.logs.iter_mut().flatten().filter_map(Outbound::lines).any(|lines| lines.awaits_line())
    }
}
