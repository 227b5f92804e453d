//! The start of an OMS: journal, epoch, doubts, lanes, definitions, in that order.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::meter::Meter;
use tickpath_clock::{Bucket, Calibration, Clock, Rate};
use tickpath_log::{Config as LogConfig, Next, OpenError, Owner, Reader, Start, Writer, owner};
use tickpath_market::{ExecutionReport, Request, VenueId};
use tickpath_oms_core::{
    At, Boot, Core, Departure, Doubt, Input, LOST_REPORTS, LOST_REQUESTS, Lane, Output, Outputs, RecordKind, Returned,
};
use tickpath_oms_journal::journal::{Journal, fresh_id};
use tickpath_oms_journal::snapshot::SnapshotMaker;
use tickpath_oms_journal::{Definitions, JournalError, LaneKind, Ledger, LineId, history};

use crate::OmsError;
use crate::answers::Answers;
use crate::calendar::DueDay;
use crate::commit::{AckLevel, Commit};
use crate::config::Config;
use crate::define::raise;
use crate::identity;
use crate::lanes::{LaneFiles, make, take_away};
use crate::layout::Source;
use crate::lines::{Bell, Lines, Shared};
use crate::notice::{Notice, Notices};
use crate::outbound::Outbound;
use crate::pages::PageMaker;
use crate::questions::Questions;
use crate::recover::{Found, Recovered, State, Telling};
use crate::sequencer::Sequencer;
use crate::triggers::Triggers;

/// Input sources of the OMS, as a start opens them.
pub struct Inbound {
    /// Request lanes of the sessions, report lanes of the venues, and the operator's control lane.
    pub(crate) sources: Vec<Source>,
    /// Sequence number of the next request, for each session without lanes.
    pub(crate) next_request: Vec<u64>,
}

/// Minutes from the Unix epoch to 2020.
const EPOCHS_SINCE: u64 = 50 * 365 * 24 * 60 + 12 * 24 * 60;
/// Number of epochs that the 24 bits in an order id hold: minutes until 2051, or as many starts.
const MOST_EPOCHS: u64 = 1 << 24;
/// Max starts by which an OMS may be ahead of the current minute, and of the start that made its lanes.
const MOST_STARTS: u64 = 60;
/// Minutes ahead of the current one from which a lane's epoch counts as damaged: a day, less the epochs that a start
/// skips behind that epoch.
const MOST_FAR: u64 = 24 * 60 - MOST_STARTS;

impl<C: Clock> Sequencer<C> {
    /// Replays the journal, puts lost messages in doubt, and brings lanes and logs up to the journal's end. The
    /// sequencer is then ready for the next input.
    pub fn open(clock: C, config: &Config) -> Result<(Self, Inbound), OmsError> {
        let calibration = *clock.calibration();
        // Opened before the replay: opening cuts a tail that a power loss tore.
        let id = fresh_id(config.seed, calibration.utc_ns_of(clock.ticks()));
        let mut journal = Journal::open(&config.journal, &calibration, id)?;
        let key = config.seed.unwrap_or_else(|| fresh_id(None, id));
        let laid_out = tickpath_oms_core::Config { expected_orders: config.expected_orders, key };
        let history = config.history.then(|| history::config(&config.journal));
        let recovered =
            Recovered::open(&config.journal.place, laid_out, &config.lanes, history.as_ref(), &calibration)?;
        let Recovered { core, ledger, lanes, end, telling } = recovered;
        // Before any write: settings files of another OMS, or of another day, must change nothing here.
        identity::check(&core, ledger.definitions(), &config.desk, |session| ledger.has_said(session))?;
        journal.go_on(ledger.journal(), end, clock.ticks())?;
        let mut sequencer = Self::on(clock, config, journal, core)?;
        if let Some(cut) = sequencer.journal.cut() {
            sequencer.notices.add(Notice::TailLost { sequence: cut.sequence, bytes: cut.bytes });
        }
        // A session's lane is writable by its client, so its epoch counts only within an hour of starts.
        let reach = |kind: LaneKind| if kind.is_of_session() { MOST_STARTS } else { MOST_FAR };
        let others =
            lanes.iter().filter_map(|lane| Some((owner(&lane.config.place).ok()?.incarnation, reach(lane.kind))));
        let epoch = sequencer.boot(others, &calibration)?;
        if let Some(telling) = telling {
            sequencer.go_on_telling(telling, &calibration)?;
        }
        let sources = sequencer.take_lanes(config, &ledger, lanes, epoch, &calibration)?;
        sequencer.definitions = ledger.definitions().clone();
        sequencer.last_day = ledger.last_day();
        if sequencer.journal_changes(&config.desk)? > 0 {
            sequencer.journal.sync()?;
        }
        sequencer.watch_armed();
        sequencer.journal.reserve()?;
        sequencer.watch_disk()?;
        sequencer.make_snapshots(config)?;
        sequencer.count(config, epoch)?;
        Ok((sequencer, Inbound { sources, next_request: ledger.taken().to_vec() }))
    }

