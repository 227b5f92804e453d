//! End of a receiver's wait for messages in flight.

use tickpath_clock::{Clock, HostClock, Wait};

use crate::Parent;

/// Timer that is over some time after the sender's end and the last message, and one more empty poll later. A thread
/// that was stalled for all that time has not polled in it, so the extra poll is needed.
pub struct QuietTimer<'a> {
    clock: &'a HostClock,
    timeout_ns: i64,
    sender_ended: bool,
    since: Option<u64>,
    was_over: bool,
    /// Number of empty polls, for callers of `is_over_after`.
    polls: u32,
}

impl<'a> QuietTimer<'a> {
    /// Creates a timer of `timeout_ns` nanoseconds. It starts with the parent's next line, which means that the sender
    /// has ended.
    pub fn new(clock: &'a HostClock, patience_ns: i64) -> Self {
        Self { clock, timeout_ns: patience_ns, sender_ended: false, since: None, was_over: false, polls: 0 }
    }

    /// Restarts the time, because a message came.
    #[inline(always)]
    pub fn restart(&mut self) {
        self.since = None;
        self.was_over = false;
    }

    /// Returns whether the wait is over; to be called after each empty poll. Checks the clock the more rarely, the more
    /// often this wait strategy polls.
    #[inline(always)]
    pub fn is_over_after(&mut self, wait: Wait, parent: &Parent) -> bool {
        let every = match wait {
            Wait::Block => 1,
            Wait::Adaptive => 1 << 4,
            Wait::Busy | Wait::Yield => 1 << 14,
        };
        self.polls = self.polls.wrapping_add(1);
        self.polls.is_multiple_of(every) && self.is_over(parent)
    }

    /// Returns whether the wait is over; to be called after an empty poll.
    #[cold]
    pub fn is_over(&mut self, parent: &Parent) -> bool {
        let now = self.clock.ticks();
        self.sender_ended |= parent.has_message();
        if !self.sender_ended {
            return false;
        }
        let is_over = self.clock.ns_between(*self.since.get_or_insert(now), now) > self.timeout_ns;
        std::mem::replace(&mut self.was_over, is_over) && is_over
    }
}
