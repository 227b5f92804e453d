//! Processor time of both ends while messages go, by the kernel's own account: ended threads and processes count.
//!
//! ```text
//!   begin ── floor (an echo process) ── ends start ── started ── messages ── ends are reaped ── floor ── end
//!   all that was used from `started` on, less one floor, which is as long as the one before
//! ```
//! Where the ends are threads, the floor behind them and the sums of this process are in it: some hundredths of a
//! second.

/// The kernel counts in hundredths of a second.
const TICK_NS: u64 = 10_000_000;

/// What a run has used.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Whether both ends are threads of this process.
    in_threads: bool,
    begin_ns: u64,
    started_ns: u64,
    floor_ns: u64,
}

impl Usage {
    /// Before a run.
    pub fn begin(in_threads: bool) -> Self {
        let begin_ns = used_ns(in_threads);
        Self { in_threads, begin_ns, started_ns: begin_ns, floor_ns: 0 }
    }

    /// Right before its first message, when both ends are ready.
    pub fn started(&mut self, ends: [u32; 2]) {
        self.started_ns = used_ns(self.in_threads);
        if !self.in_threads {
            self.floor_ns = self.started_ns - self.begin_ns;
            // What a living process has used comes to our account when it is reaped.
            self.started_ns += ends.map(|id| times(&id.to_string())[0]).iter().sum::<u64>();
        }
    }

    /// After it: nanoseconds.
    pub fn end(self) -> u64 {
        used_ns(self.in_threads).saturating_sub(self.started_ns + self.floor_ns)
    }
}

/// Of this process, or of all its children that were reaped.
fn used_ns(in_threads: bool) -> u64 {
    times("self")[usize::from(!in_threads)]
}

/// Processor time of a process, and of its children that it has reaped, in nanoseconds; zero if it is gone.
fn times(id: &str) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The second field is a name, which may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // Fields 14 to 17, of which the first here is the third.
    [[11, 12], [13, 14]].map(|[user, system]| (ticks(user) + ticks(system)) * TICK_NS)
}
