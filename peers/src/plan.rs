//! What is measured: the systems, the cases, and how long all of it takes.

use tickpath_bus::Policy;
use tickpath_clock::Wait;
use tickpath_lab_bus::pubsub::Settings;
use tickpath_lab_result::Phase;

use crate::peer::Shape;

/// What others are compared with.
pub const OURS: &str = "log";

/// A system that takes part.
#[derive(Debug, Clone, Copy)]
pub struct System {
    /// What it is called.
    pub name: &'static str,
    /// The crate or artifact whose version is told.
    pub package: &'static str,
    /// What its two ends are.
    pub how: How,
    /// Its full policy at a rate, and at full speed, where nothing may be lost.
    pub policies: [Policy; 2],
    /// How both ends wait.
    pub wait: Wait,
    /// Messages at full speed: for a second or two.
    pub flood: u64,
    /// Whether each of several readers gets every message.
    pub fans_out: bool,
}

/// What the two ends are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Processes of this program.
    Processes,
    /// Threads of this process.
    Threads,
    /// Java processes.
    Java,
}

const EITHER: [Policy; 2] = [Policy::Overwrite, Policy::Fail];
const M: u64 = 1_000_000;

/// All of them, ours first: one a line.
pub const SYSTEMS: &[System] = &[
    system(OURS, "tickpath-log", How::Processes, [Policy::Fail; 2], Wait::Busy, 20 * M, true),
    system("rtrb", "rtrb", How::Threads, [Policy::Fail; 2], Wait::Busy, 100 * M, false),
    system("ringfire", "ringfire", How::Processes, EITHER, Wait::Busy, 20 * M, true),
    system("iceoryx2", "iceoryx2", How::Processes, EITHER, Wait::Busy, 5 * M, true),
    system("aeron", "aeron-all", How::Java, [Policy::Fail; 2], Wait::Busy, 20 * M, true),
    system("chronicle", "chronicle-queue", How::Java, [Policy::Keep; 2], Wait::Busy, 4 * M, true),
    system("zeromq", "zmq", How::Processes, EITHER, Wait::Block, 2 * M, true),
];

const fn system(
    name: &'static str,
    package: &'static str,
    how: How,
    policies: [Policy; 2],
    wait: Wait,
    flood: u64,
    fans_out: bool,
) -> System {
    System { name, package, how, policies, wait, flood, fans_out }
}

/// A kind of case: its table on the page.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// What the names of its cases begin with.
    pub begins: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What is compared.
    pub figure: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
}

/// All kinds, in the order of the page.
pub const KINDS: [Kind; 4] = [
    Kind {
        begins: "one way",
        title: "One way, from the intended time, steady: p50",
        figure: "one_way.p50_ns",
        more_is_better: false,
    },
    Kind {
        begins: "after",
        title: "One way of 64 B after a silence: p50",
        figure: "one_way.p50_ns",
        more_is_better: false,
    },
    Kind { begins: "throughput", title: "Throughput, nothing lost", figure: "throughput_per_s", more_is_better: true },
    Kind {
        begins: "readers",
        title: "What a publish of 64 B costs the writer",
        figure: "writer_cost_ns",
        more_is_better: false,
    },
];

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Case {
    /// Messages of a size, in a row.
    Steady(usize),
    /// Each message after so many milliseconds of silence; so many of them.
    After(u64, u64),
    /// Messages of a size as fast as they go, so many a batch.
    Throughput(usize, usize),
    /// So many readers.
    Readers(usize),
}

/// Messages a second; a tenth of it for whoever cannot keep it.
const RATE: f64 = 10_000.0;

/// The size of what has no other.
const SIZE: usize = 64;

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Seconds of a steady run.
    pub seconds: f64,
    /// What the messages at full speed are divided by.
    pub flood_divisor: u64,
}

/// All cases, or the few that three minutes hold, and how long they are.
pub fn cases(quick: bool) -> (Vec<Case>, Length) {
    use Case::{After, Readers, Steady, Throughput};
    if quick {
        let few = [Steady(64), Steady(1_024), After(10, 50), Throughput(64, 32), Throughput(64, 1), Readers(1)];
        return (few.to_vec(), Length { seconds: 0.5, flood_divisor: 4 });
    }
    let steady = [32, 64, 256, 1_024, 16_384, 65_536].map(Steady);
    let after = [After(1, 500), After(10, 100), After(1_000, 20)];
    let throughput = [Throughput(32, 32), Throughput(64, 32), Throughput(32, 1), Throughput(64, 1)];
    let readers = [1, 10, 100].map(Readers);
    let all = steady.into_iter().chain(after).chain(throughput).chain(readers).collect();
    (all, Length { seconds: 2.0, flood_divisor: 1 })
}

