//! Events of a feed's connections, in the order in which they are published, and the state of each book.
//!
//! ```text
//!   (none) ──valid──> Valid ──gap──> Awaiting ──valid──> Valid
//!                       │               ^
//!                       └──lost message──> Broken ──topic accepts again: gap──┘
//! ```
//!
//! A subscriber cannot know the instrument of a message that the topic has lost, and gives up all of its books: so each
//! published loss breaks all books here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tickpath_bus::{Connection, connect};
use tickpath_clock::Clock;
use tickpath_feed::{Arrival, BookStep, BookUpdate, FeedEvent, Frame, FrameError, MarketEvent};
use tickpath_market::{FeedCondition, FeedStatus, SymbolId};

use super::config::FeedRelayConfig;
use super::market_order::MarketOrder;
use super::meter::FeedMeter;
use super::publication::{FeedPublication, MessageTimes};
use crate::raw_frames::RawFrameWriter;
use crate::target::open_publisher;
use crate::{RelayContext, RelayError};

/// Interval of the work that is independent of messages, in nanoseconds: totals, clock, file of frames.
const UPKEEP_NS: u64 = 1_000_000_000;

/// Pause before a topic that refuses messages is tried again without a new message, in nanoseconds.
const LOSS_RETRY_NS: u64 = 1_000_000;

/// Max bad frames that are reported one by one; all are counted.
const MAX_REPORTED_FRAMES: u64 = 10;

pub(super) struct MarketCarrier<'a> {
    config: &'a FeedRelayConfig,
    context: &'a RelayContext<'a>,
    order: MarketOrder,
    publication: FeedPublication<'a>,
    /// Files of frames, one for each connection, or none at all.
    raw: Vec<RawFrameWriter>,
    connections: Vec<CarriedConnection>,
    books: BTreeMap<SymbolId, BookState>,
    /// Instruments with a published gap that have brought neither a quote, a trade nor a valid book since.
    outdated: BTreeSet<SymbolId>,
    /// A book may await a snapshot that no connection was asked for.
    has_requests: bool,
    /// A book may be broken.
    has_broken: bool,
    /// Ticks of the last message of the market, or of the last connect. Answers to heartbeats do not count.
    last_arrival: u64,
    is_silent: bool,
    /// Ticks of the next upkeep, of the next attempt to publish losses, and of the end.
    upkeep_at: u64,
    retry_at: u64,
    end_at: Option<u64>,
    bad_frames: u64,
    is_raw_loss_reported: bool,
    /// Dropped after the publication.
    _bus: Box<dyn Connection>,
}

#[derive(Clone, Copy, Default)]
struct CarriedConnection {
    is_up: bool,
    /// The exchange has announced its end.
    is_ending: bool,
    arrival: Arrival,
    arrival_utc_ns: u64,
}

/// State of a book for the subscribers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BookState {
    Valid,
    /// A message of it is lost, and its gap is not published yet.
    Broken,
    /// Its gap is published. The connection that was asked for a snapshot, if any was.
    Awaiting(Option<usize>),
}

impl<'a> MarketCarrier<'a> {
    /// Opens the topic and the file of frames.
    pub fn open(
        config: &'a FeedRelayConfig,
        connections: usize,
        context: &'a RelayContext<'a>,
    ) -> Result<Self, RelayError> {
        let bus = connect(&config.url)?;
        let publisher = open_publisher(bus.as_ref(), &config.topic, &config.target)?;
        let files = config.raw.iter().flat_map(|file| (0..connections).map(move |index| raw_file(file, index)));
        let raw = files.map(|file| RawFrameWriter::create(&file)).collect::<Result<Vec<_>, RelayError>>()?;
        let now = context.clock.ticks();
        let ticks = |ns| context.clock.calibration().ticks_of_ns(ns);
        let mut carrier = Self {
            config,
            context,
            order: MarketOrder::new(connections),
            publication: FeedPublication::new(&config.topic, publisher, connections, context),
            raw,
            connections: vec![CarriedConnection::default(); connections],
            books: BTreeMap::new(),
            outdated: BTreeSet::new(),
            has_requests: false,
            has_broken: false,
            last_arrival: now,
            is_silent: false,
            upkeep_at: now + ticks(UPKEEP_NS),
            retry_at: now,
            end_at: config.duration_ns.map(|ns| now.saturating_add(ticks(ns))),
            bad_frames: 0,
            is_raw_loss_reported: false,
            _bus: bus,
        };
        // Subscribers may have valid books of an earlier carrier that was killed.
        let status = FeedStatus { symbol: FeedStatus::ALL_SYMBOLS, ..FeedStatus::default() };
        carrier.publication.publish_status(FeedCondition::Gap, status)?;
        Ok(carrier)
    }

