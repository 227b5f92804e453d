//! `bridge(source, target, topics)`: carries topics from one bus to another.
//!
//! ```text
//!   bridge() ── starts ──> Carrier, on a thread: opens ──> carries ──> has ended, by close or by what failed
//!      └──> Bridge ── wait, told, totals, close ── look at it, for 50 ms at a time
//! ```
//! The carrier's threads never touch Python: they go on while the interpreter is busy, and nobody waits for them at its end.
//! What fails there is kept, and raised by the next who waits for the end or closes.

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
use tickpath_bus::{ConnectError, Policy, TopicConfig, resolve};
use tickpath_clock::{Clock, HostClock};
use tickpath_log::Birthplace;
use tickpath_relay::bridge::{Route, Settings, open};
use tickpath_relay::{FOREIGN_KIND, Meter, Opening, Outside, RelayError, Totals};

use crate::bus::{Begin, max_age_ns, policy_of, wait_of};
use crate::error::{Error, connect_error};

/// How long one look at a carrier may take: so late is a signal seen.
const TURN: Duration = Duration::from_millis(50);

/// The most sentences that wait for somebody to ask for them; of more the oldest are dropped.
const MOST_SENTENCES: usize = 1_000;

/// Carries topics from one bus to another, on threads of its own, until it is closed. Returns when both ends are open: what
/// is published from then on is carried. `topics` is a name, several names, or a dict of names at the source with those at
/// the target. It begins with the next message ('now'), the oldest ('oldest') or a sequence number; with a folder to `resume`
/// in, where it was before. What other programs publish gets `foreign_kind`. It waits as `Bus.subscribe` says, and opens the
/// target's topics by `policy`, `capacity` and `max_age` as `Bus.publisher` does.
#[pyfunction]
#[pyo3(name = "bridge", signature = (source, target, topics, *, start = Begin::Word("now".to_owned()), resume = None, foreign_kind = FOREIGN_KIND, wait = "block", policy = None, capacity = None, max_age = None), text_signature = "(source, target, topics, *, start='now', resume=None, foreign_kind=128, wait='block', policy=None, capacity=None, max_age=None)")]
#[allow(clippy::too_many_arguments, reason = "each is a keyword in Python")]
pub fn start_bridge(
    py: Python<'_>,
    source: &str,
    target: &str,
    topics: &Bound<'_, PyAny>,
    start: Begin,
    resume: Option<PathBuf>,
    foreign_kind: u8,
    wait: &str,
    policy: Option<&str>,
    capacity: Option<usize>,
    max_age: Option<f64>,
) -> PyResult<Bridge> {
    let clock = HostClock::get().map_err(|e| Error::Connect.raise(py, &e.to_string()))?;
    let resolving = || Ok::<_, ConnectError>((resolve(source)?, resolve(target)?));
    let (from, to) = py.detach(resolving).map_err(|e| connect_error(py, &e))?;
    if foreign_kind < FIRST_KIND {
        return Err(PyValueError::new_err(format!("the kind {foreign_kind} is not ours to give; use 16 to 255")));
    }
    let opening = Opening {
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
        opening,
    };
    let carrier = Arc::new(Carrier::new(settings, clock));
    let working = carrier.clone();
    let started = std::thread::Builder::new().name("bridge".to_owned()).spawn(move || working.work());
    started.map_err(|e| Error::Connect.raise(py, &format!("no thread can be started ({e}); end some first")))?;
    carrier.await_open(py)?;
    Ok(Bridge { carrier, is_told: AtomicBool::new(false), born: Birthplace::here() })
}

/// The topics that Python names.
fn routes(topics: &Bound<'_, PyAny>) -> PyResult<Vec<Route>> {
    let name = |given: &Bound<'_, PyAny>| {
        let sentence = "a topic is text; give a name, several names, or a dict of names here and names there";
        given.extract::<String>().map_err(|_| PyTypeError::new_err(sentence))
    };
    let mut routes = Vec::new();
    if let Ok(name) = topics.extract::<String>() {
        routes.push(Route { from: name.clone(), to: name });
    } else if let Ok(names) = topics.cast::<PyDict>() {
        for (from, to) in names.iter() {
            routes.push(Route { from: name(&from)?, to: name(&to)? });
        }
    } else {
        for given in topics.try_iter()? {
            let from = name(&given?)?;
            routes.push(Route { to: from.clone(), from });
        }
    }
    if routes.is_empty() {
        return Err(PyValueError::new_err("there is no topic to carry; name one at least"));
    }
    Ok(routes)
}

/// Carries topics from one bus to another, until it is closed. Use it in a `with` block, or close it: what has ended it
/// before is raised there, unless `wait` has raised it. Threads may share it.
#[pyclass(frozen, module = "tickpath")]
pub struct Bridge {
    carrier: Arc<Carrier>,
    /// What has ended it was raised.
    is_told: AtomicBool,
    born: Birthplace,
}

