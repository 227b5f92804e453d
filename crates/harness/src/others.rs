//! Who else is busy: a process that is none of ours takes time from a run, and is told by its name.

use std::collections::BTreeMap;

use tickpath_clock::{Clock, HostClock};

/// The kernel counts processor time in hundredths of a second, whatever its own ticks are.
const NS_PER_TICK: f64 = 1e7;

/// A process that takes less than this share of a CPU, in percent, disturbs nobody.
const LEAST_PERCENT: f64 = 10.0;

/// The processor time of every process, up to one moment.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    /// The moment, in nanoseconds of any clock.
    at_ns: u64,
    by_pid: BTreeMap<u32, Process>,
}

#[derive(Debug, Clone)]
struct Process {
    name: String,
    parent: u32,
    /// Its own time and that of children that have ended.
    ticks: u64,
    /// Where it ran last.
    cpu: usize,
}

/// Another process that was busy.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy {
    /// Its id.
    pub pid: u32,
    /// What it is called.
    pub name: String,
    /// Its share of one CPU, in percent.
    pub percent: f64,
}

/// Who was busy, in words: the busiest by its name, and what the others took; none if nobody was.
pub fn in_words(busy: &[Busy]) -> Option<String> {
    let ([Busy { pid, name, percent }], others) = busy.split_at_checked(1)? else { return None };
    let more: f64 = others.iter().map(|other| other.percent).sum();
    let more = match others.len() {
        0 => String::new(),
        1 => format!(", another one {more:.0} %"),
        count => format!(", {count} others {more:.0} %"),
    };
    Some(format!("process {pid} ({name}) took {percent:.0} % of a CPU{more}"))
}

impl Processes {
    /// As it is now.
    pub fn now(clock: &HostClock) -> Self {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
        // One that has just ended is gone.
        let stats: Vec<String> =
            processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok()).collect();
        Self::of(clock.calibration().ns(clock.ticks() as i64) as u64, stats.iter().map(String::as_str))
    }

    /// From what the kernel says of each process in its `stat`, at a moment.
    pub fn of<'a>(at_ns: u64, stats: impl IntoIterator<Item = &'a str>) -> Self {
        Self { at_ns, by_pid: stats.into_iter().filter_map(process).collect() }
    }

    /// The processes that were busy since then, ran on one of these CPUs last, and are neither `own` nor came of it: the
    /// busiest first, and none that took no time worth telling.
    pub fn busy_since(&self, before: &Self, own: u32, cpus: &[usize]) -> Vec<Busy> {
        let lasted_ns = self.at_ns.saturating_sub(before.at_ns).max(1) as f64;
        // Whoever waited for a child that ended has all its time, and not only that since then.
        let mut known: BTreeMap<u32, u64> = before.by_pid.iter().map(|(pid, process)| (*pid, process.ticks)).collect();
        for (_, process) in before.by_pid.iter().filter(|(pid, _)| !self.by_pid.contains_key(pid)) {
            *known.entry(process.parent).or_default() += process.ticks;
        }
        let others =
            self.by_pid.iter().filter(|(pid, process)| cpus.contains(&process.cpu) && !self.came_of(**pid, own));
        let busy = others.map(|(pid, process)| {
            let ticks = process.ticks.saturating_sub(known.get(pid).copied().unwrap_or(0));
            Busy { pid: *pid, name: process.name.clone(), percent: 100.0 * ticks as f64 * NS_PER_TICK / lasted_ns }
        });
        let mut busy: Vec<Busy> = busy.filter(|busy| busy.percent >= LEAST_PERCENT).collect();
        busy.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        busy
    }

    fn came_of(&self, mut pid: u32, own: u32) -> bool {
        while let Some(process) = self.by_pid.get(&pid).filter(|_| pid != own) {
            pid = process.parent;
        }
        pid == own
    }
}

/// What a `stat` says; its second field, the name, may hold spaces and parentheses.
fn process(stat: &str) -> Option<(u32, Process)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    // Fields 4 (parent), 14 to 17 (times) and 39 (last processor) of proc(5), the third one being the first here.
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    let (parent, cpu) = (number(1)? as u32, number(36)? as usize);
    Some((pid.trim().parse().ok()?, Process { name: name.to_owned(), parent, ticks, cpu }))
}
