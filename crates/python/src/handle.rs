//! Handles of opened objects, as Python holds them: a handle has one user at a time, any thread may close it, and a
//! fork may not use it at all.
//!
//! No Python code runs while a handle is locked, since that code may close the handle, end the thread, or never return.
//! Results become objects, and errors exceptions, after the lock is released.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_log::ForkGeneration;

use crate::error::ErrorClass;
use crate::notifier::{LoopNotifier, NotifyGuard, NotifyRequest, Waitable};

/// Max duration of one turn of a wait, and so the delay until a signal or another thread's `close` is noticed.
pub const MAX_TURN_NS: u64 = 100_000_000;

/// Max time that a `close` waits for the user of the handle, and then for the drop of its object, so that a silent
/// server does not block an event loop. Unfinished work continues in the background.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

/// An object that is open, or was.
pub struct ObjectHandle<T: Send + 'static> {
    /// Kind of object, for error messages.
    what: &'static str,
    /// Place of the object, without a password: `'ticks' at shm://`.
    place: String,
    shared: Arc<SharedHandle<T>>,
    birthplace: ForkGeneration,
}

/// State that a handle shares with its lookout thread, which waits on behalf of an event loop.
struct SharedHandle<T> {
    opened: Mutex<Option<T>>,
    /// A caller is using the object, or waiting on it.
    is_in_use: AtomicBool,
    /// The handle is closed or being closed: waits should end.
    is_closing: AtomicBool,
    lookout: LoopNotifier,
}

/// Exclusive use of a handle, until this is dropped.
struct HandleUseGuard<'a>(&'a AtomicBool);

