//! Outside observer: records the reports to each client and the requests and fills at each venue, and checks the OMS
//! against both.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{
    AccountId, ExecType, ExecutionReport, Kind, NewOrder, OrdStatus, OrderDenied, OrderId, Price, Request, Side,
    Symbol, SymbolId, VenueId,
};
use tickpath_oms_core::{Core, Instrument};
use zerocopy::FromBytes;

use crate::crash_counts::DurableOrders;
use crate::limits::LimitHistory;
use crate::order_retries::OrderRetries;
use crate::rule::{RuleCheck, broken};
use crate::silent_losses::SilentLosses;
use crate::tally::Tally;
use crate::trading_config::{VENUES, is_for_disk};

/// An order at its venue.
#[derive(Debug, Clone, Copy)]
pub struct VenueOrderState {
    pub session: u16,
    pub account: AccountId,
    pub symbol: SymbolId,
    /// Name of the symbol's number when the order arrived.
    pub name: Symbol,
    pub side: Side,
    /// Quantity on arrival.
    pub quantity: i64,
    pub cumulative: i64,
    pub leaves: i64,
    pub status: OrdStatus,
    pub sequence: u64,
    /// A fill of the order was busted or corrected.
    pub was_amended: bool,
    /// The report of that change may be lost.
    pub amendment_lost: bool,
}

/// Reported state of an order.
#[derive(Debug, Clone, Copy)]
pub struct ReportedOrder {
    pub session: u16,
    /// The client's own id, once it is known.
    pub client: Option<u64>,
    /// The last report marks the order as over, with nothing filled.
    pub is_over: bool,
}

/// Knowledge from outside of the OMS.
#[derive(Default)]
pub struct Oracle {
    /// Requests at venues: id and order.
    arrived: BTreeSet<(u64, u64)>,
    /// New orders and replaces of clients, by tag: sent, and arrived at a venue.
    sent: BTreeSet<u64>,
    executed: BTreeSet<u64>,
    /// Orders with a cancel or a replace before they arrived at their venue.
    named: BTreeSet<u64>,
    /// State of each order at its venue, by every name that the venue received.
    pub truths: BTreeMap<u64, VenueOrderState>,
    /// Fills: order and execution.
    fills: BTreeSet<(u64, u64)>,
    pub reported: BTreeMap<u64, ReportedOrder>,
    /// Frames that were read: session, start, number.
    read: BTreeMap<(u16, u64, u64), Vec<u8>>,
    /// Orders that were sent again after a temporary rejection.
    pub retries: OrderRetries,
    /// Orders and tries that a power loss took from the journal, as their durability level allows.
    pub lost: BTreeSet<u64>,
    /// Lost tries whose orders an operator has resolved: they are foreign now.
    pub given_up: BTreeSet<u64>,
    /// Orders of days that have ended.
    pub forgotten: BTreeSet<u64>,
    /// A day has ended: orders that ended with it may be reported late, and are no longer known.
    pub has_day_ended: bool,
    /// The disk is bad: a report on an order that is not on the disk is allowed, if the last report is that it is over.
    is_disk_bad: bool,
    /// Positions whose correct value in the OMS is no longer known.
    pub blurred: BTreeSet<(AccountId, Symbol)>,
    /// Names of the symbol numbers in the running OMS.
    pub names: BTreeMap<SymbolId, Symbol>,
    /// Fills were changed since the last rest.
    pub is_amending: bool,
    /// Power was lost since the last rest: unsynced orders may be understated until the venue has answered.
    pub is_uncertain: bool,
    /// Ranges of order ids in which a session had no right to trade.
    barred: Vec<(u16, u64, u64)>,
    pub limits: LimitHistory,
    /// Cancels of other sessions' orders: the requesting session, and its order id.
    asked: BTreeSet<(u16, u64)>,
    /// Market prices that the running OMS has seen, by symbol and price type.
    pub prices: BTreeMap<(u32, u8), Price>,
    /// Orders with a request or a report that a silent venue has lost.
    pub silent_losses: SilentLosses,
}

/// Returns the tag that a client writes on a request, to identify it at the venue.
pub fn tag(session: u16, client: u64) -> u64 {
    (u64::from(session) + 1) << 32 | client
}

fn session_of(tag: u64) -> u16 {
    ((tag >> 32) as u16).wrapping_sub(1)
}

impl Oracle {
    pub fn sent(&mut self, tag: u64) {
        self.sent.insert(tag);
    }

