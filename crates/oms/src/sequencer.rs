//! The single writer: journal, core, and what the core says, in that order.

use std::collections::VecDeque;

use tickpath_clock::Clock;
use tickpath_log::{Message, PublishError, Writer};
use tickpath_market::{ExecType, ExecutionReport, Kind, OrdStatus, OrderId, Price, Request, SymbolId, TopOfBook};
use tickpath_orders::{AccountLimits, At, Core, Counts, Envelope, Input, Instrument, Output, Outputs};
use zerocopy::IntoBytes;

use crate::OmsError;
use crate::journal::Journal;
use crate::layout::Config;
use crate::pages::PageMaker;
use crate::recover::{Inbound, Recovered};

/// What a new journal begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desk {
    /// What can be traded.
    pub instruments: Vec<Instrument>,
    /// Who may trade, and how much.
    pub accounts: Vec<AccountLimits>,
}

/// The last price of a symbol, and when it was seen.
#[derive(Debug, Clone, Copy, Default)]
struct Reference {
    price: Price,
    stamp: u64,
}

/// Journals inputs, applies the core, and sends what it says.
pub struct Sequencer<C> {
    clock: C,
    core: Core,
    journal: Journal,
    outputs: Outputs,
    to_venue: Writer,
    /// Requests that wait for the venue's lane.
    queued: VecDeque<Request>,
    reports: Vec<Writer>,
    references: Vec<Reference>,
    /// T2 of the last request, and whether it had to wait for the venue's lane.
    released: u64,
    waited: bool,
    /// Messages that no client or venue may send.
    refused: u64,
    pages: PageMaker,
}

impl<C: Clock> Sequencer<C> {
    /// Replays the journal, brings lanes and logs up to where it ends, and is ready for the next input.
    pub fn open(clock: C, config: &Config) -> Result<(Self, Inbound), OmsError> {
        // Opened first: a torn last record is cut before the replay reads it.
        let journal = Journal::open(&config.journal, clock.calibration())?;
        let found = Recovered::open(&config.lanes, &config.journal, config.expected_orders, clock.calibration())?;
        let pages = PageMaker::start().map_err(OmsError::Thread)?;
        let mut sequencer = Self {
            clock,
            core: found.core,
            journal,
            outputs: Outputs::new(),
            to_venue: found.to_venue,
            queued: found.unsent.into(),
            reports: found.reports,
            references: Vec::new(),
            released: 0,
            waited: false,
            refused: 0,
            pages,
        };
        sequencer.flush()?;
        for output in &found.untold {
            tell(&mut sequencer.reports, sequencer.clock.ticks(), output)?;
        }
        sequencer.doubt(&found.doubtful)?;
        sequencer.define(&config.desk, &found.definitions)?;
        Ok((sequencer, found.inbound))
    }

    /// Takes a request of a client, as its lane holds it: T0 is the frame's stamp, `received` is T1.
    #[inline]
    pub fn request(&mut self, session: u16, received: u64, message: &Message<'_>) -> Result<(), OmsError> {
        match Request::read(message.kind, message.payload) {
            Ok(request) => self.accept(session, message.stamp, received, request),
            Err(_) => {
                self.refused += 1;
                Ok(())
            }
        }
    }

    /// Takes a request that was read already.
    #[inline]
    pub fn accept(&mut self, session: u16, sent: u64, received: u64, request: Request) -> Result<(), OmsError> {
        let reference = self.reference_of(symbol_of(&request));
        let envelope = Envelope {
            sent,
            released_before: self.released,
            reference_price: reference.price,
            reference_age: if reference.stamp == 0 { u64::MAX } else { received.saturating_sub(reference.stamp) },
            session,
            queued_before: u8::from(self.waited),
            reserved: [0; 5],
        };
        self.apply(received, &Input::Request { envelope, request })?;
        let waiting = self.queued.len();
        self.send_to_venue(received)?;
        self.waited = self.queued.len() > waiting;
        self.released = self.clock.ticks();
        self.tell_clients(self.released)?;
        self.after_input()
    }

    /// Takes a report of the venue, received at `received`.
    #[inline]
    pub fn report(&mut self, received: u64, message: &Message<'_>) -> Result<(), OmsError> {
        match ExecutionReport::read(message.kind, message.payload) {
            Ok(report) => self.apply(received, &Input::Report(report))?,
            Err(_) => {
                self.refused += 1;
                return Ok(());
            }
        }
        self.send_to_venue(received)?;
        self.tell_clients(received)?;
        self.after_input()
    }

    /// Takes the market's price of a symbol, for checks: the middle of the top of book, stamped when it was sent.
    #[inline]
    pub fn tick(&mut self, stamp: u64, tick: &TopOfBook) {
        /// Larger ids are unknown to the core.
        const MOST: usize = 1 << 16;
        let index = tick.symbol.0 as usize;
        if index >= self.references.len() {
            self.references.resize((index + 1).min(MOST), Reference::default());
        }
        if let Some(reference) = self.references.get_mut(index) {
            let price = match (tick.bid.0, tick.ask.0) {
                (0, one) | (one, 0) => one,
                (bid, ask) => bid / 2 + ask / 2,
            };
            *reference = Reference { price: Price(price), stamp };
        }
    }

