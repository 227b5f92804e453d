//! Between spinning and sleeping.
//!
//! ```text
//!   work │ spins as long as a wake-up costs │ sleeps until it is woken                        │ work
//!   work │ sleeps until shortly before what the shortest pauses lasted │ spins │ work          at a rhythm
//! ```
//!
//! Who sleeps at once pays a wake-up for each message, who never sleeps pays a CPU. Who spins for the time of one wake-up
//! and sleeps then pays at most twice what the better of the two would have paid, whatever comes. Where messages come at a
//! rhythm, as quotes of a feed or samples of a clock do, more can be had: the last pauses say when to be awake again.

use crate::{Clock, Rest, WakeUp, set_timer_slack};

/// Pauses that are remembered.
const REMEMBERED: usize = 16;

/// How many of them may be shorter, and how many longer, than those that are taken for the rhythm: as few as there can be.
/// On a host that stands still now and then it is better to meet half of the messages awake than none.
const OUTLIERS: [usize; 3] = [2, 4, 6];

/// The longest wake-up that anybody spins for: what takes longer was measured on a host that stood still.
const MOST_NS: u64 = 200_000;

/// One part in so many of a pause may be spent spinning for the next message.
const SHARE: u64 = 4;

/// How one thread waits: for as long as that pays, awake.
#[derive(Debug, Clone)]
pub struct AdaptiveWait<C> {
    clock: C,
    /// What a wake-up costs, in ticks.
    wake_up: u64,
    pause: Option<Pause>,
    /// Of the last pauses, a bit each: whether a wake-up takes longer than they did.
    brief: u16,
    /// How long those lasted that were longer.
    lengths: Recent,
    /// How late sleeps until a time returned.
    late: Recent,
    /// When in a pause the next message is likely, counted from its begin.
    likely: Option<[u64; 2]>,
    has_sharp_timers: bool,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    began: u64,
    /// The last turn without work.
    looked: u64,
    /// Until when it sleeps, if it was not to sleep until it is woken.
    until: Option<u64>,
    /// Whether it ended in a sleep.
    slept: bool,
}

impl<C: Clock> AdaptiveWait<C> {
    /// For a thread on this host. The first of a process measures what a wake-up costs, which takes some milliseconds.
    pub fn new(clock: C) -> Self {
        Self::with_wake_up(clock, WakeUp::of_this_host().asleep_ns.min(MOST_NS))
    }

    /// As if a wake-up cost so much.
    pub fn with_wake_up(clock: C, wake_up_ns: u64) -> Self {
        let wake_up = clock.calibration().ticks_of_ns(wake_up_ns.max(1));
        let [lengths, late] = [Recent::default(), Recent::default()];
        Self { clock, wake_up, pause: None, brief: 0, lengths, late, likely: None, has_sharp_timers: false }
    }

    /// Notes that the last turn had work.
    #[inline]
    pub fn found(&mut self) {
        if let Some(pause) = self.pause.take() {
            self.remember(pause);
        }
    }

    /// What to do in a turn without work: to look again at once, or to sleep for so long at most, unless something comes.
    #[inline]
    pub fn rest(&mut self, timeout_ns: u64) -> Rest {
        let now = self.clock.ticks();
        let pause = self.pause.get_or_insert(Pause { began: now, looked: now, until: None, slept: false });
        (pause.looked, pause.slept) = (now, false);
        let lasted = now.saturating_sub(pause.began);
        match self.likely {
            _ if lasted < self.wake_up && (self.likely.is_none() || self.brief != 0) => Rest::Spin,
            // What is nearer than a wake-up is not worth one.
            Some([from, to]) if lasted < to && lasted + self.wake_up > from => Rest::Spin,
            Some([from, _]) if lasted < from => self.sleep(Some(from - lasted), timeout_ns),
            _ => self.sleep(None, timeout_ns),
        }
    }

    /// Notes that the sleep that was asked for is over.
    #[inline]
    pub fn woke(&mut self) {
        let now = self.clock.ticks();
        let Some(pause) = &mut self.pause else { return };
        (pause.looked, pause.slept) = (now, true);
        if let Some(until) = pause.until.take().filter(|until| now > *until) {
            self.late.push(now - until);
            // The time had come; nobody has woken it.
            pause.slept = false;
        }
    }

    #[cold]
    fn sleep(&mut self, ticks: Option<u64>, timeout_ns: u64) -> Rest {
        if !self.has_sharp_timers {
            // Otherwise the kernel adds some 50 us to what a thread sleeps.
            set_timer_slack(1);
            self.has_sharp_timers = true;
        }
        let ns = ticks.map(|ticks| self.clock.calibration().ns(ticks as i64) as u64);
        if let (Some(pause), Some(ticks)) = (&mut self.pause, ticks) {
            let is_whole = ns.is_some_and(|ns| ns <= timeout_ns);
            pause.until = is_whole.then_some(pause.looked + ticks);
        }
        Rest::Sleep(ns.map_or(timeout_ns, |ns| ns.min(timeout_ns)))
    }

