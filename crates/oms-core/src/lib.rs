//! The order management core: a pure function from (state, input) to outputs.
//!
//! ```text
//!             journal records                       identity (sequence, index)
//!   requests ──────┐                                ┌──> Output::Venue    to an order's venue, always first
//!   reports ───────┼──> Input ──> Core::apply ──────┼──> Output::Report   to the client
//!   starts, lines, ┘                │               └──> Output::Denied   to the client
//!   limits, kills, operators        │
//!                                   └──> Digest: the same inputs give the same bytes
//! ```
//!
//! The core does no I/O and reads no clock: the time, the reference price and the order's id come with the input. A
//! replay of the journal gives the same state, the same outputs and the same [`Digest`].
//!
//! | file            | contents                                                           |
//! |-----------------|--------------------------------------------------------------------|
//! | `record.rs`     | journal records, and their conversion to an [`Input`]              |
//! | `control.rs`    | inputs about the OMS itself, as journal records                    |
//! | `core.rs`       | the state, and its single entry point: [`Core::apply`]             |
//! | `requests.rs`   | new orders, cancels, replaces, status requests, mass cancels       |
//! | `reports.rs`    | the merge of venue reports, in any order of arrival                |
//! | `control_inputs.rs`    | starts, lines, doubts, timers, admin commands                      |
//! | `admin_command.rs`      | validation of admin commands, and their error messages             |
//! | `unanswered.rs` | orders whose venue owes an answer                                  |
//! | `manual_entry.rs`      | orders, fills and positions that an admin enters by hand           |
//! | `unknown_reports.rs`    | reports of unknown orders                                          |
//! | `retry.rs`      | retries of orders that their venue has rejected                    |
//! | `retry_rules.rs`     | the retry rules, and the retry state of each order                 |
//! | `aliases.rs`      | venue ids of orders that do not go by the core's id                |
//! | `day.rs`        | the end of a trading day                                           |
//! | `conditional.rs` | orders that wait for a trigger                                    |
//! | `state.rs`      | the table of (phase, event), and the status derived from it        |
//! | `optional_checks.rs`       | facts for the optional checks that most configurations leave off   |
//! | `recent.rs`     | the latest orders of an account, to detect duplicates              |
//! | `references.rs`      | references to an id, which must keep its meaning while any exist   |
//! | `trading_config.rs`       | trading configuration: accounts, instruments, sessions, kills      |
//! | `venue_table.rs`      | venues, and the requests that wait for them                        |
//! | `position.rs`   | net and working quantity for each (account, symbol), and its day   |
//! | `self_match.rs`        | prices of an account's own orders, for self-match prevention       |
//! | `order.rs`      | the data of an order, a cancel or replace, and a fill              |
//! | `output.rs`     | outputs of the core                                                |
//! | `open_orders.rs`       | the open orders of a session, an account and a symbol              |
//! | `listing.rs`    | the open orders as a list, in pages                                |
//! | `spare_page.rs`      | memory for the next orders, built on another thread                |
//! | `digest.rs`     | the digest over every output                                       |
//! | `snapshot.rs`      | a core's snapshot, saved and loaded                                |
//!
//! Definitions (instruments, limits, rights) and the table of checks are in [`tickpath_oms_risk`]; the containers of
//! orders, fills and ids, and the byte form of a snapshot, are in [`tickpath_oms_slots`].
//!
//! # Convergence
//!
//! Reports come twice and in any order, and the end state does not depend on either: fills are a set, terms and
//! cumulative quantity are those with the highest venue sequence, the last amendment of a fill holds, and an ended
//! order stays ended. Once no venue sequence is missing, the fills must add up. A contradiction makes the order
//! `Unknown`, never a guess; so does a loss of messages, until the venue has answered a status request sent after the
//! loss. An unknown order keeps its exposure, on both sides where the venue counts less than the core has booked, and
//! the core asks the venue for its status.
//!
//! # Identity
//!
//! An order's id is the epoch of the start that accepted it and its journal sequence. An epoch is used once, so an id
//! that a power loss took from the journal, and that a venue may still work, is never given to another order.

mod admin_command;
mod aliases;
mod conditional;
mod control;
mod control_inputs;
mod core;
mod day;
mod departure;
mod digest;
mod listing;
mod manual_entry;
mod open_orders;
mod optional_checks;
mod order;
mod output;
mod position;
mod recent;
mod record;
mod references;
mod reports;
mod requests;
mod retry;
mod retry_rules;
mod self_match;
mod snapshot;
mod spare_page;
mod state;
mod trading_config;
mod unanswered;
mod unknown_reports;
mod venue_queue;
mod venue_table;
mod warm_up;

pub use self::admin_command::AdminCommandError;
pub use self::conditional::ArmedOrder;
pub use self::control::{
    Boot, CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, GapTimer, KILL_ACCOUNT, KILL_ALL, KILL_DISK,
    KILL_SESSION, KILL_SYMBOL, KillSwitch, LOST_ORDER, LOST_REPORTS, LOST_REQUESTS, MessageLoss, QueryStatus,
    Reconcile, Release, Resolve, SessionConnection, TriggerFired, UnsentRequest, VenueConnection, scope_by_name,
    scope_name,
};
pub use self::core::{At, CORE_VERSION, Config, Core, CoreCounts};
pub use self::departure::Departure;
pub use self::listing::OpenPage;
pub use self::order::OrderView;
pub use self::output::{Output, Outputs};
pub use self::position::PositionView;
pub use self::record::{
    CancelRecord, ConditionalRecord, Digest, Envelope, Input, JournalRollover, JournalStart, JournalStop, LaneRecord,
    MassCancelRecord, NewRecord, RECORD_BYTES, RecordError, RecordKind, ReplaceConditionalRecord, ReplaceRecord,
    ReportRecord, StatusRecord,
};
pub use self::references::IdReference;
pub use self::spare_page::SparePage;
pub use self::unanswered::UnansweredOrder;
pub use self::unknown_reports::UnknownOrderReport;
pub use tickpath_oms_risk::{
    ALL_ACCOUNTS, AccountLimits, DefinitionEnd, Denial, FirmLimits, GIVE_UP, Grant, Instrument, MAY_CANCEL,
    MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS, MeasureUnit, NAME_SESSION, NAME_VENUE, NameRecord, OTHER_LINE,
    RETRY, RejectRule, SessionRules, SymbolLimits, TradingHours, VenueRules, checks_table,
};
pub use tickpath_oms_slots::{Index, SnapshotError, tag};
