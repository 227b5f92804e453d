//! What the sequencer does with orders that their venue does not answer for.

use tickpath_clock::Clock;
use tickpath_market::{ExecType, ExecutionReport, OrdStatus, VenueId};
use tickpath_orders::{Doubt, Input, Inquire, LOST_ORDER, Unanswered};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};

use crate::OmsError;
use crate::notice::Notice;
use crate::sequencer::Sequencer;

/// Open orders that one turn looks at.
const LOOK: u32 = 256;

impl<C: Clock> Sequencer<C> {
    /// Goes on with the pass over open orders, and puts those in doubt whose venue has been silent for too long. Returns
    /// how many.
    #[cold]
    pub(crate) fn look_for_answers(&mut self) -> Result<usize, OmsError> {
        if self.answers.watch.iter().all(|watch| watch.answer_within_ns == 0) {
            return Ok(0);
        }
        let (mut done, mut left) = (0, LOOK);
        while left > 0 {
            let (found, next) = self.core.next_unanswered(self.answers.at, left);
            self.answers.at = next;
            let Some(found) = found else {
                if next == 0 {
                    self.answers.end_pass();
                }
                break;
            };
            left -= 1;
            let (now, calibration) = (self.clock.ticks(), *self.clock.calibration());
            if self.answers.is_overdue(&found, now, |ns| calibration.ticks_of_ns(ns)) {
                done += usize::from(self.ask_for(&found)?);
            }
        }
        Ok(done)
    }

    /// Puts an order in doubt, or asks for one that is in doubt already. Returns false where its venue cannot be asked.
    fn ask_for(&mut self, found: &Unanswered) -> Result<bool, OmsError> {
        let now = self.clock.ticks();
        if found.request != 0 {
            self.doubt_order(found.venue, found.order.0)?;
            self.notices.add(Notice::Silent { venue: found.venue, order: found.order });
            return Ok(true);
        }
        let question = Input::Inquire(Inquire { order: found.order.0, ..Inquire::default() });
        if self.core.judge(&question).is_err() {
            return Ok(false);
        }
        self.take(now, &question)?;
        Ok(true)
    }

    /// Puts an order in doubt whose venue has just refused a cancel or a replace because it does not work the order, while
    /// the order is open here.
    #[inline]
    pub(crate) fn doubt_refused(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let is_refused = report.exec_type == ExecType::CancelRejected.code();
        if is_refused && matches!(report.reason, UNKNOWN_ORDER | TOO_LATE) {
            self.doubt_open(venue, report)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn doubt_open(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let Some(order) = self.core.order_said(venue, report.order_id.0) else { return Ok(()) };
        let is_open = order.leaves.0 > 0 && order.venue == venue;
        match order.status {
            OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::PendingCancel | OrdStatus::PendingReplace
                if is_open =>
            {
                self.doubt_order(venue, order.id.0)?;
                self.notices.add(Notice::RefusedOpen { venue, order: order.id, reason: report.reason });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts one order in doubt.
    pub(crate) fn doubt_order(&mut self, venue: VenueId, order: u64) -> Result<(), OmsError> {
        self.take(
            self.clock.ticks(),
            &Input::Doubt(Doubt { messages: order, venue, lost: LOST_ORDER, reserved: [0; 5] }),
        )
    }
}
