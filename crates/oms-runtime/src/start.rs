//! The start of an OMS: journal, epoch, doubts, lanes, definitions, in that order.

use std::collections::{BTreeSet, VecDeque};

use tickpath_clock::{Calibration, Clock, RequestRate, TokenBucket};
use tickpath_log::{Config as LogConfig, LogOpenError, LogOwner, Next, Reader, ReaderStart, Writer, owner};
use tickpath_market::{ExecutionReport, Request, VenueId};
use tickpath_oms_core::{
    At, Boot, Core, Input, LOST_REPORTS, LOST_REQUESTS, LaneRecord, MessageLoss, Output, Outputs, RecordKind,
    UnsentRequest,
};
use tickpath_oms_journal::journal::{Journal, fresh_id};
use tickpath_oms_journal::meter::OmsMeter;
use tickpath_oms_journal::{Definitions, LaneKind, LaneLedger, LineId, history, identity};

use crate::OmsError;
use crate::config::Config;
use crate::day_state::DayState;
use crate::housekeeping::Housekeeping;
use crate::lane_source::LaneSource;
use crate::lanes::{make_lane, remove_stale};
use crate::market_prices::MarketPrices;
use crate::notice::{Notice, NoticeLog};
use crate::outbound::Outbound;
use crate::questions::Questions;
use crate::recover::{LaneState, RecoveredLane, RecoveredOms, ReportReplay};
use crate::release::OutputRelease;
use crate::sequencer::Sequencer;
use crate::session_durability::SessionDurability;
use crate::unanswered::UnansweredOrders;

/// Input sources of the OMS, as a start opens them.
pub struct InputSources {
    /// Request lanes of the sessions, report lanes of the venues, and the operator's control lane.
    pub(crate) sources: Vec<LaneSource>,
    /// Sequence number of the next request, for each session without lanes.
    pub(crate) next_request: Vec<u64>,
}

/// Minutes from the Unix epoch to 2020.
const EPOCH_ZERO_MINUTE: u64 = 50 * 365 * 24 * 60 + 12 * 24 * 60;
/// Number of epochs that the 24 bits in an order id hold: minutes until 2051, or as many starts.
const MAX_EPOCHS: u64 = 1 << 24;
/// Max starts by which an OMS may be ahead of the current minute, and of the start that made its lanes.
const MAX_STARTS: u64 = 60;
/// Minutes ahead of the current one from which a lane's epoch counts as damaged: a day, less the epochs that a start
/// skips behind that epoch.
const MAX_MINUTES_AHEAD: u64 = 24 * 60 - MAX_STARTS;

impl<C: Clock> Sequencer<C> {
    /// Replays the journal, puts lost messages in doubt, and brings lanes and logs up to the journal's end. The
    /// sequencer is then ready for the next input.
    pub fn open(clock: C, config: &Config) -> Result<(Self, InputSources), OmsError> {
        let calibration = *clock.calibration();
        // Opened before the replay: opening cuts a tail that a power loss tore.
        let id = fresh_id(config.seed, calibration.utc_ns_of(clock.ticks()));
        let mut journal = Journal::open(&config.journal, &calibration, id)?;
        let key = config.seed.unwrap_or_else(|| fresh_id(None, id));
        let layout = tickpath_oms_core::Config { expected_orders: config.expected_orders, key };
        let history = config.history.then(|| history::config(&config.journal));
        let RecoveredOms { core, ledger, lanes, end, report_replay } =
            RecoveredOms::open(&config.journal.path, layout, &config.lanes, history.as_ref(), &calibration)?;
        // Before any write: settings files of another OMS, or of another day, must change nothing here.
        identity::check(&core, ledger.definitions(), config.trading.identities(), |session| {
            ledger.has_messages(session)
        })?;
        journal.resume(ledger.journal(), end, clock.ticks())?;
        let mut sequencer = Self::bare(clock, journal, core);
        sequencer.release.durability = SessionDurability::of(config);
        if let Some(cut) = sequencer.journal.cut() {
            sequencer.notices.add(Notice::TailLost { sequence: cut.sequence, bytes: cut.bytes });
        }
        // A session's lane is writable by its client, so its epoch counts only within an hour of starts.
        let reach = |kind: LaneKind| if kind.is_session_lane() { MAX_STARTS } else { MAX_MINUTES_AHEAD };
        let others =
            lanes.iter().filter_map(|lane| Some((owner(&lane.config.path).ok()?.incarnation, reach(lane.kind))));
        sequencer.begin_epoch(others)?;
        if let Some(report_replay) = report_replay {
            sequencer.complete_history(report_replay)?;
        }
        let sources = sequencer.take_over_lanes(config, &ledger, lanes)?;
        sequencer.definitions = ledger.definitions().clone();
        sequencer.day.note_end(ledger.last_day());
        if sequencer.journal_changes(&config.trading)? > 0 {
            sequencer.journal.sync()?;
        }
        sequencer.market.watch_armed(&sequencer.core);
        sequencer.journal.reserve()?;
        sequencer.start_commit()?;
        sequencer.housekeeping = Housekeeping::start(config, sequencer.journal.tail().sequence)?;
        sequencer.start_counters(config)?;
        Ok((sequencer, InputSources { sources, next_request: ledger.next_requests().to_vec() }))
    }

