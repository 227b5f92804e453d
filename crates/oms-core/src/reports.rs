//! Merge of venue reports into orders, independent of the order in which reports arrive.
//!
//! A report is classified ([`Said`]), checked against the order that it names, checked for duplicates and merged into
//! the order ([`merge`]); the client gets each change once. With venue sequences every part of the merge commutes, and
//! once no sequence is missing the fills must add up to the venue's cumulative quantity.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, Price, Quantity, VenueId};

use crate::core::{At, Core};
use crate::foreign::MOST as MOST_FOREIGN;
use crate::order::{ASTRAY, Ask, DOUBTED, Fill, NONE, Order, SOFT, WORD, WORDED};
use crate::requests::{told, told_as};
use crate::state::{Event, Phase, step};
use crate::{Output, Outputs, ReportRecord};

/// Kind of a venue report, as the merge treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Accepted,
    Filled,
    Replaced,
    Refused,
    Expired,
    Canceled,
    Rejected,
    Lost,
    /// Correction or bust of a fill.
    Amended,
    /// Status of an order, in answer to a status request.
    Status,
    /// Acknowledgement of a pending request, which the core knows of already.
    Nothing,
}

/// Effect of a report on a fill.
#[derive(Debug, Clone, Copy)]
struct FillChange {
    /// Change of the order's filled quantity.
    adds: i64,
    /// The fill after the change.
    fill: Fill,
    /// Part of the change that an operator has booked already.
    known: i64,
    /// An operator has booked the whole change, so a venue sequence that counts as seen is no contradiction.
    is_explained: bool,
}

/// The outstanding request that a report answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Cancel,
    Replace,
    Neither,
}

impl Core {
    /// Merges a venue's report into its order and reports the change to the client.
    #[inline]
    pub(crate) fn report(&mut self, at: At, record: &ReportRecord, out: &mut Outputs) {
        let report = &record.report;
        let Some(said) = Said::read(report) else {
            self.counts.malformed += 1;
            return;
        };
        let found = self.find_said(record.source.0, report.order_id.0, report.venue_order_id.0);
        let Some(slot) = found else { return self.stranger(at, said, record) };
        if !agrees(self.orders.get(slot), said, record) {
            self.counts.mismatched += 1;
            return;
        }
        if self.hear_of_try(at, slot, said, record, out) {
            return;
        }
        match said {
            Said::Nothing => self.counts.duplicates += 1,
            Said::Status => self.standing(at, slot, report, out),
            _ => self.event(at, slot, said, report, out),
        }
    }

    /// Returns whether reports of unknown orders have reached the number that is ever kept: any further report is not
    /// worth a journal record.
    #[inline]
    pub fn has_many_strangers(&self) -> bool {
        self.counts.strangers >= MOST_FOREIGN as u64
    }

    /// Returns whether a report belongs to a known order, or ends the answer to a reconcile request.
    pub fn concerns(&self, record: &ReportRecord) -> bool {
        let ReportRecord { report, source, .. } = record;
        report.ends_answer() || self.find_said(source.0, report.order_id.0, report.venue_order_id.0).is_some()
    }

    /// Counts a report of an unknown order, and keeps it until its order is entered by hand.
    #[cold]
    fn stranger(&mut self, at: At, said: Said, record: &ReportRecord) {
        if record.report.ends_answer() {
            return;
        }
        self.counts.strangers += 1;
        // The answer to a status request for a forgotten order describes no order.
        let says_something = !matches!(said, Said::Nothing | Said::Refused) && record.report.side != 0;
        if says_something {
            self.foreign.keep(at.sequence, record);
        }
    }

