//! Recovery at a restart: replays the journal, and compares it with the lanes.
//!
//! ```text
//!   journal   request 5, tick 9, request 6, end of day …      replayed: the books, ids and counts as they were
//!   requests  … 5 6 │ 7 8        reading resumes behind the last request in the journal
//!   reports   … b c │            reports of the replay that the lane does not hold are sent now: d, e
//! ```
//!
//! The [crate] documentation has the rules for lanes that differ from those before. Design:
//! `docs/design/venue-restart.md`.

use std::collections::VecDeque;

use tickpath_log::{Config as LogConfig, LogOwner, LogReadError, Next, Reader, ReaderStart, Registration, Writer};
use tickpath_market::{ExecutionReport, TopOfBook};

use crate::error::RecoverError;
use crate::faults::{FaultInjector, InjectedFaults};
use crate::input::{LANES_ROUTE, VenueInput};
use crate::journal::{LaneJoin, LastTicks, VenueIdentity, VenueJournal, VenueRecord};
use crate::line_sessions::LineSessions;
use crate::owners::COMMON;
use crate::{Config, SimVenue};

/// Configuration of a line with a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Venue. An existing journal must have the same venue number; its symbols stay, and more can be added.
    pub venue: Config,
    /// Log of the journal, which must keep everything.
    pub journal: LogConfig,
    /// Quotes of the maker on a line without ticks, renewed when a side is used up. A bid must be below its offer, and
    /// a symbol has at most one quote.
    pub quotes: Vec<TopOfBook>,
    /// Injected faults.
    pub faults: InjectedFaults,
}

pub(crate) struct RecoveredVenue {
    pub venue: SimVenue,
    pub journal: VenueJournal,
    pub faults: FaultInjector,
    pub sessions: LineSessions,
    /// Number of requests that the lane overwrote before the venue read them.
    pub missed: u64,
    /// Reports of the replay that the lane does not hold.
    pub unsent: VecDeque<ExecutionReport>,
}

impl RecoveredVenue {
    /// Replays the journal against these lanes, or without lanes, or begins a journal, and moves the readers behind the
    /// journaled messages. `stamp` (ticks) is the time of the records written now.
    pub fn open(
        stamp: u64,
        config: &EngineConfig,
        log: Writer,
        lanes: Option<(&mut Reader, &Writer)>,
        market: Option<&mut Reader>,
    ) -> Result<Self, RecoverError> {
        let is_new = log.sequence() == 0;
        let mut replay = VenueReplay::new(config, lanes.as_ref().map(|(_, reports)| *reports));
        replay.run(&log)?;
        let VenueReplay { mut venue, ticks, mut faults, held, produced, route, .. } = replay;
        let mut journal = VenueJournal::new(log, ticks, route);
        let mut write =
            |record: VenueRecord| journal.append_from(LANES_ROUTE, stamp, &record).map_err(RecoverError::Journal);
        if is_new {
            write(VenueRecord::Identity(VenueIdentity::of(&config.venue)))?;
        }
        if venue.symbols() < config.venue.symbols {
            write(VenueRecord::SymbolsAdded(config.venue.symbols))?;
            venue.add_symbols(config.venue.symbols);
        }
        let mut missed = 0;
        if let Some((requests, reports)) = lanes {
            match held {
                Some(held) if held > produced => return Err(RecoverError::LaneAhead { held, produced }),
                Some(_) => {}
                None => write(VenueRecord::Reports(LaneJoin::new(reports.owner(), reports.sequence())))?,
            }
            match replay.requests.continues_on(requests)? {
                true => missed = skip(requests, replay.requests.next)?,
                false => write(VenueRecord::Requests(LaneJoin::new(requests.owner(), requests.sequence())))?,
            }
        }
        match market {
            Some(market) if replay.market.continues_on(market)? => {
                // Lost ticks are not counted: each tick replaces the one before.
                skip(market, replay.market.next)?;
            }
            Some(market) => write(VenueRecord::Market(LaneJoin::new(market.owner(), market.sequence())))?,
            None if replay.market.lane == Some(LaneJoin::QUOTES) => {}
            None => write(VenueRecord::Market(LaneJoin::QUOTES))?,
        }
        if let Some(chances) = faults.change(config.faults) {
            write(VenueRecord::Faults(chances))?;
        }
        Ok(Self { venue, journal, faults, sessions: replay.sessions, missed, unsent: replay.unsent })
    }
}

/// Moves a reader to the message `next` of its lane. Returns the number of messages from there on that are gone.
fn skip(reader: &mut Reader, next: u64) -> Result<u64, LogReadError> {
    while reader.sequence() < next && reader.next()? != Next::Empty {}
    Ok(reader.sequence().saturating_sub(next))
}

/// Inbound lane as recorded in the journal, with the next sequence number.
#[derive(Default)]
struct InboundLane {
    lane: Option<LaneJoin>,
    next: u64,
}

impl InboundLane {
    fn starting_at(lane: LaneJoin) -> Self {
        Self { lane: Some(lane), next: lane.first }
    }

