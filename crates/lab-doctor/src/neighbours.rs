//! Relations between the processors, measured: a virtual machine often reports each of them as a core of its own.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use tickpath_clock::{Clock, HostClock, ScheduleError, cpus, pin_to_cpu, yield_now};

use crate::finding::Finding;

/// Measurements of the first processor with another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuNeighbour {
    /// Number of the other processor.
    pub cpu: usize,
    /// Transfer of a cache line between the two: half of the best round trip, in nanoseconds.
    pub transfer_ns: f64,
    /// Factor by which the same work takes longer while the other processor is busy.
    pub slowdown: f64,
}

/// Least slowdown of two threads that share a core; two cores stay below it.
const SHARED_CORE_SLOWDOWN: f64 = 1.25;

/// Transfer time, in nanoseconds, beyond which a cache line comes from another cluster of cores or another socket.
const FAR_NS: f64 = 100.0;

/// Max processors that are measured against the first.
const MAX_PROCESSORS: usize = 32;

/// Measures the first processor of this process against the others.
pub fn check_neighbours(clock: &HostClock) -> Finding {
    let cpus = cpus();
    let [first, others @ ..] = &cpus[..] else { return judge_neighbours(0, &[]) };
    let measured: Result<Vec<CpuNeighbour>, ScheduleError> =
        others.iter().take(MAX_PROCESSORS).map(|other| neighbour(clock, *first, *other)).collect();
    match measured {
        Ok(measured) => judge_neighbours(*first, &measured),
        Err(error) => Finding::unknown(error.to_string()).named(NAME),
    }
}

/// Judges the first processor by the figures of the others.
pub fn judge_neighbours(first: usize, others: &[CpuNeighbour]) -> Finding {
    if others.is_empty() {
        return Finding::unknown("this process may use one processor only").named(NAME);
    }
    let of = |wanted: fn(&CpuNeighbour) -> bool| others.iter().filter(|other| wanted(other)).collect::<Vec<_>>();
    let threads = of(|other| other.slowdown >= SHARED_CORE_SLOWDOWN);
    let near = of(|other| other.slowdown < SHARED_CORE_SLOWDOWN && other.transfer_ns <= FAR_NS);
    let far = of(|other| other.slowdown < SHARED_CORE_SLOWDOWN && other.transfer_ns > FAR_NS);
    let kinds = [("a thread of the same core", &threads), ("near", &near), ("far", &far)];
    let groups: Vec<String> = kinds
        .into_iter()
        .filter(|(_, members)| !members.is_empty())
        .map(|(kind, members)| format!("{kind}: CPU {}", listed(members)))
        .collect();
    let value = format!("beside CPU {first} {}", groups.join("; "));
    let of_all = if others.len() == 1 { "this machine has no other core" } else { "choose another with --cpus" };
    let finding = match (threads.is_empty(), near.is_empty()) {
        (false, _) => Finding::latency(
            value,
            "two busy threads of one core take a part of it from each other, whatever topology the machine reports",
            format!("keep busy threads off that one: {of_all}; of a virtual machine's host ask for whole cores"),
        ),
        (true, true) => Finding::latency(
            value,
            "each message between those CPUs takes that long at least, twice for an answer",
            format!("keep a path within one cluster of cores: {of_all}"),
        ),
        (true, false) => Finding::good(value),
    };
    finding.named(NAME)
}

const NAME: &str = "CPUs beside each other";

/// Formats the processors as `1 (27 ns, busy together 1.9 times as long)`; for many of them only the range of their
/// times.
fn listed(members: &[&CpuNeighbour]) -> String {
    const MAX_LISTED: usize = 4;
    if members.len() > MAX_LISTED {
        let cpus: Vec<String> = members.iter().map(|one| one.cpu.to_string()).collect();
        let times = || members.iter().map(|one| one.transfer_ns);
        let (lowest, highest) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
        return format!("{} ({lowest:.0} to {highest:.0} ns)", cpus.join(", "));
    }
    let text = |one: &&CpuNeighbour| {
        let busy = (one.slowdown >= SHARED_CORE_SLOWDOWN)
            .then(|| format!(", busy together {:.1} times as long", one.slowdown));
        format!("{} ({:.0} ns{})", one.cpu, one.transfer_ns, busy.unwrap_or_default())
    };
    members.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Measures two processors. Fails before the measurement if either is unavailable.
fn neighbour(clock: &HostClock, first: usize, other: usize) -> Result<CpuNeighbour, ScheduleError> {
    for cpu in [first, other] {
        thread::scope(|scope| join(scope.spawn(move || pin_to_cpu(cpu))))?;
    }
    let alone_ns = burst_ns(clock, first, None);
    let beside_ns = burst_ns(clock, first, Some(other));
    let slowdown = beside_ns as f64 / alone_ns.max(1) as f64;
    Ok(CpuNeighbour { cpu: other, transfer_ns: transfer_ns(clock, first, other), slowdown })
}

/// A word on a cache line of its own, apart from the lines that a processor prefetches with it.
#[derive(Default)]
#[repr(align(128))]
struct CacheLineWord(AtomicU32);

/// Returns the best of many stretches of round trips, because other programs may run here too.
fn transfer_ns(clock: &HostClock, first: usize, other: usize) -> f64 {
    const STRETCHES: u32 = 400;
    const TRIPS: u32 = 50;
    let (request, answer) = (CacheLineWord::default(), CacheLineWord::default());
    let best = thread::scope(|scope| {
        scope.spawn(|| {
            // The same pinning succeeded a moment ago.
            let _ = pin_to_cpu(other);
            for turn in 1..=STRETCHES * TRIPS {
                while request.0.load(Ordering::Acquire) != turn {}
                answer.0.store(turn, Ordering::Release);
            }
        });
        join(scope.spawn(|| {
            let _ = pin_to_cpu(first);
            let (mut best, mut turn) = (i64::MAX, 0);
            for _ in 0..STRETCHES {
                let from = clock.ticks();
                for _ in 0..TRIPS {
                    turn += 1;
                    request.0.store(turn, Ordering::Release);
                    while answer.0.load(Ordering::Acquire) != turn {}
                }
                best = best.min(clock.ns_between(from, clock.ticks()));
            }
            best
        }))
    });
    best as f64 / f64::from(2 * TRIPS)
}

/// Returns the fastest of many bursts of work on one processor, alone or while another processor works without a
/// pause.
fn burst_ns(clock: &HostClock, cpu: usize, busy: Option<usize>) -> i64 {
    const BURSTS: u32 = 1_000;
    let (begun, over) = (AtomicBool::new(busy.is_none()), AtomicBool::new(false));
    thread::scope(|scope| {
        if let Some(busy) = busy {
            let (begun, over) = (&begun, &over);
            scope.spawn(move || {
                let _ = pin_to_cpu(busy);
                while !over.load(Ordering::Relaxed) {
                    work();
                    begun.store(true, Ordering::Relaxed);
                }
            });
        }
        let best = join(scope.spawn(|| {
            let _ = pin_to_cpu(cpu);
            while !begun.load(Ordering::Relaxed) {
                yield_now();
            }
            let mut best = i64::MAX;
            for _ in 0..BURSTS {
                let from = clock.ticks();
                work();
                best = best.min(clock.ns_between(from, clock.ticks()));
            }
            best
        }));
        over.store(true, Ordering::Relaxed);
        best
    })
}

/// Keeps a core's units busy for some microseconds: independent chains, no memory.
fn work() {
    let mut chains = [1u64, 2, 3, 4, 5, 6];
    for _ in 0..2_000 {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7) ^ 1;
        }
    }
    black_box(chains);
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
