//! The loop of `tickpath.run`, which passes events to a strategy until the strategy stops.
//!
//! ```text
//!   Subscriber ── TopOfBook, Trade ──────────────> on_tick ───┐
//!              └─ Message, Foreign, Gap ─────────> on_other   ├─ STOP ends the run, and so does an exception
//!   Orders ────── Report ────────────────────────> on_report  │
//!          ├───── ReportDetail ──────────────────> on_detail  │
//!          └───── NotTaken, InDoubt, Notice, Gap ─> on_notice ┘
//! ```
//! Events are taken out one at a time, so that all events after the one that ends the run stay unread. The session is
//! polled between any two ticks, which keeps it alive. A spinning run polls both without the interpreter, which is then
//! free for other threads.

use std::cell::Cell;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tickpath_clock::{Clock, HostClock};

use crate::clock::host_clock;
use crate::error::ErrorClass;
use crate::event::{PyTopOfBook, PyTrade};
use crate::orders::PyOrders;
use crate::report::{PyNotice, PyReport, PyReportDetail};
use crate::topic::{PySubscriber, timeout_of};

/// The longest sleep for ticks of one topic: neither a report nor a tick of another topic ends it.
const MAX_TICK_SLEEP: Duration = Duration::from_millis(1);

/// Time that an order waits for its venue before the strategy is notified, in nanoseconds.
const VENUE_WAIT_NS: i64 = 1_000_000_000;

/// Max session events between two ticks.
const MAX_SESSION_EVENTS: usize = 64;

/// Runs the strategy until it returns `stop`, or to the end of a recording and until no report has arrived for `linger`
/// seconds after it. In either case `denied` then holds the number of requests that the OMS denied, by the check's
/// name.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "tickpath.run is its only caller")]
pub fn trade(
    strategy: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    ticks: Vec<Py<PySubscriber>>,
    orders: &Bound<'_, PyOrders>,
    sleeps: bool,
    is_recording: bool,
    linger: f64,
    denied: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let (py, linger) = (strategy.py(), timeout_of(Some(linger))?);
    let clock = host_clock(py)?;
    let venue_wait = Cell::new(VenueWait { checked_at: clock.ticks(), order: None, is_notified: false });
    let (run, session) = (StrategyRun { strategy, stop, orders, denied, clock, venue_wait }, orders.get());
    let ticks = TickTopics::of(&ticks);
    let _reserved = session.begin_run(py)?;
    if run.run_loop(py, &ticks, sleeps, is_recording)? {
        return Ok(());
    }
    // Reports of the last orders; while the OMS is disconnected, they are still to come.
    while session.wait_within(py, linger)? || !session.is_connected(py)? {
        if run.pass_session_events()? {
            break;
        }
    }
    Ok(())
}

/// The topics of a run, one or more.
struct TickTopics<'a> {
    topics: Vec<&'a PySubscriber>,
    /// Whether each topic had an event.
    has_events: Vec<Cell<bool>>,
    /// Index of the topic that is polled first; the topics take turns.
    next_topic: Cell<usize>,
}

impl<'a> TickTopics<'a> {
    fn of(topics: &'a [Py<PySubscriber>]) -> Self {
        let has_events = vec![Cell::new(false); topics.len()];
        Self { topics: topics.iter().map(Py::get).collect(), has_events, next_topic: Cell::new(0) }
    }