    /// Returns a sequencer without lanes, threads, history or meter.
    pub(crate) fn bare(clock: C, journal: Journal, core: Core) -> Self {
        Self {
            clock,
            journal,
            core,
            outputs: Outputs::new(),
            release: OutputRelease::default(),
            market: MarketPrices::default(),
            definitions: Definitions::default(),
            unanswered: UnansweredOrders::default(),
            questions: Questions::default(),
            day: DayState::default(),
            housekeeping: Housekeeping::default(),
            notices: NoticeLog::default(),
            meter: None,
            invalid_messages: 0,
        }
    }

    /// Begins an epoch that no earlier start used, whatever the journal has lost, and syncs it to the disk before any
    /// order id contains it. The epoch is above the journal's last one and not before the current minute. That
    /// also holds for a journal that was restored from a copy, unless more starts than minutes had followed the copy; where lanes name a start that the journal does not know, the
    /// epoch skips as many as there may have been starts since.
    fn begin_epoch(&mut self, others: impl Iterator<Item = (u64, u64)>) -> Result<(), OmsError> {
        let Calibration { boot_id, ticks_per_second, .. } = *self.clock.calibration();
        let now = self.clock.ticks();
        let utc_ns = self.clock.calibration().utc_ns_of(now);
        let minute = (utc_ns / 60_000_000_000).saturating_sub(EPOCH_ZERO_MINUTE);
        let known = self.core.epoch();
        let mut epoch = minute.max(known + 1);
        let is_sound = |&(other, reach): &(u64, u64)| other > known && other < minute + reach;
        if let Some((other, _)) = others.filter(is_sound).max() {
            epoch = minute.max(other) + MAX_STARTS;
        }
        if epoch >= MAX_EPOCHS {
            return Err(OmsError::EpochsExhausted);
        }
        self.apply(now, &Input::Boot(Boot { epoch, boot_id, ticks_per_second, utc_ns }))?;
        self.journal.sync().map_err(OmsError::from)
    }

    /// Opens the history and appends the reports that it lacks.
    fn complete_history(&mut self, replay: ReportReplay) -> Result<(), OmsError> {
        let ReportReplay { history: found, first, base, counts, mut missing } = replay;
        if let Some(why) = found.loss_reason(&counts) {
            self.notices.add(Notice::HistoryLost(why.to_owned()));
        }
        let mut day = found.day();
        let mut history = found.open(&base.unwrap_or_else(|| counts.clone()), &counts, self.clock.calibration())?;
        let now = self.clock.ticks();
        // Two rolls may be missing in the history: one by a process that was killed before it rolled the history, one
        // by this start.
        for next in [first, self.journal.log().first_sequence()] {
            let before = missing.partition_point(|(sequence, _)| *sequence < next);
            for (_, message) in missing.drain(..before) {
                message.append_to(&mut history, now)?;
            }
            if next != day {
                history.begin_day(next)?;
                day = next;
            }
        }
        for (_, message) in &missing {
            message.append_to(&mut history, now)?;
        }
        self.release.front_end.history = Some(history);
        Ok(())
    }

