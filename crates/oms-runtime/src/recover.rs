//! Recovery at a start: replays the journal, and finds out which of its lanes still exist.
//!
//! A lane is ours if its header names our journal and the journal names it. An output's identity is its place in its
//! lane, so an output above a lane's tail was never sent: a request waits and is checked again, a report is published.
//! A lane that is ahead of the journal shows that the journal is an old copy, and the OMS refuses to start on it; a
//! session's lane, which its client can write, is lost instead.
//!
//! Any other lane is lost. Its replacement survives a kill at each step, by this order: the journal records the doubt,
//! a new lane replaces the evidence, the journal names the new lane, and only then is anything published on it. A lane
//! that the journal does not name yet is lost once more.

use std::collections::VecDeque;

use tickpath_clock::Calibration;
use tickpath_log::{Config, LogOpenError, LogOwner, LogPath, ProcessId, Reader, Writer, mandatory_reader, owner};
use tickpath_market::{Kind, Request};
use tickpath_oms_core::{At, Config as CoreConfig, Core, Input, Output};
use tickpath_oms_journal::journal::LogEnd;
use tickpath_oms_journal::{JournalError, LaneKind, LaneLedger, LineId, NextNumbers, history, snapshot};

use crate::OmsError;
use crate::front_end_reports::SessionMessage;
use crate::lanes::LanesConfig;

/// Result of a replay.
pub(crate) struct RecoveredOms {
    pub core: Core,
    pub ledger: LaneLedger,
    pub lanes: Vec<RecoveredLane>,
    pub end: LogEnd,
    pub report_replay: Option<ReportReplay>,
}

/// Reports to sessions without lanes, collected while the journal is replayed.
pub(crate) struct ReportReplay {
    pub history: history::existing::ExistingHistory,
    /// The first record of the journal's own log.
    pub first: u64,
    /// Counts of each session's reports and details: before the history's day, and so far.
    pub base: Option<NextNumbers>,
    pub counts: NextNumbers,
    /// Reports and details of that day that the history lacks, each with the record of its input.
    pub missing: VecDeque<(u64, SessionMessage)>,
}

impl ReportReplay {
    fn open(config: &Config, journal: &LogPath) -> Result<Self, OmsError> {
        let (found, first) = history::existing::ExistingHistory::read(config, journal)?;
        Ok(Self { history: found, first, base: None, counts: NextNumbers::default(), missing: VecDeque::new() })
    }

    /// Returns whether a replay can begin at record `next`, behind a snapshot, without losing a report of the day that
    /// began at record `day`.
    fn can_begin_at(&self, next: u64, ledger: &LaneLedger, day: u64) -> bool {
        next <= day || self.history.has_all(ledger.sent())
    }

    /// Notes that the replay begins at record `next`, and gives up a history whose day it cannot complete from there.
    fn begin(&mut self, next: u64, ledger: &LaneLedger) {
        if !self.can_begin_at(next, ledger, self.history.day()) {
            self.history.discard(self.first);
        }
        self.counts = ledger.sent().clone();
    }

    #[inline]
    fn note(&mut self, at: At, input: &Input, outputs: &[Output]) {
        if self.base.is_none() && at.sequence >= self.history.day() {
            self.base = Some(self.counts.clone());
        }
        for output in outputs {
            let (Output::Report { session, .. } | Output::Denied { session, .. } | Output::Extension { session, .. }) =
                output
            else {
                continue;
            };
            self.note_message(at, Kind::ExecutionReport, *session, SessionMessage::Report(*output));
        }
        if let Input::ReportDetail(record) = input
            && let Some(session) = record.session.checked_sub(1)
        {
            self.note_message(at, Kind::ReportDetail, session, SessionMessage::Detail(*record));
        }
    }