    /// Applies a venue's event to an order.
    pub(crate) fn event(&mut self, at: At, slot: u32, said: Said, report: &ExecutionReport, out: &mut Outputs) {
        let order = *self.orders.get(slot);
        let mut next = order;
        let is_new = report.venue_sequence == 0 || next.note_sequence(report.venue_sequence);
        let fill = self.fill_after(slot, said, report, is_new);
        let (answers, client) = self.answered(&order, report);
        let numbered = self.routes.get(VenueId(order.route)).rules.numbered != 0;
        let word = Word {
            said,
            answers,
            report,
            adds: fill.map_or(0, |change| change.adds),
            replacing: self.replacing(&order).0,
            is_new: is_new || fill.is_some_and(|change| change.is_explained),
            numbered,
        };
        if word.is_no_event(&order, fill.is_some()) {
            self.counts.duplicates += 1;
            return;
        }
        merge(&order, &mut next, &word);
        if next.sequence > 0 && !next.is_contiguous() && next.phase.is_live() {
            self.orders.get_mut(slot).marks = order.marks;
            self.note_gap(slot, at.stamp);
            next.marks |= self.orders.get(slot).marks;
        }
        self.settle(slot, &next);
        // The venue reports on the order, so the order's trigger has fired.
        if !self.armed.is_empty() && said != Said::Lost {
            self.armed.remove(&slot);
        }
        match fill {
            Some(FillChange { adds, fill, known, .. }) => {
                self.put_fill(fill);
                if known != 0 {
                    self.book_word(slot, -known);
                }
                self.book(&next, report.last_price.0, adds);
            }
            None if !differs(&order, &next) => {
                self.counts.duplicates += 1;
                return;
            }
            None => {}
        }
        if next.phase == Phase::Unknown && order.phase != Phase::Unknown {
            self.counts.contradictions += u64::from(said != Said::Lost);
        }
        // Late fills may have been the only cause of the doubt: ask the venue again.
        let is_complete = fill.is_some() && adds_up(&next) && !adds_up(&order);
        if next.phase.is_unknown() && (next.phase != order.phase || is_complete) {
            self.inquire(at, slot, out);
        }
        out.push(Output::Report { session: next.session, report: to_client(&next, said, report, client) });
        self.tell_decided(&order, &next, out, |client| to_asker(&next, said, report, client));
    }

    /// Finds a fill by order and execution id, because a venue may give both sides of a trade the same execution id.
    pub(crate) fn find_fill(&self, slot: u32, exec: u64) -> Option<u32> {
        self.by_exec.find(self.tag(slot.into(), exec), |place| {
            let fill = self.fills.get(place);
            fill.order == slot && fill.exec == exec
        })
    }

    pub(crate) fn keep_fill(&mut self, fill: Fill) {
        let place = self.fills.push(fill);
        self.by_exec.insert(self.tag(fill.order.into(), fill.exec), place);
    }

    /// Returns a fill after a report, and the change of the filled quantity; none if nothing changes. An amendment that
    /// arrives before its fill stands in for the fill, and of two amendments the later one holds.
    fn fill_after(&self, slot: u32, said: Said, report: &ExecutionReport, is_new: bool) -> Option<FillChange> {
        if said != Said::Filled && said != Said::Amended {
            return None;
        }
        let is_taken_back = report.exec_type == ExecType::TradeCancel.code();
        let quantity = if is_taken_back { 0 } else { report.last_quantity.0 };
        let sequence = report.venue_sequence.min(u32::MAX.into()) as u32;
        let changed = if said == Said::Amended { sequence.max(1) } else { 0 };
        let after = Fill { exec: report.exec_id.0, quantity, order: slot, changed };
        let Some(place) = self.find_fill(slot, report.exec_id.0) else {
            return Some(self.fill_change(said, report, is_new, quantity, after));
        };
        let before = self.fills.get(place);
        let is_amended = match (said, sequence) {
            (Said::Filled, _) => false,
            (_, 0) => before.changed == 0 || before.quantity != quantity,
            (_, sequence) => sequence > before.changed,
        };
        let after = Fill { changed: changed.max(before.changed), ..after };
        is_amended.then(|| self.fill_change(said, report, is_new, quantity - before.quantity, after))
    }

