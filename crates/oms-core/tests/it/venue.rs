//! A small honest venue: it reports its events correctly, and ignores the loss of its reports.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{ExecId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, Price, Quantity, Request};

use crate::dice::Dice;
use crate::scene::VENUE;

/// An order in the venue's book.
#[derive(Debug, Clone)]
pub struct VenueSideOrder {
    pub new: NewOrder,
    pub price: Price,
    pub quantity: i64,
    pub filled: i64,
    pub status: OrdStatus,
    events: u64,
    fills: Vec<(u64, i64)>,
}

pub struct HonestVenue {
    pub orders: BTreeMap<u64, VenueSideOrder>,
    pub numbered: bool,
    requests: BTreeSet<u64>,
    executions: u64,
}

impl VenueSideOrder {
    pub fn open(&self) -> i64 {
        if self.is_working() { self.quantity - self.filled } else { 0 }
    }

    fn is_working(&self) -> bool {
        matches!(self.status, OrdStatus::New | OrdStatus::PartiallyFilled)
    }

    /// Notes an event and sets the resulting status.
    fn update_status(&mut self, ended: Option<OrdStatus>) {
        self.events += 1;
        self.status = match ended {
            Some(status) => status,
            None if !self.is_working() => self.status,
            None if self.filled == self.quantity => OrdStatus::Filled,
            None if self.filled > 0 => OrdStatus::PartiallyFilled,
            None => OrdStatus::New,
        };
    }
}

impl HonestVenue {
    pub fn new(numbered: bool) -> Self {
        Self { orders: BTreeMap::new(), numbered, requests: BTreeSet::new(), executions: 0 }
    }

    /// Takes a request and answers it.
    pub fn take(&mut self, request: &Request, dice: &mut Dice) -> ExecutionReport {
        let id = request.client_order_id().0;
        let is_new = matches!(request, Request::Status(_)) || self.requests.insert(id);
        match request {
            Request::New(new) if !is_new => {
                ExecutionReport { side: new.side, ..refused(ExecType::Rejected, id, request) }
            }
            Request::New(new) => self.enter(id, new, dice.once_in(12)),
            Request::Cancel(cancel) => match self.working(cancel.original.0).filter(|_| is_new) {
                Some(order) => {
                    order.update_status(Some(OrdStatus::Canceled));
                    self.report(cancel.original.0, ExecType::Canceled, id)
                }
                None => refused(ExecType::CancelRejected, cancel.original.0, request),
            },
            Request::Replace(replace) => match self.working(replace.original.0).filter(|_| is_new) {
                Some(order) if replace.quantity.0 > order.filled => {
                    (order.price, order.quantity) = (replace.price, replace.quantity.0);
                    order.update_status(None);
                    self.report(replace.original.0, ExecType::Replaced, id)
                }
                Some(order) => {
                    order.update_status(None);
                    self.report(replace.original.0, ExecType::CancelRejected, id)
                }
                None => refused(ExecType::CancelRejected, replace.original.0, request),
            },
            Request::Status(status) => match self.orders.contains_key(&status.original.0) {
                true => self.report(status.original.0, ExecType::OrderStatus, id),
                false => refused(ExecType::OrderStatus, status.original.0, request),
            },
            Request::MassCancel(_) => unreachable!("the core sends a cancel for each order"),
            Request::Conditional(_) | Request::ReplaceConditional(_) => unreachable!("what is armed has not left"),
            Request::Extended(_) | Request::ByTextId(_) => unreachable!("a text id does not leave"),
        }
    }

    /// Draws a market event on an order: a fill, a bust or an expiry.
    pub fn trade(&mut self, dice: &mut Dice) -> Option<ExecutionReport> {
        let ids: Vec<u64> = self.orders.keys().copied().collect();
        let id = dice.pick(&ids);
        let busts = self.numbered && dice.once_in(6);
        let order = self.orders.get_mut(&id).unwrap();
        if busts && !order.fills.is_empty() {
            return Some(self.bust(id, dice));
        }
        if !order.is_working() {
            return None;
        }
        if dice.once_in(20) {
            order.update_status(Some(OrdStatus::Expired));
            return Some(self.report(id, ExecType::Expired, 0));
        }
        let last = 1 + dice.below(order.open() as u64) as i64;
        self.executions += 1;
        order.fills.push((self.executions, last));
        order.filled += last;
        order.update_status(None);
        let (exec_id, last_quantity) = (ExecId(self.executions), Quantity(last));
        Some(ExecutionReport { exec_id, last_quantity, last_price: Price(100), ..self.report(id, ExecType::Trade, 0) })
    }

    /// Busts a fill. The busted quantity does not return to the book.
    fn bust(&mut self, id: u64, dice: &mut Dice) -> ExecutionReport {
        let order = self.orders.get_mut(&id).unwrap();
        let (exec, quantity) = order.fills.swap_remove(dice.below(order.fills.len() as u64) as usize);
        let open = order.open();
        order.filled -= quantity;
        order.quantity =
            if order.is_working() || order.status == OrdStatus::Filled { order.filled + open } else { order.quantity };
        order.update_status(None);
        let (exec_id, last_quantity) = (ExecId(exec), Quantity(quantity));
        ExecutionReport { exec_id, last_quantity, last_price: Price(100), ..self.report(id, ExecType::TradeCancel, 0) }
    }

    fn enter(&mut self, id: u64, new: &NewOrder, is_refused: bool) -> ExecutionReport {
        let mut order = VenueSideOrder {
            new: *new,
            price: new.price,
            quantity: new.quantity.0,
            filled: 0,
            status: OrdStatus::New,
            events: 0,
            fills: Vec::new(),
        };
        order.update_status(is_refused.then_some(OrdStatus::Rejected));
        self.orders.insert(id, order);
        self.report(id, if is_refused { ExecType::Rejected } else { ExecType::New }, id)
    }

    fn working(&mut self, id: u64) -> Option<&mut VenueSideOrder> {
        self.orders.get_mut(&id).filter(|order| order.is_working())
    }

    fn report(&self, id: u64, what: ExecType, answers: u64) -> ExecutionReport {
        let order = &self.orders[&id];
        ExecutionReport {
            order_id: OrderId(id),
            client_order_id: tickpath_market::ClientOrderId(answers),
            venue_sequence: if self.numbered { order.events } else { 0 },
            cumulative_quantity: Quantity(order.filled),
            leaves_quantity: Quantity(order.open()),
            price: order.price,
            symbol: order.new.symbol,
            account: order.new.account,
            venue: VENUE,
            exec_type: what.code(),
            status: order.status.code(),
            side: order.new.side,
            ..Default::default()
        }
    }
}

/// Returns the rejection of a request, which is no event of its order.
fn refused(what: ExecType, order: u64, request: &Request) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(order),
        client_order_id: request.client_order_id(),
        symbol: request.symbol(),
        account: request.account(),
        venue: VENUE,
        exec_type: what.code(),
        status: OrdStatus::Rejected.code(),
        ..Default::default()
    }
}
