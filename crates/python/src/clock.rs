//! The clock of which stamps are.

use pyo3::prelude::*;
use tickpath_clock::{Clock, HostClock};

use crate::error::Error;

/// The clock, or the exception that says why there is none.
pub fn host_clock(py: Python<'_>) -> PyResult<HostClock> {
    HostClock::get().map_err(|e| Error::Connect.raise(py, &e.to_string()))
}

/// Now, in ticks of the host's clock, as stamps are.
#[pyfunction]
pub fn now(py: Python<'_>) -> PyResult<u64> {
    Ok(host_clock(py)?.ticks())
}

/// A stamp of this host as UTC, in nanoseconds since the Unix epoch.
#[pyfunction]
pub fn utc_ns(py: Python<'_>, stamp: u64) -> PyResult<u64> {
    Ok(host_clock(py)?.calibration().utc_ns_of(stamp))
}

/// The stamp on this host of a time in UTC, in nanoseconds since the Unix epoch: for what was stamped elsewhere, or long ago.
#[pyfunction]
pub fn stamp_at(py: Python<'_>, utc_ns: u64) -> PyResult<u64> {
    Ok(host_clock(py)?.calibration().ticks_of_utc_ns(utc_ns))
}

/// Nanoseconds from one stamp to a later one, negative if it is earlier. Both are of this host.
#[pyfunction]
pub fn ns_between(py: Python<'_>, earlier: u64, later: u64) -> PyResult<i64> {
    Ok(host_clock(py)?.ns_between(earlier, later))
}
