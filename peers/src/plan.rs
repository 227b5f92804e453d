//! The plan of a bench: the systems, the cases, and the approximate duration.

use tickpath_bus::Policy;
use tickpath_clock::Wait;
use tickpath_lab_bus::pubsub::Settings;
use tickpath_lab_result::RunPhase;

use crate::peer::TopicShape;

/// Name of our log, with which the other systems are compared.
pub const OURS: &str = "log";

/// A measured system.
#[derive(Debug, Clone, Copy)]
pub struct PeerSystem {
    /// Name in results.
    pub name: &'static str,
    /// Crate or Maven artifact whose version is reported.
    pub package: &'static str,
    /// Kind of the two ends.
    pub ends: EndKind,
    /// Policy of a full topic: at a rate, and at full speed, where nothing may be lost.
    pub policies: [Policy; 2],
    /// Wait strategy of both ends.
    pub wait: Wait,
    /// Number of messages at full speed, for a second or two.
    pub flood: u64,
    /// Whether each of several readers gets every message.
    pub fans_out: bool,
}

/// Kind of a system's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// Processes of this program.
    Processes,
    /// Threads of this process.
    Threads,
    /// Java processes.
    Java,
}

/// Policies of a system that may lose messages at a rate, and none at full speed.
const LOSSY_AT_A_RATE: [Policy; 2] = [Policy::Overwrite, Policy::Fail];

const MILLION: u64 = 1_000_000;

/// All systems, one line each, ours first.
pub const SYSTEMS: &[PeerSystem] = &[
    system(OURS, "tickpath-log", EndKind::Processes, [Policy::Fail; 2], Wait::Busy, 20 * MILLION, true),
    system("rtrb", "rtrb", EndKind::Threads, [Policy::Fail; 2], Wait::Busy, 100 * MILLION, false),
    system("ringfire", "ringfire", EndKind::Processes, LOSSY_AT_A_RATE, Wait::Busy, 20 * MILLION, true),
    system("iceoryx2", "iceoryx2", EndKind::Processes, LOSSY_AT_A_RATE, Wait::Busy, 5 * MILLION, true),
    system("aeron", "aeron-all", EndKind::Java, [Policy::Fail; 2], Wait::Busy, 20 * MILLION, true),
    system("chronicle", "chronicle-queue", EndKind::Java, [Policy::Keep; 2], Wait::Busy, 4 * MILLION, true),
    system("zeromq", "zmq", EndKind::Processes, LOSSY_AT_A_RATE, Wait::Block, 2 * MILLION, true),
];

const fn system(
    name: &'static str,
    package: &'static str,
    ends: EndKind,
    policies: [Policy; 2],
    wait: Wait,
    flood: u64,
    fans_out: bool,
) -> PeerSystem {
    PeerSystem { name, package, ends, policies, wait, flood, fans_out }
}

/// A kind of case, which has a table of its own on the page.
#[derive(Debug, Clone, Copy)]
pub struct CaseKind {
    /// Prefix of the names of its cases.
    pub prefix: &'static str,
    /// Heading of the table.
    pub title: &'static str,
    /// Name of the compared figure in results.
    pub figure: &'static str,
    /// Whether a larger figure is better.
    pub more_is_better: bool,
}

/// All kinds, in the order of the page.
pub const KINDS: [CaseKind; 4] = [
    CaseKind {
        prefix: "one way",
        title: "One-way latency from the intended time, steady: p50",
        figure: "one_way.p50_ns",
        more_is_better: false,
    },
    CaseKind {
        prefix: "after",
        title: "One-way latency of 64 B after an idle period: p50",
        figure: "one_way.p50_ns",
        more_is_better: false,
    },
    CaseKind {
        prefix: "throughput",
        title: "Throughput without loss",
        figure: "throughput_per_s",
        more_is_better: true,
    },
    CaseKind {
        prefix: "readers",
        title: "Cost of a publish of 64 B for the writer",
        figure: "writer_cost_ns",
        more_is_better: false,
    },
];

/// A measured case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PeerCase {
    /// A steady stream of messages of this size in bytes.
    Steady(usize),
    /// Messages that each follow this many milliseconds of silence, and their number.
    After(u64, u64),
    /// Messages of this size in bytes at full speed, and their number per batch.
    Throughput(usize, usize),
    /// This number of readers.
    Readers(usize),
}

/// Messages a second; a tenth for a system that cannot sustain this rate.
const RATE: f64 = 10_000.0;

/// Size in bytes of the messages of cases without a size.
const SIZE: usize = 64;

/// Length of the runs.
#[derive(Debug, Clone, Copy)]
pub struct RunLength {
    /// Seconds of a steady run.
    pub seconds: f64,
    /// Divisor of the number of messages at full speed.
    pub flood_divisor: u64,
}

