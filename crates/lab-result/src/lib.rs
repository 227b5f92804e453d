//! The result file, `tickpath.result/1`: what a bench measured, as data; every rendering is a pure function of it.
//!
//! [`ResultFile`] holds the [`Host`], a [`Run`] for each thing measured, and the [`Comparison`]s between runs. A run
//! holds what was run ([`Software`], [`Params`]), what became of the messages ([`MessageCounts`]), a [`Hop`] for each
//! pair of stamps, and figures that are neither. Keys are snake_case with the unit last. `docs/results.md` explains
//! every name.
//!
//! | file        | what it holds                                                       |
//! |-------------|---------------------------------------------------------------------|
//! | `shape.rs`  | the shape of the file                                               |
//! | `hop.rs`    | one latency distribution: from a histogram, and back to one         |
//! | `names.rs`  | the names that hops, figures, counts and units may have; the check  |
//! | `target.rs` | short names of targets                                              |
//! | `file.rs`   | load and save                                                       |
//!
//! Invariant: this crate knows no workload. A name that a workload invents stands in `docs/results.md` and in
//! `names.rs`.

mod file;
mod hop;
mod names;
mod shape;
mod target;

pub use file::{LoadError, SaveError, save_json};
pub use hop::{HistogramError, Hop, PERCENTILES, Percentile, Unstalled, histogram};
pub use names::{COUNTS, CheckError, FIGURES, HOPS, OWN_HOP, OWN_PREFIX, UNITS, is_hop, is_own};
pub use shape::{
    Actor, Comparison, Floor, Host, MemoryUse, MessageCounts, Params, PublishedFigure, PublishedUnit, ResultFile, Run,
    RunPhase, SCHEMA, Series, Software, Stage, StageKind, distinct, median,
};
pub use target::short_name;
