//! `connect(url)`: a bus with its topics and queues.

use std::num::NonZeroU32;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};
use tickpath_bus::url::redact_logins;
use tickpath_bus::{ConnectError, Connection, DeliveryGuarantee, Policy, QueueConfig, StartPosition, TopicConfig};
use tickpath_clock::{HostClock, Wait};

use crate::clock::host_clock;
use crate::error::connect_error;
use crate::frame::{Loans, is_raised};
use crate::handle::ObjectHandle;
use crate::multi::MultiSubscriber;
use crate::queue::{PyPuller, PyPusher};
use crate::subscription::Subscription;
use crate::topic::{PyPublisher, PySubscriber};

/// Connects to a message bus at a URL: shm://, file:///FOLDER, redis://HOST, nats://HOST, amqp://HOST, kafka://HOST.
#[pyfunction]
pub fn connect(py: Python<'_>, url: &str) -> PyResult<PyBus> {
    let clock = host_clock(py)?;
    let connecting = || Ok::<_, ConnectError>((tickpath_bus::connect(url)?, tickpath_bus::resolve_url(url)?));
    let (opened, url) = py.detach(connecting).map_err(|e| connect_error(py, &e))?;
    let is_quick = url.starts_with("shm:");
    Ok(PyBus { handle: ObjectHandle::new("bus", redact_logins(&url), opened), loans: Arc::default(), clock, is_quick })
}

/// A connection to topics and queues. Threads may share a bus. Use it in a `with` block, or close it; objects opened
/// from the bus stay open.
#[pyclass(name = "Bus", frozen, module = "tickpath")]
pub struct PyBus {
    handle: ObjectHandle<Box<dyn Connection>>,
    /// Lent messages of the bus's topics.
    loans: Arc<Loans>,
    clock: HostClock,
    /// A call to the transport takes less time than releasing the interpreter.
    is_quick: bool,
}

impl PyBus {
    /// Calls the connection without holding the interpreter.
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Box<dyn Connection>) -> Result<R, ConnectError> + Send,
    ) -> PyResult<R> {
        self.handle.with_locked(py, act)?.map_err(|e| connect_error(py, &e))
    }

    /// Describes the place of a topic or a queue in error messages.
    fn place_of(&self, name: &str) -> String {
        format!("'{name}' at {}", self.handle.place())
    }

    fn subscriber(&self, py: Python<'_>, topic: &str, start: StartPosition, wait: Wait) -> PyResult<PySubscriber> {
        let opened = self.call(py, |connection| connection.subscriber(topic, start, wait))?;
        let subscription = Subscription::new(opened, !wait.sleeps(), self.clock);
        Ok(PySubscriber::new(subscription, self.place_of(topic), &self.loans, self.clock, self.is_quick))
    }

    fn queue_config(
        &self,
        py: Python<'_>,
        delivery: Option<&str>,
        capacity: Option<usize>,
        max_deliveries: Option<u32>,
    ) -> PyResult<QueueConfig> {
        let zero = "most_deliveries=0 would deliver no message; give 1 or more, or None for no limit";
        let nonzero = |max| NonZeroU32::new(max).ok_or_else(|| PyValueError::new_err(zero));
        let max_deliveries = max_deliveries.map(nonzero).transpose()?;
        let default = self.handle.with_locked(py, |connection| connection.queue_capabilities().deliveries[0])?;
        let delivery = match delivery {
            Some(name) => by_name("delivery", name, &DeliveryGuarantee::ALL, DeliveryGuarantee::name)?,
            None => default,
        };
        let config = QueueConfig { max_deliveries, ..QueueConfig::new(delivery) };
        Ok(QueueConfig { capacity_bytes: capacity.unwrap_or(config.capacity_bytes), ..config })
    }
}

#[pymethods]
impl PyBus {
    fn __repr__(&self) -> String {
        self.handle.repr("Bus")
    }

