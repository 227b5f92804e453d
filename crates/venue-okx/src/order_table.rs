//! Orders of this OMS that the line has sent or OKX has reported: enough to report each event once, in whatever order
//! and however often OKX sends it. An order of an earlier process enters the table with its first row.

use std::collections::{HashMap, VecDeque};

use tickpath_market::{AccountId, ExecId, NewOrder, OrdStatus, Price, Quantity};

use crate::order_update::{OrderUpdate, UpdateState};

/// Ended orders that are kept. A row about an order that is not kept any more is reported again, and the OMS drops what
/// it knows.
const MAX_ENDED: usize = 1 << 16;

/// Orders, by their ids at the OMS.
#[derive(Debug, Default)]
pub(crate) struct OrderTable {
    orders: HashMap<u64, OrderEntry>,
    /// Ended orders, the oldest first.
    ended: VecDeque<u64>,
}

/// An order.
#[derive(Debug, Clone)]
pub(crate) struct OrderEntry {
    pub account: AccountId,
    /// Index of the instrument.
    pub instrument: usize,
    /// Code of the side.
    pub side: u8,
    pub price: Price,
    /// Total quantity, as ordered; that of OKX for an order of an earlier process.
    pub total: Quantity,
    /// Time at which this process sent the order, in ticks.
    pub placed: Option<u64>,
    /// Requests of this connection that OKX has not answered.
    pub in_flight: u32,
    /// OKX's own id; zero if unknown.
    pub venue_id: u64,
    /// OKX's type of the instrument, as its requests name it; empty if unknown.
    pub kind: &'static str,
    /// Largest quantity that OKX has reported as filled, and the sum of the reported fills.
    pub cumulative: Quantity,
    pub filled: Quantity,
    /// Status that ended the order, and its reason.
    pub end: Option<(OrdStatus, u16)>,
    is_end_reported: bool,
    is_accepted: bool,
    executions: Vec<ExecId>,
    amendments: Vec<u64>,
    /// Cancels and amendments of this connection without a report, the oldest first.
    changes: Vec<ChangeRequest>,
}

/// A cancel or an amendment that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChangeRequest {
    id: u64,
    is_cancel: bool,
    /// OKX's gateway has accepted the request: its effect follows, unless the order is filled first.
    is_accepted: bool,
}

impl OrderTable {
    /// Returns an order.
    pub fn get(&self, order: u64) -> Option<&OrderEntry> {
        self.orders.get(&order)
    }

    /// Returns an order, to change it.
    pub fn get_mut(&mut self, order: u64) -> Option<&mut OrderEntry> {
        self.orders.get_mut(&order)
    }

    /// Adds an order that is sent now.
    pub fn add_placed(&mut self, new: &NewOrder, instrument: usize, now: u64) {
        let entry = OrderEntry {
            price: new.price,
            total: new.quantity,
            placed: Some(now),
            in_flight: 1,
            ..OrderEntry::new(new.account, instrument, new.side)
        };
        self.orders.insert(new.client_order_id.0, entry);
    }

    /// Returns the order of a row, and adds it if it is new here.
    pub fn enter(&mut self, update: &OrderUpdate) -> &mut OrderEntry {
        let entry = self.enter_bare(update.order, update.account, update.instrument, update.side.code());
        if entry.total == Quantity::ZERO {
            (entry.side, entry.price, entry.total) = (update.side.code(), update.price, update.total);
        }
        if update.venue_id != 0 {
            entry.venue_id = update.venue_id;
        }
        if !update.kind.is_empty() {
            entry.kind = update.kind;
        }
        entry.cumulative = entry.cumulative.max(update.cumulative);
        entry
    }

    /// Returns an order that a fill or a request names, and adds it without its terms if it is new here.
    pub fn enter_bare(&mut self, order: u64, account: AccountId, instrument: usize, side: u8) -> &mut OrderEntry {
        self.orders.entry(order).or_insert_with(|| OrderEntry::new(account, instrument, side))
    }

    /// Ends an order, and returns whether the end is to be reported: once, although a status may have shown it before.
    pub fn report_end(&mut self, order: u64, status: OrdStatus, reason: u16) -> bool {
        self.keep_end(order, status, reason);
        let Some(entry) = self.orders.get_mut(&order).filter(|entry| !entry.is_end_reported) else { return false };
        entry.is_end_reported = true;
        if status != OrdStatus::Filled {
            // The end answers all requests before it.
            entry.changes.clear();
        }
        true
    }

