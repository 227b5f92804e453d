//! Memory: pages, the limit of locked memory, and room for logs.

use tickpath_clock::LogoutCleanup;

use crate::finding::{Finding, HostFiles};

/// Locked memory needed by the logs and journals of a path, in bytes.
const WANTED_LOCKED_BYTES: u64 = 1 << 30;

/// Shared memory needed by the topics of a path, in bytes.
const WANTED_SHARED_BYTES: u64 = 1 << 30;

pub(super) fn transparent_huge_pages(host: &HostFiles) -> Finding {
    let Some(text) = host.read("/sys/kernel/mm/transparent_hugepage/enabled") else {
        return Finding::unknown("the kernel has none, or does not report them");
    };
    let chosen = text.split(['[', ']']).nth(1).unwrap_or("?").to_owned();
    if chosen != "always" {
        return Finding::good(chosen);
    }
    Finding::latency(
        chosen,
        "a server that forks to save (Redis) copies 2 MiB for each page it touches, and stalls for milliseconds; \
         compaction stalls others",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    )
}

pub(super) fn huge_pages(host: &HostFiles) -> Finding {
    match host.field("/proc/meminfo", "HugePages_Total") {
        Some(0) => Finding::good("none; the logs here fit the caches, and do without"),
        Some(pages) => Finding::good(pages.to_string()),
        None => Finding::unknown("/proc/meminfo does not report it"),
    }
}

pub(super) fn swap(host: &HostFiles) -> Finding {
    let total = host.field("/proc/meminfo", "SwapTotal");
    let free = host.field("/proc/meminfo", "SwapFree");
    let (Some(total), Some(free)) = (total, free) else {
        return Finding::unknown("/proc/meminfo does not report it");
    };
    if total == 0 {
        return Finding::good("none");
    }
    let value = format!("{} MiB, {} MiB in use", total >> 10, (total - free) >> 10);
    let why = "a page that was swapped out comes back in 0.1 to 10 ms, in the middle of a message";
    Finding::latency(value, why, "swapoff -a, or vm.swappiness=0 and locked memory")
}

pub(super) fn locked_memory(host: &HostFiles) -> Finding {
    let Some(limits) = host.read("/proc/self/limits") else {
        return Finding::unknown("/proc/self/limits cannot be read");
    };
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")?.split_whitespace().next());
    match soft {
        Some("unlimited") => Finding::good("unlimited"),
        Some(text) => match text.parse::<u64>() {
            Ok(bytes) if bytes >= WANTED_LOCKED_BYTES => Finding::good(format!("{} MiB", bytes >> 20)),
            Ok(bytes) => Finding::latency(
                format!("{} KiB", bytes >> 10),
                "what is not locked may be paged out: a fault of 0.1 to 10 ms on the path",
                "LimitMEMLOCK=infinity in the systemd unit, or memlock in /etc/security/limits.d",
            ),
            Err(_) => Finding::unknown(format!("'{text}' is no number")),
        },
        None => Finding::unknown("/proc/self/limits does not report it"),
    }
}

pub(super) fn shared_memory(host: &HostFiles) -> Finding {
    let mounts = host.read("/proc/self/mounts").unwrap_or_default();
    let Some(mount) = mounts.lines().find(|line| line.split(' ').nth(1) == Some("/dev/shm")) else {
        return Finding::safety(
            "not mounted",
            "topics in shared memory have nowhere to lie",
            "mount -t tmpfs -o size=2g tmpfs /dev/shm",
        );
    };
    let size = mount.split([' ', ',']).find_map(|option| option.strip_prefix("size="));
    let bytes = size.and_then(|size| {
        let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match size.chars().last() {
            Some('k' | 'K') => 1 << 10,
            Some('m' | 'M') => 1 << 20,
            Some('g' | 'G') => 1 << 30,
            _ => 1,
        };
        Some(digits.parse::<u64>().ok()? * unit)
    });
    match bytes {
        Some(bytes) if bytes < WANTED_SHARED_BYTES => Finding::safety(
            format!("{} MiB", bytes >> 20),
            "a topic that does not fit is refused when it is opened; in containers 64 MiB is the usual size",
            "mount -o remount,size=2g /dev/shm, or --shm-size=2g for a container",
        ),
        Some(bytes) => Finding::good(format!("{} MiB", bytes >> 20)),
        None => Finding::good("half of the memory"),
    }
}

pub(super) fn shared_memory_at_logout(host: &HostFiles) -> Finding {
    let status = host.read("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let Some(user) = ids.and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()) else {
        return Finding::unknown("the kernel does not report whose process this is");
    };
    match LogoutCleanup::read(user, &|path| host.read(path), &|folder| host.names(folder)) {
        LogoutCleanup::Kept(why) => Finding::good(format!("kept: {why}")),
        LogoutCleanup::Removed => Finding::safety("RemoveIPC=yes", LogoutCleanup::DAMAGE, LogoutCleanup::REMEDY),
    }
}
