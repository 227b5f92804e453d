//! Merge of venue reports into orders, independent of the order in which reports arrive.
//!
//! A report is classified ([`ReportClass`]), checked against the order that it names, checked for duplicates and merged into
//! the order ([`merge`]); the client gets each change once. With venue sequences every part of the merge commutes, and
//! once no sequence is missing the fills must add up to the venue's cumulative quantity.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, Price, Quantity, VenueId};

use crate::core::{At, Core};
use crate::order::{
    Fill, HAS_MANUAL_FILL, IN_DOUBT, MANUAL_FILL, MAY_HAVE_RETRIED, NONE, Order, PendingRequest, UNSEQUENCED_END,
};
use crate::requests::{base_report, report_as};
use crate::state::{OrderEvent, OrderPhase, next_phase};
use crate::unknown_reports::MAX_REPORTS as MOST_FOREIGN;
use crate::{Output, Outputs, ReportRecord};

/// Kind of a venue report, as the merge treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportClass {
    Accepted,
    Filled,
    Replaced,
    CancelRejected,
    Expired,
    Canceled,
    Rejected,
    Lost,
    /// Correction or bust of a fill.
    Amended,
    /// Status of an order, in answer to a status request.
    Status,
    /// Acknowledgement of a pending request, which the core knows of already.
    Acknowledged,
}

/// Effect of a report on a fill.
#[derive(Debug, Clone, Copy)]
struct FillChange {
    /// Change of the order's filled quantity.
    added: i64,
    /// The fill after the change.
    fill: Fill,
    /// Part of the change that an operator has booked already.
    already_booked: i64,
    /// An operator has booked the whole change, so a venue sequence that counts as seen is no contradiction.
    is_manual: bool,
}

/// The outstanding request that a report answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnsweredRequest {
    Cancel,
    Replace,
    Neither,
}

impl Core {
    /// Merges a venue's report into its order and reports the change to the client.
    #[inline]
    pub(crate) fn report(&mut self, at: At, record: &ReportRecord, out: &mut Outputs) {
        let report = &record.report;
        let Some(said) = ReportClass::classify(report) else {
            self.counts.malformed += 1;
            return;
        };
        let found = self.find_by_venue_id(record.source.0, report.order_id.0, report.venue_order_id.0);
        let Some(slot) = found else { return self.keep_unknown_report(at, said, record) };
        if !matches_order(self.orders.get(slot), said, record) {
            self.counts.mismatched += 1;
            return;
        }
        if self.apply_retry_report(at, slot, said, record, out) {
            return;
        }
        match said {
            ReportClass::Acknowledged => self.counts.duplicates += 1,
            ReportClass::Status => self.apply_status(at, slot, report, out),
            _ => self.apply_event(at, slot, said, report, out),
        }
    }

    /// Returns whether reports of unknown orders have reached the number that is ever kept: any further report is not
    /// worth a journal record.
    #[inline]
    pub fn has_max_unknown_reports(&self) -> bool {
        self.counts.unknown_order_reports >= MOST_FOREIGN as u64
    }

    /// Returns whether a report belongs to a known order, or ends the answer to a reconcile request.
    pub fn is_for_known_order(&self, record: &ReportRecord) -> bool {
        let ReportRecord { report, source, .. } = record;
        report.ends_status_answer()
            || self.find_by_venue_id(source.0, report.order_id.0, report.venue_order_id.0).is_some()
    }

    /// Counts a report of an unknown order, and keeps it until its order is entered by hand.
    #[cold]
    fn keep_unknown_report(&mut self, at: At, said: ReportClass, record: &ReportRecord) {
        if record.report.ends_status_answer() {
            return;
        }
        self.counts.unknown_order_reports += 1;
        // The answer to a status request for a forgotten order describes no order.
        let says_something =
            !matches!(said, ReportClass::Acknowledged | ReportClass::CancelRejected) && record.report.side != 0;
        if says_something {
            self.unknown_reports.insert(at.sequence, record);
        }
    }

