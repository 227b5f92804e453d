//! Hops of a user's own code: pairs of stamps, in memory that is allocated before the first sample.
//!
//! ```text
//!   with hop: ──> now ──> this thread's open blocks ──> now ──┐
//!   hop.since(stamp) ───────────────────────────────> now ───┼─> a pair in the next free slot ───> a result file
//!   hop.between(stamp, stamp) ────────────────────────────────┘
//! ```
//! A sample neither allocates nor waits: its thread claims a slot, and stores the pair there. A fork starts without
//! samples at its first use of a hop, since the parent's samples are in its memory until then.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tickpath_clock::{Clock, HostClock, rfc3339};
use tickpath_lab_harness::host::{clock_cost_ns, facts};
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_result::{Host, OWN_PREFIX, ResultFile, Run, Software, is_own};
use tickpath_log::ForkGeneration;

use crate::clock::host_clock;

/// Max samples of a hop, which take 1.6 GB.
const MAX_SAMPLES: i64 = 100_000_000;

/// Value of a missing stamp; no clock returns it.
const NONE: u64 = 0;

/// Nested blocks per thread without an allocation.
const RESERVED_BLOCKS: usize = 64;

thread_local! {
    /// The open blocks of this thread, of all hops, innermost last.
    static OPEN_BLOCKS: RefCell<Vec<OpenBlock>> = RefCell::new(Vec::with_capacity(RESERVED_BLOCKS));
}

/// A block that was entered and not left.
struct OpenBlock {
    /// Id of the block's hop.
    hop: u64,
    /// Process that entered the block.
    born: ForkGeneration,
    /// Time of entry, in ticks.
    from: u64,
}

/// A stretch of your own code, each pass of which is a sample: `with hop:` around it, `@hop` above a function, or two
/// stamps. `tickpath.lab.hop` creates a hop, and `tickpath.lab.hops` returns the measurements. Threads may share a hop,
/// and blocks may be nested, also blocks of one hop. Tasks that take turns within a block would take each other's start
/// times: there use `since`, or decorate the coroutine function.
#[pyclass(name = "Hop", frozen, module = "tickpath.lab")]
pub struct PyHop {
    /// Name of the hop; its name in a result is own.NAME.
    #[pyo3(get)]
    name: String,
    /// Id of the hop in this process.
    number: u64,
    clock: HostClock,
    /// Start and end of each sample, in ticks.
    room: Box<[[AtomicU64; 2]]>,
    /// Number of samples so far, also of those that did not fit.
    recorded: AtomicUsize,
    /// Start of the measurement, in ticks.
    begun: AtomicU64,
    /// Process of the samples, by [`ForkGeneration::number`].
    born: AtomicU64,
}

#[pymethods]
impl PyHop {
    #[new]
    #[pyo3(signature = (name, samples = 1_000_000))]
    fn new(py: Python<'_>, name: String, samples: i64) -> PyResult<Self> {
        static HOPS: AtomicU64 = AtomicU64::new(0);
        if !is_own(&format!("{OWN_PREFIX}{name}")) {
            let sentence = "use 1 to 40 lower case letters, digits and underscores, as in 'tick_to_decode'";
            return Err(PyValueError::new_err(format!("a hop cannot be called {name:?}; {sentence}")));
        }
        if !(1..=MAX_SAMPLES).contains(&samples) {
            let sentence = format!("room for {samples} samples is not possible; give 1 to {MAX_SAMPLES}");
            return Err(PyValueError::new_err(sentence));
        }
        let room = py.detach(|| allocate_mapped(samples as usize)).ok_or_else(|| {
            PyMemoryError::new_err(format!("there is no memory for {samples} samples of 16 bytes; give fewer"))
        })?;
        let clock = host_clock(py)?;
        Ok(Self {
            name,
            number: HOPS.fetch_add(1, Ordering::Relaxed),
            room,
            recorded: AtomicUsize::new(0),
            begun: AtomicU64::new(clock.ticks()),
            born: AtomicU64::new(ForkGeneration::current().number()),
            clock,
        })
    }

    /// Records a sample from a stamp of this host to now: `hop.since(tick.stamp)` measures a tick's way to this call.
    fn since(&self, stamp: u64) -> PyResult<()> {
        let now = self.clock.ticks();
        self.between(stamp, now)
    }

    /// Records a sample from one stamp to a later one, both of this host; a sample to an earlier stamp is counted as
    /// negative, and in no percentile.
    fn between(&self, earlier: u64, later: u64) -> PyResult<()> {
        if earlier == NONE || later == NONE {
            let sentence = "0 is no stamp: only an event from a topic has a stamp; give the stamp of such an event, or \
                            an earlier tickpath.now()";
            return Err(PyValueError::new_err(sentence));
        }
        self.enter_process();
        self.store(earlier, later);
        Ok(())
    }

    /// Discards all samples, so that measurement starts here, as after a warm-up.
    fn clear(&self) {
        self.restart(ForkGeneration::current());
    }

    /// Max samples stored; samples beyond it are only counted.
    #[getter]
    fn samples(&self) -> usize {
        self.room.len()
    }

    /// Number of samples stored.
    #[getter]
    fn count(&self) -> usize {
        self.enter_process();
        self.recorded.load(Ordering::Relaxed).min(self.room.len())
    }

