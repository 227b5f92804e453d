//! The venue on its lanes.
//!
//! ```text
//!     requests ──┐                                   ┌──> reports
//!     ticks ─────┼──> journal ──> venue ──> waiting ─┘
//!     operator ──┘
//! ```
//!
//! With a journal ([`Line::open`]) a venue that was killed comes back as it was; without one ([`Line::new`]) it begins
//! with empty books. A venue whose client is away goes on without lanes ([`Line::leave`]) until there are some again
//! ([`Line::resume`]).

use std::collections::VecDeque;

use tickpath_clock::{Clock, sleep_ns};
use tickpath_log::{Next, PublishError, Reader, Writer, sleep_until_any};
use tickpath_market::{ExecId, ExecutionReport, Kind, Price, Quantity, Request, TopOfBook};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{LineError, OperatorError, RecoverError};
use crate::faults::{Faults, Faulty};
use crate::input::{Input, LANES};
use crate::journal::{Journal, Record};
use crate::recover::{LineConfig, Recovered};
use crate::sessions::Sessions;
use crate::{FillError, Venue};

/// Messages that one turn takes from one lane before it looks at the other.
const TURN: usize = 16;

/// A venue that takes requests from one lane, sends reports on another, and makes its market from a tick topic.
pub struct Line<C> {
    pub(crate) clock: C,
    venue: Venue,
    /// None while the client is away.
    requests: Option<Reader>,
    reports: Option<Writer>,
    market: Option<Reader>,
    quotes: Vec<TopOfBook>,
    /// A side of a quote may be used up.
    pub(crate) has_traded: bool,
    /// Those that come by sockets.
    pub(crate) sessions: Sessions,
    journal: Option<Journal>,
    faults: Faulty,
    /// Reports that wait until the lane has room, each with the time (ticks) that it waits for: none is ever dropped.
    waiting: VecDeque<(u64, ExecutionReport)>,
    /// Each with the way that it goes.
    made: Vec<(usize, ExecutionReport)>,
    refused: u64,
    missed: u64,
    /// An input was taken and not written down: to go on would lose it.
    ended: bool,
}

impl<C: Clock> Line<C> {
    /// A venue on these lanes, without a journal.
    pub fn new(clock: C, venue: Venue, requests: Reader, reports: Writer, market: Option<Reader>) -> Self {
        Self::on(clock, venue, Some(requests), Some(reports), market)
    }

    fn on(clock: C, venue: Venue, requests: Option<Reader>, reports: Option<Writer>, market: Option<Reader>) -> Self {
        Self {
            clock,
            venue,
            requests,
            reports,
            market,
            sessions: Sessions::default(),
            quotes: Vec::new(),
            has_traded: false,
            journal: None,
            faults: Faulty::default(),
            waiting: VecDeque::new(),
            made: Vec::with_capacity(64),
            refused: 0,
            missed: 0,
            ended: false,
        }
    }

    /// The venue as its journal tells it, or a new one with a new journal, on these lanes. The readers may stand at the
    /// oldest message or at their cursor: what is in the journal is not applied twice. What becomes of a lane that is
    /// another than before stands at the top of the [crate].
    pub fn open(
        clock: C,
        config: &LineConfig,
        requests: Reader,
        reports: Writer,
        market: Option<Reader>,
    ) -> Result<Self, RecoverError> {
        let journal = Writer::open(&config.journal, clock.calibration())?;
        Self::resume(clock, config, journal, requests, reports, market)
    }

    /// As [`Self::open`], with a journal that is open already.
    pub fn resume(
        clock: C,
        config: &LineConfig,
        journal: Writer,
        requests: Reader,
        reports: Writer,
        market: Option<Reader>,
    ) -> Result<Self, RecoverError> {
        Self::recover(clock, config, journal, Some((requests, reports)), market)
    }

    /// The venue as its journal tells it, or a new one, on these lanes or on none.
    pub(crate) fn recover(
        clock: C,
        config: &LineConfig,
        journal: Writer,
        mut lanes: Option<(Reader, Writer)>,
        mut market: Option<Reader>,
    ) -> Result<Self, RecoverError> {
        let ends = lanes.as_mut().map(|(requests, reports)| (requests, &*reports));
        let recovered = Recovered::open(clock.ticks(), config, journal, ends, market.as_mut())?;
        let (requests, reports) = lanes.unzip();
        let mut line = Self {
            quotes: if market.is_none() { config.quotes.clone() } else { Vec::new() },
            journal: Some(recovered.journal),
            faults: recovered.faults,
            waiting: recovered.unsent.into_iter().map(|report| (0, report)).collect(),
            missed: recovered.missed,
            sessions: recovered.sessions,
            ..Self::on(clock, recovered.venue, requests, reports, market)
        };
        line.requote()?;
        Ok(line)
    }