    /// Counts a message to a session, and keeps it if the history lacks it. Denials count as reports.
    fn note_message(&mut self, at: At, kind: Kind, session: u16, message: SessionMessage) {
        let next = self.counts.next_mut(kind.code(), session);
        let number = *next;
        *next += 1;
        let is_in_history = self.history.next(session).is_some_and(|next| next.is_behind(kind.code(), number));
        if at.sequence >= self.history.day() && !is_in_history {
            self.missing.push_back((at.sequence, message));
        }
    }
}

/// A lane and its state after the replay.
pub(crate) struct RecoveredLane {
    pub kind: LaneKind,
    pub config: Config,
    pub state: LaneState,
}

/// State of a lane after the replay.
pub(crate) enum LaneState {
    /// Present and ours; the OMS reads it.
    Inbound,
    /// Present and ours; the OMS writes it. With the outputs that the lane lacks, each with its input.
    Outbound(Box<Writer>, VecDeque<(At, Output)>),
    /// Never made, gone, or of another journal; with the reason.
    Lost(String),
}

impl RecoveredOms {
    /// Replays the journal against the existing lanes, from the last snapshot that covers no message which a lane
    /// lacks.
    pub fn open(
        journal: &LogPath,
        config: CoreConfig,
        lanes: &LanesConfig,
        history: Option<&Config>,
        calibration: &Calibration,
    ) -> Result<Self, OmsError> {
        lanes.refuse_second_oms()?;
        let mut reports = history.map(|history| ReportReplay::open(history, journal)).transpose()?;
        let candidates = lanes.kinds().map(|kind| CandidateLane::open(kind, lanes, calibration));
        let mut candidates = CandidateLanes::new(candidates.collect::<Result<_, _>>()?);
        let begin = |day| {
            snapshot::open_replay(journal, config, |next, ledger| {
                let has_reports = reports.as_ref().is_none_or(|reports| reports.can_begin_at(next, ledger, day));
                candidates.hold_all_before(ledger) && has_reports
            })
        };
        let (day, first) = reports.as_ref().map_or((0, 0), |reports| (reports.history.day(), reports.first));
        let begun = match begin(day) {
            // The reports that the history lacks of the last day are in no record any more: only the current day is
            // written, and in full.
            Err(JournalError::ArchiveGone { .. } | JournalError::CoreVersion { .. }) if day < first => begin(first),
            begun => begun,
        };
        let begun = match begun {
            // The messages that such a lane lacks are in no record that is left: the lane is lost, and does not stop
            // the others.
            Err(JournalError::ArchiveGone { .. }) => snapshot::open_replay(journal, config, |_, _| true),
            begun => begun,
        };
        let (mut replay, mut core) = begun?;
        candidates.resume_from(replay.ledger());
        if let Some(reports) = &mut reports {
            reports.begin(replay.sequence(), replay.ledger());
        }
        while replay.step(&mut core, |at, input, outputs| {
            candidates.note(at, input, outputs);
            if let Some(reports) = &mut reports {
                reports.note(at, input, outputs);
            }
        })? {}
        replay.check_end()?;
        let (ledger, epoch) = (replay.ledger().clone(), core.epoch());
        let lanes = candidates.classify(&ledger, epoch, calibration)?;
        Ok(Self { core, ledger, lanes, end: replay.log_end(), report_replay: reports })
    }
}

/// Lanes under judgement while the journal is replayed.
struct CandidateLanes {
    list: Vec<CandidateLane>,
    trails: Vec<OutputTrail>,
    /// Indices of the trails, by venue and by session.
    venues: Vec<Option<usize>>,
    sessions: Vec<Option<usize>>,
}

/// Replayed outputs to a venue or session, compared with its lane, or with the lanes of all its lines together. One
/// thread writes those lanes, so they hold the earliest outputs.
struct OutputTrail {
    kind: LaneKind,
    /// Indices of its lanes in the list.
    members: Vec<usize>,
    /// Number behind the last message in the lanes; `None` if it is not known.
    tail: Option<u64>,
    count: u64,
    /// Replayed outputs above the tail.
    unsent: VecDeque<(At, Output)>,
    /// Reason why the lanes are lost, if they are known to be.
    lost: Option<&'static str>,
}

