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
//! The core does no I/O and reads no clock: the time, the reference price and the order's id come with the input.
//!
//! | file                  | contents                                                            |
//! |-----------------------|---------------------------------------------------------------------|
//! | `core.rs`             | the state, and its single entry point: [`Core::apply`]              |
//! | `requests.rs`         | new orders, cancels, replaces, status requests, mass cancels        |
//! | `waiting_requests.rs` | requests that wait for their venue: return, second check, departure |
//! | `conditional.rs`      | orders that wait for a trigger                                      |
//! | `optional_checks.rs`  | facts for the optional checks that most configurations leave off    |
//! | `reports.rs`          | venue reports: their orders, their fills, the client's copy         |
//! | `report_class.rs`     | kinds of venue reports                                              |
//! | `report_merge.rs`     | the merge of one event into an order, in any order of arrival       |
//! | `status_answers.rs`   | answers to status requests                                          |
//! | `text_ids.rs`         | text ids of orders, and requests that name an order by its text id  |
//! | `expiry.rs`           | the end of good-till-date orders at their end time                  |
//! | `extensions.rs`       | fields beside an order: its text id and its end time                |
//! | `retry.rs`            | retries of orders that their venue has rejected                     |
//! | `client_reports.rs`   | reports and denials for clients                                     |
//! | `control_inputs.rs`   | definitions, starts, connections, kill switches                     |
//! | `doubts.rs`           | orders in doubt: losses of messages, status requests, outcomes      |
//! | `gap_timer.rs`        | orders that miss a venue sequence for too long                      |
//! | `day.rs`              | the end of a trading day                                            |
//! | `admin_command.rs`    | validation of admin commands, and their error messages              |
//! | `manual_entry.rs`     | orders, fills and positions that an admin enters by hand            |
//! | `order.rs`            | the data of an order, a cancel or replace, and a fill               |
//! | `state.rs`            | the table of (phase, event), and the status derived from it         |
//! | `order_store.rs`      | orders, their requests and fills, used client ids, and the indexes  |
//! | `open_orders.rs`      | the open orders of a session, an account and a symbol               |
//! | `trading_config.rs`   | accounts, instruments, sessions, kill switches                      |
//! | `recent.rs`           | the latest orders of an account, to detect duplicates               |
//! | `venue_table.rs`      | venues                                                              |
//! | `venue_queue.rs`      | the requests that wait for a venue                                  |
//! | `position.rs`         | net and working quantity for each (account, symbol), and its day    |
//! | `self_match.rs`       | prices of an account's own orders, for self-match prevention        |
//! | `triggers.rs`         | the triggers of conditional orders                                  |
//! | `retry_rules.rs`      | the retry rules, and the retry state of each order                  |
//! | `aliases.rs`          | venue ids of orders that do not go by the core's id                 |
//! | `unknown_reports.rs`  | reports of unknown orders                                           |
//! | `id_source.rs`        | the ids of orders and requests                                      |
//! | `boot_clock.rs`       | ticks of the last boot as nanoseconds and time of the day           |
//! | `counts.rs`           | order counts by state, and alarm counts                             |
//! | `output.rs`           | outputs of the core                                                 |
//! | `digest.rs`           | the digest over every output                                        |
//! | `queries.rs`          | read-only queries, and the open orders as a list in pages           |
//! | `references.rs`       | references to an id, which must keep its meaning while any exist    |
//! | `unanswered.rs`       | orders whose venue owes an answer                                   |
//! | `spare_page.rs`       | a page of memory, built on another thread                           |
//! | `warm_up.rs`          | memory for the next orders: spare pages, and a warm-up              |
//! | `snapshot.rs`         | a core's snapshot, saved and loaded                                 |
//!
//! Inputs are journal records, defined in [`tickpath_oms_records`]. Definitions (instruments, limits, rights) and the
//! table of checks are in [`tickpath_oms_risk`]; the containers of orders, fills and ids, and the byte form of a
//! snapshot, are in [`tickpath_oms_slots`].
//!
//! # Invariants
//!
//! * A replay of the journal gives the same state and the same outputs, to the byte.
//! * Reports may come twice and in any order: fills are a set, terms and cumulative quantity are those with the highest
//!   venue sequence, the last amendment of a fill holds, and an ended order stays ended. Once no venue sequence is
//!   missing, the fills must add up.
//! * What cannot be decided becomes `Unknown`, never a guess: a contradiction, or a loss of messages. The order keeps
//!   its exposure, on both sides where the venue counts less than the core has booked, until the venue has answered a
//!   status request sent after the loss. A timeout invents no terminal state.
//! * An order's id is the epoch of the start that accepted it and its journal sequence. An epoch is used once, so an id
//!   that a power loss took from the journal is never given to another order.
//! * A report must agree with its order in symbol, side, account and venue, and come from that venue's lane. A report
//!   of an unknown order is kept until an admin enters the order, or listed.
//! * The table of (phase, event) names every state, without a wildcard.
//! * A request that waited is checked again before it leaves: kill switch, age, price.
//! * A limit that is not set costs an order one branch. A mass cancel visits the orders that it cancels and no others.
//! * A trigger is compared beside the journal: its firing is an input, and a replay compares nothing. An order that may
//!   have fired in a lost tail is armed again only once its venue denies having it.
//! * Each retry of a rejected order has another id at its venue, so that a duplicate rejection is recognised. A retry
//!   that may lie in a lost tail leaves the order in doubt.
//! * A session that cancels another session's order gets a report beside the order's owner, each under its own id.
//! * A text id names one open order of an account: a second one is denied. An order without a text id costs nothing.
//! * A good-till-date order is canceled at its end time, never before, and again until it has ended.
//! * A day order outlives its day until its venue, or the venue's rules, confirm its end; the shell puts it in doubt
//!   before the day ends.

