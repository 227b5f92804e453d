//! `bridge(source, target, topics)`: carries topics from one bus to another.
//!
//! ```text
//!   bridge() ── starts ──> Carrier, on a thread: opens ──> carries ──> has ended, by close or by an error
//!      └──> Bridge ── wait, told, totals, close ── wait for the carrier, up to 50 ms at a time
//! ```
//! The carrier's threads never touch Python: they continue while the interpreter is busy, and are not joined at its
//! end. An error on such a thread is stored, and raised by the next call that waits for the end or closes.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tickpath_bus::wire::FIRST_KIND;
use tickpath_bus::{ConnectError, Policy, TopicConfig, resolve_url};
use tickpath_clock::{Clock, HostClock};
use tickpath_log::ForkGeneration;
use tickpath_relay::bridge::{Settings, TopicRoute, open};
use tickpath_relay::{FOREIGN_KIND, RelayContext, RelayError, RelayMeter, RelayTotals, TargetConfig};

use crate::bus::{SubscribeStart, max_age_ns, policy_of, wait_of};
use crate::clock::host_clock;
use crate::error::{ErrorClass, connect_error};
use crate::payload::invalid_kind;
use crate::topic::timeout_of;

/// Max duration of one wait for a carrier, and so the delay until a signal is noticed.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// Max sentences kept until `told` is called; beyond it the oldest are dropped.
const MAX_SENTENCES: usize = 1_000;

/// Carries topics from one bus to another, on threads of its own, until the bridge is closed. Returns when both ends
/// are open: every message published from then on is carried. `topics` is a name, several names, or a dict that maps
/// names at the source to names at the target. A topic starts with the next message ('now'), the oldest ('oldest') or a
/// sequence number; with a folder to `resume` in, at the position where an earlier run of the bridge stopped. Messages
/// of other programs get the kind `foreign_kind`. `wait` is as in `Bus.subscribe`; `policy`, `capacity` and `max_age`
/// open the target's topics as in `Bus.publisher`.
#[pyfunction]
#[pyo3(name = "bridge", signature = (source, target, topics, *, start = SubscribeStart::Text("now".to_owned()), resume = None, foreign_kind = FOREIGN_KIND, wait = "block", policy = None, capacity = None, max_age = None), text_signature = "(source, target, topics, *, start='now', resume=None, foreign_kind=128, wait='block', policy=None, capacity=None, max_age=None)")]
#[allow(clippy::too_many_arguments, reason = "each is a keyword in Python")]
pub fn start_bridge(
    py: Python<'_>,
    source: &str,
    target: &str,
    topics: &Bound<'_, PyAny>,
    start: SubscribeStart,
    resume: Option<PathBuf>,
    foreign_kind: u8,
    wait: &str,
    policy: Option<&str>,
    capacity: Option<usize>,
    max_age: Option<f64>,
) -> PyResult<Bridge> {
    let clock = host_clock(py)?;
    let resolving = || Ok::<_, ConnectError>((resolve_url(source)?, resolve_url(target)?));
    let (from, to) = py.detach(resolving).map_err(|e| connect_error(py, &e))?;
    if foreign_kind < FIRST_KIND {
        return Err(invalid_kind(foreign_kind));
    }
    let opening = TargetConfig {
        policy: policy.map(policy_of).transpose()?,
        capacity_bytes: capacity.unwrap_or(TopicConfig::new(Policy::Overwrite).capacity_bytes),
        max_age_ns: max_age_ns(max_age)?,
    };
    let settings = Settings {
        from,
        to,
        routes: routes(topics)?,
        start: start.start()?,
        resume,
        foreign_kind,
        wait: wait_of(wait)?,
        target: opening,
    };
    let carrier = Arc::new(BridgeWorker::new(settings, clock));
    let worker = carrier.clone();
    let started = std::thread::Builder::new().name("bridge".to_owned()).spawn(move || worker.run());
    started.map_err(|e| {
        ErrorClass::ConnectError.raise(py, &format!("cannot start a thread ({e}); end other threads first"))
    })?;
    carrier.await_open(py)?;
    Ok(Bridge { carrier, is_failure_raised: AtomicBool::new(false), born: ForkGeneration::current() })
}

