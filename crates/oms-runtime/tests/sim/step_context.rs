//! Parts of the world that clients and venues borrow during a step.

use crate::clock::SimClock;
use crate::oracle::Oracle;
use crate::planted_bugs::PlantedBug;
use crate::tally::Tally;

/// Borrowed parts of the world: the clock and the observers.
pub struct StepContext<'a> {
    pub clock: &'a SimClock,
    pub oracle: &'a mut Oracle,
    pub tally: &'a mut Tally,
    pub plant: Option<PlantedBug>,
}
