//! Answers of venues to status requests. An answer is no event, but covers all events up to its sequence.

use tickpath_market::{ClientOrderId, ExecutionReport, OrdStatus};

use crate::Outputs;
use crate::client_reports::is_visible_change;
use crate::core::{At, Core};
use crate::order::{END_TIME_PASSED, IN_DOUBT, MAY_HAVE_RETRIED, NONE, Order, PendingRequest, UNSEQUENCED_END};
use crate::report_class::{ReportClass, is_unknown_at_venue, total_quantity};
use crate::report_merge::set_terms;
use crate::state::OrderPhase;

impl Core {
    /// Applies a venue's answer to a status request.
    pub(crate) fn apply_status(&mut self, at: At, slot: u32, report: &ExecutionReport, out: &mut Outputs) {
        let ends_doubt = self.clear_doubt(slot, report);
        let order = *self.orders.get(slot);
        let unchanged = confirms_state(&order, report).then_some(order);
        let mut answered = order_by_status(&order, report, self.orders.pending_replace(&order)).or(unchanged);
        if order.marks & MAY_HAVE_RETRIED != 0 {
            answered = answered.map(|next| self.resolve_possible_retry(&order, report, next));
        }
        if !self.triggers.is_empty() {
            answered = answered.and_then(|next| self.resolve_armed_status(slot, report, next));
        }
        let Some(mut next) = answered else {
            self.counts.duplicates += 1;
            // A later event overtook this answer, but could not end the doubt while the mark was set: ask again.
            if ends_doubt && order.phase.is_unknown() {
                self.query_status(at, slot, out);
            }
            return;
        };
        // The venue handles requests in order, so those sent before the status request are decided.
        let is_decided = |pending: &PendingRequest| pending.waits == 0 && pending.id < report.client_order_id.0;
        if self.orders.pending(next.cancel).is_some_and(is_decided) {
            next.cancel = NONE;
        }
        if self.orders.pending(next.replace).is_some_and(is_decided) {
            next.replace = NONE;
        }
        if !next.phase.is_live() {
            (next.cancel, next.replace) = (NONE, NONE);
        }
        self.update_order(slot, &next);
        if !is_visible_change(&order, &next) {
            self.counts.duplicates += 1;
            return;
        }
        self.forward_report(&order, &next, (ReportClass::Status, report), ClientOrderId(next.client), out);
    }

    /// Clears an order's [`IN_DOUBT`] mark if the status request was sent after the doubt; returns whether it did.
    fn clear_doubt(&mut self, slot: u32, report: &ExecutionReport) -> bool {
        let order = self.orders.get_mut(slot);
        let is_since = report.client_order_id.0 >= self.venues.get(order.venue).last_loss;
        let ends = is_since && order.marks & IN_DOUBT != 0;
        if ends {
            order.marks &= !IN_DOUBT;
        }
        ends
    }
}

/// Returns the order as a status answer describes it; none if the answer has nothing new. `replacing` is the total and
/// the price that the pending replace asks for.
fn order_by_status(order: &Order, report: &ExecutionReport, replacing: (i64, i64)) -> Option<Order> {
    let mut next = *order;
    let status = OrdStatus::from_code(report.status)?;
    if is_unknown_at_venue(report) {
        let is_unreported =
            order.sequence == 0 && order.filled == 0 && order.reported == 0 && order.venue_order_id == 0;
        // An order in flight before the status request would have arrived by now.
        next.phase = match order.phase {
            OrderPhase::Lost | OrderPhase::Unknown if is_unreported => OrderPhase::Rejected,
            OrderPhase::Open => OrderPhase::Unknown,
            _ => return None,
        };
        // An order that turns up after all contradicts this end.
        next.marks |= if next.phase == OrderPhase::Rejected { UNSEQUENCED_END } else { 0 };
        return Some(next);
    }
    let is_doubtful = order.phase.is_unknown();
    // Later events are known already, or the venue does not number and nothing is in doubt.
    if report.venue_sequence < order.sequence || (report.venue_sequence == 0 && !is_doubtful) {
        return None;
    }
    if matches!(order.phase, OrderPhase::Armed | OrderPhase::Queued | OrderPhase::Denied) {
        return None;
    }
    if !is_doubtful && report.venue_sequence == order.sequence && order.is_contiguous() {
        return None;
    }
    next.reported = report.cumulative_quantity.0;
    if report.venue_order_id.0 != 0 {
        next.venue_order_id = report.venue_order_id.0;
    }
    let phase = match status {
        OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled => OrderPhase::Open,
        OrdStatus::Canceled if order.marks & END_TIME_PASSED != 0 => OrderPhase::Expired,
        OrdStatus::Canceled => OrderPhase::Canceled,
        OrdStatus::Expired | OrdStatus::DoneForDay => OrderPhase::Expired,
        OrdStatus::Rejected => OrderPhase::Rejected,
        _ => return None,
    };
    if phase == OrderPhase::Open {
        set_terms(&mut next, report);
    } else if next.filled == next.reported && next.filled > next.quantity {
        // The report of the replace was lost.
        (next.quantity, next.price) = if replacing.0 < next.filled { (next.filled, order.price) } else { replacing };
    }
    next.skip_to(report.venue_sequence);
    next.marks &= !UNSEQUENCED_END;
    // Missing fills keep the order in doubt, because their prices are unknown; so does a loss after the status request.
    let is_still_doubted = is_doubtful && order.marks & IN_DOUBT != 0 && phase == OrderPhase::Open;
    next.phase = if next.adds_up() && !is_still_doubted { phase } else { OrderPhase::Unknown };
    Some(next)
}

/// Returns whether the venue confirms the known state: requests sent before the status request then had no effect.
fn confirms_state(order: &Order, report: &ExecutionReport) -> bool {
    let works = match OrdStatus::from_code(report.status) {
        Some(OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled) => true,
        Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::DoneForDay | OrdStatus::Rejected) => false,
        _ => return false,
    };
    let is_known = match report.venue_sequence {
        0 => works && total_quantity(report) == order.quantity && report.price.0 == order.price,
        sequence => sequence == order.sequence,
    };
    is_known && !matches!(order.phase, OrderPhase::Armed | OrderPhase::Queued)
}
