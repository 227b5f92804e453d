//! The sentence about a connection that is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why there is no connection now, in a sentence: the thread that makes it again says it, and whoever is asked reads it.
#[derive(Debug, Clone, Default)]
pub struct Outage(Arc<Mutex<Option<String>>>);

impl Outage {
    /// One that has begun, for this reason if it is known.
    pub fn of(why: Option<String>) -> Self {
        Self(Arc::new(Mutex::new(why)))
    }

    /// There is none, for this reason.
    pub fn say(&self, why: String) {
        *self.locked() = Some(why);
    }

    /// The connection is there.
    pub fn end(&self) {
        *self.locked() = None;
    }

    /// Why there is no connection; none while it stands.
    pub fn why(&self) -> Option<String> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
