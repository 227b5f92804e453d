//! Pushers and pullers.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tickpath_bus::ReceiveError;
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use crate::buffered_event::BufferedEvent;
use crate::error::{batch_error, publish_error, receive_error};
use crate::handle::{MAX_TURN_NS, ObjectHandle};
use crate::notifier::{self, Waitable};
use crate::payload::{GivenKind, kind_of, payloads, send_by_kind, with_payload};
use crate::topic::{MaxEvents, events, timeout_of};

/// Fruitless polls of a task before it pauses between further ones, and the length of the pause.
const MAX_EMPTY_POLLS: u32 = 3;
const PAUSE_NS: u64 = 20_000_000;

/// The time that a puller waits unless another one is given.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// Pusher of one queue. Use it in a `with` block, or close it.
#[pyclass(name = "Pusher", frozen, module = "tickpath")]
pub struct PyPusher {
    handle: ObjectHandle<Box<dyn tickpath_bus::Pusher>>,
    clock: HostClock,
}

impl PyPusher {
    pub fn new(opened: Box<dyn tickpath_bus::Pusher>, place: String, clock: HostClock) -> Self {
        Self { handle: ObjectHandle::new("pusher", place, opened), clock }
    }
}

#[pymethods]
impl PyPusher {
    fn __repr__(&self) -> String {
        self.handle.repr("Pusher")
    }

    /// Pushes one message; returns when the queue has the message.
    #[pyo3(signature = (data, kind = None, *, stamp = None))]
    fn push(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        kind: Option<GivenKind>,
        stamp: Option<u64>,
    ) -> PyResult<()> {
        with_payload(data, |payload, own| {
            let kind = kind_of(kind, own)?;
            let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
            let pushed = self.handle.with_detached(py, |pusher| pusher.push(stamp, kind, payload))?;
            pushed.map_err(|e| publish_error(py, &e))
        })
    }

    /// Pushes messages with one stamp, in one pipeline for each change of kind, confirmed together.
    #[pyo3(signature = (batch, kind = None, *, stamp = None))]
    fn push_batch(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        kind: Option<GivenKind>,
        stamp: Option<u64>,
    ) -> PyResult<()> {
        let runs = payloads(batch, kind)?;
        let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
        let pushed = self.handle.with_detached(py, |pusher| {
            send_by_kind(&runs, |kind, payloads| pusher.push_batch(stamp, kind, payloads))
        })?;
        pushed.map_err(|e| batch_error(py, &e))
    }

    /// Determines the outcome of messages that the last call left unknown, and sends them again if necessary.
    fn resend(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with_detached(py, |pusher| pusher.resend())?.map_err(|e| batch_error(py, &e))
    }

    /// Number of times that the connection was lost and restored; None where the number is unknown.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |pusher| pusher.reconnects())
    }

    /// Closes the pusher; a second call does nothing.
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

/// A message that was pulled from a queue.
#[pyclass(name = "Pulled", frozen, get_all, module = "tickpath")]
pub struct PyPulled {
    /// The message: a TopOfBook, a Trade, a BookLevel, a FeedStatus or a Message.
    message: Py<PyAny>,
    /// True if a puller may have received the message before.
    redelivered: bool,
    /// Number of deliveries of the message, this one included; None where they are not counted.
    deliveries: Option<u32>,
    /// Identifies the message to this puller, for `give_back`.
    tag: u64,
}

#[pymethods]
impl PyPulled {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let message = self.message.bind(py).repr()?;
        Ok(format!("Pulled(message={message}, redelivered={})", if self.redelivered { "True" } else { "False" }))
    }
}

/// Puller of one queue: iterate over it, or pull. Use it in a `with` block, or close it.
#[pyclass(name = "Puller", frozen, module = "tickpath")]
pub struct PyPuller {
    handle: ObjectHandle<BufferedPuller>,
    clock: HostClock,
    /// A wait may spin.
    spins: bool,
}

struct BufferedPuller {
    opened: Box<dyn tickpath_bus::Puller>,
    /// Messages pulled that could not be handed over.
    waiting: VecDeque<BufferedPulled>,
    clock: HostClock,
    /// Polls since the last message.
    empty_polls: u32,
}

impl Waitable for BufferedPuller {
    /// Waits, and always returns true: a puller reports no arrivals, and takes over a dead puller's messages only when
    /// it pulls, so the loop polls after each turn. After several fruitless polls, as on a queue that does not exist
    /// yet, turns get longer.
    fn wait_turn(&mut self) -> bool {
        if self.waiting.is_empty() && self.sleep(notifier::MAX_NOTIFIER_TURN_NS) && self.empty_polls > MAX_EMPTY_POLLS {
            sleep_ns(PAUSE_NS);
        }
        true
    }
}

/// A pulled message that is no Python object yet.
struct BufferedPulled {
    message: BufferedEvent,
    redelivered: bool,
    deliveries: Option<u32>,
    tag: u64,
}

impl BufferedPulled {
    fn of(pulled: tickpath_bus::PulledMessage<'_>) -> Self {
        let tickpath_bus::PulledMessage { message, redelivered, deliveries, tag } = pulled;
        Self { message: BufferedEvent::of_message(&message), redelivered, deliveries, tag }
    }

    fn object(&self, py: Python<'_>) -> PyResult<Py<PyPulled>> {
        let Self { redelivered, deliveries, tag, .. } = *self;
        Py::new(py, PyPulled { message: self.message.object(py)?, redelivered, deliveries, tag })
    }
}

