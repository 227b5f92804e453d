//! What changes a venue, and the way that it came by.

use tickpath_market::{ExecId, ExecutionReport, OrderId, Price, Quantity, Request, TopOfBook};

use crate::{FillError, Venue};

/// The way of the lanes.
pub(crate) const LANES: usize = 0;

/// What changes a venue.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input {
    /// With its sequence number in its lane.
    Request(u64, Request),
    /// Of a symbol that exists, with its sequence number in its topic.
    Tick(u64, TopOfBook),
    Bust(ExecId),
    Correct(ExecId, Price, Quantity),
    EndOfDay,
}

impl Input {
    /// Applies the input, of the owner whose orders these are; its reports are appended.
    pub fn apply(
        &self,
        venue: &mut Venue,
        is_mine: &dyn Fn(OrderId) -> bool,
        stamp: u64,
        reports: &mut Vec<ExecutionReport>,
    ) -> Result<(), FillError> {
        match self {
            Self::Request(_, request) => venue.request_of(stamp, request, is_mine, reports),
            Self::Tick(_, tick) => venue.top_of_book(stamp, tick, reports),
            Self::Bust(exec_id) => venue.bust(stamp, *exec_id, reports)?,
            Self::Correct(exec_id, price, quantity) => venue.correct(stamp, *exec_id, *price, *quantity, reports)?,
            Self::EndOfDay => venue.end_of_day(stamp, reports),
        }
        Ok(())
    }

    /// The way that an input came by, behind a record of this one.
    pub fn way(&self, way: usize) -> usize {
        if matches!(self, Self::Request(..)) { way } else { LANES }
    }
}