    /// Sends what waits for the venue's lane. Says how many went.
    pub fn flush(&mut self) -> Result<usize, OmsError> {
        let mut sent = 0;
        while let Some(request) = self.queued.front() {
            match self.to_venue.publish(self.clock.ticks(), request.kind().code(), request.as_bytes()) {
                Ok(_) => {
                    self.queued.pop_front();
                    sent += 1;
                }
                Err(PublishError::Full | PublishError::NoReader) => break,
                Err(e) => return Err(OmsError::Lane(e)),
            }
        }
        Ok(sent)
    }

    /// Journals that the OMS stops in order, and where the core stands.
    pub fn stop(&mut self) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        self.journal.digest(now, &self.core.digest())?;
        self.journal.stop(now, self.released, self.waited)
    }

    /// Orders by where they stand, and alarms.
    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Requests that wait for the venue's lane.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Messages on the lanes that were none: dropped, counted, never journaled.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The core, for questions.
    pub fn core(&self) -> &Core {
        &self.core
    }

    #[inline]
    fn apply(&mut self, stamp: u64, input: &Input) -> Result<(), OmsError> {
        let sequence = self.journal.append(stamp, input)?;
        self.core.apply(At { sequence, stamp }, input, &mut self.outputs);
        Ok(())
    }

    /// Sends the core's requests on. A stamp costs as much as a check, so the frames carry T1.
    #[inline]
    fn send_to_venue(&mut self, stamp: u64) -> Result<(), OmsError> {
        for output in self.outputs.iter() {
            let Output::Venue(request) = output else { continue };
            // What waits goes first, or the venue would see a cancel before its order.
            if !self.queued.is_empty() {
                self.queued.push_back(*request);
                continue;
            }
            match self.to_venue.publish(stamp, request.kind().code(), request.as_bytes()) {
                Ok(_) => {}
                Err(PublishError::Full | PublishError::NoReader) => self.queued.push_back(*request),
                Err(e) => return Err(OmsError::Lane(e)),
            }
        }
        Ok(())
    }

    #[inline]
    fn tell_clients(&mut self, stamp: u64) -> Result<(), OmsError> {
        for output in self.outputs.iter() {
            tell(&mut self.reports, stamp, output)?;
        }
        Ok(())
    }

    #[inline]
    fn after_input(&mut self) -> Result<(), OmsError> {
        if self.journal.wants_digest() {
            self.journal.digest(self.clock.ticks(), &self.core.digest())?;
        }
        if self.core.wants_page()
            && let Some(page) = self.pages.take()
        {
            self.core.give_page(page);
        }
        Ok(())
    }

    #[inline]
    fn reference_of(&self, symbol: SymbolId) -> Reference {
        self.references.get(symbol.0 as usize).copied().unwrap_or_default()
    }

    /// Journals what the desk has that the journal does not say yet.
    fn define(&mut self, desk: &Desk, known: &[Input]) -> Result<(), OmsError> {
        let instruments = desk.instruments.iter().map(|i| Input::Instrument(*i));
        let accounts = desk.accounts.iter().map(|a| Input::Account(*a));
        for input in instruments.chain(accounts) {
            if !known.contains(&input) {
                self.apply(self.clock.ticks(), &input)?;
            }
        }
        Ok(())
    }

    /// Makes orders `Unknown` whose request cannot be proved to have arrived: they are asked for, never sent again.
    fn doubt(&mut self, orders: &[u64]) -> Result<(), OmsError> {
        for &id in orders {
            let Some(order) = self.core.order(OrderId(id)) else { continue };
            match order.status {
                OrdStatus::PendingNew | OrdStatus::PendingCancel | OrdStatus::PendingReplace => {}
                _ => continue,
            }
            let report = ExecutionReport {
                order_id: order.id,
                symbol: order.symbol,
                account: order.account,
                exec_type: ExecType::PendingNew.code(),
                status: OrdStatus::Unknown.code(),
                side: order.side.code(),
                ..ExecutionReport::default()
            };
            let now = self.clock.ticks();
            self.apply(now, &Input::Report(report))?;
            self.tell_clients(now)?;
        }
        Ok(())
    }

    /// Counts a message that was none.
    pub(crate) fn refuse(&mut self) {
        self.refused += 1;
    }
}

/// Publishes an output on its session's report log. A session that is gone hears nothing.
#[inline]
fn tell(reports: &mut [Writer], stamp: u64, output: &Output) -> Result<(), OmsError> {
    let (session, kind, bytes) = match output {
        Output::Venue(_) => return Ok(()),
        Output::Report { session, report } => (session, Kind::ExecutionReport, report.as_bytes()),
        Output::Denied { session, denied } => (session, Kind::OrderDenied, denied.as_bytes()),
    };
    match reports.get_mut(usize::from(*session)) {
        Some(log) => log.publish(stamp, kind.code(), bytes).map(|_| ()).map_err(OmsError::Lane),
        None => Ok(()),
    }
}

fn symbol_of(request: &Request) -> SymbolId {
    match request {
        Request::New(m) => m.symbol,
        Request::Cancel(m) => m.symbol,
        Request::Replace(m) => m.symbol,
    }
}