    /// Applies a venue's event to an order.
    pub(crate) fn apply_event(
        &mut self,
        at: At,
        slot: u32,
        said: ReportClass,
        report: &ExecutionReport,
        out: &mut Outputs,
    ) {
        let order = *self.orders.get(slot);
        let mut next = order;
        let is_new = report.venue_sequence == 0 || next.note_sequence(report.venue_sequence);
        let fill = self.fill_after_report(slot, said, report, is_new);
        let (answers, client) = self.answered_request(&order, report);
        let numbered = self.routes.get(VenueId(order.route)).rules.numbered != 0;
        let word = ReportContext {
            class: said,
            answers,
            report,
            added: fill.map_or(0, |change| change.added),
            replacing: self.pending_replace(&order).0,
            is_new: is_new || fill.is_some_and(|change| change.is_manual),
            numbered,
        };
        if word.is_not_event(&order, fill.is_some()) {
            self.counts.duplicates += 1;
            return;
        }
        merge(&order, &mut next, &word);
        if next.sequence > 0 && !next.is_contiguous() && next.phase.is_live() {
            self.orders.get_mut(slot).marks = order.marks;
            self.note_gap(slot, at.stamp);
            next.marks |= self.orders.get(slot).marks;
        }
        self.update_order(slot, &next);
        // The venue reports on the order, so the order's trigger has fired.
        if !self.armed.is_empty() && said != ReportClass::Lost {
            self.armed.remove(&slot);
        }
        match fill {
            Some(FillChange { added: adds, fill, already_booked: known, .. }) => {
                self.upsert_fill(fill);
                if known != 0 {
                    self.book_manual_fill(slot, -known);
                }
                self.book_fill(&next, report.last_price.0, adds);
            }
            None if !is_visible_change(&order, &next) => {
                self.counts.duplicates += 1;
                return;
            }
            None => {}
        }
        if next.phase == OrderPhase::Unknown && order.phase != OrderPhase::Unknown {
            self.counts.contradictions += u64::from(said != ReportClass::Lost);
        }
        // Late fills may have been the only cause of the doubt: ask the venue again.
        let is_complete = fill.is_some() && adds_up(&next) && !adds_up(&order);
        if next.phase.is_unknown() && (next.phase != order.phase || is_complete) {
            self.inquire(at, slot, out);
        }
        out.push(Output::Report { session: next.session, report: to_client(&next, said, report, client) });
        self.notify_if_decided(&order, &next, out, |client| to_requester(&next, said, report, client));
    }

    /// Finds a fill by order and execution id, because a venue may give both sides of a trade the same execution id.
    pub(crate) fn find_fill(&self, slot: u32, exec: u64) -> Option<u32> {
        self.by_exec.find(self.tag(slot.into(), exec), |place| {
            let fill = self.fills.get(place);
            fill.order == slot && fill.exec == exec
        })
    }

    pub(crate) fn add_fill(&mut self, fill: Fill) {
        let place = self.fills.push(fill);
        self.by_exec.insert(self.tag(fill.order.into(), fill.exec), place);
    }

    /// Returns a fill after a report, and the change of the filled quantity; none if nothing changes. An amendment that
    /// arrives before its fill stands in for the fill, and of two amendments the later one holds.
    fn fill_after_report(
        &self,
        slot: u32,
        said: ReportClass,
        report: &ExecutionReport,
        is_new: bool,
    ) -> Option<FillChange> {
        if said != ReportClass::Filled && said != ReportClass::Amended {
            return None;
        }
        let is_taken_back = report.exec_type == ExecType::TradeCancel.code();
        let quantity = if is_taken_back { 0 } else { report.last_quantity.0 };
        let sequence = report.venue_sequence.min(u32::MAX.into()) as u32;
        let changed = if said == ReportClass::Amended { sequence.max(1) } else { 0 };
        let after = Fill { exec: report.exec_id.0, quantity, order: slot, changed };
        let Some(place) = self.find_fill(slot, report.exec_id.0) else {
            return Some(self.fill_change(said, report, is_new, quantity, after));
        };
        let before = self.fills.get(place);
        let is_amended = match (said, sequence) {
            (ReportClass::Filled, _) => false,
            (_, 0) => before.changed == 0 || before.quantity != quantity,
            (_, sequence) => sequence > before.changed,
        };
        let after = Fill { changed: changed.max(before.changed), ..after };
        is_amended.then(|| self.fill_change(said, report, is_new, quantity - before.quantity, after))
    }

