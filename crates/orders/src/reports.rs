//! What happens to a report, whatever the order in which reports come.
//!
//! A report is read ([`Said`]), held against the order that it names, told apart from its duplicates, merged into the
//! order ([`merge`]), and whatever the merge changed is told to the client once. With venue sequences every part of the
//! merge commutes, and once no number is missing the fills must add up to what the venue says.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, Price, Quantity, VenueId};

use crate::core::{At, Core};
use crate::foreign::MOST as MOST_FOREIGN;
use crate::order::{ASTRAY, Ask, DOUBTED, Fill, NONE, Order, SOFT, WORD, WORDED};
use crate::requests::{told, told_as};
use crate::state::{Event, Phase, step};
use crate::{Output, Outputs, ReportRecord};

/// What a venue says of an order.
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
    /// A fill has other terms than were told, or is taken back.
    Amended,
    /// How the order stands, on request.
    Status,
    /// That a request is on its way, which is known here.
    Nothing,
}

/// What a report makes of a fill.
#[derive(Debug, Clone, Copy)]
struct FillChange {
    /// By how much it changes what is filled.
    adds: i64,
    /// The fill as it is then.
    fill: Fill,
    /// How much of the change an operator has booked already.
    known: i64,
    /// All of it, so that a number which counts as seen is no contradiction.
    is_explained: bool,
}

/// Which request on its way a report answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Cancel,
    Replace,
    Neither,
}

impl Core {
    /// Merges a venue's report and tells the client what changed.
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

    /// Whether more reports of orders that are not known have come today than are ever kept: what comes above that is worth no
    /// record of a journal.
    #[inline]
    pub fn has_many_strangers(&self) -> bool {
        self.counts.strangers >= MOST_FOREIGN as u64
    }

    /// Whether a report is of an order that is known here, or ends an answer.
    pub fn concerns(&self, record: &ReportRecord) -> bool {
        let ReportRecord { report, source, .. } = record;
        report.ends_answer() || self.find_said(source.0, report.order_id.0, report.venue_order_id.0).is_some()
    }

    /// Keeps a report that names no order here.
    #[cold]
    fn stranger(&mut self, at: At, said: Said, record: &ReportRecord) {
        if record.report.ends_answer() {
            return;
        }
        self.counts.strangers += 1;
        // The answer to a question after an order that is forgotten says nothing of any order.
        let says_something = !matches!(said, Said::Nothing | Said::Refused) && record.report.side != 0;
        if says_something {
            self.foreign.keep(at.sequence, record);
        }
    }

    /// Takes an event of an order.
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
        // Its venue speaks of it: its trigger has fired.
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
        // Fills that were missing and have come may be all that kept it in doubt.
        let is_complete = fill.is_some() && adds_up(&next) && !adds_up(&order);
        if next.phase.is_unknown() && (next.phase != order.phase || is_complete) {
            self.inquire(at, slot, out);
        }
        out.push(Output::Report { session: next.session, report: to_client(&next, said, report, client) });
        self.tell_decided(&order, &next, out, |client| to_asker(&next, said, report, client));
    }

    /// A venue may give both sides of a trade one execution id, so the order belongs to the identity of a fill.
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

    /// The fill as it is after a fill, a correction or a bust, and by how much that changes what is filled; none if it
    /// stays as it is. What comes before its fill stands in for it, and of two amendments the later one holds.
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

    /// A change of a fill, less what an operator has booked of it already.
    fn fill_change(&self, said: Said, report: &ExecutionReport, is_new: bool, adds: i64, fill: Fill) -> FillChange {
        let order = self.orders.get(fill.order);
        if order.marks & WORDED == 0 {
            return FillChange { adds, fill, known: 0, is_explained: false };
        }
        let booked = self.find_fill(fill.order, WORD).map_or(0, |place| self.fills.get(place).quantity);
        let known = match said {
            // The word counts all that was told before it.
            Said::Filled if is_new => 0,
            Said::Filled => adds.min(booked.max(0)),
            // What the venue counts now tells how much of the change is news.
            _ => {
                let news = report.cumulative_quantity.0.saturating_sub(order.filled);
                adds.saturating_sub(news).clamp(booked.min(0), booked.max(0))
            }
        };
        FillChange { adds: adds - known, fill, known, is_explained: known != 0 && known == adds }
    }

    /// Books what an operator knows of an order's fills, or takes some of it back.
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

    /// The request that a report answers, and the client's id of it; the order's own if it answers none on its way.
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

    /// Takes the mark of a doubt off an order if the question that is answered was asked since; false if it stays.
    fn end_doubt(&mut self, slot: u32, report: &ExecutionReport) -> bool {
        let order = self.orders.get_mut(slot);
        let is_since = report.client_order_id.0 >= self.routes.get(VenueId(order.route)).doubted;
        let ends = is_since && order.marks & DOUBTED != 0;
        if ends {
            order.marks &= !DOUBTED;
        }
        ends
    }

    /// Takes a venue's answer to a status request. It is no event, but it knows of all events up to its number.
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
            // It was overtaken by a later event, which could not end the doubt then.
            if ends_doubt && order.phase.is_unknown() {
                self.inquire(at, slot, out);
            }
            return;
        };
        // The venue took requests in their order: what was asked before the question has been decided.
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
    /// What a report says; none if it cannot be true.
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

/// Whether a report speaks of the order that its id names. A refused cancel need not know the side, nor the answer of a
/// venue that does not know the order, or not any more.
fn agrees(order: &Order, said: Said, record: &ReportRecord) -> bool {
    let report = &record.report;
    let need_not_know = said == Said::Refused || report.exec_type == ExecType::OrderStatus.code();
    let side = report.side == order.side.code() || (need_not_know && report.side == 0);
    let venue = report.venue.0 == order.route && record.source.0 == order.route;
    side && venue && report.symbol == order.symbol && report.account == order.account
}

