//! Merge of one venue event into the state of its order.
//!
//! With venue sequences every part of the merge commutes, and once no sequence is missing the fills must add up to the
//! venue's cumulative quantity.

use tickpath_market::{ExecutionReport, OrdStatus};

use crate::order::{IN_DOUBT, NONE, Order, UNSEQUENCED_END};
use crate::report_class::{ReportClass, total_quantity};
use crate::state::{OrderEvent, OrderPhase};

/// The outstanding request that a report answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnsweredRequest {
    Cancel,
    Replace,
    Neither,
}

/// A report with the facts that the merge needs.
pub(crate) struct ReportContext<'a> {
    pub(crate) class: ReportClass,
    pub(crate) answers: AnsweredRequest,
    pub(crate) report: &'a ExecutionReport,
    /// Change of the filled quantity.
    pub(crate) added: i64,
    /// Total that the pending replace asks for; zero without a pending replace.
    pub(crate) replacing: i64,
    /// The venue sequence is new or zero, or an operator has booked the fill already.
    pub(crate) is_new: bool,
    /// The venue numbers the events of its orders.
    pub(crate) numbered: bool,
}

impl ReportContext<'_> {
    /// Returns whether the report is no event of the order: a duplicate, or about another message. A report that
    /// changes a fill is always an event.
    pub(crate) fn is_duplicate_or_foreign(&self, order: &Order, changes_fill: bool) -> bool {
        let has_number = self.report.venue_sequence != 0;
        match self.class {
            ReportClass::Filled | ReportClass::Amended => !(changes_fill || has_number && self.is_new),
            ReportClass::Lost => false,
            // A numbering venue rejects without a sequence: a message sent after the order's end was rejected.
            ReportClass::Rejected if !has_number => self.numbered && !order.phase.is_live(),
            _ => !self.is_new,
        }
    }

    /// Merges the report into `next`, which has noted the report's sequence already. The state before, `order`, shows
    /// whether a report without a sequence contradicts it.
    pub(crate) fn merge(&self, order: &Order, next: &mut Order) {
        if self.class != ReportClass::Lost {
            self.merge_reported(order, next);
            self.merge_identity(order, next);
        }
        match (self.class, self.answers) {
            (ReportClass::Filled | ReportClass::Amended, _) => {
                next.filled = next.filled.saturating_add(self.added).max(0);
            }
            (ReportClass::CancelRejected, AnsweredRequest::Cancel) => next.cancel = NONE,
            (ReportClass::CancelRejected | ReportClass::Replaced, AnsweredRequest::Replace) => next.replace = NONE,
            _ => {}
        }
        self.merge_terms(next);
        next.phase = order.phase.after(self.event(order, next));
        if next.phase == OrderPhase::Rejected && self.class == ReportClass::Rejected && self.report.venue_sequence == 0
        {
            next.marks |= UNSEQUENCED_END;
        }
        if matches!(next.phase, OrderPhase::Expired | OrderPhase::Canceled | OrderPhase::Rejected) {
            (next.cancel, next.replace) = (NONE, NONE);
        }
    }

    /// Updates the venue's quantity: that of the highest sequence, because a bust lowers it; without sequences the
    /// largest.
    fn merge_reported(&self, order: &Order, next: &mut Order) {
        let reported = self.report.cumulative_quantity.0;
        // The quantity reported before still includes the part that is taken back.
        let taken_back = if self.class == ReportClass::Amended { self.added.min(0) } else { 0 };
        let before = order.reported.saturating_add(taken_back);
        match self.report.venue_sequence {
            0 => next.reported = before.max(reported),
            sequence if sequence > order.sequence => next.reported = reported,
            _ => {}
        }
    }

    /// Updates the venue's order id, which may change with a replace: the latest report counts.
    fn merge_identity(&self, order: &Order, next: &mut Order) {
        let report = self.report;
        let is_latest = report.venue_sequence == 0 || report.venue_sequence > order.sequence;
        if report.venue_order_id.0 != 0 && (is_latest || next.venue_order_id == 0) {
            next.venue_order_id = report.venue_order_id.0;
        }
    }

    /// Updates price and quantity: from the replace report with the highest sequence; without sequences, from the
    /// answer to the pending replace. A sequenced amendment before the end counts too: busted quantity may return to
    /// the book.
    fn merge_terms(&self, next: &mut Order) {
        let status = OrdStatus::from_code(self.report.status);
        let has_ended = matches!(status, Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected));
        let has_terms = match (self.class, self.report.venue_sequence) {
            (ReportClass::Replaced, 0) => self.answers == AnsweredRequest::Replace,
            (ReportClass::Replaced, sequence) => sequence > next.terms_sequence,
            (ReportClass::Amended, sequence) => sequence > next.terms_sequence && !has_ended,
            _ => false,
        };
        if has_terms {
            set_terms(next, self.report);
        }
    }

    /// Returns the event of the order's phase that the report stands for.
    fn event(&self, order: &Order, next: &Order) -> OrderEvent {
        let sequence = self.report.venue_sequence;
        let is_conflict = match sequence {
            0 => self.contradicts(order, next),
            _ => !self.is_new || (next.is_contiguous() && !next.adds_up()),
        };
        let shows_life = match self.class {
            ReportClass::Accepted | ReportClass::Filled | ReportClass::Replaced => true,
            // An amendment contradicts the end if quantity is left, or if the order was rejected and has no fills.
            ReportClass::Amended => self.report.leaves_quantity.0 > 0 || order.phase == OrderPhase::Rejected,
            _ => false,
        };
        if self.class != ReportClass::Lost && (is_conflict || (shows_life && order.marks & UNSEQUENCED_END != 0)) {
            return OrderEvent::Conflict;
        }
        match self.class {
            ReportClass::Accepted | ReportClass::Filled | ReportClass::Replaced
                if sequence > order.sequence && order.marks & IN_DOUBT == 0 =>
            {
                OrderEvent::Confirmed
            }
            ReportClass::Accepted | ReportClass::Filled | ReportClass::Replaced => OrderEvent::Working,
            ReportClass::CancelRejected | ReportClass::Acknowledged | ReportClass::Status | ReportClass::Amended => {
                OrderEvent::Refused
            }
            ReportClass::Expired => OrderEvent::Expired,
            ReportClass::Canceled => OrderEvent::Canceled,
            ReportClass::Rejected => OrderEvent::Rejected,
            ReportClass::Lost => OrderEvent::RequestLost,
        }
    }

    /// Returns whether a report without a sequence contradicts the known state, for every possible order of events.
    fn contradicts(&self, order: &Order, next: &Order) -> bool {
        match (self.class, order.phase) {
            (ReportClass::Filled, OrderPhase::Rejected) => true,
            (ReportClass::Filled, OrderPhase::Expired | OrderPhase::Canceled) => next.filled > order.reported,
            (ReportClass::Filled | ReportClass::Amended, _) => next.filled > order.quantity.max(self.replacing),
            (ReportClass::Expired | ReportClass::Canceled, _) => self.report.cumulative_quantity.0 < next.filled,
            // The order lives, or its venue would have numbered the rejection: another message was rejected.
            (ReportClass::Rejected, OrderPhase::Open | OrderPhase::Unknown) => true,
            (ReportClass::Rejected, _) => self.numbered || next.filled > 0,
            (ReportClass::Replaced, phase) => {
                let is_known = order.price == self.report.price.0 && order.quantity == total_quantity(self.report);
                phase.is_live() && self.answers != AnsweredRequest::Replace && !is_known
            }
            (
                ReportClass::Accepted
                | ReportClass::CancelRejected
                | ReportClass::Lost
                | ReportClass::Status
                | ReportClass::Acknowledged,
                _,
            ) => false,
        }
    }
}

/// Sets price and quantity of an order to those of a report.
pub(crate) fn set_terms(next: &mut Order, report: &ExecutionReport) {
    next.price = report.price.0;
    next.valuation_price = if report.price.0 == 0 { next.valuation_price } else { report.price.0 };
    next.quantity = total_quantity(report);
    next.terms_sequence = next.terms_sequence.max(report.venue_sequence);
}
