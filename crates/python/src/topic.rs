//! Publishing and receiving.

use std::collections::VecDeque;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice};
use tickpath_bus::{Event, PublisherState, ReceiveError, ResumeToken};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Kind, TopOfBook, Trade};

use crate::error::{Error, batch_error, publish_error, receive_error};
use crate::event::{Taken, with_payload};
use crate::handle::Handle;

/// The lowest kind of a message.
const FIRST_KIND: u8 = 16;

/// How long one turn of a wait may take: so late is a signal seen that comes between two looks, or another thread's `close`.
const TURN_NS: u64 = 100_000_000;

/// The same where it spins.
const SPIN_NS: i64 = 1_000_000;

/// Spins between two looks at the clock.
const SPINS: u32 = 256;

/// Bytes of a record.
const TOP_OF_BOOK_BYTES: usize = size_of::<TopOfBook>();
const TRADE_BYTES: usize = size_of::<Trade>();

/// The most events of one call.
const MOST: usize = 1 << 16;

/// Publishes one topic. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct Publisher {
    handle: Handle<Box<dyn tickpath_bus::Publisher>>,
    clock: HostClock,
    /// Publishing takes less time than to give the interpreter away.
    is_quick: bool,
}

impl Publisher {
    /// Of a topic that is opened.
    pub fn new(opened: Box<dyn tickpath_bus::Publisher>, clock: HostClock, is_quick: bool) -> Self {
        Self { handle: Handle::new("publisher", opened), clock, is_quick }
    }
}

#[pymethods]
impl Publisher {
    /// Publishes one message: bytes of a kind of 16 to 255, or a TopOfBook or Trade. Its stamp is now, in ticks of the
    /// host's clock, unless it is given.
    #[pyo3(signature = (data, kind = None, *, stamp = None))]
    fn publish(&self, py: Python<'_>, data: &Bound<'_, PyAny>, kind: Option<u8>, stamp: Option<u64>) -> PyResult<()> {
        with_payload(data, |payload, own| {
            let kind = kind_of(kind, own)?;
            let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
            let published = if self.is_quick {
                self.handle.with(py, |publisher| publisher.publish(stamp, kind, payload))
            } else {
                self.handle.detached(py, |publisher| publisher.publish(stamp, kind, payload))
            };
            published?.map_err(|e| publish_error(py, &e))
        })
    }

    /// Publishes messages of one kind and one stamp, as cheaply as the transport can.
    #[pyo3(signature = (batch, kind = None, *, stamp = None))]
    fn publish_batch(
        &self,
        py: Python<'_>,
        batch: Vec<Bound<'_, PyAny>>,
        kind: Option<u8>,
        stamp: Option<u64>,
    ) -> PyResult<()> {
        let (kind, copies) = payloads(&batch, kind)?;
        let payloads: Vec<&[u8]> = copies.iter().map(Vec::as_slice).collect();
        let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
        let published = self.handle.detached(py, |publisher| publisher.publish_batch(stamp, kind, &payloads))?;
        published.map_err(|e| batch_error(py, &e))
    }

    /// Finds out what has become of what the last call left unknown, and sends it again if need be.
    fn resend(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.detached(py, |publisher| publisher.resend())?.map_err(|e| batch_error(py, &e))
    }

    /// How often its connection was lost and made again; None where nobody knows.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |publisher| publisher.reconnects())
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

/// Receives one topic: iterate over it, or poll it. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct Subscriber {
    handle: Handle<Subscription>,
    clock: HostClock,
    /// Looking takes less time than to give the interpreter away.
    is_quick: bool,
}

struct Subscription {
    subscriber: Box<dyn tickpath_bus::Subscriber>,
    /// What was taken out, and is not handed over.
    waiting: VecDeque<Taken>,
    /// Where it stood before that; none if nobody knows.
    before: Option<ResumeToken>,
    /// It spins rather than sleeps.
    spins: bool,
}

impl Subscription {
    /// Takes out up to so many events, those first that wait. What went wrong behind some of them is told when it comes
    /// again, or by the next call.
    fn take(&mut self, limit: usize) -> Result<Vec<Taken>, ReceiveError> {
        if !self.waiting.is_empty() {
            let count = limit.min(self.waiting.len());
            return Ok(self.waiting.drain(..count).collect());
        }
        let mut taken = Vec::new();
        match self.subscriber.poll(limit, &mut |event| taken.push(Taken::of(&event))) {
            Err(e) if taken.is_empty() => Err(e),
            _ => Ok(taken),
        }
    }

