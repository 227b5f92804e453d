//! What Python holds of something that is opened: it has one user at a time, anybody may close it, and a fork may not use it
//! at all.
//!
//! No Python code runs while it is locked, for that may do anything: close it, end the thread, or never come back. So what is
//! taken out becomes objects, and what went wrong an exception, when it is free again.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_log::Birthplace;

use crate::error::Error;
use crate::lookout::{Asked, Lookout, Watched};

/// How long one turn of a wait may take: so late is a signal seen that comes between two looks, or another thread's `close`.
pub const TURN_NS: u64 = 100_000_000;

/// How long a `close` waits for its user, and then for what is let go of: a server that says nothing must not hold up an event
/// loop. What is not done then goes on without it.
const CLOSING: Duration = Duration::from_millis(250);

/// Something that is opened, or was.
pub struct Handle<T: Send + 'static> {
    /// What it is, for sentences.
    what: &'static str,
    /// Where it is, without a password: `'ticks' at shm://`.
    place: String,
    shared: Arc<Shared<T>>,
    born: Birthplace,
}

/// What a handle shares with a thread that waits for an event loop.
struct Shared<T> {
    opened: Mutex<Option<T>>,
    /// Somebody uses it, or waits on it.
    is_in_use: AtomicBool,
    /// Somebody closes it, or has: who waits is to end.
    is_closing: AtomicBool,
    lookout: Lookout,
}

/// The one user, as long as this lives.
struct User<'a>(&'a AtomicBool);