    /// Computes the change of a fill, less the part that an operator has booked already.
    fn fill_change(
        &self,
        said: ReportClass,
        report: &ExecutionReport,
        is_new: bool,
        adds: i64,
        fill: Fill,
    ) -> FillChange {
        let order = self.orders.get(fill.order);
        if order.marks & HAS_MANUAL_FILL == 0 {
            return FillChange { added: adds, fill, already_booked: 0, is_manual: false };
        }
        let booked = self.find_fill(fill.order, MANUAL_FILL).map_or(0, |place| self.fills.get(place).quantity);
        let known = match said {
            // The operator's booking covers the events before it; a new event counts in full.
            ReportClass::Filled if is_new => 0,
            ReportClass::Filled => adds.min(booked.max(0)),
            // The venue's cumulative quantity shows how much of the change is new.
            _ => {
                let news = report.cumulative_quantity.0.saturating_sub(order.filled);
                adds.saturating_sub(news).clamp(booked.min(0), booked.max(0))
            }
        };
        FillChange { added: adds - known, fill, already_booked: known, is_manual: known != 0 && known == adds }
    }

    /// Books the filled quantity that an operator has entered, or takes part of it back.
    pub(crate) fn book_manual_fill(&mut self, slot: u32, adds: i64) {
        match self.find_fill(slot, MANUAL_FILL) {
            Some(place) => {
                let word = self.fills.get_mut(place);
                word.quantity = word.quantity.saturating_add(adds);
            }
            None if adds != 0 => self.add_fill(Fill { exec: MANUAL_FILL, quantity: adds, order: slot, changed: 0 }),
            None => {}
        }
    }

    fn upsert_fill(&mut self, fill: Fill) {
        match self.find_fill(fill.order, fill.exec) {
            Some(place) => *self.fills.get_mut(place) = fill,
            None => self.add_fill(fill),
        }
    }

    /// Returns which outstanding request a report answers, with the client's id of it; without one the order's id.
    fn answered_request(&self, order: &Order, report: &ExecutionReport) -> (AnsweredRequest, ClientOrderId) {
        let id = report.client_order_id.0;
        let is_meant = |ask: &&PendingRequest| ask.id == id;
        if self.pending_request(order.cancel).is_some_and(|ask| is_meant(&ask)) {
            (AnsweredRequest::Cancel, self.owners_request_id(order, order.cancel))
        } else if let Some(ask) = self.pending_request(order.replace).filter(is_meant) {
            (AnsweredRequest::Replace, ClientOrderId(ask.client))
        } else {
            (AnsweredRequest::Neither, ClientOrderId(order.client))
        }
    }

    /// Clears an order's [`IN_DOUBT`] mark if the status request was sent after the doubt; returns whether it did.
    fn clear_doubt(&mut self, slot: u32, report: &ExecutionReport) -> bool {
        let order = self.orders.get_mut(slot);
        let is_since = report.client_order_id.0 >= self.routes.get(VenueId(order.route)).last_loss;
        let ends = is_since && order.marks & IN_DOUBT != 0;
        if ends {
            order.marks &= !IN_DOUBT;
        }
        ends
    }