/// What was carried of one topic so far.
#[pyclass(frozen, get_all, module = "tickpath")]
pub struct Carried {
    /// Messages.
    messages: u64,
    /// Of them, those that came from other programs.
    foreign: u64,
    /// Of them, those that another host had stamped, and which got the time at which they came.
    elsewhere: u64,
    /// Messages that were dropped because they are longer than the target takes.
    too_long: u64,
    /// Bytes of their payloads.
    bytes: u64,
    /// Losses at the source or on the way here, each of one message or more; the target's subscribers are told of them.
    gaps: u64,
    /// Messages that were lost in them, as far as somebody counted.
    missed: u64,
    /// Losses of which nobody knows how many messages they were.
    uncounted: u64,
    /// Messages that a full target refused at first, and took later.
    refused: u64,
    /// Messages that had come when it was closed, and were not published.
    left: u64,
    /// The median of how long it had each message, in nanoseconds; None on too few messages.
    delay_p50_ns: Option<u64>,
    /// The 99th percentile of that.
    delay_p99_ns: Option<u64>,
}

#[pymethods]
impl Bridge {
    /// Waits until it has ended, or `timeout` seconds are over; True if it has ended. Raises what has ended it, unless that
    /// was `close`.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.check(py)?;
        let timeout = match timeout {
            None => Duration::MAX,
            Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
                PyValueError::new_err(format!("a timeout of {seconds} s is none; give seconds, 0 or more, or None"))
            })?,
        };
        match self.carrier.await_end(py, timeout)? {
            None => Ok(false),
            Some(Ended::Stopped) => Ok(true),
            Some(Ended::Failed(failure)) => {
                self.is_told.store(true, Ordering::Relaxed);
                Err(failure.exception(py))
            }
        }
    }

    /// What it had to tell since the last call, in sentences, oldest first: that it carries, each loss, a target that takes
    /// nothing now. It keeps the last 1,000.
    fn told(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.check(py)?;
        Ok(self.carrier.take_sentences())
    }

    /// What was carried so far, by the topics' names at the source.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check(py)?;
        let told = PyDict::new(py);
        for (route, meter) in self.carrier.settings.routes.iter().zip(&self.carrier.meters) {
            told.set_item(route.from.as_str(), Py::new(py, Carried::of(&meter.totals()))?)?;
        }
        Ok(told)
    }

    /// Ends it, and returns when it has ended: about a tenth of a second. Raises what had ended it before, unless that was
    /// raised already. A second time does nothing.
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
            // What was raised in the block goes on, and has the other beside it.
            Some(value) => {
                value.call_method1("add_note", (format!("the bridge had ended: {}", failure.sentence),)).map(|_| ())
            }
        }
    }
}

impl Bridge {
    /// Stops it and waits for the end; gives what had ended it before, if nobody was told. A fork ends nothing: it is the
    /// parent's.
    fn end(&self, py: Python<'_>) -> PyResult<Option<Failure>> {
        if self.born.is_elsewhere() {
            return Ok(None);
        }
        self.carrier.stop.store(true, Ordering::Relaxed);
        Ok(match self.carrier.await_end(py, Duration::MAX)? {
            Some(Ended::Failed(failure)) if !self.is_told.swap(true, Ordering::Relaxed) => Some(failure),
            _ => None,
        })
    }

    /// Refuses a fork.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.born.is_elsewhere() {
            let sentence = "this bridge was started before the process was forked; start another one here";
            return Err(Error::Forked.raise(py, sentence));
        }
        Ok(())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if self.born.is_elsewhere() {
            return;
        }
        self.carrier.stop.store(true, Ordering::Relaxed);
        // Its topics are free when this returns. Where there is no interpreter any more, the process ends it.
        let carrier = &self.carrier;
        Python::try_attach(|py| py.detach(|| while carrier.look(Stage::has_ended, TURN).ended().is_none() {}));
    }
}

#[pymethods]
impl Carried {
    fn __repr__(&self) -> String {
        let Self { messages, foreign, bytes, gaps, too_long, left, .. } = self;
        format!(
            "Carried(messages={messages}, foreign={foreign}, bytes={bytes}, gaps={gaps}, too_long={too_long}, left={left})"
        )
    }
}

impl Carried {
    fn of(totals: &Totals) -> Self {
        Self {
            messages: totals.messages,
            foreign: totals.foreign,
            elsewhere: totals.elsewhere,
            too_long: totals.too_long,
            bytes: totals.bytes,
            gaps: totals.gaps,
            missed: totals.missed,
            uncounted: totals.uncounted,
            refused: totals.refused,
            left: totals.left,
            delay_p50_ns: totals.delay_p50_ns(),
            delay_p99_ns: totals.delay_p99_ns(),
        }
    }
}

