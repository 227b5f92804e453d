//! The single writer: journal, core, held outputs and release, in that order.

use std::collections::VecDeque;

use crate::meter::OmsMeter;
use tickpath_clock::Clock;
use tickpath_log::{LogMessage, LogPath};
use tickpath_market::{ExecutionReport, Price, Request, SymbolId, VenueId};
use tickpath_oms_core::{
    At, Core, CoreCounts, Departure, Envelope, GapTimer, Input, Instrument, LOST_REPORTS, MessageLoss, Output, Outputs,
    ReportRecord, SessionConnection, VenueConnection,
};
use tickpath_oms_journal::history::{History, HistoryIndex};
use tickpath_oms_journal::journal::Journal;
use tickpath_oms_journal::snapshot::SnapshotMaker;
use tickpath_oms_journal::{Definitions, JournalError, LaneKind};

use crate::OmsError;
use crate::calendar::DaySchedule;
use crate::commit::{AckLevel, GroupCommit, ManualCommit};
use crate::lanes::{InputEvent, LaneFiles};
use crate::notice::{Notice, NoticeLog};
use crate::outbound::{Outbound, PendingOutput};
use crate::page_maker::PageMaker;
use crate::questions::Questions;
use crate::triggers::{ReferencePrices, Triggers};
use crate::unanswered::UnansweredOrders;

/// Idle turns between two reads of the clock.
const CLOCK_EVERY: u32 = 16;

/// Nanoseconds between two liveness checks of the venues.
const VENUES_NS: u64 = 20_000_000;

/// Venue checks between two checks that the market's topic still exists.
const TICKS_EVERY: u32 = 50;

/// Busy turns between two checks of disk and venues.
const CHECK_EVERY: u32 = 256;

/// Single writer of the journal: journals inputs, applies the core, and releases the core's outputs.
pub struct Sequencer<C> {
    pub(crate) clock: C,
    pub(crate) core: Core,
    pub(crate) journal: Journal,
    pub(crate) outputs: Outputs,
    /// Outbound logs, by venue and by session.
    pub(crate) venues: Vec<Option<Outbound>>,
    pub(crate) sessions: Vec<Outbound>,
    /// Lines of all venues: the venue, and the line's place among the venue's lines.
    pub(crate) line_places: Vec<(VenueId, usize)>,
    /// State that all lines share: the waker of their thread, and the max age of their requests.
    pub(crate) line_shared: Option<crate::lines::LinesContext>,
    /// Report log of the sessions without lanes, and the outputs for it that wait for the disk.
    pub(crate) history: Option<History>,
    pub(crate) held_reports: VecDeque<PendingOutput>,
    /// Control port of the front end: questions, changed desks and notices.
    pub(crate) control_port: Option<Box<dyn ControlPort<C>>>,
    pub(crate) waker: Option<FrontEndWaker>,
    /// Durability level of each session.
    pub(crate) levels: Vec<AckLevel>,
    /// Definitions that the core has: instruments, accounts, venues, sessions, limits and rights.
    pub(crate) definitions: Definitions,
    pub(crate) commit: Option<GroupCommit>,
    /// Number of held outputs.
    pub(crate) held: usize,
    /// Requests that a lane has just refused: venue, T1, request, and whether the lane has a reader.
    pub(crate) returned: Vec<(VenueId, u64, Output, bool)>,
    pub(crate) busy_turns: u32,
    pub(crate) idle_turns: u32,
    /// Time of the last liveness check of the venues, in ticks.
    pub(crate) venues_checked: u64,
    pub(crate) reference_prices: Vec<ReferencePrices>,
    /// Armed orders, by the prices that fire them.
    pub(crate) triggers: Triggers,
    pub(crate) sees_ticks: bool,
    /// Departure of the last request, which the record of the next request carries.
    pub(crate) departure: Departure,
    /// Number of messages that no client, venue or operator may send.
    pub(crate) refused: u64,
    pub(crate) disk_failed: bool,
    pub(crate) notices: NoticeLog,
    pub(crate) meter: Option<OmsMeter>,
    pub(crate) pages: Option<PageMaker>,
    pub(crate) snapshots: Option<SnapshotMaker>,
    /// Record number at which the next snapshot is due.
    pub(crate) next_snapshot: u64,
    /// Orders that wait for an answer of their venue.
    pub(crate) answers: UnansweredOrders,
    /// Whether the operator was notified today that reports of unknown orders are dropped.
    pub(crate) notified_unknown_orders: bool,
    /// Questions of admins that wait for a venue's answer, and the answers.
    pub(crate) questions: Questions,
    /// The last day that ended by name, as 20261122; zero before the first.
    pub(crate) last_day: u32,
    /// The calendar by which days end.
    pub(crate) day_schedule: DaySchedule,
    pub(crate) lane_files: LaneFiles,
    /// Venue checks since the last check that the market's topic exists.
    pub(crate) venue_checks: u32,
}