    /// Takes an event of a connection.
    pub fn take(&mut self, index: usize, event: FeedEvent<'_>) -> Result<(), RelayError> {
        match event {
            FeedEvent::Market(event) => self.take_market(index, event),
            FeedEvent::Frame(frame, arrival) => {
                let first = if arrival.wire == 0 { arrival.read } else { arrival.wire };
                self.take_frame(index, frame, arrival, self.publication.utc_ns_of(first));
                Ok(())
            }
            FeedEvent::BadFrame(error) => {
                self.count_bad_frame(index, error);
                match error.outdated() {
                    Some(symbol) if self.outdated.insert(symbol) => self.interrupt(symbol),
                    _ => Ok(()),
                }
            }
            FeedEvent::Up => self.take_up(index),
            FeedEvent::ClockOffset { offset_ns, round_trip_ns } => {
                self.publication.totals.connections[index].clock_offset_ns = Some((offset_ns, round_trip_ns));
                self.publish_event(FeedCondition::ClockOffset, index, offset_ns)
            }
        }
    }

    /// Takes a frame that arrived at this time, before its messages.
    pub fn take_frame(&mut self, index: usize, frame: Frame<'_>, arrival: Arrival, utc_ns: u64) {
        let connection = &mut self.connections[index];
        (connection.arrival, connection.arrival_utc_ns) = (arrival, utc_ns);
        let totals = &mut self.publication.totals;
        totals.connections[index].frames += 1;
        totals.span_utc_ns = Some((totals.span_utc_ns.map_or(utc_ns, |(first, _)| first), utc_ns));
        if arrival.wire != 0 {
            totals.wire_to_read.add(self.context.clock.ns_between(arrival.wire, arrival.read));
        }
        if let Some(raw) = self.raw.get_mut(index) {
            raw.add(utc_ns, frame);
        }
    }

    /// Takes a message of a file. The snapshot of a valid book shows that its channel was subscribed again meanwhile,
    /// for a reason that is not in the file.
    pub fn take_recorded(&mut self, event: MarketEvent<'_>) -> Result<(), RelayError> {
        if let MarketEvent::Book(BookUpdate { symbol, is_snapshot: true, may_overlap: false, .. }) = event
            && self.books.get(&symbol) == Some(&BookState::Valid)
        {
            self.interrupt(symbol)?;
        }
        self.take_market(0, event)
    }

    /// Takes the end of a connection; of one that was not up, nothing was carried.
    pub fn disconnected(&mut self, index: usize) -> Result<(), RelayError> {
        let connection = &mut self.connections[index];
        connection.is_ending = false;
        if !std::mem::take(&mut connection.is_up) {
            return Ok(());
        }
        self.order.disconnected(index);
        self.publish_event(FeedCondition::Disconnected, index, 0)?;
        if self.connections.iter().any(|connection| connection.is_up) {
            let asked = self.books.values_mut().filter(|state| **state == BookState::Awaiting(Some(index)));
            asked.for_each(|state| *state = BookState::Awaiting(None));
            self.has_requests = true;
            return Ok(());
        }
        self.order.invalidate_all();
        for (symbol, state) in std::mem::take(&mut self.books) {
            let is_broken = match state {
                BookState::Valid => !self.publish_gap(symbol, 0, 0)?,
                BookState::Broken => true,
                // The next connection brings a snapshot by itself.
                BookState::Awaiting(_) => false,
            };
            if is_broken {
                self.mark_broken(symbol);
            }
        }
        Ok(())
    }

