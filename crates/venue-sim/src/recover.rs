//! Recovery at a restart: replays the journal, and compares it with the lanes.
//!
//! ```text
//!   journal   request 5, tick 9, request 6, end of day …      replayed: the books, ids and counts as they were
//!   requests  … 5 6 │ 7 8        reading resumes behind the last request in the journal
//!   reports   … b c │            reports of the replay that the lane does not hold are sent now: d, e
//! ```
//!
//! The [crate] documentation has the rules for lanes that differ from those before.

use std::collections::VecDeque;

use tickpath_log::{Config as LogConfig, Next, Owner, ReadError, Reader, Registration, Start, Writer};
use tickpath_market::{ExecutionReport, TopOfBook};

use crate::error::RecoverError;
use crate::faults::{Faults, Faulty};
use crate::input::{Input, LANES};
use crate::journal::{Founded, Journal, Lane, LastTicks, Record};
use crate::owners::COMMON;
use crate::sessions::Sessions;
use crate::{Config, Venue};

/// Configuration of a line with a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct LineConfig {
    /// Venue. An existing journal must have the same venue number; its symbols stay, and more can be added.
    pub venue: Config,
    /// Log of the journal, which must keep everything.
    pub journal: LogConfig,
    /// Quotes of the maker on a line without ticks, renewed when a side is used up. A bid must be below its offer, and
    /// a symbol has at most one quote.
    pub quotes: Vec<TopOfBook>,
    /// Injected faults.
    pub faults: Faults,
}

/// Venue that was recovered from its journal and its lanes.
pub(crate) struct Recovered {
    pub venue: Venue,
    pub journal: Journal,
    pub faults: Faulty,
    pub sessions: Sessions,
    /// Number of requests that the lane overwrote before the venue read them.
    pub missed: u64,
    /// Reports of the replay that the lane does not hold.
    pub unsent: VecDeque<ExecutionReport>,
}

impl Recovered {
    /// Replays the journal against these lanes, or without lanes, or begins a journal, and moves the readers behind the
    /// journaled messages. `stamp` (ticks) is the time of the records written now.
    pub fn open(
        stamp: u64,
        config: &LineConfig,
        log: Writer,
        lanes: Option<(&mut Reader, &Writer)>,
        market: Option<&mut Reader>,
    ) -> Result<Self, RecoverError> {
        let is_new = log.sequence() == 0;
        let mut replay = Replay::new(config, lanes.as_ref().map(|(_, reports)| *reports));
        replay.run(&log)?;
        let Replay { mut venue, ticks, mut faults, held, said, way, .. } = replay;
        let mut journal = Journal::new(log, ticks, way);
        let mut write = |record: Record| journal.append_by(LANES, stamp, &record).map_err(RecoverError::Journal);
        if is_new {
            write(Record::Founded(Founded::of(&config.venue)))?;
        }
        if venue.symbols() < config.venue.symbols {
            write(Record::Listed(config.venue.symbols))?;
            venue.list(config.venue.symbols);
        }
        let mut missed = 0;
        if let Some((requests, reports)) = lanes {
            match held {
                Some(held) if held > said => return Err(RecoverError::Ahead { held, said }),
                Some(_) => {}
                None => write(Record::Reports(Lane::new(reports.owner(), reports.sequence())))?,
            }
            match replay.requests.goes_on(requests)? {
                true => missed = skip(requests, replay.requests.next)?,
                false => write(Record::Requests(Lane::new(requests.owner(), requests.sequence())))?,
            }
        }
        match market {
            Some(market) if replay.market.goes_on(market)? => {
                // Lost ticks are not counted: each tick replaces the one before.
                skip(market, replay.market.next)?;
            }
            Some(market) => write(Record::Market(Lane::new(market.owner(), market.sequence())))?,
            None if replay.market.lane == Some(Lane::QUOTES) => {}
            None => write(Record::Market(Lane::QUOTES))?,
        }
        if let Some(chances) = faults.change(config.faults) {
            write(Record::Faults(chances))?;
        }
        Ok(Self { venue, journal, faults, sessions: replay.sessions, missed, unsent: replay.unsent })
    }
}

/// Moves a reader to the message `next` of its lane. Returns the number of messages from there on that are gone.
fn skip(reader: &mut Reader, next: u64) -> Result<u64, ReadError> {
    while reader.sequence() < next && reader.next()? != Next::Empty {}
    Ok(reader.sequence().saturating_sub(next))
}

/// Inbound lane as recorded in the journal, with the next sequence number.
#[derive(Default)]
struct Inbound {
    lane: Option<Lane>,
    next: u64,
}

impl Inbound {
    fn met(lane: Lane) -> Self {
        Self { lane: Some(lane), next: lane.first }
    }

