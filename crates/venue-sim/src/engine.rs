//! A venue on its lanes.
//!
//! ```text
//!     requests ──┐                                   ┌──> reports
//!     ticks ─────┼──> journal ──> venue ──> waiting ─┘
//!     operator ──┘
//! ```
//!
//! With a journal ([`VenueEngine::open`]) a killed venue restarts in the same state; without a journal
//! ([`VenueEngine::new`]) it starts with empty books. While its client is away a venue runs without lanes
//! ([`VenueEngine::leave`]) until it joins new ones ([`VenueEngine::resume`]).

use std::collections::VecDeque;

use tickpath_clock::{Clock, sleep_ns};
use tickpath_log::{LogPublishError, Next, Reader, Writer, sleep_until_any};
use tickpath_market::{ExecId, ExecutionReport, Kind, Price, Quantity, Request, TopOfBook};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{EngineError, OperatorError, RecoverError};
use crate::faults::{FaultInjector, InjectedFaults};
use crate::input::{LANES_ROUTE, VenueInput};
use crate::journal::{VenueJournal, VenueRecord};
use crate::line_sessions::LineSessions;
use crate::recover::{EngineConfig, RecoveredVenue};
use crate::{FillError, SimVenue};

/// Max messages that one turn takes from a lane before it polls the other lane.
const MAX_PER_TURN: usize = 16;

/// A venue that takes requests from one lane, sends reports on another, and makes its market from a tick topic.
pub struct VenueEngine<C> {
    pub(crate) clock: C,
    venue: SimVenue,
    /// None while the client is away.
    requests: Option<Reader>,
    reports: Option<Writer>,
    market: Option<Reader>,
    quotes: Vec<TopOfBook>,
    /// A trade may have used up a side of a quote since the last check.
    pub(crate) has_traded: bool,
    pub(crate) sessions: LineSessions,
    journal: Option<VenueJournal>,
    faults: FaultInjector,
    /// Reports that wait for room in the lane, each with its earliest time of sending (ticks). None is ever dropped.
    waiting: VecDeque<(u64, ExecutionReport)>,
    /// Scratch for the reports of one input, each with the route that it goes.
    scratch: Vec<(usize, ExecutionReport)>,
    pub(crate) refused: u64,
    missed: u64,
    /// An input could not be journaled. A further input panics, because the journal would lack the first.
    is_failed: bool,
}

impl<C: Clock> VenueEngine<C> {
    /// Puts a venue on these lanes, without a journal.
    pub fn new(clock: C, venue: SimVenue, requests: Reader, reports: Writer, market: Option<Reader>) -> Self {
        Self::on(clock, venue, Some(requests), Some(reports), market)
    }

    fn on(
        clock: C,
        venue: SimVenue,
        requests: Option<Reader>,
        reports: Option<Writer>,
        market: Option<Reader>,
    ) -> Self {
        Self {
            clock,
            venue,
            requests,
            reports,
            market,
            sessions: LineSessions::default(),
            quotes: Vec::new(),
            has_traded: false,
            journal: None,
            faults: FaultInjector::default(),
            waiting: VecDeque::new(),
            scratch: Vec::with_capacity(64),
            refused: 0,
            missed: 0,
            is_failed: false,
        }
    }

    /// Recovers the venue from its journal, or creates both, on these lanes. The readers may stand at the oldest
    /// message or at their cursor: journaled messages are not applied twice. The [crate] documentation has the rules
    /// for lanes that differ from those before.
    pub fn open(
        clock: C,
        config: &EngineConfig,
        requests: Reader,
        reports: Writer,
        market: Option<Reader>,
    ) -> Result<Self, RecoverError> {
        let journal = Writer::open(&config.journal, clock.calibration())?;
        Self::resume(clock, config, journal, requests, reports, market)
    }

    /// Does as [`Self::open`], with a journal that is open already.
    pub fn resume(
        clock: C,
        config: &EngineConfig,
        journal: Writer,
        requests: Reader,
        reports: Writer,
        market: Option<Reader>,
    ) -> Result<Self, RecoverError> {
        Self::recover(clock, config, journal, Some((requests, reports)), market)
    }

