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
use tickpath_log::{Config, OpenError, Owner, Place, Process, Reader, Writer, mandatory_reader, owner};
use tickpath_market::Request;
use tickpath_oms_core::{At, Config as CoreConfig, Core, Input, Output};
use tickpath_oms_journal::journal::End;
use tickpath_oms_journal::{JournalError, LaneKind, Ledger, LineId, history, place_of, snapshot};

use crate::OmsError;
use crate::lanes::LanesConfig;

/// Result of a replay.
pub(crate) struct Recovered {
    pub core: Core,
    pub ledger: Ledger,
    pub lanes: Vec<Found>,
    pub end: End,
    pub telling: Option<Telling>,
}

/// Reports to sessions without lanes, collected while the journal is replayed.
pub(crate) struct Telling {
    pub found: history::Found,
    /// The first record of the journal's own log.
    pub first: u64,
    /// Report counts of each session: before the history's day, and so far.
    pub base: Option<Vec<u64>>,
    pub said: Vec<u64>,
    /// Reports of that day that the history lacks, each with the record of its input.
    pub above: VecDeque<(u64, Output)>,
}

impl Telling {
    fn look(config: &Config, journal: &Place) -> Result<Self, OmsError> {
        let (found, first) = history::Found::beside(config, journal)?;
        Ok(Self { found, first, base: None, said: Vec::new(), above: VecDeque::new() })
    }

    /// Returns whether a replay can begin at record `next`, behind a snapshot, without losing a report of the day that
    /// began at record `day`.
    fn can_begin_at(&self, next: u64, ledger: &Ledger, day: u64) -> bool {
        next <= day || self.found.has_all(ledger.said())
    }

    /// Notes that the replay begins at record `next`, and gives up a history whose day it cannot complete from there.
    fn begin(&mut self, next: u64, ledger: &Ledger) {
        if !self.can_begin_at(next, ledger, self.found.day()) {
            self.found.give_up(self.first);
        }
        self.said = ledger.said().to_vec();
    }

    #[inline]
    fn note(&mut self, at: At, outputs: &[Output]) {
        let is_behind = at.sequence >= self.found.day();
        if self.base.is_none() && is_behind {
            self.base = Some(self.said.clone());
        }
        for output in outputs {
            let (Output::Report { session, .. } | Output::Denied { session, .. }) = output else { continue };
            let said = place_of(&mut self.said, *session);
            let number = *said;
            *said += 1;
            if is_behind && self.found.next(*session).is_none_or(|next| number >= next) {
                self.above.push_back((at.sequence, *output));
            }
        }
    }
}

/// A lane and its state after the replay.
pub(crate) struct Found {
    pub kind: LaneKind,
    pub config: Config,
    pub state: State,
}

/// State of a lane after the replay.
pub(crate) enum State {
    /// Present and ours; the OMS reads it.
    Ours,
    /// Present and ours; the OMS writes it. With the outputs that the lane lacks, each with its input.
    Written(Box<Writer>, VecDeque<(At, Output)>),
    /// Never made, gone, or of another journal; with the reason.
    Lost(String),
}

impl Recovered {
    /// Replays the journal against the existing lanes, from the last snapshot that covers no message which a lane
    /// lacks.
    pub fn open(
        journal: &Place,
        config: CoreConfig,
        lanes: &LanesConfig,
        history: Option<&Config>,
        calibration: &Calibration,
    ) -> Result<Self, OmsError> {
        lanes.refuse_another()?;
        let mut telling = history.map(|history| Telling::look(history, journal)).transpose()?;
        let candidates = lanes.kinds().map(|kind| Candidate::open(kind, lanes, calibration));
        let mut candidates = Candidates::new(candidates.collect::<Result<_, _>>()?);
        let begin = |day| {
            snapshot::begin(journal, config, |next, ledger| {
                let can_tell = telling.as_ref().is_none_or(|telling| telling.can_begin_at(next, ledger, day));
                candidates.have_all_of(ledger) && can_tell
            })
        };
        let (day, first) = telling.as_ref().map_or((0, 0), |telling| (telling.found.day(), telling.first));
        let begun = match begin(day) {
            // The reports that the history lacks of the last day are in no record any more: only the current day is
            // written, and in full.
            Err(JournalError::ArchiveGone { .. } | JournalError::CoreVersion { .. }) if day < first => begin(first),
            begun => begun,
        };
        let begun = match begun {
            // The messages that such a lane lacks are in no record that is left: the lane is lost, and does not stop
            // the others.
            Err(JournalError::ArchiveGone { .. }) => snapshot::begin(journal, config, |_, _| true),
            begun => begun,
        };
        let (mut replay, mut core) = begun?;
        candidates.go_on_from(replay.ledger());
        if let Some(telling) = &mut telling {
            telling.begin(replay.sequence(), replay.ledger());
        }
        while replay.step(&mut core, |at, input, outputs| {
            candidates.note(at, input, outputs);
            if let Some(telling) = &mut telling {
                telling.note(at, outputs);
            }
        })? {}
        replay.check_end()?;
        let (ledger, epoch) = (replay.ledger().clone(), core.epoch());
        let lanes = candidates.judge(&ledger, epoch, calibration)?;
        Ok(Self { core, ledger, lanes, end: replay.log_end(), telling })
    }
}