impl CandidateLanes {
    fn new(list: Vec<CandidateLane>) -> Self {
        let (mut venues, mut sessions) = (Vec::<Option<usize>>::new(), Vec::<Option<usize>>::new());
        let mut trails = Vec::<OutputTrail>::new();
        for (lane, candidate) in list.iter().enumerate() {
            let (places, number) = match candidate.kind {
                LaneKind::VenueRequests(venue) | LaneKind::Line(LineId { venue, .. }) => (&mut venues, venue.0),
                LaneKind::Reports(session) => (&mut sessions, session),
                _ => continue,
            };
            let number = usize::from(number);
            places.resize(places.len().max(number + 1), None);
            match places[number] {
                Some(trail) => trails[trail].members.push(lane),
                None => {
                    places[number] = Some(trails.len());
                    trails.push(OutputTrail::new(candidate.kind, lane));
                }
            }
        }
        trails.iter_mut().for_each(|trail| trail.find_tail(&list));
        Self { list, trails, venues, sessions }
    }

    /// Returns whether each lane holds all outputs from before a snapshot: a replay from there does not yield them
    /// again.
    fn hold_all_before(&self, ledger: &LaneLedger) -> bool {
        self.trails.iter().all(|trail| trail.tail.is_none_or(|tail| tail >= ledger.next(trail.kind)))
    }

    fn resume_from(&mut self, ledger: &LaneLedger) {
        for trail in &mut self.trails {
            trail.count = ledger.next(trail.kind);
            if trail.tail.is_some_and(|tail| tail < trail.count) {
                trail.lost = Some("it lacks messages from before the snapshot, and the records before that are gone");
            }
        }
    }

    #[inline]
    fn note(&mut self, at: At, input: &Input, outputs: &[Output]) {
        if let Input::UnsentRequest(returned) = input
            && returned.place == 0
            && let Some(trail) = self.trail_of(LaneKind::VenueRequests(returned.venue))
        {
            trail.note_returned(returned.request());
        }
        if let Input::Report(record) = input
            && let Some(trail) = self.trail_of(LaneKind::VenueRequests(record.source))
        {
            trail.note_answered(record.report.client_order_id.0);
        }
        for output in outputs {
            if let Some(trail) = self.trail_of(lane_of(output)) {
                trail.append(at, output);
            }
        }
    }

    #[inline]
    fn trail_of(&mut self, lane: LaneKind) -> Option<&mut OutputTrail> {
        let (places, number) = match lane {
            LaneKind::VenueRequests(venue) => (&self.venues, venue.0),
            LaneKind::Reports(session) => (&self.sessions, session),
            _ => return None,
        };
        let trail = places.get(usize::from(number)).copied().flatten()?;
        self.trails.get_mut(trail)
    }

    /// Returns the state of each lane.
    fn classify(
        self,
        ledger: &LaneLedger,
        epoch: u64,
        calibration: &Calibration,
    ) -> Result<Vec<RecoveredLane>, OmsError> {
        let Self { list, mut trails, .. } = self;
        let mut lanes = Vec::with_capacity(list.len());
        for (index, candidate) in list.into_iter().enumerate() {
            let trail = trails.iter().find(|trail| trail.members.contains(&index));
            lanes.push(candidate.classify(trail, ledger, epoch, calibration)?);
        }
        for trail in &mut trails {
            lose_lines_together(trail, &mut lanes, ledger);
            // The first of several lanes carries the outputs that none of them holds.
            for &lane in &trail.members {
                if let LaneState::Outbound(_, unsent) = &mut lanes[lane].state {
                    *unsent = std::mem::take(&mut trail.unsent);
                    break;
                }
            }
        }
        Ok(lanes)
    }
}

