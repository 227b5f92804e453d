//! New orders that a venue refuses with a code after which a desk wants them to be tried again.
//!
//! ```text
//!   Sent ──refused, by a code of the table──> Queued, under another id at the venue ──checked again──> Sent ──> ...
//!        ──refused, by any other code, or once too often────────────────────────────────────────────> Rejected
//! ```
//!
//! A refusal may come twice, so each try has an id of its own at the venue: that of the refusal's record. The order keeps
//! its own id for everybody else. Who has asked for a cancel or a replace has its order refused: nothing is tried again
//! behind a cancel. A venue without a table costs one branch.
//!
//! After another boot of the host a refusal and the try behind it may both be in the tail that the journal lost, and that
//! try has an id that nobody knows. So a refusal is no end of an order that was on its way then: it is unknown until its
//! venue says that it lived under the name that is known, or an operator says what became of it. Only where nothing
//! leaves before the disk has its input, there is no doubt.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, NewOrder, OrderId, Quantity, Request, VenueId};
use tickpath_risk::{GIVE_UP, OTHER_LINE, RejectRule};

use crate::core::{At, Core};
use crate::order::{ASTRAY, NONE, Order};
use crate::reject::Try;
use crate::reports::{Said, is_never_heard};
use crate::requests::told;
use crate::state::{Event, Phase, step};
use crate::waiting::Waiting;
use crate::{Output, Outputs, ReportRecord};

impl Core {
    /// The line that what waits first for a venue should not go by: it brought the refusal of that order. Its number.
    pub fn refused_by(&self, venue: VenueId) -> Option<u8> {
        if self.again.has_no_tries() {
            return None;
        }
        let waiting = self.routes.front(venue).filter(|waiting| matches!(waiting.request, Request::New(_)))?;
        u8::try_from(self.again.tried(self.orders.get(waiting.order).id)?.refused_by.checked_sub(1)?).ok()
    }

    /// Takes a report, if it is of a try of its order and not of the order itself; false for every other one.
    #[inline]
    pub(crate) fn hear_of_try(
        &mut self,
        at: At,
        slot: u32,
        said: Said,
        record: &ReportRecord,
        out: &mut Outputs,
    ) -> bool {
        let is_astray = self.orders.get(slot).marks & ASTRAY != 0;
        let may_be = is_astray || !self.again.has_no_tries() || !self.names.is_empty();
        may_be && self.hear_of_this_try(at, slot, said, record, out)
    }

    #[cold]
    fn hear_of_this_try(&mut self, at: At, slot: u32, said: Said, record: &ReportRecord, out: &mut Outputs) -> bool {
        let (order, name) = (*self.orders.get(slot), record.report.order_id.0);
        if self.names.is_earlier(order.id, order.route, name) {
            self.hear_of_earlier_try(at, slot, said, &record.report, out);
            return true;
        }
        // Until now its venue had told its own id alone.
        if name != order.id && self.names.current(order.id).is_none() {
            self.names.add(order.id, order.route, name, 0);
        }
        match (said, self.again.tried(order.id)) {
            (Said::Nothing | Said::Status | Said::Lost | Said::Refused, _) => false,
            (Said::Rejected, _) if order.marks & ASTRAY != 0 => {
                // One that is unknown is asked for already.
                match order.phase.is_unknown() {
                    true => self.counts.duplicates += 1,
                    false => self.put_in_doubt(at, slot, Event::Missed, 0, out),
                }
                true
            }
            (Said::Rejected, Some(&tried)) if self.may_try_again(at, slot, &tried, &record.report) => {
                self.try_again(at, slot, &tried, record, out);
                true
            }
            _ => {
                // It lives, or has lived: its venue has not refused it.
                self.orders.get_mut(slot).marks &= !ASTRAY;
                self.again.forget(order.id);
                false
            }
        }
    }

