//! Time on the path: raw ticks of one counter for the whole host, converted once at the end.
//!
//! ```text
//!   invariant TSC ──> HostClock::ticks() ──> stamps in frames ──> differences in ticks ──> nanoseconds, once
//!                          │
//!                     Calibration: one a user, root's if there is one, in shared memory, copied into each log's header
//! ```
//!
//! Two processes that calibrate for themselves drift apart by milliseconds an hour; so the first process of a user in
//! a boot takes root's rate or measures the rate, and all others of that user read it (`calibration.rs`). Where the
//! processor has no invariant counter the clock is the operating system's, with a tick of a nanosecond, and its
//! [`ClockSource`] is `Os`.
//!
//! Only this crate may read time, sleep, or call the scheduler.

mod adaptive;
mod calibration;
mod clock;
mod counter;
mod date;
mod fork;
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
pub use calibration::{Calibration, CalibrationError, ClockSource, utc_ns};
pub use clock::{Clock, SimulatedClock};
pub use date::{rfc3339, utc_day};
pub use fork::ForkGeneration;
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
