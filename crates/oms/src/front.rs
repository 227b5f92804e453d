//! The front: whoever brings in sessions that have no lanes of their own, and tells them what was said to them.
//!
//! The front and the core meet at three places: what sessions ask goes to `take`, with its number and T1; what is said to
//! them is in the [history](crate::history); all else, questions and notices, passes through a [`Window`], in turns in
//! which the core has nothing better to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_oms_journal::LaneKind;

use crate::OmsError;
use crate::lanes::Event;

pub use crate::sequencer::{Bell, Window};

/// Sessions that a front brings in are below this.
pub const MOST_SESSIONS: u16 = 65_000;

/// What is done with a message of a session: its lane, T1, and itself.
pub trait Take: FnMut(LaneKind, u64, Event<'_>) -> Result<(), OmsError> {}

impl<F: FnMut(LaneKind, u64, Event<'_>) -> Result<(), OmsError>> Take for F {}

/// Brings sessions in. The core's thread polls it, or it has one of its own.
pub trait Front: Send {
    /// One turn; says how much was done. It never waits.
    fn poll(&mut self, take: &mut impl Take) -> Result<usize, OmsError>;

    /// Sleeps until there may be work, or the time is over: only on a thread of its own.
    fn sleep(&mut self, timeout_ns: u64);
}

/// What a front begins with.
#[derive(Debug)]
pub struct Opening {
    /// The number of the next request of each session.
    pub next_request: Vec<u64>,
    /// How far the journal has come meanwhile.
    pub journaled: Journaled,
    /// It has a thread of its own, and may sleep there.
    pub has_thread: bool,
}

/// How far the journal has come with requests: as far as they were taken, where the core's thread takes them itself.
#[derive(Debug, Clone, Default)]
pub struct Journaled {
    /// When this process began.
    begun: Vec<u64>,
    /// What the core says, and the place of session 0 in it.
    taken: Option<(Arc<[AtomicU64]>, usize)>,
}

impl Opening {
    /// A front that the core's thread polls.
    pub(crate) fn inline(next_request: Vec<u64>) -> Self {
        let journaled = Journaled { begun: next_request.clone(), taken: None };
        Self { next_request, journaled, has_thread: false }
    }

    /// A front with a thread of its own: the core tells how far it is, session 0 at this place.
    pub(crate) fn outside(next_request: Vec<u64>, taken: Arc<[AtomicU64]>, first: usize) -> Self {
        let journaled = Journaled { begun: next_request.clone(), taken: Some((taken, first)) };
        Self { next_request, journaled, has_thread: true }
    }
}

impl Journaled {
    /// The number of a session's first request that is not in the journal yet, if those below `taken` were taken.
    pub fn upto(&self, session: u16, taken: u64) -> u64 {
        let Some((core, first)) = &self.taken else { return taken };
        // Pairs with the release of the core: what it says is in the journal.
        let upto = core.get(first + usize::from(session)).map_or(0, |upto| upto.load(Ordering::Acquire));
        upto.max(self.begun.get(usize::from(session)).copied().unwrap_or(0))
    }
}

/// Of an OMS whose sessions all have lanes.
#[derive(Debug)]
pub enum NoFront {}

impl Front for NoFront {
    fn poll(&mut self, _: &mut impl Take) -> Result<usize, OmsError> {
        match *self {}
    }

    fn sleep(&mut self, _: u64) {
        match *self {}
    }
}
