//! The venue's journal: every input in the order in which it was applied, and the lanes that carried the inputs.
//!
//! | kind | a record of | its payload |
//! |---|---|---|
//! | 32 to 36 | a request | its sequence number in its lane, then the bytes of the request |
//! | 96 | the venue | [`VenueIdentity`] |
//! | 97, 98, 99 | another lane of requests, another lane of reports, another market | [`LaneJoin`] |
//! | 100 | a tick | [`TickHeader`], then each of its four numbers that differs from the symbol's last tick |
//! | 101, 102, 103 | a busted fill, a corrected fill, the end of the day | execution id, [`CorrectRecord`], nothing |
//! | 104 | added symbols | the new number of symbols |
//! | 105 | new chances of the injected faults | [`FaultChances`] |
//! | 106 | the route of the records that follow, zero for the lanes | the route, as 32 bits |
//! | 107 | the first report of this route that must still be kept | its sequence number |
//! | 108 | a line of an OMS that has named itself, and its first request | [`NamedLine`] |
//!
//! A record of a new line on a used route forgets the line that had the route before.
//!
//! A record's stamp is the time in the venue's reports, so that a replay produces the same reports to the byte.

use tickpath_log::{LogMessage, LogOwner, LogPublishError, Writer};
use tickpath_market::{ExecId, Price, Quantity, Request, SymbolId, TopOfBook};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Config;
use crate::faults::FaultChances;
use crate::input::VenueInput;

/// Version of the venue's rules: a journal replays to the same books and reports under the same version only. A rule
/// about fields that were zero until then, such as post-only, keeps the version.
pub const RULES_VERSION: u32 = 1;

pub(crate) const VENUE_IDENTITY: u8 = 96;
pub(crate) const REQUESTS: u8 = 97;
pub(crate) const REPORTS: u8 = 98;
pub(crate) const MARKET: u8 = 99;
pub(crate) const TICK: u8 = 100;
pub(crate) const BUST: u8 = 101;
pub(crate) const CORRECT: u8 = 102;
pub(crate) const END_OF_DAY: u8 = 103;
pub(crate) const SYMBOLS_ADDED: u8 = 104;
pub(crate) const FAULTS: u8 = 105;
pub(crate) const ROUTE: u8 = 106;
pub(crate) const CONFIRMED: u8 = 107;
pub(crate) const NAMED_LINE: u8 = 108;

#[derive(Debug)]
pub(crate) enum VenueRecord {
    Identity(VenueIdentity),
    Requests(LaneJoin),
    Reports(LaneJoin),
    Market(LaneJoin),
    SymbolsAdded(u32),
    Faults(FaultChances),
    Route(u32),
    Confirmed(u64),
    NamedLine(NamedLine),
    Input(VenueInput),
}

/// Venue of a journal, recorded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct VenueIdentity {
    pub rules: u32,
    pub symbols: u32,
    pub venue: u32,
}

/// Owner of a lane, and the position at which the venue joined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LaneJoin {
    pub journal: u64,
    pub incarnation: u64,
    /// Sequence number at which the venue joined.
    pub first: u64,
}

