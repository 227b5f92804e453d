//! Retries of new orders that a venue rejects with a code of the retry rules.
//!
//! ```text
//!   Sent ──rejected, by a code of the table──> Queued, under another id at the venue ──checked again──> Sent ──> ...
//!        ──rejected, by any other code, or once too often────────────────────────────────────────────> Rejected
//! ```
//!
//! A rejection may come twice, so each try has an id of its own at the venue: that of the rejection's record.
//! Everywhere else the order keeps its own id. An order with a pending cancel or replace is not tried again. Without
//! retry rules an order costs one branch.
//!
//! After another boot of the host a rejection and the retry may both be in the tail that the journal lost, and the
//! retry's id is then unknown. A rejection therefore does not end an order that was in flight at that time: it is in
//! doubt until its venue reports that it lived under the known id, or an operator resolves it. There is no doubt for
//! sessions whose outputs leave only after the disk has their input.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, NewOrder, Quantity, Request, VenueId};
use tickpath_oms_risk::{GIVE_UP, OTHER_LINE};

use crate::client_reports::base_report;
use crate::core::{At, Core};
use crate::id_source::fits_id;
use crate::order::{MAY_HAVE_RETRIED, NONE, Order};
use crate::report_class::{ReportClass, is_unknown_at_venue};
use crate::retry_rules::RetryState;
use crate::state::{OrderEvent, OrderPhase};
use crate::venue_queue::QueuedRequest;
use crate::{Output, Outputs, ReportRecord};

impl Core {
    /// Returns the line that the next waiting order should avoid, because it delivered the order's rejection.
    pub fn avoided_line(&self, venue: VenueId) -> Option<u8> {
        if self.retries.states.is_empty() {
            return None;
        }
        let waiting = self.venues.front(venue).filter(|waiting| matches!(waiting.request, Request::New(_)))?;
        u8::try_from(self.retries.states.get(&self.orders.get(waiting.order).id)?.avoided_line.checked_sub(1)?).ok()
    }

    /// Handles a rejection that leads to a retry, or a report of an earlier try; returns false for other reports.
    #[inline]
    pub(crate) fn apply_retry_report(
        &mut self,
        at: At,
        slot: u32,
        class: ReportClass,
        record: &ReportRecord,
        out: &mut Outputs,
    ) -> bool {
        let may_have_retried = self.orders.get(slot).marks & MAY_HAVE_RETRIED != 0;
        let may_be_retry = may_have_retried || !self.retries.states.is_empty() || !self.aliases.is_empty();
        may_be_retry && self.apply_current_retry(at, slot, class, record, out)
    }

    #[cold]
    fn apply_current_retry(
        &mut self,
        at: At,
        slot: u32,
        class: ReportClass,
        record: &ReportRecord,
        out: &mut Outputs,
    ) -> bool {
        let (order, sent_as) = (*self.orders.get(slot), record.report.order_id.0);
        if self.aliases.is_earlier(order.id, order.venue, sent_as) {
            self.apply_earlier_retry(at, slot, class, &record.report, out);
            return true;
        }
        // The venue had reported only its own id of the order until now.
        if sent_as != order.id && self.aliases.current(order.id).is_none() {
            self.aliases.add(order.id, order.venue, sent_as, 0);
        }
        match (class, self.retries.states.get(&order.id)) {
            (ReportClass::Acknowledged | ReportClass::Status | ReportClass::Lost | ReportClass::CancelRejected, _) => {
                false
            }
            (ReportClass::Rejected, _) if order.marks & MAY_HAVE_RETRIED != 0 => {
                // The venue has been asked for an unknown order already.
                match order.phase.is_unknown() {
                    true => self.counts.duplicates += 1,
                    false => self.put_in_doubt(at, slot, OrderEvent::ReportsLost, 0, out),
                }
                true
            }
            (ReportClass::Rejected, Some(&state)) if self.may_retry(at, slot, &state, &record.report) => {
                self.retry(at, slot, &state, record, out);
                true
            }
            _ => {
                // The order lives or has lived, or its rejection is final.
                self.orders.get_mut(slot).marks &= !MAY_HAVE_RETRIED;
                self.retries.untrack(order.id);
                false
            }
        }
    }

