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

use pyo3::intern;
use pyo3::prelude::*;

use crate::error::Error;
use crate::event::{TopOfBook, Trade};
use crate::orders::Orders;
use crate::report::Report;
use crate::topic::Subscriber;

/// A report does not wake who sleeps for ticks: so late it is heard where nothing else comes.
const LOOK: Duration = Duration::from_millis(1);

/// How much the OMS may say between two ticks.
const MOST_HEARD: usize = 64;

/// Trades until the strategy gives `stop`, which is True, or to the end of a recording.
#[pyfunction]
pub fn trade(
    strategy: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    ticks: &Bound<'_, Subscriber>,
    orders: &Bound<'_, Orders>,
    sleeps: bool,
    is_recording: bool,
) -> PyResult<bool> {
    let py = strategy.py();
    let (told, ticks, session) = (Told { strategy, stop, orders }, ticks.get(), orders.get());
    let mut has_come = false;
    loop {
        // Asked first: what somebody published before he was gone is there.
        let is_over = is_recording && ticks.is_left(py)?;
        let mut next = ticks.next_event(py)?;
        while let Some(event) = next {
            has_come = true;
            if told.tick(event)? || told.hear()? {
                return Ok(true);
            }
            next = ticks.next_event(py)?;
        }
        if told.hear()? {
            return Ok(true);
        }
        // A subscriber knows its topic once it has looked for it.
        if is_over && ticks.is_left(py)? {
            let nothing = "nothing is recorded there; check the folder in the URL, and the topic in it";
            return if has_come { Ok(false) } else { Err(Error::Receive.raise(py, nothing)) };
        }
        if sleeps {
            ticks.wait_within(py, Some(LOOK))?;
        } else if let Some(event) = ticks.spin(py, is_recording, || session.has_news())? {
            has_come = true;
            if told.tick(event)? || told.hear()? {
                return Ok(true);
            }
        }
    }
}

/// Tells the strategy what the OMS has said; True if it gives `stop`.
#[pyfunction]
pub fn hear(strategy: &Bound<'_, PyAny>, stop: &Bound<'_, PyAny>, orders: &Bound<'_, Orders>) -> PyResult<bool> {
    Told { strategy, stop, orders }.hear()
}

/// A strategy that is told.
struct Told<'a, 'py> {
    strategy: &'a Bound<'py, PyAny>,
    /// What it gives to end the run.
    stop: &'a Bound<'py, PyAny>,
    orders: &'a Bound<'py, Orders>,
}

impl<'py> Told<'_, 'py> {
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
            if self.tell(if is_report { intern!(py, "on_report") } else { intern!(py, "on_notice") }, said)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tell(&self, method: &Bound<'py, pyo3::types::PyString>, event: Bound<'py, PyAny>) -> PyResult<bool> {
        Ok(self.strategy.call_method1(method, (event, self.orders))?.is(self.stop))
    }
}
