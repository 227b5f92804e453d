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

use std::collections::{BTreeMap, HashMap};

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, NewOrder, OrderId, Request, VenueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::core::{At, Core};
use crate::order::{NONE, Order};
use crate::reports::Said;
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
    /// By the slot of an order that may be refused yet, or that was tried again.
    tries: BTreeMap<u32, Try>,
    /// The slots of orders that were tried again, by each later id.
    aliases: BTreeMap<u64, u32>,
}

/// What of an order is needed to try it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Try {
    /// As its venue was told last.
    request: NewOrder,
    /// When its client sent it, in ticks.
    sent: u64,
    slot: u32,
    /// The line that brought the last refusal if it is to go by another one, one above its number; zero for any.
    refused_by: u16,
    /// How often it was tried again.
    count: u8,
    reserved: u8,
}

/// An id of [`Again::aliases`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Alias {
    id: u64,
    slot: u32,
    reserved: u32,
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

    /// Keeps what is needed to try a new order again.
    #[cold]
    pub(crate) fn keep(&mut self, slot: u32, venue: u16, request: NewOrder, sent: u64) {
        if self.rules.range((venue, 0)..=(venue, u16::MAX)).next().is_some() {
            self.tries.insert(slot, Try { request, sent, slot, refused_by: 0, count: 0, reserved: 0 });
        }
    }

    /// The id by which its venue knows an order.
    #[inline]
    pub(crate) fn venue_id(&self, slot: u32, order: &Order) -> ClientOrderId {
        if self.tries.is_empty() { ClientOrderId(order.id) } else { self.tried_id(slot, order) }
    }

    #[cold]
    fn tried_id(&self, slot: u32, order: &Order) -> ClientOrderId {
        self.tries.get(&slot).map_or(ClientOrderId(order.id), |tried| tried.request.client_order_id)
    }

    /// The order that was tried again under this id.
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        self.aliases.get(&id).copied()
    }

    /// Nothing of an order that never was tried again is needed any more.
    #[inline]
    pub(crate) fn forget(&mut self, slot: u32) {
        if !self.tries.is_empty() && self.tries.get(&slot).is_some_and(|tried| tried.count == 0) {
            self.tries.remove(&slot);
        }
    }

    /// What is left of it when orders have moved to other slots.
    pub(crate) fn moved(self, slots: &HashMap<u32, u32>) -> Self {
        let tries = self.tries.into_values().filter_map(|tried| {
            let slot = *slots.get(&tried.slot)?;
            Some((slot, Try { slot, ..tried }))
        });
        let aliases = self.aliases.iter().filter_map(|(&id, slot)| Some((id, *slots.get(slot)?)));
        Self { rules: self.rules, tries: tries.collect(), aliases: aliases.collect() }
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.rules.values().copied().collect::<Vec<_>>());
        save.list(&self.tries.values().copied().collect::<Vec<_>>());
        let aliases = self.aliases.iter().map(|(&id, &slot)| Alias { id, slot, reserved: 0 });
        save.list(&aliases.collect::<Vec<_>>());
    }

    pub(crate) fn load(load: &mut Load<'_>) -> Result<Self, SnapshotError> {
        let (rules, tries) = (load.list::<RejectRule>()?, load.list::<Try>()?);
        let aliases = load.list::<Alias>()?;
        Ok(Self {
            rules: rules.into_iter().map(|rule| ((rule.venue.0, rule.code), rule)).collect(),
            tries: tries.into_iter().map(|tried| (tried.slot, tried)).collect(),
            aliases: aliases.into_iter().map(|alias| (alias.id, alias.slot)).collect(),
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
        u8::try_from(self.again.tries.get(&waiting.order)?.refused_by.checked_sub(1)?).ok()
    }

    /// Takes a report, if it ends a try of its order and not the order itself; false for every other one.
    #[inline]
    pub(crate) fn ends_a_try(
        &mut self,
        at: At,
        slot: u32,
        said: Said,
        record: &ReportRecord,
        out: &mut Outputs,
    ) -> bool {
        !self.again.tries.is_empty() && self.ends_this_try(at, slot, said, record, out)
    }

    #[cold]
    fn ends_this_try(&mut self, at: At, slot: u32, said: Said, record: &ReportRecord, out: &mut Outputs) -> bool {
        let Some(&tried) = self.again.tries.get(&slot) else { return false };
        if record.report.order_id.0 != tried.request.client_order_id.0 {
            self.hear_of_earlier_try(at, slot, said, out);
            return true;
        }
        match said {
            Said::Nothing | Said::Status | Said::Lost | Said::Refused => false,
            Said::Rejected if self.may_try_again(at, slot, &tried, &record.report) => {
                self.try_again(at, &tried, record, out);
                true
            }
            _ => {
                self.again.forget(slot);
                false
            }
        }
    }

    /// A venue has refused an earlier try: it may say so twice, and nothing else.
    fn hear_of_earlier_try(&mut self, at: At, slot: u32, said: Said, out: &mut Outputs) {
        match said {
            Said::Rejected | Said::Status | Said::Nothing => self.counts.duplicates += 1,
            _ => {
                self.counts.contradictions += 1;
                self.put_in_doubt(at, slot, Event::Conflict, 0, out);
            }
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
    fn try_again(&mut self, at: At, tried: &Try, record: &ReportRecord, out: &mut Outputs) {
        let (slot, report) = (tried.slot, &record.report);
        let order = *self.orders.get(slot);
        let is_for_another = |rule: &RejectRule| rule.action == OTHER_LINE;
        let avoids = self.again.rules.get(&(order.route, report.reason)).is_some_and(is_for_another);
        let id = self.id(at);
        let request = NewOrder { client_order_id: ClientOrderId(id), ..tried.request };
        let refused_by = if avoids { record.line } else { 0 };
        self.again.aliases.insert(id, slot);
        self.again.tries.insert(slot, Try { request, refused_by, count: tried.count + 1, ..*tried });
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
