//! Pushing and pulling.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tickpath_bus::ReceiveError;
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use crate::error::{batch_error, publish_error, receive_error};
use crate::event::with_payload;
use crate::handle::{Handle, TURN_NS};
use crate::lookout::{self, Watched};
use crate::taken::Taken;
use crate::topic::{GivenKind, Most, events, in_runs, kind_of, payloads};

/// Looks of a task that find nothing, one after the other, before it pauses between them, and how long.
const FRUITLESS: u32 = 3;
const PAUSE_NS: u64 = 20_000_000;

/// Pushes to one queue. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct Pusher {
    handle: Handle<Box<dyn tickpath_bus::Pusher>>,
    clock: HostClock,
}

impl Pusher {
    /// Of a queue that is opened.
    pub fn new(opened: Box<dyn tickpath_bus::Pusher>, place: String, clock: HostClock) -> Self {
        Self { handle: Handle::new("pusher", place, opened), clock }
    }
}

#[pymethods]
impl Pusher {
    fn __repr__(&self) -> String {
        self.handle.shown("Pusher")
    }

    /// Pushes one message; returns when the queue has it.
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
            let pushed = self.handle.detached(py, |pusher| pusher.push(stamp, kind, payload))?;
            pushed.map_err(|e| publish_error(py, &e))
        })
    }

    /// Pushes messages of one stamp, as few pipelines as there are changes of the kind, confirmed together.
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
        let pushed = self
            .handle
            .detached(py, |pusher| in_runs(&runs, |kind, payloads| pusher.push_batch(stamp, kind, payloads)))?;
        pushed.map_err(|e| batch_error(py, &e))
    }

    /// Finds out what has become of what the last call left unknown, and sends it again if need be.
    fn resend(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.detached(py, |pusher| pusher.resend())?.map_err(|e| batch_error(py, &e))
    }

    /// How often its connection was lost and made again; None where nobody knows.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |pusher| pusher.reconnects())
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
    handle: Handle<Pulling>,
    clock: HostClock,
    /// It may spin while it waits.
    spins: bool,
}

struct Pulling {
    opened: Box<dyn tickpath_bus::Puller>,
    /// What was pulled, and could not be handed over.
    waiting: VecDeque<TakenPulled>,
    clock: HostClock,
    /// Looks since something was there.
    fruitless: u32,
}

impl Watched for Pulling {
    /// A puller does not say whether there is something, and looks for what a fallen one held only when it pulls: the loop
    /// looks behind each turn. Where that finds nothing again and again, for a queue is not there yet, it looks less often.
    fn turn(&mut self) -> bool {
        if self.waiting.is_empty() && self.sleep(lookout::TURN_NS) && self.fruitless > FRUITLESS {
            sleep_ns(PAUSE_NS);
        }
        true
    }
}

/// A message that is pulled, and is no object yet.
struct TakenPulled {
    message: Taken,
    redelivered: bool,
    deliveries: Option<u32>,
    tag: u64,
}

impl TakenPulled {
    fn of(pulled: &tickpath_bus::Pulled<'_>) -> Self {
        let tickpath_bus::Pulled { message, redelivered, deliveries, tag } = pulled;
        Self { message: Taken::of_message(message), redelivered: *redelivered, deliveries: *deliveries, tag: *tag }
    }

    fn object(&self, py: Python<'_>) -> PyResult<Py<Pulled>> {
        let Self { redelivered, deliveries, tag, .. } = *self;
        Py::new(py, Pulled { message: self.message.object(py)?, redelivered, deliveries, tag })
    }
}

impl Pulling {
    /// Waits for so long; true if that ended early, for there may be something.
    fn sleep(&mut self, most_ns: u64) -> bool {
        let slept = self.clock.ticks();
        self.opened.wait(most_ns);
        (self.clock.ns_between(slept, self.clock.ticks()) as u64) < most_ns
    }

    fn take(&mut self, limit: usize) -> Result<Vec<TakenPulled>, ReceiveError> {
        let waiting = limit.min(self.waiting.len());
        let mut taken: Vec<TakenPulled> = self.waiting.drain(..waiting).collect();
        if waiting > 0 && waiting >= limit {
            return Ok(taken);
        }
        self.fruitless += 1;
        match self.opened.pull(limit - waiting, &mut |pulled| taken.push(TakenPulled::of(&pulled))) {
            Err(e) if taken.is_empty() => Err(e),
            _ => {
                if !taken.is_empty() {
                    self.fruitless = 0;
                }
                Ok(taken)
            }
        }
    }
}

