//! Orders as the exchange shows them: what the desk knows of an order, and what a client has named or asked for.
//!
//! ```text
//!   New ──> PartiallyFilled ──> Filled
//!    └────────────┴──> Canceled (by request) | Expired (by the order's type) | ExpiredInMatch (self-trade prevention)
//! ```

use std::collections::{BTreeMap, HashMap};

use tickpath_market::{Notional, OrderType, Price, Quantity, Side, TimeInForce};
use tickpath_venue_sim_web::{DeskFill, DeskOrder, DeskState};

use crate::codes::{ApiError, Code};

/// All orders since the start, ended ones too.
#[derive(Debug, Default)]
pub(crate) struct OrderLedger {
    records: BTreeMap<u64, SpotOrder>,
    /// Orders whose first event has not come.
    expected: HashMap<u64, ExpectedOrder>,
    /// Newest order of an account with each client id.
    names: HashMap<(usize, String), u64>,
    /// Fills by account, the oldest first.
    fills: BTreeMap<usize, Vec<DeskFill>>,
}

/// An order.
#[derive(Debug, Clone)]
pub(crate) struct SpotOrder {
    pub(crate) id: u64,
    pub(crate) account: usize,
    /// Index of the instrument.
    pub(crate) instrument: usize,
    pub(crate) side: Side,
    pub(crate) terms: RequestedTerms,
    pub(crate) quantity: Quantity,
    pub(crate) filled: Quantity,
    /// Value of the fills, in units of 10⁻¹⁶.
    pub(crate) value: i128,
    pub(crate) status: OrderStatus,
    pub(crate) created_ns: u64,
    pub(crate) updated_ns: u64,
    /// Fills in the order of their time.
    pub(crate) fills: Vec<DeskFill>,
    /// Id of the latest event.
    pub(crate) execution_id: u64,
    pub(crate) prevented: Option<PreventedMatch>,
    /// Way in which the order is about to end, if a request causes it.
    ending: Option<Ending>,
    /// Client id that the next amendment gives the order.
    next_name: Option<String>,
    amends: u32,
}

/// Terms of an order as its client gave them; those of the desk differ where self-trade prevention restricts the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedTerms {
    pub(crate) client_id: String,
    pub(crate) kind: OrderKind,
    /// Name of the time in force.
    pub(crate) time_in_force: &'static str,
    pub(crate) price: Price,
    /// Amount of quote currency of a market order; zero if its quantity is given.
    pub(crate) quote_quantity: Quantity,
    /// Name of the self-trade prevention mode.
    pub(crate) self_trade: &'static str,
    pub(crate) strategy_id: Option<u64>,
    pub(crate) strategy_type: Option<u64>,
}

/// Type of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderKind {
    Limit,
    LimitMaker,
    Market,
}

/// Status of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderStatus {
    New,
    PartiallyFilled,
    Filled,
    Canceled,
    Expired,
    ExpiredInMatch,
}

/// The match of two orders of an account that self-trade prevention kept from trading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreventedMatch {
    pub(crate) id: u64,
    /// The other order; none for the order that rested.
    pub(crate) counter_order: Option<u64>,
}

/// An event of an order.
#[derive(Debug, Clone)]
pub(crate) enum Execution {
    New,
    Trade(DeskFill),
    /// Canceled under this new client id.
    Canceled(String),
    Expired,
    Prevented,
    /// Amended; the client id until then.
    Replaced(String),
}

/// An order before its first event.
#[derive(Debug)]
struct ExpectedOrder {
    terms: RequestedTerms,
    /// The match for which self-trade prevention ends the rest of the order.
    prevented: Option<PreventedMatch>,
}

/// Way in which an order ends.
#[derive(Debug, Clone)]
enum Ending {
    Canceled(String),
    Prevented(PreventedMatch),
}

impl OrderLedger {
    /// Notes the terms of an order before its first event, and the match for which self-trade prevention ends its rest.
    pub(crate) fn expect(&mut self, id: u64, terms: RequestedTerms, prevented: Option<PreventedMatch>) {
        self.expected.insert(id, ExpectedOrder { terms, prevented });
    }

    /// Returns an order.
    pub(crate) fn record(&self, id: u64) -> Option<&SpotOrder> {
        self.records.get(&id)
    }

    /// Returns the orders of an account, the oldest first.
    pub(crate) fn records(&self, account: usize) -> impl Iterator<Item = &SpotOrder> {
        self.records.values().filter(move |record| record.account == account)
    }

