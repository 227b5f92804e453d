//! A venue on another machine, its connection, and the gateway on our host between the connection and the lanes.
//!
//! ```text
//!   requests lane ──> gateway ──to_venue──> │ venue │
//!   reports lane  <── gateway <─from_venue─ │       │
//! ```
//!
//! The gateway keeps its duties: it moves its cursor before it sends, so that nothing is sent twice, and after a loss
//! on the wire it notifies the OMS before it resumes. In some seeds one venue has lines instead (`lines.rs`).

use std::collections::VecDeque;

use tickpath_clock::Clock;
use tickpath_log::{LogOpenError, Next};
use tickpath_market::{
    ConditionalOrder, ExecId, ExecType, ExecutionReport, Kind, Price, Quantity, Request, TopOfBook, Trigger, VenueId,
};
use tickpath_oms_runtime::{LanesConfig, VenueLanes};
use tickpath_venue_sim::{Config, SimVenue};
use zerocopy::IntoBytes;

use crate::clock::SimClock;
use crate::lines::SimVenueLines;
use crate::oracle::tag;
use crate::plan::Dice;
use crate::planted_bugs::PlantedBug;
use crate::rule::{BrokenRule, RuleCheck};
use crate::silence::Silence;
use crate::step_context::StepContext;

/// One id in this many is rejected for now.
const REFUSED: u64 = 4;

/// A venue and its connection.
pub struct RemoteVenue {
    pub id: VenueId,
    venue: SimVenue,
    pub lanes: Option<VenueLanes>,
    /// The venue's lines, if it is reached by lines instead of lanes.
    pub by: Option<SimVenueLines>,
    to_venue: VecDeque<Request>,
    from_venue: VecDeque<ExecutionReport>,
    /// Lost messages that the OMS was not notified of yet.
    pub unreported: u64,
    /// Silent losses of the venue, while they last.
    pub silence: Option<Silence>,
    fills: u64,
}

impl RemoteVenue {
    pub fn new(id: VenueId, symbols: u32, by: Option<SimVenueLines>) -> Self {
        let venue = SimVenue::new(Config { venue: id, symbols, expected_orders: 64 });
        let (to_venue, from_venue) = (VecDeque::new(), VecDeque::new());
        Self { id, venue, lanes: None, by, to_venue, from_venue, unreported: 0, silence: None, fills: 0 }
    }

    /// Opens the lanes of the gateway, whose cursor moves by hand.
    pub fn join(&mut self, lanes: &LanesConfig, clock: &SimClock) -> Result<(), LogOpenError> {
        if self.lanes.is_none() && self.by.is_none() {
            let mut joined = lanes.join_venue(self.id, clock.calibration())?;
            joined.requests.freeze_cursor();
            self.lanes = Some(joined);
        }
        Ok(())
    }

    /// Sends at most this many requests from the gateway's lane.
    pub fn forward(&mut self, max: usize) -> usize {
        let Some(lanes) = &mut self.lanes else { return 0 };
        let mut done = 0;
        while done < max {
            let (sequence, request) = match lanes.requests.next().expect("the OMS writes sound lanes") {
                Next::Message(message) => (message.sequence, Request::read(message.kind, message.payload)),
                Next::Gap(missed) => panic!("{missed} requests were recycled before their mandatory reader came"),
                Next::Empty => break,
            };
            lanes.requests.confirm(sequence + 1);
            self.to_venue.push_back(request.expect("the OMS sends sound requests"));
            done += 1;
        }
        done
    }

    /// Lets the venue take at most this many requests from the wire.
    pub fn take(&mut self, max: usize, around: &mut StepContext<'_>) -> Result<usize, BrokenRule> {
        if self.by.is_some() {
            return self.take_by_lines(max, around);
        }
        let max = max.min(self.to_venue.len());
        for request in self.to_venue.drain(..max).collect::<Vec<_>>() {
            self.take_one(&request, 0, around)?;
        }
        Ok(max)
    }