    /// Applies a venue's answer to a status request. It is no event, but covers all events up to its sequence.
    fn apply_status(&mut self, at: At, slot: u32, report: &ExecutionReport, out: &mut Outputs) {
        let ends_doubt = self.clear_doubt(slot, report);
        let order = *self.orders.get(slot);
        let unchanged = confirms_state(&order, report).then_some(order);
        let mut said = order_by_status(&order, report, self.pending_replace(&order)).or(unchanged);
        if order.marks & MAY_HAVE_RETRIED != 0 {
            said = said.map(|next| self.resolve_possible_retry(&order, report, next));
        }
        if !self.armed.is_empty() {
            said = said.and_then(|next| self.resolve_armed_status(slot, report, next));
        }
        let Some(mut next) = said else {
            self.counts.duplicates += 1;
            // A later event overtook this answer, but could not end the doubt while the mark was set: ask again.
            if ends_doubt && order.phase.is_unknown() {
                self.inquire(at, slot, out);
            }
            return;
        };
        // The venue handles requests in order, so those sent before the status request are decided.
        let decided = |ask: &PendingRequest| ask.waits == 0 && ask.id < report.client_order_id.0;
        if self.pending_request(next.cancel).is_some_and(decided) {
            next.cancel = NONE;
        }
        if self.pending_request(next.replace).is_some_and(decided) {
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
        let client = ClientOrderId(next.client);
        out.push(Output::Report {
            session: next.session,
            report: to_client(&next, ReportClass::Status, report, client),
        });
        self.notify_if_decided(&order, &next, out, |client| to_requester(&next, ReportClass::Status, report, client));
    }
}

impl ReportClass {
    /// Classifies a report; none if the report cannot be true.
    fn classify(report: &ExecutionReport) -> Option<Self> {
        let exec_type = ExecType::from_code(report.exec_type)?;
        if OrdStatus::from_code(report.status)? == OrdStatus::Unknown {
            return Some(Self::Lost);
        }
        if report.cumulative_quantity.0 < 0 || report.leaves_quantity.0 < 0 {
            return None;
        }
        let is_fill = report.exec_id.0 != 0 && report.last_quantity.0 > 0;
        match exec_type {
            ExecType::New => Some(Self::Accepted),
            ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel if !is_fill => None,
            ExecType::Trade => Some(Self::Filled),
            ExecType::TradeCorrect | ExecType::TradeCancel => Some(Self::Amended),
            ExecType::Replaced => Some(Self::Replaced),
            ExecType::CancelRejected => Some(Self::CancelRejected),
            ExecType::Expired => Some(Self::Expired),
            ExecType::Canceled => Some(Self::Canceled),
            ExecType::Rejected => Some(Self::Rejected),
            ExecType::OrderStatus => Some(Self::Status),
            ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace | ExecType::Triggered => {
                Some(Self::Acknowledged)
            }
        }
    }
}

/// Returns whether a report matches the order that its id names. A cancel rejection or a status answer may lack the
/// side, because the venue may not know the order, or not any more.
fn matches_order(order: &Order, said: ReportClass, record: &ReportRecord) -> bool {
    let report = &record.report;
    let need_not_know = said == ReportClass::CancelRejected || report.exec_type == ExecType::OrderStatus.code();
    let side = report.side == order.side.code() || (need_not_know && report.side == 0);
    let venue = report.venue.0 == order.route && record.source.0 == order.route;
    side && venue && report.symbol == order.symbol && report.account == order.account
}

/// A report with the facts that the merge needs.
struct ReportContext<'a> {
    class: ReportClass,
    answers: AnsweredRequest,
    report: &'a ExecutionReport,
    /// Change of the filled quantity.
    added: i64,
    /// Total that the pending replace asks for; zero without a pending replace.
    replacing: i64,
    /// The venue sequence is new or zero, or an operator has booked the fill already.
    is_new: bool,
    /// The venue numbers the events of its orders.
    numbered: bool,
}

impl ReportContext<'_> {
    /// Returns whether the report is no event of the order: a duplicate, or about another message. A report that
    /// changes a fill is always an event.
    fn is_not_event(&self, order: &Order, changes_fill: bool) -> bool {
        let has_number = self.report.venue_sequence != 0;
        match self.class {
            ReportClass::Filled | ReportClass::Amended => !(changes_fill || has_number && self.is_new),
            ReportClass::Lost => false,
            // A numbering venue rejects without a sequence: a message sent after the order's end was rejected.
            ReportClass::Rejected if !has_number => self.numbered && !order.phase.is_live(),
            _ => !self.is_new,
        }
    }
}

/// Merges a report into `next`, which has noted the report's sequence already. The state before, `order`, shows whether
/// a report without a sequence contradicts it.
fn merge(order: &Order, next: &mut Order, word: &ReportContext<'_>) {
    if word.class != ReportClass::Lost {
        merge_reported(order, next, word);
        merge_identity(order, next, word.report);
    }
    match (word.class, word.answers) {
        (ReportClass::Filled | ReportClass::Amended, _) => next.filled = next.filled.saturating_add(word.added).max(0),
        (ReportClass::CancelRejected, AnsweredRequest::Cancel) => next.cancel = NONE,
        (ReportClass::CancelRejected | ReportClass::Replaced, AnsweredRequest::Replace) => next.replace = NONE,
        _ => {}
    }
    merge_terms(next, word);
    next.phase = next_phase(order.phase, order_event(order, next, word)).unwrap_or(order.phase);
    if next.phase == OrderPhase::Rejected && word.class == ReportClass::Rejected && word.report.venue_sequence == 0 {
        next.marks |= UNSEQUENCED_END;
    }
    if matches!(next.phase, OrderPhase::Expired | OrderPhase::Canceled | OrderPhase::Rejected) {
        (next.cancel, next.replace) = (NONE, NONE);
    }
}

