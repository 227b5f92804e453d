//! What happens to a report, whatever the order in which reports come.
//!
//! A report is read ([`Said`]), told apart from its duplicates, merged into the order ([`merge`]), and whatever the
//! merge changed is told to the client once. With venue sequences every part of the merge commutes.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, Price, Quantity};

use crate::core::Core;
use crate::index::tag;
use crate::order::{Ask, Fill, NONE, Order};
use crate::requests::told;
use crate::state::{Event, Phase, step};
use crate::{Output, Outputs};

/// What a venue says of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Accepted,
    Filled,
    Replaced,
    Refused,
    Expired,
    Canceled,
    Rejected,
    Lost,
    /// That a request is on its way, which is known here.
    Nothing,
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
    pub(crate) fn report(&mut self, report: &ExecutionReport, out: &mut Outputs) {
        let Some(said) = Said::read(report) else {
            self.counts.malformed += 1;
            return;
        };
        let sent = self.find_order(report.order_id.0).filter(|&slot| self.orders.get(slot).phase != Phase::Denied);
        let Some(slot) = sent else {
            self.counts.strangers += 1;
            return;
        };
        if said == Said::Nothing || (said == Said::Filled && self.is_booked(slot, report)) {
            self.counts.duplicates += 1;
            return;
        }
        let order = *self.orders.get(slot);
        let (answers, client) = self.answered(&order, report);
        let next = merge(&order, &Word { said, answers, report, replacing: self.replacing(&order) });
        self.settle(slot, next);
        if said == Said::Filled {
            self.book_fill(slot, &next, report);
        } else if !differs(&order, &next) {
            self.counts.duplicates += 1;
            return;
        }
        out.push(Output::Report { session: next.session, report: to_client(&next, said, report, client) });
    }

    /// A venue may give both sides of a trade one execution id, so the order belongs to the identity of a fill.
    fn is_booked(&self, slot: u32, report: &ExecutionReport) -> bool {
        let fill = Fill { exec: report.exec_id.0, order: slot, venue: report.venue.0 };
        self.by_exec.find(fill_tag(&fill), |place| *self.fills.get(place) == fill).is_some()
    }

    fn book_fill(&mut self, slot: u32, order: &Order, report: &ExecutionReport) {
        let fill = Fill { exec: report.exec_id.0, order: slot, venue: report.venue.0 };
        let place = self.fills.push(fill);
        self.by_exec.insert(fill_tag(&fill), place);
        self.book(order, report.last_quantity.0);
    }

    /// The request that a report answers, and the client's id of it; the order's own if it answers none on its way.
    fn answered(&self, order: &Order, report: &ExecutionReport) -> (Answers, ClientOrderId) {
        let id = report.client_order_id.0;
        let is_meant = |ask: &&Ask| ask.id == id;
        if let Some(ask) = self.ask(order.cancel).filter(is_meant) {
            (Answers::Cancel, ClientOrderId(ask.client))
        } else if let Some(ask) = self.ask(order.replace).filter(is_meant) {
            (Answers::Replace, ClientOrderId(ask.client))
        } else {
            (Answers::Neither, ClientOrderId(order.client))
        }
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
        match exec_type {
            ExecType::New => Some(Self::Accepted),
            ExecType::Trade if report.exec_id.0 == 0 || report.last_quantity.0 <= 0 => None,
            ExecType::Trade => Some(Self::Filled),
            ExecType::Replaced => Some(Self::Replaced),
            ExecType::CancelRejected => Some(Self::Refused),
            ExecType::Expired => Some(Self::Expired),
            ExecType::Canceled => Some(Self::Canceled),
            ExecType::Rejected => Some(Self::Rejected),
            ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace => Some(Self::Nothing),
        }
    }
}

/// A report with what its place in time makes of it.
struct Word<'a> {
    said: Said,
    answers: Answers,
    report: &'a ExecutionReport,
    /// The total that the replace on its way asked for; zero if there is none.
    replacing: i64,
}