    /// Takes the next event of any topic, if there is one.
    fn next_event(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        for _ in &self.topics {
            let turn = self.next_topic.get();
            self.next_topic.set((turn + 1) % self.topics.len());
            if let Some(event) = self.topics[turn].next_event(py)? {
                self.has_events[turn].set(true);
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Sleeps until the topic whose turn it is has an event, [`MAX_TICK_SLEEP`] at most.
    fn wait(&self, py: Python<'_>) -> PyResult<bool> {
        self.topics[self.next_topic.get()].wait_within(py, Some(MAX_TICK_SLEEP))
    }

    /// Spins for the next event of any topic, as [`PySubscriber::spin`].
    fn spin(
        &self,
        py: Python<'_>,
        is_over: impl Fn() -> bool,
        has_news: impl Fn() -> bool + Sync,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (topics, turn) = (&self.topics, self.next_topic.get());
        let others = || topics.iter().enumerate().any(|(number, topic)| number != turn && topic.has_event());
        let event = topics[turn].spin(py, is_over, || has_news() || others())?;
        if event.is_some() {
            self.has_events[turn].set(true);
        }
        Ok(event)
    }

    /// Returns the first topic that had no event.
    fn first_silent(&self) -> Option<&PySubscriber> {
        self.has_events.iter().position(|has_event| !has_event.get()).map(|topic| self.topics[topic])
    }

    /// Reports whether no topic has a publisher.
    fn have_no_publisher(&self, py: Python<'_>) -> PyResult<bool> {
        for topic in &self.topics {
            if !topic.has_no_publisher(py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A strategy, with the state of its run.
struct StrategyRun<'a, 'py> {
    strategy: &'a Bound<'py, PyAny>,
    /// The value that the strategy returns to end the run.
    stop: &'a Bound<'py, PyAny>,
    orders: &'a Bound<'py, PyOrders>,
    /// Denied requests by the check's name.
    denied: &'a Bound<'py, PyDict>,
    clock: HostClock,
    venue_wait: Cell<VenueWait>,
}

/// The last look at orders that wait for their venue.
#[derive(Clone, Copy)]
struct VenueWait {
    /// Time of that look, in ticks.
    checked_at: u64,
    /// The oldest order that waited then, by the OMS's id.
    order: Option<u64>,
    /// The strategy has been notified.
    is_notified: bool,
}

impl<'py> StrategyRun<'_, 'py> {
    /// Runs the strategy. Returns true if it returned `stop`, false at the end of a recording.
    fn run_loop(&self, py: Python<'_>, ticks: &TickTopics<'_>, sleeps: bool, is_recording: bool) -> PyResult<bool> {
        let session = self.orders.get();
        let mut next = None;
        loop {
            // Checked before polling: a publisher's last messages are there once it has gone.
            let is_over = is_recording && ticks.have_no_publisher(py)?;
            if next.is_none() {
                next = ticks.next_event(py)?;
            }
            while let Some(event) = next {
                if self.pass_tick(event)? || self.pass_session_events()? {
                    return Ok(true);
                }
                next = ticks.next_event(py)?;
            }
            if self.pass_session_events()? {
                return Ok(true);
            }
            // A subscriber knows its topic's publisher only after it has polled.
            if is_over && ticks.have_no_publisher(py)? {
                let Some(topic) = ticks.first_silent() else { return Ok(false) };
                let remedy = "give the folder of recordings in the URL, and the topic separately";
                let sentence = format!("nothing is recorded in {}; {remedy}", topic.__repr__());
                return Err(ErrorClass::ReceiveError.raise(py, &sentence));
            }
            next = if sleeps {
                ticks.wait(py)?;
                None
            } else {
                ticks.spin(py, || is_recording || self.is_check_due(), || session.has_news())?
            };
        }
    }

    fn pass_tick(&self, event: Py<PyAny>) -> PyResult<bool> {
        let py = self.strategy.py();
        let event = event.into_bound(py);
        let is_tick = event.is_instance_of::<PyTopOfBook>() || event.is_instance_of::<PyTrade>();
        self.call_strategy(if is_tick { intern!(py, "on_tick") } else { intern!(py, "on_other") }, event)
    }

    fn pass_session_events(&self) -> PyResult<bool> {
        let py = self.strategy.py();
        for _ in 0..MAX_SESSION_EVENTS {
            let Some(event) = self.orders.get().next_event(py)? else { return self.check_waiting_order(py) };
            let event = event.into_bound(py);
            let method = if event.is_instance_of::<PyReport>() {
                intern!(py, "on_report")
            } else if event.is_instance_of::<PyReportDetail>() {
                intern!(py, "on_detail")
            } else {
                intern!(py, "on_notice")
            };
            self.count(&event)?;
            if self.call_strategy(method, event)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_check_due(&self) -> bool {
        self.clock.ns_between(self.venue_wait.get().checked_at, self.clock.ticks()) >= VENUE_WAIT_NS
    }

    /// Notifies the strategy once when the oldest order without an answer of its venue is the same as a second ago.
    fn check_waiting_order(&self, py: Python<'py>) -> PyResult<bool> {
        if !self.is_check_due() {
            return Ok(false);
        }
        let (now, before) = (self.clock.ticks(), self.venue_wait.get());
        let waiting = self.orders.get().unanswered(py)?;
        let order = waiting.map(|(order, _)| order);
        let has_waited = waiting.filter(|_| order == before.order);
        self.venue_wait.set(VenueWait {
            checked_at: now,
            order,
            is_notified: order.is_some() && (before.is_notified || has_waited.is_some()),
        });
        match has_waited {
            Some((_, own)) if !before.is_notified => {
                let notice = Bound::new(py, PyNotice::waiting(own))?;
                self.call_strategy(intern!(py, "on_notice"), notice.into_any())
            }
            _ => Ok(false),
        }
    }

    /// Counts the denial of a request that this program sent.
    fn count(&self, event: &Bound<'py, PyAny>) -> PyResult<()> {
        let Ok(report) = event.cast::<PyReport>() else { return Ok(()) };
        let Some(name) = report.get().denied_by() else { return Ok(()) };
        let before = self.denied.get_item(&name)?.map_or(Ok(0), |count| count.extract::<u64>())?;
        self.denied.set_item(name, before + 1)
    }

    fn call_strategy(&self, method: &Bound<'py, PyString>, event: Bound<'py, PyAny>) -> PyResult<bool> {
        let returned = self.strategy.call_method1(method, (event, self.orders))?;
        if returned.is_none() || returned.is(self.stop) {
            return Ok(!returned.is_none());
        }
        let sentence = format!("{method} returned {}; return tickpath.STOP to end the run, or None", returned.repr()?);
        Err(PyTypeError::new_err(sentence))
    }
}
