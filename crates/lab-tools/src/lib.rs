//! Programs that a bench starts for itself: a Redis server on a free port, a Python with pinned packages, and Go
//! programs, which it builds once. All end with the bench, and the user's cache keeps reusable parts, so that no
//! installed program is touched. [`redis_stats`] reads a Redis server's counters of its commands, which the bus does
//! not report; [`redis_socket`] is a bare socket to one.
//!
//! The program `tickpath-pages` (`src/bin/pages`) makes `docs/figures.md`, `docs/reproduced.md` and README's picture
//! from the templates in `docs/pages` and the result files in `docs/results`; `scripts/figures` lists the commands that
//! measure these files. The program is no part of `tickpath`.
//!
//! # Invariants
//!
//! * Each file that pip takes is pinned by its hash. Our own package must be installed; the bench does not install it.
//! * No figure of ours on a page that `make pages` makes is typed; a test compares the pages with the files.

pub mod go;
mod program_cache;
pub mod python;
pub mod redis;
pub mod redis_socket;
pub mod redis_stats;
pub mod scripts;

pub use program_cache::FolderError;