/// The order after a report. The order before is needed to see whether a report without a sequence contradicts it.
fn merge(order: &Order, word: &Word<'_>) -> Order {
    let mut next = *order;
    if word.said != Said::Lost {
        next.reported = next.reported.max(word.report.cumulative_quantity.0);
        merge_identity(&mut next, word.report);
    }
    match (word.said, word.answers) {
        (Said::Filled, _) => next.filled = next.filled.saturating_add(word.report.last_quantity.0),
        (Said::Refused, Answers::Cancel) => next.cancel = NONE,
        (Said::Refused | Said::Replaced, Answers::Replace) => next.replace = NONE,
        _ => {}
    }
    if word.said == Said::Replaced {
        merge_terms(&mut next, word);
    }
    next.phase = step(order.phase, event(order, &next, word)).unwrap_or(order.phase);
    if matches!(next.phase, Phase::Expired | Phase::Canceled | Phase::Rejected) {
        (next.cancel, next.replace) = (NONE, NONE);
    }
    next
}

/// The venue's id may change with a replace: the latest word counts.
fn merge_identity(next: &mut Order, report: &ExecutionReport) {
    let latest = report.venue_sequence == 0 || report.venue_sequence > next.sequence;
    if report.venue_order_id.0 != 0 && (latest || next.venue == 0) {
        next.venue = report.venue_order_id.0;
    }
    next.sequence = next.sequence.max(report.venue_sequence);
}

/// The replace with the highest sequence gives price and quantity; without one, the one that was asked for.
fn merge_terms(next: &mut Order, word: &Word<'_>) {
    let asked = word.report.venue_sequence == 0 && word.answers == Answers::Replace;
    if asked || word.report.venue_sequence > next.terms_sequence {
        next.price = word.report.price.0;
        next.quantity = total(word.report);
        next.terms_sequence = next.terms_sequence.max(word.report.venue_sequence);
    }
}

fn event(order: &Order, next: &Order, word: &Word<'_>) -> Event {
    if word.report.venue_sequence == 0 && contradicts(order, next, word) {
        return Event::Conflict;
    }
    let last_word = word.report.venue_sequence > order.sequence;
    match word.said {
        Said::Accepted | Said::Filled | Said::Replaced if last_word => Event::Confirmed,
        Said::Accepted | Said::Filled | Said::Replaced => Event::Working,
        Said::Refused | Said::Nothing => Event::Refused,
        Said::Expired => Event::Expired,
        Said::Canceled => Event::Canceled,
        Said::Rejected => Event::Rejected,
        Said::Lost => Event::Lost,
    }
}

/// Whether a report without a sequence cannot be true together with what is known, in no order of events.
fn contradicts(order: &Order, next: &Order, word: &Word<'_>) -> bool {
    match (word.said, order.phase) {
        (Said::Filled, Phase::Rejected) => true,
        (Said::Filled, Phase::Expired | Phase::Canceled) => next.filled > order.reported,
        (Said::Filled, _) => next.filled > order.quantity.max(word.replacing),
        (Said::Expired | Said::Canceled, _) => word.report.cumulative_quantity.0 < next.filled,
        (Said::Rejected, _) => next.filled > 0,
        (Said::Replaced, phase) => {
            let known = order.price == word.report.price.0 && order.quantity == total(word.report);
            phase.is_live() && word.answers != Answers::Replace && !known
        }
        (Said::Accepted | Said::Refused | Said::Lost | Said::Nothing, _) => false,
    }
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

fn to_client(order: &Order, said: Said, report: &ExecutionReport, client: ClientOrderId) -> ExecutionReport {
    let filled = said == Said::Filled;
    ExecutionReport {
        exec_id: report.exec_id,
        venue_sequence: report.venue_sequence,
        last_price: if filled { report.last_price } else { Price::ZERO },
        last_quantity: if filled { report.last_quantity } else { Quantity::ZERO },
        venue_stamp: report.venue_stamp,
        reason: report.reason,
        venue: report.venue,
        exec_type: report.exec_type,
        ..told(order, client)
    }
}

fn fill_tag(fill: &Fill) -> u32 {
    tag((u64::from(fill.venue) << 32) | u64::from(fill.order), fill.exec)
}