    /// Lets the venue take a request, or lose it silently; `index` is the line of a request that arrived on one.
    pub fn take_one(&mut self, request: &Request, index: usize, around: &mut StepContext<'_>) -> RuleCheck {
        if self.silence.as_mut().is_some_and(Silence::loses_request) {
            around.tally.count("requests lost in silence");
            around.oracle.request_lost(request);
            return Ok(());
        }
        self.receive(request, index, around)?;
        match (around.plant, request) {
            (Some(PlantedBug::SentTwice), Request::New(_)) => self.receive(request, index, around),
            (Some(PlantedBug::PastTheOms), Request::New(new)) => {
                let cause = tag(0, 1 << 30 | new.client_order_id.0 & 0xffff_ffff);
                let client_order_id = tickpath_market::ClientOrderId(new.client_order_id.0 | 1 << 39);
                around.oracle.sent(cause);
                let own = Request::New(tickpath_market::NewOrder { client_order_id, cause, ..*new });
                self.receive(&own, index, around)
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self, request: &Request, index: usize, around: &mut StepContext<'_>) -> RuleCheck {
        around.oracle.arrived(request)?;
        around.tally.count("requests arrived");
        let mut made = Vec::new();
        // Our simulated venue rejects triggers: a trigger makes it reject an order that it would have accepted.
        let asked = match request {
            Request::New(new) if new.client_order_id.0 % REFUSED == 0 => {
                Request::Conditional(ConditionalOrder { order: *new, trigger: Trigger::default() })
            }
            request => *request,
        };
        self.venue.request(around.clock.ticks(), &asked, &mut made);
        self.queue_reports(made, index, around);
        Ok(())
    }

    fn queue_reports(&mut self, made: Vec<ExecutionReport>, index: usize, around: &mut StepContext<'_>) {
        for report in made {
            around.oracle.made(&report, around.tally);
            self.fills = self.fills.max(report.exec_id.0);
            if self.silence.as_mut().is_some_and(|silence| silence.loses_report(&report)) {
                around.tally.count("reports lost in silence");
                around.oracle.silent_losses.note(report.order_id.0);
                continue;
            }
            match &mut self.by {
                Some(lines) => lines.queue_report(report, index, around),
                None => self.from_venue.push_back(report),
            }
        }
    }

    /// Delivers at most this many reports through the gateway.
    pub fn deliver(&mut self, max: usize, around: &mut StepContext<'_>) -> usize {
        if let Some(lines) = &mut self.by {
            return lines.deliver(max);
        }
        let Some(lanes) = self.lanes.as_mut().filter(|_| self.unreported == 0) else { return 0 };
        for done in 0..max {
            let Some(&report) = self.from_venue.front() else { return done };
            let is_fill = report.exec_type == ExecType::Trade.code();
            let report = match around.plant {
                Some(PlantedBug::DroppedFill) if is_fill => {
                    self.from_venue.pop_front();
                    continue;
                }
                Some(PlantedBug::SmallerFill) if is_fill => ExecutionReport {
                    last_quantity: Quantity(report.last_quantity.0 / 2),
                    cumulative_quantity: Quantity(report.cumulative_quantity.0 / 2),
                    ..report
                },
                _ => report,
            };
            let kind = Kind::ExecutionReport.code();
            if lanes.reports.publish(around.clock.ticks(), kind, report.as_bytes()).is_err() {
                // The lane is full or the OMS is down: the report waits here.
                return done;
            }
            self.from_venue.pop_front();
        }
        max
    }

    /// Cuts the connection: a first part of the requests in flight has arrived, and the venue resends none, some or all
    /// of the reports in flight.
    pub fn cut(&mut self, dice: &mut Dice, around: &mut StepContext<'_>) -> RuleCheck {
        if self.by.is_some() {
            return self.cut_any_line(dice, around);
        }
        let arrived = dice.place(self.to_venue.len() + 1);
        self.take(arrived, around)?;
        let requests = std::mem::take(&mut self.to_venue).len() as u64;
        let mode = dice.below(3);
        let kept_until = dice.place(self.from_venue.len() + 1);
        let mut reports = 0;
        for (place, report) in (0..).zip(std::mem::take(&mut self.from_venue)) {
            let is_kept = match mode {
                0 => true,
                1 => place < kept_until,
                _ => dice.one_in(2),
            };
            if is_kept {
                self.from_venue.push_back(report);
            } else {
                around.oracle.vanished(&report);
                reports += 1;
            }
        }
        around.tally.add("requests lost on the wire", requests);
        around.tally.add("reports lost on the wire", reports);
        self.unreported += requests + reports;
        Ok(())
    }

    pub fn swap(&mut self, dice: &mut Dice) -> bool {
        let len = self.from_venue.len();
        if len < 2 {
            return false;
        }
        self.from_venue.swap(dice.place(len), dice.place(len));
        true
    }

    /// Duplicates a report, out of order.
    pub fn duplicate(&mut self, dice: &mut Dice) -> bool {
        let len = self.from_venue.len();
        if len == 0 {
            return false;
        }
        let from = dice.place(len);
        let report = self.from_venue[from];
        let behind = from + 1 + dice.place(len - from);
        self.from_venue.insert(behind, report);
        true
    }

    /// Busts or corrects a fill, as the venue's operator does.
    pub fn amend(&mut self, dice: &mut Dice, around: &mut StepContext<'_>) -> bool {
        if self.is_down() {
            return false;
        }
        let (fill, mut made) = (ExecId(1 + dice.below(self.fills)), Vec::new());
        let stamp = around.clock.ticks();
        let amended = match dice.one_in(2) {
            true => self.venue.bust(stamp, fill, &mut made),
            false => {
                let quantity = Quantity::from_whole(1 + dice.below(3) as i64);
                self.venue.correct(stamp, fill, Price::from_whole(100), quantity, &mut made)
            }
        };
        self.queue_reports(made, 0, around);
        amended.is_ok()
    }

    pub fn tick(&mut self, tick: &TopOfBook, around: &mut StepContext<'_>) {
        if self.is_down() {
            return;
        }
        let mut made = Vec::new();
        self.venue.top_of_book(around.clock.ticks(), tick, &mut made);
        self.queue_reports(made, 0, around);
    }

    pub fn end_day(&mut self, around: &mut StepContext<'_>) {
        let mut made = Vec::new();
        self.venue.end_of_day(around.clock.ticks(), &mut made);
        self.queue_reports(made, 0, around);
        around.oracle.venue_forgets(self.id);
    }

    /// Returns whether the venue's process is down.
    fn is_down(&self) -> bool {
        self.by.as_ref().is_some_and(|lines| lines.is_down)
    }

    /// Takes a report for the OMS off the wire.
    pub fn misroute(&mut self) -> Option<ExecutionReport> {
        self.from_venue.pop_front()
    }

    pub fn deliver_misrouted(&mut self, report: ExecutionReport) {
        self.from_venue.push_back(report);
    }

    /// Lets the venue take at most this many requests of each line.
    fn take_by_lines(&mut self, max: usize, around: &mut StepContext<'_>) -> Result<usize, BrokenRule> {
        let mut done = 0;
        for index in 0..self.by.as_ref().map_or(0, SimVenueLines::count) {
            if let Some(lines) = &mut self.by {
                lines.welcome(index, around);
            }
            done += self.take_by(index, max, around)?;
        }
        Ok(done)
    }

    fn take_by(&mut self, index: usize, max: usize, around: &mut StepContext<'_>) -> Result<usize, BrokenRule> {
        let mut done = 0;
        while done < max
            && let Some(request) = self.by.as_mut().map(|lines| lines.next(index)).transpose()?.flatten()
        {
            self.take_one(&request, index, around)?;
            done += 1;
        }
        if let (Some(lines), true) = (&mut self.by, done > 0) {
            lines.prove(index);
        }
        Ok(done)
    }

    /// Cuts a line.
    fn cut_line(&mut self, index: usize, why: &'static str, around: &mut StepContext<'_>) -> RuleCheck {
        let Some(arrived) = self.by.as_mut().and_then(|lines| lines.arriving(index)) else { return Ok(()) };
        self.take_by(index, arrived, around)?;
        if let Some(lines) = &mut self.by {
            lines.end(index, why, around);
        }
        Ok(())
    }

    /// Cuts one of the lines.
    pub fn cut_any_line(&mut self, dice: &mut Dice, around: &mut StepContext<'_>) -> RuleCheck {
        let ends = self.by.as_ref().map_or(0, SimVenueLines::count);
        around.tally.count("lines cut");
        self.cut_line(dice.place(ends), "cut", around)
    }

    /// Cuts all lines, because the OMS is gone.
    pub fn leave_lines(&mut self, around: &mut StepContext<'_>) -> RuleCheck {
        for index in 0..self.by.as_ref().map_or(0, SimVenueLines::count) {
            self.cut_line(index, "the OMS is gone", around)?;
            if let Some(lines) = &mut self.by {
                lines.leave(index, around);
            }
        }
        Ok(())
    }

    /// Kills the venue's process: the requests that it took are in its journal.
    pub fn kill_venue(&mut self, around: &mut StepContext<'_>) -> RuleCheck {
        for index in 0..self.by.as_ref().map_or(0, SimVenueLines::count) {
            self.cut_line(index, "the venue is gone", around)?;
        }
        if let Some(lines) = self.by.as_mut().filter(|lines| !lines.is_down) {
            around.tally.count("venues killed");
            lines.set_down(true);
        }
        Ok(())
    }

    /// Takes a line away for good, unless it is the last one.
    pub fn lose_line(&mut self, dice: &mut Dice, around: &mut StepContext<'_>) -> RuleCheck {
        let Some(lines) = &self.by else { return Ok(()) };
        let index = dice.place(lines.count());
        if !lines.may_leave_line(index) {
            return Ok(());
        }
        around.tally.count("lines away for good");
        self.cut_line(index, "it is away", around)?;
        if let Some(lines) = &mut self.by {
            lines.leave_line(index, around);
        }
        Ok(())
    }
}
