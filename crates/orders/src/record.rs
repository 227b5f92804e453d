//! What lies in the journal: flat little-endian structs, and the inputs that they become.

use tickpath_market::{
    AccountId, CancelOrder, ExecutionReport, Kind, MessageError, NewOrder, Price, Quantity, ReplaceOrder, Request,
    Symbol, SymbolId, VenueId,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One input of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Defines an instrument, or defines it anew.
    Instrument(Instrument),
    /// Sets the limits of an account.
    Account(AccountLimits),
    /// Turns a kill switch on or off.
    Kill(Kill),
    /// A client's request.
    Request {
        /// Whose it is, and the reference price at its arrival.
        envelope: Envelope,
        /// The request, as the client sent it.
        request: Request,
    },
    /// A venue's report. With the status `Unknown` it is the gateway's: it cannot know what became of the order.
    Report(ExecutionReport),
}

/// The kind of a journal record: which struct its bytes are. Kinds below 64 are messages or belong to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// [`Start`]
    Start = 64,
    /// [`Instrument`]
    Instrument = 65,
    /// [`AccountLimits`]
    Account = 66,
    /// [`Kill`]
    Kill = 67,
    /// [`Digest`]
    Digest = 68,
    /// [`Stop`]
    Stop = 69,
    /// [`NewRecord`]
    New = 70,
    /// [`CancelRecord`]
    Cancel = 71,
    /// [`ReplaceRecord`]
    Replace = 72,
    /// [`ReportRecord`]
    Report = 73,
}

/// Why bytes are not the journal record they claim to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The kind is not one of [`RecordKind`].
    #[error("a journal record of kind {0} is not known here; replay it with the version that wrote it")]
    Kind(u8),
    /// The length is not that of the kind.
    #[error("a journal record of kind {kind} has {length} bytes; replay it with the version that wrote it")]
    Length {
        /// The claimed kind.
        kind: u8,
        /// The length found.
        length: usize,
    },
    /// The message in the record has a field that nobody may write.
    #[error("the message in a journal record is not valid: {0}")]
    Message(#[from] MessageError),
}

/// The first record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Start {
    /// [`crate::CORE_VERSION`] of the writer.
    pub core_version: u32,
    /// Zero.
    pub reserved: u32,
    /// The rate of the host's clock, so that stamps can be read elsewhere.
    pub ticks_per_second: u64,
}

/// An instrument. Only ids below 65,536 and multipliers from 1 are taken; others are ignored and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Instrument {
    /// Its number.
    pub symbol: SymbolId,
    /// Where it trades.
    pub venue: VenueId,
    /// Zero.
    pub reserved: u16,
    /// Its name.
    pub name: Symbol,
    /// Whole currency units a point: notional = price × quantity × multiplier.
    pub multiplier: i64,
}

/// The limits of one account. Only ids below 65,536 are taken; others are ignored and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AccountLimits {
    /// Whose limits.
    pub account: AccountId,
    /// Messages a window; zero turns the check off.
    pub rate_limit: u32,
    /// The window, in ticks of the host's clock. It opens with its first message.
    pub rate_window: u64,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian.
    pub max_notional: [u8; 16],
    /// Farthest limit price from the reference, in basis points of the reference.
    pub collar: u32,
    /// Zero.
    pub reserved: u32,
    /// Oldest reference price, in ticks of the host's clock.
    pub max_reference_age: u64,
    /// Largest position in one symbol, long or short, working orders included.
    pub max_position: Quantity,
}

/// [`Kill::scope`]: everything.
pub const KILL_ALL: u8 = 1;
/// [`Kill::scope`]: one account.
pub const KILL_ACCOUNT: u8 = 2;
/// [`Kill::scope`]: one symbol.
pub const KILL_SYMBOL: u8 = 3;

/// A kill switch: while it is on, new orders and replaces are denied and cancels pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Kill {
    /// [`KILL_ALL`], [`KILL_ACCOUNT`] or [`KILL_SYMBOL`].
    pub scope: u8,
    /// Zero is off, all else is on.
    pub on: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// The account's or the symbol's id; not read when the scope is everything.
    pub target: u32,
}

/// What the sequencer writes beside a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Envelope {
    /// T0: when the client sent it, in ticks of the host's clock.
    pub sent: u64,
    /// T2 of the previous request in the journal, in ticks; zero if there is none.
    pub released_before: u64,
    /// The reference price of the symbol; zero if there is none.
    pub reference_price: Price,
    /// The age of the reference price, in ticks.
    pub reference_age: u64,
    /// The client's session.
    pub session: u16,
    /// 1 if the previous request in the journal had to wait for its venue's lane.
    pub queued_before: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// A new order in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NewRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub order: NewOrder,
}