/// Request lane of a line, and the OMS that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct NamedLine {
    pub lane: LaneJoin,
    pub oms: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct TickHeader {
    pub sequence: u64,
    pub symbol: u32,
    /// Changed numbers: bit 0 is the bid, 1 its quantity, 2 the ask, 3 its quantity.
    pub changed: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct CorrectRecord {
    pub exec_id: u64,
    pub price: i64,
    pub quantity: i64,
}

impl VenueIdentity {
    pub fn of(config: &Config) -> Self {
        Self { rules: RULES_VERSION, symbols: config.symbols, venue: u32::from(config.venue.0) }
    }
}

impl LaneJoin {
    /// Market of a venue without ticks, which has its own quotes alone.
    pub const QUOTES: Self = Self { journal: u64::MAX, incarnation: u64::MAX, first: 0 };

    pub fn new(owner: LogOwner, first: u64) -> Self {
        Self { journal: owner.journal, incarnation: owner.incarnation, first }
    }

    /// Returns whether the owner made the lane with the same journal in the same incarnation.
    pub fn is_of(&self, owner: LogOwner) -> bool {
        (self.journal, self.incarnation) == (owner.journal, owner.incarnation)
    }
}

impl VenueRecord {
    /// Reads a record. Returns none if no venue of this version can have written it.
    pub fn read(message: &LogMessage<'_>, ticks: &mut LastTicks) -> Option<Self> {
        let payload = message.payload;
        Some(match message.kind {
            VENUE_IDENTITY => Self::Identity(VenueIdentity::read_from_bytes(payload).ok()?),
            REQUESTS => Self::Requests(LaneJoin::read_from_bytes(payload).ok()?),
            REPORTS => Self::Reports(LaneJoin::read_from_bytes(payload).ok()?),
            MARKET => Self::Market(LaneJoin::read_from_bytes(payload).ok()?),
            TICK => {
                let (header, numbers) = TickHeader::read_from_prefix(payload).ok()?;
                Self::Input(VenueInput::Tick(header.sequence, ticks.read(&header, numbers)?))
            }
            BUST => Self::Input(VenueInput::Bust(ExecId(u64::read_from_bytes(payload).ok()?))),
            CORRECT => {
                let CorrectRecord { exec_id, price, quantity } = CorrectRecord::read_from_bytes(payload).ok()?;
                Self::Input(VenueInput::Correct(ExecId(exec_id), Price(price), Quantity(quantity)))
            }
            END_OF_DAY => Self::Input(VenueInput::EndOfDay),
            SYMBOLS_ADDED => Self::SymbolsAdded(u32::read_from_bytes(payload).ok()?),
            FAULTS => Self::Faults(FaultChances::read_from_bytes(payload).ok()?),
            ROUTE => Self::Route(u32::read_from_bytes(payload).ok()?),
            CONFIRMED => Self::Confirmed(u64::read_from_bytes(payload).ok()?),
            NAMED_LINE => Self::NamedLine(NamedLine::read_from_bytes(payload).ok()?),
            kind => {
                let (sequence, request) = u64::read_from_prefix(payload).ok()?;
                Self::Input(VenueInput::Request(sequence, Request::read(kind, request).ok()?))
            }
        })
    }

    /// Writes the record's payload. Returns its kind.
    fn write(&self, ticks: &LastTicks, payload: &mut Vec<u8>) -> u8 {
        let mut put = |kind, bytes: &[u8]| {
            payload.extend_from_slice(bytes);
            kind
        };
        match self {
            Self::Identity(identity) => put(VENUE_IDENTITY, identity.as_bytes()),
            Self::Requests(lane) => put(REQUESTS, lane.as_bytes()),
            Self::Reports(lane) => put(REPORTS, lane.as_bytes()),
            Self::Market(lane) => put(MARKET, lane.as_bytes()),
            Self::SymbolsAdded(symbols) => put(SYMBOLS_ADDED, symbols.as_bytes()),
            Self::Faults(chances) => put(FAULTS, chances.as_bytes()),
            Self::Route(route) => put(ROUTE, route.as_bytes()),
            Self::Confirmed(number) => put(CONFIRMED, number.as_bytes()),
            Self::NamedLine(named) => put(NAMED_LINE, named.as_bytes()),
            Self::Input(VenueInput::Request(sequence, request)) => {
                put(0, sequence.as_bytes());
                put(request.kind().code(), request.as_bytes())
            }
            Self::Input(VenueInput::Tick(sequence, tick)) => {
                ticks.write(*sequence, tick, payload);
                TICK
            }
            Self::Input(VenueInput::Bust(exec_id)) => put(BUST, exec_id.0.as_bytes()),
            Self::Input(VenueInput::Correct(exec_id, price, quantity)) => {
                put(CORRECT, CorrectRecord { exec_id: exec_id.0, price: price.0, quantity: quantity.0 }.as_bytes())
            }
            Self::Input(VenueInput::EndOfDay) => END_OF_DAY,
        }
    }
}

/// Last tick of each symbol: the record of the next tick holds only the numbers that differ.
#[derive(Debug)]
pub(crate) struct LastTicks(Vec<[i64; 4]>);

impl LastTicks {
    pub fn new(symbols: u32) -> Self {
        Self(vec![[0; 4]; symbols as usize])
    }

    pub fn add_symbols(&mut self, symbols: u32) {
        self.0.resize(self.0.len().max(symbols as usize), [0; 4]);
    }

    fn read(&mut self, header: &TickHeader, mut numbers: &[u8]) -> Option<TopOfBook> {
        let last = self.0.get_mut(header.symbol as usize)?;
        for (bit, number) in last.iter_mut().enumerate() {
            if header.changed & 1 << bit != 0 {
                (*number, numbers) = i64::read_from_prefix(numbers).ok()?;
            }
        }
        let [bid, bid_quantity, ask, ask_quantity] = *last;
        numbers.is_empty().then_some(TopOfBook {
            bid: Price(bid),
            bid_quantity: Quantity(bid_quantity),
            ask: Price(ask),
            ask_quantity: Quantity(ask_quantity),
            symbol: SymbolId(header.symbol),
            ..TopOfBook::default()
        })
    }

    fn write(&self, sequence: u64, tick: &TopOfBook, payload: &mut Vec<u8>) {
        let (last, numbers) = (self.0[tick.symbol.0 as usize], numbers(tick));
        let differs = |&bit: &usize| last[bit] != numbers[bit];
        let changed = (0..4).filter(differs).map(|bit| 1 << bit).sum();
        payload.extend_from_slice(TickHeader { sequence, symbol: tick.symbol.0, changed }.as_bytes());
        (0..4).filter(differs).for_each(|bit| payload.extend_from_slice(numbers[bit].as_bytes()));
    }

    fn note(&mut self, tick: &TopOfBook) {
        self.0[tick.symbol.0 as usize] = numbers(tick);
    }
}

fn numbers(tick: &TopOfBook) -> [i64; 4] {
    [tick.bid.0, tick.bid_quantity.0, tick.ask.0, tick.ask_quantity.0]
}

pub(crate) struct VenueJournal {
    pub log: Writer,
    ticks: LastTicks,
    /// Route of the next record, unless another route is recorded before it.
    route: usize,
    payload: Vec<u8>,
}

impl VenueJournal {
    /// Appends to a log; `ticks` and `route` are the state at its end.
    pub fn new(log: Writer, ticks: LastTicks, route: usize) -> Self {
        Self { log, ticks, route, payload: Vec::with_capacity(128) }
    }

    /// Returns the ticks that make these quotes each symbol's last tick. A symbol without a quote gets an empty tick.
    pub fn changed_quotes(&self, quotes: &[TopOfBook]) -> Vec<TopOfBook> {
        let wanted = |symbol| {
            let quote = quotes.iter().find(|quote| quote.symbol == symbol).copied();
            quote.unwrap_or(TopOfBook { symbol, ..TopOfBook::default() })
        };
        let ticks = (0..).map(SymbolId).map(wanted).zip(&self.ticks.0);
        ticks.filter(|(wanted, last)| numbers(wanted) != **last).map(|(wanted, _)| wanted).collect()
    }

    /// Writes a record of an input that came by this route, behind a record of the route if it changed.
    #[inline]
    pub fn append_from(&mut self, route: usize, stamp: u64, record: &VenueRecord) -> Result<(), LogPublishError> {
        if route != self.route {
            self.append(stamp, &VenueRecord::Route(route as u32))?;
            self.route = route;
        }
        self.append(stamp, record)
    }

    /// Writes a record, which survives the end of this process once this function has returned.
    pub fn append(&mut self, stamp: u64, record: &VenueRecord) -> Result<(), LogPublishError> {
        self.payload.clear();
        let kind = record.write(&self.ticks, &mut self.payload);
        self.log.publish(stamp, kind, &self.payload)?;
        match record {
            VenueRecord::Input(VenueInput::Tick(_, tick)) => self.ticks.note(tick),
            VenueRecord::SymbolsAdded(symbols) => self.ticks.add_symbols(*symbols),
            _ => {}
        }
        Ok(())
    }
}
