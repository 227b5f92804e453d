//! What a bench starts for itself: a Redis server on a free port, a Python with pinned packages, and Go programs, which
//! it builds. All end with it, and what is made once lies in the user's cache. [`about`] is what such a server says beyond
//! what the bus asks of any (`Connection::about`): counts of its commands.

pub mod about;
pub mod go;
mod kept;
pub mod python;
pub mod redis;
pub mod scripts;

pub use kept::FolderError;