/// Updates the venue's quantity: that of the highest sequence, because a bust lowers it; without sequences the largest.
fn merge_reported(order: &Order, next: &mut Order, word: &ReportContext<'_>) {
    let told = word.report.cumulative_quantity.0;
    // The quantity reported before still includes the part that is taken back.
    let before = if word.class == ReportClass::Amended {
        order.reported.saturating_add(word.added.min(0))
    } else {
        order.reported
    };
    match word.report.venue_sequence {
        0 => next.reported = before.max(told),
        sequence if sequence > order.sequence => next.reported = told,
        _ => {}
    }
}

/// Updates the venue's order id, which may change with a replace: the latest report counts.
fn merge_identity(order: &Order, next: &mut Order, report: &ExecutionReport) {
    let latest = report.venue_sequence == 0 || report.venue_sequence > order.sequence;
    if report.venue_order_id.0 != 0 && (latest || next.venue_order_id == 0) {
        next.venue_order_id = report.venue_order_id.0;
    }
}

/// Updates price and quantity: from the replace report with the highest sequence; without sequences, from the answer to
/// the pending replace. A sequenced amendment before the end counts too: busted quantity may return to the book.
fn merge_terms(next: &mut Order, word: &ReportContext<'_>) {
    let sequence = word.report.venue_sequence;
    let told = OrdStatus::from_code(word.report.status);
    let has_ended = matches!(told, Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected));
    let tells = match (word.class, sequence) {
        (ReportClass::Replaced, 0) => word.answers == AnsweredRequest::Replace,
        (ReportClass::Replaced, sequence) => sequence > next.terms_sequence,
        (ReportClass::Amended, sequence) => sequence > next.terms_sequence && !has_ended,
        _ => false,
    };
    if tells {
        next.price = word.report.price.0;
        next.valuation_price = if word.report.price.0 == 0 { next.valuation_price } else { word.report.price.0 };
        next.quantity = total(word.report);
        next.terms_sequence = next.terms_sequence.max(sequence);
    }
}