/// Marks all lanes of a venue's lines as lost if the lane of one line is: the split of requests among the lines is then
/// unknown. A new line has lost nothing; a line that is not configured any more has, unless the others were made after
/// it.
fn lose_lines_together(trail: &OutputTrail, lanes: &mut [RecoveredLane], ledger: &LaneLedger) {
    let LaneKind::Line(LineId { venue, .. }) = trail.kind else { return };
    let mut is_lost = false;
    let mut oldest = u64::MAX;
    for &lane in &trail.members {
        let made = ledger.recorded_lane(lanes[lane].kind);
        match &lanes[lane].state {
            LaneState::Lost(_) => is_lost |= made.is_some(),
            _ => oldest = oldest.min(made.map_or(u64::MAX, |made| made.incarnation)),
        }
    }
    let is_configured = |index| trail.members.iter().any(|&lane| lanes[lane].kind.code().1 == index);
    is_lost |= ledger.recorded_lines(venue).any(|(index, made)| !is_configured(index) && made.incarnation >= oldest);
    if is_lost {
        for &lane in &trail.members {
            if matches!(lanes[lane].state, LaneState::Outbound(..)) {
                lanes[lane].state = LaneState::Lost("another line of its venue is lost".to_owned());
            }
        }
    }
}

/// A lane under judgement while the journal is replayed.
struct CandidateLane {
    kind: LaneKind,
    config: Config,
    owner: Result<LogOwner, LogOpenError>,
    /// Writer of an outbound lane that exists, or why it cannot be opened.
    writer: Option<Result<Writer, LogOpenError>>,
    /// Process that has our end of a session's lane without being an OMS.
    holder: Option<u32>,
}

impl CandidateLane {
    fn open(kind: LaneKind, lanes: &LanesConfig, calibration: &Calibration) -> Result<Self, OmsError> {
        let config = lanes.lane(kind)?;
        let owner = owner(&config.path);
        let is_ours_to_open = kind.is_outbound() && owner.is_ok();
        let writer = is_ours_to_open.then(|| match config.mandatory {
            true => Writer::open(&config, calibration),
            false => Writer::open_untrusted(&config, calibration),
        });
        let holder = match (kind, &writer) {
            // A client can lock a lane that it can write to.
            (LaneKind::Reports(_), Some(Err(LogOpenError::HasWriter { pid, .. }))) => Some(*pid),
            (LaneKind::Requests(_), _) => mandatory_reader(&config.path),
            // Any other writer of our lanes is another live OMS.
            (_, Some(Err(LogOpenError::HasWriter { place, pid }))) => {
                return Err(LogOpenError::HasWriter { place: place.clone(), pid: *pid }.into());
            }
            _ => None,
        };
        Ok(Self { kind, config, owner, writer, holder })
    }
}

impl OutputTrail {
    fn new(kind: LaneKind, member: usize) -> Self {
        Self { kind, members: vec![member], tail: None, count: 0, unsent: VecDeque::new(), lost: None }
    }

    /// Finds the number behind the last message. The lines of a venue share one count: each lane begins at the count at
    /// which it was made.
    fn find_tail(&mut self, list: &[CandidateLane]) {
        let ends = self.members.iter().filter_map(|&member| match (&list[member].owner, &list[member].writer) {
            (Ok(owner), Some(Ok(writer))) => Some((owner.base, writer.sequence())),
            _ => None,
        });
        let ends: Vec<(u64, u64)> = ends.collect();
        let first = ends.iter().map(|(base, _)| *base).min();
        self.tail = match self.kind {
            LaneKind::Line(_) => first.map(|first| ends.iter().fold(first, |tail, (base, end)| tail + (end - base))),
            _ => ends.first().map(|(_, end)| *end),
        };
    }

    #[inline]
    fn append(&mut self, at: At, output: &Output) {
        if self.tail.is_some_and(|tail| self.count >= tail) {
            self.unsent.push_back((at, *output));
        }
        self.count += 1;
    }

    /// Notes that a venue has answered a request. The request had left, so a lane that ends before it is an old copy.
    #[inline]
    fn note_answered(&mut self, id: u64) {
        let is_it =
            |output: &Output| matches!(output, Output::Venue { request, .. } if request.client_order_id().0 == id);
        if self.lost.is_none() && self.unsent.iter().rev().any(|(_, output)| is_it(output)) {
            self.lost = Some("it is older than a request that its venue has answered");
        }
    }

