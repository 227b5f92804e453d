//! A message or a journal record as named fields: one line of text for people, or one JSON object for programs.
//!
//! ```text
//!   kind and bytes ── read ──> a name and its fields ──┬── LogEntry     a line of `tickpath log cat`
//!                                                      └── SentReport   a line of `tickpath drop-copy`
//!   rows of two sides ── ReconciliationPair ──> differences, lines of `tickpath oms reconcile`
//!   core of a journal ── open_orders, foreign_reports ──> tables of `tickpath orders`
//!   words of a command ── parse, trigger ──> sides, ids, triggers
//! ```
//!
//! Names of fields are those of the structs. Prices and quantities are decimals with their digits unchanged, codes are
//! words, times and ids are numbers.
//!
//! Invariant: the crate does no I/O. A caller brings the bytes, the time of a stamp and the names of instruments, and a
//! line depends on nothing else.

mod field;
mod log_entry;
mod orders;
pub mod parse;
mod read;
mod reconciliation;
mod report;
pub mod trigger;

pub use field::{MessageField, MessageFieldValue, code_name, number, order_id, text};
pub use log_entry::{EntryContent, LogEntry, gap_json, moment};
pub use orders::{foreign_reports, open_orders, symbol_name};
pub use read::read;
pub use reconciliation::{ReconciliationPair, order_state};
pub use report::{ReportOrDenial, SentReport, denial_line, detail_line, report_line};
