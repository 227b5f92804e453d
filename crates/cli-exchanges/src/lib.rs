//! The commands of `tickpath` about exchanges.
//!
//! * [`feed`]: `tickpath feed`, market data onto a topic.
//! * [`instruments_fetch`]: `tickpath instruments fetch`, an exchange's list as a table.
//! * [`exchange_as`]: `tickpath exchange --as`, a simulated exchange with the protocols of a real one.
//! * [`venue_check`]: `tickpath venue check`, what to run before the first order.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these panic where the output is closed or full; use `print` of `tickpath-cli-terminal`"
)]
#![allow(missing_docs, reason = "arguments: a doc comment is a help text")]
#![allow(rustdoc::broken_intra_doc_links, reason = "help texts are doc comments, and URLs in them have brackets")]

pub mod exchange_as;
pub mod feed;
pub mod instruments_fetch;
pub mod venue_check;
