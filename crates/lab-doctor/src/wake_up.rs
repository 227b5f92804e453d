//! Cost of waking a sleeping thread, measured: a virtual machine has no other way to learn its host's share.

use tickpath_clock::{WakeUpCost, WakeUpSamples, cpus};

use crate::finding::{Finding, HostFiles};

const NAME: &str = "waking a thread that sleeps";

/// Time to leave an idle state, in nanoseconds, up to which a CPU that never idles is not worthwhile.
const MAX_EXIT_NS: u64 = 5_000;

/// Measures the cost between the first two processors of this process.
pub fn check_wake_up(host: &HostFiles) -> Finding {
    const ROUNDS: usize = 200;
    let cpus = cpus();
    let [waker, sleeper, ..] = cpus[..] else {
        return Finding::unknown("this process may use one processor only").named(NAME);
    };
    match WakeUpSamples::measure([sleeper, waker], ROUNDS).map(|found| found.medians()) {
        Ok(Some(found)) => judge_wake_up(host, &found),
        Ok(None) => Finding::unknown("the processors are too busy to measure it").named(NAME),
        Err(error) => Finding::unknown(error.to_string()).named(NAME),
    }
}

/// Judges the figures of this host.
pub fn judge_wake_up(host: &HostFiles, found: &WakeUpCost) -> Finding {
    let Some([.., idle_ns]) = found.parts_ns() else {
        return Finding::unknown(format!("it takes {found}")).named(NAME);
    };
    if idle_ns <= MAX_EXIT_NS || idle_ns <= found.asleep_ns / 2 {
        return Finding::good(found.to_string()).named(NAME);
    }
    let why = "a message to a thread that sleeps waits for that, mostly until its CPU has left the idle state";
    let remedy = format!("wait awake (--wait adaptive or busy), or {}", stay_awake(host));
    Finding::latency(found.to_string(), why, remedy).named(NAME)
}

/// Returns the remedy that keeps this host's CPUs out of idle states with long exit times.
fn stay_awake(host: &HostFiles) -> String {
    const CPUIDLE: &str = "/sys/devices/system/cpu/cpuidle";
    const POLL_NS: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    let of = |name: &str| host.read(&format!("{CPUIDLE}/{name}"));
    let governor = of("current_governor").or_else(|| of("current_governor_ro"));
    match (governor.as_deref(), host.number(POLL_NS)) {
        (Some("haltpoll"), Some(ns)) => {
            format!("raise {POLL_NS} (now {ns}) above the pauses: for so long a CPU spins before it halts")
        }
        _ if host.is_guest() => {
            "cpuidle_haltpoll.force=1 cpuidle.governor=haltpoll on the kernel's command line: a CPU spins for a while \
             before it halts; or idle=poll there, and it never does"
                .to_owned()
        }
        _ => "hold /dev/cpu_dma_latency open with a 0 in it, as tuned-adm profile latency-performance does, or idle=poll \
              on the kernel's command line"
            .to_owned(),
    }
}