    /// Computes the change of a fill, less the part that an operator has booked already.
    fn fill_change(&self, said: Said, report: &ExecutionReport, is_new: bool, adds: i64, fill: Fill) -> FillChange {
        let order = self.orders.get(fill.order);
        if order.marks & WORDED == 0 {
            return FillChange { adds, fill, known: 0, is_explained: false };
        }
        let booked = self.find_fill(fill.order, WORD).map_or(0, |place| self.fills.get(place).quantity);
        let known = match said {
            // The operator's booking covers the events before it; a new event counts in full.
            Said::Filled if is_new => 0,
            Said::Filled => adds.min(booked.max(0)),
            // The venue's cumulative quantity shows how much of the change is new.
            _ => {
                let news = report.cumulative_quantity.0.saturating_sub(order.filled);
                adds.saturating_sub(news).clamp(booked.min(0), booked.max(0))
            }
        };
        FillChange { adds: adds - known, fill, known, is_explained: known != 0 && known == adds }
    }

    /// Books the filled quantity that an operator has entered, or takes part of it back.
    pub(crate) fn book_word(&mut self, slot: u32, adds: i64) {
        match self.find_fill(slot, WORD) {
            Some(place) => {
                let word = self.fills.get_mut(place);
                word.quantity = word.quantity.saturating_add(adds);
            }
            None if adds != 0 => self.keep_fill(Fill { exec: WORD, quantity: adds, order: slot, changed: 0 }),
            None => {}
        }
    }

    fn put_fill(&mut self, fill: Fill) {
        match self.find_fill(fill.order, fill.exec) {
            Some(place) => *self.fills.get_mut(place) = fill,
            None => self.keep_fill(fill),
        }
    }

    /// Returns which outstanding request a report answers, with the client's id of it; without one the order's id.
    fn answered(&self, order: &Order, report: &ExecutionReport) -> (Answers, ClientOrderId) {
        let id = report.client_order_id.0;
        let is_meant = |ask: &&Ask| ask.id == id;
        if self.ask(order.cancel).is_some_and(|ask| is_meant(&ask)) {
            (Answers::Cancel, self.own_id(order, order.cancel))
        } else if let Some(ask) = self.ask(order.replace).filter(is_meant) {
            (Answers::Replace, ClientOrderId(ask.client))
        } else {
            (Answers::Neither, ClientOrderId(order.client))
        }
    }

    /// Clears an order's [`DOUBTED`] mark if the status request was sent after the doubt; returns whether it did.
    fn end_doubt(&mut self, slot: u32, report: &ExecutionReport) -> bool {
        let order = self.orders.get_mut(slot);
        let is_since = report.client_order_id.0 >= self.routes.get(VenueId(order.route)).doubted;
        let ends = is_since && order.marks & DOUBTED != 0;
        if ends {
            order.marks &= !DOUBTED;
        }
        ends
    }

    /// Applies a venue's answer to a status request. It is no event, but covers all events up to its sequence.
    fn standing(&mut self, at: At, slot: u32, report: &ExecutionReport, out: &mut Outputs) {
        let ends_doubt = self.end_doubt(slot, report);
        let order = *self.orders.get(slot);
        let unchanged = confirms(&order, report).then_some(order);
        let mut said = stands(&order, report, self.replacing(&order)).or(unchanged);
        if order.marks & ASTRAY != 0 {
            said = said.map(|next| self.stands_astray(&order, report, next));
        }
        if !self.armed.is_empty() {
            said = said.and_then(|next| self.stands_armed(slot, report, next));
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
        let decided = |ask: &Ask| ask.waits == 0 && ask.id < report.client_order_id.0;
        if self.ask(next.cancel).is_some_and(decided) {
            next.cancel = NONE;
        }
        if self.ask(next.replace).is_some_and(decided) {
            next.replace = NONE;
        }
        if !next.phase.is_live() {
            (next.cancel, next.replace) = (NONE, NONE);
        }
        self.settle(slot, &next);
        if !differs(&order, &next) {
            self.counts.duplicates += 1;
            return;
        }
        let client = ClientOrderId(next.client);
        out.push(Output::Report { session: next.session, report: to_client(&next, Said::Status, report, client) });
        self.tell_decided(&order, &next, out, |client| to_asker(&next, Said::Status, report, client));
    }
}

impl Said {
    /// Classifies a report; none if the report cannot be true.
    fn read(report: &ExecutionReport) -> Option<Self> {
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
            ExecType::CancelRejected => Some(Self::Refused),
            ExecType::Expired => Some(Self::Expired),
            ExecType::Canceled => Some(Self::Canceled),
            ExecType::Rejected => Some(Self::Rejected),
            ExecType::OrderStatus => Some(Self::Status),
            ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace | ExecType::Triggered => {
                Some(Self::Nothing)
            }
        }
    }
}