    /// Opens a topic for publishing. `policy` is the behaviour of a full topic: 'overwrite', 'fail' or 'keep', by
    /// default the first of `capabilities()['policies']`. The topic holds about `capacity` bytes, by default a
    /// mebibyte, and with 'overwrite' no message older than `max_age` seconds, where the transport supports an age.
    #[pyo3(signature = (topic, policy = None, *, capacity = None, max_age = None))]
    fn publisher(
        &self,
        py: Python<'_>,
        topic: &str,
        policy: Option<&str>,
        capacity: Option<usize>,
        max_age: Option<f64>,
    ) -> PyResult<PyPublisher> {
        let default = self.handle.with_locked(py, |connection| connection.capabilities().policies[0])?;
        let policy = policy.map(policy_of).transpose()?.unwrap_or(default);
        let config = TopicConfig { max_age_ns: max_age_ns(max_age)?, ..TopicConfig::new(policy) };
        let config = TopicConfig { capacity_bytes: capacity.unwrap_or(config.capacity_bytes), ..config };
        let opened = self.call(py, |connection| connection.publisher(topic, &config))?;
        Ok(PyPublisher::new(opened, self.place_of(topic), self.clock, self.is_quick))
    }

    /// Subscribes to a topic, with or without a publisher yet. `start` is the next message ('now'), the oldest
    /// available ('oldest'), a sequence number, or a token, behind which the subscriber resumes. `wait` is 'block',
    /// 'busy', 'yield' or 'adaptive'. A list of topics gives one MultiSubscriber of them all.
    #[pyo3(signature = (topic, start = GivenStart(None), *, wait = "block"), text_signature = "(self, topic, start='now', *, wait='block')")]
    fn subscribe<'py>(
        this: &Bound<'py, Self>,
        topic: GivenTopics,
        start: GivenStart<'py>,
        wait: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, bus) = (this.py(), this.get());
        let (given, wait) = (start.0, wait_of(wait)?);
        let topics = match topic {
            GivenTopics::One(topic) => {
                let start = given.map_or(Ok(StartPosition::Now), |given| given.extract::<SubscribeStart>()?.start())?;
                return Ok(Bound::new(py, bus.subscriber(py, &topic, start, wait)?)?.into_any());
            }
            GivenTopics::Several(topics) => topics,
        };
        let mut opened = Vec::new();
        for (topic, start) in starts(&topics, given.as_ref())? {
            let subscriber = Py::new(py, bus.subscriber(py, topic, start, wait)?)?;
            opened.push((PyString::new(py, topic).unbind(), subscriber));
        }
        Ok(Bound::new(py, MultiSubscriber::new(opened, !wait.sleeps(), bus.clock))?.into_any())
    }

    /// Opens a queue for pushing, and creates the queue if it does not exist. Pushers and pullers of a queue must agree
    /// on its `delivery`: 'at-most-once' or 'at-least-once', by default the first of `capabilities()['deliveries']`. A
    /// bounded queue holds about `capacity` bytes. A message delivered `most_deliveries` times without an
    /// acknowledgement moves to the dead-letter queue NAME.dead.
    #[pyo3(signature = (queue, delivery = None, *, capacity = None, most_deliveries = None))]
    fn pusher(
        &self,
        py: Python<'_>,
        queue: &str,
        delivery: Option<&str>,
        capacity: Option<usize>,
        most_deliveries: Option<u32>,
    ) -> PyResult<PyPusher> {
        let config = self.queue_config(py, delivery, capacity, most_deliveries)?;
        let opened = self.call(py, |connection| connection.pusher(queue, &config))?;
        Ok(PyPusher::new(opened, self.place_of(queue), self.clock))
    }

    /// Opens a queue for pulling, whether or not a message has been pushed yet. `delivery`, `capacity` and
    /// `most_deliveries` are as in `pusher`. `wait` is as in `subscribe`; a task can await only a puller whose `wait`
    /// is 'block'.
    #[pyo3(signature = (queue, delivery = None, *, wait = "block", capacity = None, most_deliveries = None))]
    fn puller(
        &self,
        py: Python<'_>,
        queue: &str,
        delivery: Option<&str>,
        wait: &str,
        capacity: Option<usize>,
        most_deliveries: Option<u32>,
    ) -> PyResult<PyPuller> {
        let config = self.queue_config(py, delivery, capacity, most_deliveries)?;
        let wait = wait_of(wait)?;
        let opened = self.call(py, |connection| connection.puller(queue, &config, wait))?;
        Ok(PyPuller::new(opened, self.place_of(queue), self.clock, wait))
    }

    /// Removes the data that a topic has left. A missing topic is no error.
    fn remove(&self, py: Python<'_>, topic: &str) -> PyResult<()> {
        self.call(py, |connection| connection.remove_topic(topic))
    }

    /// Removes a queue with all its messages. A missing queue is no error.
    fn remove_queue(&self, py: Python<'_>, queue: &str) -> PyResult<()> {
        self.call(py, |connection| connection.remove_queue(queue))
    }

    /// Returns the number of messages in a queue that no puller has taken; None where the transport does not report the
    /// number.
    fn waiting(&self, py: Python<'_>, queue: &str) -> PyResult<Option<u64>> {
        self.call(py, |connection| connection.count_waiting(queue))
    }

    /// Returns a sentence on how the server's own settings may lose or refuse messages pushed to a queue; None if they
    /// do neither. RabbitMQ's policies are read by its management API, whose port `?management=PORT` names; policies
    /// that cannot be read are an error.
    fn may_drop(&self, py: Python<'_>, queue: &str) -> PyResult<Option<String>> {
        self.call(py, |connection| connection.loss_risk(queue))
    }

    /// Returns the features of topics and queues on this bus: 'sequences' (messages have sequence numbers, and losses
    /// are counted), 'history' (a subscriber can start at the oldest message, or behind a token), 'max_age',
    /// 'single_publisher' (a second publisher is refused), 'publisher_liveness' (a subscriber knows whether the topic
    /// has a publisher), 'whole_batches' (a subscriber that receives the first message of a batch finds all of them,
    /// unless the batch takes more than a sixteenth of its topic), 'policies' and 'deliveries', the default first,
    /// 'lends' (the policies whose messages `Subscriber.lend` lends), and 'max_payload', the longest payload that is
    /// sure to pass, in bytes.
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (can, queues) =
            self.handle.with_locked(py, |connection| (connection.capabilities(), connection.queue_capabilities()))?;
        let features = PyDict::new(py);
        features.set_item("sequences", can.sequences)?;
        features.set_item("history", can.history)?;
        features.set_item("max_age", can.max_age)?;
        features.set_item("single_publisher", can.single_publisher)?;
        features.set_item("publisher_liveness", can.publisher_liveness)?;
        features.set_item("whole_batches", can.whole_batches)?;
        features.set_item("policies", can.policies.iter().map(|policy| policy.name()).collect::<Vec<_>>())?;
        features.set_item("lends", can.lends.iter().map(|policy| policy.name()).collect::<Vec<_>>())?;
        features
            .set_item("deliveries", queues.deliveries.iter().map(|delivery| delivery.name()).collect::<Vec<_>>())?;
        features.set_item("max_payload", can.max_payload)?;
        Ok(features)
    }

    /// Closes the bus; a second call does nothing. Raises BufferError while a message of one of its topics is lent:
    /// close the frames first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.handle.is_open() {
            self.loans.refuse_while_lent("bus")?;
        }
        self.handle.close(py);
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        if !is_raised(raised) {
            return self.close(py);
        }
        self.handle.close(py);
        Ok(())
    }
}