    /// Handles a report of an earlier, rejected try. A repeated rejection changes nothing; any other event puts the
    /// order in doubt, and its fills are booked.
    fn apply_earlier_retry(
        &mut self,
        at: At,
        slot: u32,
        class: ReportClass,
        report: &ExecutionReport,
        out: &mut Outputs,
    ) {
        let is_known = class == ReportClass::Filled && self.orders.find_fill(slot, report.exec_id.0).is_some();
        if is_known || matches!(class, ReportClass::Rejected | ReportClass::Status | ReportClass::Acknowledged) {
            self.counts.duplicates += 1;
            return;
        }
        self.counts.contradictions += 1;
        self.put_in_doubt(at, slot, OrderEvent::Conflict, 0, out);
        if class.has_fill() {
            // The sequence and the cumulative quantity are those of that try.
            let report = ExecutionReport { venue_sequence: 0, cumulative_quantity: Quantity::ZERO, ..*report };
            self.apply_event(at, slot, class, &report, out);
        }
    }

    /// Marks orders [`MAY_HAVE_RETRIED`] after another boot of the host: orders in flight, or that may have fired, may
    /// have been rejected and tried again in the journal's lost tail. Sessions whose outputs wait for the disk are
    /// exempt.
    pub(crate) fn mark_possible_retries(&mut self) {
        let sent = self.retries.states.keys().filter_map(|&order| self.orders.find(order));
        let sent = sent.filter(|&slot| self.orders.get(slot).phase == OrderPhase::Sent);
        let fired = self.triggers.keys().copied().filter(|&slot| !self.is_armed(slot));
        let fired = fired.filter(|&slot| self.retries.allows_retry(self.orders.get(slot).venue));
        for slot in sent.chain(fired).collect::<Vec<_>>() {
            let order = self.orders.get_mut(slot);
            if self.trading.rules(order.session).level == 0 {
                order.marks |= MAY_HAVE_RETRIED;
            }
        }
    }

    /// Returns the order after a status answer, if it may have been tried again under an unknown id. A rejection proves
    /// nothing; neither does a missing order, unless the venue numbers and would have numbered a rejection.
    #[cold]
    pub(crate) fn resolve_possible_retry(&mut self, order: &Order, report: &ExecutionReport, next: Order) -> Order {
        let numbered = self.venues.get(order.venue).rules.numbered != 0;
        match next.phase {
            OrderPhase::Rejected if !(numbered && is_unknown_at_venue(report)) => {
                Order { phase: OrderPhase::Unknown, ..*order }
            }
            _ => Order { marks: next.marks & !MAY_HAVE_RETRIED, ..next },
        }
    }

    /// Returns whether an order may be tried again: its rejection is the venue's only event, no cancel or replace is
    /// pending, and a retry rule allows it.
    fn may_retry(&self, at: At, slot: u32, state: &RetryState, report: &ExecutionReport) -> bool {
        let order = self.orders.get(slot);
        let rule = self.retries.rule(order.venue, report.reason).filter(|rule| rule.action != GIVE_UP);
        let numbered = self.venues.find(order.venue).is_none_or(|venue| venue.rules.numbered != 0);
        rule.is_some_and(|rule| state.count < rule.times)
            && order.phase == OrderPhase::Sent
            && (order.cancel, order.replace) == (NONE, NONE)
            && (order.sequence, order.filled, report.cumulative_quantity.0) == (0, 0, 0)
            && report.venue_sequence == u64::from(numbered)
            && !self.trading.disk_failed
            && fits_id(at.sequence)
    }

    /// Queues a rejected order to be checked again and sent under another id; its client gets the venue's code.
    fn retry(&mut self, at: At, slot: u32, state: &RetryState, record: &ReportRecord, out: &mut Outputs) {
        let (order, report) = (*self.orders.get(slot), &record.report);
        let rule = self.retries.rule(order.venue, report.reason);
        let avoids_line = rule.is_some_and(|rule| rule.action == OTHER_LINE);
        let id = self.id(at);
        let new_order = NewOrder { client_order_id: ClientOrderId(id), ..state.request };
        self.aliases.add(order.id, order.venue, id, 0);
        self.retries.record_retry(state, new_order, if avoids_line { record.line } else { 0 });
        self.update_order(slot, &Order { phase: order.phase.after(OrderEvent::Returned), ..order });
        let request = Request::New(new_order);
        let waiting = QueuedRequest { order: slot, session: order.session, request, sent: state.sent };
        self.venues.get(order.venue).waiting.push(waiting);
        let report = ExecutionReport {
            exec_type: ExecType::OrderStatus.code(),
            reason: report.reason,
            venue: report.venue,
            ..base_report(self.orders.get(slot), ClientOrderId(order.client))
        };
        out.push(Output::Report { session: order.session, report });
    }
}