    /// Notes the journaled return of a request, which never left.
    fn note_returned(&mut self, returned: Option<Request>) {
        self.count = self.count.saturating_sub(1);
        let is_it =
            |(_, output): &(At, Output)| matches!(output, Output::Venue { request, .. } if Some(*request) == returned);
        match self.unsent.iter().position(is_it) {
            Some(index) => drop(self.unsent.remove(index)),
            // The request counted as sent, so all later numbers are one lower than they seemed: the first output above
            // the tail is in fact the last output below it.
            None => drop(self.unsent.pop_front()),
        }
    }
}

impl CandidateLane {
    fn classify(
        self,
        trail: Option<&OutputTrail>,
        ledger: &LaneLedger,
        epoch: u64,
        calibration: &Calibration,
    ) -> Result<RecoveredLane, OmsError> {
        let Self { kind, config, owner, writer, holder } = self;
        let is_lost = trail.and_then(|trail| trail.lost);
        let is_ahead = trail.and_then(|trail| trail.tail).is_some_and(|tail| tail > ledger.next(kind));
        let lost = |why: &str| LaneState::Lost(why.to_owned());
        let made = ledger.recorded_lane(kind).map(|made| made.incarnation);
        let state = match (owner, writer) {
            (Err(LogOpenError::NotFound(_)), _) => lost("it was missing"),
            (Err(e), _) => lost(&e.to_string()),
            (Ok(owner), _) if owner.journal != kind.journal_mark(ledger.journal()) => {
                lost("its files are those of another lane or journal")
            }
            (Ok(_), _) if let Some(pid) = holder => lost(&format!("{} has the OMS's end of it", ProcessId(pid))),
            (Ok(owner), _) if owner.incarnation > epoch && kind.is_session_lane() => {
                lost("it names a start that the journal lacks")
            }
            (Ok(owner), _) if owner.incarnation > epoch => {
                return Err(OmsError::JournalBehind { lane: kind, place: config.path });
            }
            (Ok(owner), _) if Some(owner.incarnation) != made => lost("the journal names a later one"),
            (Ok(_), None) => match Reader::observe_untrusted(&config.path) {
                // Its stamps cannot be compared with ours, and no client could join it.
                Ok(look) if !look.calibration().agrees_with(calibration) => lost("it is of another boot of this host"),
                // The operator's commands must be readable.
                Err(e) if kind == LaneKind::Control => lost(&e.to_string()),
                // The start sets an unreadable lane aside when it opens the reader.
                _ => LaneState::Inbound,
            },
            (Ok(_), Some(Err(e @ (LogOpenError::ConfigMismatch { .. } | LogOpenError::ReadersOfOtherBoot(_)))))
                if !kind.is_session_lane() =>
            {
                return Err(e.into());
            }
            (Ok(_), Some(Err(e))) => lost(&e.to_string()),
            (Ok(_), Some(Ok(_))) if is_ahead && kind.is_session_lane() => {
                lost("it holds more reports than the journal")
            }
            (Ok(_), Some(Ok(_))) if is_ahead => {
                return Err(OmsError::JournalBehind { lane: kind, place: config.path });
            }
            (Ok(_), Some(Ok(_))) if is_lost.is_some() => lost(is_lost.unwrap_or_default()),
            (Ok(_), Some(Ok(writer))) => LaneState::Outbound(Box::new(writer), VecDeque::new()),
        };
        Ok(RecoveredLane { kind, config, state })
    }
}

/// Returns the lane that an output belongs to.
pub(crate) fn lane_of(output: &Output) -> LaneKind {
    match output {
        Output::Venue { venue, .. } => LaneKind::VenueRequests(*venue),
        Output::Report { session, .. } | Output::Denied { session, .. } | Output::Extension { session, .. } => {
            LaneKind::Reports(*session)
        }
    }
}