impl<T: Send + 'static> Handle<T> {
    /// Of what was opened just now.
    pub fn new(what: &'static str, place: String, opened: T) -> Self {
        let shared = Arc::new(Shared {
            opened: Mutex::new(Some(opened)),
            is_in_use: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            lookout: Lookout::default(),
        });
        Self { what, place, shared, born: Birthplace::here() }
    }

    /// Where it is, for what is opened there.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// For people: its class, where it is and its state.
    pub fn shown(&self, class: &str) -> String {
        let state = match () {
            () if self.born.is_elsewhere() => "of another process",
            () if self.is_open() => "open",
            () => "closed",
        };
        format!("<tickpath.{class} {}, {state}>", self.place)
    }

    /// Uses it for a moment, in which no Python code runs.
    #[inline]
    pub fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        self.check(py)?;
        // Whoever has it in hand is its user; who has nothing in hand has no need to say that he is.
        let acted = match self.shared.opened.try_lock() {
            Ok(mut opened) if !self.shared.lookout.is_awaited() => opened.as_mut().map(act).ok_or(Error::Closed),
            Ok(_) => Err(Error::InUse),
            Err(TryLockError::Poisoned(_)) => Err(Error::Closed),
            Err(TryLockError::WouldBlock) => return self.with_patience(py, act),
        };
        self.used(py);
        // It is free again: what is raised may run any code.
        acted.map_err(|why| match why {
            Error::InUse => self.in_use(py, "task"),
            _ => self.closed(py),
        })
    }

    /// The same while somebody has it in hand: another thread, or one that has waited with it for an event loop and is about
    /// to let go of it.
    #[cold]
    fn with_patience<R>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
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
        self.used(py);
        acted.ok_or_else(|| self.closed(py))
    }

    /// The same for a task, which is not to be held up: None while a thread waits with it, which then tells the task's loop.
    pub fn attempt<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<Option<R>> {
        let _user = self.begin(py)?;
        let attempted = py.detach(|| match self.shared.opened.try_lock() {
            Ok(mut opened) => Some(opened.as_mut().map(act)),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => Some(None),
        });
        self.used(py);
        attempted.map(|acted| acted.ok_or_else(|| self.closed(py))).transpose()
    }

    /// Uses it for as long as it takes, without the interpreter.
    pub fn detached<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let _user = self.begin(py)?;
        self.act(py, act)
    }

    /// The same behind whoever uses it now: for what several threads share.
    pub fn in_turn<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        self.check(py)?;
        self.act(py, act)
    }

    /// Waits until a turn gives something: each runs without the interpreter, and may take some milliseconds; signals are
    /// looked at before each. `is_over` says when nobody waits any more.
    pub fn wait<R: Send>(
        &self,
        py: Python<'_>,
        is_over: impl Fn() -> bool,
        mut turn: impl FnMut(&mut T) -> Option<R> + Send,
    ) -> PyResult<Option<R>> {
        loop {
            py.check_signals()?;
            match self.detached(py, &mut turn)? {
                None if !is_over() => {}
                found => return Ok(found),
            }
        }
    }

    /// Looks at it without the interpreter, in passing: False while somebody has it in hand, True when it is closed, so that who
    /// looks goes on to the call that says so.
    pub fn glance(&self, look: impl FnOnce(&mut T) -> bool) -> bool {
        if self.shared.is_closing.load(Ordering::Relaxed) {
            return true;
        }
        match self.shared.opened.try_lock() {
            Ok(mut opened) => opened.as_mut().is_none_or(look),
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Poisoned(_)) => true,
        }
    }

    /// Whether it is open, and not a fork's copy.
    pub fn is_open(&self) -> bool {
        !self.born.is_elsewhere() && !self.shared.is_closing.load(Ordering::Relaxed)
    }

    /// Waits for so long, without an end if that is not said, until a turn finds something. It is told how long is left.
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

    /// Closes it, as soon as its user has seen that. One who waits for an answer lets go of it himself, later. In a fork nothing
    /// is closed: it is the parent's.
    pub fn close(&self, py: Python<'_>) {
        if !self.born.is_elsewhere() && !self.leave() {
            py.detach(|| let_go(self.shared.take_within(CLOSING)));
        }
    }

    /// From here on it is closed. True if a thread that waits with it for an event loop lets go of it.
    fn leave(&self) -> bool {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.lookout.end()
    }

    /// Its user is done: if somebody closes it meanwhile, who did not wait, it is let go of here.
    #[inline]
    fn used(&self, py: Python<'_>) {
        if self.shared.is_closing.load(Ordering::SeqCst) {
            py.detach(|| let_go(self.shared.take()));
        }
    }

    fn act<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let done = py.detach(|| self.shared.lock().as_deref_mut().and_then(Option::as_mut).map(act));
        self.used(py);
        done.ok_or_else(|| self.closed(py))
    }

    fn begin(&self, py: Python<'_>) -> PyResult<User<'_>> {
        self.check(py)?;
        if self.shared.lookout.is_awaited() {
            return Err(self.in_use(py, "task"));
        }
        let is_in_use = &self.shared.is_in_use;
        if is_in_use.swap(true, Ordering::Acquire) {
            return Err(self.in_use(py, "thread"));
        }
        Ok(User(is_in_use))
    }

    /// Refuses a fork, and what is closed.
    #[inline]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.born.is_elsewhere() {
            let sentence =
                format!("this {} was opened before the process was forked; open another one here", self.what);
            return Err(Error::Forked.raise(py, &sentence));
        }
        if self.shared.is_closing.load(Ordering::Relaxed) {
            return Err(self.closed(py));
        }
        Ok(())
    }

    #[cold]
    fn in_use(&self, py: Python<'_>, whose: &str) -> PyErr {
        Error::InUse.raise(
            py,
            &format!("another {whose} uses this {}; let one use it, or each in turn behind a lock", self.what),
        )
    }

    #[cold]
    fn closed(&self, py: Python<'_>) -> PyErr {
        Error::Closed.raise(py, &format!("this {} is closed; open another one", self.what))
    }
}

