//! One subscriber of several topics.
//!
//! ```text
//!   poll, next ──> topic a, topic b, topic c, beginning with the one whose turn it is
//!   no event: a lookout thread waits for each; an epoll descriptor becomes readable when a thread has found an event
//! ```
//! Events are taken from a topic without waiting for its lookout thread, which may hold a quiet one for a while.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use tickpath_clock::{Clock, HostClock};

use crate::handle::MAX_TURN_NS;
use crate::subscription::MAX_EVENTS;
use crate::topic::{MaxEvents, PySubscriber, events, timeout_of};

/// Subscriber of several topics. Each topic keeps its order, and the topics take turns. Iterate over it, also by `async
/// for`, or poll it: each item is `(topic, event)`. `multi["btc"]` is the subscriber of one topic, for its `outage`,
/// `reconnects` and so on. Use it in a `with` block, or close it.
#[pyclass(frozen, module = "tickpath")]
pub struct MultiSubscriber {
    topics: Vec<(Py<PyString>, Py<PySubscriber>)>,
    /// Index of the topic that is polled first.
    turn: AtomicUsize,
    /// Error of a topic behind events of other topics, which were returned: raised by the next call.
    error: Mutex<Option<PyErr>>,
    /// A wait spins rather than sleeps.
    spins: bool,
    /// Descriptor that is readable when a lookout thread has found an event; made by the first wait.
    news: OnceLock<TopicEpoll>,
    clock: HostClock,
}

/// An epoll descriptor, and the lookout descriptors that it watches, one per topic.
struct TopicEpoll {
    epoll_fd: OwnedFd,
    _topic_fds: Vec<OwnedFd>,
}

type NamedTopicEvent<'py> = (Bound<'py, PyString>, Py<PyAny>);

impl MultiSubscriber {
    /// Creates the subscriber of these topics, given by name.
    pub fn new(topics: Vec<(Py<PyString>, Py<PySubscriber>)>, spins: bool, clock: HostClock) -> Self {
        let (turn, error, news) = (AtomicUsize::new(0), Mutex::new(None), OnceLock::new());
        Self { topics, turn, error, spins, news, clock }
    }

    fn subscribers(&self) -> impl Iterator<Item = &PySubscriber> {
        self.topics.iter().map(|(_, subscriber)| subscriber.get())
    }

