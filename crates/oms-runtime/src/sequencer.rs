//! The single writer: journal, core, held outputs and release, in that order.
//!
//! ```text
//!   request lane ──┐                                    ┌─> venue lane ─────────────────────────────────> venue
//!   report lane ───┤                                    ├─> VenueLines ─> lane of a line ─> LineAgent ──> venue
//!   LineAgent ─────┼─> journal, core ─> OutputRelease ──┼─> report log ─────────────────────────────────> client
//!   control lane ──┤     apply()                        └─> history ─> front end ───────────────────────> client
//!   ticks ─────────┘
//! ```
//!
//! A [`Sequencer`] owns parts, each with its own file and methods. This file has the steps of a request and of a
//! report; the files of `sequencer/` have the steps of all other inputs.

pub(crate) mod commands;
mod config_changes;
mod day_end;
mod gauges;
mod lane_events;
mod line_events;
pub(crate) mod maintenance;
mod overdue;
mod scheduled_close;
mod state;
mod ticks;
mod venue_reports;
mod waiting_outputs;

use tickpath_clock::Clock;
use tickpath_log::LogMessage;
use tickpath_market::{ExecutionReport, Price, Request, SymbolId, VenueId};
use tickpath_oms_core::{At, Core, Departure, Envelope, Input, Outputs, ReportRecord};
use tickpath_oms_journal::Definitions;
use tickpath_oms_journal::journal::Journal;
use tickpath_oms_journal::meter::OmsMeter;

use crate::OmsError;
use crate::day_state::DayState;
use crate::housekeeping::Housekeeping;
use crate::market_prices::MarketPrices;
use crate::notice::NoticeLog;
use crate::questions::Questions;
use crate::release::OutputRelease;
use crate::unanswered::UnansweredOrders;

/// Single writer of the journal: journals inputs, applies the core, and releases the core's outputs.
pub struct Sequencer<C> {
    pub(crate) clock: C,
    pub(crate) journal: Journal,
    pub(crate) core: Core,
    /// Outputs of the last input.
    pub(crate) outputs: Outputs,
    /// Outbound logs, and the outputs that wait in front of them.
    pub(crate) release: OutputRelease,
    /// Latest prices, and the armed orders that wait for them.
    pub(crate) market: MarketPrices,
    /// Definitions that the core has: instruments, accounts, venues, sessions, limits and rights.
    pub(crate) definitions: Definitions,
    /// Orders that wait for an answer of their venue.
    pub(crate) unanswered: UnansweredOrders,
    /// Questions of admins that wait for a venue's answer, and the answers.
    pub(crate) questions: Questions,
    /// The current trading day, and the calendar by which days end.
    pub(crate) day: DayState,
    /// Work beside inputs: the times of the next checks, snapshots and spare pages.
    pub(crate) housekeeping: Housekeeping,
    pub(crate) notices: NoticeLog,
    pub(crate) meter: Option<OmsMeter>,
    /// Number of messages that no client, venue or operator may send: dropped, counted, never journaled.
    pub(crate) invalid_messages: u64,
}

impl<C: Clock> Sequencer<C> {
    /// Accepts a client's request, as its lane holds it: T0 is the frame's stamp, `received` is T1. A frame that is no
    /// request is counted and dropped.
    #[inline]
    pub fn accept_request_frame(
        &mut self,
        session: u16,
        received: u64,
        message: &LogMessage<'_>,
    ) -> Result<(), OmsError> {
        match Request::read(message.kind, message.payload) {
            Ok(request) => self.accept_request(session, message.sequence, message.stamp, received, request),
            Err(_) => {
                self.invalid_messages += 1;
                Ok(())
            }
        }
    }

    /// Accepts a decoded request: the message with this number in its session's lane.
    #[inline]
    pub fn accept_request(
        &mut self,
        session: u16,
        lane_sequence: u64,
        sent: u64,
        received: u64,
        request: Request,
    ) -> Result<(), OmsError> {
        // Every path checks the request: an invalid one in the journal would return at every later start.
        if request.check().is_err() {
            self.invalid_messages += 1;
            return Ok(());
        }
        let envelope = self.envelope(session, lane_sequence, sent, received, &request);
        let sequence = self.apply(received, &Input::Request { envelope, request })?;
        self.release.departure = Departure::default();
        self.release_to_venues(sequence, received)?;
        let released = self.clock.ticks();
        self.release.departure.at = released;
        self.release_to_sessions(sequence, released)?;
        if let Some(meter) = &mut self.meter {
            let ns = |from: u64, to: u64| self.core.ns(to.saturating_sub(from));
            meter.count_request(ns(sent, received), ns(received, released), self.release.departure.handed_over);
        }
        self.after_input()
    }

