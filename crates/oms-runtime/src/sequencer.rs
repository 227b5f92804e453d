//! The single writer: journal, core, held outputs and release, in that order.

use std::collections::VecDeque;

use crate::meter::Meter;
use tickpath_clock::Clock;
use tickpath_log::{Message, Place};
use tickpath_market::{ExecutionReport, Price, Request, SymbolId, VenueId};
use tickpath_oms_core::{
    At, Core, Counts, Departure, Doubt, Envelope, Input, Instrument, LOST_REPORTS, Line, Login, Output, Outputs,
    ReportRecord, Timer,
};
use tickpath_oms_journal::history::{History, Marks};
use tickpath_oms_journal::journal::Journal;
use tickpath_oms_journal::snapshot::SnapshotMaker;
use tickpath_oms_journal::{Definitions, JournalError, LaneKind};

use crate::OmsError;
use crate::answers::Answers;
use crate::calendar::DueDay;
use crate::commit::{AckLevel, Commit, CommitByHand};
use crate::lanes::{Event, LaneFiles};
use crate::notice::{Notice, Notices};
use crate::outbound::{Held, Outbound};
use crate::pages::PageMaker;
use crate::questions::Questions;
use crate::triggers::{Reference, Triggers};

/// Idle turns between two reads of the clock.
const CLOCK_EVERY: u32 = 16;

/// Nanoseconds between two liveness checks of the venues.
const VENUES_NS: u64 = 20_000_000;

/// Venue checks between two checks that the market's topic still exists.
const TICKS_EVERY: u32 = 50;

/// Busy turns between two checks of disk and venues.
const LOOK_EVERY: u32 = 256;

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
    pub(crate) line_shared: Option<crate::lines::Shared>,
    /// Report log of the sessions without lanes, and the outputs for it that wait for the disk.
    pub(crate) history: Option<History>,
    pub(crate) late: VecDeque<Held>,
    /// Control port of the front end: questions, changed desks and notices.
    pub(crate) window: Option<Box<dyn Window<C>>>,
    pub(crate) bell: Option<Bell>,
    /// Durability level of each session.
    pub(crate) levels: Vec<AckLevel>,
    /// Definitions that the core has: instruments, accounts, venues, sessions, limits and rights.
    pub(crate) definitions: Definitions,
    pub(crate) commit: Option<Commit>,
    /// Number of held outputs.
    pub(crate) held: usize,
    /// Requests that a lane has just refused: venue, T1, request, and whether the lane has a reader.
    pub(crate) returning: Vec<(VenueId, u64, Output, bool)>,
    pub(crate) busy_turns: u32,
    pub(crate) idle_turns: u32,
    /// Time of the last liveness check of the venues, in ticks.
    pub(crate) venues_seen: u64,
    pub(crate) references: Vec<Reference>,
    /// Armed orders, by the prices that fire them.
    pub(crate) triggers: Triggers,
    pub(crate) sees_ticks: bool,
    /// Departure of the last request, which the record of the next request carries.
    pub(crate) departure: Departure,
    /// Number of messages that no client, venue or operator may send.
    pub(crate) refused: u64,
    pub(crate) disk_failed: bool,
    pub(crate) notices: Notices,
    pub(crate) meter: Option<Meter>,
    pub(crate) pages: Option<PageMaker>,
    pub(crate) snapshots: Option<SnapshotMaker>,
    /// Record number at which the next snapshot is due.
    pub(crate) next_snapshot: u64,
    /// Orders that wait for an answer of their venue.
    pub(crate) answers: Answers,
    /// Whether the operator was notified today that reports of unknown orders are dropped.
    pub(crate) told_strangers: bool,
    /// Questions of admins that wait for a venue's answer, and the answers.
    pub(crate) questions: Questions,
    /// The last day that ended by name, as 20261122; zero before the first.
    pub(crate) last_day: u32,
    /// The calendar by which days end.
    pub(crate) due: DueDay,
    pub(crate) lane_files: LaneFiles,
    /// Venue checks since the last check that the market's topic exists.
    pub(crate) looks: u32,
}

/// Control port: the core's side of a front end.
pub trait Window<C: Clock>: Send {
    /// Answers questions, applies a changed desk, and reports notices to the operator. Returns the amount of work done.
    fn serve(&mut self, oms: &mut Sequencer<C>) -> Result<usize, OmsError>;
}

/// Waker of a sleeping front end.
pub type Bell = Box<dyn Fn() + Send + Sync>;