impl<T: Send + 'static> ObjectHandle<T> {
    /// Creates the handle of an object that was just opened.
    pub fn new(what: &'static str, place: String, opened: T) -> Self {
        let shared = Arc::new(SharedHandle {
            opened: Mutex::new(Some(opened)),
            is_in_use: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            lookout: LoopNotifier::default(),
        });
        Self { what, place, shared, birthplace: ForkGeneration::current() }
    }

    /// The place of the object, for the handles opened from it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Describes the handle for Python's `repr`: class, place and state.
    pub fn repr(&self, class: &str) -> String {
        let state = match () {
            () if self.birthplace.is_forked() => "of another process",
            () if self.is_open() => "open",
            () => "closed",
        };
        format!("<tickpath.{class} {}, {state}>", self.place)
    }

    /// Uses the object briefly; no Python code runs meanwhile.
    #[inline]
    pub fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        self.check(py)?;
        // The lock alone makes the caller the user: a brief use needs no `is_in_use` flag.
        let acted = match self.shared.opened.try_lock() {
            Ok(mut opened) if !self.shared.lookout.is_awaited() => opened.as_mut().map(act).ok_or(ErrorClass::Closed),
            Ok(_) => Err(ErrorClass::InUse),
            Err(TryLockError::Poisoned(_)) => Err(ErrorClass::Closed),
            Err(TryLockError::WouldBlock) => return self.with_retry(py, act),
        };
        self.end_use(py);
        // The lock is free again: raising an exception may run any code.
        acted.map_err(|why| match why {
            ErrorClass::InUse => self.in_use(py, "task"),
            _ => self.closed(py),
        })
    }

    /// Retries `with` while the lock is held: by another thread, or by a lookout thread that is about to release it.
    #[cold]
    fn with_retry<R>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        let _user = self.begin(py)?;
        let mut opened = loop {
            match self.shared.opened.try_lock() {
                Ok(opened) => break opened,
                Err(TryLockError::WouldBlock) => py.detach(|| drop(self.shared.lock())),
                Err(TryLockError::Poisoned(_)) => return Err(self.closed(py)),
            }
        };
        let acted = opened.as_mut().map(act);
        drop(opened);
        self.end_use(py);
        acted.ok_or_else(|| self.closed(py))
    }

    /// Uses the object for a task, which must not block: None while a lookout thread holds the lock and notifies the
    /// task's loop itself.
    pub fn try_with<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<Option<R>> {
        let _user = self.begin(py)?;
        let attempted = py.detach(|| match self.shared.opened.try_lock() {
            Ok(mut opened) => Some(opened.as_mut().map(act)),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => Some(None),
        });
        self.end_use(py);
        attempted.map(|acted| acted.ok_or_else(|| self.closed(py))).transpose()
    }

    /// Uses the object for as long as `act` takes, without the interpreter.
    pub fn with_detached<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let _user = self.begin(py)?;
        self.act(py, act)
    }

    /// Uses the object after its present user: for objects that several threads share.
    pub fn with_locked<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        self.check(py)?;
        self.act(py, act)
    }

    /// Waits until a turn returns a value. Each turn runs without the interpreter for some milliseconds, signals are
    /// checked before each, and `is_over` ends the wait.
    pub fn wait<R: Send>(
        &self,
        py: Python<'_>,
        is_over: impl Fn() -> bool,
        mut turn: impl FnMut(&mut T) -> Option<R> + Send,
    ) -> PyResult<Option<R>> {
        loop {
            py.check_signals()?;
            match self.with_detached(py, &mut turn)? {
                None if !is_over() => {}
                found => return Ok(found),
            }
        }
    }

    /// Looks at the object briefly, without the interpreter. Returns false while the lock is held, and true when the
    /// handle is closed, so that the caller's next call reports the closing.
    pub fn peek(&self, look: impl FnOnce(&mut T) -> bool) -> bool {
        if self.shared.is_closing.load(Ordering::Relaxed) {
            return true;
        }
        match self.shared.opened.try_lock() {
            Ok(mut opened) => opened.as_mut().is_none_or(look),
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Poisoned(_)) => true,
        }
    }

    /// Reports whether the handle is open, and not a fork's copy.
    pub fn is_open(&self) -> bool {
        !self.birthplace.is_forked() && !self.shared.is_closing.load(Ordering::Relaxed)
    }

    /// Waits until a turn returns a value or the timeout expires; without a timeout there is no limit. Each turn
    /// receives the time left.
    pub fn wait_within<E: Send>(
        &self,
        py: Python<'_>,
        clock: HostClock,
        timeout: Option<Duration>,
        look_out: fn(&mut T, u64) -> Result<bool, E>,
    ) -> PyResult<Result<bool, E>> {
        let begun = clock.ticks();
        let left_ns = || match timeout {
            None => u64::MAX,
            Some(timeout) => {
                let passed = clock.ns_between(begun, clock.ticks()).max(0) as u64;
                u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).saturating_sub(passed)
            }
        };
        let turn = |opened: &mut T| match look_out(opened, left_ns()) {
            Ok(false) => None,
            found => Some(found),
        };
        Ok(self.wait(py, || left_ns() == 0, turn)?.unwrap_or(Ok(false)))
    }

    /// Closes the handle as soon as its user notices. A user still awaiting an answer drops the object itself later; in
    /// a fork nothing is closed, since the object belongs to the parent.
    pub fn close(&self, py: Python<'_>) {
        if !self.birthplace.is_forked() && !self.mark_closed() {
            py.detach(|| drop_in_background(self.shared.take_within(CLOSE_TIMEOUT)));
        }
    }

    /// Marks the handle closed. Returns true if its lookout thread will drop the object.
    fn mark_closed(&self) -> bool {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.lookout.end()
    }

    /// Ends a use: drops the object here if a `close` came meanwhile and did not wait.
    #[inline]
    fn end_use(&self, py: Python<'_>) {
        if self.shared.is_closing.load(Ordering::SeqCst) {
            py.detach(|| drop_in_background(self.shared.take()));
        }
    }

    fn act<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let done = py.detach(|| self.shared.lock().as_deref_mut().and_then(Option::as_mut).map(act));
        self.end_use(py);
        done.ok_or_else(|| self.closed(py))
    }

    fn begin(&self, py: Python<'_>) -> PyResult<HandleUseGuard<'_>> {
        self.check(py)?;
        if self.shared.lookout.is_awaited() {
            return Err(self.in_use(py, "task"));
        }
        let is_in_use = &self.shared.is_in_use;
        if is_in_use.swap(true, Ordering::Acquire) {
            return Err(self.in_use(py, "thread"));
        }
        Ok(HandleUseGuard(is_in_use))
    }

    /// Rejects forks and closed handles.
    #[inline]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.birthplace.is_forked() {
            let sentence =
                format!("this {} was opened before the process was forked; open another one here", self.what);
            return Err(ErrorClass::Forked.raise(py, &sentence));
        }
        if self.shared.is_closing.load(Ordering::Relaxed) {
            return Err(self.closed(py));
        }
        Ok(())
    }

    #[cold]
    fn in_use(&self, py: Python<'_>, user: &str) -> PyErr {
        let what = self.what;
        let sentence = format!("another {user} uses this {what}; share it behind a lock, or open one for each {user}");
        ErrorClass::InUse.raise(py, &sentence)
    }

    #[cold]
    fn closed(&self, py: Python<'_>) -> PyErr {
        ErrorClass::Closed.raise(py, &format!("this {} is closed; open another one", self.what))
    }
}