    /// Accepts a report from a venue's lane, received at `received`. A frame that is no report is counted and dropped.
    #[inline]
    pub fn accept_report_frame(
        &mut self,
        venue: VenueId,
        received: u64,
        message: &LogMessage<'_>,
    ) -> Result<(), OmsError> {
        match ExecutionReport::read(message.kind, message.payload) {
            Ok(report) => self.accept_report(venue, message.sequence, received, report),
            Err(_) => {
                self.invalid_messages += 1;
                Ok(())
            }
        }
    }

    /// Accepts a decoded report.
    #[inline]
    pub fn accept_report(
        &mut self,
        venue: VenueId,
        lane_sequence: u64,
        received: u64,
        report: ExecutionReport,
    ) -> Result<(), OmsError> {
        let record = ReportRecord { report, source: venue, line: 0, lane_sequence: lane_sequence as u32 };
        self.apply_report(received, &Input::Report(record))?;
        self.query_after_loss(venue, &report)
    }

    /// Returns the facts that a request's record carries beside the request.
    #[inline]
    fn envelope(&self, session: u16, lane_sequence: u64, sent: u64, received: u64, request: &Request) -> Envelope {
        // A replace is checked against the price of its order's symbol, whatever symbol it names.
        let symbol = match request {
            Request::Replace(replace) => self.core.symbol_of(session, replace.original),
            _ => None,
        };
        let (reference_price, reference_age_ns) = self.reference(symbol.unwrap_or(request.symbol()), received);
        Envelope {
            sent,
            released_before: self.release.departure.at,
            reference_price,
            reference_age_ns,
            session,
            flags_before: self.release.departure.flags(),
            no_ticks: u8::from(!self.market.sees_ticks),
            lane_sequence: lane_sequence as u32,
        }
    }

    /// Returns the reference price of a symbol, and its age in nanoseconds; `u64::MAX` without a price.
    #[inline]
    pub(crate) fn reference(&self, symbol: SymbolId, now: u64) -> (Price, u64) {
        self.market.reference(symbol, |stamp| self.core.ns(now.saturating_sub(stamp)))
    }

    /// Applies an input and releases its outputs.
    #[inline]
    pub(crate) fn apply_and_release(&mut self, stamp: u64, input: &Input) -> Result<(), OmsError> {
        let sequence = self.apply(stamp, input)?;
        self.release_outputs(sequence, stamp)
    }

    /// Journals an input and applies it to the core, whose outputs wait for their release. Returns the input's journal
    /// sequence.
    #[inline]
    pub(crate) fn apply(&mut self, stamp: u64, input: &Input) -> Result<u64, OmsError> {
        let sequence = self.journal.append(stamp, input)?;
        self.core.apply(At { sequence, stamp }, input, &mut self.outputs);
        if self.core.armed_upper_bound() > 0 {
            self.market.triggers.note(self.outputs.as_slice());
        }
        Ok(sequence)
    }

    /// Releases the outputs of the last input, and does the work that follows every input.
    #[inline]
    pub(crate) fn release_outputs(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        self.release_to_venues(sequence, stamp)?;
        self.release_to_sessions(sequence, stamp)?;
        self.after_input()
    }

    /// Releases the last input's requests. Reading the clock costs as much as a check, so the frames carry T1.
    #[inline]
    pub(crate) fn release_to_venues(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        self.release.release_to_venues(&self.outputs, sequence, stamp)
    }

    /// Releases the last input's reports and denials.
    #[inline]
    pub(crate) fn release_to_sessions(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        self.release.release_to_sessions(&self.outputs, sequence, stamp, &mut self.meter)
    }

    /// Does the work that follows every input: applies the inputs that its outputs cause, and requests what is due.
    #[inline]
    pub(crate) fn after_input(&mut self) -> Result<(), OmsError> {
        if self.release.has_returned() {
            self.journal_returned()?;
        }
        if !self.market.triggers.newly_armed.is_empty() {
            self.watch_newly_armed()?;
        }
        if self.release.held() > 0 {
            self.release.durability.request_sync(self.journal.tail());
        }
        if self.journal.wants_digest() {
            self.journal.digest(self.clock.ticks(), &self.core.digest())?;
        }
        if self.housekeeping.is_snapshot_due(self.journal.tail().sequence) {
            self.housekeeping.request_snapshot(self.journal.tail().sequence);
        }
        self.release.front_end.wake();
        if self.core.needs_page()
            && let Some(page) = self.housekeeping.take_page()
        {
            self.core.add_page(page);
        }
        Ok(())
    }
}
