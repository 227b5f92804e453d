//! Departure of a request from the core.

/// Time and manner of a request's departure from the core, journaled with the record that follows the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Departure {
    /// Time of the departure, in ticks: T2, unless the request was handed over.
    pub at: u64,
    /// The request had to wait for its venue's lane.
    pub queued: bool,
    /// The request was handed over to the thread of its venue's line, which sends it later.
    pub handed_over: bool,
}

impl Departure {
    const QUEUED: u8 = 1;
    const HANDED_OVER: u8 = 2;

    /// Reads the departure from the fields of the record that follows the request.
    pub fn of(at: u64, flags: u8) -> Self {
        Self { at, queued: flags & Self::QUEUED != 0, handed_over: flags & Self::HANDED_OVER != 0 }
    }

    /// Returns the flags for a record.
    pub fn flags(&self) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.queued, Self::QUEUED) | flag(self.handed_over, Self::HANDED_OVER)
    }
}
