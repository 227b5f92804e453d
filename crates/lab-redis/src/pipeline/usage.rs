//! What a process takes from the machine, as the kernel counts it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tickpath_clock::sleep_ns;

/// What a process, all its threads together, has taken so far; none where the kernel does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Usage {
    /// Time on a processor, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// How often it left a processor, of its own will or not.
    pub switches: Option<u64>,
    /// System calls. Of another process those that read and write; its waits for events are not counted by anybody.
    pub calls: Option<u64>,
}

impl Usage {
    /// Of another process.
    pub fn of(pid: u32) -> Self {
        Self { cpu_ns: of_threads(pid, cpu_ns), switches: of_threads(pid, switches), calls: reads_and_writes(pid) }
    }

    /// Of this process.
    pub fn own() -> Self {
        // The kernel adds a running thread's time up when it leaves its processor, or at a tick that may be 4 ms away.
        sleep_ns(1);
        // Sockets are read and written by calls that the kernel does not count: whoever makes them does.
        Self { calls: None, ..Self::of(std::process::id()) }
    }

    /// What was taken since an earlier look.
    pub fn since(self, before: Self) -> Self {
        let taken = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Self {
            cpu_ns: taken(self.cpu_ns, before.cpu_ns),
            switches: taken(self.switches, before.switches),
            calls: taken(self.calls, before.calls),
        }
    }

    /// Whether nothing is known.
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

fn reads_and_writes(pid: u32) -> Option<u64> {
    sum_of(Path::new(&format!("/proc/{pid}/io")), ["syscr:", "syscw:"])
}

/// The sum of two lines of a file.
fn sum_of(file: &Path, names: [&str; 2]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(field(names[0])? + field(names[1])?)
}