/// Returns whether a report matches the order that its id names. A cancel rejection or a status answer may lack the
/// side, because the venue may not know the order, or not any more.
fn agrees(order: &Order, said: Said, record: &ReportRecord) -> bool {
    let report = &record.report;
    let need_not_know = said == Said::Refused || report.exec_type == ExecType::OrderStatus.code();
    let side = report.side == order.side.code() || (need_not_know && report.side == 0);
    let venue = report.venue.0 == order.route && record.source.0 == order.route;
    side && venue && report.symbol == order.symbol && report.account == order.account
}

/// A report with the facts that the merge needs.
struct Word<'a> {
    said: Said,
    answers: Answers,
    report: &'a ExecutionReport,
    /// Change of the filled quantity.
    adds: i64,
    /// Total that the pending replace asks for; zero without a pending replace.
    replacing: i64,
    /// The venue sequence is new or zero, or an operator has booked the fill already.
    is_new: bool,
    /// The venue numbers the events of its orders.
    numbered: bool,
}

impl Word<'_> {
    /// Returns whether the report is no event of the order: a duplicate, or about another message. A report that
    /// changes a fill is always an event.
    fn is_no_event(&self, order: &Order, changes_fill: bool) -> bool {
        let has_number = self.report.venue_sequence != 0;
        match self.said {
            Said::Filled | Said::Amended => !(changes_fill || has_number && self.is_new),
            Said::Lost => false,
            // A numbering venue rejects without a sequence: a message sent after the order's end was rejected.
            Said::Rejected if !has_number => self.numbered && !order.phase.is_live(),
            _ => !self.is_new,
        }
    }
}

/// Merges a report into `next`, which has noted the report's sequence already. The state before, `order`, shows whether
/// a report without a sequence contradicts it.
fn merge(order: &Order, next: &mut Order, word: &Word<'_>) {
    if word.said != Said::Lost {
        merge_reported(order, next, word);
        merge_identity(order, next, word.report);
    }
    match (word.said, word.answers) {
        (Said::Filled | Said::Amended, _) => next.filled = next.filled.saturating_add(word.adds).max(0),
        (Said::Refused, Answers::Cancel) => next.cancel = NONE,
        (Said::Refused | Said::Replaced, Answers::Replace) => next.replace = NONE,
        _ => {}
    }
    merge_terms(next, word);
    next.phase = step(order.phase, event(order, next, word)).unwrap_or(order.phase);
    if next.phase == Phase::Rejected && word.said == Said::Rejected && word.report.venue_sequence == 0 {
        next.marks |= SOFT;
    }
    if matches!(next.phase, Phase::Expired | Phase::Canceled | Phase::Rejected) {
        (next.cancel, next.replace) = (NONE, NONE);
    }
}

/// Updates the venue's quantity: that of the highest sequence, because a bust lowers it; without sequences the largest.
fn merge_reported(order: &Order, next: &mut Order, word: &Word<'_>) {
    let told = word.report.cumulative_quantity.0;
    // The quantity reported before still includes the part that is taken back.
    let before =
        if word.said == Said::Amended { order.reported.saturating_add(word.adds.min(0)) } else { order.reported };
    match word.report.venue_sequence {
        0 => next.reported = before.max(told),
        sequence if sequence > order.sequence => next.reported = told,
        _ => {}
    }
}

/// Updates the venue's order id, which may change with a replace: the latest report counts.
fn merge_identity(order: &Order, next: &mut Order, report: &ExecutionReport) {
    let latest = report.venue_sequence == 0 || report.venue_sequence > order.sequence;
    if report.venue_order_id.0 != 0 && (latest || next.venue == 0) {
        next.venue = report.venue_order_id.0;
    }
}