    /// Returns whether this reader's lane is the recorded one, and reaches the recorded end.
    fn goes_on(&self, reader: &Reader) -> Result<bool, RecoverError> {
        if !self.lane.is_some_and(|lane| lane.is_of(reader.owner())) {
            return Ok(false);
        }
        let tail = Reader::open(reader.place(), Start::Now, Registration::Unregistered)?.sequence();
        Ok(tail >= self.next)
    }
}

/// State of a replay.
struct Replay {
    config: Config,
    venue: Venue,
    faults: Faulty,
    ticks: LastTicks,
    requests: Inbound,
    market: Inbound,
    /// Owner of the report lane.
    owner: Owner,
    /// Sequence number at the end of the report lane.
    tail: u64,
    /// Number of this venue's reports in the report lane; none while the replayed records belong to another lane.
    held: Option<u64>,
    /// Number of reports that the replay produced for that lane.
    said: u64,
    unsent: VecDeque<ExecutionReport>,
    sessions: Sessions,
    /// Way of the replayed records.
    way: usize,
    made: Vec<(usize, ExecutionReport)>,
}

impl Replay {
    fn new(config: &LineConfig, reports: Option<&Writer>) -> Self {
        Self {
            config: config.venue,
            venue: Venue::new(config.venue),
            faults: Faulty::default(),
            ticks: LastTicks::new(config.venue.symbols),
            requests: Inbound::default(),
            market: Inbound::default(),
            owner: reports.map_or(Owner::default(), Writer::owner),
            tail: reports.map_or(0, Writer::sequence),
            held: None,
            said: 0,
            unsent: VecDeque::new(),
            sessions: Sessions::default(),
            way: LANES,
            made: Vec::new(),
        }
    }

    fn run(&mut self, log: &Writer) -> Result<(), RecoverError> {
        let mut reader = Reader::open(log.place(), Start::Oldest, Registration::Unregistered)?;
        while let Next::Message(message) = reader.next()? {
            let record = Record::read(&message, &mut self.ticks).ok_or(RecoverError::Record(message.sequence))?;
            let (sequence, stamp) = (message.sequence, message.stamp);
            if (sequence == 0) != matches!(record, Record::Founded(_)) {
                return Err(RecoverError::Record(sequence));
            }
            self.apply(stamp, record)?;
        }
        Ok(reader.check_end()?)
    }

    fn apply(&mut self, stamp: u64, record: Record) -> Result<(), RecoverError> {
        match record {
            Record::Founded(founded) => self.found(founded)?,
            Record::Listed(symbols) => {
                self.venue.list(symbols);
                self.ticks.list(symbols);
            }
            Record::Faults(chances) => self.faults.take_up(chances),
            Record::Way(way) => self.way = way as usize,
            Record::Requests(lane) if self.way != LANES => self.sessions.meet_requests(self.way, lane, COMMON),
            Record::Named(named) => self.sessions.meet_requests(self.way, named.lane, named.oms),
            Record::Reports(lane) if self.way != LANES => self.sessions.meet_reports(self.way, lane),
            Record::Trimmed(number) => self.sessions.trimmed(self.way, number),
            Record::Requests(lane) => self.requests = Inbound::met(lane),
            Record::Market(lane) => self.market = Inbound::met(lane),
            Record::Reports(lane) => self.meet_reports(lane),
            Record::Input(input) => self.input(stamp, &input),
        }
        Ok(())
    }

    fn found(&mut self, founded: Founded) -> Result<(), RecoverError> {
        let Founded { rules, symbols, venue } = founded;
        if founded != (Founded { symbols, ..Founded::of(&self.config) }) {
            return Err(RecoverError::Differs { venue, rules });
        }
        self.venue = Venue::new(Config { symbols, ..self.config });
        self.ticks = LastTicks::new(symbols);
        Ok(())
    }

    /// Starts the reports of a new lane. Reports for earlier lanes are dropped, sent or not.
    fn meet_reports(&mut self, lane: Lane) {
        self.held = self.tail.checked_sub(lane.first).filter(|_| lane.is_of(self.owner));
        self.said = 0;
        self.unsent.clear();
        self.faults.let_go();
    }

    fn input(&mut self, stamp: u64, input: &Input) {
        match input {
            Input::Request(sequence, _) if self.way == LANES => self.requests.next = sequence + 1,
            Input::Tick(sequence, _) => self.market.next = sequence + 1,
            _ => {}
        }
        let way = input.way(self.way);
        // The only error is a refused operator action, which had no effect before the restart either.
        let books = (&mut self.venue, &mut self.faults);
        let _ = self.sessions.apply(way, stamp, input, books, &mut self.made);
        for (way, report) in self.made.drain(..) {
            if way != LANES {
                self.sessions.say(way, (0, report));
                continue;
            }
            self.said += 1;
            if self.held.is_some_and(|held| self.said > held) {
                self.unsent.push_back(report);
            }
        }
    }
}
