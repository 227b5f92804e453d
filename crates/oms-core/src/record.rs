//! Journal records, as flat little-endian structs, and their conversion to inputs.

use tickpath_market::{
    CancelOrder, ConditionalOrder, ExecutionReport, MassCancel, NewOrder, Price, ReplaceConditional, ReplaceOrder,
    Request, StatusRequest, VenueId,
};
use tickpath_oms_risk::{ACCOUNT_BYTES, INSTRUMENT_BYTES, Name, RejectRule, SESSION_BYTES};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::control::{
    Boot, CancelScope, DayEnd, Doubt, EnterFill, EnterOrder, EnterPosition, Fired, Inquire, Kill, Line, Login,
    Reconcile, Release, Resolve, Returned, Timer,
};
use crate::departure::Departure;
use crate::{AccountLimits, Ended, FirmLimits, Grant, Instrument, SessionRules, SymbolLimits, VenueRules};

/// Length of the longest record in bytes.
pub const RECORD_BYTES: usize = 144;

/// One input of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Start of the OMS.
    Boot(Boot),
    /// Definition of an instrument, new or changed.
    Instrument(Instrument),
    /// Limits of an account.
    Account(AccountLimits),
    /// Rules of a venue.
    Venue(VenueRules),
    /// Rules of a session.
    Session(SessionRules),
    /// Right of a session to trade for an account.
    Grant(Grant),
    /// Limits of an account in one symbol.
    SymbolLimits(SymbolLimits),
    /// Limits of the firm.
    Firm(FirmLimits),
    /// Retry rule for a venue's reject code.
    Reject(RejectRule),
    /// End of a definition.
    Ended(Ended),
    /// Kill switch, turned on or off.
    Kill(Kill),
    /// Request of a client.
    Request {
        /// Session, send time and the reference price on arrival.
        envelope: Envelope,
        /// The request, as the client sent it.
        request: Request,
    },
    /// Report of a venue.
    Report(ReportRecord),
    /// Change of a venue's connection: up or down.
    Line(Line),
    /// Logon or loss of a session.
    Login(Login),
    /// Request that never left for its venue.
    Returned(Returned),
    /// Permission for the next waiting request to leave.
    Release(Release),
    /// Possible loss of messages.
    Doubt(Doubt),
    /// Admin command: the outcome of an order in doubt.
    Resolve(Resolve),
    /// Admin command: status request for an order.
    Inquire(Inquire),
    /// Admin command: cancel of the working orders in a scope.
    CancelScope(CancelScope),
    /// Admin command: order entered by hand.
    EnterOrder(EnterOrder),
    /// Admin command: fill entered by hand.
    EnterFill(EnterFill),
    /// Admin command: position entered by hand.
    EnterPosition(EnterPosition),
    /// Check for overdue sequence gaps.
    Timer(Timer),
    /// End of the trading day.
    DayEnd(DayEnd),
    /// Fired trigger of an armed order.
    Fired(Fired),
    /// Admin command: status request to a venue for all orders.
    Reconcile(Reconcile),
}