/// Lanes under judgement while the journal is replayed.
struct Candidates {
    list: Vec<Candidate>,
    trails: Vec<Trail>,
    /// Places of the trails, by venue and by session.
    venues: Vec<Option<usize>>,
    sessions: Vec<Option<usize>>,
}

/// Replayed outputs to a venue or session, compared with its lane, or with the lanes of all its lines together. One
/// thread writes those lanes, so they hold the earliest outputs.
struct Trail {
    kind: LaneKind,
    /// Places of its lanes in the list.
    members: Vec<usize>,
    /// Number behind the last message in the lanes; `None` if it is not known.
    tail: Option<u64>,
    said: u64,
    /// Replayed outputs above the tail.
    above: VecDeque<(At, Output)>,
    /// Reason why the lanes are lost, if they are known to be.
    lost: Option<&'static str>,
}

impl Candidates {
    fn new(list: Vec<Candidate>) -> Self {
        let (mut venues, mut sessions) = (Vec::<Option<usize>>::new(), Vec::<Option<usize>>::new());
        let mut trails = Vec::<Trail>::new();
        for (place, candidate) in list.iter().enumerate() {
            let (places, number) = match candidate.kind {
                LaneKind::VenueRequests(venue) | LaneKind::Line(LineId { venue, .. }) => (&mut venues, venue.0),
                LaneKind::Reports(session) => (&mut sessions, session),
                _ => continue,
            };
            match places.get(usize::from(number)).copied().flatten() {
                Some(trail) => trails[trail].members.push(place),
                None => {
                    put(places, number, trails.len());
                    trails.push(Trail::new(candidate.kind, place));
                }
            }
        }
        trails.iter_mut().for_each(|trail| trail.find_tail(&list));
        Self { list, trails, venues, sessions }
    }

    /// Returns whether each lane holds all outputs from before a snapshot: a replay from there does not yield them
    /// again.
    fn have_all_of(&self, ledger: &Ledger) -> bool {
        self.trails.iter().all(|trail| trail.tail.is_none_or(|tail| tail >= ledger.next(trail.kind)))
    }

    fn go_on_from(&mut self, ledger: &Ledger) {
        for trail in &mut self.trails {
            trail.said = ledger.next(trail.kind);
            if trail.tail.is_some_and(|tail| tail < trail.said) {
                trail.lost = Some("it lacks what was said before the snapshot, and the records before that are gone");
            }
        }
    }

    #[inline]
    fn note(&mut self, at: At, input: &Input, outputs: &[Output]) {
        if let Input::Returned(returned) = input
            && returned.place == 0
            && let Some(trail) = self.of(LaneKind::VenueRequests(returned.venue))
        {
            trail.take_back(returned.request());
        }
        if let Input::Report(record) = input
            && let Some(trail) = self.of(LaneKind::VenueRequests(record.source))
        {
            trail.hear_of(record.report.client_order_id.0);
        }
        for output in outputs {
            if let Some(trail) = self.of(lane_of(output)) {
                trail.say(at, output);
            }
        }
    }

