//! How a request left the core.

/// When a request left the core, and how. The record behind the request's holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Departure {
    /// When it left, in ticks: T2, unless it was handed over.
    pub at: u64,
    /// It had to wait for its venue's lane.
    pub queued: bool,
    /// It was handed over to the thread of its venue's line, whose send follows.
    pub handed_over: bool,
}

impl Departure {
    const QUEUED: u8 = 1;
    const HANDED_OVER: u8 = 2;

    /// Reads the fields of the record behind the request's.
    pub fn of(at: u64, flags: u8) -> Self {
        Self { at, queued: flags & Self::QUEUED != 0, handed_over: flags & Self::HANDED_OVER != 0 }
    }

    /// Its flags in a record.
    pub fn flags(&self) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.queued, Self::QUEUED) | flag(self.handed_over, Self::HANDED_OVER)
    }
}