/// Parses the topics given by Python.
fn routes(topics: &Bound<'_, PyAny>) -> PyResult<Vec<TopicRoute>> {
    let name = |given: &Bound<'_, PyAny>| {
        let sentence = "a topic name is text; give one, several, or a dict of source names and target names";
        given.extract::<String>().map_err(|_| PyTypeError::new_err(sentence))
    };
    let mut routes = Vec::new();
    if let Ok(name) = topics.extract::<String>() {
        routes.push(TopicRoute { from: name.clone(), to: name });
    } else if let Ok(names) = topics.cast::<PyDict>() {
        for (from, to) in names.iter() {
            routes.push(TopicRoute { from: name(&from)?, to: name(&to)? });
        }
    } else {
        for given in topics.try_iter()? {
            let from = name(&given?)?;
            routes.push(TopicRoute { to: from.clone(), from });
        }
    }
    if routes.is_empty() {
        return Err(PyValueError::new_err("no topic is given; give at least one"));
    }
    Ok(routes)
}

/// A running bridge, which carries topics from one bus to another. Use it in a `with` block, or close it: `close`
/// raises the error that ended the bridge, unless `wait` has raised it. Threads may share a bridge.
#[pyclass(frozen, module = "tickpath")]
pub struct Bridge {
    carrier: Arc<BridgeWorker>,
    /// The error that ended the bridge was raised.
    is_failure_raised: AtomicBool,
    born: ForkGeneration,
}

/// Totals of one topic that a bridge carries.
#[pyclass(name = "Carried", frozen, get_all, module = "tickpath")]
pub struct PyCarried {
    /// Messages carried.
    messages: u64,
    /// Messages carried that other programs had published.
    foreign: u64,
    /// Messages carried that were stamped on another host, and got the time of their arrival as their stamp.
    elsewhere: u64,
    /// Messages dropped because they are longer than the target accepts.
    too_long: u64,
    /// Payload bytes carried.
    bytes: u64,
    /// Losses at the source or on the way to the bridge, each of one message or more; the target's subscribers are
    /// notified of each.
    gaps: u64,
    /// Messages lost in these gaps, as far as they were counted.
    missed: u64,
    /// Gaps whose number of messages is unknown.
    uncounted: u64,
    /// Messages that a full target refused at first, and accepted later.
    refused: u64,
    /// Messages that had arrived when the bridge was closed, and were not published.
    left: u64,
    /// Median time that a message spent in the bridge, in nanoseconds; None if there are too few messages.
    delay_p50_ns: Option<u64>,
    /// 99th percentile of the time that a message spent in the bridge, in nanoseconds; None if there are too few
    /// messages.
    delay_p99_ns: Option<u64>,
}

#[pymethods]
impl Bridge {
    /// Waits until the bridge has ended, or `timeout` seconds are over; returns True if the bridge has ended. Raises
    /// the error that ended the bridge; an end by `close` is no error.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.check(py)?;
        let timeout = timeout_of(timeout)?.unwrap_or(Duration::MAX);
        match self.carrier.await_end(py, timeout)? {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(failure)) => {
                self.is_failure_raised.store(true, Ordering::Relaxed);
                Err(failure.exception(py))
            }
        }
    }

    /// Returns the messages about the bridge since the last call, as sentences, oldest first: that topics are carried,
    /// each loss, a target that accepts nothing at present. At most the last 1,000 are kept.
    fn told(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.check(py)?;
        Ok(self.carrier.sentences().drain(..).collect())
    }

    /// Returns the totals carried so far, by the topics' names at the source.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check(py)?;
        let totals = PyDict::new(py);
        for (route, meter) in self.carrier.settings.routes.iter().zip(&self.carrier.meters) {
            totals.set_item(route.from.as_str(), Py::new(py, PyCarried::of(&meter.totals()))?)?;
        }
        Ok(totals)
    }

    /// Ends the bridge; returns when the bridge has ended, after about a tenth of a second. Raises the error that had
    /// ended the bridge before, unless that was raised already; a second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)?.map_or(Ok(()), |failure| Err(failure.exception(py)))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let Some(failure) = self.end(py)? else { return Ok(()) };
        match raised.get_item(1).ok().filter(|value| !value.is_none()) {
            None => Err(failure.exception(py)),
            // The exception raised in the block propagates, with the bridge's failure as a note.
            Some(value) => {
                value.call_method1("add_note", (format!("the bridge had ended: {}", failure.sentence),)).map(|_| ())
            }
        }
    }
}

