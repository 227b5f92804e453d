//! Time that is taken from a spinning thread, and its cause as far as the kernel knows it.
//!
//! ```text
//!   the kernel's account before and after a gap               cause
//!   this process was stopped and continued                    stopped
//!   the thread waited for a processor that another had        preempted
//!   the thread gave its processor away                        voluntary
//!   neither: an interrupt, or the hypervisor                  host
//!   the kernel was not asked in time, or keeps no account     unknown
//! ```
//!
//! Only every 16th turn reads the clock (`docs/design/spinning.md`).

use crate::clock::Clock;
use crate::kernel::{SchedulerStats, SchedulerStatsReader, was_continued};

/// Shortest gap of a spinning loop that counts, in nanoseconds: the thread did not run meanwhile.
pub const HOST_GAP_NS: u64 = 2_000;

/// Number of empty turns between two readings of the clock: some hundred nanoseconds.
const TURNS_PER_CLOCK_READ: u32 = 16;

/// Length from which the kernel is queried about a gap at once: a query takes some microseconds. Shorter gaps are
/// queried later, many at a time.
const IMMEDIATE_QUERY_NS: i64 = 10_000;

/// Time within which the kernel answers, unless the thread was stalled meanwhile.
const MAX_QUERY_NS: i64 = 30_000;

/// Max queries in a row: if every answer takes long, another query yields nothing new.
const MAX_QUERIES: u32 = 3;

/// Longest time that short gaps wait for their query.
const QUERY_INTERVAL_NS: i64 = 20_000_000;

/// Causes of a gap in a thread's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GapCause {
    /// An interrupt, or the hypervisor: the thread had its processor all the time, and did not run.
    Host,
    /// Another thread of this machine had the thread's processor.
    Preempted,
    /// The thread's process was stopped by a signal.
    Stopped,
    /// The thread slept, though it had only polled for work: in a page fault, or in its transport.
    Voluntary,
    /// Unknown.
    #[default]
    Unknown,
}

impl GapCause {
    /// All causes; a cause's index is its code in files.
    pub const ALL: [Self; 5] = [Self::Host, Self::Preempted, Self::Stopped, Self::Voluntary, Self::Unknown];

    /// Returns the cause of a gap of this length between two accounts of its thread.
    pub fn of(gap_ns: u64, before: Option<SchedulerStats>, after: Option<SchedulerStats>, stopped: bool) -> Self {
        /// Divisor of a gap's length: a shorter wait does not explain the gap, because a short thread ran behind an
        /// interrupt.
        const MIN_WAIT_DIVISOR: u64 = 10;
        if stopped {
            return Self::Stopped;
        }
        let (Some(before), Some(after)) = (before, after) else { return Self::Unknown };
        if !before.has_switched(&after) {
            return Self::Host;
        }
        let waited_ns = after.waited_ns.zip(before.waited_ns).map(|(after, before)| after.saturating_sub(before));
        match waited_ns {
            None => Self::Unknown,
            Some(waited_ns) if waited_ns.saturating_mul(MIN_WAIT_DIVISOR) >= gap_ns => Self::Preempted,
            Some(_) if after.voluntary != before.voluntary => Self::Voluntary,
            Some(_) => Self::Host,
        }
    }
}

/// A period in which a thread was ready to run and did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulingGap {
    /// The last moment at which the thread ran, in ticks.
    pub from: u64,
    /// The next moment at which the thread ran, in ticks.
    pub to: u64,
    /// The cause of the gap.
    pub cause: GapCause,
}

/// Detector of gaps between two empty turns of a spinning thread, and between an empty turn and the work found next:
/// in between the thread only polled for work, so that a gap during work never counts.
#[derive(Debug)]
pub struct GapDetector<C> {
    clock: C,
    threshold: u64,
    /// Set if turns are calls to the kernel.
    are_calls: bool,
    last_empty: Option<u64>,
    /// Number of empty turns since the last reading of the clock.
    turns: u32,
    /// The shortest time between two readings: the cost of the turns themselves, which may include a system call each.
    usual: u64,
    recorder: GapRecorder,
}

impl<C: Clock> GapDetector<C> {
    /// Makes a detector of gaps from [`HOST_GAP_NS`] on, for the thread that runs the turns.
    pub fn new(clock: C) -> Self {
        let threshold = clock.calibration().ticks_of_ns(HOST_GAP_NS);
        let recorder = GapRecorder::default();
        Self { clock, threshold, are_calls: false, last_empty: None, turns: 0, usual: u64::MAX, recorder }
    }

    /// Sets whether turns are calls to the kernel. A long call may be work in the kernel, so no gap in it is
    /// attributed to the host; the stops, waits and sleeps that the kernel reports still count.
    pub fn with_kernel_calls(self, are_calls: bool) -> Self {
        Self { are_calls, ..self }
    }

    /// Returns the detector's clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Notes a turn that found no work. Only some turns read the clock: a reading costs as much as a turn, and would
    /// delay a message that arrives meanwhile.
    #[inline(always)]
    pub fn empty_turn(&mut self) {
        self.turns += 1;
        if self.turns.is_multiple_of(TURNS_PER_CLOCK_READ) {
            self.check_clock();
        }
    }

