//! Who watches from outside: what each client was told, what each venue received and filled, and whether the OMS is
//! right about both.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{
    AccountId, ExecType, ExecutionReport, Kind, NewOrder, OrdStatus, OrderDenied, OrderId, Price, Request, Side,
    Symbol, SymbolId, VenueId,
};
use tickpath_orders::{Core, Instrument};
use zerocopy::FromBytes;

use crate::desk::{VENUES, is_for_disk};
use crate::ends::AtStake;
use crate::limits::Limits;
use crate::rule::{Checked, broken};
use crate::tally::Tally;
use crate::tries::Tries;
use crate::unheard::Unheard;

/// An order as its venue has it.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    pub session: u16,
    pub account: AccountId,
    pub symbol: SymbolId,
    /// What the symbol's number meant when the order arrived.
    pub name: Symbol,
    pub side: Side,
    /// As it arrived.
    pub quantity: i64,
    pub cumulative: i64,
    pub leaves: i64,
    pub status: OrdStatus,
    pub sequence: u64,
    /// A fill of it was changed after all.
    pub was_amended: bool,
    /// And nobody may have heard of that.
    pub amendment_lost: bool,
}

/// What a client was told of an order.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    pub session: u16,
    /// The client's own id, once it is known.
    pub client: Option<u64>,
    /// The last word was that it is over, with nothing filled.
    pub is_over: bool,
}

/// What is known outside of the OMS.
#[derive(Default)]
pub struct Oracle {
    /// Requests at venues: id and order.
    arrived: BTreeSet<(u64, u64)>,
    /// New orders and replaces of clients, by tag: sent, and arrived at a venue.
    sent: BTreeSet<u64>,
    executed: BTreeSet<u64>,
    /// Orders that were to be canceled or replaced before their venue had them.
    named: BTreeSet<u64>,
    /// By each name that a venue was told.
    pub truths: BTreeMap<u64, Truth>,
    /// Fills: order and execution.
    fills: BTreeSet<(u64, u64)>,
    pub told: BTreeMap<u64, Told>,
    /// Frames that were read: session, start, number.
    read: BTreeMap<(u16, u64, u64), Vec<u8>>,
    /// What was tried again.
    pub tries: Tries,
    /// Orders and tries that a loss of power took from the journal, as their level allows.
    pub lost: BTreeSet<u64>,
    /// Lost tries whose orders an operator has resolved: they are foreign now.
    pub given_up: BTreeSet<u64>,
    /// Orders of days that have ended.
    pub forgotten: BTreeSet<u64>,
    /// A day has ended: what ended with it may be told only then, and is not known any more.
    pub has_day_ended: bool,
    /// The disk is bad: what it does not have may be told of, if the last word is that it is over.
    is_disk_bad: bool,
    /// Positions of which nobody can say any more what the OMS should count.
    pub blurred: BTreeSet<(AccountId, Symbol)>,
    /// What the numbers of symbols mean to the OMS that is up.
    pub names: BTreeMap<SymbolId, Symbol>,
    /// Fills were changed since all was at rest.
    pub is_amending: bool,
    /// Power was lost since then: what was not synced may be understated until the venue has answered.
    pub is_uncertain: bool,
    /// From which order id on, and up to which, a session was known to have no right to trade.
    barred: Vec<(u16, u64, u64)>,
    pub limits: Limits,
    /// Cancels of other sessions' orders: who asked, and its id.
    asked: BTreeSet<(u16, u64)>,
    /// What the OMS that is up has seen of the market: by symbol and price type.
    pub prices: BTreeMap<(u32, u8), Price>,
    /// Orders of which a silent venue has lost a request or a report.
    pub unheard: Unheard,
}