impl Bridge {
    /// Stops the carrier and waits for its end; returns its earlier failure unless that was raised already. A fork
    /// stops nothing: the carrier belongs to the parent.
    fn end(&self, py: Python<'_>) -> PyResult<Option<BridgeFailure>> {
        if self.born.is_forked() {
            return Ok(None);
        }
        self.carrier.stop.store(true, Ordering::Relaxed);
        Ok(match self.carrier.await_end(py, Duration::MAX)? {
            Some(Err(failure)) if !self.is_failure_raised.swap(true, Ordering::Relaxed) => Some(failure),
            _ => None,
        })
    }

    /// Rejects calls in a forked process.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.born.is_forked() {
            let sentence = "this bridge was started before the process was forked; start another one here";
            return Err(ErrorClass::Forked.raise(py, sentence));
        }
        Ok(())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if self.born.is_forked() {
            return;
        }
        self.carrier.stop.store(true, Ordering::Relaxed);
        // The topics are released when this returns. Without an interpreter, the end of the process ends the carrier.
        let carrier = &self.carrier;
        Python::try_attach(|py| {
            py.detach(|| while carrier.wait_for_stage(BridgeStage::has_ended, MAX_WAIT).ended().is_none() {})
        });
    }
}

#[pymethods]
impl PyCarried {
    fn __repr__(&self) -> String {
        let Self { messages, foreign, bytes, gaps, too_long, left, .. } = self;
        format!(
            "Carried(messages={messages}, foreign={foreign}, bytes={bytes}, gaps={gaps}, too_long={too_long}, left={left})"
        )
    }
}

impl PyCarried {
    fn of(totals: &RelayTotals) -> Self {
        Self {
            messages: totals.messages,
            foreign: totals.foreign,
            elsewhere: totals.other_hosts,
            too_long: totals.too_long,
            bytes: totals.bytes,
            gaps: totals.gaps,
            missed: totals.missed,
            uncounted: totals.uncounted,
            refused: totals.refused,
            left: totals.unpublished,
            delay_p50_ns: totals.delay_p50_ns(),
            delay_p99_ns: totals.delay_p99_ns(),
        }
    }
}

/// Worker of a bridge, with its state. Only its thread changes the stage.
struct BridgeWorker {
    settings: Settings,
    /// One meter per route.
    meters: Vec<RelayMeter>,
    clock: HostClock,
    /// The carrier should stop.
    stop: AtomicBool,
    stage: Mutex<BridgeStage>,
    /// Notified when the stage changes.
    stage_changed: Condvar,
    sentences: Mutex<VecDeque<String>>,
}

/// Progress of a carrier.
#[derive(Debug, Clone)]
enum BridgeStage {
    /// Connecting to both ends and opening the topics.
    Opening,
    /// Carrying messages.
    Carrying,
    /// All topics and connections are released, on request or by a failure.
    Ended(Result<(), BridgeFailure>),
}

/// Error that ended a carrier: the class and text of its exception.
#[derive(Debug, Clone)]
struct BridgeFailure {
    class: ErrorClass,
    sentence: String,
}

