//! The sequencer's handling of line events.

use std::collections::BTreeSet;

use tickpath_clock::Clock;
use tickpath_log::LogMessage;
use tickpath_market::{ExecutionReport, OrdStatus, Request, VenueId};
use tickpath_oms_core::{Input, LOST_ORDER, LOST_REPORTS, MessageLoss, OrderView, ReportRecord, UnsentRequest};

use super::{InDoubtOrders, LineAgent, LineId, VenueLines};
use crate::OmsError;
use crate::lanes::InputEvent;
use crate::notice::Notice;
use crate::outbound::Outbound;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Does a turn of each line whose agent runs on this thread. Returns the amount of work done.
    #[inline]
    pub(crate) fn poll_lines(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for at in 0..self.line_places.len() {
            let (venue, place) = self.line_places[at];
            let Some(mut agent) = self.lines(venue).and_then(|lines| lines.take_agent(place)) else { continue };
            let polled = agent.poll(&mut |lane, received, event| self.handle_event(lane, received, event));
            // Requests that the core published meanwhile lie in the agent's lane.
            done += agent.send_pending();
            if let Some(lines) = self.lines(venue) {
                lines.return_agent(place, agent);
            }
            done += polled?;
        }
        Ok(done)
    }

    /// Takes the agents of all lines, for a thread of their own.
    pub(crate) fn take_agents(&mut self) -> Vec<(LineId, Box<LineAgent>)> {
        let mut agents = Vec::new();
        for (venue, place) in self.line_places.clone() {
            let line = LineId { venue, line: place as u8 };
            let agent = self.lines(venue).and_then(|lines| Some((lines.id(place)?, lines.take_agent(place)?)));
            debug_assert!(agent.is_some(), "{line} has no agent");
            agents.extend(agent);
        }
        agents
    }

    /// Returns whether any venue is reached by lines.
    pub(crate) fn has_lines(&self) -> bool {
        !self.line_places.is_empty()
    }

    /// Returns whether any line is down, but not yet for so long that its requests are in doubt.
    pub fn awaits_lines(&mut self) -> bool {
        self.venues.iter_mut().flatten().filter_map(Outbound::lines).any(|lines| lines.awaits_line())
    }

    pub(crate) fn lines(&mut self, venue: VenueId) -> Option<&mut VenueLines> {
        self.venues.get_mut(usize::from(venue.0))?.as_mut()?.lines()
    }

    /// Accepts a report from a line, received at `received`; the message carries the report's number on the line.
    #[inline]
    pub(crate) fn line_report(
        &mut self,
        line: LineId,
        received: u64,
        message: &LogMessage<'_>,
    ) -> Result<(), OmsError> {
        let Ok(report) = ExecutionReport::read(message.kind, message.payload) else {
            self.refused += 1;
            return Ok(());
        };
        let (source, lane_sequence) = (line.venue, message.sequence as u32);
        let record = ReportRecord { report, source, line: u16::from(line.line) + 1, lane_sequence };
        self.apply_report(received, &Input::Report(record))?;
        if let Some(lines) = self.lines(line.venue) {
            lines.note_journaled(line, message.sequence + 1);
        }
        self.query_after_loss(line.venue, &report)
    }

    #[cold]
    pub(crate) fn line_event(&mut self, line: LineId, event: InputEvent<'_>) -> Result<(), OmsError> {
        match event {
            InputEvent::Returned(message) => self.line_returned(line, message),
            InputEvent::Lost { what, messages } => self.doubt(line.venue, what, messages),
            InputEvent::LineUp(upto) => self.line_up(line, upto),
            InputEvent::LineDown(why) => self.line_down(line, why),
            InputEvent::Message(_) | InputEvent::Missed(_) | InputEvent::Damaged(_) | InputEvent::Login(_) => Ok(()),
        }
    }

    /// Journals that the venue does not have a request: the request waits in the core, and is checked again.
    fn line_returned(&mut self, line: LineId, message: &LogMessage<'_>) -> Result<(), OmsError> {
        if let Some(lines) = self.lines(line.venue) {
            lines.note_returned(line, message.sequence);
        }
        let Ok(request) = Request::read(message.kind, message.payload) else { return Ok(()) };
        let now = self.clock.ticks();
        let place = line.place(message.sequence);
        let returned = UnsentRequest { place, ..UnsentRequest::new(line.venue, message.stamp, &request) };
        let sequence = self.apply(now, &Input::UnsentRequest(returned))?;
        self.release_to_sessions(sequence, now)?;
        self.departure.queued = true;
        self.after_input()
    }

    fn line_up(&mut self, line: LineId, upto: u64) -> Result<(), OmsError> {
        let was_up = self.lines(line.venue).is_some_and(|lines| lines.is_line_up(line));
        if self.lines(line.venue).is_some_and(|lines| lines.mark_up(line, upto)) {
            if !was_up {
                self.notices.add(Notice::LineUp(line));
            }
            if !self.core.is_up(line.venue) {
                self.note_venue_line(line.venue, true)?;
            }
        }
        Ok(())
    }

    /// Puts the orders of lines that are down for too long in doubt: their requests may have arrived, and their reports
    /// come by no other line. The venue is asked by another line, or by the same line once it is back.
    #[cold]
    pub(crate) fn give_up_lost_lines(&mut self, venue: VenueId) -> Result<usize, OmsError> {
        let mut done = 0;
        while let Some((line, went)) = self.lines(venue).map(VenueLines::take_lost_line).transpose()?.flatten() {
            match went {
                InDoubtOrders::All => self.doubt(venue, LOST_REPORTS, 0)?,
                InDoubtOrders::Named(orders, before) => done += self.doubt_orders(line, &orders, before)?,
            }
        }
        Ok(done)
    }

    fn doubt_orders(&mut self, line: LineId, orders: &BTreeSet<u64>, before: u64) -> Result<usize, OmsError> {
        let is_open = |order: &OrderView| {
            !matches!(order.status, OrdStatus::Filled | OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected)
        };
        let open = orders.iter().filter_map(|&name| self.core.order_by_venue_id(line.venue, name)).filter(is_open);
        let earlier = self.core.open_orders().filter(|order| order.venue == line.venue && order.id.epoch() < before);
        let earlier = earlier.filter(|order| order.status != OrdStatus::Armed);
        let open: BTreeSet<u64> = open.chain(earlier).map(|order| order.id.0).collect();
        for &messages in &open {
            let doubt = MessageLoss { messages, venue: line.venue, lost: LOST_ORDER, reserved: [0; 5] };
            self.apply_and_release(self.clock.ticks(), &Input::MessageLoss(doubt))?;
        }
        if !open.is_empty() {
            self.notices.add(Notice::LineGivenUp { line, orders: open.len() as u64 });
        }
        Ok(open.len())
    }

    fn line_down(&mut self, line: LineId, why: &str) -> Result<(), OmsError> {
        self.notices.add(Notice::LineDown { line, why: why.to_owned() });
        let Some(lines) = self.lines(line.venue) else { return Ok(()) };
        lines.mark_down(line);
        if !lines.is_up() && self.core.is_up(line.venue) {
            self.note_venue_line(line.venue, false)?;
        }
        Ok(())
    }
}
