//! Orders as OKX remembers them: the desk's own state, and what only a request had.

use std::collections::{BTreeMap, HashMap};

use tickpath_market::{OrderType, Price, Quantity, TimeInForce};
use tickpath_venue_sim_web::{DeskFill, DeskOrder, DeskState};

/// Time for which a canceled order without a fill is kept.
const UNFILLED_KEPT_NS: u64 = 2 * 3_600 * 1_000_000_000;

/// Terms of an order that the desk does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OrderNote {
    /// `ordType`
    pub(crate) order_type: String,
    /// `tdMode`
    pub(crate) trade_mode: String,
    pub(crate) tag: String,
    /// `ccy`
    pub(crate) margin_currency: String,
    /// `tgtCcy`: currency of the quantity of a market order.
    pub(crate) quantity_currency: String,
    /// Requested quantity, if it is in the quote currency.
    pub(crate) quote_quantity: Option<String>,
    /// `stpMode`
    pub(crate) self_trade_mode: String,
}

/// The last fill of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastFill {
    pub(crate) price: Price,
    pub(crate) quantity: Quantity,
    pub(crate) trade_id: u64,
    pub(crate) at_ns: u64,
}

/// An order, as it stood after its last event.
#[derive(Debug)]
pub(crate) struct OrderRecord {
    pub(crate) order: DeskOrder,
    pub(crate) note: OrderNote,
    /// Sum of fees, positive if paid, in units of 10⁻⁸ of their currency.
    pub(crate) fee: i64,
    /// Currency of the fees; empty before the first fill.
    pub(crate) fee_currency: String,
    pub(crate) last_fill: Option<LastFill>,
    /// Client's id of the last request to amend.
    pub(crate) request_id: String,
    /// OKX's code of the reason why the order is canceled, if the desk gives none.
    pub(crate) cancel_source: &'static str,
}

/// Orders by their ids.
#[derive(Debug, Default)]
pub(crate) struct OrderRecords {
    records: BTreeMap<u64, OrderRecord>,
    /// Last order of each account and client id.
    by_client_id: HashMap<(usize, String), u64>,
    /// Notes of orders without an event so far.
    notes: HashMap<u64, OrderNote>,
}

impl OrderNote {
    /// Returns the note of an order that no request has placed.
    fn of(order: &DeskOrder, is_derivative: bool) -> Self {
        let order_type = match (order.order_type, order.time_in_force) {
            (OrderType::Market, _) => "market",
            (OrderType::Limit, _) if order.post_only => "post_only",
            (OrderType::Limit, TimeInForce::FillOrKill) => "fok",
            (OrderType::Limit, TimeInForce::ImmediateOrCancel) => "ioc",
            (OrderType::Limit, TimeInForce::Day | TimeInForce::GoodTillCancel | TimeInForce::GoodTillDate) => "limit",
        };
        let trade_mode = if is_derivative { "cross" } else { "cash" };
        Self { order_type: order_type.to_owned(), trade_mode: trade_mode.to_owned(), ..Self::default() }
    }
}

impl OrderRecord {
    /// Returns whether the order can be found no more.
    pub(crate) fn is_forgotten(&self, now_ns: u64) -> bool {
        self.order.state == DeskState::Canceled
            && self.order.filled == Quantity::ZERO
            && now_ns.saturating_sub(self.order.updated_ns) > UNFILLED_KEPT_NS
    }
}

impl OrderRecords {
    /// Notes the terms of an order that the desk has accepted.
    pub(crate) fn add_note(&mut self, id: u64, note: OrderNote) {
        self.notes.insert(id, note);
    }

    /// Applies an event of an order, and returns whether it is an amendment.
    pub(crate) fn apply(&mut self, order: DeskOrder, fill: Option<&DeskFill>, is_derivative: bool) -> bool {
        let (id, amends) = (order.id, order.amends);
        let Some(record) = self.records.get_mut(&id) else {
            let note = self.notes.remove(&id).unwrap_or_else(|| OrderNote::of(&order, is_derivative));
            if !order.client_id.is_empty() {
                self.by_client_id.insert((order.account, order.client_id.clone()), id);
            }
            let mut record = OrderRecord {
                order,
                note,
                fee: 0,
                fee_currency: String::new(),
                last_fill: None,
                request_id: String::new(),
                cancel_source: CANCELED_BY_USER,
            };
            record.add_fill(fill);
            self.records.insert(id, record);
            return false;
        };
        let is_amended = amends > record.order.amends;
        record.order = order;
        record.add_fill(fill);
        is_amended
    }

    /// Returns an order.
    pub(crate) fn get(&self, id: u64) -> Option<&OrderRecord> {
        self.records.get(&id)
    }

    /// Returns an order for changes of what only OKX knows.
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut OrderRecord> {
        self.records.get_mut(&id)
    }

    /// Returns the id of the last order of an account with this client id.
    pub(crate) fn find_client_id(&self, account: usize, client_id: &str) -> Option<u64> {
        self.by_client_id.get(&(account, client_id.to_owned())).copied()
    }

    /// Returns the orders of an account that can be found, the newest first.
    pub(crate) fn of_account(&self, account: usize, now_ns: u64) -> impl Iterator<Item = &OrderRecord> {
        let is_there = move |record: &&OrderRecord| record.order.account == account && !record.is_forgotten(now_ns);
        self.records.values().rev().filter(is_there)
    }
}

impl OrderRecord {
    fn add_fill(&mut self, fill: Option<&DeskFill>) {
        let Some(fill) = fill else { return };
        self.fee += fill.fee;
        self.fee_currency.clone_from(&fill.fee_currency);
        let DeskFill { price, quantity, trade_id, at_ns, .. } = *fill;
        self.last_fill = Some(LastFill { price, quantity, trade_id, at_ns });
    }
}

/// OKX's code of a cancellation by the user.
const CANCELED_BY_USER: &str = "1";
