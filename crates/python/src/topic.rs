//! Publishers and subscribers.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use smallvec::{SmallVec, smallvec};
use tickpath_bus::{PublisherState, ReceiveError};
use tickpath_clock::{Clock, HostClock};
use zerocopy::IntoBytes;

use crate::buffered_event::BufferedEvent;
use crate::error::{ErrorClass, batch_error, lend_error, publish_error, receive_error};
use crate::frame::{Loans, PyMessageFrame, is_raised};
use crate::handle::ObjectHandle;
use crate::payload::{GivenKind, kind_of, payloads, send_by_kind, with_payload};
use crate::record::kind_of_records;
use crate::subscription::{EventBatch, MAX_EVENTS, Subscription};

/// Polls of one spinning turn, which takes less than a millisecond.
const SPINS: u32 = 4_096;

/// Publisher of one topic. Use it in a `with` block, or close it.
#[pyclass(name = "Publisher", frozen, module = "tickpath")]
pub struct PyPublisher {
    handle: ObjectHandle<Box<dyn tickpath_bus::Publisher>>,
    clock: HostClock,
    /// Publishing takes less time than releasing the interpreter.
    is_quick: bool,
}

impl PyPublisher {
    pub fn new(opened: Box<dyn tickpath_bus::Publisher>, place: String, clock: HostClock, is_quick: bool) -> Self {
        Self { handle: ObjectHandle::new("publisher", place, opened), clock, is_quick }
    }
}

#[pymethods]
impl PyPublisher {
    fn __repr__(&self) -> String {
        self.handle.repr("Publisher")
    }

    /// Publishes one message: bytes with a kind of 16 to 255, a TopOfBook, a Trade, a BookLevel or a FeedStatus. `stamp`
    /// is in ticks of the host's clock, by default now.
    #[pyo3(signature = (data, kind = None, *, stamp = None))]
    fn publish(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        kind: Option<GivenKind>,
        stamp: Option<u64>,
    ) -> PyResult<()> {
        with_payload(data, |payload, own| {
            let kind = kind_of(kind, own)?;
            let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
            let published = if self.is_quick {
                self.handle.with(py, |publisher| publisher.publish(stamp, kind, payload))
            } else {
                self.handle.with_detached(py, |publisher| publisher.publish(stamp, kind, payload))
            };
            published?.map_err(|e| publish_error(py, &e))
        })
    }

    /// Publishes messages with one stamp, as cheaply as the transport can: events, also mixed, bytes of the given kind,
    /// or a numpy array of `tickpath.TOP_OF_BOOK`, `TRADE`, `BOOK_LEVEL` or `FEED_STATUS`.
    #[pyo3(signature = (batch, kind = None, *, stamp = None))]
    fn publish_batch(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        kind: Option<GivenKind>,
        stamp: Option<u64>,
    ) -> PyResult<()> {
        let runs = payloads(batch, kind)?;
        let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
        let published = self.handle.with_detached(py, |publisher| {
            send_by_kind(&runs, |kind, payloads| publisher.publish_batch(stamp, kind, payloads))
        })?;
        published.map_err(|e| batch_error(py, &e))
    }

    /// Determines the outcome of messages that the last call left unknown, and sends them again if necessary.
    fn resend(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with_detached(py, |publisher| publisher.resend())?.map_err(|e| batch_error(py, &e))
    }

    /// Number of times that the connection was lost and restored; None where the number is unknown.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |publisher| publisher.reconnects())
    }

    /// Closes the publisher; a second call does nothing.
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

/// Subscriber of one topic: iterate over it, or poll it. Use it in a `with` block, or close it.
#[pyclass(name = "Subscriber", frozen, module = "tickpath")]
pub struct PySubscriber {
    handle: ObjectHandle<Subscription>,
    /// Messages lent by the subscriber.
    loans: Arc<Loans>,
    clock: HostClock,
    /// A poll takes less time than releasing the interpreter.
    is_quick: bool,
}

/// Events as objects: usually a single one, stored without an allocation.
type Objects = SmallVec<[Py<PyAny>; 1]>;

impl PySubscriber {
    /// Wraps an open subscription; its loans are part of the bus's loans.
    pub fn new(subscription: Subscription, place: String, bus: &Arc<Loans>, clock: HostClock, is_quick: bool) -> Self {
        let (handle, loans) = (ObjectHandle::new("subscriber", place, subscription), Loans::within(bus));
        Self { handle, loans, clock, is_quick }
    }