    #[inline]
    fn of(&mut self, lane: LaneKind) -> Option<&mut Trail> {
        let (places, number) = match lane {
            LaneKind::VenueRequests(venue) => (&self.venues, venue.0),
            LaneKind::Reports(session) => (&self.sessions, session),
            _ => return None,
        };
        let place = places.get(usize::from(number)).copied().flatten()?;
        self.trails.get_mut(place)
    }

    /// Returns the state of each lane.
    fn judge(self, ledger: &Ledger, epoch: u64, calibration: &Calibration) -> Result<Vec<Found>, OmsError> {
        let Self { list, mut trails, .. } = self;
        let mut lanes = Vec::with_capacity(list.len());
        for (place, candidate) in list.into_iter().enumerate() {
            let trail = trails.iter().find(|trail| trail.members.contains(&place));
            lanes.push(candidate.judge(trail, ledger, epoch, calibration)?);
        }
        for trail in &mut trails {
            lose_together(trail, &mut lanes, ledger);
            // The first of several lanes carries the outputs that none of them holds.
            let here = trail.members.iter().find(|&&place| matches!(lanes[place].state, State::Written(..)));
            if let Some(&place) = here
                && let State::Written(_, above) = &mut lanes[place].state
            {
                *above = std::mem::take(&mut trail.above);
            }
        }
        Ok(lanes)
    }
}

/// Marks all lanes of a venue's lines as lost if the lane of one line is: the split of requests among the lines is then
/// unknown. A new line has lost nothing; a line that is not configured any more has, unless the others were made after
/// it.
fn lose_together(trail: &Trail, lanes: &mut [Found], ledger: &Ledger) {
    let LaneKind::Line(LineId { venue, .. }) = trail.kind else { return };
    let mut is_lost = false;
    let mut oldest = u64::MAX;
    for &place in &trail.members {
        let made = ledger.made(lanes[place].kind);
        match &lanes[place].state {
            State::Lost(_) => is_lost |= made.is_some(),
            _ => oldest = oldest.min(made.map_or(u64::MAX, |made| made.incarnation)),
        }
    }
    let is_here = |index| trail.members.iter().any(|&place| lanes[place].kind.code().1 == index);
    is_lost |= ledger.lines_made(venue).any(|(index, made)| !is_here(index) && made.incarnation >= oldest);
    if is_lost {
        for &place in &trail.members {
            if matches!(lanes[place].state, State::Written(..)) {
                lanes[place].state = State::Lost("another line of its venue is lost".to_owned());
            }
        }
    }
}

fn put(places: &mut Vec<Option<usize>>, number: u16, place: usize) {
    let number = usize::from(number);
    places.resize(places.len().max(number + 1), None);
    places[number] = Some(place);
}

/// A lane under judgement while the journal is replayed.
struct Candidate {
    kind: LaneKind,
    config: Config,
    owner: Result<Owner, OpenError>,
    /// Writer of an outbound lane that exists, or why it cannot be opened.
    writer: Option<Result<Writer, OpenError>>,
    /// Process that has our end of a session's lane without being an OMS.
    holder: Option<u32>,
}

impl Candidate {
    fn open(kind: LaneKind, lanes: &LanesConfig, calibration: &Calibration) -> Result<Self, OmsError> {
        let config = lanes.lane(kind)?;
        let owner = owner(&config.place);
        let is_ours_to_open = kind.is_outbound() && owner.is_ok();
        let writer = is_ours_to_open.then(|| match config.mandatory {
            true => Writer::open(&config, calibration),
            false => Writer::open_untrusted(&config, calibration),
        });
        let holder = match (kind, &writer) {
            // A client can lock a lane that it can write to.
            (LaneKind::Reports(_), Some(Err(OpenError::HasWriter { pid, .. }))) => Some(*pid),
            (LaneKind::Requests(_), _) => mandatory_reader(&config.place),
            // Any other writer of our lanes is another live OMS.
            (_, Some(Err(OpenError::HasWriter { place, pid }))) => {
                return Err(OpenError::HasWriter { place: place.clone(), pid: *pid }.into());
            }
            _ => None,
        };
        Ok(Self { kind, config, owner, writer, holder })
    }
}

impl Trail {
    fn new(kind: LaneKind, member: usize) -> Self {
        Self { kind, members: vec![member], tail: None, said: 0, above: VecDeque::new(), lost: None }
    }