impl Case {
    /// What it is called; it begins as its kind does.
    pub fn name(self) -> String {
        match self {
            Self::Steady(size) => format!("one way {}", tickpath_lab_report::size(size as f64)),
            Self::After(ms, _) => format!("after {}", tickpath_lab_report::duration(ms as f64 * 1e6)),
            Self::Throughput(size, 1) => format!("throughput {size} B one by one"),
            Self::Throughput(size, batch) => format!("throughput {size} B by {batch}"),
            Self::Readers(readers) => format!("readers: {readers}"),
        }
    }

    /// Whether this system has it.
    pub fn is_of(self, system: &System) -> bool {
        !matches!(self, Self::Readers(_)) || system.fans_out
    }

    /// How many read.
    pub fn readers(self) -> usize {
        if let Self::Readers(readers) = self { readers } else { 1 }
    }

    /// Messages a second, at this share of the usual rate; none at full speed.
    pub fn rate(self, share: f64) -> Option<f64> {
        match self {
            Self::After(ms, _) => Some(1e3 / ms as f64),
            Self::Throughput(..) => None,
            Self::Steady(_) | Self::Readers(_) => Some(RATE * share),
        }
    }

    /// How a system runs it, at this share of the usual rate. A client of another language has its readers of its own.
    pub fn settings(self, system: &System, cpus: [usize; 2], length: Length, share: f64) -> Settings {
        let (size, batch) = match self {
            Self::Steady(size) => (size, 1),
            Self::Throughput(size, batch) => (size, batch),
            Self::After(..) | Self::Readers(_) => (SIZE, 1),
        };
        let rate = self.rate(share);
        let (count, phase) = match self {
            Self::After(_, count) => (count, Phase::Idle),
            Self::Throughput(..) => (system.flood / length.flood_divisor, Phase::Steady),
            Self::Steady(_) | Self::Readers(_) => ((RATE * share * length.seconds) as u64, Phase::Steady),
        };
        let policy = match self {
            // What readers cost is promised of a topic that waits for none of them.
            Self::Readers(_) if system.name == OURS => Policy::Overwrite,
            _ => system.policies[usize::from(rate.is_none())],
        };
        let is_java = system.how == How::Java;
        let target = match system.name {
            OURS => "shm://".to_owned(),
            name => Shape { size, readers: self.readers(), policy }.url(name),
        };
        Settings {
            size,
            rate,
            count,
            batch,
            policy: Some(policy),
            phase,
            readers: if is_java { 1 } else { self.readers() },
            // Of another language's clients the lab knows that they wait as they like.
            wait: if is_java { Wait::Block } else { system.wait },
            ..Settings::new(&target, cpus)
        }
    }

    /// Seconds that it takes, about.
    pub fn seconds(self, system: &System, length: Length) -> f64 {
        let messages = match self {
            Self::After(ms, count) => ms as f64 * count as f64 / 1e3,
            Self::Throughput(..) => 1.5 / length.flood_divisor as f64,
            Self::Steady(_) | Self::Readers(_) => length.seconds,
        };
        let around = if system.how == How::Java { 4.0 } else { 0.9 };
        messages + around
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_of_a_kind_and_the_quick_ones_are_among_all() {
        let (all, _) = cases(false);
        let (few, _) = cases(true);
        for case in all.iter().chain(&few) {
            assert_eq!(KINDS.iter().filter(|kind| case.name().starts_with(kind.begins)).count(), 1, "{case:?}");
        }
        assert!(few.iter().all(|case| all.iter().any(|other| other.name() == case.name())));
    }

    #[test]
    fn the_quick_form_takes_some_three_minutes() {
        let (few, length) = cases(true);
        let of_case = |case: &Case| -> f64 {
            SYSTEMS.iter().filter(|system| case.is_of(system)).map(|system| case.seconds(system, length)).sum()
        };
        let seconds: f64 = few.iter().map(of_case).sum();
        assert!((60.0..240.0).contains(&seconds), "{seconds} s");
    }
}