    /// Number of samples that did not fit.
    #[getter]
    fn left_out(&self) -> usize {
        self.enter_process();
        self.recorded.load(Ordering::Relaxed).saturating_sub(self.room.len())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        let hop = this.get();
        let born = hop.enter_process();
        OPEN_BLOCKS.with_borrow_mut(|open| open.push(OpenBlock { hop: hop.number, born, from: hop.clock.ticks() }));
        this
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) -> PyResult<()> {
        let now = self.clock.ticks();
        let left = OPEN_BLOCKS.with_borrow_mut(|open| {
            let index = open.iter().rposition(|block| block.hop == self.number)?;
            Some(open.remove(index))
        });
        let Some(OpenBlock { born, from, .. }) = left else {
            let sentence = "was left on a thread that had not entered it; use `with`, which does both, or since(stamp)";
            return Err(PyRuntimeError::new_err(format!("the hop {} {sentence}", self.name)));
        };
        // A block that was open at a fork belongs to the parent.
        if !born.is_forked() {
            self.store(from, now);
        }
        Ok(())
    }

    fn __call__<'py>(this: &Bound<'py, Self>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("tickpath._timed")?.getattr("timed")?.call1((this, function))
    }

    fn __repr__(&self) -> String {
        format!("<tickpath.lab.Hop {}, {} samples>", self.name, self.count())
    }

    /// Returns the measurements of these hops as a result file's text; None if none has a sample.
    #[staticmethod]
    fn _result(
        py: Python<'_>,
        hops: Vec<Py<Self>>,
        command: &str,
        runtime: &str,
        record_cost_ns: f64,
    ) -> Option<String> {
        py.detach(|| {
            let hops: Vec<&Self> = hops.iter().map(Py::get).collect();
            let result = result_of(&hops, command, runtime, record_cost_ns)?;
            Some(serde_json::to_string(&result).expect("every key of a result is a text"))
        })
    }
}

impl PyHop {
    /// Starts anew in a fork. Returns the present process.
    #[inline]
    fn enter_process(&self) -> ForkGeneration {
        let process = ForkGeneration::current();
        if self.born.load(Ordering::Relaxed) != process.number() {
            self.restart(process);
        }
        process
    }

    /// Starts without samples. Writing every slot gives a fork memory of its own.
    #[cold]
    fn restart(&self, process: ForkGeneration) {
        for slot in &self.room {
            slot.iter().for_each(|stamp| stamp.store(NONE, Ordering::Relaxed));
        }
        self.recorded.store(0, Ordering::Relaxed);
        self.begun.store(self.clock.ticks(), Ordering::Relaxed);
        self.born.store(process.number(), Ordering::Relaxed);
    }

    #[inline]
    fn store(&self, from: u64, to: u64) {
        // Samples beyond the capacity are counted only.
        let index = self.recorded.fetch_add(1, Ordering::Relaxed);
        if let Some([begin, end]) = self.room.get(index) {
            begin.store(from, Ordering::Relaxed);
            // Pairs with the acquire of `stored`.
            end.store(to, Ordering::Release);
        }
    }

    /// Returns the samples that are complete.
    fn stored(&self) -> Samples {
        let pair = |[begin, end]: &[AtomicU64; 2]| {
            let to = end.load(Ordering::Acquire);
            (to != NONE).then(|| (begin.load(Ordering::Relaxed), to))
        };
        Samples(self.room[..self.count()].iter().filter_map(pair).collect())
    }

    /// Returns a note if samples did not fit, with the remedy.
    fn overflow_note(&self) -> Option<String> {
        let (name, room, more) = (&self.name, self.room.len(), self.left_out());
        let kept = format!("own.{name} has its first {room} samples, and {more} more did not fit");
        let remedy = format!("give more room at its first use, lab.hop(\"{name}\", samples=…), or clear() it in time");
        (more > 0).then(|| format!("{kept}: its percentiles leave these out; {remedy}"))
    }
}

/// Allocates slots with their pages mapped, since a page fault between two stamps would be part of a sample. None
/// without the memory.
fn allocate_mapped(samples: usize) -> Option<Box<[[AtomicU64; 2]]>> {
    let mut room = Vec::new();
    room.try_reserve_exact(samples).ok()?;
    // The system maps no page for zeros alone.
    room.extend((0..samples).map(|_| [AtomicU64::new(1), AtomicU64::new(NONE)]));
    Some(room.into_boxed_slice())
}

/// Builds a result file with one run of all hops that have a sample. The host's share of the run is unknown, since it
/// was not watched.
fn result_of(hops: &[&PyHop], command: &str, runtime: &str, record_cost_ns: f64) -> Option<ResultFile> {
    let hops: Vec<&PyHop> = hops.iter().copied().filter(|hop| hop.count() > 0).collect();
    let clock = hops.first()?.clock;
    let begun = hops.iter().map(|hop| hop.begun.load(Ordering::Relaxed)).min()?;
    let mut result = ResultFile::new("own", command, &rfc3339(clock.calibration().utc_ns_of(begun)));
    // The optimisation level of release builds is unknown here.
    result.profile = cfg!(debug_assertions).then(|| "debug".to_owned());
    result.host = Host { clock_cost_ns: Some(clock_cost_ns(&clock)), ..facts(&clock) };
    let notes: Vec<String> = hops.iter().filter_map(|hop| hop.overflow_note()).collect();
    let hop_of = |hop: &&PyHop| (format!("{OWN_PREFIX}{}", hop.name), hop.stored().unwatched_hop(clock.calibration()));
    result.runs = vec![Run {
        target: "own://".to_owned(),
        client: "python".to_owned(),
        repeat: 1,
        valid: notes.is_empty(),
        notes,
        software: Software {
            client: Some("tickpath".to_owned()),
            client_version: Some(result.tickpath.clone()),
            runtime: Some(runtime.to_owned()),
            ..Software::default()
        },
        figures: [("record_cost_ns".to_owned(), record_cost_ns)].into(),
        hops: hops.iter().map(hop_of).collect(),
        ..Run::default()
    }];
    Some(result)
}
