//! Reason why a connection is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reason why there is no connection now, as a sentence: set by the thread that reconnects, read by any other.
#[derive(Debug, Clone, Default)]
pub struct Outage(Arc<Mutex<Option<String>>>);

impl Outage {
    /// Creates an outage that has begun, with its reason if it is known.
    pub fn begun(why: Option<String>) -> Self {
        Self(Arc::new(Mutex::new(why)))
    }

    /// Records that there is no connection, and why.
    pub fn begin(&self, why: String) {
        *self.locked() = Some(why);
    }

    /// Records that the connection is there.
    pub fn end(&self) {
        *self.locked() = None;
    }

    /// Returns why there is no connection; `None` while it stands.
    pub fn reason(&self) -> Option<String> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