    /// Takes over the lanes of this journal, puts the content of lost lanes in doubt, and makes those lanes anew.
    fn take_over_lanes(
        &mut self,
        config: &Config,
        ledger: &LaneLedger,
        mut lanes: Vec<RecoveredLane>,
    ) -> Result<Vec<LaneSource>, OmsError> {
        let mut new_outputs = Vec::new();
        for lane in &mut lanes {
            let venue = match lane.kind {
                LaneKind::VenueRequests(venue) | LaneKind::Line(LineId { venue, .. }) => venue,
                _ => continue,
            };
            if let LaneState::Outbound(_, unsent) = &mut lane.state {
                new_outputs.extend(self.return_unsent(venue, std::mem::take(unsent))?);
            }
        }
        config.lanes.refuse_second_oms()?;
        // Journals all doubts before the first lane is replaced: a second kill finds either the doubts or their
        // evidence.
        new_outputs.extend(self.doubt_lost(&lanes)?);
        self.journal.sync()?;
        let (mut sources, mut missing, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        // The control lane comes first, because its reader marks a running OMS: of two OMSes that start at once, the
        // second is refused before it touches a lane of the first.
        let (control, others): (Vec<_>, Vec<_>) = lanes.into_iter().partition(|lane| lane.kind == LaneKind::Control);
        let controls = control.len();
        for lane in control.into_iter().chain(others) {
            let RecoveredLane { kind, config: lane, state } = lane;
            let (writer, unsent) = match state {
                LaneState::Outbound(writer, unsent) => (Some(*writer), unsent),
                LaneState::Inbound => (None, VecDeque::new()),
                LaneState::Lost(why) => {
                    let known = ledger.recorded_lane(kind).is_some() || lane.path.dir().exists();
                    let writer = self.make_lane(kind, &lane, ledger)?;
                    if known {
                        self.notices.add(Notice::LaneLost { lane: kind, why });
                    }
                    (Some(writer), VecDeque::new())
                }
            };
            missing.extend(unsent);
            match (kind, writer) {
                (LaneKind::VenueRequests(venue), Some(writer)) => {
                    self.release.venues.install(venue, Outbound::new(writer));
                }
                (LaneKind::Line(id), Some(writer)) => {
                    if let Some(line) = config.lanes.lines.iter().find(|line| line.id == id) {
                        self.release.venues.install_line(line, &config.lanes, writer, ledger, &self.clock)?;
                    }
                }
                (LaneKind::Reports(_), Some(writer)) => self.release.sessions.push(Outbound::new(writer)),
                (_, writer) => {
                    drop(writer);
                    let (source, found) = self.open_source(kind, &lane, ledger, config)?;
                    sources.push(source);
                    broken.extend(found.map(|found| (kind, found)));
                }
            }
        }
        let now = self.clock.ticks();
        for output in missing.into_iter().map(|(_, output)| output).chain(new_outputs) {
            self.release.publish_missing(now, output)?;
        }
        // Broken sources come last: their outputs need all lanes, with the earlier outputs already published.
        for (lane, broken) in broken {
            match broken {
                LaneFault::Missed(messages) => self.note_missed(lane, messages)?,
                LaneFault::Unreadable(why) => self.quarantine(lane, why)?,
            }
        }
        self.journal_returned()?;
        // Admin commands come last in a turn.
        sources.rotate_left(controls);
        Ok(sources)
    }

    /// Gives requests that never reached the venue's lane back to the core, where they wait and are checked again.
    /// Returns the core's outputs.
    fn return_unsent(&mut self, venue: VenueId, unsent: VecDeque<(At, Output)>) -> Result<Vec<Output>, OmsError> {
        let mut new_outputs = Vec::new();
        if unsent.is_empty() {
            return Ok(new_outputs);
        }
        self.notices.add(Notice::Returned { venue, requests: unsent.len() as u64 });
        for (at, output) in unsent {
            let Output::Venue { request, .. } = output else { continue };
            self.apply(self.clock.ticks(), &Input::UnsentRequest(UnsentRequest::new(venue, at.stamp, &request)))?;
            new_outputs.extend_from_slice(self.outputs.as_slice());
        }
        Ok(new_outputs)
    }

    /// Puts the content of lost lanes in doubt, and the open orders of venues that have no lanes any more. Returns the
    /// core's outputs, none of which can leave before the lanes exist.
    fn doubt_lost(&mut self, lanes: &[RecoveredLane]) -> Result<Vec<Output>, OmsError> {
        let is_lost = |kind: LaneKind| {
            lanes.iter().find(|lane| lane.kind == kind).is_none_or(|lane| matches!(lane.state, LaneState::Lost(_)))
        };
        let venues: BTreeSet<VenueId> = self.core.open_orders().map(|order| order.venue).collect();
        let mut new_outputs = Vec::new();
        for venue in venues {
            // A line's reports are requested again by number, so only requests in a lost lane are in doubt.
            let is_line = |kind: LaneKind| matches!(kind, LaneKind::Line(line) if line.venue == venue);
            let mut lines = lanes.iter().filter(|lane| is_line(lane.kind)).peekable();
            let lost = match lines.peek() {
                Some(_) => vec![(lines.all(|lane| matches!(lane.state, LaneState::Lost(_))), LOST_REQUESTS)],
                None => vec![
                    (is_lost(LaneKind::VenueRequests(venue)), LOST_REQUESTS),
                    (is_lost(LaneKind::VenueReports(venue)), LOST_REPORTS),
                ],
            };
            for (_, lost) in lost.into_iter().filter(|(is_lost, _)| *is_lost) {
                let doubt = MessageLoss { messages: 0, venue, lost, reserved: [0; 5] };
                self.apply(self.clock.ticks(), &Input::MessageLoss(doubt))?;
                new_outputs.extend_from_slice(self.outputs.as_slice());
                self.notices.add(Notice::Doubt { venue, unknown: self.core.counts().unknown });
            }
        }
        Ok(new_outputs)
    }

    fn make_lane(&mut self, kind: LaneKind, lane: &LogConfig, ledger: &LaneLedger) -> Result<Writer, OmsError> {
        remove_stale(kind, &lane.path)?;
        let (incarnation, base) = (self.core.epoch(), ledger.next(kind));
        let owner = LogOwner { journal: kind.journal_mark(ledger.journal()), incarnation, base };
        let writer = make_lane(lane.clone(), owner, self.clock.calibration())?;
        let (carries, index) = kind.code();
        let record = LaneRecord { incarnation, base, index, carries, reserved: [0; 5] };
        self.journal.lane(self.clock.ticks(), &record)?;
        Ok(writer)
    }

    /// Opens the reader of a lane, behind the last message of it that the journal holds. An unreadable lane is returned
    /// as broken, to be set aside while the other lanes are read.
    fn open_source(
        &self,
        kind: LaneKind,
        lane: &LogConfig,
        ledger: &LaneLedger,
        config: &Config,
    ) -> Result<(LaneSource, Option<LaneFault>), OmsError> {
        let (session, rate) = match kind {
            LaneKind::Requests(session) => {
                let rules = config.trading.sessions.iter().find(|rules| rules.session == session);
                (rules, rules.map(|rules| rules.rate).unwrap_or_default())
            }
            _ => (None, RequestRate::UNLIMITED),
        };
        let watches = session.is_some_and(|rules| rules.cancel_on_disconnect);
        let bucket = TokenBucket::new(rate, self.clock.calibration(), self.clock.ticks());
        let (reader, broken) = match open_at(lane, ledger.next(kind)) {
            Ok((reader, missed)) => (Some(reader), (missed > 0).then_some(LaneFault::Missed(missed))),
            Err(e @ LogOpenError::HasReader { .. }) if !kind.is_session_lane() => return Err(e.into()),
            Err(e) => (None, Some(LaneFault::Unreadable(e.to_string()))),
        };
        Ok((LaneSource::new(kind, reader, bucket, watches), broken))
    }

    /// Starts the counters in shared memory. A simulation, which has a seed, has no reader for them.
    fn start_counters(&mut self, config: &Config) -> Result<(), OmsError> {
        if config.seed.is_none() {
            let (name, venues) = (&config.lanes.name, config.lanes.all_venues());
            self.meter = Some(OmsMeter::open(name, venues, self.core.epoch(), &self.current_gauges())?);
            self.publish_gauges();
        }
        Ok(())
    }
}

/// Fault that a start finds in a lane that it reads.
enum LaneFault {
    /// Number of messages below the lane's cursor that the journal does not hold.
    Missed(u64),
    Unreadable(String),
}

/// Opens a reader behind both the lane's cursor and the messages that the journal holds, and returns the number of
/// messages between the two. The cursor only moves behind the journal: a journal that was lost since held those
/// messages, and they are never taken again.
fn open_at(lane: &LogConfig, next: u64) -> Result<(Reader, u64), LogOpenError> {
    let reader = Reader::open_untrusted(&lane.path, ReaderStart::Cursor)?;
    let cursor = reader.sequence();
    if cursor < next {
        drop(reader);
        return Ok((Reader::open_untrusted(&lane.path, ReaderStart::Sequence(next))?, 0));
    }
    if cursor == next {
        return Ok((reader, 0));
    }
    let observer = Reader::observe_untrusted(&lane.path)?;
    Ok((reader, count_messages(observer, next, cursor)))
}

/// Counts the frames of a lane between two numbers that may have been messages: readable messages, and frames that are
/// gone.
fn count_messages(mut lane: Reader, from: u64, to: u64) -> u64 {
    let mut unreadable = 0;
    while let Ok(next) = lane.next() {
        match next {
            Next::Message(message) if message.sequence >= to => break,
            Next::Message(message) if message.sequence >= from => {
                let is_message = Request::read(message.kind, message.payload).is_ok()
                    || ExecutionReport::read(message.kind, message.payload).is_ok()
                    || RecordKind::from_code(message.kind).is_some();
                unreadable += u64::from(!is_message);
            }
            Next::Message(_) | Next::Gap(_) => {}
            Next::Empty => break,
        }
    }
    to - from - unreadable
}
