//! Sequence numbers of the sessions' requests.

use tickpath_oms_runtime::front_end::{FrontEndState, JournalProgress};

/// Number of each session's next request.
#[derive(Debug)]
pub(super) struct SessionNumbers(pub Vec<u64>);

/// Numbers of the sessions' requests, and the journal's progress with them.
#[derive(Debug)]
pub(super) struct RequestNumbers {
    pub numbers: SessionNumbers,
    journaled: JournalProgress,
}

impl SessionNumbers {
    #[inline]
    pub fn next(&self, session: u16) -> u64 {
        self.0.get(usize::from(session)).copied().unwrap_or(0)
    }

    #[inline]
    pub fn next_mut(&mut self, session: u16) -> &mut u64 {
        let index = usize::from(session);
        if index >= self.0.len() {
            self.0.resize(index + 1, 0);
        }
        &mut self.0[index]
    }
}

impl RequestNumbers {
    pub fn new(opening: FrontEndState) -> Self {
        Self { numbers: SessionNumbers(opening.next_request), journaled: opening.journaled }
    }

    /// Returns the number of a session's first request that is not in the journal yet.
    pub fn first_unjournaled(&self, session: u16) -> u64 {
        self.journaled.first_unjournaled(session, self.numbers.next(session))
    }

    pub fn are_journaled(&self, session: u16) -> bool {
        self.first_unjournaled(session) >= self.numbers.next(session)
    }
}