    /// Recovers the venue from its journal, or creates it, on these lanes or without lanes.
    pub(crate) fn recover(
        clock: C,
        config: &EngineConfig,
        journal: Writer,
        mut lanes: Option<(Reader, Writer)>,
        mut market: Option<Reader>,
    ) -> Result<Self, RecoverError> {
        let ends = lanes.as_mut().map(|(requests, reports)| (requests, &*reports));
        let recovered = RecoveredVenue::open(clock.ticks(), config, journal, ends, market.as_mut())?;
        let (requests, reports) = lanes.unzip();
        let mut engine = Self {
            quotes: if market.is_none() { config.quotes.clone() } else { Vec::new() },
            journal: Some(recovered.journal),
            faults: recovered.faults,
            waiting: recovered.unsent.into_iter().map(|report| (0, report)).collect(),
            missed: recovered.missed,
            sessions: recovered.sessions,
            ..Self::on(clock, recovered.venue, requests, reports, market)
        };
        engine.apply_changed_quotes()?;
        Ok(engine)
    }

    /// Leaves the lanes: the venue keeps following its market, and its reports wait.
    pub fn leave(&mut self) {
        (self.requests, self.reports) = (None, None);
    }

    /// Ends the line. Returns its journal and its market, if it has them, for [`Self::resume`].
    pub fn into_parts(self) -> (Option<Writer>, Option<Reader>) {
        (self.journal.map(|journal| journal.log), self.market)
    }

    /// Runs one turn: moves the market, takes requests, sends reports. Returns the number of messages handled.
    pub fn poll(&mut self) -> Result<usize, EngineError> {
        let sent = self.send_waiting()?;
        let ticks = self.apply_ticks()?;
        let requests = self.take_requests()?;
        Ok(sent + ticks + requests + self.renew_quotes()?)
    }

    /// Busts a fill of this day, as [`SimVenue::bust`] does.
    pub fn bust(&mut self, exec_id: ExecId) -> Result<(), OperatorError> {
        self.operate(VenueInput::Bust(exec_id))
    }

    /// Corrects a fill of this day, as [`SimVenue::correct`] does.
    pub fn correct(&mut self, exec_id: ExecId, price: Price, quantity: Quantity) -> Result<(), OperatorError> {
        self.operate(VenueInput::Correct(exec_id, price, quantity))
    }

    /// Ends the day, as [`SimVenue::end_of_day`] does.
    pub fn end_of_day(&mut self) -> Result<(), EngineError> {
        self.commit(self.clock.ticks(), VenueInput::EndOfDay)
    }

    /// Sleeps until there may be work, or `timeout_ns` has passed.
    pub fn sleep(&self, timeout_ns: u64) {
        let requests = self.requests.as_ref().filter(|_| !self.faults.halt);
        let sources: Vec<&Reader> = requests.into_iter().chain(&self.market).collect();
        let timeout_ns = self.max_sleep_ns(timeout_ns);
        match sources.is_empty() {
            true => sleep_ns(timeout_ns),
            false => sleep_until_any(&sources, timeout_ns),
        }
    }

    /// Returns the time in nanoseconds until the next report is due, at most `timeout_ns`.
    pub(crate) fn max_sleep_ns(&self, timeout_ns: u64) -> u64 {
        let due = self.waiting.front().map(|(due, _)| *due).into_iter().chain(self.sessions.next_due()).min();
        let left = due.map(|due| self.clock.ns_between(self.clock.ticks(), due));
        match left.and_then(|left| u64::try_from(left).ok()) {
            Some(left) if left > 0 => timeout_ns.min(left),
            _ => timeout_ns,
        }
    }

    /// Replaces the injected faults, and journals new chances.
    pub fn set_faults(&mut self, faults: InjectedFaults) -> Result<(), EngineError> {
        if let (Some(chances), Some(journal)) = (self.faults.change(faults), &mut self.journal) {
            journal.append(self.clock.ticks(), &VenueRecord::Faults(chances)).map_err(EngineError::Journal)?;
        }
        Ok(())
    }

    /// Returns the venue.
    pub fn venue(&self) -> &SimVenue {
        &self.venue
    }