    /// Counts an attempt to connect.
    pub fn count_attempt(&mut self, index: usize) {
        self.publication.totals.connections[index].attempts += 1;
    }

    pub fn is_up(&self, index: usize) -> bool {
        self.connections[index].is_up
    }

    /// Returns whether the exchange has announced the end of a connection.
    pub fn is_ending(&self, index: usize) -> bool {
        self.connections[index].is_ending
    }

    /// Returns the connection to ask for snapshots, with the books that await one.
    pub fn take_requests(&mut self) -> Option<(usize, Vec<SymbolId>)> {
        if !self.has_requests {
            return None;
        }
        let index = self.connections.iter().position(|connection| connection.is_up)?;
        let unasked = self.books.iter_mut().filter(|(_, state)| **state == BookState::Awaiting(None));
        let ask = |(symbol, state): (&SymbolId, &mut BookState)| {
            *state = BookState::Awaiting(Some(index));
            *symbol
        };
        let symbols = unasked.map(ask).collect();
        self.has_requests = false;
        Some((index, symbols))
    }

    /// Returns whether the requested number of messages or the requested duration is reached.
    pub fn is_done(&self, now: u64) -> bool {
        let has_all = self.config.count.is_some_and(|count| self.publication.totals.messages >= count);
        has_all || self.end_at.is_some_and(|end| now >= end)
    }

    /// Returns whether the work beside messages must not wait for a moment without any.
    pub fn is_upkeep_due(&self, now: u64) -> bool {
        now >= self.upkeep_at
    }

    /// Does the work beside messages, as far as it is due.
    pub fn keep_up(&mut self, now: u64, meter: &FeedMeter) -> Result<(), RelayError> {
        self.check_silence(now)?;
        if now >= self.retry_at {
            self.retry_at = now + self.ticks_of_ns(LOSS_RETRY_NS);
            self.settle_losses()?;
        }
        if self.is_upkeep_due(now) {
            self.upkeep_at = now + self.ticks_of_ns(UPKEEP_NS);
            self.publication.refresh_utc();
            self.check_raw();
            self.store_totals(meter);
        }
        Ok(())
    }

    /// Lets the publisher use a moment without messages.
    pub fn idle(&mut self) {
        self.publication.idle();
    }

    /// Ends all connections, completes the file of frames and stores the totals.
    pub fn close(mut self, meter: &FeedMeter) -> Result<(), RelayError> {
        let ended = (0..self.connections.len()).try_for_each(|index| self.disconnected(index));
        // A loss near the end is reported, too, if the topic accepts that.
        let settled = ended.and_then(|()| self.settle_losses());
        let totals = &mut self.publication.totals;
        (totals.raw_frames, totals.raw_missing) = (0, 0);
        for (index, raw) in self.raw.drain(..).enumerate() {
            let (path, counts, failed) = raw.finish();
            totals.raw_frames += counts.written;
            totals.raw_missing += counts.missing;
            // A spare connection that was never used leaves no file.
            let failed = match failed {
                None if index > 0 && counts.written + counts.missing == 0 => std::fs::remove_file(&path).err(),
                failed => failed,
            };
            if let Some(reason) = failed {
                (self.context.report)(&RelayError::RawFile(path, reason).to_string());
            }
        }
        self.store_totals(meter);
        settled
    }

    fn take_up(&mut self, index: usize) -> Result<(), RelayError> {
        self.connections[index].is_up = true;
        self.publication.totals.connections[index].established += 1;
        let now = self.context.clock.ticks();
        (self.last_arrival, self.is_silent) = (now, false);
        if let Some(raw) = self.raw.get_mut(index) {
            raw.add_connect(self.publication.utc_ns_of(now));
        }
        self.order.connected(index);
        self.publish_event(FeedCondition::Connected, index, 0)
    }

