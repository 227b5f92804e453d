//! The files of an order management system (OMS) and the code that reads them: the journal of the core's inputs, the
//! archive of ended days, snapshots, and the history of the reports to sessions.
//!
//! ```text
//!   FOLDER              the journal's log of this day, to which the OMS alone writes       journal
//!   FOLDER/archive/N    its logs of the days before, by the number of their first record
//!   FOLDER/snapshot     the core and the ledger behind a record, made by a replay          snapshot
//!   FOLDER/reports      the reports to sessions without lanes, read by drop copies         history, copy
//! ```
//! * [`journal::Replay`] applies a journal to a core, and follows a journal that grows.
//! * [`LaneLedger`] is the state of the OMS's lanes, and [`Definitions`] the instruments, accounts, venues and sessions.
//! * [`LaneKind`] and [`LineId`] identify lanes and lines in the journal's records.
//!
//! The runtime of the OMS (sequencer, recovery, layouts) is the crate `tickpath-oms-runtime`. A program that only reads an
//! OMS's files needs this crate alone.
//!
//! Invariant: the same journal gives the same core and the same ledger, whether a replay begins at the first record or
//! at a snapshot.
//! Invariant: the journal is authoritative. A damaged journal is refused with the place, a damaged snapshot is skipped,
//! and a history that differs from the journal is set aside and rebuilt from it.

mod archive;
mod ballast;
mod definitions;
pub mod drop_copy;
mod error;
pub mod history;
pub mod journal;
mod lane;
mod ledger;
mod replay;
pub mod snapshot;

pub use ballast::Ballast;
pub use definitions::Definitions;
pub use error::JournalError;
pub use lane::{LaneKind, LineId, MAX_LINES, frame};
pub use ledger::{LaneLedger, RecordedLane, entry_mut};
