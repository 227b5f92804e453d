//! What Python holds of something that is opened: one thread uses it at a time, anybody may close it, and a fork may not use
//! it at all.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

use crate::error::Error;

/// How many forks lie between this process and the one that loaded the module.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Lets Python say when it has forked.
pub fn look_for_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let forked = PyCFunction::new_closure(py, None, None, |_, _| {
        FORKS.fetch_add(1, Ordering::Relaxed);
    })?;
    let when = PyDict::new(py);
    when.set_item("after_in_child", forked)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&when))?;
    Ok(())
}

/// Something that is opened, or was.
pub struct Handle<T> {
    /// What it is, for sentences.
    what: &'static str,
    opened: Mutex<Option<T>>,
    /// Somebody closes it: who waits is to end.
    is_closing: AtomicBool,
    /// The forks when it was opened.
    forks: u64,
}

impl<T: Send> Handle<T> {
    /// Of what was opened just now.
    pub fn new(what: &'static str, opened: T) -> Self {
        let forks = FORKS.load(Ordering::Relaxed);
        Self { what, opened: Mutex::new(Some(opened)), is_closing: AtomicBool::new(false), forks }
    }

    /// Uses it. Refused while another thread does, when it is closed, and in a fork.
    #[inline]
    pub fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> PyResult<R>) -> PyResult<R> {
        if self.is_forked() {
            return Err(
                Error::Forked.raise(py, &format!("this {} was opened before the process was forked", self.what))
            );
        }
        let mut opened: MutexGuard<'_, Option<T>> = match self.opened.try_lock() {
            Ok(opened) => opened,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse.raise(py, &format!("another thread uses this {}", self.what)));
            }
        };
        match opened.as_mut() {
            Some(opened) => act(opened),
            None => Err(self.closed(py)),
        }
    }

    /// Waits in a loop until `turn` gives something: each turn runs without the interpreter, may take some milliseconds, and
    /// in between signals are looked at. `is_over` says when nobody waits any more.
    pub fn wait<R: Send>(
        &self,
        py: Python<'_>,
        is_over: impl Fn() -> bool,
        mut turn: impl FnMut(&mut T) -> Option<R> + Send,
    ) -> PyResult<Option<R>> {
        loop {
            let found = self.with(py, |opened| Ok(py.detach(|| turn(opened))))?;
            if found.is_some() || is_over() {
                return Ok(found);
            }
            if self.is_closing.load(Ordering::Relaxed) {
                return Err(self.closed(py));
            }
            py.check_signals()?;
        }
    }

    /// Closes it, when the thread that waits on it has seen that. In a fork nothing is closed: it is the parent's.
    pub fn close(&self, py: Python<'_>) {
        if self.is_forked() {
            return;
        }
        self.is_closing.store(true, Ordering::Relaxed);
        py.detach(|| drop(self.opened.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }

    fn closed(&self, py: Python<'_>) -> PyErr {
        Error::Closed.raise(py, &format!("this {} is closed; open another one", self.what))
    }

    fn is_forked(&self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        if FORKS.load(Ordering::Relaxed) != self.forks {
            // Its threads and its locks stayed with the parent.
            let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(opened.take());
        }
    }
}
