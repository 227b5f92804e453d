//! What the core and a line's agent, each perhaps on a thread of its own, know of each other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

use super::validity::Validity;
use crate::OmsError;

const DOWN: u8 = 0;
const AGAIN: u8 = 1;
const UP: u8 = 2;

/// A line's state. Each word has one writer.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Of the core: whether it gives requests to the line. Its Release pairs with the Acquire of the agent, which then sees
    /// that all it has given back is in the journal.
    state: AtomicU8,
    /// Of the core: what its last word answers, written before it.
    answered: AtomicU64,
    /// Of the agent: the venue has all requests below it.
    proven: AtomicU64,
    /// Of the core: the lane ends here.
    published: AtomicU64,
    /// Of the core: all reports below it are in the journal.
    journaled: AtomicU64,
}

impl Flow {
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == UP
    }

    pub fn is_down(&self) -> bool {
        self.state.load(Ordering::Acquire) == DOWN
    }

    /// Whether it is up since all below this number was given back.
    pub fn is_up_from(&self, upto: u64) -> bool {
        self.is_up() && self.answered.load(Ordering::Relaxed) == upto
    }

    /// Whether more came into the lane while the agent gave back what was there, which ended here.
    pub fn is_again_from(&self, upto: u64) -> bool {
        self.state.load(Ordering::Acquire) == AGAIN && self.answered.load(Ordering::Relaxed) == upto
    }

    pub fn answer(&self, upto: u64, is_up: bool) {
        self.answered.store(upto, Ordering::Relaxed);
        self.state.store(if is_up { UP } else { AGAIN }, Ordering::Release);
    }

    pub fn down(&self) {
        self.state.store(DOWN, Ordering::Release);
    }

    #[inline]
    pub fn proven(&self) -> u64 {
        self.proven.load(Ordering::Relaxed)
    }

    pub fn prove(&self, next: u64) {
        self.proven.store(next, Ordering::Relaxed);
    }

    /// To be called before the bell rings.
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

/// Wakes a thread that sleeps on its lines' sockets.
#[derive(Debug)]
pub(crate) struct Bell {
    sleeps: AtomicBool,
    wakes: OwnedFd,
}

impl Bell {
    pub fn new() -> Result<Self, OmsError> {
        let wakes = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wakes = wakes.map_err(|e| OmsError::Sockets(e.into()))?;
        Ok(Self { sleeps: AtomicBool::new(false), wakes })
    }

    /// Its thread goes to sleep, after one more look for what came before this.
    pub fn sleeps(&self) {
        self.sleeps.store(true, Ordering::SeqCst);
        // Pairs with the fence of who rings: either it sees the flag, or the look sees what it did.
        fence(Ordering::SeqCst);
    }

    pub fn wakes(&self) {
        self.sleeps.store(false, Ordering::Relaxed);
        let _ = rustix::io::read(&self.wakes, &mut [0; 8]);
    }

    /// There is something to do.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::Relaxed) {
            let _ = rustix::io::write(&self.wakes, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

/// What all lines of an OMS have together.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub bell: Arc<Bell>,
    pub validity: Arc<Validity>,
}
