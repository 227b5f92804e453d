//! Inputs of a venue, and the routes that carry them.

use tickpath_market::{ExecId, ExecutionReport, OrderId, Price, Quantity, Request, TopOfBook};

use crate::{FillError, SimVenue};

pub(crate) const LANES_ROUTE: usize = 0;

#[derive(Debug, Clone, Copy)]
pub(crate) enum VenueInput {
    /// Request with its sequence number in its lane.
    Request(u64, Request),
    /// Tick of a listed symbol, with its sequence number in its topic.
    Tick(u64, TopOfBook),
    Bust(ExecId),
    Correct(ExecId, Price, Quantity),
    EndOfDay,
}

impl VenueInput {
    /// Applies the input and appends its reports. `is_mine` selects the orders of the input's owner.
    pub fn apply(
        &self,
        venue: &mut SimVenue,
        is_mine: &dyn Fn(OrderId) -> bool,
        stamp: u64,
        reports: &mut Vec<ExecutionReport>,
    ) -> Result<(), FillError> {
        match self {
            Self::Request(_, request) => venue.request_owned(stamp, request, is_mine, reports),
            Self::Tick(_, tick) => venue.top_of_book(stamp, tick, reports),
            Self::Bust(exec_id) => venue.bust(stamp, *exec_id, reports)?,
            Self::Correct(exec_id, price, quantity) => venue.correct(stamp, *exec_id, *price, *quantity, reports)?,
            Self::EndOfDay => venue.end_of_day(stamp, reports),
        }
        Ok(())
    }
}