    /// Finds the number behind the last message. The lines of a venue share one count: each lane begins at the count at
    /// which it was made.
    fn find_tail(&mut self, list: &[Candidate]) {
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
    fn say(&mut self, at: At, output: &Output) {
        if self.tail.is_some_and(|tail| self.said >= tail) {
            self.above.push_back((at, *output));
        }
        self.said += 1;
    }

    /// Notes that a venue has answered a request. The request had left, so a lane that ends before it is an old copy.
    #[inline]
    fn hear_of(&mut self, request: u64) {
        let is_it = |(_, output): &(At, Output)| matches!(output, Output::Venue { request: said, .. } if said.client_order_id().0 == request);
        if !self.above.is_empty() && self.lost.is_none() && self.above.iter().rev().any(is_it) {
            self.lost = Some("it is older than what its venue has answered to");
        }
    }

    /// Notes the journaled return of a request, which never left.
    fn take_back(&mut self, returned: Option<Request>) {
        self.said = self.said.saturating_sub(1);
        let is_it =
            |(_, output): &(At, Output)| matches!(output, Output::Venue { request, .. } if Some(*request) == returned);
        match self.above.iter().position(is_it) {
            Some(place) => drop(self.above.remove(place)),
            // The request counted as sent, so all later numbers are one lower than they seemed: the first output above
            // the tail is in fact the last output below it.
            None => drop(self.above.pop_front()),
        }
    }
}

impl Candidate {
    fn judge(
        self,
        trail: Option<&Trail>,
        ledger: &Ledger,
        epoch: u64,
        calibration: &Calibration,
    ) -> Result<Found, OmsError> {
        let Self { kind, config, owner, writer, holder } = self;
        let is_lost = trail.and_then(|trail| trail.lost);
        let is_ahead = trail.and_then(|trail| trail.tail).is_some_and(|tail| tail > ledger.next(kind));
        let lost = |why: &str| State::Lost(why.to_owned());
        let made = ledger.made(kind).map(|made| made.incarnation);
        let state = match (owner, writer) {
            (Err(OpenError::NotFound(_)), _) => lost("it was not there"),
            (Err(e), _) => lost(&e.to_string()),
            (Ok(owner), _) if owner.journal != kind.mark(ledger.journal()) => {
                lost("it is another lane, or belongs to another journal")
            }
            (Ok(_), _) if let Some(pid) = holder => lost(&format!("{} has the OMS's end of it", Process(pid))),
            (Ok(owner), _) if owner.incarnation > epoch && kind.is_of_session() => {
                lost("it names a start that never was")
            }
            (Ok(owner), _) if owner.incarnation > epoch => {
                return Err(OmsError::JournalBehind { lane: kind, place: config.place });
            }
            (Ok(owner), _) if Some(owner.incarnation) != made => lost("the journal knows a later one"),
            (Ok(_), None) => match Reader::look_untrusted(&config.place) {
                // Its stamps cannot be compared with ours, and no client could join it.
                Ok(look) if !look.calibration().agrees_with(calibration) => lost("it is of another boot of this host"),
                // The operator's commands must be readable.
                Err(e) if kind == LaneKind::Control => lost(&e.to_string()),
                // The start sets an unreadable lane aside when it opens the reader.
                _ => State::Ours,
            },
            (Ok(_), Some(Err(e @ OpenError::Differs { .. }))) if !kind.is_of_session() => return Err(e.into()),
            (Ok(_), Some(Err(e))) => lost(&e.to_string()),
            (Ok(_), Some(Ok(_))) if is_ahead && kind.is_of_session() => lost("it holds more than was said"),
            (Ok(_), Some(Ok(_))) if is_ahead => {
                return Err(OmsError::JournalBehind { lane: kind, place: config.place });
            }
            (Ok(_), Some(Ok(_))) if is_lost.is_some() => lost(is_lost.unwrap_or_default()),
            (Ok(_), Some(Ok(writer))) => State::Written(Box::new(writer), VecDeque::new()),
        };
        Ok(Found { kind, config, state })
    }
}

/// Returns the lane that an output belongs to.
pub(crate) fn lane_of(output: &Output) -> LaneKind {
    match output {
        Output::Venue { venue, .. } => LaneKind::VenueRequests(*venue),
        Output::Report { session, .. } | Output::Denied { session, .. } => LaneKind::Reports(*session),
    }
}