    /// Returns the open orders of an account, the oldest first.
    pub(crate) fn open(&self, account: usize) -> impl Iterator<Item = &SpotOrder> {
        self.records(account).filter(|record| record.is_open())
    }

    /// Returns the fills of an account, the oldest first.
    pub(crate) fn fills(&self, account: usize) -> &[DeskFill] {
        self.fills.get(&account).map_or(&[], Vec::as_slice)
    }

    /// Returns whether an open order of an account has this client id.
    pub(crate) fn is_name_in_use(&self, account: usize, name: &str) -> bool {
        let newest = self.names.get(&(account, name.to_owned()));
        newest.and_then(|id| self.records.get(id)).is_some_and(SpotOrder::is_open)
    }

    /// Returns an account's order of an instrument by its id, by its client id, or by both, which then must agree.
    pub(crate) fn find(
        &self,
        account: usize,
        instrument: usize,
        id: Option<u64>,
        name: Option<&str>,
    ) -> Option<&SpotOrder> {
        let id = id.or_else(|| self.names.get(&(account, name?.to_owned())).copied())?;
        let record = self.records.get(&id)?;
        let is_it = record.account == account && record.instrument == instrument;
        (is_it && name.is_none_or(|name| record.terms.client_id == name)).then_some(record)
    }

    /// Notes that a request cancels an order, under this new client id.
    pub(crate) fn cancels(&mut self, id: u64, name: String) {
        self.ends(id, Ending::Canceled(name));
    }

    /// Notes that self-trade prevention ends an order.
    pub(crate) fn prevents(&mut self, id: u64, prevented: PreventedMatch) {
        self.ends(id, Ending::Prevented(prevented));
    }

    /// Notes that a request amends an order, and names it anew.
    pub(crate) fn amends(&mut self, id: u64, name: String) {
        if let Some(record) = self.records.get_mut(&id) {
            record.next_name = Some(name);
        }
    }

    /// Forgets a note, because its request failed.
    pub(crate) fn keeps(&mut self, id: u64) {
        if let Some(record) = self.records.get_mut(&id) {
            (record.ending, record.next_name) = (None, None);
        }
    }

    /// Applies a snapshot of the desk. Returns each event that it means, with the order as it stands after it.
    pub(crate) fn apply(
        &mut self,
        order: &DeskOrder,
        fill: Option<DeskFill>,
        next_execution: &mut u64,
    ) -> Vec<(Execution, SpotOrder)> {
        let mut events = Vec::new();
        let is_new = !self.records.contains_key(&order.id);
        let expected = self.expected.remove(&order.id);
        let record = self.records.entry(order.id).or_insert_with(|| SpotOrder::new(order, expected));
        if is_new {
            self.names.insert((record.account, record.terms.client_id.clone()), record.id);
            events.push(record.event(Execution::New, order.created_ns, next_execution));
        }
        if order.amends > record.amends {
            let former = record.amend(order);
            self.names.remove(&(record.account, former.clone()));
            self.names.insert((record.account, record.terms.client_id.clone()), record.id);
            events.push(record.event(Execution::Replaced(former), order.updated_ns, next_execution));
        }
        if let Some(fill) = fill {
            record.fill(&fill);
            self.fills.entry(record.account).or_default().push(fill.clone());
            events.push(record.event(Execution::Trade(fill), order.updated_ns, next_execution));
        }
        if order.state == DeskState::Canceled && record.is_open() {
            let execution = record.end();
            events.push(record.event(execution, order.updated_ns, next_execution));
        }
        events
    }

    fn ends(&mut self, id: u64, ending: Ending) {
        if let Some(record) = self.records.get_mut(&id) {
            record.ending = Some(ending);
        }
    }
}

impl SpotOrder {
    fn new(order: &DeskOrder, expected: Option<ExpectedOrder>) -> Self {
        let (terms, prevented) = match expected {
            Some(ExpectedOrder { terms, prevented }) => (terms, prevented),
            None => (RequestedTerms::of_desk(order), None),
        };
        Self {
            id: order.id,
            account: order.account,
            instrument: order.instrument,
            side: order.side,
            terms,
            quantity: order.quantity,
            filled: Quantity::ZERO,
            value: 0,
            status: OrderStatus::New,
            created_ns: order.created_ns,
            updated_ns: order.created_ns,
            fills: Vec::new(),
            execution_id: 0,
            prevented: None,
            ending: prevented.map(Ending::Prevented),
            next_name: None,
            amends: 0,
        }
    }

