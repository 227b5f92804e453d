//! The loop of `tickpath.run`, which tells a strategy what has come until it wants no more.
//!
//! ```text
//!   Subscriber ── TopOfBook, Trade ──────────────> on_tick ───┐
//!              └─ Message, Foreign, Gap ─────────> on_other   ├─ STOP ends the run, and so does what one raises
//!   Orders ────── Report ────────────────────────> on_report  │
//!          └───── NotTaken, InDoubt, Notice, Gap ─> on_notice ┘
//! ```
//! Events are taken out one at a time: what is behind one that ends the run stays where it is. Between any two ticks the
//! session is heard, which keeps it alive. Who spins looks at both without the interpreter, which other threads have then.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::Error;
use crate::event::{TopOfBook, Trade};
use crate::orders::Orders;
use crate::report::Report;
use crate::topic::{Subscriber, timeout_of};

/// A report does not wake who sleeps for ticks: so late it is heard where nothing else comes.
const LOOK: Duration = Duration::from_millis(1);

/// How much the OMS may say between two ticks.
const MOST_HEARD: usize = 64;

/// Trades until the strategy gives `stop`, or to the end of a recording, and until no report has come for `linger` seconds
/// then. However that ends, `denied` holds then how many requests the OMS has denied, by the check's name.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "tickpath.run is its only caller")]
pub fn trade(
    strategy: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    ticks: &Bound<'_, Subscriber>,
    orders: &Bound<'_, Orders>,
    sleeps: bool,
    is_recording: bool,
    linger: f64,
    denied: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let (py, linger) = (strategy.py(), timeout_of(Some(linger))?);
    let (told, ticks, session) = (Told { strategy, stop, orders, denied }, ticks.get(), orders.get());
    let _run = session.begin_run(py)?;
    if told.trades(py, ticks, sleeps, is_recording)? {
        return Ok(());
    }
    // What the last orders came to; while the OMS is away, that is still to come.
    while session.wait_within(py, linger)? || !session.is_connected(py)? {
        if told.hear()? {
            break;
        }
    }
    Ok(())
}

/// A strategy that is told.
struct Told<'a, 'py> {
    strategy: &'a Bound<'py, PyAny>,
    /// What it gives to end the run.
    stop: &'a Bound<'py, PyAny>,
    orders: &'a Bound<'py, Orders>,
    /// Denied requests by the check's name.
    denied: &'a Bound<'py, PyDict>,
}

impl<'py> Told<'_, 'py> {
    /// True if it gives `stop`, False at the end of a recording.
    fn trades(&self, py: Python<'_>, ticks: &Subscriber, sleeps: bool, is_recording: bool) -> PyResult<bool> {
        let session = self.orders.get();
        let (mut has_come, mut next) = (false, None);
        loop {
            // Asked first: what somebody published before he was gone is there.
            let is_over = is_recording && ticks.is_left(py)?;
            if next.is_none() {
                next = ticks.next_event(py)?;
            }
            while let Some(event) = next {
                has_come = true;
                if self.tick(event)? || self.hear()? {
                    return Ok(true);
                }
                next = ticks.next_event(py)?;
            }
            if self.hear()? {
                return Ok(true);
            }
            // A subscriber knows its topic once it has looked for it.
            if is_over && ticks.is_left(py)? {
                let nothing =
                    "nothing is recorded there; give the folder of recordings in the URL, and the topic apart";
                return if has_come { Ok(false) } else { Err(Error::Receive.raise(py, nothing)) };
            }
            next = if sleeps {
                ticks.wait_within(py, Some(LOOK))?;
                None
            } else {
                ticks.spin(py, is_recording, || session.has_news())?
            };
        }
    }

    /// Tells what has come by the topic.
    fn tick(&self, event: Py<PyAny>) -> PyResult<bool> {
        let py = self.strategy.py();
        let event = event.into_bound(py);
        let is_tick = event.is_instance_of::<TopOfBook>() || event.is_instance_of::<Trade>();
        self.tell(if is_tick { intern!(py, "on_tick") } else { intern!(py, "on_other") }, event)
    }

    /// Tells what the OMS has said.
    fn hear(&self) -> PyResult<bool> {
        let py = self.strategy.py();
        for _ in 0..MOST_HEARD {
            let Some(said) = self.orders.get().next_event(py)? else { break };
            let said = said.into_bound(py);
            let is_report = said.is_instance_of::<Report>();
            self.count(&said)?;
            if self.tell(if is_report { intern!(py, "on_report") } else { intern!(py, "on_notice") }, said)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts a denial of a request that this program sent.
    fn count(&self, said: &Bound<'py, PyAny>) -> PyResult<()> {
        let Ok(report) = said.cast::<Report>() else { return Ok(()) };
        let Some(name) = report.get().denied_by() else { return Ok(()) };
        let before = self.denied.get_item(&name)?.map_or(Ok(0), |count| count.extract::<u64>())?;
        self.denied.set_item(name, before + 1)
    }

    fn tell(&self, method: &Bound<'py, PyString>, event: Bound<'py, PyAny>) -> PyResult<bool> {
        let given = self.strategy.call_method1(method, (event, self.orders))?;
        if given.is_none() || given.is(self.stop) {
            return Ok(!given.is_none());
        }
        let sentence = format!("{method} gave {}; give tickpath.STOP to end the run, else nothing", given.repr()?);
        Err(PyTypeError::new_err(sentence))
    }
}