impl<T: Waitable> ObjectHandle<T> {
    /// Makes a lookout thread wait for the event loop. Returns the descriptor that becomes readable when the loop
    /// should look.
    pub fn watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.check(py)?;
        let no_thread = |e: std::io::Error| PyOSError::new_err(format!("no thread can wait for the event loop: {e}"));
        let request = self.shared.lookout.request().map_err(no_thread)?;
        let Some(NotifyRequest { event_fd, is_first }) = request else { return Err(self.in_use(py, "task")) };
        if is_first {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("lookout".to_owned());
            if let Err(e) = thread.spawn(move || shared.run_wait_thread()) {
                self.shared.lookout.reset();
                return Err(no_thread(e));
            }
        }
        Ok(event_fd)
    }

    /// Returns a duplicate of the descriptor from [`Self::watch`].
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.shared.lookout.descriptor()
    }

    /// Ends the wait of the task that called [`Self::watch`].
    pub fn stop_waiting(&self) {
        if !self.birthplace.is_forked() {
            self.shared.lookout.stop_waiting();
        }
    }
}

impl<T: Send> SharedHandle<T> {
    /// Locks the object; None after a panic of its user.
    fn lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        self.opened.lock().ok()
    }

    fn take(&self) -> Option<T> {
        self.lock().and_then(|mut opened| opened.take())
    }

    /// Takes the object out if the lock is free within this time; otherwise its user drops the object.
    fn take_within(&self, timeout: Duration) -> Option<T> {
        const PAUSE_NS: u64 = 1_000_000;
        for _ in 0..=timeout.as_millis() {
            match self.opened.try_lock() {
                Ok(mut opened) => return opened.take(),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) => sleep_ns(PAUSE_NS),
            }
        }
        None
    }
}

/// Drops the object, which may wait for a server's answer; after [`CLOSE_TIMEOUT`] it continues in the background.
fn drop_in_background<T: Send + 'static>(opened: Option<T>) {
    let Some(opened) = opened else { return };
    let (done, is_done) = channel();
    let thread = std::thread::Builder::new().name("closing".to_owned());
    let started = thread.spawn(move || {
        drop(opened);
        // The receiver may be gone.
        let _ = done.send(());
    });
    // If no thread could be started, the object was dropped at once.
    if started.is_ok() && is_done.recv_timeout(CLOSE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
        RUNNING_DROPS.lock().unwrap_or_else(PoisonError::into_inner).push(is_done);
    }
}

/// Drops that are still running.
static RUNNING_DROPS: Mutex<Vec<Receiver<()>>> = Mutex::new(Vec::new());

/// Waits, at the end of the program, for the objects that are still being dropped, as long as an answer may take;
/// messages sent before may be in flight, and would be cut off.
#[pyfunction]
pub fn await_closings(py: Python<'_>) {
    const DROP_TIMEOUT: Duration = Duration::from_secs(5);
    py.detach(|| {
        let undone = std::mem::take(&mut *RUNNING_DROPS.lock().unwrap_or_else(PoisonError::into_inner));
        // The drops run in parallel, so the waits overlap.
        undone.into_iter().for_each(|closing| _ = closing.recv_timeout(DROP_TIMEOUT));
    });
}

impl<T: Waitable> SharedHandle<T> {
    /// Runs the lookout thread: waits whenever it is asked to, and notifies the loop of an event, a close or the end of
    /// the task's wait.
    fn run_wait_thread(&self) {
        while self.lookout.sleep() {
            let _notify = NotifyGuard(&self.lookout);
            loop {
                if self.is_closing.load(Ordering::Relaxed) || self.turn() || !self.lookout.is_awaited() {
                    break;
                }
            }
        }
        drop(self.take());
    }

    fn turn(&self) -> bool {
        self.lock().as_deref_mut().and_then(Option::as_mut).is_none_or(Waitable::wait_turn)
    }
}

impl Drop for HandleUseGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T: Send + 'static> Drop for ObjectHandle<T> {
    fn drop(&mut self) {
        if self.birthplace.is_forked() {
            // The threads and locks of the handle stayed with the parent.
            std::mem::forget(Arc::clone(&self.shared));
        } else if !self.mark_closed() {
            let opened = self.shared.take();
            // Other threads run meanwhile; without an interpreter the object is dropped all the same.
            Python::try_attach(|py| py.detach(|| drop_in_background(opened)));
        }
    }
}