    fn on(clock: C, config: &Config, journal: Journal, core: Core) -> Result<Self, OmsError> {
        let pages = config.seed.is_none().then(PageMaker::start).transpose().map_err(OmsError::Thread)?;
        Ok(Self { pages, levels: levels(config), ..Self::bare(clock, journal, core) })
    }

    /// Returns a sequencer without lanes, threads, history or meter.
    pub(crate) fn bare(clock: C, journal: Journal, core: Core) -> Self {
        Self {
            clock,
            core,
            journal,
            outputs: Outputs::new(),
            venues: Vec::new(),
            sessions: Vec::new(),
            line_places: Vec::new(),
            line_shared: None,
            history: None,
            late: VecDeque::new(),
            window: None,
            bell: None,
            levels: Vec::new(),
            definitions: Definitions::default(),
            commit: None,
            held: 0,
            returning: Vec::new(),
            busy_turns: 0,
            idle_turns: 0,
            venues_seen: 0,
            references: Vec::new(),
            triggers: Triggers::default(),
            sees_ticks: false,
            departure: Departure::default(),
            refused: 0,
            disk_failed: false,
            notices: Notices::default(),
            meter: None,
            pages: None,
            snapshots: None,
            next_snapshot: u64::MAX,
            answers: Answers::default(),
            told_strangers: false,
            questions: Questions::default(),
            last_day: 0,
            due: DueDay::default(),
            lane_files: LaneFiles::default(),
            looks: 0,
        }
    }

    /// Begins an epoch that no earlier start used, whatever the journal has lost, and syncs it to the disk before any
    /// order id contains it. The epoch is above the journal's last one and not before the current minute, which also
    /// holds for a journal that was restored from a copy; where lanes name a start that the journal does not know, the
    /// epoch skips as many as there may have been starts since.
    fn boot(&mut self, others: impl Iterator<Item = (u64, u64)>, calibration: &Calibration) -> Result<u64, OmsError> {
        let now = self.clock.ticks();
        let utc_ns = calibration.utc_ns_of(now);
        let minute = (utc_ns / 60_000_000_000).saturating_sub(EPOCHS_SINCE);
        let known = self.core.epoch();
        let mut epoch = minute.max(known + 1);
        let is_sound = |&(other, reach): &(u64, u64)| other > known && other < minute + reach;
        if let Some((other, _)) = others.filter(is_sound).max() {
            epoch = minute.max(other) + MOST_STARTS;
        }
        if epoch >= MOST_EPOCHS {
            return Err(OmsError::Epochs);
        }
        let boot_id = calibration.boot_id;
        let boot = Boot { epoch, boot_id, ticks_per_second: calibration.ticks_per_second, utc_ns };
        self.apply(now, &Input::Boot(boot))?;
        self.journal.sync()?;
        Ok(epoch)
    }

    /// Opens the history and appends the reports that it lacks.
    fn go_on_telling(&mut self, telling: Telling, calibration: &Calibration) -> Result<(), OmsError> {
        let Telling { found, first, base, said, mut above } = telling;
        if let Some(why) = found.lost(&said) {
            self.notices.add(Notice::HistoryLost(why.to_owned()));
        }
        let mut day = found.day();
        let mut history = found.open(&base.unwrap_or_else(|| said.clone()), &said, calibration)?;
        let now = self.clock.ticks();
        // Two rolls may be missing in the history: one by a process that was killed before it rolled the history, one
        // by this start.
        for next in [first, self.journal.log().first_sequence()] {
            let before = above.partition_point(|(sequence, _)| *sequence < next);
            for (_, output) in above.drain(..before) {
                history.say(now, &output)?;
            }
            if next != day {
                history.begin_day(next)?;
                day = next;
            }
        }
        for (_, output) in &above {
            history.say(now, output)?;
        }
        self.history = Some(history);
        Ok(())
    }