    /// A venue has refused an earlier try: it may say so twice, and nothing else. What was traded all the same is booked.
    fn hear_of_earlier_try(&mut self, at: At, slot: u32, said: Said, report: &ExecutionReport, out: &mut Outputs) {
        let is_known = said == Said::Filled && self.find_fill(slot, report.exec_id.0).is_some();
        if is_known || matches!(said, Said::Rejected | Said::Status | Said::Nothing) {
            self.counts.duplicates += 1;
            return;
        }
        self.counts.contradictions += 1;
        self.put_in_doubt(at, slot, Event::Conflict, 0, out);
        if matches!(said, Said::Filled | Said::Amended) {
            // Its numbers and sums are those of that try.
            let report = ExecutionReport { venue_sequence: 0, cumulative_quantity: Quantity::ZERO, ..*report };
            self.event(at, slot, said, &report, out);
        }
    }

    /// Of another boot: what was on its way may have been refused and tried again in what the journal has lost, unless
    /// nothing of its session leaves before the disk has it; so may what may have fired.
    pub(crate) fn doubt_tries(&mut self) {
        let sent = self.again.orders().filter_map(|order| self.find_order(order));
        let sent = sent.filter(|&slot| self.orders.get(slot).phase == Phase::Sent);
        let fired = self.armed.keys().copied().filter(|&slot| !self.is_armed(slot));
        let fired = fired.filter(|&slot| self.again.may_try(self.orders.get(slot).route));
        for slot in sent.chain(fired).collect::<Vec<_>>() {
            let order = self.orders.get_mut(slot);
            if self.desk.rules(order.session).level == 0 {
                order.marks |= ASTRAY;
            }
        }
    }

    /// What its venue's answer makes of an order that may have been tried again under an id that nobody knows. That it was
    /// refused tells nothing, nor that it was never heard of, unless the venue numbers: it would have numbered a refusal.
    #[cold]
    pub(crate) fn stands_astray(&mut self, order: &Order, report: &ExecutionReport, next: Order) -> Order {
        let numbered = self.routes.get(VenueId(order.route)).rules.numbered != 0;
        match next.phase {
            Phase::Rejected if !(numbered && is_never_heard(report)) => Order { phase: Phase::Unknown, ..*order },
            _ => Order { marks: next.marks & !ASTRAY, ..next },
        }
    }

    /// Whether the venue never had more of the order than its refusal, nobody wants anything else of it, and the table
    /// says so.
    fn may_try_again(&self, at: At, slot: u32, tried: &Try, report: &ExecutionReport) -> bool {
        let order = self.orders.get(slot);
        let rule = self.again.rule(order.route, report.reason).filter(|rule| rule.action != GIVE_UP);
        let is_numbered = self.routes.iter().nth(order.route.into()).is_none_or(|route| route.rules.numbered != 0);
        rule.is_some_and(|rule| tried.count < rule.times)
            && order.phase == Phase::Sent
            && (order.cancel, order.replace) == (NONE, NONE)
            && (order.sequence, order.filled, report.cumulative_quantity.0) == (0, 0, 0)
            && report.venue_sequence == u64::from(is_numbered)
            && !self.desk.disk_failed()
            && at.sequence >> OrderId::SEQUENCE_BITS == 0
    }

    /// The order waits, to be checked again and to go under another id. Its client is told the code.
    fn try_again(&mut self, at: At, slot: u32, tried: &Try, record: &ReportRecord, out: &mut Outputs) {
        let (order, report) = (*self.orders.get(slot), &record.report);
        let is_for_another = |rule: &RejectRule| rule.action == OTHER_LINE;
        let avoids = self.again.rule(order.route, report.reason).is_some_and(is_for_another);
        let id = self.id(at);
        let request = NewOrder { client_order_id: ClientOrderId(id), ..tried.request };
        let refused_by = if avoids { record.line } else { 0 };
        self.names.add(order.id, order.route, id, 0);
        self.again.note_try(tried, request, refused_by);
        let phase = step(order.phase, Event::Returned).unwrap_or(order.phase);
        self.settle(slot, &Order { phase, ..order });
        let waiting = Waiting { order: slot, session: order.session, request: Request::New(request), sent: tried.sent };
        self.routes.get(VenueId(order.route)).waiting.push(waiting);
        let told = ExecutionReport {
            exec_type: ExecType::OrderStatus.code(),
            reason: report.reason,
            venue: report.venue,
            ..told(self.orders.get(slot), ClientOrderId(order.client))
        };
        out.push(Output::Report { session: order.session, report: told });
    }
}
