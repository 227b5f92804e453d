//! Detection of forks. A forked child has a copy of all writers and readers, on the same shared memory, and none of
//! the locks that make them exclusive: the child must not use them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of forks between this process and the first that opened a log. Changed by a fork only, so that its cache
/// line stays in every cache.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process in which an object was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkGeneration(u64);

impl ForkGeneration {
    /// Returns this process.
    pub fn current() -> Self {
        static IS_ASKED: AtomicBool = AtomicBool::new(false);
        // No `Once`: a fork in the middle of it would wait for a thread that stayed with its parent. Threads that
        // arrive at the same time each register, and a fork then counts twice, which does no harm.
        if !IS_ASKED.load(Ordering::Acquire) {
            // SAFETY: the handler lives as long as the program, and does only what a handler in a forked child may:
            // one atomic addition. If the C library has no room for it, forks are not detected.
            unsafe { libc::pthread_atfork(None, None, Some(count)) };
            IS_ASKED.store(true, Ordering::Release);
        }
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Returns the number of forks before this process: for state that continues in a fork, and begins anew there.
    #[inline(always)]
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns true in a fork of that process.
    #[inline(always)]
    pub fn is_forked(self) -> bool {
        // Relaxed: the only thread of a fork has counted it.
        GENERATION.load(Ordering::Relaxed) != self.0
    }
}

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