impl<T: Watched> Handle<T> {
    /// Has a thread wait with it for an event loop. Gives the descriptor that is readable when the loop is to look.
    pub fn watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.check(py)?;
        let no_thread = |e: std::io::Error| PyOSError::new_err(format!("nobody can wait for the event loop: {e}"));
        let asked = self.shared.lookout.ask().map_err(no_thread)?;
        let Some(Asked { told, is_first }) = asked else { return Err(self.in_use(py, "task")) };
        if is_first {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("lookout".to_owned());
            if let Err(e) = thread.spawn(move || shared.look_out()) {
                self.shared.lookout.give_up();
                return Err(no_thread(e));
            }
        }
        Ok(told)
    }

    /// A duplicate of the descriptor that [`Self::watch`] gives.
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.shared.lookout.descriptor()
    }

    /// The task that asked does not wait any more.
    pub fn stop_waiting(&self) {
        if !self.born.is_elsewhere() {
            self.shared.lookout.stop_waiting();
        }
    }
}

impl<T: Send> Shared<T> {
    /// None if a panic has ended what it was.
    fn lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        self.opened.lock().ok()
    }

    fn take(&self) -> Option<T> {
        self.lock().and_then(|mut opened| opened.take())
    }

    /// Takes it out if it is free within this time. Otherwise its user drops it.
    fn take_within(&self, patience: Duration) -> Option<T> {
        const PAUSE_NS: u64 = 1_000_000;
        for _ in 0..=patience.as_millis() {
            match self.opened.try_lock() {
                Ok(mut opened) => return opened.take(),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) => sleep_ns(PAUSE_NS),
            }
        }
        None
    }
}

/// Lets go of what was opened, which may ask a server to take something back. After a while that goes on alone.
fn let_go<T: Send + 'static>(opened: Option<T>) {
    let Some(opened) = opened else { return };
    let (done, is_done) = channel();
    let thread = std::thread::Builder::new().name("closing".to_owned());
    let started = thread.spawn(move || {
        drop(opened);
        // Nobody may wait any more.
        let _ = done.send(());
    });
    // Without a thread it was let go of at once.
    if started.is_ok() && is_done.recv_timeout(CLOSING) == Err(RecvTimeoutError::Timeout) {
        UNDONE.lock().unwrap_or_else(PoisonError::into_inner).push(is_done);
    }
}

/// Drops that are still running.
static UNDONE: Mutex<Vec<Receiver<()>>> = Mutex::new(Vec::new());

/// At the end of the program: waits for what is still let go of, as long as an answer may take. What was sent before may be on
/// its way, and would be cut off.
#[pyfunction]
pub fn await_closings(py: Python<'_>) {
    const PATIENCE: Duration = Duration::from_secs(5);
    py.detach(|| {
        let undone = std::mem::take(&mut *UNDONE.lock().unwrap_or_else(PoisonError::into_inner));
        // They go on at once: the first that is waited for takes the longest.
        undone.into_iter().for_each(|closing| _ = closing.recv_timeout(PATIENCE));
    });
}

impl<T: Watched> Shared<T> {
    /// Waits whenever it is asked to, and tells when there may be something, it is closed, or nobody waits any more.
    fn look_out(&self) {
        while self.lookout.sleep() {
            let _telling = self.lookout.will_tell();
            loop {
                if self.is_closing.load(Ordering::Relaxed) || self.turn() || !self.lookout.is_awaited() {
                    break;
                }
            }
        }
        drop(self.take());
    }

    fn turn(&self) -> bool {
        self.lock().as_deref_mut().and_then(Option::as_mut).is_none_or(Watched::turn)
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T: Send + 'static> Drop for Handle<T> {
    fn drop(&mut self) {
        if self.born.is_elsewhere() {
            // Its threads and its locks stayed with the parent.
            std::mem::forget(Arc::clone(&self.shared));
        } else if !self.leave() {
            let opened = self.shared.take();
            // Others run meanwhile; where there is no interpreter any more it is let go of all the same.
            Python::try_attach(|py| py.detach(|| let_go(opened)));
        }
    }
}
