//! The clock that takes the stamps.

use pyo3::prelude::*;
use tickpath_clock::{Clock, HostClock};

use crate::error::connect_error;

/// Returns the host's clock, or raises the reason why there is none.
pub fn host_clock(py: Python<'_>) -> PyResult<HostClock> {
    HostClock::get().map_err(|e| connect_error(py, &e))
}

/// Returns the current time in ticks of the host's clock, the unit of all stamps.
#[pyfunction]
pub fn now(py: Python<'_>) -> PyResult<u64> {
    Ok(host_clock(py)?.ticks())
}

/// Converts a stamp of this host to UTC, in nanoseconds since the Unix epoch.
#[pyfunction]
pub fn utc_ns(py: Python<'_>, stamp: u64) -> PyResult<u64> {
    Ok(host_clock(py)?.calibration().utc_ns_of(stamp))
}

/// Converts a UTC time, in nanoseconds since the Unix epoch, to a stamp of this host: for events that were stamped on
/// another host, or long ago.
#[pyfunction]
pub fn stamp_at(py: Python<'_>, utc_ns: u64) -> PyResult<u64> {
    Ok(host_clock(py)?.calibration().ticks_of_utc_ns(utc_ns))
}

/// Returns the nanoseconds from one stamp of this host to a later one, negative if the second stamp is earlier.
#[pyfunction]
pub fn ns_between(py: Python<'_>, earlier: u64, later: u64) -> PyResult<i64> {
    Ok(host_clock(py)?.ns_between(earlier, later))
}
