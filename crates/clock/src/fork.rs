//! Telling a process from its forks. A child has a copy of all writers and readers, on the same shared memory, and none
//! of the locks that make them the only ones: they must not be used there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many forks lie between this process and the first that opened a log. Changed by a fork only, so that its line
/// stays in every cache.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process in which something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birthplace(u64);

impl Birthplace {
    /// This process.
    pub fn here() -> Self {
        static IS_ASKED: AtomicBool = AtomicBool::new(false);
        // No `Once`: a fork in the middle of it would wait for a thread that stayed with its parent. Threads that come at once
        // each ask, and a fork counts twice, which is as good.
        if !IS_ASKED.load(Ordering::Acquire) {
            // SAFETY: the handler lives as long as the program, and does what a handler in a forked child may: one
            // atomic addition. Should the C library have no room for it, forks go unseen, as they did before.
            unsafe { libc::pthread_atfork(None, None, Some(count)) };
            IS_ASKED.store(true, Ordering::Release);
        }
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Which one it is among those that forks have made of one program: for what goes on in a fork, and begins anew there.
    #[inline(always)]
    pub fn number(self) -> u64 {
        self.0
    }

    /// True in a fork of that process.
    #[inline(always)]
    pub fn is_elsewhere(self) -> bool {
        // Relaxed: a fork's one thread is the one that counted.
        GENERATION.load(Ordering::Relaxed) != self.0
    }
}

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