    /// Returns the number of messages since the line was opened that were no valid requests, and were dropped.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of requests since the line was opened that the lane overwrote before they were read. It stays
    /// zero on a lane that has the venue as its mandatory reader.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn take_requests(&mut self) -> Result<usize, EngineError> {
        let mut done = 0;
        while done < MAX_PER_TURN && !self.faults.halt {
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
                Ok(request) => self.commit(self.clock.ticks(), VenueInput::Request(sequence, request))?,
                Err(_) => self.refused += 1,
            }
        }
        self.has_traded |= done > 0;
        Ok(done)
    }

    fn apply_ticks(&mut self) -> Result<usize, EngineError> {
        let mut done = 0;
        while done < MAX_PER_TURN {
            let Some(Next::Message(message)) = self.market.as_mut().map(Reader::next).transpose()? else { break };
            done += 1;
            let (sequence, stamp) = (message.sequence, message.stamp);
            if message.kind == Kind::TopOfBook.code()
                && let Ok(tick) = TopOfBook::read_from_bytes(message.payload)
                && self.venue.has_symbol(tick.symbol)
            {
                self.commit(stamp, VenueInput::Tick(sequence, tick))?;
            }
        }
        Ok(done)
    }

    /// Applies the configured quotes that differ from the journal's last ones, on a line without ticks.
    fn apply_changed_quotes(&mut self) -> Result<(), EngineError> {
        let Some(journal) = self.journal.as_ref().filter(|_| self.market.is_none()) else { return Ok(()) };
        for tick in journal.changed_quotes(&self.quotes) {
            self.commit(self.clock.ticks(), VenueInput::Tick(0, tick))?;
        }
        self.has_traded = true;
        Ok(())
    }

    /// Renews each quote with a used-up side. Returns the number of quotes renewed.
    fn renew_quotes(&mut self) -> Result<usize, EngineError> {
        if !std::mem::take(&mut self.has_traded) {
            return Ok(0);
        }
        let mut done = 0;
        for index in 0..self.quotes.len() {
            let quote = self.quotes[index];
            if !self.venue.is_quoted(quote.symbol) {
                self.commit(self.clock.ticks(), VenueInput::Tick(0, quote))?;
                done += 1;
            }
        }
        // Resting orders may have used the new quotes up again.
        self.has_traded = done > 0;
        Ok(done)
    }

    fn operate(&mut self, input: VenueInput) -> Result<(), OperatorError> {
        Ok(self.apply_from(LANES_ROUTE, self.clock.ticks(), input)??)
    }

    fn commit(&mut self, stamp: u64, input: VenueInput) -> Result<(), EngineError> {
        self.commit_from(LANES_ROUTE, stamp, input)
    }

    /// Journals and applies an input that came by this route and cannot be refused.
    pub(crate) fn commit_from(&mut self, route: usize, stamp: u64, input: VenueInput) -> Result<(), EngineError> {
        self.apply_from(route, stamp, input)?.expect("only a change of a fill can be refused");
        Ok(())
    }

    /// Journals a record of this route that is no input of the venue.
    pub(crate) fn journal_from(&mut self, route: usize, record: &VenueRecord) -> Result<(), EngineError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.append_from(route, self.clock.ticks(), record).map_err(EngineError::Journal)
    }

    /// Returns whether an injected halt keeps requests from being taken.
    pub(crate) fn is_halted(&self) -> bool {
        self.faults.halt
    }

    /// Journals an input, applies it, and sends its reports behind those that wait already.
    fn apply_from(
        &mut self,
        route: usize,
        stamp: u64,
        input: VenueInput,
    ) -> Result<Result<(), FillError>, EngineError> {
        if let Some(journal) = &mut self.journal {
            assert!(!self.is_failed, "an engine that has failed is opened again, not used");
            self.is_failed = true;
            // Only requests have a route: other inputs leave the journal's current route unchanged.
            match input {
                VenueInput::Request(..) => journal.append_from(route, stamp, &VenueRecord::Input(input)),
                _ => journal.append(stamp, &VenueRecord::Input(input)),
            }
            .map_err(EngineError::Journal)?;
            self.is_failed = false;
        }
        let books = (&mut self.venue, &mut self.faults);
        let done = self.sessions.apply(route, stamp, &input, books, &mut self.scratch);
        let due = match self.faults.delay_ns {
            0 => 0,
            ns => self.clock.ticks() + self.clock.calibration().ticks_of_ns(ns),
        };
        let Self { scratch: reports, sessions, waiting, .. } = self;
        for (route, report) in reports.drain(..) {
            match route {
                LANES_ROUTE => waiting.push_back((due, report)),
                route => sessions.keep_report(route, (due, report)),
            }
        }
        self.send_waiting()?;
        Ok(done)
    }

    fn send_waiting(&mut self) -> Result<usize, EngineError> {
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
                Err(LogPublishError::Full | LogPublishError::NoReader) => break,
                Err(e) => return Err(EngineError::Publish(e)),
            }
        }
        Ok(sent)
    }
}
