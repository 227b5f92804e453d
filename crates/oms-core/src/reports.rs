//! Merge of venue reports into orders, independent of the order in which reports arrive.
//!
//! A report is classified ([`ReportClass`]), checked against the order that it names, checked for duplicates and merged
//! into the order ([`ReportContext::merge`]); the client gets each change once. Answers to status requests are in
//! `status_answers.rs`.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport};

use crate::client_reports::is_visible_change;
use crate::core::{At, Core};
use crate::order::{END_TIME_PASSED, Fill, HAS_MANUAL_FILL, MANUAL_FILL, Order};
use crate::report_class::ReportClass;
use crate::report_merge::{AnsweredRequest, ReportContext};
use crate::state::OrderPhase;
use crate::unknown_reports::MAX_REPORTS;
use crate::{Outputs, ReportRecord};

/// Effect of a report on a fill.
#[derive(Debug, Clone, Copy)]
struct FillChange {
    /// Slot of the fill in the order store; none for a new fill.
    fill_slot: Option<u32>,
    /// The fill after the change.
    fill: Fill,
    /// Change of the order's filled quantity.
    added: i64,
    /// Part of the change that an operator has booked already.
    already_booked: i64,
    /// An operator has booked the whole change, so a venue sequence that counts as seen is no contradiction.
    is_manual: bool,
}

impl Core {
    /// Merges a venue's report into its order and reports the change to the client.
    #[inline]
    pub(crate) fn apply_report(&mut self, at: At, record: &ReportRecord, out: &mut Outputs) {
        let report = &record.report;
        let Some(class) = ReportClass::classify(report) else {
            self.counts.malformed += 1;
            return;
        };
        let found = self.find_by_venue_id(record.source, report.order_id.0, report.venue_order_id.0);
        let Some(slot) = found else { return self.keep_unknown_report(at, class, record) };
        if !class.matches_order(self.orders.get(slot), record) {
            self.counts.mismatched += 1;
            return;
        }
        if self.apply_retry_report(at, slot, class, record, out) {
            return;
        }
        if class == ReportClass::Canceled && self.orders.get(slot).marks & END_TIME_PASSED != 0 {
            let expired = ExecutionReport { exec_type: ExecType::Expired.code(), ..*report };
            return self.apply_event(at, slot, ReportClass::Expired, &expired, out);
        }
        match class {
            ReportClass::Acknowledged => self.counts.duplicates += 1,
            ReportClass::Status => self.apply_status(at, slot, report, out),
            _ => self.apply_event(at, slot, class, report, out),
        }
    }

    /// Returns whether reports of unknown orders, of all venues since the journal began, have reached their limit: any
    /// further report is not worth a journal record.
    #[inline]
    pub fn has_max_unknown_reports(&self) -> bool {
        self.counts.unknown_order_reports >= MAX_REPORTS as u64
    }

    /// Returns whether a report belongs to a known order, or ends the answer to a reconcile request.
    pub fn is_for_known_order(&self, record: &ReportRecord) -> bool {
        let ReportRecord { report, source, .. } = record;
        report.ends_status_answer()
            || self.find_by_venue_id(*source, report.order_id.0, report.venue_order_id.0).is_some()
    }

    /// Counts a report of an unknown order, and keeps it until its order is entered by hand.
    #[cold]
    fn keep_unknown_report(&mut self, at: At, class: ReportClass, record: &ReportRecord) {
        if record.report.ends_status_answer() {
            return;
        }
        self.counts.unknown_order_reports += 1;
        // The answer to a status request for a forgotten order describes no order.
        let describes_order = !matches!(class, ReportClass::Acknowledged | ReportClass::CancelRejected);
        if describes_order && record.report.side != 0 {
            self.unknown_reports.insert(at.sequence, record);
        }
    }