    #[inline]
    fn remember(&mut self, pause: Pause) {
        // Who was woken hears of a message when it has been there for as long as that takes.
        let unheard = if pause.slept { self.wake_up } else { 0 };
        let lasted = pause.looked.saturating_sub(pause.began).saturating_sub(unheard);
        let is_brief = lasted < self.wake_up;
        self.brief = self.brief << 1 | u16::from(is_brief);
        if !is_brief {
            self.lengths.push(lasted);
            self.likely = self.foresee();
        }
    }

    /// When the next message is likely, if the last pauses agree so well that spinning then is cheap.
    #[cold]
    fn foresee(&self) -> Option<[u64; 2]> {
        OUTLIERS.into_iter().find_map(|outliers| self.foresee_without(outliers))
    }

    fn foresee_without(&self, outliers: usize) -> Option<[u64; 2]> {
        let [shortest, longest] = self.lengths.without(outliers)?;
        // Until it has been seen how late they return, sleeps are taken to be late by a wake-up and a half.
        let [early, late] = self.late.without(outliers).unwrap_or([self.wake_up, self.wake_up * 3 / 2]);
        let lead = late + self.wake_up / 2;
        // A pause begins later behind a message that was heard of late.
        let (from, to) = (shortest.checked_sub(lead)?, longest + self.wake_up);
        let awake = to.saturating_sub(from + early);
        (from > self.wake_up && awake * SHARE <= shortest).then_some([from, to])
    }
}

/// The last values of something.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    values: [u64; REMEMBERED],
    count: usize,
}

impl Recent {
    fn push(&mut self, value: u64) {
        self.values[self.count % REMEMBERED] = value;
        self.count += 1;
    }

    /// Between which values they lie without so many of the lowest and the highest, once there are enough.
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

    /// What waiting for these messages cost.
    #[derive(Debug, Default)]
    struct Cost {
        spun: u64,
        woken: u64,
        /// Of each message, whether it found the thread awake.
        awake: Vec<bool>,
    }

    /// Waits for messages at these times; a sleep ends a wake-up after its time or its message.
    fn wait_for(times: &[u64]) -> Cost {
        let clock = SimulatedClock::at(0);
        let mut wait = AdaptiveWait::with_wake_up(clock.clone(), WAKE_UP);
        let mut cost = Cost::default();
        for &time in times {
            let mut awake = true;
            while clock.ticks() < time {
                match wait.rest(10_000_000) {
                    Rest::Spin => {
                        clock.advance(TURN);
                        cost.spun += TURN;
                        awake = true;
                    }
                    Rest::Sleep(ns) => {
                        awake = false;
                        let until = (clock.ticks() + ns).min(time) + WAKE_UP;
                        clock.advance(until - clock.ticks());
                        cost.woken += 1;
                        wait.woke();
                    }
                    Rest::Yield => unreachable!("it spins or sleeps"),
                }
            }
            cost.awake.push(awake);
            wait.found();
        }
        cost
    }

    #[test]
    fn at_a_rhythm_it_is_awake_when_the_message_comes_and_sleeps_most_of_the_time() {
        let times: Vec<u64> = (1..=200).map(|i| i * 1_000_000).collect();
        let cost = wait_for(&times);
        assert!(cost.awake[40..].iter().all(|awake| *awake), "{:?}", cost.awake);
        assert!(cost.spun < 200 * 1_000_000 / SHARE, "{cost:?}");
    }

    #[test]
    fn messages_close_behind_each_other_are_waited_for_awake() {
        let times: Vec<u64> = (1..=1000).map(|i| i * (WAKE_UP / 2)).collect();
        let cost = wait_for(&times);
        assert_eq!(cost.woken, 0, "{cost:?}");
    }

    #[test]
    fn bursts_at_a_rhythm_are_met_awake_too() {
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
        /// Whatever comes, the spinning stays below its share of the time and two wake-ups a message.
        #[test]
        fn spinning_is_bounded(pauses in prop::collection::vec(1u64..5_000_000, 1..200)) {
            let times: Vec<u64> = pauses.iter().scan(0, |at, pause| { *at += pause; Some(*at) }).collect();
            let cost = wait_for(&times);
            let most = times.last().unwrap() / (SHARE - 1) + 2 * (WAKE_UP + TURN) * times.len() as u64;
            prop_assert!(cost.spun <= most, "{} of {most}", cost.spun);
        }
    }
}