    /// Takes up to `limit` events, topic by topic. An error after some events is kept for the next call.
    fn take_events<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Vec<NamedTopicEvent<'py>>> {
        self.raise_stored()?;
        let mut found = Vec::new();
        for _ in &self.topics {
            let turn = self.turn.load(Ordering::Relaxed) % self.topics.len();
            self.turn.store(turn + 1, Ordering::Relaxed);
            let (name, subscriber) = &self.topics[turn];
            match subscriber.get().try_take(py, limit - found.len()) {
                Ok(events) => found.extend(events.into_iter().map(|event| (name.bind(py).clone(), event))),
                Err(e) if found.is_empty() => return Err(e),
                Err(e) => {
                    *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                    break;
                }
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    /// Waits until a topic has an event, or the timeout expires.
    fn wait_within(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
        let begun = self.clock.ticks();
        loop {
            py.check_signals()?;
            self.raise_stored()?;
            for subscriber in self.subscribers() {
                if subscriber.is_ready(py)? {
                    return Ok(true);
                }
            }
            let passed = Duration::from_nanos(self.clock.ns_between(begun, self.clock.ticks()).unsigned_abs());
            let left = timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(passed));
            if left.is_zero() {
                return Ok(false);
            }
            if !self.spins {
                self.sleep(py, left.min(Duration::from_nanos(MAX_TURN_NS)))?;
            }
        }
    }

    /// Sleeps until a lookout thread has found an event, or `longest` is over.
    fn sleep(&self, py: Python<'_>, longest: Duration) -> PyResult<()> {
        let news = self.watch(py)?;
        let slept = py.detach(|| {
            let longest = Timespec::try_from(longest).ok();
            poll(&mut [PollFd::new(&news.epoll_fd, PollFlags::IN)], longest.as_ref())
        });
        self.unwatch();
        match slept {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(PyOSError::new_err(e.to_string())),
        }
    }

    /// Makes a lookout thread wait for each topic. If one fails, all are released.
    fn watch(&self, py: Python<'_>) -> PyResult<&TopicEpoll> {
        for (index, subscriber) in self.subscribers().enumerate() {
            if let Err(e) = subscriber.watch(py) {
                self.subscribers().take(index).for_each(PySubscriber::unwatch);
                return Err(e);
            }
        }
        if let Some(news) = self.news.get() {
            return Ok(news);
        }
        let news = self.open_epoll().inspect_err(|_| self.unwatch())?;
        Ok(self.news.get_or_init(|| news))
    }

    fn open_epoll(&self) -> std::io::Result<TopicEpoll> {
        let epoll_fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let topic_fds: Vec<OwnedFd> = self.subscribers().map(PySubscriber::descriptor).collect::<Result<_, _>>()?;
        for (index, topic_fd) in topic_fds.iter().enumerate() {
            epoll::add(&epoll_fd, topic_fd, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        }
        Ok(TopicEpoll { epoll_fd, _topic_fds: topic_fds })
    }

    fn unwatch(&self) {
        self.subscribers().for_each(PySubscriber::unwatch);
    }

    fn raise_stored(&self) -> PyResult<()> {
        let stored = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        stored.map_or(Ok(()), Err)
    }
}

#[pymethods]
impl MultiSubscriber {
    fn __repr__(&self) -> String {
        let each: Vec<_> = self.subscribers().map(PySubscriber::__repr__).collect();
        format!("<tickpath.MultiSubscriber of {}>", each.join(", "))
    }

    /// Returns the subscriber of one topic.
    fn __getitem__(&self, py: Python<'_>, topic: &str) -> PyResult<Py<PySubscriber>> {
        let found = self.topics.iter().find(|(name, _)| name.bind(py) == topic);
        let unknown = || {
            let names: Vec<_> = self.topics.iter().map(|(name, _)| format!("'{name}'")).collect();
            PyKeyError::new_err(format!("'{topic}' is not subscribed to; use one of {}", names.join(", ")))
        };
        found.map(|(_, subscriber)| subscriber.clone_ref(py)).ok_or_else(unknown)
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Returns the next event of any topic, as soon as there is one.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<NamedTopicEvent<'py>> {
        loop {
            if let Some(item) = self.take_events(py, 1)?.pop() {
                return Ok(item);
            }
            self.wait_within(py, None)?;
        }
    }

    /// Returns up to `max` available events; never waits. The next call starts with the topic behind the one that
    /// filled this call, so that a busy topic does not starve the others. An error of one topic is raised by the next
    /// call if other topics have events now.
    #[pyo3(signature = (max = MaxEvents(64)), text_signature = "(self, max=64)")]
    fn poll<'py>(&self, py: Python<'py>, max: MaxEvents) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.take_events(py, max.0.min(MAX_EVENTS))?)
    }

    /// Waits until an event is available, or `timeout` seconds are over; returns True if an event is available.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.wait_within(py, timeout_of(timeout)?)
    }

    /// Returns the position in each topic, by name: `bus.subscribe(topics, tokens)` resumes there. None as in
    /// `Subscriber.token`.
    fn tokens(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Option<String>>> {
        self.topics.iter().map(|(name, subscriber)| Ok((name.to_string(), subscriber.get().token(py)?))).collect()
    }

    /// Returns an iterator for `async for`.
    fn __aiter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        events(this.as_any())
    }

    /// Returns an event for a task, if there is one in a topic that no lookout thread holds.
    fn _attempt<'py>(&self, py: Python<'py>) -> PyResult<Option<NamedTopicEvent<'py>>> {
        Ok(self.take_events(py, 1)?.pop())
    }

    /// Makes a lookout thread wait for each topic; returns the descriptor that becomes readable.
    fn _watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.watch(py).map(|news| news.epoll_fd.as_raw_fd())
    }

    /// Ends the wait of the task that called `_watch`.
    fn _unwatch(&self) {
        self.unwatch();
    }

    /// Closes all subscribers; a second call does nothing. While a message is lent, raises BufferError and closes the
    /// others: close the frames first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.subscribers().map(|subscriber| subscriber.close(py)).fold(Ok(()), Result::and)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.subscribers().map(|subscriber| subscriber.__exit__(py, raised)).fold(Ok(()), Result::and)
    }
}
