//! Lent messages as Python buffers.
//!
//! ```text
//!   Bus     <──counts──┐
//!   Subscriber <──counts── Loan <── Frame ── close: refused while there is a view
//!                           │  └─── View <── Bytes <── memoryview, and objects made from it
//!                           └──> the message, which stays mapped while the loan lives
//! ```
//! Each view holds the loan, so that no view outlives its bytes, in whatever order objects are closed, collected or
//! forked. `close` is refused while a message is lent only to inform the caller.

use std::iter::successors;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};
use tickpath_bus::LentMessage;

use crate::error::ErrorClass;

/// Count of the messages lent by a handle.
#[derive(Default)]
pub struct Loans {
    lent: AtomicUsize,
    /// Loans of the handle that contains this one.
    parent: Option<Arc<Loans>>,
}

/// A lent message, held until its frame is closed and its views are gone.
struct Loan {
    lent: LentMessage,
    of: Arc<Loans>,
}

/// Owner of a Python buffer.
struct FrameView(Arc<Loan>);

/// A message that is lent in place, until the frame is closed. Use it in a `with` block, or close it.
#[pyclass(name = "Frame", frozen, module = "tickpath")]
pub struct PyMessageFrame {
    /// Kind of the message, 16 to 255.
    #[pyo3(get)]
    kind: u8,
    /// Time of publication, in ticks of the publisher's clock.
    #[pyo3(get)]
    stamp: u64,
    /// Sequence number in the topic, from 0; None where the transport counts none.
    #[pyo3(get)]
    sequence: Option<u64>,
    /// The loan; None when the frame is closed.
    loan: Mutex<Option<Arc<Loan>>>,
}

impl Loans {
    /// Creates the loans of a handle that `whole` contains.
    pub fn within(whole: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { lent: AtomicUsize::new(0), parent: Some(Arc::clone(whole)) })
    }

    /// Rejects closing the handle while messages are lent.
    pub fn refuse_while_lent(&self, what: &str) -> PyResult<()> {
        match self.lent.load(Ordering::Acquire) {
            0 => Ok(()),
            lent => Err(PyBufferError::new_err(format!(
                "messages of this {what} are lent ({lent}); drop the objects made from their data, close the frames, \
                 then close the {what}"
            ))),
        }
    }

    /// These loans, then the loans of each containing handle.
    fn all(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |loans| loans.parent.as_deref())
    }
}

impl Loan {
    fn new(lent: LentMessage, of: &Arc<Loans>) -> Arc<Self> {
        of.all().for_each(|loans| _ = loans.lent.fetch_add(1, Ordering::Relaxed));
        Arc::new(Self { lent, of: Arc::clone(of) })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.of.all().for_each(|loans| _ = loans.lent.fetch_sub(1, Ordering::Release));
    }
}

impl AsRef<[u8]> for FrameView {
    fn as_ref(&self) -> &[u8] {
        self.0.lent.payload()
    }
}

impl PyMessageFrame {
    /// Creates the frame of a message, counted in these loans.
    pub fn new(lent: LentMessage, of: &Arc<Loans>) -> Self {
        let LentMessage { kind, stamp, sequence, .. } = lent;
        Self { kind, stamp, sequence, loan: Mutex::new(Some(Loan::new(lent, of))) }
    }

    /// Locks the loan; no Python code runs while the lock is held.
    fn loan(&self) -> MutexGuard<'_, Option<Arc<Loan>>> {
        self.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_loan(&self, py: Python<'_>) -> PyResult<Arc<Loan>> {
        let loan = self.loan().clone();
        loan.ok_or_else(|| ErrorClass::Closed.raise(py, "this frame is closed; lend the next one, or poll for a copy"))
    }
}

#[pymethods]
impl PyMessageFrame {
    /// Bytes of the message in place, as a new read-only view each time. The frame cannot be closed while a view lives,
    /// or an object made from a view, such as an array.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = Bytes::from_owner(FrameView(self.open_loan(py)?));
        let exported = Bound::new(py, pyo3_bytes::PyBytes::new(view))?;
        PyMemoryView::from(exported.as_any())
    }

    /// Gives the message back; a second call does nothing. Raises BufferError while a view of its data lives.
    fn close(&self) -> PyResult<()> {
        let mut loan = self.loan();
        if loan.as_ref().is_some_and(|loan| Arc::strong_count(loan) > 1) {
            let sentence = "views of this frame's data exist; drop them and the objects made from them, then close it";
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
            // The exception usually holds the views; the message is returned when the last of them is dropped.
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
        Err(PyTypeError::new_err("a Frame cannot be pickled; send bytes(frame), which is a copy"))
    }
}

/// Reports whether a `with` block ends because of an exception.
pub fn is_raised(raised: &Bound<'_, PyTuple>) -> bool {
    raised.get_item(0).is_ok_and(|class| !class.is_none())
}
