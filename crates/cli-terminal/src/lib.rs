//! Arguments, output and exit codes that the commands of `tickpath` share.
//!
//! `args.rs` has options of several commands and the errors of bad usage, `outcome.rs` the exit codes and the end on
//! Ctrl-C, `print.rs` the one place that writes to standard output and standard error, `run_monitor.rs` the status line of a
//! carrier, `log_arguments.rs` the arguments that name logs.

#![allow(rustdoc::broken_intra_doc_links, reason = "help texts are doc comments, and URLs in them have brackets")]

pub mod args;
pub mod log_arguments;
pub mod outcome;
pub mod print;
pub mod run_monitor;
