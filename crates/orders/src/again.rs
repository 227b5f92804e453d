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

use std::collections::BTreeMap;

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, NewOrder, OrderId, Quantity, Request, VenueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::core::{At, Core};
use crate::order::{ASTRAY, NONE, Order};
use crate::reports::{Said, is_never_heard};
use crate::requests::told;
use crate::route::VENUES;
use crate::snapshot::{Load, Save, SnapshotError};
use crate::state::{Event, Phase, step};
use crate::waiting::Waiting;
use crate::{Output, Outputs, ReportRecord};

/// [`RejectRule::action`]: the order is over, as it is after any code that has no rule.
pub const GIVE_UP: u8 = 0;
/// [`RejectRule::action`]: it is tried again, by whichever line is ready.
pub const RETRY: u8 = 1;
/// [`RejectRule::action`]: it is tried again by another line than the one that brought the refusal, if another is up.
pub const OTHER_LINE: u8 = 2;

/// What is done with a new order that its venue refuses with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RejectRule {
    /// Whose code it is.
    pub venue: VenueId,
    /// The venue's code: `reason` of its report.
    pub code: u16,
    /// [`GIVE_UP`], [`RETRY`] or [`OTHER_LINE`].
    pub action: u8,
    /// An order that was tried again so often, for whatever codes, is over.
    pub times: u8,
    /// Zero.
    pub reserved: u16,
}

/// The table, and the orders that it may come to.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// By venue and code.
    rules: BTreeMap<(u16, u16), RejectRule>,
    /// By the id of an order that may be refused yet.
    tries: BTreeMap<u64, Try>,
}

/// What of an order is needed to try it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Try {
    /// As its venue was told last.
    request: NewOrder,
    /// When its client sent it, in ticks.
    sent: u64,
    order: u64,
    /// The line that brought the last refusal if it is to go by another one, one above its number; zero for any.
    refused_by: u16,
    /// How often it was tried again.
    count: u8,
    reserved: [u8; 5],
}

impl Again {
    /// Takes a rule; false if it says nothing that can be done.
    pub(crate) fn define(&mut self, rule: &RejectRule) -> bool {
        let is_good = rule.venue.0 < VENUES && rule.action <= OTHER_LINE;
        if is_good {
            self.rules.insert((rule.venue.0, rule.code), *rule);
        }
        is_good
    }

    /// After this code orders are over again; false if they were.
    pub(crate) fn end(&mut self, venue: u32, code: u16) -> bool {
        u16::try_from(venue).is_ok_and(|venue| self.rules.remove(&(venue, code)).is_some())
    }

    /// Whether no order can be tried again.
    #[inline]
    pub(crate) fn has_no_rules(&self) -> bool {
        self.rules.is_empty()
    }

    /// Keeps what is needed to try a new order again, if its venue has a code for that.
    #[cold]
    pub(crate) fn keep(&mut self, order: &Order, request: NewOrder, sent: u64) {
        if self.may_try(order.route) {
            let order = order.id;
            self.tries.insert(order, Try { request, sent, order, refused_by: 0, count: 0, reserved: [0; 5] });
        }
    }

    /// Whether there is a code after which this venue's orders are tried again.
    fn may_try(&self, venue: u16) -> bool {
        let mut rules = self.rules.range((venue, 0)..=(venue, u16::MAX));
        rules.any(|(_, rule)| rule.action != GIVE_UP && rule.times > 0)
    }

    /// An order is not tried again any more.
    #[inline]
    pub(crate) fn forget(&mut self, order: u64) {
        if !self.tries.is_empty() {
            self.tries.remove(&order);
        }
    }

    /// A day has ended: orders are forgotten.
    pub(crate) fn end_day(&mut self, is_known: impl Fn(u64) -> bool) {
        self.tries.retain(|order, _| is_known(*order));
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.rules.values().copied().collect::<Vec<_>>());
        save.list(&self.tries.values().copied().collect::<Vec<_>>());
    }

    pub(crate) fn load(load: &mut Load<'_>) -> Result<Self, SnapshotError> {
        let (rules, tries) = (load.list::<RejectRule>()?, load.list::<Try>()?);
        Ok(Self {
            rules: rules.into_iter().map(|rule| ((rule.venue.0, rule.code), rule)).collect(),
            tries: tries.into_iter().map(|tried| (tried.order, tried)).collect(),
        })
    }
}

impl Core {
    /// The line that what waits first for a venue should not go by: it brought the refusal of that order. Its number.
    pub fn refused_by(&self, venue: VenueId) -> Option<u8> {
        if self.again.tries.is_empty() {
            return None;
        }
        let waiting = self.routes.front(venue).filter(|waiting| matches!(waiting.request, Request::New(_)))?;
        u8::try_from(self.again.tries.get(&self.orders.get(waiting.order).id)?.refused_by.checked_sub(1)?).ok()
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
        let may_be = is_astray || !self.again.tries.is_empty() || !self.names.is_empty();
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
        match (said, self.again.tries.get(&order.id)) {
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
        let sent = self.again.tries.keys().filter_map(|&order| self.find_order(order));
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
        let rule = self.again.rules.get(&(order.route, report.reason)).filter(|rule| rule.action != GIVE_UP);
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
        let avoids = self.again.rules.get(&(order.route, report.reason)).is_some_and(is_for_another);
        let id = self.id(at);
        let request = NewOrder { client_order_id: ClientOrderId(id), ..tried.request };
        let refused_by = if avoids { record.line } else { 0 };
        self.names.add(order.id, order.route, id, 0);
        self.again.tries.insert(order.id, Try { request, refused_by, count: tried.count + 1, ..*tried });
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
