//! Wait strategies of a thread without work.

use std::fmt;
use std::str::FromStr;

/// A wait strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Polls without a pause: the shortest latency, a whole core.
    #[default]
    Busy,
    /// Polls and gives the core to others in between: for threads that share one.
    Yield,
    /// Sleeps until it is woken: uses no core, costs some microseconds.
    Block,
    /// Spins as long as a wake-up costs, then sleeps; where messages come at a rhythm, it wakes for the next one:
    /// [`AdaptiveWait`](crate::AdaptiveWait).
    Adaptive,
}

impl Wait {
    /// Passes one turn without work. A sleep needs a waker, which the log provides; without a log a thread that would
    /// sleep yields.
    #[inline]
    pub fn idle(self) {
        match self {
            Self::Busy => relax(),
            Self::Yield | Self::Block | Self::Adaptive => yield_now(),
        }
    }

    /// Returns the strategy's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Yield => "yield",
            Self::Block => "block",
            Self::Adaptive => "adaptive",
        }
    }

    /// Returns whether the strategy keeps the processor, always or for a while: two such threads need two processors.
    #[inline]
    pub const fn spins(self) -> bool {
        matches!(self, Self::Busy | Self::Adaptive)
    }

    /// Returns whether the strategy gives the processor away until there is work.
    #[inline]
    pub const fn sleeps(self) -> bool {
        matches!(self, Self::Block | Self::Adaptive)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for a text that is no wait strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no wait strategy; use busy, yield, block or adaptive")]
pub struct ParseWaitError(String);

impl FromStr for Wait {
    type Err = ParseWaitError;

    fn from_str(text: &str) -> Result<Self, ParseWaitError> {
        let all = [Self::Busy, Self::Yield, Self::Block, Self::Adaptive];
        all.into_iter().find(|wait| wait.name() == text).ok_or_else(|| ParseWaitError(text.to_owned()))
    }
}

/// Marks a spinning loop for the processor.
#[inline(always)]
pub fn relax() {
    std::hint::spin_loop();
}

/// Gives the core to another thread that wants it.
#[inline]
pub fn yield_now() {
    std::thread::yield_now();
}

/// Sleeps for at least this long. Never used to wait for another thread: a condition is there for that.
pub fn sleep_ns(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}