mod admin_command;
mod aliases;
mod boot_clock;
mod client_reports;
mod conditional;
mod control_inputs;
mod core;
mod counts;
mod day;
mod digest;
mod doubts;
mod expiry;
mod extensions;
mod gap_timer;
mod id_source;
mod manual_entry;
mod open_orders;
mod optional_checks;
mod order;
mod order_store;
mod output;
mod position;
mod queries;
mod recent;
mod references;
mod report_class;
mod report_merge;
mod reports;
mod requests;
mod retry;
mod retry_rules;
mod self_match;
mod snapshot;
mod spare_page;
mod state;
mod status_answers;
mod text_ids;
mod trading_config;
mod triggers;
mod unanswered;
mod unknown_reports;
mod venue_queue;
mod venue_table;
mod waiting_requests;
mod warm_up;

pub use self::admin_command::AdminCommandError;
pub use self::conditional::ArmedOrder;
pub use self::core::{At, CORE_VERSION, Core};
pub use self::counts::CoreCounts;
pub use self::order::OrderView;
pub use self::order_store::Config;
pub use self::output::{Output, Outputs};
pub use self::position::PositionView;
pub use self::queries::OpenPage;
pub use self::references::IdReference;
pub use self::spare_page::SparePage;
pub use self::unanswered::UnansweredOrder;
pub use self::unknown_reports::UnknownOrderReport;
pub use tickpath_oms_records::{
    Boot, CancelRecord, CancelScope, ConditionalRecord, DayEnd, Departure, DetailRecord, Digest, EnterFill, EnterOrder,
    EnterPosition, Envelope, ExpiryTimer, ExtendedRecord, GapTimer, Input, JournalRollover, JournalStart, JournalStop,
    KILL_ACCOUNT, KILL_ALL, KILL_DISK, KILL_SESSION, KILL_SYMBOL, KillSwitch, LOST_ORDER, LOST_REPORTS, LOST_REQUESTS,
    LaneRecord, MassCancelRecord, MessageLoss, NewRecord, QueryStatus, RECORD_BYTES, Reconcile, RecordError,
    RecordKind, Release, ReplaceConditionalRecord, ReplaceRecord, ReportRecord, Resolve, SessionConnection,
    StatusRecord, TextIdRecord, TriggerFired, UnsentRequest, VenueConnection, scope_by_name, scope_name,
};
pub use tickpath_oms_risk::{
    ALL_ACCOUNTS, AccountLimits, ContractSize, DefinitionEnd, Denial, FirmLimits, GIVE_UP, Grant, Instrument,
    MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS, MeasureUnit, NAME_SESSION, NAME_VENUE, NameRecord,
    OTHER_LINE, RETRY, RejectRule, SessionRules, SymbolLimits, TradingHours, VenueRules, checks_table,
};
pub use tickpath_oms_slots::{Index, SnapshotError, tag};