    /// Applies a venue's event to an order.
    pub(crate) fn apply_event(
        &mut self,
        at: At,
        slot: u32,
        class: ReportClass,
        report: &ExecutionReport,
        out: &mut Outputs,
    ) {
        let order = *self.orders.get(slot);
        let mut next = order;
        let is_new = report.venue_sequence == 0 || next.note_sequence(report.venue_sequence);
        let fill = self.fill_after_report(slot, class, report, is_new);
        let (answers, client) = self.answered_request(&order, report);
        let context = ReportContext {
            class,
            answers,
            report,
            added: fill.map_or(0, |change| change.added),
            replacing: self.orders.pending_replace(&order).0,
            is_new: is_new || fill.is_some_and(|change| change.is_manual),
            numbered: self.venues.get(order.venue).rules.numbered != 0,
        };
        if context.is_duplicate_or_foreign(&order, fill.is_some()) {
            self.counts.duplicates += 1;
            return;
        }
        context.merge(&order, &mut next);
        if next.sequence > 0 && !next.is_contiguous() && next.phase.is_live() {
            self.note_gap(slot, at.stamp);
            next.marks |= self.orders.get(slot).marks;
        }
        self.update_order(slot, &next);
        // The venue reports on the order, so the order's trigger has fired.
        if !self.triggers.is_empty() && class != ReportClass::Lost {
            self.triggers.remove(&slot);
        }
        match fill {
            Some(FillChange { fill_slot, fill, added, already_booked, .. }) => {
                self.orders.put_fill(fill_slot, fill);
                if already_booked != 0 {
                    self.orders.book_manual_fill(slot, -already_booked);
                }
                self.book_fill(&next, report.last_price.0, added);
            }
            None if !is_visible_change(&order, &next) => {
                self.counts.duplicates += 1;
                return;
            }
            None => {}
        }
        if next.phase == OrderPhase::Unknown && order.phase != OrderPhase::Unknown {
            self.counts.contradictions += u64::from(class != ReportClass::Lost);
        }
        // Late fills may have been the only cause of the doubt: ask the venue again.
        let is_complete = fill.is_some() && next.adds_up() && !order.adds_up();
        if next.phase.is_unknown() && (next.phase != order.phase || is_complete) {
            self.query_status(at, slot, out);
        }
        self.forward_report(&order, &next, (class, report), client, out);
    }

    /// Returns a fill after a report, and the change of the filled quantity; none if nothing changes. An amendment that
    /// arrives before its fill stands in for the fill, and of two amendments the later one holds.
    fn fill_after_report(
        &self,
        slot: u32,
        class: ReportClass,
        report: &ExecutionReport,
        is_new: bool,
    ) -> Option<FillChange> {
        if !class.has_fill() {
            return None;
        }
        let is_taken_back = report.exec_type == ExecType::TradeCancel.code();
        let quantity = if is_taken_back { 0 } else { report.last_quantity.0 };
        let sequence = report.venue_sequence.min(u32::MAX.into()) as u32;
        let changed = if class == ReportClass::Amended { sequence.max(1) } else { 0 };
        let mut fill = Fill { exec: report.exec_id.0, quantity, order: slot, changed };
        let (fill_slot, mut added) = (self.orders.find_fill(slot, fill.exec), quantity);
        if let Some(before) = fill_slot.map(|fill_slot| self.orders.fill(fill_slot)) {
            let is_amended = match (class, sequence) {
                (ReportClass::Filled, _) => false,
                (_, 0) => before.changed == 0 || before.quantity != quantity,
                (_, sequence) => sequence > before.changed,
            };
            if !is_amended {
                return None;
            }
            fill.changed = changed.max(before.changed);
            added = quantity - before.quantity;
        }
        let change = FillChange { fill_slot, fill, added, already_booked: 0, is_manual: false };
        Some(self.deduct_manual_fill(change, class, report, is_new))
    }

    /// Deducts the part of a fill's change that an operator has booked already.
    fn deduct_manual_fill(
        &self,
        change: FillChange,
        class: ReportClass,
        report: &ExecutionReport,
        is_new: bool,
    ) -> FillChange {
        let (slot, added) = (change.fill.order, change.added);
        let order = self.orders.get(slot);
        if order.marks & HAS_MANUAL_FILL == 0 {
            return change;
        }
        let booked = self.orders.find_fill(slot, MANUAL_FILL).map_or(0, |slot| self.orders.fill(slot).quantity);
        let known = match class {
            // The operator's booking covers the events before it; a new event counts in full.
            ReportClass::Filled if is_new => 0,
            ReportClass::Filled => added.min(booked.max(0)),
            // The venue's cumulative quantity shows how much of the change is new.
            _ => {
                let unbooked = report.cumulative_quantity.0.saturating_sub(order.filled);
                added.saturating_sub(unbooked).clamp(booked.min(0), booked.max(0))
            }
        };
        FillChange { added: added - known, already_booked: known, is_manual: known != 0 && known == added, ..change }
    }

    /// Returns which outstanding request a report answers, with the client's id of it; without one the order's id.
    fn answered_request(&self, order: &Order, report: &ExecutionReport) -> (AnsweredRequest, ClientOrderId) {
        let id = report.client_order_id.0;
        if self.orders.is_pending(order.cancel, id) {
            (AnsweredRequest::Cancel, self.owners_request_id(order, order.cancel))
        } else if let Some(replace) = self.orders.pending(order.replace).filter(|replace| replace.id == id) {
            (AnsweredRequest::Replace, ClientOrderId(replace.client))
        } else {
            (AnsweredRequest::Neither, ClientOrderId(order.client))
        }
    }
}