macro_rules! record_kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)+) => {
        /// Kind of a journal record: the struct that its bytes hold. Kinds below 64 are messages or belong to the log.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RecordKind {
            $($(#[$doc])* $name = $code,)+
        }

        impl RecordKind {
            /// All kinds, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns the kind with this code, if there is one.
            #[inline]
            pub fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

record_kinds! {
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
    /// [`Boot`]
    Boot = 74,
    /// [`VenueRules`]
    Venue = 75,
    /// [`SessionRules`]
    Session = 76,
    /// [`Grant`]
    Grant = 77,
    /// [`Ended`]
    Ended = 78,
    /// [`Line`]
    Line = 79,
    /// [`Login`]
    Login = 80,
    /// [`Returned`]
    Returned = 81,
    /// [`Release`]
    Release = 82,
    /// [`Doubt`]
    Doubt = 83,
    /// [`Resolve`]
    Resolve = 84,
    /// [`Inquire`]
    Inquire = 85,
    /// [`Timer`]
    Timer = 86,
    /// [`DayEnd`]
    DayEnd = 87,
    /// [`StatusRecord`]
    Status = 88,
    /// [`MassCancelRecord`]
    MassCancel = 89,
    /// [`Lane`]
    Lane = 90,
    /// [`Rolled`]
    Rolled = 91,
    /// [`SymbolLimits`]
    SymbolLimits = 92,
    /// [`FirmLimits`]
    Firm = 93,
    /// [`ConditionalRecord`]
    Conditional = 94,
    /// [`ReplaceConditionalRecord`]
    ReplaceConditional = 95,
    /// [`Fired`]
    Fired = 96,
    /// [`CancelScope`]
    CancelScope = 97,
    /// [`EnterOrder`]
    EnterOrder = 98,
    /// [`EnterFill`]
    EnterFill = 99,
    /// [`RejectRule`]
    Reject = 100,
    /// [`Name`]
    Name = 101,
    /// [`Reconcile`]
    Reconcile = 102,
    /// [`EnterPosition`]
    EnterPosition = 103,
}

/// Reason why bytes are not the journal record that they claim to be. The core alone judges codes inside a record: a
/// code that an older version accepted must never keep a later version from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A kind that is not one of [`RecordKind`].
    #[error("a journal record of kind {0} is not known here; replay it with the version that wrote it")]
    Kind(u8),
    /// A length that does not fit the kind.
    #[error("a journal record of kind {kind} has {length} bytes; replay it with the version that wrote it")]
    Length {
        /// Claimed kind.
        kind: u8,
        /// Actual length in bytes.
        length: usize,
    },
}

/// First record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Start {
    /// [`crate::CORE_VERSION`] of the writer.
    pub core_version: u32,
    /// Zero.
    pub reserved: u32,
    /// Rate of the host's clock, so that stamps can be converted on other hosts.
    pub ticks_per_second: u64,
    /// Id of the journal, which a lane uses to name its journal. Never zero.
    pub journal: u64,
}

/// Facts that the sequencer journals with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Envelope {
    /// T0: the time at which the client sent the request, in ticks of the host's clock.
    pub sent: u64,
    /// Time at which the previous request in the journal left the core, in ticks; zero without a previous request. See
    /// [`Departure::at`].
    pub released_before: u64,
    /// Reference price of the symbol; zero if there is none.
    pub reference_price: Price,
    /// Age of the reference price, in nanoseconds.
    pub reference_age_ns: u64,
    /// Session of the client that sent the request.
    pub session: u16,
    /// Departure flags of the previous request in the journal, as in [`Departure`].
    pub flags_before: u8,
    /// 1 if the OMS receives no ticks.
    pub no_ticks: u8,
    /// Low half of the request's sequence number in its session's lane.
    pub lane_sequence: u32,
}

/// New order in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NewRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub order: NewOrder,
}

/// Cancel in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CancelRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub order: CancelOrder,
}

/// Replace in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub order: ReplaceOrder,
}

/// Status request in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatusRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub order: StatusRequest,
}

/// Mass cancel in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MassCancelRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub orders: MassCancel,
}

/// Conditional order in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ConditionalRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub order: ConditionalOrder,
}

/// Replace of an armed order and its trigger, in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceConditionalRecord {
    /// Facts that the sequencer added.
    pub envelope: Envelope,
    /// Message that the client sent.
    pub order: ReplaceConditional,
}

/// Venue report in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReportRecord {
    /// Message that the venue sent.
    pub report: ExecutionReport,
    /// Venue whose lane delivered the report, regardless of the venue that the report names.
    pub source: VenueId,
    /// Line that delivered the report, as its number plus one; zero for the venue's lane.
    pub line: u16,
    /// Low half of the report's sequence number in that lane or on that line.
    pub lane_sequence: u32,
}