    /// Keeps the end of an order that a status shows. The row about the end is still to be reported.
    pub fn keep_end(&mut self, order: u64, status: OrdStatus, reason: u16) {
        let Some(entry) = self.orders.get_mut(&order).filter(|entry| entry.end.is_none()) else { return };
        entry.end = Some((status, reason));
        self.ended.push_back(order);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.orders.remove(&oldest);
        }
    }

    /// Forgets an order that OKX does not have.
    pub fn remove(&mut self, order: u64) {
        if self.orders.remove(&order).is_some_and(|entry| entry.end.is_some()) {
            self.ended.retain(|&ended| ended != order);
        }
    }

    /// Returns the ended orders that are kept, the oldest first.
    pub fn ended(&self) -> impl Iterator<Item = (u64, &OrderEntry)> {
        self.ended.iter().filter_map(|order| Some((*order, self.orders.get(order)?)))
    }

    /// Returns the orders of which OKX has reported more than the fills that it has sent.
    pub fn lacking_fills(&self) -> impl Iterator<Item = (u64, &OrderEntry)> {
        self.orders.iter().filter(|(_, entry)| entry.lacks_fills()).map(|(order, entry)| (*order, entry))
    }

    /// Forgets the requests of the last connection.
    pub fn forget_in_flight(&mut self) {
        for entry in self.orders.values_mut() {
            entry.in_flight = 0;
            entry.changes.clear();
        }
    }
}

impl OrderEntry {
    fn new(account: AccountId, instrument: usize, side: u8) -> Self {
        Self {
            account,
            instrument,
            side,
            price: Price::ZERO,
            total: Quantity::ZERO,
            placed: None,
            in_flight: 0,
            venue_id: 0,
            kind: "",
            cumulative: Quantity::ZERO,
            filled: Quantity::ZERO,
            end: None,
            is_end_reported: false,
            is_accepted: false,
            executions: Vec::new(),
            amendments: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Adds a cancel or an amendment that is sent now.
    pub fn add_change(&mut self, id: u64, is_cancel: bool) {
        self.changes.push(ChangeRequest { id, is_cancel, is_accepted: false });
    }

    /// Notes that OKX's gateway has accepted a cancel or an amendment.
    pub fn accept_change(&mut self, id: u64) {
        if let Some(change) = self.changes.iter_mut().find(|change| change.id == id) {
            change.is_accepted = true;
        }
    }

    /// Removes a cancel or an amendment that is reported now; returns whether it had no report yet.
    pub fn settle_change(&mut self, id: u64) -> bool {
        let index = self.changes.iter().position(|change| change.id == id);
        index.map(|index| self.changes.remove(index)).is_some()
    }

    /// Removes an accepted cancel or amendment that the last fill of the order has overtaken, and returns its id.
    pub fn take_overtaken(&mut self) -> Option<u64> {
        let is_filled = matches!(self.end, Some((OrdStatus::Filled, _)));
        let index = self.changes.iter().position(|change| is_filled && change.is_accepted)?;
        let id = self.changes.remove(index).id;
        // A row about the amendment may still arrive.
        self.amendments.push(id);
        Some(id)
    }

    /// Returns the oldest cancel without a report; zero for none.
    pub fn oldest_cancel(&self) -> u64 {
        self.changes.iter().find(|change| change.is_cancel).map_or(0, |change| change.id)
    }

    /// Returns whether a row is the first that shows the order as accepted. A row about an amendment does not.
    pub fn accepts(&mut self, update: &OrderUpdate) -> bool {
        let is_by_user = update.amendment.is_some_and(|amendment| amendment.is_of_user);
        let is_first = update.state == UpdateState::Live && !is_by_user && !self.is_accepted;
        self.is_accepted |= is_first;
        is_first
    }

    /// Returns whether an amendment is new, and keeps it.
    pub fn adds_amendment(&mut self, key: u64) -> bool {
        let is_new = !self.amendments.contains(&key);
        if is_new {
            self.amendments.push(key);
        }
        is_new
    }

    /// Returns whether a fill is new, and keeps it.
    pub fn adds_fill(&mut self, execution: ExecId, quantity: Quantity) -> bool {
        // A repeated fill is one of the last.
        let is_new = !self.executions.iter().rev().any(|known| *known == execution);
        if is_new {
            self.executions.push(execution);
            self.filled = Quantity(self.filled.0.saturating_add(quantity.0));
        }
        is_new
    }

    /// Returns whether OKX has reported more than the fills that it has sent.
    pub fn lacks_fills(&self) -> bool {
        self.filled < self.cumulative
    }
}
