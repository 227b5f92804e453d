//! State that the core and a line's agent share, each perhaps on a thread of its own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

use super::validity::RequestValidity;
use crate::OmsError;

const DOWN: u8 = 0;
const RETURN_AGAIN: u8 = 1;
const UP: u8 = 2;

/// Shared state of a line. Each word has one writer.
#[derive(Debug, Default)]
pub(crate) struct LineFlow {
    /// Written by the core: whether it gives requests to the line. Its Release pairs with the Acquire of the agent,
    /// which then sees that the journal holds all requests that it has given back.
    state: AtomicU8,
    /// Written by the core, before the state: the number that the state answers.
    answered: AtomicU64,
    /// Written by the agent: requests below this number are proven, were given back, or are in doubt.
    settled: AtomicU64,
    /// Written by the core: the end of the lane.
    published: AtomicU64,
    /// Written by the core: the journal holds all reports below this number.
    journaled: AtomicU64,
}

impl LineFlow {
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == UP
    }

    pub fn is_down(&self) -> bool {
        self.state.load(Ordering::Acquire) == DOWN
    }

    /// Returns whether the line is up since the agent gave back all requests below this number.
    pub fn is_up_from(&self, upto: u64) -> bool {
        self.is_up() && self.answered.load(Ordering::Relaxed) == upto
    }

    /// Returns whether the core added requests to the lane while the agent gave back those below this number.
    pub fn is_return_again_from(&self, upto: u64) -> bool {
        self.state.load(Ordering::Acquire) == RETURN_AGAIN && self.answered.load(Ordering::Relaxed) == upto
    }

    pub fn answer(&self, upto: u64, is_up: bool) {
        self.answered.store(upto, Ordering::Relaxed);
        self.state.store(if is_up { UP } else { RETURN_AGAIN }, Ordering::Release);
    }

    pub fn set_down(&self) {
        self.state.store(DOWN, Ordering::Release);
    }

    #[inline]
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    pub fn set_settled(&self, next: u64) {
        self.settled.store(next, Ordering::Relaxed);
    }

    /// Publishes the end of the lane. Must be called before the waker.
    #[inline]
    pub fn set_published(&self, next: u64) {
        self.published.store(next, Ordering::Relaxed);
    }

    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn journaled(&self) -> u64 {
        self.journaled.load(Ordering::Acquire)
    }

    #[inline]
    pub fn set_journaled(&self, next: u64) {
        self.journaled.store(next, Ordering::Release);
    }
}

/// Waker of a thread that sleeps on its lines' sockets.
#[derive(Debug)]
pub(crate) struct LineWaker {
    is_armed: AtomicBool,
    event: OwnedFd,
}

impl LineWaker {
    pub fn new() -> Result<Self, OmsError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = event.map_err(|e| OmsError::Sockets(e.into()))?;
        Ok(Self { is_armed: AtomicBool::new(false), event })
    }

    /// Arms the waker. The thread must check for earlier work once more before it sleeps.
    pub fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
        // Pairs with the fence of `wake`: either the waking thread sees the flag, or the check here sees its work.
        fence(Ordering::SeqCst);
    }

    pub fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// Wakes the thread if it sleeps, because there is work.
    #[inline]
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.is_armed.load(Ordering::Relaxed) && self.is_armed.swap(false, Ordering::Relaxed) {
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for LineWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// State that all lines of an OMS share.
#[derive(Debug, Clone)]
pub(crate) struct LinesContext {
    pub waker: Arc<LineWaker>,
    pub validity: Arc<RequestValidity>,
}
