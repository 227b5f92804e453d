//! Resource usage of a process, as counted by the kernel.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tickpath_clock::sleep_ns;

/// Usage of a process with all its threads so far; `None` where the kernel does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResourceUsage {
    pub cpu_ns: Option<u64>,
    /// Context switches, voluntary or not.
    pub switches: Option<u64>,
    /// System calls. For another process only reads and writes; no counter covers its waits for events.
    pub calls: Option<u64>,
}

impl ResourceUsage {
    /// Returns the usage of another process.
    pub fn of(pid: u32) -> Self {
        let calls = sum_of(Path::new(&format!("/proc/{pid}/io")), ["syscr:", "syscw:"]);
        Self { cpu_ns: of_threads(pid, cpu_ns), switches: of_threads(pid, switches), calls }
    }

    /// Returns the usage of this process.
    pub fn own() -> Self {
        // The kernel updates a running thread's time when it leaves its CPU, or at a tick that may be 4 ms away.
        sleep_ns(1);
        // The kernel does not count the calls that read and write sockets: their caller counts them.
        Self { calls: None, ..Self::of(std::process::id()) }
    }

    pub fn since(self, before: Self) -> Self {
        let difference = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Self {
            cpu_ns: difference(self.cpu_ns, before.cpu_ns),
            switches: difference(self.switches, before.switches),
            calls: difference(self.calls, before.calls),
        }
    }

    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

fn of_threads(pid: u32, of: fn(&Path) -> Option<u64>) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.flatten().map(|thread| of(&thread.path())).sum()
}

fn cpu_ns(thread: &Path) -> Option<u64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn switches(thread: &Path) -> Option<u64> {
    sum_of(&thread.join("status"), ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"])
}

/// Returns the sum of two lines of a file.
fn sum_of(file: &Path, names: [&str; 2]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(field(names[0])? + field(names[1])?)
}
