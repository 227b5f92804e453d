//! When a receiver stops waiting for what is still on its way.

use tickpath_clock::{Clock, HostClock, Wait};

use crate::Parent;

/// A while after the sender has ended and the last message came, and one more empty look later: a thread that was held up
/// for the whole while has not looked in it.
pub struct Quiet<'a> {
    clock: &'a HostClock,
    patience_ns: i64,
    sender_ended: bool,
    since: Option<u64>,
    was_over: bool,
    /// Looks that found nothing, of a thread that says how it waits.
    looks: u32,
}

impl<'a> Quiet<'a> {
    /// The while begins when the parent has spoken: that the sender has ended is all that it says.
    pub fn new(clock: &'a HostClock, patience_ns: i64) -> Self {
        Self { clock, patience_ns, sender_ended: false, since: None, was_over: false, looks: 0 }
    }

    /// Something came.
    #[inline(always)]
    pub fn ends(&mut self) {
        self.since = None;
        self.was_over = false;
    }

    /// Asked after each look that found nothing, of a thread that waits so: the more often it looks, the fewer of them
    /// are spent on the question.
    #[inline(always)]
    pub fn is_over_after(&mut self, wait: Wait, parent: &Parent) -> bool {
        let every = match wait {
            Wait::Block => 1,
            Wait::Adaptive => 1 << 4,
            Wait::Busy | Wait::Yield => 1 << 14,
        };
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(every) && self.is_over(parent)
    }

    /// Asked after a look that found nothing.
    #[cold]
    pub fn is_over(&mut self, parent: &Parent) -> bool {
        let now = self.clock.ticks();
        self.sender_ended |= parent.has_spoken();
        if !self.sender_ended {
            return false;
        }
        let is_over = self.clock.ns_between(*self.since.get_or_insert(now), now) > self.patience_ns;
        std::mem::replace(&mut self.was_over, is_over) && is_over
    }
}
