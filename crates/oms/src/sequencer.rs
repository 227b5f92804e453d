//! The single writer: journal, core, hold, and what the core says, in that order.

use std::collections::VecDeque;

use tickpath_clock::Clock;
use tickpath_log::{Message, Place};
use tickpath_market::{ExecutionReport, Price, Request, SymbolId, VenueId};
use tickpath_meter::Meter;
use tickpath_oms_journal::history::{History, Marks};
use tickpath_oms_journal::journal::Journal;
use tickpath_oms_journal::snapshot::SnapshotMaker;
use tickpath_oms_journal::{Definitions, JournalError, LaneKind};
use tickpath_orders::{
    At, Core, Counts, Departure, Doubt, Envelope, Input, Instrument, LOST_REPORTS, Line, Login, Output, Outputs,
    ReportRecord, Timer,
};

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

/// Idle turns between two looks at the clock.
const CLOCK_EVERY: u32 = 16;

/// Between two looks whether the venues live.
const VENUES_NS: u64 = 20_000_000;

/// After how many of these it is looked whether the market's topic is there.
const TICKS_EVERY: u32 = 50;

/// Busy turns between two looks at disk and venues.
const LOOK_EVERY: u32 = 256;

/// Journals inputs, applies the core, and lets out what it says.
pub struct Sequencer<C> {
    pub(crate) clock: C,
    pub(crate) core: Core,
    pub(crate) journal: Journal,
    pub(crate) outputs: Outputs,
    /// By venue and by session.
    pub(crate) venues: Vec<Option<Outbound>>,
    pub(crate) sessions: Vec<Outbound>,
    /// The lines: venue, and place among its lines.
    pub(crate) line_places: Vec<(VenueId, usize)>,
    /// What all lines have together: what wakes their thread, and how old their requests may be.
    pub(crate) line_shared: Option<crate::lines::Shared>,
    /// What is said to sessions that have no lanes, and what of it waits for the disk.
    pub(crate) history: Option<History>,
    pub(crate) late: VecDeque<Held>,
    /// What is asked by clients beside requests.
    pub(crate) window: Option<Box<dyn Window<C>>>,
    pub(crate) bell: Option<Bell>,
    /// The level of each session, and whether any waits for the disk.
    pub(crate) levels: Vec<AckLevel>,
    /// What the core knows of what can be traded, by whom, where.
    pub(crate) definitions: Definitions,
    pub(crate) commit: Option<Commit>,
    /// Outputs that are held.
    pub(crate) held: usize,
    /// Requests that a lane did not take just now, when they were received, and whether somebody reads that lane.
    pub(crate) returning: Vec<(VenueId, u64, Output, bool)>,
    pub(crate) busy_turns: u32,
    pub(crate) idle_turns: u32,
    /// When it was last looked whether the venues live, in ticks.
    pub(crate) venues_seen: u64,
    pub(crate) references: Vec<Reference>,
    /// What armed orders wait for.
    pub(crate) triggers: Triggers,
    pub(crate) sees_ticks: bool,
    /// How the last request left.
    pub(crate) departure: Departure,
    /// Messages that no client, venue or operator may send.
    pub(crate) refused: u64,
    pub(crate) disk_failed: bool,
    pub(crate) notices: Notices,
    pub(crate) meter: Option<Meter>,
    pub(crate) pages: Option<PageMaker>,
    pub(crate) snapshots: Option<SnapshotMaker>,
    /// A snapshot is due at this record.
    pub(crate) next_snapshot: u64,
    /// Orders without an answer of their venue.
    pub(crate) answers: Answers,
    /// The operator was told today that reports of unknown orders are dropped.
    pub(crate) told_strangers: bool,
    /// Questions of admins that wait for a venue's answer, and the answers.
    pub(crate) questions: Questions,
    /// The last day that ended by name, as 20261122; zero before the first.
    pub(crate) last_day: u32,
    /// The calendar by which days end.
    pub(crate) due: DueDay,
    pub(crate) lane_files: LaneFiles,
    /// Looks at the venues since somebody last looked whether the market's topic is there.
    pub(crate) looks: u32,
}

/// The core's side of a front.
pub trait Window<C: Clock>: Send {
    /// Answers what was asked, takes a desk that has changed, and tells what an operator must hear. Says how much that
    /// was.
    fn serve(&mut self, oms: &mut Sequencer<C>) -> Result<usize, OmsError>;
}

/// Wakes a front that sleeps.
pub type Bell = Box<dyn Fn() + Send + Sync>;

impl<C: Clock> Sequencer<C> {
    /// Takes a request of a client, as its lane holds it: T0 is the frame's stamp, `received` is T1.
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

