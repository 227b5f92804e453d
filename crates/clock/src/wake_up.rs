//! The cost of waking a thread that sleeps, and its parts.
//!
//! ```text
//!   waker     from │ word := turn, futex wake │ called
//!   sleeper   ……………………………………… out of the idle state, interrupt, scheduler │ runs
//!
//!   call    from to called
//!   asleep  from to runs, of a thread whose CPU has gone idle
//!   awake   from to runs, of a thread whose CPU was kept busy: by a thread that spins when nothing else runs
//! ```
//! `asleep` minus `awake` is the cost of the idle state, in a virtual machine with that of the host.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use crate::counter::monotonic_ns;
use crate::futex::{sleep_while, wake_one};
use crate::once::SetOnce;
use crate::schedule::{
    Priority, ScheduleError, cpus_before_pinning, current_cpu, pin_to_cpu, run_when_idle, set_priority,
};
use crate::wait::{relax, sleep_ns, yield_now};

/// Time for which the sleeper is left alone, in nanoseconds: its CPU has gone idle by then, even if it polls for a
/// while first.
const QUIET_NS: u64 = 250_000;

/// Time for which the waker spins before it wakes the sleeper, in nanoseconds.
const AWAKE_NS: u64 = 50_000;

/// Time that the sleeper waits beyond the waker's limit, in nanoseconds.
const SLEEP_MARGIN_NS: u64 = 20_000_000;

/// Upper bound for a measurement of this host, in milliseconds.
const MAX_MEASURE_MS: u64 = 50;

/// Cost of waking a thread, in nanoseconds: medians.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUpCost {
    /// Duration of the waker's call to the kernel.
    pub call_ns: u64,
    /// From before that call until the thread runs; its CPU has gone idle meanwhile.
    pub asleep_ns: u64,
    /// The same while that CPU is kept from going idle; none if it was not measured, or is not possible.
    pub awake_ns: Option<u64>,
}

impl WakeUpCost {
    /// Returns the wake-up cost of a thread that may run where the calling thread may, by a waker on another CPU if
    /// this process has one; without `awake_ns`. Measured once per process, which takes some milliseconds.
    pub fn of_this_host() -> &'static Self {
        static MEASURED: SetOnce<WakeUpCost> = SetOnce::new();
        static IS_MEASURING: AtomicBool = AtomicBool::new(false);
        if MEASURED.get().is_none() && IS_MEASURING.swap(true, Ordering::Relaxed) {
            // Two measurements at once would disturb each other. But this process may be a fork, whose measuring
            // thread stayed with the parent: so the wait is bounded.
            for _ in 0..MAX_MEASURE_MS {
                if MEASURED.get().is_some() {
                    break;
                }
                sleep_ns(1_000_000);
            }
        }
        MEASURED.get_or_init(Self::measure)
    }

    /// Measures the wake-up cost anew.
    pub fn measure() -> Self {
        const ROUNDS: usize = 15;
        const MAX_NS: u64 = 8_000_000;
        const MIN_SAMPLES: usize = 5;
        /// Default if the measurement yields too few values.
        const USUAL: WakeUpCost = WakeUpCost { call_ns: 5_000, asleep_ns: 50_000, awake_ns: None };
        let own = current_cpu();
        let others = cpus_before_pinning().iter().copied().filter(|cpu| Some(*cpu) != own);
        let near = others.min_by_key(|cpu| cpu.abs_diff(own.unwrap_or_default()));
        let samples = wake_caller(near, ROUNDS, MAX_NS, None).unwrap_or_default();
        // A median of few values may include a stall of the host.
        match samples.asleep_ns.len() {
            0..MIN_SAMPLES => USUAL,
            _ => samples.medians().unwrap_or(USUAL),
        }
    }

    /// Returns the parts of `asleep_ns`, which add up to it: the waker's call; until the scheduler runs the sleeper;
    /// and leaving the idle state. None without `awake_ns`.
    pub fn parts_ns(&self) -> Option<[u64; 3]> {
        let awake = self.awake_ns?.min(self.asleep_ns);
        let call = self.call_ns.min(awake);
        Some([call, awake - call, self.asleep_ns - awake])
    }
}

impl fmt::Display for WakeUpCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: u64| ns as f64 / 1e3;
        let whole = us(self.asleep_ns);
        match self.parts_ns() {
            Some(parts) => {
                let [call, scheduler, idle] = parts.map(us);
                write!(
                    f,
                    "{whole:.1} µs: {call:.1} in the call that wakes, {scheduler:.1} until the scheduler runs the \
                     sleeper, {idle:.1} to leave the idle state"
                )
            }
            None => {
                let call = us(self.call_ns.min(self.asleep_ns));
                write!(f, "{whole:.1} µs: {call:.1} in the call that wakes; the rest could not be taken apart here")
            }
        }
    }
}

