//! Pushing and pulling.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tickpath_clock::{Clock, HostClock};

use crate::error::{batch_error, publish_error, receive_error};
use crate::event::{message_object, with_payload};
use crate::handle::Handle;
use crate::topic::{kind_of, payloads};

/// How long one turn of a wait may take.
const TURN_NS: u64 = 100_000_000;

/// Pushes to one queue. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct Pusher {
    handle: Handle<Box<dyn tickpath_bus::Pusher>>,
    clock: HostClock,
}

impl Pusher {
    /// Of a queue that is opened.
    pub fn new(opened: Box<dyn tickpath_bus::Pusher>, clock: HostClock) -> Self {
        Self { handle: Handle::new("pusher", opened), clock }
    }
}

#[pymethods]
impl Pusher {
    /// Pushes one message; returns when the queue has it.
    #[pyo3(signature = (data, kind = None, *, stamp = None))]
    fn push(&self, py: Python<'_>, data: &Bound<'_, PyAny>, kind: Option<u8>, stamp: Option<u64>) -> PyResult<()> {
        self.handle.with(py, |pusher| {
            with_payload(data, |payload, own| {
                let kind = kind_of(kind, own)?;
                let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
                py.detach(|| pusher.push(stamp, kind, payload)).map_err(|e| publish_error(py, &e))
            })
        })
    }

    /// Pushes messages of one kind and one stamp, in one pipeline, confirmed together.
    #[pyo3(signature = (batch, kind = None, *, stamp = None))]
    fn push_batch(
        &self,
        py: Python<'_>,
        batch: Vec<Bound<'_, PyAny>>,
        kind: Option<u8>,
        stamp: Option<u64>,
    ) -> PyResult<()> {
        let (kind, copies) = payloads(&batch, kind)?;
        let payloads: Vec<&[u8]> = copies.iter().map(Vec::as_slice).collect();
        let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
        self.handle
            .with(py, |pusher| py.detach(|| pusher.push_batch(stamp, kind, &payloads)).map_err(|e| batch_error(py, &e)))
    }

    /// Finds out what has become of what the last call left unknown, and sends it again if need be.
    fn resend(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, |pusher| py.detach(|| pusher.resend()).map_err(|e| batch_error(py, &e)))
    }

    /// Closes it; a second time does nothing.
    fn close(&self, py: Python<'_>) {
        self.handle.close(py);
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) {
        self.handle.close(py);
    }
}

/// A message of a queue.
#[pyclass(frozen, get_all, module = "tickpath")]
pub struct Pulled {
    /// The message: a TopOfBook, a Trade or a Message.
    message: Py<PyAny>,
    /// A puller may have had it already.
    redelivered: bool,
    /// How often it was delivered, this time included; None where that is not counted.
    deliveries: Option<u32>,
    /// Names it to this puller, for `give_back`.
    tag: u64,
}

#[pymethods]
impl Pulled {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let message = self.message.bind(py).repr()?;
        Ok(format!("Pulled(message={message}, redelivered={})", if self.redelivered { "True" } else { "False" }))
    }
}

/// Pulls from one queue: iterate over it, or pull. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct Puller {
    handle: Handle<Box<dyn tickpath_bus::Puller>>,
    clock: HostClock,
}

impl Puller {
    /// Of a queue that is opened.
    pub fn new(opened: Box<dyn tickpath_bus::Puller>, clock: HostClock) -> Self {
        Self { handle: Handle::new("puller", opened), clock }
    }

    fn pull_some(&self, py: Python<'_>, max: usize) -> PyResult<Vec<Pulled>> {
        self.handle.with(py, |puller| {
            let (mut pulled, mut failed) = (Vec::new(), None);
            let done = puller.pull(max, &mut |one| match message_object(py, &one.message) {
                Ok(message) => {
                    let tickpath_bus::Pulled { redelivered, deliveries, tag, .. } = one;
                    pulled.push(Pulled { message, redelivered, deliveries, tag });
                }
                Err(e) => failed = Some(e),
            });
            if let Err(e) = done
                && pulled.is_empty()
            {
                return Err(receive_error(py, &e));
            }
            failed.map_or(Ok(pulled), Err)
        })
    }
}

#[pymethods]
impl Puller {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next message, as soon as there is one. Acknowledge what is done with.
    fn __next__(&self, py: Python<'_>) -> PyResult<Pulled> {
        loop {
            if let Some(pulled) = self.pull_some(py, 1)?.pop() {
                return Ok(pulled);
            }
            self.wait(py, Some(1.0))?;
        }
    }

    /// Up to `max` messages that are there; never waits for one to come.
    #[pyo3(signature = (max = 64))]
    fn pull<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Bound<'py, PyList>> {
        let pulled: PyResult<Vec<_>> = self.pull_some(py, max)?.into_iter().map(|one| Py::new(py, one)).collect();
        PyList::new(py, pulled?)
    }

    /// Everything that was handed over so far is done with, and never comes again.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, |puller| py.detach(|| puller.acknowledge()).map_err(|e| receive_error(py, &e)))
    }

    /// One message that was handed over goes back, at once, and comes again, marked.
    fn give_back(&self, py: Python<'_>, pulled: &Pulled) -> PyResult<()> {
        self.handle.with(py, |puller| py.detach(|| puller.give_back(pulled.tag)).map_err(|e| receive_error(py, &e)))
    }

    /// Waits until there may be something, or `timeout` seconds are over. Pull again behind it.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = Duration::try_from_secs_f64(timeout.unwrap_or(1.0)).map_err(|_| {
            PyValueError::new_err("that is no timeout; give seconds, 0 or more, or None for one second")
        })?;
        let (clock, begun, whole_ns) = (self.clock, self.clock.ticks(), timeout.as_nanos() as u64);
        let left_ns = || whole_ns.saturating_sub(clock.ns_between(begun, clock.ticks()).max(0) as u64);
        // A puller does not say whether there is something; it returns early if so.
        let turn = |puller: &mut Box<dyn tickpath_bus::Puller>| {
            let slept = clock.ticks();
            let most = left_ns().min(TURN_NS);
            puller.wait(most);
            ((clock.ns_between(slept, clock.ticks()) as u64) < most).then_some(())
        };
        self.handle.wait(py, || left_ns() == 0, turn).map(|_| ())
    }

    /// Closes it; what is not acknowledged comes again. A second time does nothing.
    fn close(&self, py: Python<'_>) {
        self.handle.close(py);
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) {
        self.handle.close(py);
    }
}