    /// Takes a request that was read already: the message of its session's lane with this number.
    #[inline]
    pub fn accept(
        &mut self,
        session: u16,
        lane_sequence: u64,
        sent: u64,
        received: u64,
        request: Request,
    ) -> Result<(), OmsError> {
        // Whatever came this way: what is in the journal once is in every later start.
        if request.check().is_err() {
            self.refused += 1;
            return Ok(());
        }
        // A replace is held against the price of its order's symbol, whatever symbol it names.
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

    /// Takes a report from a venue's lane, received at `received`.
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

    /// Takes a report that was read already.
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

    /// Takes an input and lets out what it says.
    #[inline]
    pub(crate) fn take(&mut self, stamp: u64, input: &Input) -> Result<(), OmsError> {
        let sequence = self.apply(stamp, input)?;
        self.let_out(sequence, stamp)
    }

    /// Lets out what the core has said to an input, and does what comes behind it.
    #[inline]
    pub(crate) fn let_out(&mut self, sequence: u64, stamp: u64) -> Result<(), OmsError> {
        self.let_venues(sequence, stamp)?;
        self.let_sessions(sequence, stamp)?;
        self.after_input()
    }

    /// Takes what a lane brought, received at `received`.
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
            // Only lines say these.
            (Event::Returned(_) | Event::Lost { .. } | Event::LineUp(_) | Event::LineDown(_), _) => Ok(()),
        }
    }

    /// Messages of a lane are gone before they were taken. Lost reports put the venue's orders in doubt.
    #[cold]
    pub fn missed(&mut self, lane: LaneKind, messages: u64) -> Result<(), OmsError> {
        self.notices.add(Notice::Missed { lane, messages });
        match lane {
            LaneKind::VenueReports(venue) => self.doubt(venue, LOST_REPORTS, messages),
            _ => Ok(()),
        }
    }

    /// A lane is damaged: nothing more is taken from it. Without a venue's reports its orders are in doubt.
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

    /// A session's client has come, or is gone.
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

    /// What there is to do beside inputs: lets out what has become durable, what may go to venues again, and looks
    /// after disk and venues. Says how much that was. `is_idle` if there was nothing else to do: then there is time to
    /// ask after a venue that was away.
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

    /// True about once a second.
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
        // A look at the clock costs as much as a turn, and an order that comes meanwhile would wait for it.
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

    /// Waits for the disk, lets out what was held for it, and journals that the OMS stops in order and where the core
    /// stands.
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

    /// Orders by where they stand, and alarms.
    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Requests that wait for a venue.
    pub fn queued(&self) -> usize {
        self.venues.iter().enumerate().map(|(place, _)| self.core.waiting(VenueId(place as u16))).sum()
    }

    /// Outputs that wait for the disk.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Messages on the lanes that were none: dropped, counted, never journaled.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The last things that an operator must hear.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter()
    }

    /// How many there ever were.
    pub fn notice_count(&self) -> u64 {
        self.notices.count()
    }

    /// Who looks after what comes beside requests, and who is woken when something was said.
    pub fn attend(&mut self, window: Box<dyn Window<C>>, bell: Option<Bell>) {
        (self.window, self.bell) = (Some(window), bell);
    }

    /// Where the history of what is said can be read; none if there is none.
    pub fn history(&self) -> Option<Marks> {
        self.history.as_ref().map(History::marks)
    }

    /// The number of the next report of each session, of those that the history has.
    pub fn next_reports(&self) -> Vec<u64> {
        self.history.as_ref().map(|history| history.all_next().to_vec()).unwrap_or_default()
    }

    /// The journal's id.
    pub fn journal_id(&self) -> u64 {
        self.journal.id()
    }

    /// Where the journal lies.
    pub fn journal_place(&self) -> Place {
        self.journal.log().place().clone()
    }

    /// Records of the journal.
    pub fn records(&self) -> u64 {
        self.journal.tail().sequence
    }

    /// The venues that are up, and all.
    pub fn venues_up(&self) -> (usize, usize) {
        let venues = (0..self.venues.len()).filter(|&place| self.venues[place].is_some());
        let up = venues.clone().filter(|&place| self.core.is_up(VenueId(place as u16)));
        (up.count(), venues.count())
    }

    /// Whether the journal's disk has failed.
    pub fn has_disk_failed(&self) -> bool {
        self.disk_failed
    }

    /// The clock that its inputs are stamped by.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The core, for questions.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The instruments that can be traded now, from this number on, by ascending number.
    pub fn instruments_from(&self, first: SymbolId) -> impl Iterator<Item = &Instrument> {
        self.definitions.instruments_from(first)
    }

    /// Instead of a thread that commits, whoever holds this: for simulations. To be called before the first input.
    pub fn commit_by_hand(&mut self) -> Result<CommitByHand, OmsError> {
        let (commit, hand) = Commit::by_hand(self.journal.log()).map_err(JournalError::Disk)?;
        self.commit = Some(commit);
        Ok(hand)
    }

    /// The reference price of a symbol, and its age in nanoseconds.
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
