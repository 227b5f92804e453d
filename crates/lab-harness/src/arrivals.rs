//! Intended send times of messages, at equal or random intervals.

use serde::{Deserialize, Serialize};
use tickpath_lab_result::Params;

use crate::random::SeededRandom;

/// Distribution of the intended times of a run's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArrivalProcess {
    /// Equal intervals.
    Steady,
    /// Exponential intervals, as of independent senders. The same seed gives the same times on every machine.
    Poisson {
        /// Seed of the intervals.
        seed: u64,
    },
}

impl ArrivalProcess {
    /// Adds the distribution to a run's parameters, unless it is the default.
    pub fn describe(self, params: &mut Params) {
        if let Self::Poisson { seed } = self {
            params.set("arrivals", "poisson");
            params.set("seed", seed);
        }
    }

    /// Returns the intended times at a rate of messages a second, in nanoseconds from the first message.
    pub fn times_ns(self, rate_per_s: f64) -> impl Iterator<Item = u64> {
        let mut random = match self {
            Self::Steady => None,
            Self::Poisson { seed } => Some(SeededRandom::new(seed)),
        };
        let mut due_ns = 0.0;
        (0u64..).map(move |number| match &mut random {
            // A product, because a sum would drift.
            None => (number as f64 * 1e9 / rate_per_s) as u64,
            Some(random) => {
                if number > 0 {
                    due_ns += exponential(random) * 1e9 / rate_per_s;
                }
                due_ns as u64
            }
        })
    }
}

/// Draws an exponential interval with mean one.
fn exponential(random: &mut SeededRandom) -> f64 {
    // 53 bits make a number from zero to below one, so one minus that number has a logarithm.
    let share = (random.draw() >> 11) as f64 / (1u64 << 53) as f64;
    -(1.0 - share).ln()
}