    #[inline(never)]
    fn check_clock(&mut self) {
        let now = self.clock.ticks();
        let Some(from) = self.last_empty else {
            self.recorder.begin(now);
            self.last_empty = Some(now);
            return;
        };
        let gap_from = self.gap_from(from, now);
        self.usual = self.usual.min(now.saturating_sub(from));
        self.last_empty = Some(match gap_from {
            Some(from) => self.recorder.note(&self.clock, from, now),
            None => self.recorder.query_if_due(&self.clock, now),
        });
    }

    /// Returns the start of a gap between two readings, if there is a gap: turns that take twice their usual time are
    /// none.
    fn gap_from(&self, from: u64, to: u64) -> Option<u64> {
        let is_gap = to.saturating_sub(from) > self.usual.saturating_mul(2).saturating_add(self.threshold);
        is_gap.then(|| from + self.usual)
    }

    /// Notes a turn that found work, once the work is done; `seen` is when the turn saw the work, in ticks, before
    /// doing any. A thread that was stalled for long finds work right afterwards.
    #[inline(always)]
    pub fn found_work(&mut self, seen: u64) {
        if let Some(from) = self.last_empty
            && let Some(from) = self.gap_from(from, seen)
        {
            self.recorder.note_one(&self.clock, from, seen);
        }
        self.busy_turn();
    }

    /// Notes a turn that found work, or in which the thread slept on purpose.
    #[inline(always)]
    pub fn busy_turn(&mut self) {
        self.last_empty = None;
        self.turns = 0;
    }

    /// Returns the time for which the thread has waited for a processor that another thread had, in nanoseconds since
    /// its start, even where it found work right afterwards; none where the kernel does not report it, or before the
    /// first reading of the clock.
    pub fn waited_ns(&self) -> Option<u64> {
        self.recorder.stats_reader.as_ref()?.account()?.waited_ns
    }

    /// Returns the gaps found.
    pub fn into_gaps(self) -> Vec<SchedulingGap> {
        let mut gaps = self.recorder.into_gaps();
        gaps.retain(|gap| !self.are_calls || gap.cause != GapCause::Host);
        gaps
    }
}

#[derive(Debug, Default)]
pub(crate) struct GapRecorder {
    gaps: Vec<SchedulingGap>,
    /// Index of the first gap that the kernel was not queried about.
    queried: usize,
    queried_at: u64,
    last_stats: Option<SchedulerStats>,
    stats_reader: Option<SchedulerStatsReader>,
    /// Set if the thread sleeps in its calls between the spins: a voluntary switch then explains no gap.
    calls_sleep: bool,
}

impl GapRecorder {
    /// Makes the list for a thread whose calls may sleep, and which only spins in its gaps.
    pub(crate) fn for_blocking_calls() -> Self {
        Self { calls_sleep: true, ..Self::default() }
    }

    #[cfg(test)]
    pub(crate) fn planted(gaps: Vec<SchedulingGap>) -> Self {
        Self { gaps, ..Self::default() }
    }

    /// Begins an account of the calling thread, once; returns true if it did, which took time.
    pub(crate) fn begin(&mut self, now: u64) -> bool {
        let begins = self.stats_reader.is_none();
        if begins {
            self.gaps.reserve(1 << 16);
            self.stats_reader = Some(SchedulerStatsReader::of_this_thread());
            self.query(SchedulerStatsReader::account, now);
        }
        begins
    }

    /// Notes a gap, and queries the kernel if it is long. Returns the time from which the next gap counts.
    pub(crate) fn note(&mut self, clock: &impl Clock, from: u64, to: u64) -> u64 {
        let (mut from, mut to) = (from, to);
        for _ in 0..MAX_QUERIES {
            if !self.note_one(clock, from, to) {
                return self.query_if_due(clock, to);
            }
            // The microseconds of the query are no gap. But a thread can be stopped or preempted in a call to the
            // kernel too, and is so more often there.
            let now = clock.ticks();
            if clock.ns_between(to, now) < MAX_QUERY_NS {
                return now;
            }
            (from, to) = (to, now);
        }
        to
    }

    /// Notes a gap, and queries the kernel if it is long; returns true if it did.
    #[cold]
    fn note_one(&mut self, clock: &impl Clock, from: u64, to: u64) -> bool {
        let ns = clock.ns_between(from, to);
        if ns < IMMEDIATE_QUERY_NS {
            self.gaps.push(SchedulingGap { from, to, cause: GapCause::Unknown });
            return false;
        }
        let before = self.last_stats;
        self.query(SchedulerStatsReader::account, to);
        let cause = GapCause::of(ns.unsigned_abs(), before, self.last_stats, was_continued());
        self.gaps.push(SchedulingGap { from, to, cause });
        self.queried = self.gaps.len();
        true
    }

    /// Notes that the process was stopped meanwhile, if it was.
    pub(crate) fn note_if_stopped(&mut self, from: u64, to: u64) {
        if was_continued() {
            self.gaps.push(SchedulingGap { from, to, cause: GapCause::Stopped });
        }
    }

