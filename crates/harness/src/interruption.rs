//! Whether there was a Ctrl-C.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

/// Set by a Ctrl-C, if somebody has asked for that: no step begins any more.
pub fn interruption() -> &'static Arc<AtomicBool> {
    static INTERRUPTION: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    &INTERRUPTION
}