impl BufferedPuller {
    /// Waits for `max_ns`; returns true if the wait ended early, since a message may have arrived.
    fn sleep(&mut self, max_ns: u64) -> bool {
        let begun = self.clock.ticks();
        self.opened.wait(max_ns);
        (self.clock.ns_between(begun, self.clock.ticks()) as u64) < max_ns
    }

    fn take_messages(&mut self, limit: usize) -> Result<Vec<BufferedPulled>, ReceiveError> {
        let waiting = limit.min(self.waiting.len());
        let mut taken: Vec<BufferedPulled> = self.waiting.drain(..waiting).collect();
        if waiting > 0 && waiting >= limit {
            return Ok(taken);
        }
        self.empty_polls += 1;
        let polled = self.opened.pull(limit - waiting, &mut |pulled| taken.push(BufferedPulled::of(pulled)));
        if !taken.is_empty() {
            self.empty_polls = 0;
            return Ok(taken);
        }
        polled.map(|_| taken)
    }
}

impl PyPuller {
    pub fn new(opened: Box<dyn tickpath_bus::Puller>, place: String, clock: HostClock, wait: Wait) -> Self {
        let puller = BufferedPuller { opened, waiting: VecDeque::new(), clock, empty_polls: 0 };
        Self { handle: ObjectHandle::new("puller", place, puller), clock, spins: wait != Wait::Block }
    }

    /// Takes up to `limit` messages. If an object cannot be made, all of them stay for the next call.
    fn take_objects(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Py<PyPulled>>> {
        // Before messages are taken, since a signal raised later would lose them.
        py.check_signals()?;
        let taken = self.handle.with_detached(py, |puller| puller.take_messages(limit))?;
        self.objects(py, taken)
    }

    fn objects(&self, py: Python<'_>, found: Result<Vec<BufferedPulled>, ReceiveError>) -> PyResult<Vec<Py<PyPulled>>> {
        let taken = found.map_err(|e| receive_error(py, &e))?;
        let made: PyResult<Vec<_>> = taken.iter().map(|taken| taken.object(py)).collect();
        if made.is_err() {
            self.handle
                .with(py, |puller| taken.into_iter().rev().for_each(|taken| puller.waiting.push_front(taken)))?;
        }
        made
    }
}

#[pymethods]
impl PyPuller {
    fn __repr__(&self) -> String {
        self.handle.repr("Puller")
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Returns the next message, as soon as there is one. Acknowledge each message that is done with.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyPulled>> {
        loop {
            if let Some(pulled) = self.take_objects(py, 1)?.pop() {
                return Ok(pulled);
            }
            self.handle.with_detached(py, |puller| puller.opened.wait(MAX_TURN_NS))?;
        }
    }

    /// Returns up to `max` available messages; never waits for a message to arrive.
    #[pyo3(signature = (max = MaxEvents(64)), text_signature = "(self, max=64)")]
    fn pull<'py>(&self, py: Python<'py>, max: MaxEvents) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.take_objects(py, max.0)?)
    }

    /// Acknowledges all messages returned so far; none of them is delivered again.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with_detached(py, |puller| puller.opened.acknowledge())?.map_err(|e| receive_error(py, &e))
    }

    /// Returns one message to the queue, at once; the message is delivered again, marked as redelivered.
    fn give_back(&self, py: Python<'_>, pulled: &PyPulled) -> PyResult<()> {
        let tag = pulled.tag;
        self.handle.with_detached(py, |puller| puller.opened.give_back(tag))?.map_err(|e| receive_error(py, &e))
    }

    /// Waits until a message may be available, or `timeout` seconds are over, one by default. Pull afterwards in any
    /// case.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = timeout_of(timeout)?.unwrap_or(DEFAULT_WAIT);
        let (clock, begun, whole_ns) = (self.clock, self.clock.ticks(), timeout.as_nanos() as u64);
        let left_ns = || whole_ns.saturating_sub(clock.ns_between(begun, clock.ticks()).max(0) as u64);
        // A puller does not report arrivals; its wait returns early when a message may be there.
        let turn = |puller: &mut BufferedPuller| puller.sleep(left_ns().min(MAX_TURN_NS)).then_some(());
        self.handle.wait(py, || left_ns() == 0, turn).map(|_| ())
    }

    /// Returns an iterator for `async for`.
    fn __aiter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if this.get().spins {
            return Err(PyValueError::new_err("a task can await only a puller opened with wait='block'"));
        }
        events(this.as_any())
    }

    /// Returns a message for a task, if there is one and no lookout thread holds the queue.
    fn _attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyPulled>>> {
        let taken = self.handle.try_with(py, |puller| puller.take_messages(1))?.unwrap_or(Ok(Vec::new()));
        Ok(self.objects(py, taken)?.pop())
    }

    /// Makes a lookout thread wait for the event loop; returns the descriptor that becomes readable.
    fn _watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.handle.watch(py)
    }

    /// Ends the wait of the task that called `_watch`.
    fn _unwatch(&self) {
        self.handle.stop_waiting();
    }

    /// Number of times that the connection was lost and restored; None where the number is unknown.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |puller| puller.opened.reconnects())
    }

    /// Reason why nothing arrives now, as a sentence: the connection is lost, and is being restored. None while
    /// connected.
    #[getter]
    fn outage(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.with(py, |puller| puller.opened.outage())
    }

    /// Closes the puller; unacknowledged messages are delivered again. A second call does nothing.
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
