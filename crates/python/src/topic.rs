//! Publishing and receiving.

use std::collections::VecDeque;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice};
use tickpath_bus::{Event, Gap, PublisherState};
use tickpath_clock::{Clock, HostClock};

use crate::error::{batch_error, publish_error, receive_error};
use crate::event::{object, with_payload};
use crate::handle::Handle;

/// The lowest kind of a message.
const FIRST_KIND: u8 = 16;

/// How long one turn of a wait may take: so late is a signal seen that comes between two looks, or another thread's `close`.
const TURN_NS: u64 = 100_000_000;

/// The same where it spins.
const SPIN_NS: i64 = 1_000_000;

/// Spins between two looks at the clock.
const SPINS: u32 = 256;

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
        self.handle.with(py, |publisher| {
            with_payload(data, |payload, own| {
                let kind = kind_of(kind, own)?;
                let stamp = stamp.unwrap_or_else(|| self.clock.ticks());
                let published = if self.is_quick {
                    publisher.publish(stamp, kind, payload)
                } else {
                    py.detach(|| publisher.publish(stamp, kind, payload))
                };
                published.map_err(|e| publish_error(py, &e))
            })
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
        self.handle.with(py, |publisher| {
            py.detach(|| publisher.publish_batch(stamp, kind, &payloads)).map_err(|e| batch_error(py, &e))
        })
    }

    /// Finds out what has become of what the last call left unknown, and sends it again if need be.
    fn resend(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, |publisher| py.detach(|| publisher.resend()).map_err(|e| batch_error(py, &e)))
    }

    /// How often its connection was lost and made again; None where nobody knows.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |publisher| Ok(publisher.reconnects()))
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
}

struct Subscription {
    subscriber: Box<dyn tickpath_bus::Subscriber>,
    /// What was taken out while the interpreter was away, or was no record of an array.
    waiting: VecDeque<Taken>,
    /// It spins rather than sleeps.
    spins: bool,
}

/// An event that outlives the call that handed it over.
enum Taken {
    Message { sequence: Option<u64>, stamp: u64, kind: u8, payload: Vec<u8> },
    Foreign { sequence: Option<u64>, payload: Vec<u8> },
    Gap(Gap),
}

impl Taken {
    fn of(event: &Event<'_>) -> Self {
        match event {
            Event::Message(m) => {
                Self::Message { sequence: m.sequence, stamp: m.stamp, kind: m.kind, payload: m.payload.to_vec() }
            }
            Event::Foreign(f) => Self::Foreign { sequence: f.sequence, payload: f.bytes.to_vec() },
            Event::Gap(gap) => Self::Gap(*gap),
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            Self::Message { sequence, stamp, kind, payload } => Event::Message(tickpath_bus::Message {
                sequence: *sequence,
                stamp: *stamp,
                kind: *kind,
                payload,
                origin: None,
            }),
            Self::Foreign { sequence, payload } => {
                Event::Foreign(tickpath_bus::Foreign { sequence: *sequence, bytes: payload })
            }
            Self::Gap(gap) => Event::Gap(*gap),
        }
    }
}

impl Subscription {
    /// Hands over up to so many events, those first that wait.
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(&Event<'_>)) -> Result<usize, tickpath_bus::ReceiveError> {
        let mut handed = 0;
        while handed < limit
            && let Some(taken) = self.waiting.pop_front()
        {
            handler(&taken.event());
            handed += 1;
        }
        if handed == limit {
            return Ok(handed);
        }
        Ok(handed + self.subscriber.poll(limit - handed, &mut |event| handler(&event))?)
    }

    /// Waits for an event until the turn is over; true when one waits.
    fn turn(&mut self, clock: HostClock, left_ns: u64) -> Result<bool, tickpath_bus::ReceiveError> {
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
            if clock.ns_between(begun, clock.ticks()) >= SPIN_NS.min(left_ns as i64) {
                return Ok(false);
            }
        }
    }
}

impl Subscriber {
    /// Of a subscription that is opened.
    pub fn new(subscriber: Box<dyn tickpath_bus::Subscriber>, clock: HostClock, spins: bool) -> Self {
        let subscription = Subscription { subscriber, waiting: VecDeque::new(), spins };
        Self { handle: Handle::new("subscriber", subscription), clock }
    }