    /// Gives the lanes up: the venue goes on with its market, and its reports wait.
    pub fn leave(&mut self) {
        (self.requests, self.reports) = (None, None);
    }

    /// Ends the line, and gives its journal, if it has one, and its market, for [`Self::resume`].
    pub fn into_parts(self) -> (Option<Writer>, Option<Reader>) {
        (self.journal.map(Journal::into_log), self.market)
    }

    /// One turn: moves the market, takes requests, sends reports. Says how much there was to do.
    pub fn poll(&mut self) -> Result<usize, LineError> {
        let sent = self.send_waiting()?;
        let moved = self.move_market()?;
        let taken = self.take_requests()?;
        Ok(sent + moved + taken + self.put_quotes_back()?)
    }

    /// Takes a fill of this day back, as [`Venue::bust`] does.
    pub fn bust(&mut self, exec_id: ExecId) -> Result<(), OperatorError> {
        self.operate(Input::Bust(exec_id))
    }

    /// Corrects a fill of this day, as [`Venue::correct`] does.
    pub fn correct(&mut self, exec_id: ExecId, price: Price, quantity: Quantity) -> Result<(), OperatorError> {
        self.operate(Input::Correct(exec_id, price, quantity))
    }

    /// Ends the day, as [`Venue::end_of_day`] does.
    pub fn end_of_day(&mut self) -> Result<(), LineError> {
        self.take(self.clock.ticks(), Input::EndOfDay)
    }

    /// Sleeps until there may be work, or `timeout_ns` is over.
    pub fn sleep(&self, timeout_ns: u64) {
        let requests = self.requests.as_ref().filter(|_| !self.faults.halts());
        let sources: Vec<&Reader> = requests.into_iter().chain(&self.market).collect();
        let timeout_ns = self.sleeps_ns(timeout_ns);
        match sources.is_empty() {
            true => sleep_ns(timeout_ns),
            false => sleep_until_any(&sources, timeout_ns),
        }
    }

    /// How long it may sleep, at most `timeout_ns`, before the next report is due.
    pub(crate) fn sleeps_ns(&self, timeout_ns: u64) -> u64 {
        let due = self.waiting.front().map(|(due, _)| *due).into_iter().chain(self.sessions.due()).min();
        let left = due.map(|due| self.clock.ns_between(self.clock.ticks(), due));
        match left.and_then(|left| u64::try_from(left).ok()) {
            Some(left) if left > 0 => timeout_ns.min(left),
            _ => timeout_ns,
        }
    }

    /// From here on other things go wrong on purpose.
    pub fn set_faults(&mut self, faults: Faults) -> Result<(), LineError> {
        if let (Some(chances), Some(journal)) = (self.faults.change(faults), &mut self.journal) {
            journal.append(self.clock.ticks(), &Record::Faults(chances)).map_err(LineError::Journal)?;
        }
        Ok(())
    }

    /// The venue.
    pub fn venue(&self) -> &Venue {
        &self.venue
    }

