//! Time that the host takes from a busy thread, and limits of a process.

use tickpath_clock::{CpuQuota, sleep_ns};

use crate::finding::{Finding, HostFiles};

/// Number of open files that a first OMS needs, including connections that have not logged in.
const MIN_FILES: u64 = 1024;
/// Time for which the host is watched, in nanoseconds.
const OBSERVATION_NS: u64 = 500_000_000;

pub(super) fn steal(host: &HostFiles) -> Finding {
    let Some((before, all_before)) = stolen(host) else {
        return Finding::unknown("/proc/stat does not report it");
    };
    sleep_ns(OBSERVATION_NS);
    let Some((after, all_after)) = stolen(host) else { return Finding::unknown("/proc/stat does not report it") };
    let percent = 100.0 * after.saturating_sub(before) as f64 / all_after.saturating_sub(all_before).max(1) as f64;
    let value = format!("{percent:.1} % within half a second");
    if percent < 1.0 {
        return Finding::good(value);
    }
    let why = "whole milliseconds are missing from the path, at random moments";
    Finding::latency(value, why, "a dedicated host, or an instance type with its own cores")
}

/// Returns the stolen ticks, and all ticks.
fn stolen(host: &HostFiles) -> Option<(u64, u64)> {
    let text = host.read("/proc/stat")?;
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

pub(super) fn quota(host: &HostFiles) -> Finding {
    let Some(quota) = CpuQuota::read(&|path| host.read(path)) else { return Finding::good("none") };
    let CpuQuota { cpus, group, periods, throttled, throttled_ns } = quota;
    Finding::latency(
        format!(
            "{cpus} CPUs by the cgroup {group}; it was stopped in {throttled} of {periods} periods so far, for {:.1} s",
            throttled_ns as f64 / 1e9
        ),
        "a process that has used its quota is paused for tens of milliseconds, spinning threads first of all",
        "no CPU limit for the trading path (Kubernetes: requests alone, and the static CPU manager), or a larger quota",
    )
}

pub(super) fn allowed_cpus(host: &HostFiles) -> Finding {
    let status = host.read("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim);
    let Some(allowed) = allowed else { return Finding::unknown("the kernel does not report it") };
    match host.read("/sys/devices/system/cpu/online") {
        Some(online) if online != allowed => Finding::latency(
            format!("{allowed} of {online}, by its cpuset or taskset"),
            "more busy threads than that share one, and each waits for the others",
            "as many CPUs as there are threads that spin: --cpus names which ones a bench takes",
        ),
        _ => Finding::good(format!("all ({allowed})")),
    }
}

pub(super) fn hypervisor(host: &HostFiles) -> Finding {
    if !host.is_guest() {
        return Finding::good("none");
    }
    Finding::latency(
        "this is a virtual machine",
        "interrupts and idle states leave to the host and come back: 2 to 50 µs each, and its stalls of milliseconds are \
         in every tail; tickpath bench host shows them",
        "bare metal for the trading path",
    )
}

pub(super) fn real_time(host: &HostFiles) -> Finding {
    let is_root = host.read("/proc/self/status").is_some_and(|text| {
        text.lines().any(|line| line.strip_prefix("Uid:").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")))
    });
    if is_root {
        return Finding::good("allowed (root)");
    }
    let limits = host.read("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max realtime priority")?.split_whitespace().next());
    match soft {
        Some("0") | None => Finding::latency(
            "not allowed",
            "any other thread of the same core may run for 3 to 4 ms before a busy one goes on",
            "LimitRTPRIO=90 in the systemd unit, or rtprio in /etc/security/limits.d; then --priority fifo:80",
        ),
        Some(level) => Finding::good(format!("up to {level}")),
    }
}

pub(super) fn real_time_share(host: &HostFiles) -> Finding {
    match host.read("/proc/sys/kernel/sched_rt_runtime_us").and_then(|text| text.parse::<i64>().ok()) {
        Some(-1) => Finding::good("not limited"),
        Some(us) => Finding::latency(
            format!("{us} of each 1000000 µs"),
            "a spinning real-time thread is stopped for up to 50 ms of every second",
            "sysctl kernel.sched_rt_runtime_us=-1 (only with isolated CPUs: a spinning thread then owns its core)",
        ),
        None => Finding::unknown("the kernel does not report it"),
    }
}

pub(super) fn interrupt_balancing(host: &HostFiles) -> Finding {
    let is_number = |name: &&String| name.bytes().all(|b| b.is_ascii_digit());
    let processes = host.names("/proc");
    let is_running = processes
        .iter()
        .filter(is_number)
        .any(|pid| host.read(&format!("/proc/{pid}/comm")).as_deref() == Some("irqbalance"));
    if !is_running {
        return Finding::good("not running");
    }
    Finding::latency(
        "running",
        "it moves interrupts of the network card to whichever core looks idle, a spinning one too",
        "systemctl disable --now irqbalance, then set /proc/irq/*/smp_affinity_list",
    )
}

pub(super) fn network_interrupts(host: &HostFiles) -> Finding {
    let Some(text) = host.read("/proc/interrupts") else {
        return Finding::unknown("/proc/interrupts is not there");
    };
    let cpus = text.lines().next().map_or(0, |line| line.split_whitespace().count());
    let mut took = vec![0u64; cpus];
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        // Numbered interrupts belong to devices; named ones to the processor itself.
        let Some(true) = words.next().map(|name| name.trim_end_matches(':').bytes().all(|b| b.is_ascii_digit())) else {
            continue;
        };
        for (total, count) in took.iter_mut().zip(words.map_while(|word| word.parse::<u64>().ok())) {
            *total += count;
        }
    }
    let taking: Vec<String> =
        (0..cpus).filter(|&cpu| took.get(cpu).is_some_and(|&n| n > 0)).map(|cpu| cpu.to_string()).collect();
    if cpus == 0 || taking.is_empty() {
        return Finding::unknown("/proc/interrupts names no device");
    }
    if taking.len() < cpus {
        return Finding::good(format!("{} of {cpus}", taking.join(", ")));
    }
    Finding::latency(
        format!("all {cpus}"),
        "each interrupt takes 2 to 20 µs of whatever runs there",
        "echo LIST > /proc/irq/N/smp_affinity_list, with CPUs that carry no busy thread",
    )
}

fn open_files_limit(host: &HostFiles, pid: &str) -> Option<u64> {
    let limits = host.read(&format!("/proc/{pid}/limits"))?;
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    match soft? {
        "unlimited" => Some(u64::MAX),
        files => files.parse().ok(),
    }
}

/// Checks that each running OMS, exchange and bridge has room for more connections. The kernel shows every user the
/// size of a process's descriptor table, in powers of two, but the number of open files only to the process's own
/// user.
pub(super) fn open_files_of_tickpath(host: &HostFiles) -> Finding {
    let is_ours = |pid: &String| {
        let is_number = pid.bytes().all(|b| b.is_ascii_digit());
        is_number && host.read(&format!("/proc/{pid}/comm")).is_some_and(|name| name.starts_with("tickpath"))
    };
    let pids: Vec<String> = host.names("/proc").into_iter().filter(is_ours).collect();
    let is_short = |pid: &&String| {
        let room = host.field(&format!("/proc/{pid}/status"), "FDSize").unwrap_or(0);
        open_files_limit(host, pid).is_some_and(|limit| limit < MIN_FILES || room >= limit)
    };
    let short: Vec<&str> = pids.iter().filter(is_short).map(String::as_str).collect();
    if short.is_empty() {
        return Finding::good(format!("room for more in each of {}", pids.len()));
    }
    Finding::safety(
        format!("process {} has a low limit, or is close to it", short.join(", ")),
        "connections wait until another one ends, and a log may be refused its next file",
        "LimitNOFILE=65536 in the systemd unit; tickpath oms --config FILE --check compares the limit with a configuration",
    )
}

pub(super) fn open_files(host: &HostFiles) -> Finding {
    match open_files_limit(host, "self") {
        Some(files) if files < 4096 => Finding::safety(
            files.to_string(),
            "a gateway with many sessions and logs is refused its next file",
            "LimitNOFILE=65536 in the systemd unit",
        ),
        Some(files) => Finding::good(files.to_string()),
        None => Finding::unknown("/proc/self/limits does not report it"),
    }
}
