//! The error of a call that names something wrong.

/// A call that cannot work, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExchangeUsageError(pub String);