    /// Takes over the lanes of this journal, puts the content of lost lanes in doubt, and makes those lanes anew.
    fn take_lanes(
        &mut self,
        config: &Config,
        ledger: &Ledger,
        mut lanes: Vec<Found>,
        epoch: u64,
        calibration: &Calibration,
    ) -> Result<Vec<Source>, OmsError> {
        let mut said = Vec::new();
        for lane in &mut lanes {
            let venue = match lane.kind {
                LaneKind::VenueRequests(venue) | LaneKind::Line(LineId { venue, .. }) => venue,
                _ => continue,
            };
            if let State::Written(_, unsent) = &mut lane.state {
                said.extend(self.take_unsent(venue, std::mem::take(unsent))?);
            }
        }
        config.lanes.refuse_another()?;
        // Journals all doubts before the first lane is replaced: a second kill finds either the doubts or their
        // evidence.
        said.extend(self.doubt_lost(&lanes)?);
        self.journal.sync()?;
        let (mut sources, mut untold, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        // The control lane comes first, because its reader marks a running OMS: of two OMSes that start at once, the
        // second is refused before it touches a lane of the first.
        let (control, others): (Vec<_>, Vec<_>) = lanes.into_iter().partition(|lane| lane.kind == LaneKind::Control);
        let controls = control.len();
        for lane in control.into_iter().chain(others) {
            let Found { kind, config: lane, state } = lane;
            let (writer, above) = match state {
                State::Written(writer, above) => (Some(*writer), above),
                State::Ours => (None, VecDeque::new()),
                State::Lost(why) => {
                    let known = ledger.made(kind).is_some() || lane.place.dir().exists();
                    let writer = self.make_lane(kind, &lane, ledger, epoch, calibration)?;
                    if known {
                        self.notices.add(Notice::LaneLost { lane: kind, why });
                    }
                    (Some(writer), VecDeque::new())
                }
            };
            untold.extend(above);
            match (kind, writer) {
                (LaneKind::VenueRequests(venue), Some(writer)) => self.install_venue(venue, Outbound::new(writer)),
                (LaneKind::Line(line), Some(writer)) => {
                    self.install_line(line, writer, ledger, config)?;
                }
                (LaneKind::Reports(_), Some(writer)) => self.sessions.push(Outbound::new(writer)),
                (_, writer) => {
                    drop(writer);
                    let (source, found) = self.source(kind, &lane, ledger, config, calibration)?;
                    sources.push(source);
                    broken.extend(found.map(|found| (kind, found)));
                }
            }
        }
        let now = self.clock.ticks();
        for output in untold.into_iter().map(|(_, output)| output).chain(said) {
            match output {
                Output::Venue { venue, .. } => self.send(venue, now, output)?,
                Output::Report { session, .. } | Output::Denied { session, .. } => {
                    if let Some(log) = self.sessions.get_mut(usize::from(session)) {
                        log.publish(now, &output).map_err(OmsError::Lane)?;
                    } else if let Some(history) = &mut self.history {
                        history.say(now, &output)?;
                    }
                }
            }
        }
        // Broken sources come last: their outputs need all lanes, with the earlier outputs already published.
        for (lane, broken) in broken {
            match broken {
                Broken::Missed(messages) => self.missed(lane, messages)?,
                Broken::Unreadable(why) => self.quarantine(lane, why)?,
            }
        }
        self.take_back()?;
        // Admin commands come last in a turn.
        sources.rotate_left(controls);
        Ok(sources)
    }

    /// Gives requests that never reached the venue's lane back to the core, where they wait and are checked again.
    /// Returns the core's outputs.
    fn take_unsent(&mut self, venue: VenueId, unsent: VecDeque<(At, Output)>) -> Result<Vec<Output>, OmsError> {
        let mut said = Vec::new();
        if unsent.is_empty() {
            return Ok(said);
        }
        self.notices.add(Notice::Returned { venue, requests: unsent.len() as u64 });
        for (at, output) in unsent {
            let Output::Venue { request, .. } = output else { continue };
            self.apply(self.clock.ticks(), &Input::Returned(Returned::new(venue, at.stamp, &request)))?;
            said.extend_from_slice(self.outputs.as_slice());
        }
        Ok(said)
    }

    /// Puts the content of lost lanes in doubt, and the open orders of venues that have no lanes any more. Returns the
    /// core's outputs, none of which can leave before the lanes exist.
    fn doubt_lost(&mut self, lanes: &[Found]) -> Result<Vec<Output>, OmsError> {
        let is_lost = |kind: LaneKind| {
            lanes.iter().find(|lane| lane.kind == kind).is_none_or(|lane| matches!(lane.state, State::Lost(_)))
        };
        let venues: BTreeSet<VenueId> = self.core.live().map(|order| order.venue).collect();
        let mut said = Vec::new();
        for venue in venues {
            // A line's reports are requested again by number, so only requests in a lost lane are in doubt.
            let mut lines = lanes.iter().filter(|lane| is_line_of(lane.kind, venue)).peekable();
            let lost = match lines.peek() {
                Some(_) => vec![(lines.all(|lane| matches!(lane.state, State::Lost(_))), LOST_REQUESTS)],
                None => vec![
                    (is_lost(LaneKind::VenueRequests(venue)), LOST_REQUESTS),
                    (is_lost(LaneKind::VenueReports(venue)), LOST_REPORTS),
                ],
            };
            for (_, lost) in lost.into_iter().filter(|(is_lost, _)| *is_lost) {
                let doubt = Doubt { messages: 0, venue, lost, reserved: [0; 5] };
                self.apply(self.clock.ticks(), &Input::Doubt(doubt))?;
                said.extend_from_slice(self.outputs.as_slice());
                self.notices.add(Notice::Doubt { venue, unknown: self.core.counts().unknown });
            }
        }
        Ok(said)
    }

    fn make_lane(
        &mut self,
        kind: LaneKind,
        lane: &LogConfig,
        ledger: &Ledger,
        epoch: u64,
        calibration: &Calibration,
    ) -> Result<Writer, OmsError> {
        take_away(kind, &lane.place)?;
        let owner = Owner { journal: kind.mark(ledger.journal()), incarnation: epoch, base: ledger.next(kind) };
        let writer = make(lane.clone(), owner, calibration)?;
        let (carries, index) = kind.code();
        let record = Lane { incarnation: epoch, base: owner.base, index, carries, reserved: [0; 5] };
        self.journal.lane(self.clock.ticks(), &record)?;
        Ok(writer)
    }

    /// Adds a line to its venue. The line is down until the venue has reported which requests it has.
    fn install_line(&mut self, id: LineId, writer: Writer, ledger: &Ledger, config: &Config) -> Result<(), OmsError> {
        let Some(line) = config.lanes.lines.iter().find(|line| line.id == id) else { return Ok(()) };
        if self.lines(id.venue).is_none() {
            let shared = match &self.line_shared {
                Some(shared) => shared.clone(),
                None => Shared { bell: Arc::new(Bell::new()?), validity: Arc::default() },
            };
            self.line_shared = Some(shared.clone());
            self.install_venue(id.venue, Outbound::by(Lines::new(&self.clock, shared)));
        }
        let clock = self.clock.clone();
        if let Some(lines) = self.lines(id.venue) {
            let place = lines.len();
            lines.add(line, &config.lanes, writer, ledger, &clock)?;
            self.line_places.push((id.venue, place));
        }
        Ok(())
    }

    fn install_venue(&mut self, venue: VenueId, outbound: Outbound) {
        let place = usize::from(venue.0);
        if self.venues.len() <= place {
            self.venues.resize_with(place + 1, || None);
        }
        self.venues[place] = Some(outbound);
    }

    /// Opens the reader of a lane, behind the last message of it that the journal holds. An unreadable lane is returned
    /// as broken, to be set aside while the other lanes are read.
    fn source(
        &self,
        kind: LaneKind,
        lane: &LogConfig,
        ledger: &Ledger,
        config: &Config,
        calibration: &Calibration,
    ) -> Result<(Source, Option<Broken>), OmsError> {
        let session = match kind {
            LaneKind::Requests(session) => config.desk.sessions.iter().find(|rules| rules.session == session),
            _ => None,
        };
        let rate = match kind {
            LaneKind::Requests(_) => session.map(|rules| rules.rate).unwrap_or_default(),
            _ => Rate::UNLIMITED,
        };
        let watches = session.is_some_and(|rules| rules.cancel_on_disconnect);
        let bucket = Bucket::new(rate, calibration, self.clock.ticks());
        let (reader, broken) = match read_on(lane, ledger.next(kind)) {
            Ok((reader, missed)) => (Some(reader), (missed > 0).then_some(Broken::Missed(missed))),
            Err(e @ OpenError::HasReader { .. }) if !kind.is_of_session() => return Err(e.into()),
            Err(e) => (None, Some(Broken::Unreadable(e.to_string()))),
        };
        Ok((Source::new(kind, reader, bucket, watches), broken))
    }

    /// Starts the snapshot thread, if snapshots are configured. The thread avoids the core's processor.
    fn make_snapshots(&mut self, config: &Config) -> Result<(), OmsError> {
        if config.snapshot_every > 0 {
            let maker = SnapshotMaker::start(&config.journal.place, config.snapshot_every, config.other_cpu);
            self.snapshots = Some(maker.map_err(OmsError::Thread)?);
            self.next_snapshot = self.journal.tail().sequence + config.snapshot_every;
        }
        Ok(())
    }

    /// Starts the counters in shared memory and the watch over the lanes' files. A simulation, which has a seed, has no
    /// reader for the counters and skips both.
    fn count(&mut self, config: &Config, epoch: u64) -> Result<(), OmsError> {
        if config.seed.is_none() {
            self.meter = Some(Meter::open(&config.lanes.name, config.lanes.all_venues(), epoch, &self.levels_now())?);
            self.look_at_levels();
            self.lane_files = LaneFiles::of(&config.lanes)?;
        }
        Ok(())
    }

    /// Starts the commit thread, if any session asks for the disk level.
    pub(crate) fn watch_disk(&mut self) -> Result<(), OmsError> {
        if self.levels.contains(&AckLevel::Disk) {
            self.commit = Some(Commit::start(self.journal.log(), self.clock.clone()).map_err(JournalError::Disk)?);
        }
        Ok(())
    }
}

/// Fault that a start finds in a lane that it reads.
enum Broken {
    /// Number of messages below the lane's cursor that the journal does not hold.
    Missed(u64),
    Unreadable(String),
}

/// Opens a reader behind both the lane's cursor and the messages that the journal holds, and returns the number of
/// messages between the two. The cursor only moves behind the journal: a journal that was lost since held those
/// messages, and they are never taken again.
fn read_on(lane: &LogConfig, next: u64) -> Result<(Reader, u64), OpenError> {
    let reader = Reader::open_untrusted(&lane.place, Start::Cursor)?;
    let cursor = reader.sequence();
    if cursor < next {
        drop(reader);
        return Ok((Reader::open_untrusted(&lane.place, Start::Sequence(next))?, 0));
    }
    if cursor == next {
        return Ok((reader, 0));
    }
    let look = Reader::look_untrusted(&lane.place)?;
    Ok((reader, taken_before(look, next, cursor)))
}

/// Returns the durability level of each session.
fn levels(config: &Config) -> Vec<AckLevel> {
    let mut levels = vec![AckLevel::Os; config.lanes.sessions.into()];
    config.desk.sessions.iter().for_each(|session| raise(&mut levels, session.session, session.level));
    levels
}

fn is_line_of(kind: LaneKind, venue: VenueId) -> bool {
    matches!(kind, LaneKind::Line(line) if line.venue == venue)
}

/// Counts the frames of a lane between two numbers that may have been messages: readable messages, and frames that are
/// gone.
fn taken_before(mut lane: Reader, from: u64, to: u64) -> u64 {
    let mut none = 0;
    while let Ok(next) = lane.next() {
        match next {
            Next::Message(message) if message.sequence >= to => break,
            Next::Message(message) if message.sequence >= from => {
                let is_one = Request::read(message.kind, message.payload).is_ok()
                    || ExecutionReport::read(message.kind, message.payload).is_ok()
                    || RecordKind::from_code(message.kind).is_some();
                none += u64::from(!is_one);
            }
            Next::Message(_) | Next::Gap(_) => {}
            Next::Empty => break,
        }
    }
    to - from - none
}