impl BridgeWorker {
    fn new(settings: Settings, clock: HostClock) -> Self {
        Self {
            meters: settings.routes.iter().map(|_| RelayMeter::default()).collect(),
            settings,
            clock,
            stop: AtomicBool::new(false),
            stage: Mutex::new(BridgeStage::Opening),
            stage_changed: Condvar::new(),
            sentences: Mutex::new(VecDeque::new()),
        }
    }

    /// Opens and carries until the end, and stores the reason for the end.
    fn run(&self) {
        let ended = match catch_unwind(AssertUnwindSafe(|| self.carry())) {
            Ok(carried) => carried.map_err(|error| BridgeFailure::of(&error)),
            Err(_panic) => {
                let sentence = "the bridge has ended by an internal error, which is on standard error; report it";
                Err(BridgeFailure { class: ErrorClass::ReceiveError, sentence: sentence.to_owned() })
            }
        };
        self.enter(BridgeStage::Ended(ended));
    }

    fn carry(&self) -> Result<(), RelayError> {
        let report = |sentence: &str| self.add_sentence(sentence);
        let context = RelayContext { clock: self.clock, stop: &self.stop, report: &report };
        let opened = open(&self.settings, &self.meters, &context)?;
        self.enter(BridgeStage::Carrying);
        opened.carry_until_stopped()
    }

    /// Waits until the topics are open; raises the reason if opening fails. A signal ends the wait as soon as the
    /// servers have answered.
    fn await_open(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            py.check_signals().inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
            match py.detach(|| self.wait_for_stage(|stage| !matches!(stage, BridgeStage::Opening), MAX_WAIT)) {
                BridgeStage::Opening => {}
                BridgeStage::Ended(Err(failure)) => return Err(failure.exception(py)),
                BridgeStage::Carrying | BridgeStage::Ended(Ok(())) => return Ok(()),
            }
        }
    }

    /// Waits for the end and checks signals meanwhile. Returns None if the timeout expires first.
    fn await_end(&self, py: Python<'_>, timeout: Duration) -> PyResult<Option<Result<(), BridgeFailure>>> {
        let begun = self.clock.ticks();
        loop {
            py.check_signals()?;
            let passed_ns = self.clock.ns_between(begun, self.clock.ticks()).max(0) as u64;
            let left = timeout.saturating_sub(Duration::from_nanos(passed_ns));
            let ended = py.detach(|| self.wait_for_stage(BridgeStage::has_ended, left.min(MAX_WAIT))).ended();
            if ended.is_some() || left <= MAX_WAIT {
                return Ok(ended);
            }
        }
    }

    /// Waits until the stage is reached or the time is over; returns the present stage.
    fn wait_for_stage(&self, is_reached: fn(&BridgeStage) -> bool, timeout: Duration) -> BridgeStage {
        let waited = self.stage_changed.wait_timeout_while(self.stage(), timeout, |stage| !is_reached(stage));
        let (stage, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stage.clone()
    }

    fn enter(&self, stage: BridgeStage) {
        *self.stage() = stage;
        self.stage_changed.notify_all();
    }

    fn stage(&self) -> MutexGuard<'_, BridgeStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_sentence(&self, sentence: &str) {
        let mut sentences = self.sentences();
        if sentences.len() == MAX_SENTENCES {
            sentences.pop_front();
        }
        sentences.push_back(sentence.to_owned());
    }

    fn sentences(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.sentences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BridgeStage {
    fn has_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }

    fn ended(self) -> Option<Result<(), BridgeFailure>> {
        match self {
            Self::Ended(ended) => Some(ended),
            Self::Opening | Self::Carrying => None,
        }
    }
}

impl BridgeFailure {
    fn of(error: &RelayError) -> Self {
        let class = match error {
            RelayError::Receive { .. } | RelayError::Read(_) => ErrorClass::ReceiveError,
            RelayError::Refused { .. } | RelayError::Publish { .. } => ErrorClass::PublishError,
            _ => ErrorClass::ConnectError,
        };
        Self { class, sentence: error.to_string() }
    }

    fn exception(&self, py: Python<'_>) -> PyErr {
        self.class.raise(py, &self.sentence)
    }
}