fn order_event(order: &Order, next: &Order, word: &ReportContext<'_>) -> OrderEvent {
    let sequence = word.report.venue_sequence;
    let is_conflict = match sequence {
        0 => contradicts(order, next, word),
        _ => !word.is_new || (next.is_contiguous() && !adds_up(next)),
    };
    let lives = match word.class {
        ReportClass::Accepted | ReportClass::Filled | ReportClass::Replaced => true,
        // An amendment contradicts the end if quantity is left, or if the order was rejected and has no fills.
        ReportClass::Amended => word.report.leaves_quantity.0 > 0 || order.phase == OrderPhase::Rejected,
        _ => false,
    };
    if word.class != ReportClass::Lost && (is_conflict || (lives && order.marks & UNSEQUENCED_END != 0)) {
        return OrderEvent::Conflict;
    }
    match word.class {
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

/// Returns whether the fills equal the venue's quantity and do not exceed the total: true once every event is known.
fn adds_up(order: &Order) -> bool {
    order.filled == order.reported && order.filled <= order.quantity
}

/// Returns whether a report without a sequence contradicts the known state, for every possible order of events.
fn contradicts(order: &Order, next: &Order, word: &ReportContext<'_>) -> bool {
    match (word.class, order.phase) {
        (ReportClass::Filled, OrderPhase::Rejected) => true,
        (ReportClass::Filled, OrderPhase::Expired | OrderPhase::Canceled) => next.filled > order.reported,
        (ReportClass::Filled, _) => next.filled > order.quantity.max(word.replacing),
        (ReportClass::Expired | ReportClass::Canceled, _) => word.report.cumulative_quantity.0 < next.filled,
        // The order lives, or its venue would have numbered the rejection: another message was rejected.
        (ReportClass::Rejected, OrderPhase::Open | OrderPhase::Unknown) => true,
        (ReportClass::Rejected, _) => word.numbered || next.filled > 0,
        (ReportClass::Replaced, phase) => {
            let known = order.price == word.report.price.0 && order.quantity == total(word.report);
            phase.is_live() && word.answers != AnsweredRequest::Replace && !known
        }
        (ReportClass::Amended, _) => next.filled > order.quantity.max(word.replacing),
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

/// Returns the order as a status answer describes it; none if the answer has nothing new. `replacing` is the total and
/// the price that the pending replace asks for.
fn order_by_status(order: &Order, report: &ExecutionReport, replacing: (i64, i64)) -> Option<Order> {
    let mut next = *order;
    let told = OrdStatus::from_code(report.status)?;
    let never_heard = order.sequence == 0 && order.filled == 0 && order.reported == 0 && order.venue_order_id == 0;
    if is_unknown_at_venue(report) {
        // An order in flight before the status request would have arrived by now.
        next.phase = match order.phase {
            OrderPhase::Lost | OrderPhase::Unknown if never_heard => OrderPhase::Rejected,
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
    let phase = match told {
        OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled => OrderPhase::Open,
        OrdStatus::Canceled => OrderPhase::Canceled,
        OrdStatus::Expired | OrdStatus::DoneForDay => OrderPhase::Expired,
        OrdStatus::Rejected => OrderPhase::Rejected,
        _ => return None,
    };
    if phase == OrderPhase::Open {
        next.price = report.price.0;
        next.valuation_price = if report.price.0 == 0 { order.valuation_price } else { report.price.0 };
        next.quantity = total(report);
        next.terms_sequence = next.terms_sequence.max(report.venue_sequence);
    } else if next.filled == next.reported && next.filled > next.quantity {
        // The report of the replace was lost.
        (next.quantity, next.price) = if replacing.0 < next.filled { (next.filled, order.price) } else { replacing };
    }
    next.skip_to(report.venue_sequence);
    next.marks &= !UNSEQUENCED_END;
    // Missing fills keep the order in doubt, because their prices are unknown; so does a loss after the status request.
    let is_still_doubted = is_doubtful && order.marks & IN_DOUBT != 0 && phase == OrderPhase::Open;
    next.phase = if adds_up(&next) && !is_still_doubted { phase } else { OrderPhase::Unknown };
    Some(next)
}

/// Returns whether the venue reports that it has no such order.
pub(crate) fn is_unknown_at_venue(report: &ExecutionReport) -> bool {
    report.status == OrdStatus::Rejected.code() && report.venue_sequence == 0 && report.side == 0
}

/// Returns whether the venue confirms the known state: requests sent before the status request then had no effect.
fn confirms_state(order: &Order, report: &ExecutionReport) -> bool {
    let works = match OrdStatus::from_code(report.status) {
        Some(OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled) => true,
        Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::DoneForDay | OrdStatus::Rejected) => false,
        _ => return false,
    };
    let is_known = match report.venue_sequence {
        0 => works && total(report) == order.quantity && report.price.0 == order.price,
        sequence => sequence == order.sequence,
    };
    is_known && !matches!(order.phase, OrderPhase::Armed | OrderPhase::Queued)
}

/// Returns the total quantity of a report: cumulative plus leaves.
fn total(report: &ExecutionReport) -> i64 {
    report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)
}

/// Returns whether a client can see the change.
fn is_visible_change(before: &Order, after: &Order) -> bool {
    let seen = |order: &Order| (order.phase, order.price, order.quantity, order.leaves(), order.cancel, order.replace);
    seen(before) != seen(after)
}

/// Builds the report for the session that canceled another session's order: it gets the status instead of a fill.
fn to_requester(order: &Order, said: ReportClass, report: &ExecutionReport, client: ClientOrderId) -> ExecutionReport {
    match said {
        ReportClass::Filled | ReportClass::Amended => report_as(order, ExecType::OrderStatus, client),
        _ => to_client(order, said, report, client),
    }
}

fn to_client(order: &Order, said: ReportClass, report: &ExecutionReport, client: ClientOrderId) -> ExecutionReport {
    let tells_fill = said == ReportClass::Filled || said == ReportClass::Amended;
    ExecutionReport {
        exec_id: report.exec_id,
        venue_sequence: report.venue_sequence,
        last_price: if tells_fill { report.last_price } else { Price::ZERO },
        last_quantity: if tells_fill { report.last_quantity } else { Quantity::ZERO },
        venue_stamp: report.venue_stamp,
        reason: report.reason,
        venue: report.venue,
        exec_type: report.exec_type,
        ..base_report(order, client)
    }
}
