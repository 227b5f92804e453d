//! What lies in the journal: flat little-endian structs, and the inputs that they become.

use tickpath_market::{
    CancelOrder, ConditionalOrder, ExecutionReport, MassCancel, NewOrder, Price, ReplaceConditional, ReplaceOrder,
    Request, StatusRequest, VenueId,
};
use tickpath_risk::{ACCOUNT_BYTES, INSTRUMENT_BYTES, Name, RejectRule, SESSION_BYTES};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::control::{
    Boot, CancelScope, DayEnd, Doubt, EnterFill, EnterOrder, EnterPosition, Fired, Inquire, Kill, Line, Login,
    Reconcile, Release, Resolve, Returned, Timer,
};
use crate::departure::Departure;
use crate::{AccountLimits, Ended, FirmLimits, Grant, Instrument, SessionRules, SymbolLimits, VenueRules};

/// Bytes of the longest record.
pub const RECORD_BYTES: usize = 144;

/// One input of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A start of the OMS.
    Boot(Boot),
    /// Defines an instrument, or defines it anew.
    Instrument(Instrument),
    /// Sets the limits of an account.
    Account(AccountLimits),
    /// Says how a venue behaves.
    Venue(VenueRules),
    /// Says what a session asks for.
    Session(SessionRules),
    /// Lets a session trade for an account.
    Grant(Grant),
    /// Says what an account may do in one symbol.
    SymbolLimits(SymbolLimits),
    /// Sets the limits of the firm.
    Firm(FirmLimits),
    /// Says what is done after a venue's code.
    Reject(RejectRule),
    /// Ends a definition.
    Ended(Ended),
    /// Turns a kill switch on or off.
    Kill(Kill),
    /// A client's request.
    Request {
        /// Whose it is, and the reference price at its arrival.
        envelope: Envelope,
        /// The request, as the client sent it.
        request: Request,
    },
    /// A venue's report.
    Report(ReportRecord),
    /// A venue can be reached, or not.
    Line(Line),
    /// A session has come, or was lost.
    Login(Login),
    /// A request never left.
    Returned(Returned),
    /// What waits may go.
    Release(Release),
    /// Messages may be lost.
    Doubt(Doubt),
    /// An operator says what became of an order.
    Resolve(Resolve),
    /// An operator asks after an order.
    Inquire(Inquire),
    /// An operator cancels what works in a scope.
    CancelScope(CancelScope),
    /// An admin enters an order by hand.
    EnterOrder(EnterOrder),
    /// An admin enters a fill by hand.
    EnterFill(EnterFill),
    /// An admin enters a position by hand.
    EnterPosition(EnterPosition),
    /// Time has passed.
    Timer(Timer),
    /// The day has ended.
    DayEnd(DayEnd),
    /// The trigger of an armed order holds.
    Fired(Fired),
    /// An admin has a venue asked for all orders.
    Reconcile(Reconcile),
}

macro_rules! record_kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)+) => {
        /// The kind of a journal record: which struct its bytes are. Kinds below 64 are messages or belong to the log.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RecordKind {
            $($(#[$doc])* $name = $code,)+
        }

        impl RecordKind {
            /// All kinds, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The kind with this code, if there is one.
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

/// Why bytes are not the journal record they claim to be. Codes inside a record are the core's to judge: what an older
/// version took must never keep a later one from starting.
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
    /// The journal's id, by which a lane names the journal that it belongs to. Never zero.
    pub journal: u64,
}

/// What the sequencer writes beside a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Envelope {
    /// T0: when the client sent it, in ticks of the host's clock.
    pub sent: u64,
    /// When the previous request in the journal left the core, in ticks; zero if there is none. [`Departure`] says what
    /// that is.
    pub released_before: u64,
    /// The reference price of the symbol; zero if there is none.
    pub reference_price: Price,
    /// The age of the reference price, in nanoseconds.
    pub reference_age_ns: u64,
    /// The client's session: where the request came from.
    pub session: u16,
    /// How the previous request in the journal left: the flags of [`Departure`].
    pub flags_before: u8,
    /// 1 if the OMS sees no ticks.
    pub no_ticks: u8,
    /// The low half of the request's number in its session's lane.
    pub lane_sequence: u32,
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

/// A status request in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatusRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub order: StatusRequest,
}

/// A mass cancel in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MassCancelRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub orders: MassCancel,
}

/// A conditional order in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ConditionalRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub order: ConditionalOrder,
}

/// Another trigger for an armed order, in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceConditionalRecord {
    /// What the sequencer knows.
    pub envelope: Envelope,
    /// What the client sent.
    pub order: ReplaceConditional,
}

/// A venue's report in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReportRecord {
    /// What the venue sent.
    pub report: ExecutionReport,
    /// The venue whose lane brought it, whatever the report says.
    pub source: VenueId,
    /// The line that brought it, one above its number; zero for the venue's lane.
    pub line: u16,
    /// The low half of the report's number in that lane, or on that line.
    pub lane_sequence: u32,
}

/// The OMS has made a lane. Not an input: the shell knows its lanes again by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Lane {
    /// The epoch of the start that made it.
    pub incarnation: u64,
    /// The number of its first message.
    pub base: u64,
    /// Its session or venue.
    pub index: u16,
    /// The shell's number for what it carries.
    pub carries: u8,
    /// Zero.
    pub reserved: [u8; 5],
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

/// The last record of a journal's log, which goes on in another one. Not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Rolled {
    /// The journal's id.
    pub journal: u64,
}

/// The last record of a journal that was closed in order. Not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stop {
    /// When the last request in the journal left the core, in ticks; zero if there is none.
    pub released_before: u64,
    /// How the last request in the journal left: the flags of [`Departure`].
    pub flags_before: u64,
}

impl Envelope {
    /// How the previous request in the journal left.
    pub fn departure_before(&self) -> Departure {
        Departure::of(self.released_before, self.flags_before)
    }
}

impl Stop {
    /// After a last request that left like this.
    pub fn after(last: Departure) -> Self {
        Self { released_before: last.at, flags_before: u64::from(last.flags()) }
    }

    /// How the last request in the journal left.
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

    /// The kind of the record that holds this input.
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
    /// The code in the journal.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

fn flat<T: FromBytes>(kind: u8, bytes: &[u8]) -> Result<T, RecordError> {
    T::read_from_bytes(bytes).map_err(|_| RecordError::Length { kind, length: bytes.len() })
}

/// A definition that had so many bytes up to core version 3: what it did not have is zero, and off.
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
