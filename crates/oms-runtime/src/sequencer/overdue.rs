//! The sequencer's handling of orders that their venue does not answer for.

use tickpath_clock::Clock;
use tickpath_market::{ExecType, ExecutionReport, OrdStatus, OrderId, VenueId};
use tickpath_oms_core::{Input, LOST_ORDER, MessageLoss, QueryStatus, UnansweredOrder};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};

use super::Sequencer;
use crate::OmsError;
use crate::notice::Notice;

/// Max orders without an answer that a turn checks.
const MAX_CHECKED: u32 = 256;

impl<C: Clock> Sequencer<C> {
    /// Continues the pass over open orders, and puts those in doubt whose venue has been silent for too long. Returns
    /// the number of orders whose status was queried.
    #[cold]
    pub(crate) fn check_unanswered(&mut self) -> Result<usize, OmsError> {
        let Some(until) = self.unanswered.end_of_turn() else { return Ok(0) };
        let mut done = 0;
        for _ in 0..MAX_CHECKED {
            let Some(found) = self.unanswered.next_of_pass(&self.core, until) else { break };
            // The venue has not received a request that waits here for the disk.
            if self.release.may_be_held(OrderId(found.request).sequence()) {
                continue;
            }
            let now = self.clock.ticks();
            if self.unanswered.is_overdue(&found, now, self.clock.calibration()) {
                done += usize::from(self.query_order(&found)?);
            }
        }
        Ok(done)
    }

    /// Puts an order in doubt, or queries the status of an order that is already in doubt. Returns false if its venue
    /// cannot be queried.
    fn query_order(&mut self, found: &UnansweredOrder) -> Result<bool, OmsError> {
        let now = self.clock.ticks();
        if found.request != 0 {
            self.mark_order_in_doubt(found.venue, found.order.0)?;
            self.notices.add(Notice::VenueSilent { venue: found.venue, order: found.order });
            return Ok(true);
        }
        let query = Input::QueryStatus(QueryStatus { order: found.order.0, ..QueryStatus::default() });
        if self.core.validate(&query).is_err() {
            return Ok(false);
        }
        self.apply_and_release(now, &query)?;
        Ok(true)
    }

    /// Detects lost reports: a venue refuses to cancel or replace an order that is open here, or ends an order with
    /// more filled than it reported. Queries that order's status.
    #[inline]
    pub(crate) fn query_after_loss(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let is = |exec_type: ExecType| report.exec_type == exec_type.code();
        if is(ExecType::CancelRejected) && matches!(report.reason, UNKNOWN_ORDER | TOO_LATE) {
            return self.mark_open_order_in_doubt(venue, report);
        }
        match (is(ExecType::Canceled) || is(ExecType::Expired)) && report.cumulative_quantity.0 > 0 {
            true => self.query_fills(venue, report),
            false => Ok(()),
        }
    }

    #[cold]
    fn query_fills(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let Some(order) = self.core.order_by_venue_id(venue, report.order_id.0) else { return Ok(()) };
        let query = Input::QueryStatus(QueryStatus { order: order.id.0, ..QueryStatus::default() });
        let lacks_fills = order.venue == venue && order.leaves.0 == 0 && order.cumulative < report.cumulative_quantity;
        match lacks_fills && self.core.validate(&query).is_ok() {
            true => self.apply_and_release(self.clock.ticks(), &query),
            false => Ok(()),
        }
    }

    #[cold]
    fn mark_open_order_in_doubt(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let Some(order) = self.core.order_by_venue_id(venue, report.order_id.0) else { return Ok(()) };
        let is_working = matches!(
            order.status,
            OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::PendingCancel | OrdStatus::PendingReplace
        );
        if is_working && order.leaves.0 > 0 && order.venue == venue {
            self.mark_order_in_doubt(venue, order.id.0)?;
            self.notices.add(Notice::RefusedOpen { venue, order: order.id, reason: report.reason });
        }
        Ok(())
    }

    /// Puts one order in doubt.
    pub(crate) fn mark_order_in_doubt(&mut self, venue: VenueId, order: u64) -> Result<(), OmsError> {
        let loss = MessageLoss { messages: order, venue, lost: LOST_ORDER, reserved: [0; 5] };
        self.apply_and_release(self.clock.ticks(), &Input::MessageLoss(loss))
    }
}