/// Creation of a lane by the OMS. Not an input: a restart recognizes its lanes by this record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Lane {
    /// Epoch of the start that created the lane.
    pub incarnation: u64,
    /// Sequence number of the lane's first message.
    pub base: u64,
    /// Session or venue of the lane.
    pub index: u16,
    /// The shell's code for the kind of lane.
    pub carries: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// State of the digest when the record was written. A check, not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Digest {
    /// Number of inputs applied so far.
    pub inputs: u64,
    /// Number of outputs produced so far.
    pub outputs: u64,
    /// Digest over every output's bytes and identity.
    pub digest: u64,
}

/// Last record of a journal's log that continues in another log. Not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Rolled {
    /// Id of the journal.
    pub journal: u64,
}

/// Last record of a journal that was closed cleanly. Not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stop {
    /// Time at which the last request in the journal left the core, in ticks; zero if there is none.
    pub released_before: u64,
    /// Departure flags of the last request in the journal, as in [`Departure`].
    pub flags_before: u64,
}

impl Envelope {
    /// Returns the departure of the previous request in the journal.
    pub fn departure_before(&self) -> Departure {
        Departure::of(self.released_before, self.flags_before)
    }
}

impl Stop {
    /// Builds the record from the departure of the last request.
    pub fn after(last: Departure) -> Self {
        Self { released_before: last.at, flags_before: u64::from(last.flags()) }
    }

    /// Returns the departure of the last request in the journal.
    pub fn departure_before(&self) -> Departure {
        Departure::of(self.released_before, self.flags_before as u8)
    }
}

impl Input {
    /// Copies an input out of a journal record; none for records that are no inputs.
    pub fn read(kind: u8, bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        let request = |envelope, request| Self::Request { envelope, request };
        let input = match RecordKind::from_code(kind).ok_or(RecordError::Kind(kind))? {
            RecordKind::Start => return flat::<Start>(kind, bytes).map(|_| None),
            RecordKind::Digest => return flat::<Digest>(kind, bytes).map(|_| None),
            RecordKind::Stop => return flat::<Stop>(kind, bytes).map(|_| None),
            RecordKind::Lane => return flat::<Lane>(kind, bytes).map(|_| None),
            RecordKind::Rolled => return flat::<Rolled>(kind, bytes).map(|_| None),
            RecordKind::Name => return flat::<Name>(kind, bytes).map(|_| None),
            RecordKind::New => {
                let NewRecord { envelope, order } = flat(kind, bytes)?;
                request(envelope, Request::New(order))
            }
            RecordKind::Cancel => {
                let CancelRecord { envelope, order } = flat(kind, bytes)?;
                request(envelope, Request::Cancel(order))
            }
            RecordKind::Replace => {
                let ReplaceRecord { envelope, order } = flat(kind, bytes)?;
                request(envelope, Request::Replace(order))
            }
            RecordKind::Status => {
                let StatusRecord { envelope, order } = flat(kind, bytes)?;
                request(envelope, Request::Status(order))
            }
            RecordKind::MassCancel => {
                let MassCancelRecord { envelope, orders } = flat(kind, bytes)?;
                request(envelope, Request::MassCancel(orders))
            }
            RecordKind::Conditional => {
                let ConditionalRecord { envelope, order } = flat(kind, bytes)?;
                request(envelope, Request::Conditional(order))
            }
            RecordKind::ReplaceConditional => {
                let ReplaceConditionalRecord { envelope, order } = flat(kind, bytes)?;
                request(envelope, Request::ReplaceConditional(order))
            }
            RecordKind::Report => Self::Report(flat(kind, bytes)?),
            RecordKind::Boot => Self::Boot(flat(kind, bytes)?),
            RecordKind::Instrument => Self::Instrument(grown(kind, bytes, INSTRUMENT_BYTES)?),
            RecordKind::Account => Self::Account(grown(kind, bytes, ACCOUNT_BYTES)?),
            RecordKind::Venue => Self::Venue(flat(kind, bytes)?),
            RecordKind::Session => Self::Session(grown(kind, bytes, SESSION_BYTES)?),
            RecordKind::SymbolLimits => Self::SymbolLimits(flat(kind, bytes)?),
            RecordKind::Firm => Self::Firm(flat(kind, bytes)?),
            RecordKind::Grant => Self::Grant(flat(kind, bytes)?),
            RecordKind::Reject => Self::Reject(flat(kind, bytes)?),
            RecordKind::Ended => Self::Ended(flat(kind, bytes)?),
            RecordKind::Kill => Self::Kill(flat(kind, bytes)?),
            RecordKind::Line => Self::Line(flat(kind, bytes)?),
            RecordKind::Login => Self::Login(flat(kind, bytes)?),
            RecordKind::Returned => Self::Returned(flat(kind, bytes)?),
            RecordKind::Release => Self::Release(flat(kind, bytes)?),
            RecordKind::Doubt => Self::Doubt(flat(kind, bytes)?),
            RecordKind::Resolve => Self::Resolve(flat(kind, bytes)?),
            RecordKind::Inquire => Self::Inquire(flat(kind, bytes)?),
            RecordKind::CancelScope => Self::CancelScope(flat(kind, bytes)?),
            RecordKind::EnterOrder => Self::EnterOrder(flat(kind, bytes)?),
            RecordKind::EnterFill => Self::EnterFill(flat(kind, bytes)?),
            RecordKind::EnterPosition => Self::EnterPosition(flat(kind, bytes)?),
            RecordKind::Timer => Self::Timer(flat(kind, bytes)?),
            RecordKind::DayEnd => Self::DayEnd(flat(kind, bytes)?),
            RecordKind::Fired => Self::Fired(flat(kind, bytes)?),
            RecordKind::Reconcile => Self::Reconcile(flat(kind, bytes)?),
        };
        Ok(Some(input))
    }

