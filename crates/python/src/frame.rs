//! Messages that are lent, as buffers of Python's.
//!
//! ```text
//!   Bus     <──counts──┐
//!   Subscriber <──counts── Loan <── Frame ── close: refused while there is a view
//!                           │  └─── View <── Bytes <── memoryview, and what is made of it
//!                           └──> the message, which stays mapped as long as this
//! ```
//! Each view holds the loan for itself, so that none outlives its bytes, whatever is closed, collected or forked, and in
//! whatever order. That `close` is refused while something is lent is for whoever wants to know.

use std::iter::successors;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};
use tickpath_bus::Lent;

use crate::error::Error;

/// How many messages of something are lent.
#[derive(Default)]
pub struct Loans {
    lent: AtomicUsize,
    /// Of what this is a part.
    within: Option<Arc<Loans>>,
}

/// A message that is lent, until its frame is closed and its views have gone.
struct Loan {
    lent: Lent,
    of: Arc<Loans>,
}

/// What a buffer of Python's holds.
struct View(Arc<Loan>);

/// A message that is lent where it lies, until it is closed. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct Frame {
    /// What it is, 16 to 255.
    #[pyo3(get)]
    kind: u8,
    /// When it was published, in ticks of its publisher's clock.
    #[pyo3(get)]
    stamp: u64,
    /// Its number in the topic, from 0; None where the transport counts none.
    #[pyo3(get)]
    sequence: Option<u64>,
    /// None when it is closed.
    loan: Mutex<Option<Arc<Loan>>>,
}

impl Loans {
    /// Of a part of something.
    pub fn within(whole: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { lent: AtomicUsize::new(0), within: Some(Arc::clone(whole)) })
    }

    /// Refuses to close what this is of.
    pub fn refuse_while_lent(&self, what: &str) -> PyResult<()> {
        match self.lent.load(Ordering::Acquire) {
            0 => Ok(()),
            lent => Err(PyBufferError::new_err(format!(
                "messages of this {what} are lent ({lent}): drop what was made of their data, close the frames, then close \
                 the {what}"
            ))),
        }
    }

    /// These, and those of what they are a part of.
    fn all(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |loans| loans.within.as_deref())
    }
}

impl Loan {
    fn new(lent: Lent, of: &Arc<Loans>) -> Arc<Self> {
        of.all().for_each(|loans| _ = loans.lent.fetch_add(1, Ordering::Relaxed));
        Arc::new(Self { lent, of: Arc::clone(of) })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.of.all().for_each(|loans| _ = loans.lent.fetch_sub(1, Ordering::Release));
    }
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self.0.lent.payload()
    }
}

impl Frame {
    /// Of a message of something of which this is lent.
    pub fn new(lent: Lent, of: &Arc<Loans>) -> Self {
        let Lent { kind, stamp, sequence, .. } = lent;
        Self { kind, stamp, sequence, loan: Mutex::new(Some(Loan::new(lent, of))) }
    }

    /// No Python code runs while this is held.
    fn loan(&self) -> MutexGuard<'_, Option<Arc<Loan>>> {
        self.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_loan(&self, py: Python<'_>) -> PyResult<Arc<Loan>> {
        let loan = self.loan().clone();
        loan.ok_or_else(|| Error::Closed.raise(py, "this frame is closed; lend the next one, or poll for a copy"))
    }
}

#[pymethods]
impl Frame {
    /// Its bytes where they lie, a new view each time, which can only be read. As long as one lives, or something made of it
    /// such as an array, the frame cannot be closed.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = Bytes::from_owner(View(self.open_loan(py)?));
        let exported = Bound::new(py, pyo3_bytes::PyBytes::new(view))?;
        PyMemoryView::from(exported.as_any())
    }

    /// Gives it back; a second time does nothing. While a view of its data lives it raises BufferError instead.
    fn close(&self) -> PyResult<()> {
        let mut loan = self.loan();
        if loan.as_ref().is_some_and(|loan| Arc::strong_count(loan) > 1) {
            let sentence =
                "views of this frame's data are there still; drop them, and what was made of them, then close it";
            return Err(PyBufferError::new_err(sentence));
        }
        *loan = None;
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        match self.close() {
            // Who raised it holds the views, as a rule: it is given back with the last of them.
            Err(_) if is_raised(raised) => Ok(()),
            closed => closed,
        }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.open_loan(py)?.lent.payload()))
    }

    fn __repr__(&self) -> String {
        match &*self.loan() {
            Some(loan) => format!("Frame(kind={}, bytes={})", self.kind, loan.lent.payload().len()),
            None => format!("Frame(kind={}, closed)", self.kind),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Frame is not pickled: send bytes(frame), which is a copy"))
    }
}

/// Whether a `with` block ends because something was raised in it.
pub fn is_raised(raised: &Bound<'_, PyTuple>) -> bool {
    raised.get_item(0).is_ok_and(|class| !class.is_none())
}
