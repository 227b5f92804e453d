//! Programs that a bench starts for itself: a Redis server on a free port, a Python with pinned packages, and Go
//! programs, which it builds. All end with the bench, and the user's cache keeps reusable parts. [`about`] reads a
//! Redis server's counters of its commands, which `Connection::about` of the bus does not report.

pub mod go;
mod program_cache;
pub mod python;
pub mod redis;
pub mod redis_stats;
pub mod scripts;

pub use program_cache::FolderError;
