//! Publication times of a recording's ticks.

use super::{MarketTick, RecordedTick, Recording};

const NS_PER_S: f64 = 1e9;

/// Speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplaySpeed {
    /// The recorded times.
    Recorded,
    /// The recorded times, sped up by this factor: 2.0 is twice as fast.
    Scaled(f64),
    /// A fixed rate.
    Fixed {
        /// Ticks per second.
        per_second: f64,
    },
}

/// Errors of a pace at which a recording cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ReplaySpeedError {
    /// The factor or rate is zero, negative, infinite or not a number.
    #[error("a speed or rate of {0} cannot be kept; give a finite number above zero")]
    NotPositive(f64),
    /// The recording is looped at its recorded times, but covers no time.
    #[error("all ticks of the recording have one time, so it cannot be looped at its own times; give a fixed rate")]
    NoSpan,
}

impl Recording {
    /// Returns each tick with its intended time, in nanoseconds from the start; the first tick has 0.
    ///
    /// A looped schedule never ends. The mean interval lies between the last tick and the first tick of the next round.
    /// Each offset is computed from the start, not from the previous offset, so that rounding errors do not accumulate.
    pub fn schedule(&self, pace: ReplaySpeed, looped: bool) -> Result<ReplaySchedule<'_>, ReplaySpeedError> {
        if let ReplaySpeed::Scaled(factor) | ReplaySpeed::Fixed { per_second: factor } = pace
            && !(factor > 0.0 && factor.is_finite())
        {
            return Err(ReplaySpeedError::NotPositive(factor));
        }
        let round_ns = round_ns(&self.events);
        if looped && round_ns == 0 && !self.events.is_empty() && !matches!(pace, ReplaySpeed::Fixed { .. }) {
            return Err(ReplaySpeedError::NoSpan);
        }
        Ok(ReplaySchedule { events: &self.events, pace, looped, round_ns, next: 0, returned: 0, rounds_ns: 0 })
    }
}

/// An iterator over ticks and their intended times; created by [`Recording::schedule`].
#[derive(Debug, Clone)]
pub struct ReplaySchedule<'a> {
    events: &'a [RecordedTick],
    pace: ReplaySpeed,
    looped: bool,
    /// Duration of a round at the recorded times.
    round_ns: u64,
    next: usize,
    returned: u64,
    /// Duration of all earlier rounds at the recorded times.
    rounds_ns: u64,
}

impl<'a> Iterator for ReplaySchedule<'a> {
    type Item = (u64, &'a MarketTick);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.events.len() && self.looped {
            self.next = 0;
            self.rounds_ns = self.rounds_ns.saturating_add(self.round_ns);
        }
        let recorded = self.events.get(self.next)?;
        let own_ns = self.rounds_ns.saturating_add(recorded.at_ns.saturating_sub(self.events[0].at_ns));
        let offset_ns = match self.pace {
            ReplaySpeed::Recorded => own_ns,
            ReplaySpeed::Scaled(speed) => (own_ns as f64 / speed) as u64,
            ReplaySpeed::Fixed { per_second } => (self.returned as f64 * NS_PER_S / per_second) as u64,
        };
        self.next += 1;
        self.returned += 1;
        Some((offset_ns, &recorded.event))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.looped && !self.events.is_empty() {
            return (usize::MAX, None);
        }
        let left = self.events.len() - self.next;
        (left, Some(left))
    }
}

/// Returns the time from the first tick of a round to that of the next: the span and one mean interval. Zero if there
/// is no span.
fn round_ns(events: &[RecordedTick]) -> u64 {
    let [first, .., last] = events else { return 0 };
    let span_ns = last.at_ns.saturating_sub(first.at_ns);
    span_ns.saturating_add(span_ns.div_ceil(events.len() as u64 - 1))
}
