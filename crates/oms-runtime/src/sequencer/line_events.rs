//! The sequencer's handling of line events.

use std::collections::BTreeSet;

use tickpath_clock::Clock;
use tickpath_log::LogMessage;
use tickpath_market::{ExecutionReport, Kind, OrdStatus, ReportDetail, Request, VenueId};
use tickpath_oms_core::{DetailRecord, Input, LOST_REPORTS, OrderView, ReportRecord, UnsentRequest};
use tickpath_oms_journal::{LaneKind, LineId};
use zerocopy::FromBytes;

use super::Sequencer;
use crate::OmsError;
use crate::lanes::InputEvent;
use crate::lines::{InDoubtOrders, LineAgent};
use crate::notice::Notice;

impl<C: Clock> Sequencer<C> {
    /// Does a turn of each line whose agent runs on this thread: the agent yields events, which are applied one by one.
    /// Returns the amount of work done.
    #[inline]
    pub(crate) fn poll_lines(&mut self) -> Result<usize, OmsError> {
        let mut done = 0;
        for index in 0..self.release.venues.line_count() {
            let Some(agent) = self.release.venues.agent_mut(index) else { continue };
            let lane = LaneKind::Line(agent.id);
            done += agent.poll()?;
            while let Some(event) = self.release.venues.agent_mut(index).and_then(LineAgent::next_event) {
                let received = self.clock.ticks();
                event.pass_to(|event| self.handle_event(lane, received, event))?;
            }
            if let Some(agent) = self.release.venues.agent_mut(index) {
                done += agent.end_turn();
            }
        }
        Ok(done)
    }

    /// Warms up the code of the lines that this thread runs.
    pub(crate) fn warm_up_lines(&mut self) {
        for index in 0..self.release.venues.line_count() {
            self.release.venues.agent_mut(index).into_iter().for_each(LineAgent::warm_up);
        }
    }

    /// Accepts a report from a line, received at `received`; the message carries the report's number on the line.
    #[inline]
    pub(crate) fn line_report(
        &mut self,
        line: LineId,
        received: u64,
        message: &LogMessage<'_>,
    ) -> Result<(), OmsError> {
        if message.kind == Kind::ReportDetail.code() {
            return self.line_detail(line, received, message);
        }
        let Ok(report) = ExecutionReport::read(message.kind, message.payload) else {
            self.invalid_messages += 1;
            return Ok(());
        };
        let (source, lane_sequence) = (line.venue, message.sequence as u32);
        let record = ReportRecord { report, source, line: u16::from(line.line) + 1, lane_sequence };
        let reports = self.release.reports;
        self.apply_report(received, &Input::Report(record))?;
        let is_for_client = self.release.reports > reports;
        if let Some(lines) = self.release.venues.lines_mut(line.venue) {
            lines.note_journaled(line, message.sequence + 1);
            if is_for_client {
                lines.await_detail(line, (report.order_id.0, report.exec_id.0));
            }
        }
        self.query_after_loss(line.venue, &report)
    }