impl Puller {
    /// Of a queue that is opened.
    pub fn new(opened: Box<dyn tickpath_bus::Puller>, place: String, clock: HostClock, wait: Wait) -> Self {
        let pulling = Pulling { opened, waiting: VecDeque::new(), clock, fruitless: 0 };
        Self { handle: Handle::new("puller", place, pulling), clock, spins: wait != Wait::Block }
    }

    /// Takes up to so many messages. Those of which no object can be made wait for the next call with all the others.
    fn take(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Py<Pulled>>> {
        // Before anything is taken that a signal could cost.
        py.check_signals()?;
        let taken = self.handle.detached(py, |puller| puller.take(limit))?;
        self.hand_over(py, taken)
    }

    fn hand_over(&self, py: Python<'_>, taken: Result<Vec<TakenPulled>, ReceiveError>) -> PyResult<Vec<Py<Pulled>>> {
        let taken = taken.map_err(|e| receive_error(py, &e))?;
        let made: PyResult<Vec<_>> = taken.iter().map(|taken| taken.object(py)).collect();
        if made.is_err() {
            self.handle
                .with(py, |puller| taken.into_iter().rev().for_each(|taken| puller.waiting.push_front(taken)))?;
        }
        made
    }
}

#[pymethods]
impl Puller {
    fn __repr__(&self) -> String {
        self.handle.shown("Puller")
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next message, as soon as there is one. Acknowledge what is done with.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<Pulled>> {
        loop {
            if let Some(pulled) = self.take(py, 1)?.pop() {
                return Ok(pulled);
            }
            self.handle.detached(py, |puller| puller.opened.wait(TURN_NS))?;
        }
    }

    /// Up to `max` messages that are there; never waits for one to come.
    #[pyo3(signature = (max = Most(64)), text_signature = "(self, max=64)")]
    fn pull<'py>(&self, py: Python<'py>, max: Most) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.take(py, max.0)?)
    }

    /// Everything that was handed over so far is done with, and never comes again.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.detached(py, |puller| puller.opened.acknowledge())?.map_err(|e| receive_error(py, &e))
    }

    /// One message that was handed over goes back, at once, and comes again, marked.
    fn give_back(&self, py: Python<'_>, pulled: &Pulled) -> PyResult<()> {
        let tag = pulled.tag;
        self.handle.detached(py, |puller| puller.opened.give_back(tag))?.map_err(|e| receive_error(py, &e))
    }

    /// Waits until there may be something, or `timeout` seconds are over, one if none are given. Pull behind it in any case.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = Duration::try_from_secs_f64(timeout.unwrap_or(1.0)).map_err(|_| {
            PyValueError::new_err("that is no timeout; give seconds, 0 or more, or None for one second")
        })?;
        let (clock, begun, whole_ns) = (self.clock, self.clock.ticks(), timeout.as_nanos() as u64);
        let left_ns = || whole_ns.saturating_sub(clock.ns_between(begun, clock.ticks()).max(0) as u64);
        // A puller does not say whether there is something; it returns early if so.
        let turn = |puller: &mut Pulling| puller.sleep(left_ns().min(TURN_NS)).then_some(());
        self.handle.wait(py, || left_ns() == 0, turn).map(|_| ())
    }

    /// An iterator for `async for`.
    fn __aiter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if this.get().spins {
            return Err(PyValueError::new_err("a puller is awaited by wait='block'; open it so"));
        }
        events(this.as_any())
    }

    /// A message for a task, if there is one and no thread is looking for it.
    fn _attempt(&self, py: Python<'_>) -> PyResult<Option<Py<Pulled>>> {
        match self.handle.attempt(py, |puller| puller.take(1))? {
            Some(taken) => Ok(self.hand_over(py, taken)?.pop()),
            None => Ok(None),
        }
    }

    /// Has a thread wait for the event loop; gives the descriptor that becomes readable.
    fn _watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.handle.watch(py)
    }

    /// The task that watches does not wait any more.
    fn _unwatch(&self) {
        self.handle.stop_waiting();
    }

    /// How often its connection was lost and made again; None where nobody knows.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |pulling| pulling.opened.reconnects())
    }

    /// Why nothing comes now, in a sentence: its connection is lost, and is being made again. None while it stands.
    #[getter]
    fn outage(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.with(py, |pulling| pulling.opened.outage())
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
