//! Journal records, as flat little-endian structs, and their conversion to inputs.

use tickpath_market::{
    AccountId, CancelOrder, ConditionalOrder, ExecutionReport, ExtendedOrder, MassCancel, NewOrder, Price,
    ReplaceConditional, ReplaceOrder, ReportDetail, Request, StatusRequest, TextIdRequest, VenueId,
};
use tickpath_oms_risk::{
    ACCOUNT_BYTES, AccountLimits, DefinitionEnd, EARLIER_ACCOUNT_BYTES, EARLIER_INSTRUMENT_BYTES, FirmLimits, Grant,
    INSTRUMENT_BYTES, Instrument, NameRecord, RejectRule, SESSION_BYTES, SessionRules, SymbolLimits, VenueRules,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::control::{
    Boot, CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, ExpiryTimer, GapTimer, KillSwitch, MessageLoss,
    QueryStatus, Reconcile, Release, Resolve, SessionConnection, TriggerFired, UnsentRequest, VenueConnection,
};
use crate::departure::Departure;

/// Length of the longest record in bytes.
pub const RECORD_BYTES: usize = 168;

/// Defines [`RecordKind`]: the name, the struct and the code of each kind.
macro_rules! record_kinds {
    ($($name:ident($record:ident) = $code:literal,)+) => {
        /// Kind of a journal record: the struct that its bytes hold. Kinds below 64 are messages or belong to the log.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RecordKind {
            $(#[doc = concat!("[`", stringify!($record), "`]")] $name = $code,)+
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
    JournalStart(JournalStart) = 64,
    Instrument(Instrument) = 65,
    Account(AccountLimits) = 66,
    Kill(KillSwitch) = 67,
    Digest(Digest) = 68,
    JournalStop(JournalStop) = 69,
    New(NewRecord) = 70,
    Cancel(CancelRecord) = 71,
    Replace(ReplaceRecord) = 72,
    Report(ReportRecord) = 73,
    Boot(Boot) = 74,
    Venue(VenueRules) = 75,
    Session(SessionRules) = 76,
    Grant(Grant) = 77,
    DefinitionEnd(DefinitionEnd) = 78,
    VenueConnection(VenueConnection) = 79,
    SessionConnection(SessionConnection) = 80,
    UnsentRequest(UnsentRequest) = 81,
    Release(Release) = 82,
    MessageLoss(MessageLoss) = 83,
    Resolve(Resolve) = 84,
    QueryStatus(QueryStatus) = 85,
    GapTimer(GapTimer) = 86,
    DayEnd(DayEnd) = 87,
    Status(StatusRecord) = 88,
    MassCancel(MassCancelRecord) = 89,
    Lane(LaneRecord) = 90,
    JournalRollover(JournalRollover) = 91,
    SymbolLimits(SymbolLimits) = 92,
    Firm(FirmLimits) = 93,
    Conditional(ConditionalRecord) = 94,
    ReplaceConditional(ReplaceConditionalRecord) = 95,
    TriggerFired(TriggerFired) = 96,
    CancelScope(CancelScope) = 97,
    EnterOrder(EnterOrder) = 98,
    EnterFill(EnterFill) = 99,
    Reject(RejectRule) = 100,
    Name(NameRecord) = 101,
    Reconcile(Reconcile) = 102,
    EnterPosition(EnterPosition) = 103,
    ReportDetail(DetailRecord) = 104,
    Extended(ExtendedRecord) = 105,
    ByTextId(TextIdRecord) = 106,
    ExpiryTimer(ExpiryTimer) = 107,
}

/// Defines [`Input`], and the conversion of each input to and from its journal record. A definition that had fewer
/// bytes in earlier versions names their numbers.
macro_rules! inputs {
    (
        records { $($name:ident($record:ident $(, $earlier:expr)?),)+ }
        requests { $($request_record:ident($request_kind:ident: $message:ident),)+ }
    ) => {
        /// One input of the core.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Input {
            $(#[doc = concat!("[`", stringify!($record), "`]")] $name($record),)+
            /// Request of a client.
            Request {
                /// Session, send time and the reference price on arrival.
                envelope: Envelope,
                /// The request, as the client sent it.
                request: Request,
            },
        }

        $(
            #[doc = concat!("[`", stringify!($message), "`] in the journal.")]
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub struct $request_record {
                /// Facts that the sequencer added.
                pub envelope: Envelope,
                /// Message that the client sent.
                pub request: $message,
            }
        )+

        impl Input {
            /// Copies an input out of a journal record; none for records that are no inputs.
            pub fn read(kind: u8, bytes: &[u8]) -> Result<Option<Self>, RecordError> {
                let input = match RecordKind::from_code(kind).ok_or(RecordError::Kind(kind))? {
                    $(RecordKind::$name => Self::$name(read_record!(kind, bytes $(, $earlier)?)),)+
                    $(RecordKind::$request_kind => {
                        let $request_record { envelope, request } = read_exact_size(kind, bytes)?;
                        Self::Request { envelope, request: Request::$request_kind(request) }
                    })+
                    RecordKind::JournalStart => return read_exact_size::<JournalStart>(kind, bytes).map(|_| None),
                    RecordKind::Digest => return read_exact_size::<Digest>(kind, bytes).map(|_| None),
                    RecordKind::JournalStop => return read_exact_size::<JournalStop>(kind, bytes).map(|_| None),
                    RecordKind::Lane => return read_exact_size::<LaneRecord>(kind, bytes).map(|_| None),
                    RecordKind::JournalRollover => return read_exact_size::<JournalRollover>(kind, bytes).map(|_| None),
                    RecordKind::Name => return read_exact_size::<NameRecord>(kind, bytes).map(|_| None),
                };
                Ok(Some(input))
            }

            /// Returns the kind of the record that holds this input.
            pub fn kind(&self) -> RecordKind {
                match self {
                    $(Self::$name(_) => RecordKind::$name,)+
                    $(Self::Request { request: Request::$request_kind(_), .. } => RecordKind::$request_kind,)+
                }
            }

            /// Writes the record's bytes to the front of the buffer and returns them.
            #[inline]
            pub fn write<'a>(&self, buffer: &'a mut [u8; RECORD_BYTES]) -> &'a [u8] {
                match *self {
                    $(Self::$name(record) => put(&record, buffer),)+
                    $(Self::Request { envelope, request: Request::$request_kind(request) } => {
                        put(&$request_record { envelope, request }, buffer)
                    })+
                }
            }
        }
    };
}

macro_rules! read_record {
    ($kind:ident, $bytes:ident) => {
        read_exact_size($kind, $bytes)?
    };
    ($kind:ident, $bytes:ident, $earlier:expr) => {
        read_extended($kind, $bytes, &$earlier)?
    };
}

inputs! {
    records {
        Boot(Boot),
        Instrument(Instrument, [INSTRUMENT_BYTES, EARLIER_INSTRUMENT_BYTES]),
        Account(AccountLimits, [ACCOUNT_BYTES, EARLIER_ACCOUNT_BYTES]),
        Venue(VenueRules),
        Session(SessionRules, [SESSION_BYTES]),
        Grant(Grant),
        SymbolLimits(SymbolLimits),
        Firm(FirmLimits),
        Reject(RejectRule),
        DefinitionEnd(DefinitionEnd),
        Kill(KillSwitch),
        Report(ReportRecord),
        VenueConnection(VenueConnection),
        SessionConnection(SessionConnection),
        UnsentRequest(UnsentRequest),
        Release(Release),
        MessageLoss(MessageLoss),
        Resolve(Resolve),
        QueryStatus(QueryStatus),
        CancelScope(CancelScope),
        EnterOrder(EnterOrder),
        EnterFill(EnterFill),
        EnterPosition(EnterPosition),
        GapTimer(GapTimer),
        ExpiryTimer(ExpiryTimer),
        DayEnd(DayEnd),
        TriggerFired(TriggerFired),
        ReportDetail(DetailRecord),
        Reconcile(Reconcile),
    }
    requests {
        NewRecord(New: NewOrder),
        CancelRecord(Cancel: CancelOrder),
        ReplaceRecord(Replace: ReplaceOrder),
        StatusRecord(Status: StatusRequest),
        MassCancelRecord(MassCancel: MassCancel),
        ConditionalRecord(Conditional: ConditionalOrder),
        ReplaceConditionalRecord(ReplaceConditional: ReplaceConditional),
        ExtendedRecord(Extended: ExtendedOrder),
        TextIdRecord(ByTextId: TextIdRequest),
    }
}

/// Reason why bytes are not the journal record that they claim to be. The core alone judges codes inside a record: a
/// code that an older version accepted must never keep a later version from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A kind that is not one of [`RecordKind`].
    #[error("journal record kind {0} is unknown to this version; replay the journal with the version that wrote it")]
    Kind(u8),
    /// A length that does not fit the kind.
    #[error("a journal record of kind {kind} has {length} bytes; replay the journal with the version that wrote it")]
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
pub struct JournalStart {
    /// Version of the writer's transition rules.
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
    /// [`Departure::of`].
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

/// Details of a venue's report. They change no state: journal readers show them with their order and their fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DetailRecord {
    /// Message that the venue sent, with the core's id of the order.
    pub detail: ReportDetail,
    /// Venue whose line delivered it.
    pub source: VenueId,
    /// Line that delivered it, as its number plus one.
    pub line: u16,
    /// Low half of its number among the reports of that line.
    pub lane_sequence: u32,
    /// Session that is sent the message, as its number plus one; zero if none is, because its report was none for a
    /// client.
    pub session: u16,
    /// Zero.
    pub reserved: u16,
    /// Account of the order.
    pub account: AccountId,
}

/// Creation of a lane by the OMS. Not an input: a restart recognizes its lanes by this record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LaneRecord {
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
pub struct JournalRollover {
    /// Id of the journal.
    pub journal: u64,
}

/// Last record of a journal that was closed cleanly. Not an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct JournalStop {
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

impl JournalStop {
    /// Builds the record from the departure of the last request.
    pub fn after(last: Departure) -> Self {
        Self { released_before: last.at, flags_before: u64::from(last.flags()) }
    }

    /// Returns the departure of the last request in the journal.
    pub fn departure_before(&self) -> Departure {
        Departure::of(self.released_before, self.flags_before as u8)
    }
}

impl RecordKind {
    /// Returns the kind's code in the journal.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

fn read_exact_size<T: FromBytes>(kind: u8, bytes: &[u8]) -> Result<T, RecordError> {
    T::read_from_bytes(bytes).map_err(|_| RecordError::Length { kind, length: bytes.len() })
}

/// Reads a definition that had one of the `earlier` lengths; later fields are then zero, which is off.
fn read_extended<T: FromBytes + IntoBytes>(kind: u8, bytes: &[u8], earlier: &[usize]) -> Result<T, RecordError> {
    let mut record = T::new_zeroed();
    if !earlier.contains(&bytes.len()) && bytes.len() != size_of::<T>() {
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
