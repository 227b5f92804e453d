//! Journal records of the order management system: the inputs of its core, as flat little-endian structs.
//!
//! ```text
//!   Request + Envelope ┐
//!   ReportRecord       ├──> Input ──write──> bytes of a record ──read──> Input
//!   Boot, Release, ... ┘      └──kind──> RecordKind
//! ```
//!
//! Definitions (instruments, limits, rights) are records, too: they are in [`tickpath_oms_risk`].
//!
//! | file           | contents                                               |
//! |----------------|--------------------------------------------------------|
//! | `record.rs`    | [`Input`], [`RecordKind`] and the records around them  |
//! | `control.rs`   | inputs about the OMS itself, and admin commands        |
//! | `departure.rs` | time and manner of a request's departure               |
//!
//! ```
//! use tickpath_oms_records::{DayEnd, Input, RECORD_BYTES};
//!
//! let input = Input::DayEnd(DayEnd { day: 20_261_122, lane_sequence: 0 });
//! let mut buffer = [0; RECORD_BYTES];
//! let bytes = input.write(&mut buffer);
//! assert_eq!(Input::read(input.kind().code(), bytes)?, Some(input));
//! # Ok::<(), tickpath_oms_records::RecordError>(())
//! ```

mod control;
mod departure;
mod record;

pub use self::control::{
    Boot, CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, ExpiryTimer, GapTimer, KILL_ACCOUNT, KILL_ALL,
    KILL_DISK, KILL_SESSION, KILL_SYMBOL, KillSwitch, LOST_ORDER, LOST_REPORTS, LOST_REQUESTS, MessageLoss,
    QueryStatus, Reconcile, Release, Resolve, SessionConnection, TriggerFired, UnsentRequest, VenueConnection,
    scope_by_name, scope_name,
};
pub use self::departure::Departure;
pub use self::record::{
    CancelRecord, ConditionalRecord, DetailRecord, Digest, Envelope, ExtendedRecord, Input, JournalRollover,
    JournalStart, JournalStop, LaneRecord, MassCancelRecord, NewRecord, RECORD_BYTES, RecordError, RecordKind,
    ReplaceConditionalRecord, ReplaceRecord, ReportRecord, StatusRecord, TextIdRecord,
};