    /// Queries the kernel about short gaps if the last query was long ago. Returns the time from which the next gap
    /// counts.
    pub(crate) fn query_if_due(&mut self, clock: &impl Clock, now: u64) -> u64 {
        if self.queried == self.gaps.len() || clock.ns_between(self.queried_at, now) < QUERY_INTERVAL_NS {
            return now;
        }
        self.query(SchedulerStatsReader::switches, now);
        let answered = clock.ticks();
        if clock.ns_between(now, answered) < MAX_QUERY_NS { answered } else { self.note(clock, now, answered) }
    }

    /// Attributes the open short gaps to the host if the thread had its processor all the time since the last query;
    /// otherwise any of them may have another cause.
    fn query(&mut self, how: fn(&SchedulerStatsReader) -> Option<SchedulerStats>, now: u64) {
        let mut after = self.stats_reader.as_ref().and_then(how);
        if let (true, Some(after)) = (self.calls_sleep, &mut after) {
            after.voluntary = 0;
        }
        let open = self.gaps[self.queried..].iter_mut().filter(|gap| gap.cause == GapCause::Unknown);
        if let (Some(before), Some(after)) = (self.last_stats, &mut after) {
            // A query without the wait time keeps the value of the last query.
            after.waited_ns = after.waited_ns.or(before.waited_ns);
            if !before.has_switched(after) {
                open.for_each(|gap| gap.cause = GapCause::Host);
            }
        }
        (self.queried, self.queried_at, self.last_stats) = (self.gaps.len(), now, after);
    }

    /// Returns the gaps found, the last first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &SchedulingGap> {
        self.gaps.iter().rev()
    }

    /// Queries the kernel about the open gaps, and returns all gaps found.
    pub(crate) fn into_gaps(mut self) -> Vec<SchedulingGap> {
        self.query(SchedulerStatsReader::switches, self.queried_at);
        self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_has_the_cause_that_the_kernel_accounts_show() {
        let account = |voluntary, involuntary, waited_ns| Some(SchedulerStats { voluntary, involuntary, waited_ns });
        let before = account(5, 7, Some(1_000));
        for (after, stopped, cause) in [
            (account(5, 7, Some(1_000)), false, GapCause::Host),
            // A short thread behind an interrupt does not explain 5 ms.
            (account(5, 8, Some(21_000)), false, GapCause::Host),
            (account(5, 8, Some(4_900_000)), false, GapCause::Preempted),
            (account(6, 7, Some(3_000)), false, GapCause::Voluntary),
            (account(6, 7, Some(3_000)), true, GapCause::Stopped),
            (account(5, 8, None), false, GapCause::Unknown),
            (None, false, GapCause::Unknown),
        ] {
            assert_eq!(GapCause::of(5_000_000, before, after, stopped), cause, "{after:?}");
            assert_eq!(GapCause::of(5_000_000, None, after, false), GapCause::Unknown);
        }
    }

    #[test]
    fn turns_that_always_take_long_are_no_gaps() {
        let clock = crate::SimulatedClock::at(1_000);
        let mut gaps = GapDetector::new(clock.clone());
        let mut turn = |ns| {
            clock.advance(ns);
            gaps.empty_turn();
        };
        (0..640).for_each(|_| turn(500));
        turn(50_000);
        (0..640).for_each(|_| turn(500));
        let found: Vec<u64> = gaps.into_gaps().iter().map(|gap| gap.to - gap.from).collect();
        assert_eq!(found, [49_500]);
    }

    #[test]
    fn a_gap_before_work_counts_and_the_work_does_not() {
        let clock = crate::SimulatedClock::at(1_000);
        let mut gaps = GapDetector::new(clock.clone());
        let idles = |gaps: &mut GapDetector<crate::SimulatedClock>| {
            (0..64).for_each(|_| {
                clock.advance(10);
                gaps.empty_turn();
            });
        };
        for (waited_ns, worked_ns) in [(8_000_000, 1_000), (20, 900_000), (4_000_000, 0)] {
            idles(&mut gaps);
            clock.advance(waited_ns);
            let seen = clock.ticks();
            clock.advance(worked_ns);
            gaps.found_work(seen);
        }
        // With only work in between, there is no idle time that could have a gap.
        clock.advance(500_000);
        gaps.found_work(clock.ticks());
        let found: Vec<u64> = gaps.into_gaps().iter().map(|gap| gap.to - gap.from).collect();
        assert_eq!(found, [7_999_840, 3_999_840]);
    }

    #[test]
    fn a_long_kernel_call_is_not_attributed_to_the_host() {
        let found = |are_calls| {
            let gaps = GapCause::ALL.map(|cause| SchedulingGap { from: 0, to: 10, cause }).to_vec();
            let gaps =
                GapDetector { recorder: GapRecorder::planted(gaps), ..GapDetector::new(crate::SimulatedClock::at(0)) };
            gaps.with_kernel_calls(are_calls).into_gaps().iter().map(|gap| gap.cause).collect::<Vec<_>>()
        };
        assert_eq!(found(false), GapCause::ALL);
        assert_eq!(found(true), GapCause::ALL[1..]);
    }
}