/// What a client writes on a request, by which it is known again at the venue.
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

    /// A request has arrived at a venue.
    pub fn arrived(&mut self, request: &Request) -> Checked {
        let id = request.client_order_id().0;
        let original = match request {
            Request::New(_) => 0,
            Request::Cancel(cancel) => cancel.original.0,
            Request::Replace(replace) => replace.original.0,
            Request::Status(status) => status.original.0,
            Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => {
                return broken("no mass cancel and no trigger leaves", format!("{request:?}"));
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
            self.unheard.cancel(cancel.original.0);
        }
        match request {
            Request::New(_) if self.named.contains(&id) => {
                broken("nothing comes before its order", format!("{id:x} was named before"))
            }
            Request::New(new) => self.new_order(new),
            // What may have fired is asked for before it leaves.
            Request::Status(_) => Ok(()),
            _ => {
                self.named.extend((!self.truths.contains_key(&original)).then_some(original));
                Ok(())
            }
        }
    }

    /// A silent venue has lost a request.
    pub fn request_lost(&mut self, request: &Request) {
        match request {
            Request::New(new) => self.unheard.note(new.client_order_id.0),
            Request::Cancel(cancel) => self.unheard.note(cancel.original.0),
            Request::Replace(replace) => self.unheard.note(replace.original.0),
            Request::Status(status) => self.unheard.note(status.original.0),
            Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => {}
        }
    }

    /// A venue's day has ended: it forgets orders that have ended, and the fills of those that have not.
    pub fn venue_forgets(&mut self, venue: VenueId) {
        for (&name, truth) in &self.truths {
            let has_past = truth.leaves == 0 || truth.cumulative > 0;
            if has_past && VENUES[truth.symbol.0 as usize] == venue {
                self.unheard.forget(name);
            }
        }
    }

    /// Whether the new order that a client has sent is to be tried again.
    fn was_refused(&self, tag: u64) -> bool {
        let truth = self.tries.latest_of(tag).and_then(|name| self.truths.get(&name));
        truth.is_some_and(|truth| (truth.status, truth.sequence) == (OrdStatus::Rejected, 1))
    }

    /// A running OMS has taken it that a session may trade, or may not: orders from this id on are held to it.
    pub fn note_right(&mut self, session: u16, may_trade: bool, from: u64) {
        let open = self.barred.iter_mut().find(|(barred, _, upto)| *barred == session && *upto == u64::MAX);
        match (open, may_trade) {
            (Some(barred), true) => barred.2 = from,
            (None, false) => self.barred.push((session, from, u64::MAX)),
            _ => {}
        }
    }

    /// A running OMS has taken what the numbers of symbols mean.
    pub fn note_names(&mut self, instruments: &[Instrument]) {
        self.names = instruments.iter().map(|instrument| (instrument.symbol, instrument.name)).collect();
    }

    fn new_order(&mut self, new: &NewOrder) -> Checked {
        let (id, session) = (new.client_order_id.0, session_of(new.cause));
        // What was refused and waits to be tried again is checked as it leaves, perhaps with the right back by then.
        let is_again = self.tries.latest_of(new.cause).is_some();
        let barred =
            self.barred.iter().filter(|(barred, _, upto)| *barred == session && !(is_again && *upto < u64::MAX));
        if barred.into_iter().any(|&(_, from, upto)| from <= id && id < upto) {
            return broken("a right that is gone denies the next order", format!("{id:x} of session {session}"));
        }
        self.limits.arrived(new)?;
        if new.cause == 0 {
            return broken("nothing is invented", format!("no client has sent {new:?}"));
        }
        let truth = Truth {
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
        self.tries.arrived(new.cause, id);
        self.truths.insert(id, truth);
        Ok(())
    }

    /// A venue has made a report.
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
            self.fills.insert((self.tries.order(report.order_id.0), report.exec_id.0));
        }
        if matches!(exec_type, ExecType::TradeCancel | ExecType::TradeCorrect) {
            truth.was_amended = true;
            self.is_amending = true;
            // An OMS whose day ended first has forgotten the order, and keeps the position that it had.
            if self.forgotten.contains(&self.tries.order(report.order_id.0)) {
                self.blurred.insert((truth.account, truth.name));
            }
        }
    }

    /// A report is gone on its way.
    pub fn vanished(&mut self, report: &ExecutionReport) {
        let exec_type = ExecType::from_code(report.exec_type);
        let is_amendment = matches!(exec_type, Some(ExecType::TradeCancel | ExecType::TradeCorrect));
        if let Some(truth) = self.truths.get_mut(&report.order_id.0) {
            truth.amendment_lost |= is_amendment;
        }
    }

    /// The host has lost its power.
    pub fn power_lost(&mut self) {
        self.is_uncertain = true;
        self.unheard.lose_power();
        for (id, truth) in self.truths.iter_mut().filter(|(_, truth)| truth.was_amended) {
            truth.amendment_lost = true;
            if self.forgotten.contains(&self.tries.order(*id)) {
                self.blurred.insert((truth.account, truth.name));
            }
        }
    }

    /// A client reads a frame of its report log, which this start has made.
    pub fn told(&mut self, session: u16, place: (u64, u64), kind: u8, payload: &[u8], tally: &mut Tally) -> Checked {
        tally.count("reports heard");
        let place = (session, place.0, place.1);
        if self.read.get(&place).is_some_and(|before| before != payload) {
            return broken("what was told stays told", format!("frame {place:?} is another one now"));
        }
        if self.read.insert(place, payload.to_vec()).is_some() {
            return Ok(());
        }
        if kind == Kind::OrderDenied.code() {
            tally.count("requests denied");
            let denied = OrderDenied::read_from_bytes(payload);
            let denied = denied.or_else(|e| broken("reports are sound", e.to_string()))?;
            // Of a request that is no order, or was never taken, nothing else is told under this id.
            self.told.entry(denied.order_id.0).and_modify(|told| told.is_over = true);
            return Ok(());
        }
        let report = ExecutionReport::read(kind, payload);
        let report = report.or_else(|e| broken("reports are sound", e.to_string()))?;
        self.told_of(session, &report)
    }

    /// A client has asked for the cancel of an order by the OMS's id.
    pub fn asked_of_another(&mut self, session: u16, client: u64) {
        self.asked.insert((session, client));
    }

    fn told_of(&mut self, session: u16, report: &ExecutionReport) -> Checked {
        let id = report.order_id.0;
        // Who has asked for a cancel hears what becomes of that, beside the order's own session.
        let is_asker = self.told.get(&id).is_none_or(|told| told.session != session);
        if is_asker && self.asked.contains(&(session, report.client_order_id.0)) {
            let is_fill = report.exec_type == ExecType::Trade.code();
            return if is_fill { broken("a fill is told to its owner alone", format!("{report:?}")) } else { Ok(()) };
        }
        let told = self.told.entry(id).or_insert(Told { session, client: None, is_over: false });
        let is_ended = matches!(
            OrdStatus::from_code(report.status),
            Some(OrdStatus::Canceled | OrdStatus::Expired | OrdStatus::Rejected)
        );
        told.is_over = is_ended && report.cumulative_quantity.0 == 0;
        if told.session != session {
            return broken("an id is one order", format!("{id:x} is told to {} and to {session}", told.session));
        }
        if report.exec_type == ExecType::PendingNew.code() {
            let client = report.client_order_id.0;
            if told.client.is_some_and(|known| known != client) {
                return broken("an id is one order", format!("{id:x} was {:?} and is {client}", told.client));
            }
            told.client = Some(client);
        }
        let is_trade = report.exec_type == ExecType::Trade.code();
        if is_trade && !self.fills.contains(&(id, report.exec_id.0)) {
            return broken("nothing is invented", format!("no venue has made the fill {report:?}"));
        }
        Ok(())
    }

    /// The disk has failed, or an OMS is up that has synced what there is.
    pub fn is_disk_bad(&mut self, is_bad: bool) {
        self.is_disk_bad = is_bad;
    }

    /// After a start behind a loss of power, with the orders that the journal has: what is gone may be gone.
    pub fn note_lost(&mut self, core: &Core, journaled: &BTreeSet<u64>, tally: &mut Tally) -> Checked {
        let told = self.told.iter().map(|(id, told)| (*id, told.session));
        let known: BTreeMap<u64, u16> =
            told.chain(self.truths.iter().map(|(id, truth)| (*id, truth.session))).collect();
        for (id, session) in known {
            let order = self.tries.order(id);
            // Of one that was denied later the OMS knows no name any more.
            let is_known = || core.order(OrderId(order)).is_none_or(|view| view.status == OrdStatus::Rejected);
            if order != id && journaled.contains(&order) && !is_known() {
                let venue = VENUES[self.truths[&id].symbol.0 as usize];
                if core.order_said(venue, id).is_none() && is_for_disk(session) {
                    return broken("what the disk has stays", format!("try {id:x} is gone with the power"));
                }
                if core.order_said(venue, id).is_none() && self.lost.insert(id) {
                    tally.count("tries lost with the power");
                }
                continue;
            }
            if journaled.contains(&order) {
                // The end of its day may be gone.
                if core.order(OrderId(id)).is_some() {
                    self.forgotten.remove(&id);
                }
                continue;
            }
            let is_over = self.is_disk_bad && self.told.get(&id).is_some_and(|told| told.is_over);
            if is_for_disk(session) && !is_over && !self.lost.contains(&id) {
                return broken("what the disk has stays", format!("order {id:x} is gone with the power"));
            }
            if self.lost.insert(id) {
                tally.count(if is_over { "orders denied on a bad disk" } else { "orders lost with the power" });
            }
            self.forgotten.remove(&id);
        }
        Ok(())
    }

    /// After the end of a day: what is done is forgotten.
    pub fn note_forgotten(&mut self, core: &Core) -> Checked {
        self.has_day_ended = true;
        let known: BTreeSet<u64> = self.told.keys().chain(self.truths.keys()).copied().collect();
        for id in known {
            let order = self.tries.order(id);
            if core.order(OrderId(order)).is_some() || self.lost.contains(&id) {
                continue;
            }
            if self.truths.get(&id).is_some_and(|truth| truth.leaves > 0) {
                return broken("what is open is kept", format!("the day has ended for {id:x}, which its venue works"));
            }
            self.forgotten.insert(order);
        }
        Ok(())
    }

    /// Forgives what only time was needed for.
    pub fn rest(&mut self) {
        (self.is_amending, self.is_uncertain) = (false, false);
    }

    /// How an order really stands that an operator asks its venue for on the telephone; none if it never arrived. A try that
    /// the OMS does not know is foreign from here on.
    pub fn told_by_venue(&mut self, order: u64) -> Option<Truth> {
        self.unheard.resolve(order);
        self.given_up.extend(self.tries.names(order).filter(|name| self.lost.contains(name)));
        let known = self.tries.names(order).find(|name| !self.lost.contains(name))?;
        self.truths.get(&known).copied()
    }

    /// Orders that clients know of and that the OMS should.
    pub fn at_stake(&self) -> AtStake {
        let is_known = |id: &u64| !self.lost.contains(id) && !self.forgotten.contains(id);
        // Of an order that is over and never traded there is nothing to lose.
        let is_alive = |(id, told): &(&u64, &Told)| is_known(id) && !told.is_over;
        let known = || self.told.iter().filter(is_alive).map(|(_, told)| told.session);
        AtStake {
            os: known().filter(|&session| !is_for_disk(session)).count() as u64,
            disk: known().filter(|&session| is_for_disk(session)).count() as u64,
        }
    }

    pub fn had_strangers(&self) -> bool {
        !self.lost.is_empty() || !self.forgotten.is_empty()
    }
}
