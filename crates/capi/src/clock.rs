//! Stamps, and their conversion to nanoseconds.

use tickpath_clock::{Clock, HostClock};

use crate::handle::catch_panics;
use crate::status::{CallFailure, tp_status};

/// Returns the stamp of the present moment, in ticks of the host's clock, which all processes of the host share; 0 if
/// the clock cannot be read, for the reason in tp_last_error. The first call of the first process since the host
/// started takes 0.2 s.
#[unsafe(no_mangle)]
pub extern "C" fn tp_now() -> u64 {
    with_clock(|clock| clock.ticks())
}

/// Returns the present time in nanoseconds since the Unix epoch, by the clock that makes stamps; 0 if the clock cannot
/// be read.
#[unsafe(no_mangle)]
pub extern "C" fn tp_now_ns() -> u64 {
    with_clock(|clock| clock.calibration().utc_ns_of(clock.ticks()))
}

/// Returns the nanoseconds from one stamp of this host to another, negative if `to` is the earlier stamp; 0 if the
/// clock cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn tp_ns_between(from: u64, to: u64) -> i64 {
    with_clock(|clock| clock.ns_between(from, to))
}

/// Returns the time at which a stamp of this host was made, in nanoseconds since the Unix epoch; 0 if the clock cannot
/// be read.
#[unsafe(no_mangle)]
pub extern "C" fn tp_utc_ns(stamp: u64) -> u64 {
    with_clock(|clock| clock.calibration().utc_ns_of(stamp))
}

fn with_clock<N: Default>(ask: impl FnOnce(HostClock) -> N) -> N {
    let mut answer = N::default();
    catch_panics(|| {
        answer = ask(HostClock::get().map_err(|e| CallFailure::new(tp_status::TP_OTHER, e.to_string()))?);
        Ok(())
    });
    answer
}
