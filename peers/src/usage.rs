//! Processor time of both ends while messages flow, by the kernel's account, which includes ended threads and
//! processes.
//!
//! ```text
//!   begin ── floor (an echo process) ── ends start ── mark_start ── messages ── ends are reaped ── floor ── end
//!   result: all that was used from `mark_start` on, minus one floor, which lasts as long as the first one
//! ```
//! Where the ends are threads, the result includes the floor after the run and this process's own evaluation: some
//! hundredths of a second.

/// Unit of the kernel's account, in nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Processor time of a run.
#[derive(Debug, Clone, Copy)]
pub struct CpuUsage {
    /// Whether both ends are threads of this process.
    in_threads: bool,
    begin_ns: u64,
    started_ns: u64,
    floor_ns: u64,
}

impl CpuUsage {
    /// Starts the account before a run.
    pub fn begin(in_threads: bool) -> Self {
        let begin_ns = used_ns(in_threads);
        Self { in_threads, begin_ns, started_ns: begin_ns, floor_ns: 0 }
    }

    /// Marks the moment before the first message, when both ends are ready; `ends` are their process ids.
    pub fn mark_start(&mut self, ends: [u32; 2]) {
        self.started_ns = used_ns(self.in_threads);
        if !self.in_threads {
            self.floor_ns = self.started_ns - self.begin_ns;
            // This process is charged for a child when it reaps the child, its use before this moment included.
            self.started_ns += ends.map(|id| times(&id.to_string())[0]).iter().sum::<u64>();
        }
    }

    /// Returns the nanoseconds used, after the run.
    pub fn end(self) -> u64 {
        used_ns(self.in_threads).saturating_sub(self.started_ns + self.floor_ns)
    }
}

/// Returns the processor time of this process, or of all its reaped children.
fn used_ns(in_threads: bool) -> u64 {
    times("self")[usize::from(!in_threads)]
}

/// Returns the processor time of a process and that of its reaped children, in nanoseconds; zeros if it has ended.
fn times(id: &str) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The second field is the process's name, which may contain spaces and parentheses.
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // Fields 14 to 17 of the file; the first field here is the third of the file.
    [[11, 12], [13, 14]].map(|[user, system]| (ticks(user) + ticks(system)) * TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_has_an_account_and_an_ended_one_has_none() {
        // Spins until the account has moved by a tick.
        while times("self")[0] == 0 {
            std::hint::spin_loop();
        }
        assert_eq!(times("no process"), [0, 0]);
    }
}