/// A cancel in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CancelRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub order: CancelOrder,
}

/// A replace in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub order: ReplaceOrder,
}

/// A venue's report in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct ReportRecord {
    /// What the venue sent.
    pub report: ExecutionReport,
}

/// Where the core stood when the record was written. A check, not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Digest {
    /// Inputs applied so far.
    pub inputs: u64,
    /// Outputs given so far.
    pub outputs: u64,
    /// The fold over every output byte and its identity.
    pub digest: u64,
}

/// The last record of a journal that was closed in order. Not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stop {
    /// T2 of the last request in the journal, in ticks; zero if there is none.
    pub released_before: u64,
    /// 1 if the last request in the journal had to wait for its venue's lane.
    pub queued_before: u64,
}

impl Input {
    /// Copies an input out of a journal record and checks it; none for records that are no inputs.
    pub fn read(kind: u8, bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        let input = match RecordKind::from_code(kind).ok_or(RecordError::Kind(kind))? {
            RecordKind::Start => return flat::<Start>(kind, bytes).map(|_| None),
            RecordKind::Digest => return flat::<Digest>(kind, bytes).map(|_| None),
            RecordKind::Stop => return flat::<Stop>(kind, bytes).map(|_| None),
            RecordKind::Instrument => Self::Instrument(flat(kind, bytes)?),
            RecordKind::Account => Self::Account(flat(kind, bytes)?),
            RecordKind::Kill => Self::Kill(flat(kind, bytes)?),
            RecordKind::New => {
                let NewRecord { envelope, order } = flat(kind, bytes)?;
                order.check()?;
                Self::Request { envelope, request: Request::New(order) }
            }
            RecordKind::Cancel => {
                let CancelRecord { envelope, order } = flat(kind, bytes)?;
                Self::Request { envelope, request: Request::Cancel(order) }
            }
            RecordKind::Replace => {
                let ReplaceRecord { envelope, order } = flat(kind, bytes)?;
                Self::Request { envelope, request: Request::Replace(order) }
            }
            RecordKind::Report => {
                flat::<ReportRecord>(kind, bytes)?;
                Self::Report(ExecutionReport::read(Kind::ExecutionReport.code(), bytes)?)
            }
        };
        Ok(Some(input))
    }

    /// The kind of the record that holds this input.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Instrument(_) => RecordKind::Instrument,
            Self::Account(_) => RecordKind::Account,
            Self::Kill(_) => RecordKind::Kill,
            Self::Request { request: Request::New(_), .. } => RecordKind::New,
            Self::Request { request: Request::Cancel(_), .. } => RecordKind::Cancel,
            Self::Request { request: Request::Replace(_), .. } => RecordKind::Replace,
            Self::Report(_) => RecordKind::Report,
        }
    }

    /// Writes the record's bytes to the front of the buffer and returns them.
    pub fn write<'a>(&self, buffer: &'a mut [u8; 128]) -> &'a [u8] {
        match *self {
            Self::Instrument(instrument) => put(&instrument, buffer),
            Self::Account(limits) => put(&limits, buffer),
            Self::Kill(kill) => put(&kill, buffer),
            Self::Request { envelope, request: Request::New(order) } => put(&NewRecord { envelope, order }, buffer),
            Self::Request { envelope, request: Request::Cancel(order) } => {
                put(&CancelRecord { envelope, order }, buffer)
            }
            Self::Request { envelope, request: Request::Replace(order) } => {
                put(&ReplaceRecord { envelope, order }, buffer)
            }
            Self::Report(report) => put(&report, buffer),
        }
    }
}

impl RecordKind {
    /// All kinds, in the order of their codes.
    pub const ALL: &'static [Self] = &[
        Self::Start,
        Self::Instrument,
        Self::Account,
        Self::Kill,
        Self::Digest,
        Self::Stop,
        Self::New,
        Self::Cancel,
        Self::Replace,
        Self::Report,
    ];

    /// The kind with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code.checked_sub(Self::Start.code())?)).copied()
    }

    /// The code in the journal.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl AccountLimits {
    /// The largest notional of one order, in units of 10⁻¹⁶ of the currency.
    pub fn max_notional(&self) -> i128 {
        i128::from_le_bytes(self.max_notional)
    }
}

fn flat<T: FromBytes>(kind: u8, bytes: &[u8]) -> Result<T, RecordError> {
    T::read_from_bytes(bytes).map_err(|_| RecordError::Length { kind, length: bytes.len() })
}

fn put<'a, T: IntoBytes + Immutable>(record: &T, buffer: &'a mut [u8; 128]) -> &'a [u8] {
    let bytes = record.as_bytes();
    buffer[..bytes.len()].copy_from_slice(bytes);
    &buffer[..bytes.len()]
}
