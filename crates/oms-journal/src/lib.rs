//! The files of an order management system (OMS) and the code that reads them: the journal of the core's inputs, the
//! archive of ended days, snapshots, and the history of the reports to sessions.
//!
//! ```text
//!   FOLDER              the journal's log of this day, to which the OMS alone writes       journal
//!   FOLDER/archive/N    its logs of the days before, by the number of their first record
//!   FOLDER/snapshot     the core and the ledger behind a record, made by a replay          snapshot
//!   FOLDER/reports      the reports to sessions without lanes, read by drop copies         history, drop_copy
//!   NAME.counters       the counters of the running OMS, in shared memory                  meter
//! ```
//! * [`journal::Replay`] applies a journal to a core, and follows a journal that grows.
//! * [`LaneLedger`] is the state of the OMS's lanes, and [`Definitions`] the instruments, accounts, venues and
//!   sessions.
//! * [`identity`] keeps the numbers of symbols, accounts, venues and sessions from changing their meaning.
//! * [`LaneKind`] and [`LineId`] identify lanes and lines in the journal's records.
//! * [`commit::GroupCommit`] makes a journal durable, beside the thread that writes it.
//!
//! A journal is a chain of logs with one numbering: the end of a day moves the log to `archive/` and begins the next
//! one, in steps that a start completes after a kill. A snapshot stands for all records before its own. A core of
//! another version starts from a snapshot behind the last record.
//!
//! The runtime of the OMS (sequencer, recovery, layouts) is the crate `tickpath-oms-runtime`, which alone writes the
//! journal and the history. A program that only reads an OMS's files needs this crate alone.
//!
//! # Invariants
//!
//! * The same journal gives the same core and the same ledger, whether a replay begins at the first record or at a
//!   snapshot.
//! * The journal is authoritative. A damaged journal is refused with the place, a damaged snapshot is skipped, and a
//!   history that differs from the journal is set aside and rebuilt, or loses the reports that the journal lacks.
//! * A snapshot is used only behind the very record that it was made behind. Nothing is lost with a snapshot.
//! * Every step of a day's end survives a kill and a loss of power: the log behind an archive keeps its journal's id
//!   and numbers.
//! * A report's identity is (session, number), counted by the journal; so is the identity of a report's detail.

mod archive;
mod ballast;
pub mod commit;
mod definitions;
pub mod drop_copy;
mod error;
pub mod history;
pub mod identity;
pub mod journal;
mod lane;
mod ledger;
pub mod meter;
mod numbers;
mod replay;
pub mod snapshot;

pub use ballast::Ballast;
pub use definitions::Definitions;
pub use error::JournalError;
pub use lane::{LaneKind, LineId, MAX_LINES, frame};
pub use ledger::{LaneLedger, RecordedLane};
pub use numbers::{NextNumbers, SessionPosition, entry_mut};
