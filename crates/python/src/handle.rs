//! What Python holds of something that is opened: it has one user at a time, anybody may close it, and a fork may not use it
//! at all.
//!
//! No Python code runs while it is locked, for that may do anything: close it, end the thread, or never come back. So what is
//! taken out becomes objects, and what went wrong an exception, when it is free again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use tickpath_log::Birthplace;

use crate::error::Error;

/// Something that is opened, or was.
pub struct Handle<T: Send> {
    /// What it is, for sentences.
    what: &'static str,
    opened: Mutex<Option<T>>,
    /// Somebody uses it, or waits on it.
    is_in_use: AtomicBool,
    /// Somebody closes it, or has: who waits is to end.
    is_closing: AtomicBool,
    born: Birthplace,
}

/// The one user, as long as this lives.
struct User<'a>(&'a AtomicBool);

impl<T: Send> Handle<T> {
    /// Of what was opened just now.
    pub fn new(what: &'static str, opened: T) -> Self {
        let (is_in_use, is_closing) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { what, opened: Mutex::new(Some(opened)), is_in_use, is_closing, born: Birthplace::here() }
    }

    /// Uses it for a moment, in which no Python code runs.
    #[inline]
    pub fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        let _user = self.begin(py)?;
        match self.lock().as_deref_mut() {
            Some(Some(opened)) => Ok(act(opened)),
            _ => Err(self.closed(py)),
        }
    }

    /// Uses it for as long as it takes, without the interpreter.
    pub fn detached<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let _user = self.begin(py)?;
        let done = py.detach(|| self.lock().as_deref_mut().and_then(Option::as_mut).map(act));
        done.ok_or_else(|| self.closed(py))
    }

    /// The same behind whoever uses it now: for what several threads share.
    pub fn in_turn<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        self.check(py)?;
        let done = py.detach(|| self.lock().as_deref_mut().and_then(Option::as_mut).map(act));
        done.ok_or_else(|| self.closed(py))
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

    /// Closes it, as soon as its user has seen that. In a fork nothing is closed: it is the parent's.
    pub fn close(&self, py: Python<'_>) {
        if !self.born.is_elsewhere() {
            self.is_closing.store(true, Ordering::Relaxed);
            // It is let go of when it is free, for that may take as long as an answer.
            py.detach(|| drop(self.take()));
        }
    }

    fn begin(&self, py: Python<'_>) -> PyResult<User<'_>> {
        self.check(py)?;
        if self.is_in_use.swap(true, Ordering::Acquire) {
            return Err(Error::InUse.raise(py, &format!("another thread uses this {}; open one for each", self.what)));
        }
        Ok(User(&self.is_in_use))
    }

    /// Refuses a fork, and what is closed.
    #[inline]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.born.is_elsewhere() {
            let sentence =
                format!("this {} was opened before the process was forked; open another one here", self.what);
            return Err(Error::Forked.raise(py, &sentence));
        }
        if self.is_closing.load(Ordering::Relaxed) {
            return Err(self.closed(py));
        }
        Ok(())
    }

    fn closed(&self, py: Python<'_>) -> PyErr {
        Error::Closed.raise(py, &format!("this {} is closed; open another one", self.what))
    }
}

impl<T: Send> Handle<T> {
    /// None if a panic has ended what it was.
    fn lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        self.opened.lock().ok()
    }

    fn take(&self) -> Option<T> {
        self.lock().and_then(|mut opened| opened.take())
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T: Send> Drop for Handle<T> {
    fn drop(&mut self) {
        let opened = self.take();
        if self.born.is_elsewhere() {
            // Its threads and its locks stayed with the parent.
            std::mem::forget(opened);
        } else {
            // Others run meanwhile; where there is no interpreter any more it is let go of all the same.
            Python::try_attach(|py| py.detach(|| drop(opened)));
        }
    }
}