/// Control port: the core's side of a front end.
pub trait ControlPort<C: Clock>: Send {
    /// Answers questions, applies a changed desk, and reports notices to the operator. Returns the amount of work done.
    fn serve(&mut self, oms: &mut Sequencer<C>) -> Result<usize, OmsError>;
}

/// Waker of a sleeping front end.
pub type FrontEndWaker = Box<dyn Fn() + Send + Sync>;

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
                self.refused += 1;
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
            self.refused += 1;
            return Ok(());
        }
        // A replace is checked against the price of its order's symbol, whatever symbol it names.
        let symbol = match &request {
            Request::Replace(replace) => self.core.symbol_of(session, replace.original),
            _ => None,
        };
        let (reference_price, reference_age_ns) = self.reference(symbol.unwrap_or(request.symbol()), received);
        let envelope = Envelope {
            sent,
            released_before: self.departure.at,
            reference_price,
            reference_age_ns,
            session,
            flags_before: self.departure.flags(),
            no_ticks: u8::from(!self.sees_ticks),
            lane_sequence: lane_sequence as u32,
        };
        let sequence = self.apply(received, &Input::Request { envelope, request })?;
        self.departure = Departure::default();
        self.release_to_venues(sequence, received)?;
        let released = self.clock.ticks();
        self.departure.at = released;
        self.release_to_sessions(sequence, released)?;
        if let Some(meter) = &mut self.meter {
            let ns = |from: u64, to: u64| self.core.ns(to.saturating_sub(from));
            meter.count_request(ns(sent, received), ns(received, released), self.departure.handed_over);
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
                self.refused += 1;
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

    #[cold]
    pub(crate) fn request_snapshot(&mut self) {
        if let Some(snapshots) = &self.snapshots {
            self.next_snapshot = snapshots.request(self.journal.tail().sequence);
        }
    }

    /// Applies an input and releases its outputs.
    #[inline]
    pub(crate) fn apply_and_release(&mut self, stamp: u64, input: &Input) -> Result<(), OmsError> {
        let sequence = self.apply(stamp, input)?;
        self.release_outputs(sequence, stamp)
    }

    /// Releases the outputs of the last input, and does the work that follows every input.
    #[inline]
    pub(crate) fn release_outputs(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        self.release_to_venues(sequence, stamp)?;
        self.release_to_sessions(sequence, stamp)?;
        self.after_input()
    }

    /// Applies an event of a lane, received at `received`.
    #[inline]
    pub(crate) fn handle_event(
        &mut self,
        lane: LaneKind,
        received: u64,
        event: InputEvent<'_>,
    ) -> Result<(), OmsError> {
        match (event, lane) {
            (InputEvent::Message(message), LaneKind::Requests(session)) => {
                self.accept_request_frame(session, received, message)
            }
            (InputEvent::Message(message), LaneKind::VenueReports(venue)) => {
                self.accept_report_frame(venue, received, message)
            }
            (InputEvent::Message(message), LaneKind::Line(line)) => self.line_report(line, received, message),
            (event, LaneKind::Line(line)) => self.line_event(line, event),
            (InputEvent::Message(message), LaneKind::Control) => self.accept_control_frame(received, message),
            (InputEvent::Missed(messages), lane) => self.note_missed(lane, messages),
            (InputEvent::Damaged(why), lane) => self.quarantine(lane, why),
            (InputEvent::Login(up), LaneKind::Requests(session)) => self.note_login(session, up),
            (InputEvent::Message(_) | InputEvent::Login(_), _) => Ok(()),
            // Only lines send these events.
            (
                InputEvent::Returned(_) | InputEvent::Lost { .. } | InputEvent::LineUp(_) | InputEvent::LineDown(_),
                _,
            ) => Ok(()),
        }
    }

    /// Notes that messages of a lane were lost before they were taken. Lost reports put the venue's orders in doubt.
    #[cold]
    pub fn note_missed(&mut self, lane: LaneKind, messages: u64) -> Result<(), OmsError> {
        self.notices.add(Notice::Missed { lane, messages });
        match lane {
            LaneKind::VenueReports(venue) => self.doubt(venue, LOST_REPORTS, messages),
            _ => Ok(()),
        }
    }

    /// Notes that a damaged lane is read no more. Without its report lane a venue is down and its orders are in doubt;
    /// without its request lane a session is logged out.
    #[cold]
    pub fn quarantine(&mut self, lane: LaneKind, why: String) -> Result<(), OmsError> {
        self.notices.add(Notice::Quarantined { lane, why });
        match lane {
            LaneKind::VenueReports(venue) => {
                self.note_venue_line(venue, false)?;
                self.doubt(venue, LOST_REPORTS, 0)
            }
            LaneKind::Requests(session) => self.note_login(session, false),
            _ => Ok(()),
        }
    }

    /// Journals that a session's client has connected or disconnected.
    #[cold]
    pub fn note_login(&mut self, session: u16, up: bool) -> Result<(), OmsError> {
        let login = SessionConnection { session, up: u8::from(up), reserved: [0; 5] };
        self.apply_and_release(self.clock.ticks(), &Input::SessionConnection(login))
    }

    pub(crate) fn doubt(&mut self, venue: VenueId, lost: u8, messages: u64) -> Result<(), OmsError> {
        if !self.core.open_orders().any(|order| order.venue == venue) {
            return Ok(());
        }
        self.apply_and_release(
            self.clock.ticks(),
            &Input::MessageLoss(MessageLoss { messages, venue, lost, reserved: [0; 5] }),
        )?;
        self.notices.add(Notice::Doubt { venue, unknown: self.core.counts().unknown });
        Ok(())
    }

    pub(crate) fn note_venue_line(&mut self, venue: VenueId, up: bool) -> Result<(), OmsError> {
        self.notices.add(if up { Notice::VenueUp(venue) } else { Notice::VenueDown(venue) });
        self.apply_and_release(
            self.clock.ticks(),
            &Input::VenueConnection(VenueConnection { venue, up: u8::from(up), reserved: [0; 5] }),
        )
    }

    /// Does the work beside inputs: releases durable outputs and requests that waited for a venue, and checks disk and
    /// venues. Returns the amount of work done; `is_idle` marks a turn without other work, which has time for all
    /// checks.
    #[inline]
    pub fn do_housekeeping(&mut self, is_idle: bool) -> Result<usize, OmsError> {
        let mut done = 0;
        if self.held > 0 {
            done += self.release_held()?;
        }
        self.busy_turns = self.busy_turns.wrapping_add(1);
        if is_idle || self.busy_turns.is_multiple_of(CHECK_EVERY) {
            done += self.do_idle_housekeeping()?;
        }
        Ok(done)
    }

    /// Returns true about once a second.
    #[inline]
    pub(crate) fn is_ticks_check_due(&mut self) -> bool {
        let is_time = self.venue_checks >= TICKS_EVERY;
        if is_time {
            self.venue_checks = 0;
        }
        is_time
    }

    fn do_idle_housekeeping(&mut self) -> Result<usize, OmsError> {
        if let Some(commit) = &self.commit
            && commit.has_failed()
            && !self.disk_failed
        {
            let why = commit.error();
            return self.fail_disk(&why);
        }
        if let Some(failed) = self.snapshots.as_ref().and_then(SnapshotMaker::take_failure) {
            self.notices.add(Notice::SnapshotFailed(failed));
        }
        let mut done = 0;
        if let Some(mut window) = self.control_port.take() {
            let served = window.serve(self);
            self.control_port = Some(window);
            done = served?;
        }
        self.idle_turns = self.idle_turns.wrapping_add(1);
        // Reading the clock costs as much as a turn, and would delay an order that arrives meanwhile.
        if self.idle_turns.is_multiple_of(CLOCK_EVERY) {
            let now = self.clock.ticks();
            if now.wrapping_sub(self.venues_checked) > self.clock.calibration().ticks_of_ns(VENUES_NS) {
                self.venues_checked = now;
                self.venue_checks += 1;
                self.publish_gauges();
                if let Some((lanes, first)) = self.lane_files.check() {
                    self.notices.add(Notice::LanesRemoved { lanes, first });
                }
                done += self.check_venues()? + self.check_unanswered()? + self.end_due_day()?;
            }
        }
        if self.core.has_blocked_venue() {
            done += self.release_waiting()?;
        }
        if self.core.has_gaps() && self.core.needs_gap_timer(self.clock.ticks()) {
            self.apply_and_release(self.clock.ticks(), &Input::GapTimer(GapTimer::default()))?;
            done += 1;
        }
        Ok(done)
    }

    /// Waits for the disk, releases the held outputs, and journals the core's digest and an orderly stop.
    pub fn stop(&mut self) -> Result<(), OmsError> {
        if !self.disk_failed {
            self.journal.sync()?;
            self.commit = None;
            self.release_held()?;
        }
        let now = self.clock.ticks();
        self.journal.digest(now, &self.core.digest())?;
        self.journal.stop(now, self.departure)?;
        if !self.disk_failed {
            self.journal.sync()?;
        }
        Ok(())
    }

    /// Returns the numbers of orders by state, and of alarms.
    pub fn counts(&self) -> CoreCounts {
        self.core.counts()
    }

    /// Returns the number of requests that wait for a venue.
    pub fn queued(&self) -> usize {
        self.venues.iter().enumerate().map(|(place, _)| self.core.waiting(VenueId(place as u16))).sum()
    }

    /// Returns the number of held outputs, which wait for the disk or behind an output that does.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of invalid messages on the lanes: dropped, counted, never journaled.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the last notices to the operator.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter()
    }

    /// Returns the number of all notices so far, also of those that are no longer kept.
    pub fn notice_count(&self) -> u64 {
        self.notices.count()
    }

    /// Sets the control port, and the waker that is called when outputs were released.
    pub fn set_control_port(&mut self, window: Box<dyn ControlPort<C>>, bell: Option<FrontEndWaker>) {
        (self.control_port, self.waker) = (Some(window), bell);
    }

    /// Returns the index by which the history is read; `None` without a history.
    pub fn history_index(&self) -> Option<HistoryIndex> {
        self.history.as_ref().map(History::index)
    }

    /// Returns the number of the next report of each session in the history; empty without a history.
    pub fn next_reports(&self) -> Vec<u64> {
        self.history.as_ref().map(|history| history.next_numbers().to_vec()).unwrap_or_default()
    }

    /// Returns the journal's id.
    pub fn journal_id(&self) -> u64 {
        self.journal.id()
    }

    /// Returns the place of the journal's log.
    pub fn journal_place(&self) -> LogPath {
        self.journal.log().path().clone()
    }

    /// Returns the number of records in the journal.
    pub fn records(&self) -> u64 {
        self.journal.tail().sequence
    }

    /// Returns the number of venues that are up, and the number of all venues.
    pub fn venues_up(&self) -> (usize, usize) {
        let venues = (0..self.venues.len()).filter(|&place| self.venues[place].is_some());
        let up = venues.clone().filter(|&place| self.core.is_up(VenueId(place as u16)));
        (up.count(), venues.count())
    }

    /// Returns whether the journal's disk has failed.
    pub fn has_disk_failed(&self) -> bool {
        self.disk_failed
    }

    /// Returns the clock that stamps the inputs.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the core, for queries.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the instruments that can be traded now, from this number on, by ascending number.
    pub fn instruments_from(&self, first: SymbolId) -> impl Iterator<Item = &Instrument> {
        self.definitions.instruments_from(first)
    }

    /// Replaces the commit thread by a handle that commits on demand, for simulations. Must be called before the first
    /// input.
    pub fn commit_manually(&mut self) -> Result<ManualCommit, OmsError> {
        let (commit, hand) = GroupCommit::manual(self.journal.log()).map_err(JournalError::Disk)?;
        self.commit = Some(commit);
        Ok(hand)
    }

    /// Returns the reference price of a symbol, and its age in nanoseconds; `u64::MAX` without a price.
    #[inline]
    pub(crate) fn reference(&self, symbol: SymbolId, now: u64) -> (Price, u64) {
        let reference = self.reference_prices.get(symbol.0 as usize).copied().unwrap_or_default();
        let age = match reference.stamp {
            0 => u64::MAX,
            stamp => self.core.ns(now.saturating_sub(stamp)),
        };
        (reference.price, age)
    }

    #[inline]
    pub(crate) fn apply(&mut self, stamp: u64, input: &Input) -> Result<u64, OmsError> {
        let sequence = self.journal.append(stamp, input)?;
        self.core.apply(At { sequence, stamp }, input, &mut self.outputs);
        if self.core.armed_upper_bound() > 0 {
            self.triggers.note(self.outputs.as_slice());
        }
        Ok(sequence)
    }

    #[inline]
    pub(crate) fn after_input(&mut self) -> Result<(), OmsError> {
        if !self.returned.is_empty() {
            self.journal_returned()?;
        }
        if self.triggers.has_newly_armed() {
            self.watch_newly_armed()?;
        }
        if self.held > 0
            && let Some(commit) = &self.commit
        {
            commit.request_sync(self.journal.tail());
        }
        if self.journal.wants_digest() {
            self.journal.digest(self.clock.ticks(), &self.core.digest())?;
        }
        if self.journal.tail().sequence >= self.next_snapshot {
            self.request_snapshot();
        }
        if let Some(bell) = &self.waker {
            bell();
        }
        if self.core.needs_page()
            && let Some(page) = self.pages.as_ref().and_then(PageMaker::take)
        {
            self.core.add_page(page);
        }
        Ok(())
    }
}
