//! Waiting for Python's event loop: a thread waits in place of the loop, and makes a descriptor readable when an event
//! arrives. The thread never touches Python.
//!
//! ```text
//!   event loop                                  lookout thread
//!   no event: ask() ───────────────────────────> waits, without a loop's turn or a lock of the interpreter
//!   epoll on the descriptor <── eventfd ──────── event found: writes it, and sleeps until the next ask()
//!   polls again
//! ```

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;

/// Max turn of a lookout thread, and so the delay of a caller that finds the thread at work.
pub const MAX_NOTIFIER_TURN_NS: u64 = 10_000_000;

/// State shared by an event loop and its lookout thread.
#[derive(Default)]
pub struct LoopNotifier {
    state: Mutex<NotifierState>,
    changed: Condvar,
    /// A task is waiting for a notification.
    is_awaited: AtomicBool,
}

#[derive(Default)]
struct NotifierState {
    /// Eventfd that becomes readable when the loop should look; created with the thread.
    event_fd: Option<OwnedFd>,
    /// The thread is waiting for an event, or about to.
    is_requested: bool,
    /// No further waits will be asked for.
    is_over: bool,
}

/// An object that a thread can wait on.
pub trait Waitable: Send + 'static {
    /// Waits for some milliseconds; returns true if an event may have arrived.
    fn wait_turn(&mut self) -> bool;
}

/// The descriptor, and whether its thread must still be started.
pub struct NotifyRequest {
    pub event_fd: RawFd,
    pub is_first: bool,
}

impl LoopNotifier {
    /// Asks for a notification. Returns None if another task is waiting for one.
    pub fn request(&self) -> std::io::Result<Option<NotifyRequest>> {
        let mut state = self.state();
        if self.is_awaited() {
            return Ok(None);
        }
        let is_first = state.event_fd.is_none();
        let event_fd = match state.event_fd.take() {
            Some(event_fd) => event_fd,
            None => eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        let number = event_fd.as_raw_fd();
        (state.event_fd, state.is_requested) = (Some(event_fd), true);
        self.is_awaited.store(true, Ordering::Relaxed);
        self.changed.notify_one();
        Ok(Some(NotifyRequest { event_fd: number, is_first }))
    }

    /// Returns a duplicate of the descriptor that becomes readable when the loop should look.
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        let state = self.state();
        let event_fd = state.event_fd.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
        Ok(fcntl_dupfd_cloexec(event_fd, 0)?)
    }

    /// Resets the state after the thread could not be started.
    pub fn reset(&self) {
        *self.state() = NotifierState::default();
        self.is_awaited.store(false, Ordering::Relaxed);
    }

    /// Reports whether a task is waiting for a notification.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Ends the task's wait, notified or not; the thread stops waiting, too.
    pub fn stop_waiting(&self) {
        let state = self.state();
        self.is_awaited.store(false, Ordering::Relaxed);
        if let Some(event_fd) = &state.event_fd {
            // An empty eventfd is no error.
            let _count = rustix::io::read(event_fd, &mut [0; 8]);
        }
    }

    /// Ends all waits. Returns true if the thread is at work, and will drop the object.
    pub fn end(&self) -> bool {
        let mut state = self.state();
        state.is_over = true;
        self.changed.notify_one();
        state.is_requested
    }

    /// Sleeps until a task asks for a wait. Returns false at the end, unless a wait is still to be answered.
    pub fn sleep(&self) -> bool {
        let state = self.state();
        let state = self.changed.wait_while(state, |state| !state.is_requested && !state.is_over);
        state.unwrap_or_else(PoisonError::into_inner).is_requested
    }

    fn state(&self) -> MutexGuard<'_, NotifierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that notifies the task when dropped, even after a panic.
pub struct NotifyGuard<'a>(pub &'a LoopNotifier);

impl Drop for NotifyGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_requested = false;
        if let Some(event_fd) = &state.event_fd {
            // The write can only fail on a full counter, which is readable anyway.
            let _written = rustix::io::write(event_fd, &1_u64.to_ne_bytes());
        }
    }
}
