//! What a restart finds: the journal replayed, and how far the lanes had come.
//!
//! ```text
//!   journal   request 5, tick 9, request 6, end of day …      replayed: the books, ids and counts as they were
//!   requests  … 5 6 │ 7 8        what comes next is told by the last request in the journal
//!   reports   … b c │            what the venue has said and the lane does not hold is sent now: d, e
//! ```
//!
//! What becomes of other lanes than before is told at the top of the [crate].

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

/// What a line with a journal is opened with.
#[derive(Debug, Clone, PartialEq)]
pub struct LineConfig {
    /// The venue. A journal that is there must be of the same number; its symbols stay, and more may come.
    pub venue: Config,
    /// Where its journal lies: a log that keeps everything.
    pub journal: LogConfig,
    /// The market of a line without ticks: what the maker quotes, and quotes again when a side of it is used up. A bid is
    /// below its offer, and a symbol has one quote.
    pub quotes: Vec<TopOfBook>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// A venue as its journal and its lanes tell it.
pub(crate) struct Recovered {
    pub venue: Venue,
    pub journal: Journal,
    pub faults: Faulty,
    pub sessions: Sessions,
    /// Requests that the lane had given up before the venue could read them.
    pub missed: u64,
    /// Reports that were said, and that the lane does not hold.
    pub unsent: VecDeque<ExecutionReport>,
}

impl Recovered {
    /// Replays the journal against these lanes, or none, or begins one, and moves the readers behind what it holds. `stamp`
    /// (ticks) is of what is written now.
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
                // Of ticks, the next one makes up for those that are gone.
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

/// Moves a reader behind what the journal holds of its lane; gives how many messages behind that are gone.
fn skip(reader: &mut Reader, next: u64) -> Result<u64, ReadError> {
    while reader.sequence() < next && reader.next()? != Next::Empty {}
    Ok(reader.sequence().saturating_sub(next))
}

/// A lane that the venue reads, as the journal knows it.
#[derive(Default)]
struct Inbound {
    lane: Option<Lane>,
    next: u64,
}

impl Inbound {
    fn met(lane: Lane) -> Self {
        Self { lane: Some(lane), next: lane.first }
    }

    /// True if this reader's lane is the one that the journal knows.
    fn goes_on(&self, reader: &Reader) -> Result<bool, RecoverError> {
        if !self.lane.is_some_and(|lane| lane.is_of(reader.owner())) {
            return Ok(false);
        }
        let tail = Reader::open(reader.place(), Start::Now, Registration::Unregistered)?.sequence();
        Ok(tail >= self.next)
    }
}

/// A replay on its way.
struct Replay {
    config: Config,
    venue: Venue,
    faults: Faulty,
    ticks: LastTicks,
    requests: Inbound,
    market: Inbound,
    /// Whose the report lane is, and where it ends.
    owner: Owner,
    tail: u64,
    /// How many reports it holds of this venue; none while the journal speaks of other lanes.
    held: Option<u64>,
    /// How many the venue has said on it.
    said: u64,
    unsent: VecDeque<ExecutionReport>,
    sessions: Sessions,
    /// What the record before was of.
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

    /// What was said on lanes before this one is gone, sent or not.
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
        // The operator was refused then as now: nothing was said.
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