/// Returns all cases, or the few that fit into three minutes, and the length of their runs.
pub fn cases(quick: bool) -> (Vec<PeerCase>, RunLength) {
    use PeerCase::{After, Readers, Steady, Throughput};
    if quick {
        let few = [Steady(64), Steady(1_024), After(10, 50), Throughput(64, 32), Throughput(64, 1), Readers(1)];
        return (few.to_vec(), RunLength { seconds: 0.5, flood_divisor: 4 });
    }
    let steady = [32, 64, 256, 1_024, 16_384, 65_536].map(Steady);
    let after = [After(1, 500), After(10, 100), After(1_000, 20)];
    let throughput = [Throughput(32, 32), Throughput(64, 32), Throughput(32, 1), Throughput(64, 1)];
    let readers = [1, 10, 100].map(Readers);
    let all = steady.into_iter().chain(after).chain(throughput).chain(readers).collect();
    (all, RunLength { seconds: 2.0, flood_divisor: 1 })
}

impl PeerCase {
    /// Returns the name, which starts with the prefix of the case's kind.
    pub fn name(self) -> String {
        match self {
            Self::Steady(size) => format!("one way {}", tickpath_lab_report::size(size as f64)),
            Self::After(ms, _) => format!("after {}", tickpath_lab_report::duration(ms as f64 * 1e6)),
            Self::Throughput(size, 1) => format!("throughput {size} B one by one"),
            Self::Throughput(size, batch) => format!("throughput {size} B by {batch}"),
            Self::Readers(readers) => format!("readers: {readers}"),
        }
    }

    /// Returns whether the case applies to a system.
    pub fn applies_to(self, system: &PeerSystem) -> bool {
        !matches!(self, Self::Readers(_)) || system.fans_out
    }

    /// Returns the number of readers.
    pub fn readers(self) -> usize {
        if let Self::Readers(readers) = self { readers } else { 1 }
    }

    /// Returns the messages a second at this share of the usual rate; `None` at full speed.
    pub fn rate(self, share: f64) -> Option<f64> {
        match self {
            Self::After(ms, _) => Some(1e3 / ms as f64),
            Self::Throughput(..) => None,
            Self::Steady(_) | Self::Readers(_) => Some(RATE * share),
        }
    }

    /// Returns the settings of a system's run at this share of the usual rate. A peer in Java creates its readers by
    /// itself.
    pub fn settings(self, system: &PeerSystem, cpus: [usize; 2], length: RunLength, share: f64) -> Settings {
        let (size, batch) = match self {
            Self::Steady(size) => (size, 1),
            Self::Throughput(size, batch) => (size, batch),
            Self::After(..) | Self::Readers(_) => (SIZE, 1),
        };
        let rate = self.rate(share);
        let (count, phase) = match self {
            Self::After(_, count) => (count, RunPhase::Idle),
            Self::Throughput(..) => (system.flood / length.flood_divisor, RunPhase::Steady),
            Self::Steady(_) | Self::Readers(_) => ((RATE * share * length.seconds) as u64, RunPhase::Steady),
        };
        let policy = match self {
            // The cost of readers is documented for a topic whose writer waits for none of them.
            Self::Readers(_) if system.name == OURS => Policy::Overwrite,
            _ => system.policies[usize::from(rate.is_none())],
        };
        let is_java = system.ends == EndKind::Java;
        let target = match system.name {
            OURS => "shm://".to_owned(),
            name => TopicShape { size, readers: self.readers(), policy }.url(name),
        };
        Settings {
            size,
            rate,
            count,
            batch,
            policy: Some(policy),
            phase,
            readers: if is_java { 1 } else { self.readers() },
            // The lab accepts no wait strategy for a client that supports no choice of it.
            wait: if is_java { Wait::Block } else { system.wait },
            ..Settings::new(&target, cpus)
        }
    }

    /// Returns the approximate duration of a run in seconds.
    pub fn seconds(self, system: &PeerSystem, length: RunLength) -> f64 {
        let messages = match self {
            Self::After(ms, count) => ms as f64 * count as f64 / 1e3,
            Self::Throughput(..) => 1.5 / length.flood_divisor as f64,
            Self::Steady(_) | Self::Readers(_) => length.seconds,
        };
        let setup = if system.ends == EndKind::Java { 4.0 } else { 0.9 };
        messages + setup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_one_kind_and_quick_cases_are_among_all() {
        let (all, _) = cases(false);
        let (few, _) = cases(true);
        for case in all.iter().chain(&few) {
            assert_eq!(KINDS.iter().filter(|kind| case.name().starts_with(kind.prefix)).count(), 1, "{case:?}");
        }
        assert!(few.iter().all(|case| all.iter().any(|other| other.name() == case.name())));
    }

    #[test]
    fn the_quick_bench_takes_about_three_minutes() {
        let (few, length) = cases(true);
        let of_case = |case: &PeerCase| -> f64 {
            let systems = SYSTEMS.iter().filter(|system| case.applies_to(system));
            systems.map(|system| case.seconds(system, length)).sum()
        };
        let seconds: f64 = few.iter().map(of_case).sum();
        assert!((60.0..240.0).contains(&seconds), "{seconds} s");
    }
}
