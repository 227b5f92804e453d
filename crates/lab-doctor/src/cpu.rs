//! The processors: frequency, sharing with others, and clock.

use crate::finding::{Finding, HostFiles};

const CPUFREQ: &str = "/sys/devices/system/cpu/cpu0/cpufreq";

pub(super) fn governor(host: &HostFiles) -> Finding {
    match host.read(&format!("{CPUFREQ}/scaling_governor")).as_deref() {
        Some("performance") => Finding::good("performance"),
        Some(other) => Finding::latency(
            other,
            "a core that was idle begins at a low frequency: the first message after a pause takes two to three times as \
             long, for some milliseconds",
            "cpupower frequency-set -g performance",
        ),
        None => Finding::unknown("the kernel offers no frequency control; on a virtual machine the host decides"),
    }
}

pub(super) fn frequency(host: &HostFiles) -> Finding {
    let now = host.number(&format!("{CPUFREQ}/scaling_cur_freq"));
    let max = host.number(&format!("{CPUFREQ}/cpuinfo_max_freq"));
    let (Some(now), Some(max)) = (now, max) else {
        return Finding::unknown("the kernel offers no frequency control");
    };
    let value = format!("{:.2} of {:.2} GHz", now as f64 / 1e6, max as f64 / 1e6);
    if now * 10 >= max * 9 {
        return Finding::good(value);
    }
    let why = "every instruction takes longer in that proportion";
    Finding::latency(value, why, "cpupower frequency-set -g performance, and allow turbo in the firmware")
}

pub(super) fn siblings(host: &HostFiles) -> Finding {
    let Some(first) = host.read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list") else {
        return Finding::unknown("the kernel does not report which processors share a core");
    };
    if !first.contains([',', '-']) {
        return Finding::good("each processor is a core of its own, as far as this machine reports");
    }
    Finding::latency(
        format!("CPU 0 shares its core with others ({first})"),
        "two busy threads on one core take half of it each; a spinning one slows its sibling by a third or more",
        "pin busy threads to different cores with --cpus, or switch SMT off: echo off > /sys/devices/system/cpu/smt/control",
    )
}

pub(super) fn isolated(host: &HostFiles) -> Finding {
    match host.read("/sys/devices/system/cpu/isolated").as_deref() {
        Some("") => Finding::latency(
            "none",
            "the scheduler may put anything on the core of a busy thread: each switch costs 2 to 10 µs and its cache",
            "isolcpus=… on the kernel's command line; tickpath doctor --script prints the line for this machine",
        ),
        Some(list) => Finding::good(list),
        None => Finding::unknown("the kernel does not report it"),
    }
}

pub(super) fn tickless(host: &HostFiles) -> Finding {
    match host.read("/sys/devices/system/cpu/nohz_full").as_deref() {
        Some("" | "(null)") | None => Finding::latency(
            "none",
            "the tick interrupts a busy thread 100 to 1,000 times a second, 1 to 5 µs each: it shows at 99.9 %",
            "nohz_full=… and rcu_nocbs=… on the kernel's command line, for the isolated CPUs",
        ),
        Some(list) => Finding::good(list),
    }
}

pub(super) fn idle_states(host: &HostFiles) -> Finding {
    const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
    if host.read("/sys/devices/system/cpu/cpuidle/current_driver").as_deref() == Some("haltpoll") {
        return Finding::unknown("a virtual machine's processors halt, and its host decides what that is");
    }
    let states = host.names(FOLDER);
    let enabled = states.iter().filter(|state| host.number(&format!("{FOLDER}/{state}/disable")) != Some(1));
    let exit_us = |state: &&String| host.number(&format!("{FOLDER}/{state}/latency")).unwrap_or(0);
    let Some(deepest) = enabled.max_by_key(exit_us) else {
        return Finding::unknown("the kernel offers no idle states; on a virtual machine the host decides");
    };
    let name = host.read(&format!("{FOLDER}/{deepest}/name")).unwrap_or_else(|| deepest.clone());
    let exit = exit_us(&deepest);
    let value = format!("{name}, {exit} µs to leave");
    if exit <= 2 {
        return Finding::good(value);
    }
    let why = format!("a thread that sleeps is woken {exit} µs later than need be, and finds cold caches");
    let remedy =
        "spin (--wait busy), or cpupower idle-set -D 2, or processor.max_cstate=1 on the kernel's command line";
    Finding::latency(value, &why, remedy)
}

pub(super) fn clock_source(host: &HostFiles) -> Finding {
    let source = host.read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let flags = host.read("/proc/cpuinfo").unwrap_or_default();
    let is_invariant = flags.split_whitespace().any(|flag| flag == "nonstop_tsc");
    match source.as_deref() {
        Some(source @ "arch_sys_counter") => Finding::good(format!("{source}, the processor's virtual counter")),
        Some(source @ ("tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page")) if is_invariant => {
            Finding::good(format!("{source}, and the processor's counter is invariant"))
        }
        Some(source @ ("tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page")) => Finding::latency(
            format!("{source}, but the processor's counter is not invariant"),
            "stamps come from the operating system: 20 to 60 ns each instead of 10",
            "run on a processor, or a virtual machine, that offers an invariant counter (flag nonstop_tsc)",
        ),
        Some(source) => Finding::latency(
            source,
            "each reading of the time is a system call of 0.2 to 2 µs, in every program and broker here",
            "clocksource=tsc tsc=reliable on the kernel's command line",
        ),
        None => Finding::unknown("the kernel does not report it"),
    }
}

pub(super) fn timer_tick(host: &HostFiles) -> Finding {
    let release = host.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let config = host.read(&format!("/boot/config-{release}"));
    let hz = config.and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=").and_then(|hz| hz.parse::<u64>().ok()))
    });
    match hz {
        Some(hz) if hz <= 250 => Finding::good(format!("{hz} a second")),
        Some(hz) => Finding::latency(
            format!("{hz} a second"),
            "each tick takes 1 to 5 µs of a busy thread",
            "a kernel with CONFIG_HZ=100 or 250, or nohz_full for the CPUs of the path",
        ),
        None => Finding::unknown(format!("there is no /boot/config-{release} to read it from")),
    }
}