/// Updates price and quantity: from the replace report with the highest sequence; without sequences, from the answer to
/// the pending replace. A sequenced amendment before the end counts too: busted quantity may return to the book.
fn merge_terms(next: &mut Order, word: &Word<'_>) {
    let sequence = word.report.venue_sequence;
    let told = OrdStatus::from_code(word.report.status);
    let has_ended = matches!(told, Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected));
    let tells = match (word.said, sequence) {
        (Said::Replaced, 0) => word.answers == Answers::Replace,
        (Said::Replaced, sequence) => sequence > next.terms_sequence,
        (Said::Amended, sequence) => sequence > next.terms_sequence && !has_ended,
        _ => false,
    };
    if tells {
        next.price = word.report.price.0;
        next.valued = if word.report.price.0 == 0 { next.valued } else { word.report.price.0 };
        next.quantity = total(word.report);
        next.terms_sequence = next.terms_sequence.max(sequence);
    }
}

fn event(order: &Order, next: &Order, word: &Word<'_>) -> Event {
    let sequence = word.report.venue_sequence;
    let is_conflict = match sequence {
        0 => contradicts(order, next, word),
        _ => !word.is_new || (next.is_contiguous() && !adds_up(next)),
    };
    let lives = match word.said {
        Said::Accepted | Said::Filled | Said::Replaced => true,
        // An amendment contradicts the end if quantity is left, or if the order was rejected and has no fills.
        Said::Amended => word.report.leaves_quantity.0 > 0 || order.phase == Phase::Rejected,
        _ => false,
    };
    if word.said != Said::Lost && (is_conflict || (lives && order.marks & SOFT != 0)) {
        return Event::Conflict;
    }
    match word.said {
        Said::Accepted | Said::Filled | Said::Replaced if sequence > order.sequence && order.marks & DOUBTED == 0 => {
            Event::Confirmed
        }
        Said::Accepted | Said::Filled | Said::Replaced => Event::Working,
        Said::Refused | Said::Nothing | Said::Status | Said::Amended => Event::Refused,
        Said::Expired => Event::Expired,
        Said::Canceled => Event::Canceled,
        Said::Rejected => Event::Rejected,
        Said::Lost => Event::Lost,
    }
}

/// Returns whether the fills equal the venue's quantity and do not exceed the total: true once every event is known.
fn adds_up(order: &Order) -> bool {
    order.filled == order.reported && order.filled <= order.quantity
}

/// Returns whether a report without a sequence contradicts the known state, for every possible order of events.
fn contradicts(order: &Order, next: &Order, word: &Word<'_>) -> bool {
    match (word.said, order.phase) {
        (Said::Filled, Phase::Rejected) => true,
        (Said::Filled, Phase::Expired | Phase::Canceled) => next.filled > order.reported,
        (Said::Filled, _) => next.filled > order.quantity.max(word.replacing),
        (Said::Expired | Said::Canceled, _) => word.report.cumulative_quantity.0 < next.filled,
        // The order lives, or its venue would have numbered the rejection: another message was rejected.
        (Said::Rejected, Phase::Open | Phase::Unknown) => true,
        (Said::Rejected, _) => word.numbered || next.filled > 0,
        (Said::Replaced, phase) => {
            let known = order.price == word.report.price.0 && order.quantity == total(word.report);
            phase.is_live() && word.answers != Answers::Replace && !known
        }
        (Said::Amended, _) => next.filled > order.quantity.max(word.replacing),
        (Said::Accepted | Said::Refused | Said::Lost | Said::Status | Said::Nothing, _) => false,
    }
}

