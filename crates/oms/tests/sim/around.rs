//! What clients and venues are lent of the world while something happens to them.

use crate::clock::SimClock;
use crate::oracle::Oracle;
use crate::plants::Plant;
use crate::tally::Tally;

/// Who looks on while something happens.
pub struct Around<'a> {
    pub clock: &'a SimClock,
    pub oracle: &'a mut Oracle,
    pub tally: &'a mut Tally,
    pub plant: Option<Plant>,
}