impl<C: Clock> Sequencer<C> {
    /// Accepts a client's request, as its lane holds it: T0 is the frame's stamp, `received` is T1. A frame that is no
    /// request is counted and dropped.
    #[inline]
    pub fn request(&mut self, session: u16, received: u64, message: &Message<'_>) -> Result<(), OmsError> {
        match Request::read(message.kind, message.payload) {
            Ok(request) => self.accept(session, message.sequence, message.stamp, received, request),
            Err(_) => {
                self.refused += 1;
                Ok(())
            }
        }
    }

    /// Accepts a decoded request: the message with this number in its session's lane.
    #[inline]
    pub fn accept(
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
        self.let_venues(sequence, received)?;
        let released = self.clock.ticks();
        self.departure.at = released;
        self.let_sessions(sequence, released)?;
        if let Some(meter) = &mut self.meter {
            let ns = |from: u64, to: u64| self.core.ns(to.saturating_sub(from));
            meter.request(ns(sent, received), ns(received, released), self.departure.handed_over);
        }
        self.after_input()
    }

    /// Accepts a report from a venue's lane, received at `received`. A frame that is no report is counted and dropped.
    #[inline]
    pub fn report(&mut self, venue: VenueId, received: u64, message: &Message<'_>) -> Result<(), OmsError> {
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
        self.take_report(received, &Input::Report(record))?;
        self.ask_after_loss(venue, &report)
    }

    #[cold]
    pub(crate) fn ask_for_snapshot(&mut self) {
        if let Some(snapshots) = &self.snapshots {
            self.next_snapshot = snapshots.ask(self.journal.tail().sequence);
        }
    }

    /// Applies an input and releases its outputs.
    #[inline]
    pub(crate) fn take(&mut self, stamp: u64, input: &Input) -> Result<(), OmsError> {
        let sequence = self.apply(stamp, input)?;
        self.let_out(sequence, stamp)
    }

    /// Releases the outputs of the last input, and does the work that follows every input.
    #[inline]
    pub(crate) fn let_out(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        self.let_venues(sequence, stamp)?;
        self.let_sessions(sequence, stamp)?;
        self.after_input()
    }

    /// Applies an event of a lane, received at `received`.
    #[inline]
    pub(crate) fn event(&mut self, lane: LaneKind, received: u64, event: Event<'_>) -> Result<(), OmsError> {
        match (event, lane) {
            (Event::Message(message), LaneKind::Requests(session)) => self.request(session, received, message),
            (Event::Message(message), LaneKind::VenueReports(venue)) => self.report(venue, received, message),
            (Event::Message(message), LaneKind::Line(line)) => self.line_report(line, received, message),
            (event, LaneKind::Line(line)) => self.line_event(line, event),
            (Event::Message(message), LaneKind::Control) => self.control(received, message),
            (Event::Missed(messages), lane) => self.missed(lane, messages),
            (Event::Damaged(why), lane) => self.quarantine(lane, why),
            (Event::Login(up), LaneKind::Requests(session)) => self.login(session, up),
            (Event::Message(_) | Event::Login(_), _) => Ok(()),
            // Only lines send these events.
            (Event::Returned(_) | Event::Lost { .. } | Event::LineUp(_) | Event::LineDown(_), _) => Ok(()),
        }
    }