/// A report with what its place in time makes of it.
struct Word<'a> {
    said: Said,
    answers: Answers,
    report: &'a ExecutionReport,
    /// By how much it changes what is filled.
    adds: i64,
    /// The total that the replace on its way asked for; zero if there is none.
    replacing: i64,
    /// Its venue sequence was not seen before, or it has none.
    is_new: bool,
    /// The venue numbers the events of its orders.
    numbered: bool,
}

impl Word<'_> {
    /// Whether it says nothing: it came before, or is about another message than the order. What changes a fill always
    /// says something.
    fn is_no_event(&self, order: &Order, changes_fill: bool) -> bool {
        let has_number = self.report.venue_sequence != 0;
        match self.said {
            Said::Filled | Said::Amended => !(changes_fill || has_number && self.is_new),
            Said::Lost => false,
            // Without a number, of a venue that numbers: a message was refused that came after the order's end.
            Said::Rejected if !has_number => self.numbered && !order.phase.is_live(),
            _ => !self.is_new,
        }
    }
}

/// The order after a report, whose sequence `next` has noted. The order before is needed to see whether a report
/// without a sequence contradicts it.
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

/// The cumulative quantity of the highest sequence counts, for a bust makes it smaller; without one, the largest.
fn merge_reported(order: &Order, next: &mut Order, word: &Word<'_>) {
    let told = word.report.cumulative_quantity.0;
    // What was told before counted what is taken back.
    let before =
        if word.said == Said::Amended { order.reported.saturating_add(word.adds.min(0)) } else { order.reported };
    match word.report.venue_sequence {
        0 => next.reported = before.max(told),
        sequence if sequence > order.sequence => next.reported = told,
        _ => {}
    }
}

/// The venue's id may change with a replace: the latest word counts.
fn merge_identity(order: &Order, next: &mut Order, report: &ExecutionReport) {
    let latest = report.venue_sequence == 0 || report.venue_sequence > order.sequence;
    if report.venue_order_id.0 != 0 && (latest || next.venue == 0) {
        next.venue = report.venue_order_id.0;
    }
}

/// The replace with the highest sequence gives price and quantity; without one, the one that was asked for. A bust with a
/// sequence tells them too, if the order has not ended: what is taken back comes to the book again, or does not.
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
        // Of a fill that was changed after the end; what was never taken has none.
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

/// Where every event is known, the fills are what the venue says, and no more than was asked for.
fn adds_up(order: &Order) -> bool {
    order.filled == order.reported && order.filled <= order.quantity
}

/// Whether a report without a sequence cannot be true together with what is known, in no order of events.
fn contradicts(order: &Order, next: &Order, word: &Word<'_>) -> bool {
    match (word.said, order.phase) {
        (Said::Filled, Phase::Rejected) => true,
        (Said::Filled, Phase::Expired | Phase::Canceled) => next.filled > order.reported,
        (Said::Filled, _) => next.filled > order.quantity.max(word.replacing),
        (Said::Expired | Said::Canceled, _) => word.report.cumulative_quantity.0 < next.filled,
        // Of an order that lives, or of a venue that would have numbered it: another message was refused.
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

/// The order as a venue says that it stands, while a replace may be on its way that asks for this total and price; none if that
/// says nothing new.
fn stands(order: &Order, report: &ExecutionReport, replacing: (i64, i64)) -> Option<Order> {
    let mut next = *order;
    let told = OrdStatus::from_code(report.status)?;
    let never_heard = order.sequence == 0 && order.filled == 0 && order.reported == 0 && order.venue == 0;
    if is_never_heard(report) {
        // What was on its way before the question would have arrived by now.
        next.phase = match order.phase {
            Phase::Lost | Phase::Unknown if never_heard => Phase::Rejected,
            Phase::Open => Phase::Unknown,
            _ => return None,
        };
        // Should it turn up after all, its end was no end.
        next.marks |= if next.phase == Phase::Rejected { SOFT } else { 0 };
        return Some(next);
    }
    let is_doubtful = order.phase.is_unknown();
    // Later events were heard already; or the venue does not number, and nothing is in doubt.
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
        // The report of the replace is lost.
        (next.quantity, next.price) = if replacing.0 < next.filled { (next.filled, order.price) } else { replacing };
    }
    next.skip_to(report.venue_sequence);
    next.marks &= !SOFT;
    // Fills that never came keep it in doubt: their prices are nobody's to guess. So does a loss since the question.
    let is_still_doubted = is_doubtful && order.marks & DOUBTED != 0 && phase == Phase::Open;
    next.phase = if adds_up(&next) && !is_still_doubted { phase } else { Phase::Unknown };
    Some(next)
}

/// Whether a venue says that it has no such order.
pub(crate) fn is_never_heard(report: &ExecutionReport) -> bool {
    report.status == OrdStatus::Rejected.code() && report.venue_sequence == 0 && report.side == 0
}

/// Whether a venue says that an order stands as it is known: then what was asked before the question came to nothing.
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

/// The total quantity that a report tells.
fn total(report: &ExecutionReport) -> i64 {
    report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)
}

/// Whether a client can see the change.
fn differs(before: &Order, after: &Order) -> bool {
    let seen = |order: &Order| (order.phase, order.price, order.quantity, order.leaves(), order.cancel, order.replace);
    seen(before) != seen(after)
}

/// What decides a cancel, to who has asked for it from another session. A fill is not theirs: they hear how the order stands.
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