    #[inline]
    fn take_market(&mut self, index: usize, event: MarketEvent<'_>) -> Result<(), RelayError> {
        let parsed = self.context.clock.ticks();
        let CarriedConnection { arrival, arrival_utc_ns, .. } = self.connections[index];
        (self.last_arrival, self.is_silent) = (arrival.read, false);
        let totals = &mut self.publication.totals;
        totals.connections[index].messages += 1;
        totals.read_to_parsed.add(self.context.clock.ns_between(arrival.read, parsed));
        if !self.order.is_first(index, &event) {
            return Ok(());
        }
        let times = MessageTimes { arrival, arrival_utc_ns, parsed };
        match event {
            MarketEvent::Quote { quote, .. } => {
                self.outdated.remove(&quote.symbol);
                self.publication.publish_quote(quote, &times).map(|_| ())
            }
            MarketEvent::Trade(trade) => {
                self.outdated.remove(&trade.symbol);
                self.publication.publish_trade(trade, &times).map(|_| ())
            }
            MarketEvent::Book(update) => self.take_book(update, &times),
            MarketEvent::Maintenance => {
                self.connections[index].is_ending = true;
                self.publish_event(FeedCondition::Maintenance, index, 0)
            }
        }
    }

    fn take_book(&mut self, update: BookUpdate<'_>, times: &MessageTimes) -> Result<(), RelayError> {
        let symbol = update.symbol;
        // Subscribers learn of a loss before they get the next snapshot.
        if self.has_broken && !self.settle_book(symbol)? {
            return Ok(());
        }
        let Self { order, publication, books, outdated, has_requests, .. } = self;
        let mut published = Ok(true);
        order.take_book(update, &mut |step| {
            if !matches!(published, Ok(true)) {
                return;
            }
            published = match step {
                BookStep::Apply(update) => publication.publish_book(&update, times),
                BookStep::Gap { expected, found } => {
                    books.insert(symbol, BookState::Awaiting(None));
                    *has_requests = true;
                    publish_gap(publication, symbol, expected, found)
                }
                BookStep::Valid => {
                    books.insert(symbol, BookState::Valid);
                    outdated.remove(&symbol);
                    publication.publish_status(FeedCondition::BookValid, FeedStatus { symbol, ..FeedStatus::default() })
                }
                BookStep::Hold | BookStep::Drop => Ok(true),
            };
        });
        if !published? {
            self.order.invalidate(symbol);
            self.mark_broken(symbol);
        }
        Ok(())
    }

    /// Publishes the gap of an instrument, whose last quote is out of date, and makes its book invalid.
    fn interrupt(&mut self, symbol: SymbolId) -> Result<(), RelayError> {
        let is_published = self.publish_gap(symbol, 0, 0)?;
        if self.books.get(&symbol) != Some(&BookState::Valid) {
            return Ok(());
        }
        self.order.invalidate(symbol);
        match is_published {
            true => self.await_snapshot(symbol),
            false => self.mark_broken(symbol),
        }
        Ok(())
    }

    fn await_snapshot(&mut self, symbol: SymbolId) {
        self.books.insert(symbol, BookState::Awaiting(None));
        self.has_requests = true;
    }

    fn mark_broken(&mut self, symbol: SymbolId) {
        self.books.insert(symbol, BookState::Broken);
        self.has_broken = true;
    }

    /// Publishes the losses, and the gaps of the books that they have broken, if the topic accepts messages again.
    fn settle_losses(&mut self) -> Result<(), RelayError> {
        let is_accepting = self.publication.publish_losses()?;
        if self.publication.take_published_losses() {
            self.break_books();
        }
        if !is_accepting || !self.has_broken {
            return Ok(());
        }
        let symbols: Vec<SymbolId> = self.books.keys().copied().collect();
        for symbol in symbols {
            if !self.settle_book(symbol)? {
                return Ok(());
            }
        }
        self.has_broken = false;
        Ok(())
    }

    /// Breaks all valid books, as subscribers do that have learned of a loss.
    fn break_books(&mut self) {
        let Self { order, books, has_broken, .. } = self;
        for (symbol, state) in books.iter_mut().filter(|(_, state)| **state == BookState::Valid) {
            order.invalidate(*symbol);
            (*state, *has_broken) = (BookState::Broken, true);
        }
    }