    /// Takes the next event, if there is one.
    pub fn next_event(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.take_objects(py, 1)?.pop())
    }

    /// Spins for the next event without the interpreter, until `has_news`, checked at each poll, or `is_over`, checked
    /// once a turn.
    pub fn spin(
        &self,
        py: Python<'_>,
        is_over: impl Fn() -> bool,
        has_news: impl Fn() -> bool + Sync,
    ) -> PyResult<Option<Py<PyAny>>> {
        let mut taken = EventBatch::new();
        let turn = |subscription: &mut Subscription| {
            for _ in 0..SPINS {
                match subscription.take(1, &mut taken) {
                    Ok(()) if taken.is_empty() && !has_news() => {}
                    found => return Some(found),
                }
            }
            None
        };
        let found = self.handle.wait(py, is_over, turn)?.unwrap_or(Ok(()));
        Ok(self.objects(py, found, taken)?.pop())
    }

    /// Reports whether an event or an error is there, without the interpreter; false while another thread holds the
    /// subscription.
    pub fn has_event(&self) -> bool {
        self.handle.peek(Subscription::has_event)
    }

    /// Reports whether the topic has no publisher.
    pub fn has_no_publisher(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.with(py, |subscription| subscription.subscriber.publisher_state() == PublisherState::Absent)
    }

    /// Waits until there is an event or the timeout expires; without a timeout there is no limit.
    pub fn wait_within(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
        let waited = self.handle.wait_within(py, self.clock, timeout, Subscription::wait_event)?;
        waited.map_err(|e| receive_error(py, &e))
    }

    /// Uses the subscription, and releases the interpreter if the transport may take time.
    #[inline]
    fn on_subscription<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut Subscription) -> R + Send) -> PyResult<R> {
        if self.is_quick { self.handle.with(py, act) } else { self.handle.with_detached(py, act) }
    }

    /// Takes up to `limit` events out, as objects. If an object cannot be made, all of them stay for the next call.
    #[inline]
    fn take_objects(&self, py: Python<'_>, limit: usize) -> PyResult<Objects> {
        // Before events are taken, since a signal raised later would lose them.
        py.check_signals()?;
        let mut taken = EventBatch::new();
        let found = self.on_subscription(py, |subscription| subscription.take(limit, &mut taken))?;
        self.objects(py, found, taken)
    }

    /// Returns a descriptor owned by the caller, which becomes readable when the lookout thread has found an event.
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.handle.descriptor()
    }

    /// Takes up to `limit` events out without waiting; none while a lookout thread holds the subscription.
    pub fn try_take(&self, py: Python<'_>, limit: usize) -> PyResult<Objects> {
        py.check_signals()?;
        let mut taken = EventBatch::new();
        match self.handle.try_with(py, |subscription| subscription.take(limit, &mut taken))? {
            Some(found) => self.objects(py, found, taken),
            None => Ok(Objects::new()),
        }
    }

    #[inline(always)]
    fn objects(&self, py: Python<'_>, found: Result<(), ReceiveError>, taken: EventBatch) -> PyResult<Objects> {
        found.map_err(|e| receive_error(py, &e))?;
        if taken.is_empty() {
            return Ok(Objects::new());
        }
        let made: PyResult<Objects> = taken.iter().map(|taken| taken.object(py)).collect();
        if made.is_err() {
            self.handle.with(py, |subscription| subscription.put_back(taken))?;
        }
        made
    }
}

#[pymethods]
impl PySubscriber {
    pub fn __repr__(&self) -> String {
        self.handle.repr("Subscriber")
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Returns the next event, as soon as there is one.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut made = self.take_objects(py, 1)?;
        loop {
            if let Some(event) = made.pop() {
                return Ok(event);
            }
            let mut taken = EventBatch::new();
            let waited = self.handle.wait(
                py,
                || false,
                |subscription| match subscription.wait_event(u64::MAX) {
                    Ok(false) => None,
                    Ok(true) => Some(subscription.take(1, &mut taken)),
                    Err(e) => Some(Err(e)),
                },
            )?;
            made = self.objects(py, waited.unwrap_or(Ok(())), taken)?;
        }
    }