    /// Checks a request that arrived at a venue.
    pub fn arrived(&mut self, request: &Request) -> RuleCheck {
        let id = request.client_order_id().0;
        let original = match request {
            Request::New(_) => 0,
            Request::Cancel(cancel) => cancel.original.0,
            Request::Replace(replace) => replace.original.0,
            Request::Status(status) => status.original.0,
            Request::MassCancel(_)
            | Request::Conditional(_)
            | Request::ReplaceConditional(_)
            | Request::Extended(_)
            | Request::ByTextId(_) => {
                return broken("no mass cancel, no trigger and no text id leaves", format!("{request:?}"));
            }
        };
        if !self.arrived.insert((id, original)) {
            return broken("nothing is sent twice", format!("{request:?} arrives again"));
        }
        let tag = request.cause();
        if tag != 0 && !self.sent.contains(&tag) {
            return broken("nothing is invented", format!("no client has sent {request:?}"));
        }
        if tag != 0 && !self.executed.insert(tag) && !self.was_refused(tag) {
            return broken("nothing is sent twice", format!("{request:?} arrives again, with another id"));
        }
        if let Request::Cancel(cancel) = request {
            self.silent_losses.cancel(cancel.original.0);
        }
        match request {
            Request::New(_) if self.named.contains(&id) => {
                broken("no request arrives before its order", format!("{id:x} was named before"))
            }
            Request::New(new) => self.new_order(new),
            // The status of an order that may have fired is requested before it is sent.
            Request::Status(_) => Ok(()),
            _ => {
                self.named.extend((!self.truths.contains_key(&original)).then_some(original));
                Ok(())
            }
        }
    }

    /// Records a request that a silent venue has lost.
    pub fn request_lost(&mut self, request: &Request) {
        match request {
            Request::New(new) => self.silent_losses.note(new.client_order_id.0),
            Request::Cancel(cancel) => self.silent_losses.note(cancel.original.0),
            Request::Replace(replace) => self.silent_losses.note(replace.original.0),
            Request::Status(status) => self.silent_losses.note(status.original.0),
            Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => {}
            Request::Extended(_) | Request::ByTextId(_) => {}
        }
    }

    /// Records the end of a venue's day: the venue forgets ended orders, and the fills of open ones.
    pub fn venue_forgets(&mut self, venue: VenueId) {
        for (&name, truth) in &self.truths {
            let has_past = truth.leaves == 0 || truth.cumulative > 0;
            if has_past && VENUES[truth.symbol.0 as usize] == venue {
                self.silent_losses.forget(name);
            }
        }
    }

    /// Returns whether a client's new order was rejected for now and is to be tried again.
    fn was_refused(&self, tag: u64) -> bool {
        let truth = self.retries.latest_of(tag).and_then(|name| self.truths.get(&name));
        truth.is_some_and(|truth| (truth.status, truth.sequence) == (OrdStatus::Rejected, 1))
    }

    /// Records that a running OMS has granted or revoked a session's right to trade, for orders from this id on.
    pub fn note_right(&mut self, session: u16, may_trade: bool, from: u64) {
        let open = self.barred.iter_mut().find(|(barred, _, upto)| *barred == session && *upto == u64::MAX);
        match (open, may_trade) {
            (Some(barred), true) => barred.2 = from,
            (None, false) => self.barred.push((session, from, u64::MAX)),
            _ => {}
        }
    }

    /// Records the meaning of the symbol numbers in a running OMS.
    pub fn note_names(&mut self, instruments: &[Instrument]) {
        self.names = instruments.iter().map(|instrument| (instrument.symbol, instrument.name())).collect();
    }

    fn new_order(&mut self, new: &NewOrder) -> RuleCheck {
        let (id, session) = (new.client_order_id.0, session_of(new.cause));
        // A rejected order that waits for another try is checked when sent, perhaps with the right restored by then.
        let is_again = self.retries.latest_of(new.cause).is_some();
        let barred =
            self.barred.iter().filter(|(barred, _, upto)| *barred == session && !(is_again && *upto < u64::MAX));
        if barred.into_iter().any(|&(_, from, upto)| from <= id && id < upto) {
            return broken("a removed right denies the next order", format!("{id:x} of session {session}"));
        }
        self.limits.arrived(new)?;
        if new.cause == 0 {
            return broken("nothing is invented", format!("no client has sent {new:?}"));
        }
        let truth = VenueOrderState {
            session: session_of(new.cause),
            account: new.account,
            symbol: new.symbol,
            name: self.names.get(&new.symbol).copied().unwrap_or_default(),
            side: Side::from_code(new.side).expect("the OMS has checked it"),
            quantity: new.quantity.0,
            cumulative: 0,
            leaves: 0,
            status: OrdStatus::PendingNew,
            sequence: 0,
            was_amended: false,
            amendment_lost: false,
        };
        self.retries.arrived(new.cause, id);
        self.truths.insert(id, truth);
        Ok(())
    }

