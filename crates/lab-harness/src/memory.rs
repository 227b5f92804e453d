//! Memory of a process, and its waits for a processor.

use tickpath_lab_result::MemoryUse;

/// Resident memory of a process, from the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResidentMemory {
    /// Private and shared memory in bytes, which is the cost of orders.
    pub orders_bytes: u64,
    /// Peak resident memory in bytes, files included.
    pub peak_bytes: u64,
}

/// Reads a process's memory. Returns zero if the process has ended.
pub fn resident(pid: u32) -> ResidentMemory {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    };
    ResidentMemory { orders_bytes: field("RssAnon") + field("RssShmem"), peak_bytes: field("VmHWM") }
}

/// Reads the time that the first thread of a process has waited for a busy processor, in nanoseconds. Returns zero if
/// the process has ended, or if the kernel does not count.
pub fn waited_ns(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Converts two readings to the form of the result file.
pub fn memory_use(before: ResidentMemory, after: ResidentMemory) -> MemoryUse {
    MemoryUse { before_bytes: before.orders_bytes, after_bytes: after.orders_bytes, peak_bytes: after.peak_bytes }
}