    /// Notes that messages of a lane were lost before they were taken. Lost reports put the venue's orders in doubt.
    #[cold]
    pub fn missed(&mut self, lane: LaneKind, messages: u64) -> Result<(), OmsError> {
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
                self.line(venue, false)?;
                self.doubt(venue, LOST_REPORTS, 0)
            }
            LaneKind::Requests(session) => self.login(session, false),
            _ => Ok(()),
        }
    }

    /// Journals that a session's client has connected or disconnected.
    #[cold]
    pub fn login(&mut self, session: u16, up: bool) -> Result<(), OmsError> {
        let login = Login { session, up: u8::from(up), reserved: [0; 5] };
        self.take(self.clock.ticks(), &Input::Login(login))
    }

    pub(crate) fn doubt(&mut self, venue: VenueId, lost: u8, messages: u64) -> Result<(), OmsError> {
        if !self.core.live().any(|order| order.venue == venue) {
            return Ok(());
        }
        self.take(self.clock.ticks(), &Input::Doubt(Doubt { messages, venue, lost, reserved: [0; 5] }))?;
        self.notices.add(Notice::Doubt { venue, unknown: self.core.counts().unknown });
        Ok(())
    }

    pub(crate) fn line(&mut self, venue: VenueId, up: bool) -> Result<(), OmsError> {
        self.notices.add(if up { Notice::VenueUp(venue) } else { Notice::VenueDown(venue) });
        self.take(self.clock.ticks(), &Input::Line(Line { venue, up: u8::from(up), reserved: [0; 5] }))
    }

    /// Does the work beside inputs: releases durable outputs and requests that waited for a venue, and checks disk and
    /// venues. Returns the amount of work done; `is_idle` marks a turn without other work, which has time for all
    /// checks.
    #[inline]
    pub fn chores(&mut self, is_idle: bool) -> Result<usize, OmsError> {
        let mut done = 0;
        if self.held > 0 {
            done += self.let_held()?;
        }
        self.busy_turns = self.busy_turns.wrapping_add(1);
        if is_idle || self.busy_turns.is_multiple_of(LOOK_EVERY) {
            done += self.idle_chores()?;
        }
        Ok(done)
    }

    /// Returns true about once a second.
    #[inline]
    pub(crate) fn is_time_to_look_at_ticks(&mut self) -> bool {
        let is_time = self.looks >= TICKS_EVERY;
        if is_time {
            self.looks = 0;
        }
        is_time
    }

    fn idle_chores(&mut self) -> Result<usize, OmsError> {
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
        if let Some(mut window) = self.window.take() {
            let served = window.serve(self);
            self.window = Some(window);
            done = served?;
        }
        self.idle_turns = self.idle_turns.wrapping_add(1);
        // Reading the clock costs as much as a turn, and would delay an order that arrives meanwhile.
        if self.idle_turns.is_multiple_of(CLOCK_EVERY) {
            let now = self.clock.ticks();
            if now.wrapping_sub(self.venues_seen) > self.clock.calibration().ticks_of_ns(VENUES_NS) {
                self.venues_seen = now;
                self.looks += 1;
                self.look_at_levels();
                if let Some((lanes, first)) = self.lane_files.look() {
                    self.notices.add(Notice::LanesRemoved { lanes, first });
                }
                done += self.look_after_venues()? + self.look_for_answers()? + self.end_due_day()?;
            }
        }
        if self.core.keeps_waiting() {
            done += self.serve_venues()?;
        }
        if self.core.misses_events() && self.core.wants_timer(self.clock.ticks()) {
            self.take(self.clock.ticks(), &Input::Timer(Timer::default()))?;
            done += 1;
        }
        Ok(done)
    }

    /// Waits for the disk, releases the held outputs, and journals the core's digest and an orderly stop.
    pub fn stop(&mut self) -> Result<(), OmsError> {
        if !self.disk_failed {
            self.journal.sync()?;
            self.commit = None;
            self.let_held()?;
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
    pub fn counts(&self) -> Counts {
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
    pub fn attend(&mut self, window: Box<dyn Window<C>>, bell: Option<Bell>) {
        (self.window, self.bell) = (Some(window), bell);
    }

    /// Returns the index by which the history is read; `None` without a history.
    pub fn history(&self) -> Option<Marks> {
        self.history.as_ref().map(History::marks)
    }

    /// Returns the number of the next report of each session in the history; empty without a history.
    pub fn next_reports(&self) -> Vec<u64> {
        self.history.as_ref().map(|history| history.all_next().to_vec()).unwrap_or_default()
    }

    /// Returns the journal's id.
    pub fn journal_id(&self) -> u64 {
        self.journal.id()
    }

    /// Returns the place of the journal's log.
    pub fn journal_place(&self) -> Place {
        self.journal.log().place().clone()
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
    pub fn commit_by_hand(&mut self) -> Result<CommitByHand, OmsError> {
        let (commit, hand) = Commit::by_hand(self.journal.log()).map_err(JournalError::Disk)?;
        self.commit = Some(commit);
        Ok(hand)
    }

    /// Returns the reference price of a symbol, and its age in nanoseconds; `u64::MAX` without a price.
    #[inline]
    pub(crate) fn reference(&self, symbol: SymbolId, now: u64) -> (Price, u64) {
        let reference = self.references.get(symbol.0 as usize).copied().unwrap_or_default();
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
        if self.core.armed_at_most() > 0 {
            self.triggers.note(self.outputs.as_slice());
        }
        Ok(sequence)
    }

    #[inline]
    pub(crate) fn after_input(&mut self) -> Result<(), OmsError> {
        if !self.returning.is_empty() {
            self.take_back()?;
        }
        if self.triggers.has_news() {
            self.watch_fresh()?;
        }
        if self.held > 0
            && let Some(commit) = &self.commit
        {
            commit.ask(self.journal.tail());
        }
        if self.journal.wants_digest() {
            self.journal.digest(self.clock.ticks(), &self.core.digest())?;
        }
        if self.journal.tail().sequence >= self.next_snapshot {
            self.ask_for_snapshot();
        }
        if let Some(bell) = &self.bell {
            bell();
        }
        if self.core.wants_page()
            && let Some(page) = self.pages.as_ref().and_then(PageMaker::take)
        {
            self.core.give_page(page);
        }
        Ok(())
    }
}