    /// The bytes of up to so many messages of this kind and size, up to the first event that is none.
    fn take_records(&mut self, kind: u8, record: usize, room: usize) -> Result<Vec<u8>, ReceiveError> {
        let mut records = Vec::new();
        while records.len() < room * record
            && let Some(waits) = self.waiting.pop_front_if(|taken| taken.kind() == Some(kind))
        {
            waits.append(&mut records);
        }
        if !self.waiting.is_empty() || !records.is_empty() {
            return Ok(records);
        }
        let Self { subscriber, waiting, before, .. } = self;
        let polled = subscriber.poll(room.min(MOST), &mut |event| match event {
            Event::Message(m) if waiting.is_empty() && m.kind == kind && m.payload.len() == record => {
                records.extend_from_slice(m.payload);
            }
            _ => {
                *before = None;
                waiting.push_back(Taken::of(&event));
            }
        });
        match polled {
            Err(e) if records.is_empty() && waiting.is_empty() => Err(e),
            _ => Ok(records),
        }
    }

    /// Takes back what was not handed over; where it stood before that nobody knows.
    fn take_back(&mut self, taken: Vec<Taken>) {
        self.before = None;
        taken.into_iter().rev().for_each(|taken| self.waiting.push_front(taken));
    }

    /// Waits for an event until the turn is over; true when one waits.
    fn turn(&mut self, clock: HostClock, left_ns: u64) -> Result<bool, ReceiveError> {
        if self.waiting.is_empty() {
            self.before = self.subscriber.token();
        }
        let begun = clock.ticks();
        loop {
            for _ in 0..SPINS {
                if !self.waiting.is_empty() {
                    return Ok(true);
                }
                let Self { subscriber, waiting, .. } = self;
                if subscriber.poll(1, &mut |event| waiting.push_back(Taken::of(&event)))? == 0 {
                    subscriber.wait(left_ns.min(TURN_NS));
                    if !self.spins {
                        return Ok(false);
                    }
                }
            }
            if clock.ns_between(begun, clock.ticks()) >= SPIN_NS.min(i64::try_from(left_ns).unwrap_or(i64::MAX)) {
                return Ok(!self.waiting.is_empty());
            }
        }
    }
}

impl Subscriber {
    /// Of a subscription that is opened.
    pub fn new(subscriber: Box<dyn tickpath_bus::Subscriber>, clock: HostClock, is_quick: bool, spins: bool) -> Self {
        let subscription = Subscription { subscriber, waiting: VecDeque::new(), before: None, spins };
        Self { handle: Handle::new("subscriber", subscription), clock, is_quick }
    }

    /// Waits until an event waits to be handed over, or the time is over, which has no end if there is none.
    fn wait_within(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
        let (clock, begun) = (self.clock, self.clock.ticks());
        let left_ns = || match timeout {
            None => u64::MAX,
            Some(timeout) => {
                let passed = clock.ns_between(begun, clock.ticks()).max(0) as u64;
                u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).saturating_sub(passed)
            }
        };
        let turn = |subscription: &mut Subscription| match subscription.turn(clock, left_ns()) {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(e) => Some(Err(e)),
        };
        match self.handle.wait(py, || left_ns() == 0, turn)? {
            None => Ok(false),
            Some(waited) => waited.map(|()| true).map_err(|e| receive_error(py, &e)),
        }
    }

    /// Uses the subscription, without the interpreter where that may take time.
    #[inline]
    fn using<R: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut Subscription) -> R + Send) -> PyResult<R> {
        if self.is_quick { self.handle.with(py, act) } else { self.handle.detached(py, act) }
    }

    /// Takes up to so many events out, as objects. Those that cannot be made wait for the next call with all the others.
    fn take(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Py<PyAny>>> {
        // Before anything is taken that a signal could cost.
        py.check_signals()?;
        let taken = self.using(py, |subscription| subscription.take(limit))?.map_err(|e| receive_error(py, &e))?;
        let made: PyResult<Vec<_>> = taken.iter().map(|taken| taken.object(py)).collect();
        if made.is_err() {
            self.handle.with(py, |subscription| subscription.take_back(taken))?;
        }
        made
    }
}