enum GivenTopics {
    One(String),
    Several(Vec<String>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for GivenTopics {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(topic) = given.extract() {
            return Ok(Self::One(topic));
        }
        let wrong = |_| {
            PyTypeError::new_err(format!(
                "give the name of a topic, or a list of names, and not {}",
                given.repr().map_or_else(|_| "this object".to_owned(), |repr| repr.to_string())
            ))
        };
        given.extract().map(Self::Several).map_err(wrong)
    }
}

/// Start of a subscription: a [`SubscribeStart`], or for several topics a dict of starts by topic. `None` is an omitted
/// argument; Python's None is an explicit one.
struct GivenStart<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for GivenStart<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(given.to_owned())))
    }
}

/// Start of a subscription, as given by Python.
pub enum SubscribeStart {
    /// 'now', 'oldest' or a token.
    Text(String),
    /// A sequence number.
    Sequence(u64),
}

impl<'a, 'py> FromPyObject<'a, 'py> for SubscribeStart {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            let sentence = "None is no start, and a topic without a history has no token; start with 'now' or 'oldest'";
            return Err(PyTypeError::new_err(sentence));
        }
        if let Ok(text) = given.extract::<String>() {
            return Ok(Self::Text(text));
        }
        let sequence = given.extract::<u64>().map(Self::Sequence);
        sequence.map_err(|_| PyTypeError::new_err("a start is 'now', 'oldest', a sequence number from 0 or a token"))
    }
}

