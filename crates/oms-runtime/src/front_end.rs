//! Session front end: brings in sessions that have no lanes of their own, and sends them their reports.
//!
//! Front end and core meet at three places: requests of sessions go to an [`InputSink`], with their number and T1;
//! reports to the sessions are in the [history](crate::Sequencer::history_index); questions and notices pass through a
//! [`ControlPort`], in turns in which the core is idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::Clock;
use tickpath_oms_journal::LaneKind;

use crate::OmsError;
use crate::lanes::InputEvent;
use crate::sequencer::Sequencer;

pub use crate::front_end_reports::FrontEndWaker;
pub use crate::sequencer::maintenance::ControlPort;

/// Sessions of a front end have numbers below this one.
pub const MAX_SESSIONS: u16 = 65_000;

/// Input sink for a session's messages: lane, T1, message.
pub trait InputSink: FnMut(LaneKind, u64, InputEvent<'_>) -> Result<(), OmsError> {}

impl<F: FnMut(LaneKind, u64, InputEvent<'_>) -> Result<(), OmsError>> InputSink for F {}

/// Session front end. The core's thread polls it, or it has a thread of its own.
pub trait SessionFrontEnd: Send {
    /// Does one turn without waiting; returns the amount of work done.
    fn poll(&mut self, sink: &mut impl InputSink) -> Result<usize, OmsError>;

    /// Sleeps until there may be work, or the time is over: only on a thread of its own.
    fn sleep(&mut self, timeout_ns: u64);
}

/// Front end that is open, with the parts that stay on the core's thread.
pub struct OpenFrontEnd<C, F> {
    /// The sessions' side, which the core's thread polls, or a thread of its own.
    pub sessions: F,
    /// The core's side; `None` for a front end without questions and commands.
    pub control: Option<Box<dyn ControlPort<C>>>,
    /// Waker that is called when outputs were released; `None` for a front end that never sleeps.
    pub waker: Option<FrontEndWaker>,
}

impl<C, F> OpenFrontEnd<C, F> {
    /// Returns a front end that only carries sessions, and never sleeps.
    pub fn of(sessions: F) -> Self {
        Self { sessions, control: None, waker: None }
    }
}

/// Opens a front end, if there is one, and attaches its waker to the sequencer.
pub(crate) fn open_front_end<C: Clock, F>(
    open: Option<impl FnOnce(&mut Sequencer<C>, FrontEndState) -> Result<OpenFrontEnd<C, F>, OmsError>>,
    sequencer: &mut Sequencer<C>,
    state: FrontEndState,
) -> Result<Option<OpenFrontEnd<C, F>>, OmsError> {
    let Some(open) = open else { return Ok(None) };
    let mut opened = open(sequencer, state)?;
    sequencer.release.front_end.waker = opened.waker.take();
    Ok(Some(opened))
}

/// Type of the function that opens a front end, for an OMS without a front end.
pub(crate) type OpenNoFrontEnd<C> =
    fn(&mut Sequencer<C>, FrontEndState) -> Result<OpenFrontEnd<C, NoFrontEnd>, OmsError>;

/// Initial state of a front end.
#[derive(Debug)]
pub struct FrontEndState {
    /// The number of the next request of each session.
    pub next_request: Vec<u64>,
    /// The journal's progress with requests.
    pub journaled: JournalProgress,
    /// Whether the front end has a thread of its own, and may sleep there.
    pub has_thread: bool,
}

/// The journal's progress with requests. Where the core's thread polls the front end, all taken requests are journaled.
#[derive(Debug, Clone, Default)]
pub struct JournalProgress {
    /// Number of the next request of each session when this process began.
    at_start: Vec<u64>,
    /// Progress that the core publishes, and the index of session 0 in it.
    published: Option<(Arc<[AtomicU64]>, usize)>,
}

impl FrontEndState {
    /// Returns the state at a start. A front end has a thread of its own if the core publishes its progress, with the
    /// index of session 0.
    pub(crate) fn new(next_request: Vec<u64>, published: Option<(Arc<[AtomicU64]>, usize)>) -> Self {
        let (at_start, has_thread) = (next_request.clone(), published.is_some());
        Self { next_request, journaled: JournalProgress { at_start, published }, has_thread }
    }
}

impl JournalProgress {
    /// Returns the number of a session's first request that the journal lacks, if those below `taken` were taken.
    pub fn first_unjournaled(&self, session: u16, taken: u64) -> u64 {
        let Some((core, first)) = &self.published else { return taken };
        // Pairs with the Release of the core: the requests below the number are in the journal.
        let upto = core.get(first + usize::from(session)).map_or(0, |upto| upto.load(Ordering::Acquire));
        upto.max(self.at_start.get(usize::from(session)).copied().unwrap_or(0))
    }
}

/// Uninhabited front end: every session uses shared-memory lanes.
#[derive(Debug)]
pub enum NoFrontEnd {}

impl SessionFrontEnd for NoFrontEnd {
    fn poll(&mut self, _: &mut impl InputSink) -> Result<usize, OmsError> {
        match *self {}
    }

    fn sleep(&mut self, _: u64) {
        match *self {}
    }
}
