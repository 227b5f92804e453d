//! The adaptive wait: spins first, then sleeps.
//!
//! ```text
//!   work │ spins as long as a wake-up costs │ sleeps until it is woken                        │ work
//!   work │ sleeps until shortly before what the shortest pauses lasted │ spins │ work          at a rhythm
//! ```
//!
//! A thread that sleeps at once pays a wake-up for each message, a thread that never sleeps pays a CPU. Spinning for
//! the time of one wake-up and then sleeping costs at most twice the better of the two, whatever messages arrive.
//! Where messages come at a rhythm, as quotes of a feed or samples of a clock do, the last pauses predict when to be
//! awake again, which costs less still. Design: `docs/design/wake-ups.md`.

use crate::{Clock, IdleAction, WakeUpCost, set_timer_slack};

const REMEMBERED: usize = 16;

/// Numbers of shorter and of longer pauses to ignore, tried in this order: as few as possible. On a host with
/// occasional stalls, meeting half of the messages awake is better than none.
const OUTLIERS: [usize; 3] = [2, 4, 6];

/// Longest wake-up to spin for, in nanoseconds: a longer one was measured while the host was stalled.
const MAX_WAKE_UP_NS: u64 = 200_000;

/// Divisor of a pause: the largest part that may be spent spinning for the next message.
const SHARE: u64 = 4;

/// Wait of a thread, which stays awake for as long as that pays.
#[derive(Debug, Clone)]
pub struct AdaptiveWait<C> {
    clock: C,
    /// Cost of a wake-up, in ticks.
    wake_up: u64,
    pause: Option<IdlePause>,
    /// The last pauses, a bit each: set if the pause was shorter than a wake-up.
    brief: u16,
    /// Lengths of the last pauses longer than a wake-up.
    lengths: RecentValues,
    /// Delays of the last sleeps that had an end time.
    late: RecentValues,
    /// Period of a pause in which the next message is likely, counted from the pause's start.
    likely: Option<[u64; 2]>,
    has_sharp_timers: bool,
}

#[derive(Debug, Clone, Copy)]
struct IdlePause {
    started: u64,
    /// Time of the last turn without work.
    last_idle: u64,
    /// End of the sleep, unless it lasts until a wake-up.
    until: Option<u64>,
    /// Set if the pause ended in a sleep.
    slept: bool,
}

impl<C: Clock> AdaptiveWait<C> {
    /// Makes a wait for a thread on this host. The first of a process measures the cost of a wake-up, which takes some
    /// milliseconds.
    pub fn new(clock: C) -> Self {
        Self::with_wake_up(clock, WakeUpCost::of_this_host().asleep_ns.min(MAX_WAKE_UP_NS))
    }

    /// Makes a wait with this cost of a wake-up.
    pub fn with_wake_up(clock: C, wake_up_ns: u64) -> Self {
        let wake_up = clock.calibration().ticks_of_ns(wake_up_ns.max(1));
        let [lengths, late] = [RecentValues::default(), RecentValues::default()];
        Self { clock, wake_up, pause: None, brief: 0, lengths, late, likely: None, has_sharp_timers: false }
    }

    /// Notes that the last turn had work.
    #[inline]
    pub fn note_work(&mut self) {
        if let Some(pause) = self.pause.take() {
            self.record_pause(pause);
        }
    }

    /// Returns the action for a turn without work: look again at once, or sleep for so long at most, unless a message
    /// arrives.
    #[inline]
    pub fn next_action(&mut self, timeout_ns: u64) -> IdleAction {
        let now = self.clock.ticks();
        let pause = self.pause.get_or_insert(IdlePause { started: now, last_idle: now, until: None, slept: false });
        (pause.last_idle, pause.slept) = (now, false);
        let lasted = now.saturating_sub(pause.started);
        match self.likely {
            _ if lasted < self.wake_up && (self.likely.is_none() || self.brief != 0) => IdleAction::Spin,
            // A time nearer than a wake-up is not worth a sleep.
            Some([from, to]) if lasted < to && lasted + self.wake_up > from => IdleAction::Spin,
            Some([from, _]) if lasted < from => self.sleep(Some(from - lasted), timeout_ns),
            _ => self.sleep(None, timeout_ns),
        }
    }

    /// Notes that the requested sleep is over.
    #[inline]
    pub fn note_wake_up(&mut self) {
        let now = self.clock.ticks();
        let Some(pause) = &mut self.pause else { return };
        (pause.last_idle, pause.slept) = (now, true);
        if let Some(until) = pause.until.take().filter(|until| now > *until) {
            self.late.push(now - until);
            // The sleep ended by its time, not by a wake-up.
            pause.slept = false;
        }
    }

    #[cold]
    fn sleep(&mut self, ticks: Option<u64>, timeout_ns: u64) -> IdleAction {
        if !self.has_sharp_timers {
            // By default the kernel adds some 50 us to a thread's sleep.
            set_timer_slack(1);
            self.has_sharp_timers = true;
        }
        let ns = ticks.map(|ticks| self.clock.calibration().ns(ticks as i64) as u64);
        if let (Some(pause), Some(ticks)) = (&mut self.pause, ticks) {
            let is_whole = ns.is_some_and(|ns| ns <= timeout_ns);
            pause.until = is_whole.then_some(pause.last_idle + ticks);
        }
        IdleAction::Sleep(ns.map_or(timeout_ns, |ns| ns.min(timeout_ns)))
    }