impl SubscribeStart {
    /// Converts to the bus's type.
    pub fn start(self) -> PyResult<StartPosition> {
        match self {
            Self::Sequence(sequence) => Ok(StartPosition::Sequence(sequence)),
            Self::Text(text) if text == "now" => Ok(StartPosition::Now),
            Self::Text(text) if text == "oldest" => Ok(StartPosition::Oldest),
            Self::Text(token) => Ok(StartPosition::After(token.parse().map_err(|e: tickpath_bus::InvalidToken| {
                PyValueError::new_err(format!("{e}; or start with 'now', 'oldest' or a sequence number"))
            })?)),
        }
    }
}

/// Returns the start of each of several topics: 'now' or 'oldest' for all, or a dict of starts by topic, in which a
/// topic that is missing or None starts at the oldest message.
fn starts<'a>(topics: &'a [String], given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(&'a str, StartPosition)>> {
    if topics.is_empty() {
        return Err(PyValueError::new_err("no topic is given; give one or more, as in bus.subscribe(['btc', 'eth'])"));
    }
    if let Some((_, name)) = topics.iter().enumerate().find(|(n, name)| topics[..*n].contains(name)) {
        return Err(PyValueError::new_err(format!("'{name}' is given twice; give each topic once")));
    }
    let by_topic = given.and_then(|given| given.cast::<PyMapping>().ok());
    if let Some(by_topic) = by_topic {
        for name in by_topic.keys()? {
            if !topics.iter().any(|topic| name.eq(topic.as_str()).unwrap_or(false)) {
                let sentence = format!("{} has a start, and is not among the topics; remove its start", name.repr()?);
                return Err(PyValueError::new_err(sentence));
            }
        }
    }
    let start = |topic: &str| match (by_topic, given) {
        (Some(by_topic), _) if !by_topic.contains(topic)? => Ok(StartPosition::Oldest),
        (Some(by_topic), _) => match by_topic.get_item(topic)? {
            start if start.is_none() => Ok(StartPosition::Oldest),
            start => start.extract::<SubscribeStart>()?.start(),
        },
        (None, Some(given)) => match given.extract::<SubscribeStart>()?.start()? {
            start @ (StartPosition::Now | StartPosition::Oldest) => Ok(start),
            _ => Err(PyValueError::new_err(
                "several topics start with 'now' or 'oldest', or with a dict of starts by topic, as from tokens()",
            )),
        },
        (None, None) => Ok(StartPosition::Now),
    };
    topics.iter().map(|topic| Ok((topic.as_str(), start(topic)?))).collect()
}

/// Parses the name of a wait mode, as on the command line.
pub fn wait_of(name: &str) -> PyResult<Wait> {
    by_name("wait", name, &[Wait::Busy, Wait::Yield, Wait::Block, Wait::Adaptive], Wait::name)
}

/// Parses the name of a policy, as on the command line.
pub fn policy_of(name: &str) -> PyResult<Policy> {
    by_name("policy", name, &Policy::ALL, Policy::name)
}

/// Converts a maximum age from seconds to nanoseconds.
pub fn max_age_ns(seconds: Option<f64>) -> PyResult<Option<u64>> {
    match seconds {
        None => Ok(None),
        Some(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(Some((seconds * 1e9) as u64)),
        Some(seconds) => {
            Err(PyValueError::new_err(format!("a max_age of {seconds} s is invalid; give seconds above 0")))
        }
    }
}

/// Finds a value by its name on the command line.
pub fn by_name<T: Copy>(what: &str, name: &str, all: &[T], name_of: fn(T) -> &'static str) -> PyResult<T> {
    all.iter().copied().find(|&value| name_of(value) == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|&value| format!("'{}'", name_of(value))).collect();
        PyValueError::new_err(format!("'{name}' is not a valid {what}; use one of {}", names.join(", ")))
    })
}