    /// Journals the details of a report, and sends them to the client that was sent the report. Those of unknown orders
    /// would only fill the disk.
    fn line_detail(&mut self, line: LineId, received: u64, message: &LogMessage<'_>) -> Result<(), OmsError> {
        let Ok(detail) = ReportDetail::read_from_bytes(message.payload) else {
            self.invalid_messages += 1;
            return Ok(());
        };
        if let Some(order) = self.core.order_by_venue_id(line.venue, detail.order_id.0) {
            let lines = self.release.venues.lines_mut(line.venue);
            let ids = (detail.order_id.0, detail.exec_id.0);
            let is_for_client = lines.is_some_and(|lines| lines.take_awaited_detail(line, ids));
            let is_sent = is_for_client && self.release.sends_details_to(order.session);
            let record = DetailRecord {
                detail: ReportDetail { order_id: order.id, ..detail },
                source: line.venue,
                line: u16::from(line.line) + 1,
                lane_sequence: message.sequence as u32,
                session: if is_sent { order.session + 1 } else { 0 },
                reserved: 0,
                account: order.account,
            };
            let sequence = self.apply(received, &Input::ReportDetail(record))?;
            self.release.release_detail(&record, sequence, received)?;
            self.release_outputs(sequence, received)?;
        }
        if let Some(lines) = self.release.venues.lines_mut(line.venue) {
            lines.note_journaled(line, message.sequence + 1);
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn line_event(&mut self, line: LineId, event: InputEvent<'_>) -> Result<(), OmsError> {
        match event {
            InputEvent::Returned(message) => self.line_returned(line, message),
            InputEvent::Lost { what, messages } => self.mark_venue_in_doubt(line.venue, what, messages),
            InputEvent::LineUp(upto) => self.line_up(line, upto),
            InputEvent::LineDown(why) => self.line_down(line, why),
            InputEvent::Message(_) | InputEvent::Missed(_) | InputEvent::Damaged(_) | InputEvent::Login(_) => Ok(()),
        }
    }

    /// Journals that the venue does not have a request: the request waits in the core, and is checked again.
    fn line_returned(&mut self, line: LineId, message: &LogMessage<'_>) -> Result<(), OmsError> {
        if let Some(lines) = self.release.venues.lines_mut(line.venue) {
            lines.note_returned(line, message.sequence);
        }
        let Ok(request) = Request::read(message.kind, message.payload) else { return Ok(()) };
        let now = self.clock.ticks();
        let place = line.place(message.sequence);
        let returned = UnsentRequest { place, ..UnsentRequest::new(line.venue, message.stamp, &request) };
        let sequence = self.apply(now, &Input::UnsentRequest(returned))?;
        self.release_to_sessions(sequence, now)?;
        self.release.departure.queued = true;
        self.after_input()
    }

    fn line_up(&mut self, line: LineId, upto: u64) -> Result<(), OmsError> {
        let Some(lines) = self.release.venues.lines_mut(line.venue) else { return Ok(()) };
        let was_up = lines.is_line_up(line);
        if !lines.mark_up(line, upto) {
            return Ok(());
        }
        if !was_up {
            self.notices.add(Notice::LineUp(line));
        }
        match self.core.is_up(line.venue) {
            true => Ok(()),
            false => self.note_venue_connection(line.venue, true),
        }
    }

    /// Puts the orders of lines that are down for too long in doubt: their requests may have arrived, and their reports
    /// come by no other line. The venue is asked by another line, or by the same line once it is back.
    #[cold]
    pub(crate) fn give_up_lost_lines(&mut self, venue: VenueId) -> Result<usize, OmsError> {
        let mut done = 0;
        while let Some(lines) = self.release.venues.lines_mut(venue)
            && let Some((line, in_doubt)) = lines.take_lost_line()?
        {
            match in_doubt {
                InDoubtOrders::All => self.mark_venue_in_doubt(venue, LOST_REPORTS, 0)?,
                InDoubtOrders::Named(orders, before_epoch) => {
                    done += self.mark_orders_in_doubt(line, &orders, before_epoch)?
                }
            }
        }
        Ok(done)
    }

    fn mark_orders_in_doubt(
        &mut self,
        line: LineId,
        orders: &BTreeSet<u64>,
        before_epoch: u64,
    ) -> Result<usize, OmsError> {
        let is_open = |order: &OrderView| {
            !matches!(order.status, OrdStatus::Filled | OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected)
        };
        let open = orders.iter().filter_map(|&id| self.core.order_by_venue_id(line.venue, id)).filter(is_open);
        let earlier =
            self.core.open_orders().filter(|order| order.venue == line.venue && order.id.epoch() < before_epoch);
        let earlier = earlier.filter(|order| order.status != OrdStatus::Armed);
        let open: BTreeSet<u64> = open.chain(earlier).map(|order| order.id.0).collect();
        for &order in &open {
            self.mark_order_in_doubt(line.venue, order)?;
        }
        if !open.is_empty() {
            self.notices.add(Notice::LineGivenUp { line, orders: open.len() as u64 });
        }
        Ok(open.len())
    }

    fn line_down(&mut self, line: LineId, why: &str) -> Result<(), OmsError> {
        self.notices.add(Notice::LineDown { line, why: why.to_owned() });
        let Some(lines) = self.release.venues.lines_mut(line.venue) else { return Ok(()) };
        lines.mark_down(line);
        if !lines.is_up() && self.core.is_up(line.venue) {
            self.note_venue_connection(line.venue, false)?;
        }
        Ok(())
    }
}