    /// Returns the kind of the record that holds this input.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Boot(_) => RecordKind::Boot,
            Self::Instrument(_) => RecordKind::Instrument,
            Self::Account(_) => RecordKind::Account,
            Self::Venue(_) => RecordKind::Venue,
            Self::Session(_) => RecordKind::Session,
            Self::SymbolLimits(_) => RecordKind::SymbolLimits,
            Self::Firm(_) => RecordKind::Firm,
            Self::Grant(_) => RecordKind::Grant,
            Self::Reject(_) => RecordKind::Reject,
            Self::Ended(_) => RecordKind::Ended,
            Self::Kill(_) => RecordKind::Kill,
            Self::Request { request: Request::New(_), .. } => RecordKind::New,
            Self::Request { request: Request::Cancel(_), .. } => RecordKind::Cancel,
            Self::Request { request: Request::Replace(_), .. } => RecordKind::Replace,
            Self::Request { request: Request::Status(_), .. } => RecordKind::Status,
            Self::Request { request: Request::MassCancel(_), .. } => RecordKind::MassCancel,
            Self::Request { request: Request::Conditional(_), .. } => RecordKind::Conditional,
            Self::Request { request: Request::ReplaceConditional(_), .. } => RecordKind::ReplaceConditional,
            Self::Report(_) => RecordKind::Report,
            Self::Line(_) => RecordKind::Line,
            Self::Login(_) => RecordKind::Login,
            Self::Returned(_) => RecordKind::Returned,
            Self::Release(_) => RecordKind::Release,
            Self::Doubt(_) => RecordKind::Doubt,
            Self::Resolve(_) => RecordKind::Resolve,
            Self::Inquire(_) => RecordKind::Inquire,
            Self::CancelScope(_) => RecordKind::CancelScope,
            Self::EnterOrder(_) => RecordKind::EnterOrder,
            Self::EnterFill(_) => RecordKind::EnterFill,
            Self::EnterPosition(_) => RecordKind::EnterPosition,
            Self::Timer(_) => RecordKind::Timer,
            Self::DayEnd(_) => RecordKind::DayEnd,
            Self::Fired(_) => RecordKind::Fired,
            Self::Reconcile(_) => RecordKind::Reconcile,
        }
    }

    /// Writes the record's bytes to the front of the buffer and returns them.
    #[inline]
    pub fn write<'a>(&self, buffer: &'a mut [u8; RECORD_BYTES]) -> &'a [u8] {
        match *self {
            Self::Request { envelope, request: Request::New(order) } => put(&NewRecord { envelope, order }, buffer),
            Self::Request { envelope, request: Request::Cancel(order) } => {
                put(&CancelRecord { envelope, order }, buffer)
            }
            Self::Request { envelope, request: Request::Replace(order) } => {
                put(&ReplaceRecord { envelope, order }, buffer)
            }
            Self::Request { envelope, request: Request::Status(order) } => {
                put(&StatusRecord { envelope, order }, buffer)
            }
            Self::Request { envelope, request: Request::MassCancel(orders) } => {
                put(&MassCancelRecord { envelope, orders }, buffer)
            }
            Self::Request { envelope, request: Request::Conditional(order) } => {
                put(&ConditionalRecord { envelope, order }, buffer)
            }
            Self::Request { envelope, request: Request::ReplaceConditional(order) } => {
                put(&ReplaceConditionalRecord { envelope, order }, buffer)
            }
            Self::Report(record) => put(&record, buffer),
            Self::Boot(record) => put(&record, buffer),
            Self::Instrument(record) => put(&record, buffer),
            Self::Account(record) => put(&record, buffer),
            Self::Venue(record) => put(&record, buffer),
            Self::Session(record) => put(&record, buffer),
            Self::SymbolLimits(record) => put(&record, buffer),
            Self::Firm(record) => put(&record, buffer),
            Self::Grant(record) => put(&record, buffer),
            Self::Reject(record) => put(&record, buffer),
            Self::Ended(record) => put(&record, buffer),
            Self::Kill(record) => put(&record, buffer),
            Self::Line(record) => put(&record, buffer),
            Self::Login(record) => put(&record, buffer),
            Self::Returned(record) => put(&record, buffer),
            Self::Release(record) => put(&record, buffer),
            Self::Doubt(record) => put(&record, buffer),
            Self::Resolve(record) => put(&record, buffer),
            Self::Inquire(record) => put(&record, buffer),
            Self::CancelScope(record) => put(&record, buffer),
            Self::EnterOrder(record) => put(&record, buffer),
            Self::EnterFill(record) => put(&record, buffer),
            Self::EnterPosition(record) => put(&record, buffer),
            Self::Timer(record) => put(&record, buffer),
            Self::DayEnd(record) => put(&record, buffer),
            Self::Fired(record) => put(&record, buffer),
            Self::Reconcile(record) => put(&record, buffer),
        }
    }
}

impl RecordKind {
    /// Returns the kind's code in the journal.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

fn flat<T: FromBytes>(kind: u8, bytes: &[u8]) -> Result<T, RecordError> {
    T::read_from_bytes(bytes).map_err(|_| RecordError::Length { kind, length: bytes.len() })
}

/// Reads a definition that had `before` bytes up to core version 3; later fields are then zero, which is off.
fn grown<T: FromBytes + IntoBytes>(kind: u8, bytes: &[u8], before: usize) -> Result<T, RecordError> {
    let mut record = T::new_zeroed();
    if bytes.len() != before && bytes.len() != size_of::<T>() {
        return Err(RecordError::Length { kind, length: bytes.len() });
    }
    record.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    Ok(record)
}

fn put<'a, T: IntoBytes + Immutable>(record: &T, buffer: &'a mut [u8; RECORD_BYTES]) -> &'a [u8] {
    let bytes = record.as_bytes();
    buffer[..bytes.len()].copy_from_slice(bytes);
    &buffer[..bytes.len()]
}