    #[inline]
    fn record_pause(&mut self, pause: IdlePause) {
        // A woken thread sees a message only after the time of a wake-up.
        let wake_up_delay = if pause.slept { self.wake_up } else { 0 };
        let lasted = pause.last_idle.saturating_sub(pause.started).saturating_sub(wake_up_delay);
        let is_brief = lasted < self.wake_up;
        self.brief = self.brief << 1 | u16::from(is_brief);
        if !is_brief {
            self.lengths.push(lasted);
            self.likely = self.predict();
        }
    }

    /// Returns the period of the next message, if the last pauses agree so well that spinning then is cheap.
    #[cold]
    fn predict(&self) -> Option<[u64; 2]> {
        OUTLIERS.into_iter().find_map(|outliers| self.predict_without(outliers))
    }

    fn predict_without(&self, outliers: usize) -> Option<[u64; 2]> {
        let [shortest, longest] = self.lengths.without(outliers)?;
        // Until delays are known, sleeps are assumed to end late by a wake-up and a half.
        let [early, late] = self.late.without(outliers).unwrap_or([self.wake_up, self.wake_up * 3 / 2]);
        let lead = late + self.wake_up / 2;
        // A pause begins later after a message that was seen late.
        let (from, to) = (shortest.checked_sub(lead)?, longest + self.wake_up);
        let awake = to.saturating_sub(from + early);
        (from > self.wake_up && awake * SHARE <= shortest).then_some([from, to])
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct RecentValues {
    values: [u64; REMEMBERED],
    count: usize,
}

impl RecentValues {
    fn push(&mut self, value: u64) {
        self.values[self.count % REMEMBERED] = value;
        self.count += 1;
    }

    /// Returns the lowest and the highest value without so many outliers at each end, once there are enough values.
    fn without(&self, outliers: usize) -> Option<[u64; 2]> {
        let mut sorted = self.values;
        sorted.sort_unstable();
        (self.count >= REMEMBERED).then_some([sorted[outliers], sorted[REMEMBERED - 1 - outliers]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedClock;
    use proptest::prelude::*;

    const WAKE_UP: u64 = 50_000;
    const TURN: u64 = 100;

    /// Cost of waiting for some messages.
    #[derive(Debug, Default)]
    struct WaitCost {
        spun: u64,
        woken: u64,
        /// Whether each message found the thread awake.
        awake: Vec<bool>,
    }

    /// Waits for messages at these times; a sleep ends a wake-up after its time or its message.
    fn wait_for(times: &[u64]) -> WaitCost {
        let clock = SimulatedClock::at(0);
        let mut wait = AdaptiveWait::with_wake_up(clock.clone(), WAKE_UP);
        let mut cost = WaitCost::default();
        for &time in times {
            let mut awake = true;
            while clock.ticks() < time {
                match wait.next_action(10_000_000) {
                    IdleAction::Spin => {
                        clock.advance(TURN);
                        cost.spun += TURN;
                        awake = true;
                    }
                    IdleAction::Sleep(ns) => {
                        awake = false;
                        let until = (clock.ticks() + ns).min(time) + WAKE_UP;
                        clock.advance(until - clock.ticks());
                        cost.woken += 1;
                        wait.note_wake_up();
                    }
                    IdleAction::Yield => unreachable!("it spins or sleeps"),
                }
            }
            cost.awake.push(awake);
            wait.note_work();
        }
        cost
    }

    #[test]
    fn at_a_rhythm_the_wait_sleeps_and_is_awake_for_each_message() {
        let times: Vec<u64> = (1..=200).map(|i| i * 1_000_000).collect();
        let cost = wait_for(&times);
        assert!(cost.awake[40..].iter().all(|awake| *awake), "{:?}", cost.awake);
        assert!(cost.spun < 200 * 1_000_000 / SHARE, "{cost:?}");
    }

    #[test]
    fn a_wait_never_sleeps_between_close_messages() {
        let times: Vec<u64> = (1..=1000).map(|i| i * (WAKE_UP / 2)).collect();
        let cost = wait_for(&times);
        assert_eq!(cost.woken, 0, "{cost:?}");
    }

    #[test]
    fn bursts_at_a_rhythm_find_the_thread_awake() {
        let burst = |i: u64| [0, 5_000, 20_000].map(|behind| i * 1_000_000 + behind);
        let times: Vec<u64> = (1..=200).flat_map(burst).collect();
        let cost = wait_for(&times);
        assert!(cost.awake[200..].iter().all(|awake| *awake), "{:?}", cost.awake);
    }

    #[test]
    fn a_rhythm_that_ends_is_forgotten() {
        let mut times: Vec<u64> = (1..=50).map(|i| i * 1_000_000).collect();
        let end = times[49];
        times.extend((1..=50).map(|i| end + i * 7_000_000));
        let cost = wait_for(&times);
        assert!(cost.awake[90..].iter().all(|awake| *awake), "{:?}", cost.awake);
    }

    proptest! {
        /// The spinning stays below its share of the time and two wake-ups per message, for any pauses.
        #[test]
        fn spinning_is_bounded(pauses in prop::collection::vec(1u64..5_000_000, 1..200)) {
            let times: Vec<u64> = pauses.iter().scan(0, |time, pause| { *time += pause; Some(*time) }).collect();
            let cost = wait_for(&times);
            let max = times.last().unwrap() / (SHARE - 1) + 2 * (WAKE_UP + TURN) * times.len() as u64;
            prop_assert!(cost.spun <= max, "{} of {max}", cost.spun);
        }
    }
}