/// What carries, and what is known of it. Its thread alone changes its stage.
struct Carrier {
    settings: Settings,
    /// One for each route.
    meters: Vec<Meter>,
    clock: HostClock,
    /// It is to end.
    stop: AtomicBool,
    stage: Mutex<Stage>,
    /// The stage is another one.
    is_further: Condvar,
    sentences: Mutex<VecDeque<String>>,
}

/// How far it is.
#[derive(Debug, Clone)]
enum Stage {
    /// It connects to both ends, and opens the topics.
    Opening,
    /// It carries.
    Carrying,
    /// It has let go of all.
    Over(Ended),
}

/// How it has ended.
#[derive(Debug, Clone)]
enum Ended {
    /// As it was told to.
    Stopped,
    /// It could not go on.
    Failed(Failure),
}

/// What has ended it: the exception that tells it.
#[derive(Debug, Clone)]
struct Failure {
    class: Error,
    sentence: String,
}

impl Carrier {
    fn new(settings: Settings, clock: HostClock) -> Self {
        Self {
            meters: settings.routes.iter().map(|_| Meter::default()).collect(),
            settings,
            clock,
            stop: AtomicBool::new(false),
            stage: Mutex::new(Stage::Opening),
            is_further: Condvar::new(),
            sentences: Mutex::new(VecDeque::new()),
        }
    }

    /// Opens and carries, to the end, and says how that came.
    fn work(&self) {
        let ended = match catch_unwind(AssertUnwindSafe(|| self.carry())) {
            Ok(Ok(())) => Ended::Stopped,
            Ok(Err(error)) => Ended::Failed(Failure::of(&error)),
            Err(_panic) => {
                let sentence = "the bridge has ended by a mistake of its own, which standard error shows; report it";
                Ended::Failed(Failure { class: Error::Receive, sentence: sentence.to_owned() })
            }
        };
        self.enter(Stage::Over(ended));
    }

    fn carry(&self) -> Result<(), RelayError> {
        let tell = |sentence: &str| self.tell(sentence);
        let outside = Outside { clock: self.clock, stop: &self.stop, tell: &tell };
        let opened = open(&self.settings, &self.meters, &outside)?;
        self.enter(Stage::Carrying);
        opened.carry()
    }

    /// Waits until the topics are open; raises why they are not. A signal ends it as soon as its servers have answered.
    fn await_open(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            py.check_signals().inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
            match py.detach(|| self.look(Stage::is_open, TURN)) {
                Stage::Opening => {}
                Stage::Over(Ended::Failed(failure)) => return Err(failure.exception(py)),
                Stage::Carrying | Stage::Over(Ended::Stopped) => return Ok(()),
            }
        }
    }

    /// Waits for the end, looking for signals; none if it has not come in so long.
    fn await_end(&self, py: Python<'_>, timeout: Duration) -> PyResult<Option<Ended>> {
        let begun = self.clock.ticks();
        loop {
            py.check_signals()?;
            let passed_ns = self.clock.ns_between(begun, self.clock.ticks()).max(0) as u64;
            let left = timeout.saturating_sub(Duration::from_nanos(passed_ns));
            let ended = py.detach(|| self.look(Stage::has_ended, left.min(TURN))).ended();
            if ended.is_some() || left <= TURN {
                return Ok(ended);
            }
        }
    }

    /// Waits until it is as far as that, or the time is over; gives how far it is.
    fn look(&self, is_there: fn(&Stage) -> bool, most: Duration) -> Stage {
        let waited = self.is_further.wait_timeout_while(self.stage(), most, |stage| !is_there(stage));
        let (stage, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stage.clone()
    }

    fn enter(&self, stage: Stage) {
        *self.stage() = stage;
        self.is_further.notify_all();
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, sentence: &str) {
        let mut sentences = self.sentences();
        if sentences.len() == MOST_SENTENCES {
            sentences.pop_front();
        }
        sentences.push_back(sentence.to_owned());
    }

    fn take_sentences(&self) -> Vec<String> {
        self.sentences().drain(..).collect()
    }

    fn sentences(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.sentences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    fn is_open(&self) -> bool {
        !matches!(self, Self::Opening)
    }

    fn has_ended(&self) -> bool {
        matches!(self, Self::Over(_))
    }

    fn ended(self) -> Option<Ended> {
        match self {
            Self::Over(ended) => Some(ended),
            Self::Opening | Self::Carrying => None,
        }
    }
}

impl Failure {
    fn of(error: &RelayError) -> Self {
        let class = match error {
            RelayError::Receive { .. } | RelayError::Read(_) => Error::Receive,
            RelayError::Refused { .. } | RelayError::Publish { .. } => Error::Publish,
            _ => Error::Connect,
        };
        Self { class, sentence: error.to_string() }
    }

    fn exception(&self, py: Python<'_>) -> PyErr {
        self.class.raise(py, &self.sentence)
    }
}