    /// Returns up to `max` available events; never waits.
    #[pyo3(signature = (max = MaxEvents(64)), text_signature = "(self, max=64)")]
    fn poll<'py>(&self, py: Python<'py>, max: MaxEvents) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.take_objects(py, max.0.min(MAX_EVENTS))?)
    }

    /// Waits until an event is available, or `timeout` seconds are over; returns True if an event is available.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.wait_within(py, timeout_of(timeout)?)
    }

    /// Returns the next message in place, as a Frame, or the Gap before it; None if no event is available. Never waits.
    /// Only topics whose policy is in `capabilities()['lends']` lend; others raise NotLent, and must be polled. Small
    /// messages are cheaper to poll.
    fn lend(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        py.check_signals()?;
        let lent = self.on_subscription(py, Subscription::lend)?.map_err(|e| lend_error(py, &e))?;
        let Some(taken) = lent else { return Ok(None) };
        let made = match &taken {
            BufferedEvent::Lent(lent) => Py::new(py, PyMessageFrame::new(lent.clone(), &self.loans)).map(Py::into_any),
            other => other.object(py),
        };
        if made.is_err() {
            self.handle.with(py, |subscription| subscription.put_back(smallvec![taken]))?;
        }
        made.map(Some)
    }

    /// Copies available ticks into an array of `tickpath.TOP_OF_BOOK`, trades into one of `TRADE`, levels of books into
    /// one of `BOOK_LEVEL`, or events of a feed into one of `FEED_STATUS`, as many as fit, at most 65,536; returns their
    /// number. Copying stops before any other event, which `poll(1)` returns. The stamp of each goes into `stamps`, a
    /// uint64 array of the same length, if given.
    #[pyo3(signature = (array, stamps = None))]
    fn poll_into(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        stamps: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let array = ArrayBuffer::of(array)?;
        let Some(kind) = kind_of_records(&array.view)? else {
            return Err(PyTypeError::new_err(format!("the array has other records; {ARRAY_REMEDY}")));
        };
        let stamps = stamps.map(ArrayBuffer::of).transpose()?;
        if stamps.as_ref().is_some_and(|stamps| stamps.item != size_of::<u64>() || stamps.items() < array.items()) {
            let sentence = "the stamps do not fit; give numpy.zeros(len(array), numpy.uint64)";
            return Err(PyTypeError::new_err(sentence));
        }
        py.check_signals()?;
        let items = array.items();
        let taken = self.on_subscription(py, |subscription| subscription.take_records(kind, items))?;
        let records = taken.map_err(|e| receive_error(py, &e))?;
        array.fill(&records.bytes)?;
        if let Some(stamps) = stamps {
            stamps.fill(records.stamps.as_bytes())?;
        }
        let filled = records.stamps.len();
        // A subscription closed meanwhile needs no buffers.
        let _ = self.handle.with(py, |subscription| subscription.records = records);
        Ok(filled)
    }

    /// Returns an iterator for `async for`.
    fn __aiter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        events(this.as_any())
    }

    /// Returns an event for a task, if there is one and no lookout thread holds the subscription.
    fn _attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.try_take(py, 1)?.pop())
    }

    /// Reports whether an event is there, for a caller that polls several subscribers; False while a lookout thread
    /// holds this one.
    #[pyo3(name = "_is_ready")]
    pub fn is_ready(&self, py: Python<'_>) -> PyResult<bool> {
        let looked = self.handle.try_with(py, |subscription| subscription.wait_event(0))?;
        looked.unwrap_or(Ok(false)).map_err(|e| receive_error(py, &e))
    }

    /// Makes a lookout thread wait for the event loop; returns the descriptor that becomes readable.
    #[pyo3(name = "_watch")]
    pub fn watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.handle.watch(py)
    }

    /// Ends the wait of the task that called `_watch`.
    #[pyo3(name = "_unwatch")]
    pub fn unwatch(&self) {
        self.handle.stop_waiting();
    }

    /// Returns the present position as text: `bus.subscribe(topic, token)` resumes behind all events returned so far.
    /// None where there is no history, or nothing is known of the topic yet.
    pub fn token(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(token) = self.handle.with(py, |subscription| subscription.resume_position())? else {
            let sentence = "the position before a buffered event is unknown; take the event by poll(), and ask again";
            return Err(ErrorClass::ReceiveError.raise(py, sentence));
        };
        Ok(token.map(|token| token.to_string()))
    }

    /// Process id of the publisher: 0 without a publisher, -1 if it is in another container, None where the transport
    /// cannot know.
    #[getter]
    fn publisher(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(match self.handle.with(py, |subscription| subscription.subscriber.publisher_state())? {
            PublisherState::Alive(0) => Some(-1),
            PublisherState::Alive(pid) => Some(i64::from(pid)),
            PublisherState::Absent => Some(0),
            PublisherState::Unknown => None,
        })
    }

    /// Number of times that the connection was lost and restored; None where the number is unknown.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |subscription| subscription.subscriber.reconnects())
    }

    /// Number of duplicates, by sequence numbers of their publishers, that were not returned; None where they are not
    /// counted.
    #[getter]
    fn duplicates(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |subscription| subscription.subscriber.duplicates())
    }

    /// Number of messages that arrived out of order, and were not returned because they had been reported as missed;
    /// None where they are not counted.
    #[getter]
    fn late(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |subscription| subscription.subscriber.out_of_order())
    }

    /// Reason why nothing arrives now, as a sentence: the connection is lost, and is being restored. None while
    /// connected.
    #[getter]
    fn outage(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.with(py, |subscription| subscription.subscriber.outage())
    }

    /// Closes the subscriber; a second call does nothing. Raises BufferError while a message is lent: close the frames
    /// first.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.handle.is_open() {
            self.loans.refuse_while_lent("subscriber")?;
        }
        self.handle.close(py);
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*raised))]
    pub fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        if !is_raised(raised) {
            return self.close(py);
        }
        // The exception propagates; lent messages stay readable.
        self.handle.close(py);
        Ok(())
    }
}