    /// Publishes the gap of a book, if it is broken. Returns false if the topic does not accept that.
    fn settle_book(&mut self, symbol: SymbolId) -> Result<bool, RelayError> {
        if self.books.get(&symbol) != Some(&BookState::Broken) {
            return Ok(true);
        }
        let is_published = self.publish_gap(symbol, 0, 0)?;
        if is_published {
            self.await_snapshot(symbol);
        }
        Ok(is_published)
    }

    fn publish_gap(&mut self, symbol: SymbolId, expected: u64, found: u64) -> Result<bool, RelayError> {
        publish_gap(&mut self.publication, symbol, expected, found)
    }

    /// Publishes an event of a connection. If the topic does not accept the event, it is counted as lost.
    fn publish_event(&mut self, condition: FeedCondition, index: usize, value: i64) -> Result<(), RelayError> {
        let connection = u8::try_from(index).unwrap_or(u8::MAX);
        let status = FeedStatus { value, connection, symbol: FeedStatus::ALL_SYMBOLS, ..FeedStatus::default() };
        self.publication.publish_status(condition, status).map(|_| ())
    }

    fn check_silence(&mut self, now: u64) -> Result<(), RelayError> {
        let silence_ns = self.context.clock.ns_between(self.last_arrival, now);
        let is_up = self.connections.iter().any(|connection| connection.is_up);
        if self.is_silent || !is_up || silence_ns < i64::try_from(self.config.silence_ns).unwrap_or(i64::MAX) {
            return Ok(());
        }
        self.is_silent = true;
        (self.context.report)(&format!("no market data has arrived for {} ms", silence_ns / 1_000_000));
        self.publish_event(FeedCondition::Silence, 0, silence_ns)
    }

    /// Hands the arrived frames over to their files, and reports the first loss of frames.
    fn check_raw(&mut self) {
        self.raw.iter_mut().for_each(|raw| _ = raw.hand_over());
        self.publication.totals.raw_missing = self.raw.iter().map(RawFrameWriter::dropped).sum();
        let why = match self.publication.totals.raw_missing {
            _ if self.raw.iter().any(RawFrameWriter::has_failed) => {
                "the file of frames cannot be written; further frames are missing from it, and the feed is carried on"
            }
            1.. => "the file of frames is written more slowly than frames arrive; some are missing from it",
            0 => return,
        };
        if !std::mem::replace(&mut self.is_raw_loss_reported, true) {
            (self.context.report)(why);
        }
    }

    fn store_totals(&mut self, meter: &FeedMeter) {
        for (index, connection) in self.publication.totals.connections.iter_mut().enumerate() {
            let counts = self.order.counts(index);
            (connection.won, connection.alone) = (counts.won, counts.alone);
        }
        meter.store(&self.publication.totals);
    }

    fn count_bad_frame(&mut self, index: usize, error: &FrameError) {
        self.publication.totals.connections[index].bad_frames += 1;
        self.bad_frames += 1;
        let rest = match self.bad_frames {
            ..MAX_REPORTED_FRAMES => "",
            MAX_REPORTED_FRAMES => "; further ones are only counted",
            _ => return,
        };
        (self.context.report)(&format!("connection {index}: {error}{rest}"));
    }

    fn ticks_of_ns(&self, ns: u64) -> u64 {
        self.context.clock.calibration().ticks_of_ns(ns)
    }
}

/// Returns the file of a connection's frames: `ticks.1.gz` beside `ticks.gz` for the second one.
fn raw_file(file: &Path, index: usize) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match (index, name.split_once('.')) {
        (0, _) => file.to_owned(),
        (_, Some((stem, end))) => file.with_file_name(format!("{stem}.{index}.{end}")),
        (_, None) => file.with_file_name(format!("{name}.{index}")),
    }
}

/// Publishes that updates of a book are missing. Returns false if the topic does not accept that.
fn publish_gap(
    publication: &mut FeedPublication<'_>,
    symbol: SymbolId,
    expected: u64,
    found: u64,
) -> Result<bool, RelayError> {
    let status = FeedStatus { symbol, expected, found, ..FeedStatus::default() };
    let is_published = publication.publish_status(FeedCondition::Gap, status)?;
    publication.totals.gaps += u64::from(is_published);
    Ok(is_published)
}