    /// Returns whether the order still works.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status, OrderStatus::New | OrderStatus::PartiallyFilled)
    }

    /// Returns whether the order stays in the book with the quantity that does not trade at once.
    pub(crate) fn rests(&self) -> bool {
        self.terms.kind != OrderKind::Market && self.terms.time_in_force == "GTC"
    }

    /// Returns the quantity that self-trade prevention took from the order.
    pub(crate) fn prevented_quantity(&self) -> Quantity {
        match self.prevented {
            Some(_) => Quantity(self.quantity.0 - self.filled.0),
            None => Quantity::ZERO,
        }
    }

    /// Returns the reason of the order's expiry, as the exchange names it.
    pub(crate) fn expiry_reason(&self) -> Option<&'static str> {
        match (self.status, self.terms.kind, self.terms.time_in_force) {
            (OrderStatus::Expired, OrderKind::Market, _) => Some("INSUFFICIENT_LIQUIDITY"),
            (OrderStatus::Expired, _, "FOK") => Some("UNFILLED_FOK_ORDER_EXPIRED"),
            (OrderStatus::Expired, _, _) => Some("UNFILLED_IOC_QUANTITY_EXPIRED"),
            _ => None,
        }
    }

    fn event(&mut self, execution: Execution, at_ns: u64, next_execution: &mut u64) -> (Execution, Self) {
        *next_execution += 1;
        (self.execution_id, self.updated_ns) = (*next_execution, at_ns);
        (execution, self.clone())
    }

    /// Applies an amendment. Returns the client id until then.
    fn amend(&mut self, order: &DeskOrder) -> String {
        (self.amends, self.quantity) = (order.amends, order.quantity);
        let former = self.terms.client_id.clone();
        if let Some(name) = self.next_name.take() {
            self.terms.client_id = name;
        }
        former
    }

    fn fill(&mut self, fill: &DeskFill) {
        self.filled = Quantity(self.filled.0 + fill.quantity.0);
        self.value += Notional::of(fill.price, fill.quantity).0;
        self.status = if self.filled >= self.quantity { OrderStatus::Filled } else { OrderStatus::PartiallyFilled };
        self.fills.push(fill.clone());
    }

    /// Ends the order with its rest unfilled.
    fn end(&mut self) -> Execution {
        let rests = self.rests();
        let (status, execution) = match self.ending.take() {
            Some(Ending::Canceled(name)) => (OrderStatus::Canceled, Execution::Canceled(name)),
            Some(Ending::Prevented(prevented)) => {
                self.prevented = Some(prevented);
                (OrderStatus::ExpiredInMatch, Execution::Prevented)
            }
            None if !rests => (OrderStatus::Expired, Execution::Expired),
            None => (OrderStatus::Canceled, Execution::Canceled(self.terms.client_id.clone())),
        };
        self.status = status;
        execution
    }
}

impl RequestedTerms {
    /// Returns the terms of an order that did not come through the exchange's protocol.
    fn of_desk(order: &DeskOrder) -> Self {
        let kind = match order.order_type {
            OrderType::Market => OrderKind::Market,
            OrderType::Limit if order.post_only => OrderKind::LimitMaker,
            OrderType::Limit => OrderKind::Limit,
        };
        let time_in_force = match order.time_in_force {
            TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::GoodTillDate => "GTC",
            TimeInForce::ImmediateOrCancel => "IOC",
            TimeInForce::FillOrKill => "FOK",
        };
        Self {
            client_id: order.client_id.clone(),
            kind,
            time_in_force,
            price: order.price,
            quote_quantity: Quantity::ZERO,
            self_trade: "NONE",
            strategy_id: None,
            strategy_type: None,
        }
    }
}

impl OrderKind {
    /// Returns the exchange's name of the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Limit => "LIMIT",
            Self::LimitMaker => "LIMIT_MAKER",
            Self::Market => "MARKET",
        }
    }
}

impl OrderStatus {
    /// Returns the exchange's name of the status.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::PartiallyFilled => "PARTIALLY_FILLED",
            Self::Filled => "FILLED",
            Self::Canceled => "CANCELED",
            Self::Expired => "EXPIRED",
            Self::ExpiredInMatch => "EXPIRED_IN_MATCH",
        }
    }
}

/// Returns an open order, or the refusal of a request that names it.
pub(crate) fn open_or(record: Option<&SpotOrder>, refusal: Code) -> Result<&SpotOrder, ApiError> {
    record.filter(|record| record.is_open()).ok_or_else(|| refusal.error())
}