/// Returns the order as a status answer describes it; none if the answer has nothing new. `replacing` is the total and
/// the price that the pending replace asks for.
fn stands(order: &Order, report: &ExecutionReport, replacing: (i64, i64)) -> Option<Order> {
    let mut next = *order;
    let told = OrdStatus::from_code(report.status)?;
    let never_heard = order.sequence == 0 && order.filled == 0 && order.reported == 0 && order.venue == 0;
    if is_never_heard(report) {
        // An order in flight before the status request would have arrived by now.
        next.phase = match order.phase {
            Phase::Lost | Phase::Unknown if never_heard => Phase::Rejected,
            Phase::Open => Phase::Unknown,
            _ => return None,
        };
        // An order that turns up after all contradicts this end.
        next.marks |= if next.phase == Phase::Rejected { SOFT } else { 0 };
        return Some(next);
    }
    let is_doubtful = order.phase.is_unknown();
    // Later events are known already, or the venue does not number and nothing is in doubt.
    if report.venue_sequence < order.sequence || (report.venue_sequence == 0 && !is_doubtful) {
        return None;
    }
    if matches!(order.phase, Phase::Armed | Phase::Queued | Phase::Denied) {
        return None;
    }
    if !is_doubtful && report.venue_sequence == order.sequence && order.is_contiguous() {
        return None;
    }
    next.reported = report.cumulative_quantity.0;
    if report.venue_order_id.0 != 0 {
        next.venue = report.venue_order_id.0;
    }
    let phase = match told {
        OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled => Phase::Open,
        OrdStatus::Canceled => Phase::Canceled,
        OrdStatus::Expired | OrdStatus::DoneForDay => Phase::Expired,
        OrdStatus::Rejected => Phase::Rejected,
        _ => return None,
    };
    if phase == Phase::Open {
        next.price = report.price.0;
        next.valued = if report.price.0 == 0 { order.valued } else { report.price.0 };
        next.quantity = total(report);
        next.terms_sequence = next.terms_sequence.max(report.venue_sequence);
    } else if next.filled == next.reported && next.filled > next.quantity {
        // The report of the replace was lost.
        (next.quantity, next.price) = if replacing.0 < next.filled { (next.filled, order.price) } else { replacing };
    }
    next.skip_to(report.venue_sequence);
    next.marks &= !SOFT;
    // Missing fills keep the order in doubt, because their prices are unknown; so does a loss after the status request.
    let is_still_doubted = is_doubtful && order.marks & DOUBTED != 0 && phase == Phase::Open;
    next.phase = if adds_up(&next) && !is_still_doubted { phase } else { Phase::Unknown };
    Some(next)
}

/// Returns whether the venue reports that it has no such order.
pub(crate) fn is_never_heard(report: &ExecutionReport) -> bool {
    report.status == OrdStatus::Rejected.code() && report.venue_sequence == 0 && report.side == 0
}

/// Returns whether the venue confirms the known state: requests sent before the status request then had no effect.
fn confirms(order: &Order, report: &ExecutionReport) -> bool {
    let works = match OrdStatus::from_code(report.status) {
        Some(OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled) => true,
        Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::DoneForDay | OrdStatus::Rejected) => false,
        _ => return false,
    };
    let is_known = match report.venue_sequence {
        0 => works && total(report) == order.quantity && report.price.0 == order.price,
        sequence => sequence == order.sequence,
    };
    is_known && !matches!(order.phase, Phase::Armed | Phase::Queued)
}

/// Returns the total quantity of a report: cumulative plus leaves.
fn total(report: &ExecutionReport) -> i64 {
    report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)
}

/// Returns whether a client can see the change.
fn differs(before: &Order, after: &Order) -> bool {
    let seen = |order: &Order| (order.phase, order.price, order.quantity, order.leaves(), order.cancel, order.replace);
    seen(before) != seen(after)
}

/// Builds the report for the session that canceled another session's order: it gets the status instead of a fill.
fn to_asker(order: &Order, said: Said, report: &ExecutionReport, client: ClientOrderId) -> ExecutionReport {
    match said {
        Said::Filled | Said::Amended => told_as(order, ExecType::OrderStatus, client),
        _ => to_client(order, said, report, client),
    }
}

fn to_client(order: &Order, said: Said, report: &ExecutionReport, client: ClientOrderId) -> ExecutionReport {
    let tells_fill = said == Said::Filled || said == Said::Amended;
    ExecutionReport {
        exec_id: report.exec_id,
        venue_sequence: report.venue_sequence,
        last_price: if tells_fill { report.last_price } else { Price::ZERO },
        last_quantity: if tells_fill { report.last_quantity } else { Quantity::ZERO },
        venue_stamp: report.venue_stamp,
        reason: report.reason,
        venue: report.venue,
        exec_type: report.exec_type,
        ..told(order, client)
    }
}
