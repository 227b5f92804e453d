//! The process-wide flag of a Ctrl-C.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

/// Returns the flag that a Ctrl-C sets, if the program installed a handler for it. Once it is set, no further step
/// begins.
pub fn interruption() -> &'static Arc<AtomicBool> {
    static INTERRUPTION: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    &INTERRUPTION
}
