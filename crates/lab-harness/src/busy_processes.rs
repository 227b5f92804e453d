//! Other busy processes, which take time from a run and are reported by name.

use std::collections::BTreeMap;

use tickpath_clock::{Clock, HostClock};

/// Nanoseconds in a tick of the kernel's `stat`: a hundredth of a second, whatever the kernel's own tick rate is.
const NS_PER_TICK: f64 = 1e7;

/// Min share of a CPU, in percent, of a reported process; a smaller share does not disturb a run.
const MIN_PERCENT: f64 = 10.0;

/// Processor time of every process, up to one moment.
#[derive(Debug, Clone, Default)]
pub struct ProcessTable {
    /// Time of the reading, in nanoseconds of any clock.
    at_ns: u64,
    by_pid: BTreeMap<u32, ProcessTimes>,
}

#[derive(Debug, Clone)]
struct ProcessTimes {
    name: String,
    parent: u32,
    /// Ticks of its own and of its ended children.
    ticks: u64,
    /// CPU that it ran on last.
    cpu: usize,
}

/// Busy process outside the run.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyProcess {
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// Share of one CPU, in percent.
    pub percent: f64,
}

/// Describes the busy processes: the busiest by its name, the others by their share. Returns none if the list is empty.
pub fn describe_busy(busy: &[BusyProcess]) -> Option<String> {
    let ([BusyProcess { pid, name, percent }], others) = busy.split_at_checked(1)? else { return None };
    let more: f64 = others.iter().map(|other| other.percent).sum();
    let more = match others.len() {
        0 => String::new(),
        1 => format!(", another one {more:.0} %"),
        count => format!(", {count} others {more:.0} %"),
    };
    Some(format!("process {pid} ({name}) took {percent:.0} % of a CPU{more}"))
}

impl ProcessTable {
    /// Reads the present times of all processes.
    pub fn now(clock: &HostClock) -> Self {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
        // Skips a process that has just ended.
        let stats: Vec<String> =
            processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok()).collect();
        Self::of(clock.calibration().ns(clock.ticks() as i64) as u64, stats.iter().map(String::as_str))
    }

    /// Parses the kernel's `stat` text of each process, read at `at_ns`.
    pub fn of<'a>(at_ns: u64, stats: impl IntoIterator<Item = &'a str>) -> Self {
        Self { at_ns, by_pid: stats.into_iter().filter_map(process).collect() }
    }

    /// Returns the processes that were busy since `before`, ran on one of these CPUs last, and are neither `own` nor
    /// its descendants, the busiest first. Omits processes below a tenth of a CPU.
    pub fn busy_since(&self, before: &Self, own: u32, cpus: &[usize]) -> Vec<BusyProcess> {
        let lasted_ns = self.at_ns.saturating_sub(before.at_ns).max(1) as f64;
        // A parent that waited for an ended child gets all the child's time: the part before `before` is subtracted.
        let mut known: BTreeMap<u32, u64> = before.by_pid.iter().map(|(pid, process)| (*pid, process.ticks)).collect();
        for (_, process) in before.by_pid.iter().filter(|(pid, _)| !self.by_pid.contains_key(pid)) {
            *known.entry(process.parent).or_default() += process.ticks;
        }
        let others =
            self.by_pid.iter().filter(|(pid, process)| cpus.contains(&process.cpu) && !self.is_descendant(**pid, own));
        let busy = others.map(|(pid, process)| {
            let ticks = process.ticks.saturating_sub(known.get(pid).copied().unwrap_or(0));
            BusyProcess {
                pid: *pid,
                name: process.name.clone(),
                percent: 100.0 * ticks as f64 * NS_PER_TICK / lasted_ns,
            }
        });
        let mut busy: Vec<BusyProcess> = busy.filter(|busy| busy.percent >= MIN_PERCENT).collect();
        busy.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        busy
    }

    fn is_descendant(&self, mut pid: u32, own: u32) -> bool {
        while let Some(process) = self.by_pid.get(&pid).filter(|_| pid != own) {
            pid = process.parent;
        }
        pid == own
    }
}

/// Parses a `stat` text; its second field, the name, may hold spaces and parentheses.
fn process(stat: &str) -> Option<(u32, ProcessTimes)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Fields 4 (parent), 14 to 17 (times) and 39 (last processor) of proc(5); the third field has index 0 here.
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    let (parent, cpu) = (number(1)? as u32, number(36)? as usize);
    Some((pid.trim().parse().ok()?, ProcessTimes { name: name.to_owned(), parent, ticks, cpu }))
}