    /// Records a report that a venue has made.
    pub fn made(&mut self, report: &ExecutionReport, tally: &mut Tally) {
        let exec_type = ExecType::from_code(report.exec_type).expect("venues know the codes");
        let Some(truth) = self.truths.get_mut(&report.order_id.0) else { return };
        if exec_type == ExecType::OrderStatus || report.venue_sequence <= truth.sequence {
            return;
        }
        truth.sequence = report.venue_sequence;
        truth.cumulative = report.cumulative_quantity.0;
        truth.leaves = report.leaves_quantity.0;
        truth.status = OrdStatus::from_code(report.status).expect("venues know the codes");
        if exec_type == ExecType::Rejected {
            tally.count("orders refused for now");
        }
        if exec_type == ExecType::Trade {
            tally.count("fills");
            self.fills.insert((self.retries.order(report.order_id.0), report.exec_id.0));
        }
        if matches!(exec_type, ExecType::TradeCancel | ExecType::TradeCorrect) {
            truth.was_amended = true;
            self.is_amending = true;
            // An OMS whose day ended first has forgotten the order, and keeps the position that it had.
            if self.forgotten.contains(&self.retries.order(report.order_id.0)) {
                self.blurred.insert((truth.account, truth.name));
            }
        }
    }

    /// Records the loss of a report in flight.
    pub fn vanished(&mut self, report: &ExecutionReport) {
        let exec_type = ExecType::from_code(report.exec_type);
        let is_amendment = matches!(exec_type, Some(ExecType::TradeCancel | ExecType::TradeCorrect));
        if let Some(truth) = self.truths.get_mut(&report.order_id.0) {
            truth.amendment_lost |= is_amendment;
        }
    }

    /// Records a power loss of the host.
    pub fn power_lost(&mut self) {
        self.is_uncertain = true;
        self.silent_losses.lose_power();
        for (id, truth) in self.truths.iter_mut().filter(|(_, truth)| truth.was_amended) {
            truth.amendment_lost = true;
            if self.forgotten.contains(&self.retries.order(*id)) {
                self.blurred.insert((truth.account, truth.name));
            }
        }
    }

    /// Checks a frame that a client reads in its report log, which this start has made.
    pub fn check_frame(
        &mut self,
        session: u16,
        place: (u64, u64),
        kind: u8,
        payload: &[u8],
        tally: &mut Tally,
    ) -> RuleCheck {
        tally.count("reports received");
        let place = (session, place.0, place.1);
        if self.read.get(&place).is_some_and(|before| before != payload) {
            return broken("a report never changes", format!("frame {place:?} is another one now"));
        }
        if self.read.insert(place, payload.to_vec()).is_some() {
            return Ok(());
        }
        if kind == Kind::OrderDenied.code() {
            tally.count("requests denied");
            let denied = OrderDenied::read_from_bytes(payload);
            let denied = denied.or_else(|e| broken("reports are sound", e.to_string()))?;
            // A request that is no order, or was never accepted, gets no other report under this id.
            self.reported.entry(denied.order_id.0).and_modify(|reported| reported.is_over = true);
            return Ok(());
        }
        let report = ExecutionReport::read(kind, payload);
        let report = report.or_else(|e| broken("reports are sound", e.to_string()))?;
        self.check_report(session, &report)
    }

    /// Records a client's cancel request by the OMS's order id.
    pub fn note_foreign_cancel(&mut self, session: u16, client: u64) {
        self.asked.insert((session, client));
    }