/// Parses a timeout given by Python; None means no limit.
pub fn timeout_of(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let read = |seconds| {
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!("a timeout of {seconds} s is invalid; give seconds, 0 or more, or None"))
        })
    };
    seconds.map(read).transpose()
}

/// Returns the iterator of `async for`.
pub fn events<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    source.py().import("tickpath.aio")?.getattr("Events")?.call1((source,))
}

/// Remedy in errors about arrays.
const ARRAY_REMEDY: &str = "give numpy.zeros(1024, tickpath.TOP_OF_BOOK), or TRADE, BOOK_LEVEL or FEED_STATUS";

struct ArrayBuffer<'py> {
    /// The array with its own items.
    view: Bound<'py, PyAny>,
    bytes: Bound<'py, PyAny>,
    /// The bytes of one item, and of all items.
    item: usize,
    whole: usize,
}

impl<'py> ArrayBuffer<'py> {
    fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let view = py.import("builtins")?.getattr("memoryview")?.call1((array,))?;
        if view.getattr("readonly")?.extract()? {
            return Err(PyTypeError::new_err(format!("the array cannot be written; {ARRAY_REMEDY}")));
        }
        if !view.getattr("c_contiguous")?.extract::<bool>()? {
            return Err(PyTypeError::new_err(format!("the array is not contiguous; {ARRAY_REMEDY}")));
        }
        let (item, whole) = (view.getattr("itemsize")?.extract()?, view.getattr("nbytes")?.extract()?);
        // A view without items cannot be cast.
        let bytes = if whole == 0 { view.clone() } else { view.call_method1("cast", ("B",))? };
        Ok(Self { view, bytes, item, whole })
    }

    fn items(&self) -> usize {
        self.whole.checked_div(self.item).unwrap_or(0)
    }

    /// Fills the beginning of the array.
    fn fill(&self, bytes: &[u8]) -> PyResult<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let py = self.bytes.py();
        let beginning = self.bytes.get_item(PySlice::new(py, 0, bytes.len() as isize, 1))?;
        PyBuffer::get(&beginning)?.copy_from_slice(py, bytes)
    }
}

/// Max events of one call, as given by Python.
pub struct MaxEvents(pub usize);

impl<'a, 'py> FromPyObject<'a, 'py> for MaxEvents {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self).map_err(|e| match e.is_instance_of::<PyOverflowError>(given.py()) {
            true => PyValueError::new_err(format!("max={} is invalid; give 1 or more", &*given)),
            false => PyTypeError::new_err("max is a whole number; give 1 or more"),
        })
    }
}
