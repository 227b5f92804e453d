//! Time on the path: raw ticks of one counter for the whole host, converted once at the end.
//!
//! ```text
//!   invariant TSC ──> HostClock::ticks() ──> stamps in frames ──> differences in ticks ──> nanoseconds, once
//!                          │
//!                     Calibration: one a user, root's if there is one, in shared memory, copied into each log's header
//! ```
//!
//! Two processes that calibrate for themselves drift apart by milliseconds an hour; so the first process of a user in
//! a boot takes root's rate or measures the rate, and all others of that user read it (`docs/design/calibration.md`).
//! Where the processor has no invariant counter the clock is the operating system's, with a tick of a nanosecond, and
//! its [`ClockSource`] is `Os`.
//!
//! ```
//! use tickpath_clock::{Clock, HostClock};
//!
//! let clock = HostClock::get()?;
//! let begin = clock.ticks();
//! let sum: u64 = (0..1_000).sum();
//! let ns = clock.ns_between(begin, clock.ticks());
//! println!("the sum is {sum}, after {ns} ns");
//! # Ok::<(), tickpath_clock::CalibrationError>(())
//! ```
//!
//! Pacing, pinning, priorities, the wait strategies ([`Wait`]), the cost of a wake-up, and the causes of gaps in a
//! thread's run ([`GapDetector`]) are here, too.
//!
//! # Invariants
//!
//! * No other crate reads the time, sleeps, or calls the scheduler; clippy refuses it.
//! * While the calibration's file exists, two processes of a user never have two calibrations, and users that start
//!   after root have root's. If the file is removed, ticks from before and after still count one counter, whose rate
//!   was measured twice.
//! * A calibration is trusted if it belongs to this user or root, and no other user can write to it.
//! * A value that is computed once per process ([`SetOnce`]) makes no thread wait for another: in a fork such a wait
//!   would never end. Code that Python and C load has no other kind of lazy `static`.

mod adaptive;
mod calibration;
mod clock;
mod clock_source;
mod counter;
mod date;
mod fork;
mod futex;
mod gap;
mod host;
mod kernel;
mod logout;
mod offset;
mod once;
mod pace;
mod quota;
mod schedule;
mod token_bucket;
mod wait;
mod wake_up;

pub use adaptive::AdaptiveWait;
pub use calibration::{Calibration, CalibrationError, utc_ns};
pub use clock::{Clock, SimulatedClock};
pub use clock_source::ClockSource;
pub use date::{rfc3339, utc_day};
pub use fork::ForkGeneration;
pub use futex::{MAX_SLEEP_FLAGS, WakeBarrier, sleep_while, sleep_while_all_set, wake_all};
pub use gap::{GapCause, GapDetector, HOST_GAP_NS, SchedulingGap};
pub use host::HostClock;
pub use kernel::{SchedulerStats, cpu_ns, track_stops};
pub use logout::LogoutCleanup;
pub use offset::ClockOffset;
pub use once::SetOnce;
pub use pace::{IdleAction, Lateness, Pacer};
pub use quota::{CpuQuota, ReadFile};
pub use schedule::{
    ParsePriorityError, Priority, ScheduleError, apply_schedule, cpus, end_with_parent, pin_to_cpu, set_priority,
    set_timer_slack,
};
pub use token_bucket::{RequestRate, TokenBucket};
pub use wait::{ParseWaitError, Wait, relax, sleep_ns, yield_now};
pub use wake_up::{WakeUpCost, WakeUpSamples};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