#[pymethods]
impl Subscriber {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next event, as soon as there is one.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            if let Some(event) = self.take(py, 1)?.pop() {
                return Ok(event);
            }
            self.wait_within(py, None)?;
        }
    }

    /// Up to `max` events that are there; never waits.
    #[pyo3(signature = (max = 64))]
    fn poll<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.take(py, max.min(MOST))?)
    }

    /// Waits until there is something, or `timeout` seconds are over; True if there is.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = match timeout {
            None => None,
            Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
                PyValueError::new_err(format!("a timeout of {seconds} s is none; give seconds, 0 or more, or None"))
            })?),
        };
        self.wait_within(py, timeout)
    }

    /// Copies ticks into an array of `tickpath.TOP_OF_BOOK`, or trades into one of `tickpath.TRADE`, as many as fit and are
    /// there, at most 65,536; gives how many. It stops in front of anything else, which `poll(1)` hands over.
    fn poll_into(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<usize> {
        let view = py.import("builtins")?.getattr("memoryview")?.call1((array,))?;
        let (record, whole): (usize, usize) =
            (view.getattr("itemsize")?.extract()?, view.getattr("nbytes")?.extract()?);
        if view.getattr("readonly")?.extract()? {
            return Err(PyTypeError::new_err("the array cannot be written; give one that numpy.zeros has made"));
        }
        let is_whole: bool = view.getattr("c_contiguous")?.extract()?;
        let kind = match record {
            TOP_OF_BOOK_BYTES => Kind::TopOfBook.code(),
            TRADE_BYTES => Kind::Trade.code(),
            _ => 0,
        };
        if kind == 0 || !is_whole {
            let sentence =
                "the array has other records, or holes; give numpy.zeros(1024, tickpath.TOP_OF_BOOK) or TRADE";
            return Err(PyTypeError::new_err(sentence));
        }
        let bytes = view.call_method1("cast", ("B",))?;
        py.check_signals()?;
        let taken = self.using(py, |subscription| subscription.take_records(kind, record, whole / record))?;
        let records = taken.map_err(|e| receive_error(py, &e))?;
        bytes.set_item(PySlice::new(py, 0, records.len() as isize, 1), PyBytes::new(py, &records))?;
        Ok(records.len() / record)
    }

    /// Where it stands, as text: `bus.subscribe(topic, token)` goes on behind all that was handed over. None where there is
    /// no history, or nothing is known of the topic yet.
    fn token(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let known = self.handle.with(py, |subscription| match subscription.waiting.is_empty() {
            true => Ok(subscription.subscriber.token()),
            false => subscription.before.map(Some).ok_or(()),
        })?;
        let Ok(token) = known else {
            let sentence = "an event waits behind which nobody knows the place: take it by poll(), then ask again";
            return Err(Error::Receive.raise(py, sentence));
        };
        Ok(token.map(|token| token.to_string()))
    }

    /// The process that publishes, 0 if there is none, None where the transport cannot know.
    #[getter]
    fn publisher(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(match self.handle.with(py, |subscription| subscription.subscriber.publisher())? {
            PublisherState::Alive(pid) => Some(pid),
            PublisherState::Absent => Some(0),
            PublisherState::Unknown => None,
        })
    }

    /// How often its connection was lost and made again; None where nobody knows.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |subscription| subscription.subscriber.reconnects())
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

/// The kind that a message gets.
pub fn kind_of(given: Option<u8>, own: Option<u8>) -> PyResult<u8> {
    match given.or(own) {
        Some(kind) if kind >= FIRST_KIND => Ok(kind),
        Some(kind) => Err(PyValueError::new_err(format!("the kind {kind} is not ours to give; use 16 to 255"))),
        None => Err(PyTypeError::new_err("bytes have no kind; give kind=16 to 255, which tells them apart")),
    }
}

/// Copies of messages, and their kind.
pub fn payloads(batch: &[Bound<'_, PyAny>], kind: Option<u8>) -> PyResult<(u8, Vec<Vec<u8>>)> {
    let (mut own, mut copies) = (None, Vec::with_capacity(batch.len()));
    for data in batch {
        let (bytes, its) = with_payload(data, |payload, its| Ok((payload.to_vec(), its)))?;
        if kind.is_none() && !copies.is_empty() && its != own {
            return Err(PyTypeError::new_err("a batch has one kind; publish ticks, trades and bytes apart"));
        }
        own = its;
        copies.push(bytes);
    }
    let kind = if copies.is_empty() { kind.unwrap_or(FIRST_KIND) } else { kind_of(kind, own)? };
    Ok((kind, copies))
}
