//! When messages are due: at equal distances, or by chance.

use serde::{Deserialize, Serialize};
use tickpath_result::Params;

use crate::random::Random;

/// How the intended times of a run's messages lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// At equal distances.
    Steady,
    /// As independent senders make them: the distances are exponential. The same seed gives the same times everywhere.
    Poisson {
        /// What the distances depend on.
        seed: u64,
    },
}

impl Arrivals {
    /// Tells it in a run's settings, where it is not the usual one.
    pub fn describe(self, params: &mut Params) {
        if let Self::Poisson { seed } = self {
            params.set("arrivals", "poisson");
            params.set("seed", seed);
        }
    }

    /// The intended times at so many messages a second, in nanoseconds from the first one's.
    pub fn times_ns(self, rate_per_s: f64) -> impl Iterator<Item = u64> {
        let mut random = match self {
            Self::Steady => None,
            Self::Poisson { seed } => Some(Random::new(seed)),
        };
        let mut due_ns = 0.0;
        (0u64..).map(move |number| match &mut random {
            // A product, for a sum would drift.
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

/// A distance whose mean is one.
fn exponential(random: &mut Random) -> f64 {
    // 53 bits make a number from zero to below one; of one minus that there is always a logarithm.
    let share = (random.draw() >> 11) as f64 / (1u64 << 53) as f64;
    -(1.0 - share).ln()
}