    /// Messages on the lane that were no requests, since this line is open: dropped and counted.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Requests that the lane had given up before they were read, since this line is open. A lane that names the venue
    /// as its reader gives none up.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn take_requests(&mut self) -> Result<usize, LineError> {
        let mut done = 0;
        while done < TURN && !self.faults.halts() {
            let Some(requests) = &mut self.requests else { break };
            let message = match requests.next()? {
                Next::Empty => break,
                Next::Gap(missed) => {
                    self.missed += missed;
                    continue;
                }
                Next::Message(message) => message,
            };
            done += 1;
            let sequence = message.sequence;
            match Request::read(message.kind, message.payload) {
                Ok(request) => self.take(self.clock.ticks(), Input::Request(sequence, request))?,
                Err(_) => self.refused += 1,
            }
        }
        self.has_traded |= done > 0;
        Ok(done)
    }

    fn move_market(&mut self) -> Result<usize, LineError> {
        let mut done = 0;
        while done < TURN {
            let Some(Next::Message(message)) = self.market.as_mut().map(Reader::next).transpose()? else { break };
            done += 1;
            let (sequence, stamp) = (message.sequence, message.stamp);
            if message.kind == Kind::TopOfBook.code()
                && let Ok(tick) = TopOfBook::read_from_bytes(message.payload)
                && self.venue.has(tick.symbol)
            {
                self.take(stamp, Input::Tick(sequence, tick))?;
            }
        }
        Ok(done)
    }

    /// Quotes what is to be quoted, where that is something else than before; of a line without ticks.
    fn requote(&mut self) -> Result<(), LineError> {
        let Some(journal) = self.journal.as_ref().filter(|_| self.market.is_none()) else { return Ok(()) };
        for tick in journal.other_than(&self.quotes) {
            self.take(self.clock.ticks(), Input::Tick(0, tick))?;
        }
        self.has_traded = true;
        Ok(())
    }

    /// Quotes again where a side was used up.
    fn put_quotes_back(&mut self) -> Result<usize, LineError> {
        if !std::mem::take(&mut self.has_traded) {
            return Ok(0);
        }
        let mut done = 0;
        for place in 0..self.quotes.len() {
            let quote = self.quotes[place];
            if !self.venue.quotes_both(quote.symbol) {
                self.take(self.clock.ticks(), Input::Tick(0, quote))?;
                done += 1;
            }
        }
        // What rests there may have used it up again.
        self.has_traded = done > 0;
        Ok(done)
    }

    fn operate(&mut self, input: Input) -> Result<(), OperatorError> {
        Ok(self.apply(self.clock.ticks(), input)??)
    }

    fn take(&mut self, stamp: u64, input: Input) -> Result<(), LineError> {
        self.take_by(LANES, stamp, input)
    }

    /// Takes what came by this way.
    pub(crate) fn take_by(&mut self, way: usize, stamp: u64, input: Input) -> Result<(), LineError> {
        self.apply_by(way, stamp, input)?.expect("only a change of a fill can be refused");
        Ok(())
    }

    /// Writes down what came by this way and is no input of the venue.
    pub(crate) fn write_by(&mut self, way: usize, record: &Record) -> Result<(), LineError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.append_by(way, self.clock.ticks(), record).map_err(LineError::Journal)
    }

    /// Somebody has sent what is no request.
    pub(crate) fn refuse_one(&mut self) {
        self.refused += 1;
    }

    /// The time, in ticks.
    pub(crate) fn now(&self) -> u64 {
        self.clock.ticks()
    }

    /// Whether no request is taken now.
    pub(crate) fn halts(&self) -> bool {
        self.faults.halts()
    }

    fn apply(&mut self, stamp: u64, input: Input) -> Result<Result<(), FillError>, LineError> {
        self.apply_by(LANES, stamp, input)
    }

    /// Writes an input down, applies it, and sends what the venue says, behind what waits already.
    fn apply_by(&mut self, way: usize, stamp: u64, input: Input) -> Result<Result<(), FillError>, LineError> {
        if let Some(journal) = &mut self.journal {
            assert!(!self.ended, "a line that has ended is opened again, not used");
            self.ended = true;
            // What came by no way at all leaves the way as it is.
            match input {
                Input::Request(..) => journal.append_by(way, stamp, &Record::Input(input)),
                _ => journal.append(stamp, &Record::Input(input)),
            }
            .map_err(LineError::Journal)?;
            self.ended = false;
        }
        let books = (&mut self.venue, &mut self.faults);
        let done = self.sessions.apply(way, stamp, &input, books, &mut self.made);
        let due = match self.faults.delay_ns() {
            0 => 0,
            ns => self.clock.ticks() + self.clock.calibration().ticks_of_ns(ns),
        };
        let Self { made, sessions, waiting, .. } = self;
        for (way, report) in made.drain(..) {
            match way {
                LANES => waiting.push_back((due, report)),
                way => sessions.say(way, (due, report)),
            }
        }
        self.send_waiting()?;
        Ok(done)
    }

    fn send_waiting(&mut self) -> Result<usize, LineError> {
        let Some(reports) = &mut self.reports else { return Ok(0) };
        let mut sent = 0;
        while let Some((due, report)) = self.waiting.front() {
            let kind = Kind::ExecutionReport.code();
            let now = self.clock.ticks();
            if now < *due {
                break;
            }
            match reports.publish(now, kind, report.as_bytes()) {
                Ok(_) => {
                    self.waiting.pop_front();
                    sent += 1;
                }
                Err(PublishError::Full | PublishError::NoReader) => break,
                Err(e) => return Err(LineError::Publish(e)),
            }
        }
        Ok(sent)
    }
}