/// Wake-ups of a thread on one CPU by a thread on another, in nanoseconds each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WakeUpSamples {
    /// Values of [`WakeUpCost::call_ns`].
    pub calls_ns: Vec<u64>,
    /// Values of [`WakeUpCost::asleep_ns`].
    pub asleep_ns: Vec<u64>,
    /// Values of [`WakeUpCost::awake_ns`]; empty if both share a CPU, or the scheduler refuses the policy `SCHED_IDLE`.
    pub awake_ns: Vec<u64>,
}

impl WakeUpSamples {
    /// Measures `rounds` wake-ups of each kind, a third of a millisecond each, between the CPUs of the sleeper and the
    /// waker. Fewer if that takes more than a second, or if the thread was not yet asleep when it was woken.
    pub fn measure([sleeper, waker]: [usize; 2], rounds: usize) -> Result<Self, ScheduleError> {
        const MAX_NS: u64 = 1_000_000_000;
        let work = || -> Result<Self, ScheduleError> {
            pin_to_cpu(sleeper)?;
            let samples = wake_caller(Some(waker), rounds, MAX_NS, None)?;
            let awake_ns = match sleeper == waker {
                true => Vec::new(),
                false => wake_caller(Some(waker), rounds, MAX_NS, Some(sleeper))?.asleep_ns,
            };
            Ok(Self { awake_ns, ..samples })
        };
        thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Returns the medians; none if nothing was measured.
    pub fn medians(&self) -> Option<WakeUpCost> {
        let [call, asleep, awake] = [&self.calls_ns, &self.asleep_ns, &self.awake_ns].map(|ns| median(ns));
        Some(WakeUpCost { call_ns: call?, asleep_ns: asleep?, awake_ns: awake })
    }
}

fn median(ns: &[u64]) -> Option<u64> {
    let mut sorted = ns.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// Wakes the calling thread up to `rounds` times within `max_ns`, from the CPU `from`, while the CPU `kept_awake`, if
/// given, is kept from going idle. Returns the times in `asleep_ns` in either case, and no samples if the waker does
/// not run: a spinning thread of a higher priority may have its CPU.
fn wake_caller(
    from: Option<usize>,
    rounds: usize,
    max_ns: u64,
    kept_awake: Option<usize>,
) -> Result<WakeUpSamples, ScheduleError> {
    let nap = Arc::new(WakeUpProbe::default());
    let (sender, receiver) = mpsc::channel();
    let waker = nap.clone();
    let wake = move || {
        // At the sleeper's priority the waker might wait for ever for a spinning thread, or keep another thread from
        // its work.
        let settled = set_priority(Priority::Normal).and_then(|()| from.map_or(Ok(()), pin_to_cpu));
        // A failed send means that the receiver gave up.
        let _ = sender.send(settled.map(|()| waker.wake(rounds, max_ns)));
        waker.end();
    };
    if thread::Builder::new().spawn(wake).is_err() {
        return Ok(WakeUpSamples::default());
    }
    let keeper = nap.clone();
    let spinner = kept_awake.map(|cpu| thread::Builder::new().spawn(move || keeper.keep_awake(cpu)));
    if !matches!(spinner, Some(Ok(_))) {
        // No CPU is to be kept awake, or its thread cannot be spawned. No other thread sets this flag then.
        let _ = nap.ready.set(spinner.is_none());
    }
    nap.sleep(max_ns + SLEEP_MARGIN_NS);
    receiver.try_recv().unwrap_or(Ok(WakeUpSamples::default()))
}

#[derive(Debug, Default)]
struct WakeUpProbe {
    /// Set once the start is clear: true if the sleeper's CPU is kept awake, as far as it is to be.
    ready: OnceLock<bool>,
    /// Number of wake-ups, [`ENDED`] at last: the futex word that the sleeper sleeps on.
    woken: AtomicU32,
    ran: AtomicU32,
    ran_at_ns: AtomicU64,
    is_over: AtomicBool,
}

/// Value of `woken` that ends the sleeper; no turn has this number.
const ENDED: u32 = u32::MAX;

impl WakeUpProbe {
    /// Sleeps and is woken in turn, until the end or the time limit.
    fn sleep(&self, max_ns: u64) {
        let begin = monotonic_ns();
        'turns: for turn in 0.. {
            let mut ran_at_ns = begin;
            while self.woken.load(Ordering::Acquire) == turn {
                if ran_at_ns - begin > max_ns {
                    break 'turns;
                }
                sleep_while(&self.woken, turn, max_ns);
                ran_at_ns = monotonic_ns();
            }
            if self.woken.load(Ordering::Acquire) == ENDED {
                break;
            }
            self.ran_at_ns.store(ran_at_ns, Ordering::Relaxed);
            // Pairs with the Acquire in `wake`.
            self.ran.store(turn + 1, Ordering::Release);
        }
        self.is_over.store(true, Ordering::Release);
    }

    fn wake(&self, rounds: usize, max_ns: u64) -> WakeUpSamples {
        let begin = monotonic_ns();
        let is_over = || monotonic_ns() - begin > max_ns;
        let mut found = WakeUpSamples::default();
        while self.ready.get().is_none() && !is_over() {
            yield_now();
        }
        if self.ready.get() != Some(&true) {
            return found;
        }
        for turn in 1..=rounds as u32 {
            let quiet_since = monotonic_ns();
            // The last part is spent spinning, as a publishing writer would be awake.
            sleep_ns(QUIET_NS - AWAKE_NS);
            while monotonic_ns() - quiet_since < QUIET_NS {
                relax();
            }
            let from = monotonic_ns();
            self.woken.store(turn, Ordering::Release);
            let has_slept = wake_one(&self.woken);
            let called = monotonic_ns();
            while self.ran.load(Ordering::Acquire) != turn {
                if self.is_over.load(Ordering::Acquire) {
                    return found;
                }
                yield_now();
            }
            if has_slept {
                found.calls_ns.push(called - from);
                found.asleep_ns.push(self.ran_at_ns.load(Ordering::Relaxed).saturating_sub(from));
            }
            if is_over() {
                break;
            }
        }
        found
    }

    fn end(&self) {
        self.woken.store(ENDED, Ordering::Release);
        wake_one(&self.woken);
    }

    /// Keeps a CPU from going idle until the end, at a priority that delays no other thread.
    fn keep_awake(&self, cpu: usize) {
        let is_kept = pin_to_cpu(cpu).is_ok() && run_when_idle();
        // No other thread sets this flag.
        let _ = self.ready.set(is_kept);
        while is_kept && !self.is_over.load(Ordering::Relaxed) {
            relax();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus;

    #[test]
    fn the_wake_up_cost_of_this_host_is_measured_once() {
        let found = WakeUpCost::of_this_host();
        assert!(std::ptr::eq(found, WakeUpCost::of_this_host()));
        assert!(found.call_ns > 0 && found.asleep_ns > 0, "{found:?}");
        assert_eq!(found.awake_ns, None, "that would take twice as long");
    }

    #[test]
    fn each_wake_up_between_two_cpus_has_a_call_and_a_run_time() {
        let all = cpus();
        let found = WakeUpSamples::measure([all[all.len() - 1], all[0]], 20).expect("both CPUs are there");
        assert_eq!(found.calls_ns.len(), found.asleep_ns.len());
        assert!(!found.asleep_ns.is_empty() && found.awake_ns.len() <= 20, "{found:?}");
        let mut every = found.calls_ns.iter().chain(&found.asleep_ns).chain(&found.awake_ns);
        assert!(every.all(|ns| *ns > 0), "{found:?}");
    }

    #[test]
    fn no_awake_samples_are_taken_on_a_single_cpu() {
        let cpu = cpus()[0];
        let found = WakeUpSamples::measure([cpu, cpu], 5).expect("the CPU is there");
        assert!(found.awake_ns.is_empty(), "{found:?}");
    }

    #[test]
    fn a_missing_cpu_is_reported_and_the_sleeper_ends() {
        let cpu = cpus()[0];
        for cpus in [[cpu, 1_000_000], [1_000_000, cpu]] {
            let error = WakeUpSamples::measure(cpus, 5).unwrap_err().to_string();
            assert!(error.contains("CPU 1000000 is not available"), "{error}");
        }
    }

    #[test]
    fn the_parts_of_a_wake_up_add_up_to_its_cost() {
        for (call_ns, awake_ns, asleep_ns, parts) in [
            (6_000, 15_000, 53_000, [6_000, 9_000, 38_000]),
            // The thread runs before the waker's call returns.
            (6_000, 4_000, 53_000, [4_000, 0, 49_000]),
            // There is no idle state to leave.
            (1_000, 3_100, 3_000, [1_000, 2_000, 0]),
        ] {
            let found = WakeUpCost { call_ns, asleep_ns, awake_ns: Some(awake_ns) };
            assert_eq!(found.parts_ns(), Some(parts), "{found}");
            assert_eq!(parts.iter().sum::<u64>(), asleep_ns);
        }
        let found = WakeUpSamples { calls_ns: vec![3, 1, 2], asleep_ns: vec![9, 8, 7], awake_ns: Vec::new() };
        let middle = WakeUpCost { call_ns: 2, asleep_ns: 8, awake_ns: None };
        assert_eq!(found.medians(), Some(middle));
        assert_eq!(middle.parts_ns(), None);
        assert_eq!(WakeUpSamples::default().medians(), None);
    }
}
