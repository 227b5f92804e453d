//! What a restart finds: the journal replayed, and which of its lanes are still there.
//!
//! A lane is ours if its header names our journal and the journal names it. An output's identity is its place in its
//! lane, so what lies above a lane's tail was never sent: a request waits and is checked again, a report is told. What
//! the journal does not know was never ours to take: a lane that is ahead of the journal shows that the journal is a copy
//! from before, and the OMS refuses to start on it; but not for the lane of a session, which its client can write.
//!
//! Any other lane is lost. The order of what follows holds however often the OMS is killed in the middle of it: first
//! the journal says what is in doubt, then the evidence is replaced by a new lane, then the journal names that lane, and
//! only then is anything published on it. A lane that the journal does not name yet is lost once more.

use std::collections::VecDeque;

use tickpath_clock::Calibration;
use tickpath_log::{Config, OpenError, Owner, Place, Process, Reader, Writer, mandatory_reader, owner};
use tickpath_market::Request;
use tickpath_oms_journal::journal::End;
use tickpath_oms_journal::{JournalError, LaneKind, Ledger, LineId, history, place_of, snapshot};
use tickpath_orders::{At, Config as CoreConfig, Core, Input, Output};

use crate::OmsError;
use crate::lanes::LanesConfig;

/// What is known after a replay.
pub(crate) struct Recovered {
    pub core: Core,
    pub ledger: Ledger,
    pub lanes: Vec<Found>,
    pub end: End,
    pub telling: Option<Telling>,
}

/// What was said to sessions that have no lanes, while the journal is replayed.
pub(crate) struct Telling {
    pub found: history::Found,
    /// The first record of the journal's own log.
    pub first: u64,
    /// Reports said to each session before the history's day, and now.
    pub base: Option<Vec<u64>>,
    pub said: Vec<u64>,
    /// What was said since that day began and is not in the history, with the record to which it was said.
    pub above: VecDeque<(u64, Output)>,
}

impl Telling {
    fn look(config: &Config, journal: &Place) -> Result<Self, OmsError> {
        let (found, first) = history::Found::beside(config, journal)?;
        Ok(Self { found, first, base: None, said: Vec::new(), above: VecDeque::new() })
    }

    /// Whether a start can go on from where a snapshot stands without losing a report of the day that began here.
    fn can_begin_at(&self, next: u64, ledger: &Ledger, day: u64) -> bool {
        next <= day || self.found.has_all(ledger.said())
    }

    /// The replay begins here.
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

/// A lane, and what became of it.
pub(crate) struct Found {
    pub kind: LaneKind,
    pub config: Config,
    pub state: State,
}

/// What became of a lane.
pub(crate) enum State {
    /// It is there and ours.
    Ours,
    /// It is there, ours, and we write it. What was said and does not lie in it, with the input that it was said to.
    Written(Box<Writer>, VecDeque<(At, Output)>),
    /// It never was, is gone, or is somebody else's.
    Lost(String),
}

impl Recovered {
    /// Replays the journal, from the last snapshot on that leaves nothing out which a lane has not, against the lanes that
    /// are there.
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
            // What the history lacks of the last day nobody can say again: this day's is said whole.
            Err(JournalError::ArchiveGone { .. } | JournalError::CoreVersion { .. }) if day < first => begin(first),
            begun => begun,
        };
        let begun = match begun {
            // What such a lane has not got is in no record that is left: it is lost, and nobody else waits for it.
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

/// The lanes while the journal is replayed.
struct Candidates {
    list: Vec<Candidate>,
    trails: Vec<Trail>,
    /// The trails: by venue, and by session.
    venues: Vec<Option<usize>>,
    sessions: Vec<Option<usize>>,
}

/// What the replay says to one venue or session, against what its lane holds, or its lines' lanes together: they are
/// written by one thread, so what they hold is what was said first.
struct Trail {
    kind: LaneKind,
    /// Where in the list its lanes are.
    members: Vec<usize>,
    /// The number behind what the lanes hold; none if that is not known.
    tail: Option<u64>,
    said: u64,
    /// What the replay has said above the tail.
    above: VecDeque<(At, Output)>,
    /// Why it cannot be what it was, if that is known.
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

    /// Whether each lane holds all that was said to it in a snapshot: what it does not hold is in no snapshot.
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

    /// What became of each lane.
    fn judge(self, ledger: &Ledger, epoch: u64, calibration: &Calibration) -> Result<Vec<Found>, OmsError> {
        let Self { list, mut trails, .. } = self;
        let mut lanes = Vec::with_capacity(list.len());
        for (place, candidate) in list.into_iter().enumerate() {
            let trail = trails.iter().find(|trail| trail.members.contains(&place));
            lanes.push(candidate.judge(trail, ledger, epoch, calibration)?);
        }
        for trail in &mut trails {
            lose_together(trail, &mut lanes, ledger);
            // Of several lanes the first brings what lies in none.
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

/// Where one line's lane is lost, nobody knows any more what the others were given: all lines of a venue are lost together.
/// A line that is new has lost nothing, and one that is not configured any more has, unless the others were made after it.
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

/// A lane while the journal is replayed.
struct Candidate {
    kind: LaneKind,
    config: Config,
    owner: Result<Owner, OpenError>,
    /// If we write it and it can be opened.
    writer: Option<Result<Writer, OpenError>>,
    /// The process that has our end of a session's lane, and is no OMS.
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
            // A client can lock what it can write to.
            (LaneKind::Reports(_), Some(Err(OpenError::HasWriter { pid, .. }))) => Some(*pid),
            (LaneKind::Requests(_), _) => mandatory_reader(&config.place),
            // Whoever else writes our lanes is another OMS, and it lives.
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

    /// Lines share what is said: each lane begins where the count stood when it was made.
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

    /// A venue has answered a request: it had left, and a lane that ends before it is an old copy.
    #[inline]
    fn hear_of(&mut self, request: u64) {
        let is_it = |(_, output): &(At, Output)| matches!(output, Output::Venue { request: said, .. } if said.client_order_id().0 == request);
        if !self.above.is_empty() && self.lost.is_none() && self.above.iter().rev().any(is_it) {
            self.lost = Some("it is older than what its venue has answered to");
        }
    }

    /// What was said never left; it was journaled already.
    fn take_back(&mut self, returned: Option<Request>) {
        self.said = self.said.saturating_sub(1);
        let is_it =
            |(_, output): &(At, Output)| matches!(output, Output::Venue { request, .. } if Some(*request) == returned);
        match self.above.iter().position(is_it) {
            Some(place) => drop(self.above.remove(place)),
            // It counted as one that had left, so all numbers behind it are one lower than they seemed: the first that
            // seemed to be above the tail is the last one below it.
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
                // Its stamps could not be compared with ours, and nobody could join it.
                Ok(look) if !look.calibration().agrees_with(calibration) => lost("it is of another boot of this host"),
                // An operator must be heard.
                Err(e) if kind == LaneKind::Control => lost(&e.to_string()),
                // One that cannot be read is set aside by who takes it up.
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

/// The log that an output belongs on.
pub(crate) fn lane_of(output: &Output) -> LaneKind {
    match output {
        Output::Venue { venue, .. } => LaneKind::VenueRequests(*venue),
        Output::Report { session, .. } | Output::Denied { session, .. } => LaneKind::Reports(*session),
    }
}
