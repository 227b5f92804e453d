//! Stamps, and their conversion to nanoseconds.

use tickpath_clock::{Clock, HostClock};

use crate::handle::guarded;
use crate::status::{Failure, tp_status};

/// Returns the stamp of the present moment, in ticks of the host's clock, which all processes of the host share; 0 if
/// the clock cannot be read, for the reason in tp_last_error. The first call of the first process since the host
/// started takes 0.2 s.
#[unsafe(no_mangle)]
pub extern "C" fn tp_now() -> u64 {
    asked(|clock| clock.ticks())
}

/// Returns the present time in nanoseconds since the Unix epoch, by the clock that makes stamps; 0 if the clock cannot
/// be read.
#[unsafe(no_mangle)]
pub extern "C" fn tp_now_ns() -> u64 {
    asked(|clock| clock.calibration().utc_ns_of(clock.ticks()))
}

/// Returns the nanoseconds from one stamp of this host to another, negative if `to` is the earlier stamp; 0 if the
/// clock cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn tp_ns_between(from: u64, to: u64) -> i64 {
    asked(|clock| clock.ns_between(from, to))
}

/// Returns the time at which a stamp of this host was made, in nanoseconds since the Unix epoch; 0 if the clock cannot
/// be read.
#[unsafe(no_mangle)]
pub extern "C" fn tp_utc_ns(stamp: u64) -> u64 {
    asked(|clock| clock.calibration().utc_ns_of(stamp))
}

fn asked<N: Default>(ask: impl FnOnce(HostClock) -> N) -> N {
    let mut answer = N::default();
    guarded(|| {
        answer = ask(HostClock::get().map_err(|e| Failure::new(tp_status::TP_OTHER, e.to_string()))?);
        Ok(())
    });
    answer
}