    /// Waits until an event waits to be handed over, or the time is over, which has no end if there is none.
    fn wait_within(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
        let (clock, begun) = (self.clock, self.clock.ticks());
        let left_ns = || match timeout {
            None => u64::MAX,
            Some(timeout) => {
                let passed = clock.ns_between(begun, clock.ticks()).max(0) as u64;
                (timeout.as_nanos() as u64).saturating_sub(passed)
            }
        };
        let turn = |subscription: &mut Subscription| match subscription.turn(clock, left_ns()) {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(e) => Some(Err(e)),
        };
        match self.handle.wait(py, || left_ns() == 0, turn)? {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(e)) => Err(receive_error(py, &e)),
        }
    }

    fn take_one(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.handle.with(py, |subscription| {
            let mut made = None;
            let polled = subscription.poll(1, &mut |event| made = Some(object(py, event)));
            polled.map_err(|e| receive_error(py, &e))?;
            made.transpose()
        })
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
            if let Some(event) = self.take_one(py)? {
                return Ok(event);
            }
            self.wait_within(py, None)?;
        }
    }

    /// Up to `max` events that are there; never waits.
    #[pyo3(signature = (max = 64))]
    fn poll<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Bound<'py, PyList>> {
        self.handle.with(py, |subscription| {
            let (mut events, mut failed) = (Vec::new(), None);
            let polled = subscription.poll(max.min(MOST), &mut |event| match object(py, event) {
                Ok(made) => events.push(made),
                Err(e) => failed = Some(e),
            });
            // What came before an error is not lost: the error comes again, or was news.
            if let Err(e) = polled
                && events.is_empty()
            {
                return Err(receive_error(py, &e));
            }
            failed.map_or_else(|| PyList::new(py, events), Err)
        })
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

    /// Copies messages of one kind into an array of the schema's records (`tickpath.TOP_OF_BOOK`), as many as fit and are
    /// there; gives how many. It stops in front of what is no such record: `poll` or the iteration hands that over.
    #[pyo3(signature = (array, kind = 16))]
    fn poll_into(&self, py: Python<'_>, array: &Bound<'_, PyAny>, kind: u8) -> PyResult<usize> {
        let view = py.import("builtins")?.getattr("memoryview")?.call1((array,))?;
        let (record, whole): (usize, usize) =
            (view.getattr("itemsize")?.extract()?, view.getattr("nbytes")?.extract()?);
        if record == 0 || view.getattr("readonly")?.extract()? {
            return Err(PyTypeError::new_err("the array cannot be written; give one that numpy.zeros has made"));
        }
        let bytes = view.call_method1("cast", ("B",))?;
        self.handle.with(py, |subscription| {
            let mut records = Vec::with_capacity(whole);
            let Subscription { subscriber, waiting, .. } = subscription;
            let is_record =
                |event: &Event<'_>| matches!(event, Event::Message(m) if m.kind == kind && m.payload.len() == record);
            while records.len() + record <= whole
                && let Some(Taken::Message { payload, .. }) = waiting.pop_front_if(|taken| is_record(&taken.event()))
            {
                records.extend_from_slice(&payload);
            }
            let room = if waiting.is_empty() { (whole - records.len()) / record } else { 0 };
            let polled = subscriber.poll(room.min(MOST), &mut |event| match event {
                Event::Message(m) if waiting.is_empty() && is_record(&event) => records.extend_from_slice(m.payload),
                _ => waiting.push_back(Taken::of(&event)),
            });
            if let Err(e) = polled
                && records.is_empty()
            {
                return Err(receive_error(py, &e));
            }
            let place = PySlice::new(py, 0, records.len() as isize, 1);
            bytes.set_item(place, PyBytes::new(py, &records))?;
            Ok(records.len() / record)
        })
    }

    /// Where it stands, as text: `bus.subscribe(topic, start=token)` goes on behind it. None where there is no history.
    fn token(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.with(py, |subscription| {
            // What was taken out and not handed over lies behind the place that is known.
            let token = if subscription.waiting.is_empty() { subscription.subscriber.token() } else { None };
            Ok(token.map(|token| token.to_string()))
        })
    }

    /// The process that publishes, 0 if there is none, None where the transport cannot know.
    #[getter]
    fn publisher(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.handle.with(py, |subscription| {
            Ok(match subscription.subscriber.publisher() {
                PublisherState::Alive(pid) => Some(pid),
                PublisherState::Absent => Some(0),
                PublisherState::Unknown => None,
            })
        })
    }

    /// How often its connection was lost and made again; None where nobody knows.
    #[getter]
    fn reconnects(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.handle.with(py, |subscription| Ok(subscription.subscriber.reconnects()))
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