    /// Returns whether this reader's lane is the recorded one, and reaches the recorded end.
    fn continues_on(&self, reader: &Reader) -> Result<bool, RecoverError> {
        if !self.lane.is_some_and(|lane| lane.is_of(reader.owner())) {
            return Ok(false);
        }
        let tail = Reader::open(reader.path(), ReaderStart::Now, Registration::Unregistered)?.sequence();
        Ok(tail >= self.next)
    }
}

struct VenueReplay {
    config: Config,
    venue: SimVenue,
    faults: FaultInjector,
    ticks: LastTicks,
    requests: InboundLane,
    market: InboundLane,
    owner: LogOwner,
    /// Sequence number at the end of the report lane.
    tail: u64,
    /// Number of this venue's reports in the report lane; none while the replayed records belong to another lane.
    held: Option<u64>,
    /// Number of reports that the replay produced for that lane.
    produced: u64,
    unsent: VecDeque<ExecutionReport>,
    sessions: LineSessions,
    route: usize,
    scratch: Vec<(usize, ExecutionReport)>,
}

impl VenueReplay {
    fn new(config: &EngineConfig, reports: Option<&Writer>) -> Self {
        Self {
            config: config.venue,
            venue: SimVenue::new(config.venue),
            faults: FaultInjector::default(),
            ticks: LastTicks::new(config.venue.symbols),
            requests: InboundLane::default(),
            market: InboundLane::default(),
            owner: reports.map_or(LogOwner::default(), Writer::owner),
            tail: reports.map_or(0, Writer::sequence),
            held: None,
            produced: 0,
            unsent: VecDeque::new(),
            sessions: LineSessions::default(),
            route: LANES_ROUTE,
            scratch: Vec::new(),
        }
    }

    fn run(&mut self, log: &Writer) -> Result<(), RecoverError> {
        let mut reader = Reader::open(log.path(), ReaderStart::Oldest, Registration::Unregistered)?;
        while let Next::Message(message) = reader.next()? {
            let record = VenueRecord::read(&message, &mut self.ticks).ok_or(RecoverError::Record(message.sequence))?;
            let (sequence, stamp) = (message.sequence, message.stamp);
            if (sequence == 0) != matches!(record, VenueRecord::Identity(_)) {
                return Err(RecoverError::Record(sequence));
            }
            self.apply(stamp, record)?;
        }
        Ok(reader.check_end()?)
    }

    fn apply(&mut self, stamp: u64, record: VenueRecord) -> Result<(), RecoverError> {
        match record {
            VenueRecord::Identity(identity) => self.check_identity(identity)?,
            VenueRecord::SymbolsAdded(symbols) => {
                self.venue.add_symbols(symbols);
                self.ticks.add_symbols(symbols);
            }
            VenueRecord::Faults(chances) => self.faults.set_chances(chances),
            VenueRecord::Route(route) => self.route = route as usize,
            VenueRecord::Requests(lane) if self.route != LANES_ROUTE => {
                self.sessions.start_requests(self.route, lane, COMMON)
            }
            VenueRecord::NamedLine(named) => self.sessions.start_requests(self.route, named.lane, named.oms),
            VenueRecord::Reports(lane) if self.route != LANES_ROUTE => self.sessions.start_reports(self.route, lane),
            VenueRecord::Confirmed(number) => self.sessions.apply_confirmed(self.route, number),
            VenueRecord::Requests(lane) => self.requests = InboundLane::starting_at(lane),
            VenueRecord::Market(lane) => self.market = InboundLane::starting_at(lane),
            VenueRecord::Reports(lane) => self.start_reports(lane),
            VenueRecord::Input(input) => self.input(stamp, &input),
        }
        Ok(())
    }

    fn check_identity(&mut self, identity: VenueIdentity) -> Result<(), RecoverError> {
        let VenueIdentity { rules, symbols, venue } = identity;
        if identity != (VenueIdentity { symbols, ..VenueIdentity::of(&self.config) }) {
            return Err(RecoverError::OtherVenue { venue, rules });
        }
        self.venue = SimVenue::new(Config { symbols, ..self.config });
        self.ticks = LastTicks::new(symbols);
        Ok(())
    }

    /// Starts the reports of a new lane. Reports for earlier lanes are dropped, sent or not.
    fn start_reports(&mut self, lane: LaneJoin) {
        self.held = self.tail.checked_sub(lane.first).filter(|_| lane.is_of(self.owner));
        self.produced = 0;
        self.unsent.clear();
        self.faults.drop_held();
    }

    fn input(&mut self, stamp: u64, input: &VenueInput) {
        match input {
            VenueInput::Request(sequence, _) if self.route == LANES_ROUTE => self.requests.next = sequence + 1,
            VenueInput::Tick(sequence, _) => self.market.next = sequence + 1,
            _ => {}
        }
        // Only requests have a route other than the lanes.
        let route = if matches!(input, VenueInput::Request(..)) { self.route } else { LANES_ROUTE };
        // The only error is a refused operator action, which had no effect before the restart either.
        let books = (&mut self.venue, &mut self.faults);
        let _ = self.sessions.apply(route, stamp, input, books, &mut self.scratch);
        for (route, report) in self.scratch.drain(..) {
            if route != LANES_ROUTE {
                self.sessions.keep_report(route, (0, report));
                continue;
            }
            self.produced += 1;
            if self.held.is_some_and(|held| self.produced > held) {
                self.unsent.push_back(report);
            }
        }
    }
}
