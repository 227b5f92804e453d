//! When each tick of a recording is to be published.

use super::{Event, Recorded, Recording};

const NS_PER_S: f64 = 1e9;

/// How fast a recording is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At its own times.
    Recorded,
    /// At its own times, so many times as fast: 2.0 is twice as fast.
    Scaled(f64),
    /// Evenly.
    Fixed {
        /// Ticks a second.
        per_second: f64,
    },
}

/// Why a recording cannot be replayed at this pace.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PaceError {
    /// Zero, negative, infinite or not a number.
    #[error("a speed or rate of {0} cannot be kept; give a finite number above zero")]
    NotPositive(f64),
    /// Looped at its own times, but it covers no time.
    #[error("all ticks of the recording have one time, so it cannot be looped at its own times; give a fixed rate")]
    NoSpan,
}

impl Recording {
    /// The intended time of each tick, in nanoseconds from the start, where the first tick has 0; then the tick.
    ///
    /// A looped schedule never ends. Between the last tick and the first of the next round lies the mean interval.
    /// Each offset is computed from the start and never from the one before, so that rounding does not add up.
    pub fn schedule(&self, pace: Pace, looped: bool) -> Result<Schedule<'_>, PaceError> {
        if let Pace::Scaled(factor) | Pace::Fixed { per_second: factor } = pace
            && !(factor > 0.0 && factor.is_finite())
        {
            return Err(PaceError::NotPositive(factor));
        }
        let round_ns = round_ns(&self.events);
        if looped && round_ns == 0 && !self.events.is_empty() && !matches!(pace, Pace::Fixed { .. }) {
            return Err(PaceError::NoSpan);
        }
        Ok(Schedule { events: &self.events, pace, looped, round_ns, next: 0, given: 0, rounds_ns: 0 })
    }
}

/// An iterator over the intended times of ticks; made by [`Recording::schedule`].
#[derive(Debug, Clone)]
pub struct Schedule<'a> {
    events: &'a [Recorded],
    pace: Pace,
    looped: bool,
    /// How long a round takes at the recording's own times.
    round_ns: u64,
    /// Index of the next tick in this round.
    next: usize,
    /// Ticks given in all rounds.
    given: u64,
    /// How long the rounds before this one took at the recording's own times.
    rounds_ns: u64,
}

impl<'a> Iterator for Schedule<'a> {
    type Item = (u64, &'a Event);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.events.len() && self.looped {
            self.next = 0;
            self.rounds_ns = self.rounds_ns.saturating_add(self.round_ns);
        }
        let recorded = self.events.get(self.next)?;
        let own_ns = self.rounds_ns.saturating_add(recorded.at_ns.saturating_sub(self.events[0].at_ns));
        let offset_ns = match self.pace {
            Pace::Recorded => own_ns,
            Pace::Scaled(speed) => (own_ns as f64 / speed) as u64,
            Pace::Fixed { per_second } => (self.given as f64 * NS_PER_S / per_second) as u64,
        };
        self.next += 1;
        self.given += 1;
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

/// From the first tick of a round to the first of the next: the span and one mean interval. Zero if there is no span.
fn round_ns(events: &[Recorded]) -> u64 {
    let [first, .., last] = events else { return 0 };
    let span_ns = last.at_ns.saturating_sub(first.at_ns);
    span_ns.saturating_add(span_ns.div_ceil(events.len() as u64 - 1))
}