    fn check_report(&mut self, session: u16, report: &ExecutionReport) -> RuleCheck {
        let id = report.order_id.0;
        // The requester of a cancel receives its result, beside the order's own session.
        let is_asker = self.reported.get(&id).is_none_or(|reported| reported.session != session);
        if is_asker && self.asked.contains(&(session, report.client_order_id.0)) {
            let is_fill = report.exec_type == ExecType::Trade.code();
            return if is_fill {
                broken("a fill is reported to its owner only", format!("{report:?}"))
            } else {
                Ok(())
            };
        }
        let reported = self.reported.entry(id).or_insert(ReportedOrder { session, client: None, is_over: false });
        let is_ended = matches!(
            OrdStatus::from_code(report.status),
            Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected)
        );
        reported.is_over = is_ended && report.cumulative_quantity.0 == 0;
        if reported.session != session {
            return broken(
                "an id is one order",
                format!("{id:x} is reported to {} and to {session}", reported.session),
            );
        }
        if report.exec_type == ExecType::PendingNew.code() {
            let client = report.client_order_id.0;
            if reported.client.is_some_and(|known| known != client) {
                return broken("an id is one order", format!("{id:x} was {:?} and is {client}", reported.client));
            }
            reported.client = Some(client);
        }
        let is_trade = report.exec_type == ExecType::Trade.code();
        if is_trade && !self.fills.contains(&(id, report.exec_id.0)) {
            return broken("nothing is invented", format!("no venue has made the fill {report:?}"));
        }
        Ok(())
    }

    /// Sets whether the disk is bad; a started OMS has synced what the journal holds.
    pub fn is_disk_bad(&mut self, is_bad: bool) {
        self.is_disk_bad = is_bad;
    }

    /// Records the losses at a start after a power loss, given the orders in the journal; only losses that the
    /// durability level allows are accepted.
    pub fn note_lost(&mut self, core: &Core, journaled: &BTreeSet<u64>, tally: &mut Tally) -> RuleCheck {
        let reported = self.reported.iter().map(|(id, reported)| (*id, reported.session));
        let known: BTreeMap<u64, u16> =
            reported.chain(self.truths.iter().map(|(id, truth)| (*id, truth.session))).collect();
        for (id, session) in known {
            let order = self.retries.order(id);
            // The OMS no longer knows the name of a try that was rejected later.
            let is_known = || core.order(OrderId(order)).is_none_or(|view| view.status == OrdStatus::Rejected);
            if order != id && journaled.contains(&order) && !is_known() {
                let venue = VENUES[self.truths[&id].symbol.0 as usize];
                if core.order_by_venue_id(venue, id).is_none() && is_for_disk(session) {
                    return broken("synced records survive", format!("try {id:x} is gone with the power"));
                }
                if core.order_by_venue_id(venue, id).is_none() && self.lost.insert(id) {
                    tally.count("tries lost with the power");
                }
                continue;
            }
            if journaled.contains(&order) {
                // The end of the order's day may be lost.
                if core.order(OrderId(id)).is_some() {
                    self.forgotten.remove(&id);
                }
                continue;
            }
            let is_over = self.is_disk_bad && self.reported.get(&id).is_some_and(|reported| reported.is_over);
            if is_for_disk(session) && !is_over && !self.lost.contains(&id) {
                return broken("synced records survive", format!("order {id:x} is gone with the power"));
            }
            if self.lost.insert(id) {
                tally.count(if is_over { "orders denied on a bad disk" } else { "orders lost with the power" });
            }
            self.forgotten.remove(&id);
        }
        Ok(())
    }

    /// Records the end of a day: finished orders are forgotten.
    pub fn note_forgotten(&mut self, core: &Core) -> RuleCheck {
        self.has_day_ended = true;
        let known: BTreeSet<u64> = self.reported.keys().chain(self.truths.keys()).copied().collect();
        for id in known {
            let order = self.retries.order(id);
            if core.order(OrderId(order)).is_some() || self.lost.contains(&id) {
                continue;
            }
            if self.truths.get(&id).is_some_and(|truth| truth.leaves > 0) {
                return broken("an open order is kept", format!("the day has ended for {id:x}, which its venue works"));
            }
            self.forgotten.insert(order);
        }
        Ok(())
    }

    /// Clears the exceptions that hold only until a rest.
    pub fn rest(&mut self) {
        (self.is_amending, self.is_uncertain) = (false, false);
    }

    /// Returns the true state of an order, as an operator gets it from the venue by telephone; none if the order never
    /// arrived. A try that the OMS does not know is foreign from now on.
    pub fn state_at_venue(&mut self, order: u64) -> Option<VenueOrderState> {
        self.silent_losses.resolve(order);
        self.given_up.extend(self.retries.names(order).filter(|name| self.lost.contains(name)));
        let known = self.retries.names(order).find(|name| !self.lost.contains(name))?;
        self.truths.get(&known).copied()
    }

    /// Returns the number of orders that clients know of and that the OMS must keep.
    pub fn durable_orders(&self) -> DurableOrders {
        let is_known = |id: &u64| !self.lost.contains(id) && !self.forgotten.contains(id);
        // An order that is over and never traded has nothing to lose.
        let is_alive = |(id, reported): &(&u64, &ReportedOrder)| is_known(id) && !reported.is_over;
        let known = || self.reported.iter().filter(is_alive).map(|(_, reported)| reported.session);
        DurableOrders {
            os: known().filter(|&session| !is_for_disk(session)).count() as u64,
            disk: known().filter(|&session| is_for_disk(session)).count() as u64,
        }
    }

    pub fn had_unknown_orders(&self) -> bool {
        !self.lost.is_empty() || !self.forgotten.is_empty()
    }
}
