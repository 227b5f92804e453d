//! The only module that names atomics, so that a model checker can substitute its own.

#[cfg(loom)]
use loom::sync as implementation;
#[cfg(not(loom))]
use std::sync as implementation;

pub(crate) use implementation::Arc;
pub(crate) use implementation::atomic::{AtomicU64, Ordering, fence};
