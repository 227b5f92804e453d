//! Waiting for Python's event loop: a thread that waits where the loop cannot, and makes a descriptor readable when there is
//! something. It never touches Python.
//!
//! ```text
//!   event loop                                  this thread
//!   nothing there: ask() ──────────────────────> waits, without a loop's turn or a lock of the interpreter
//!   epoll on the descriptor <── eventfd ──────── there is something: tells it, and sleeps until it is asked again
//!   looks for itself
//! ```

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;

/// The longest turn of a thread that waits for an event loop: another caller, who finds it at work, waits that long.
pub const TURN_NS: u64 = 10_000_000;

/// What a loop and its thread say to each other.
#[derive(Default)]
pub struct Lookout {
    state: Mutex<State>,
    changed: Condvar,
    /// A task waits to be told.
    is_awaited: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Readable when the loop is to look; made with the thread.
    told: Option<OwnedFd>,
    /// The thread looks, or is about to.
    is_asked: bool,
    /// Nobody asks any more.
    is_over: bool,
}

/// What a thread can wait for.
pub trait Watched: Send + 'static {
    /// Waits for some milliseconds; true if there may be something.
    fn turn(&mut self) -> bool;
}

/// The descriptor, and whether its thread is still to be started.
pub struct Asked {
    pub told: RawFd,
    pub is_first: bool,
}

impl Lookout {
    /// Asks to be told. None if another task has asked and waits.
    pub fn ask(&self) -> std::io::Result<Option<Asked>> {
        let mut state = self.state();
        if self.is_awaited() {
            return Ok(None);
        }
        let is_first = state.told.is_none();
        let told = match state.told.take() {
            Some(told) => told,
            None => eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        let number = told.as_raw_fd();
        (state.told, state.is_asked) = (Some(told), true);
        self.is_awaited.store(true, Ordering::Relaxed);
        self.changed.notify_one();
        Ok(Some(Asked { told: number, is_first }))
    }

    /// A duplicate of the descriptor that is readable when the loop is to look.
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        let state = self.state();
        let told = state.told.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
        Ok(fcntl_dupfd_cloexec(told, 0)?)
    }

    /// There is no thread.
    pub fn give_up(&self) {
        *self.state() = State::default();
        self.is_awaited.store(false, Ordering::Relaxed);
    }

    /// Whether a task waits to be told.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// The task does not wait any more, told or not; the thread stops too.
    pub fn stop_waiting(&self) {
        let state = self.state();
        self.is_awaited.store(false, Ordering::Relaxed);
        if let Some(told) = &state.told {
            // Nothing to read is as good.
            let _count = rustix::io::read(told, &mut [0; 8]);
        }
    }

    /// Nobody asks any more. True if the thread is at work, which then lets go of what it works on.
    pub fn end(&self) -> bool {
        let mut state = self.state();
        state.is_over = true;
        self.changed.notify_one();
        state.is_asked
    }

    /// Sleeps until it is asked; false at the end, when who asked last is told.
    pub fn sleep(&self) -> bool {
        let state = self.state();
        let state = self.changed.wait_while(state, |state| !state.is_asked && !state.is_over);
        state.unwrap_or_else(PoisonError::into_inner).is_asked
    }

    /// Tells who asked, whatever comes in between.
    pub fn will_tell(&self) -> Telling<'_> {
        Telling(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells when it is dropped.
pub struct Telling<'a>(&'a Lookout);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_asked = false;
        if let Some(told) = &state.told {
            // It can only be too full, and then it is readable.
            let _written = rustix::io::write(told, &1_u64.to_ne_bytes());
        }
    }
}
