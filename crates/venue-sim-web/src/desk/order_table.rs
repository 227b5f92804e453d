//! The orders of a desk by the exchange's id, with the open ones of each account and the client's ids.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::order::{DeskOrder, OrderName};

/// First id. Like those of real exchanges the ids do not fit 32 bits.
const FIRST_ID: u64 = 10_000_000_001;

/// All orders of a desk.
pub(super) struct OrderTable {
    records: BTreeMap<u64, OrderRecord>,
    /// Per account.
    accounts: Vec<AccountOrders>,
    next_id: u64,
}

/// An order with its sums.
pub(super) struct OrderRecord {
    pub order: DeskOrder,
    /// Sum of price times quantity of the fills, in units of 10⁻¹⁶.
    pub notional: i128,
    /// Amount that is reserved for the open quantity, in units of 10⁻⁸.
    pub reserved: i128,
}

#[derive(Default)]
struct AccountOrders {
    open: BTreeSet<u64>,
    /// Last order of each client id.
    by_client_id: HashMap<String, u64>,
}

impl OrderTable {
    pub fn new(accounts: usize) -> Self {
        let accounts = (0..accounts).map(|_| AccountOrders::default()).collect();
        Self { records: BTreeMap::new(), accounts, next_id: FIRST_ID }
    }

    /// Makes the next id greater than this number.
    pub fn number_from(&mut self, id: u64) {
        self.next_id = self.next_id.max(id + 1);
    }

    /// Adds an open order under the next id, and returns this id.
    pub fn add(&mut self, mut order: DeskOrder) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        order.id = id;
        if let Some(account) = self.accounts.get_mut(order.account) {
            account.open.insert(id);
            if !order.client_id.is_empty() {
                account.by_client_id.insert(order.client_id.clone(), id);
            }
        }
        self.records.insert(id, OrderRecord { order, notional: 0, reserved: 0 });
        id
    }

    /// Removes an order that the matching engine has refused.
    pub fn remove(&mut self, id: u64) {
        if let Some(record) = self.records.remove(&id)
            && let Some(account) = self.accounts.get_mut(record.order.account)
        {
            account.open.remove(&id);
            account.by_client_id.remove(&record.order.client_id);
        }
    }

    /// Records that an order has ended.
    pub fn end(&mut self, id: u64) {
        if let Some(record) = self.records.get(&id)
            && let Some(account) = self.accounts.get_mut(record.order.account)
        {
            account.open.remove(&id);
        }
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut OrderRecord> {
        self.records.get_mut(&id)
    }

    /// Returns an order of an account.
    pub fn find(&self, account: usize, name: OrderName<'_>) -> Option<&OrderRecord> {
        let id = match name {
            OrderName::Exchange(id) => id,
            OrderName::Client(client_id) => *self.accounts.get(account)?.by_client_id.get(client_id)?,
        };
        self.records.get(&id).filter(|record| record.order.account == account)
    }

    /// Returns all orders, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &DeskOrder> {
        self.records.values().map(|record| &record.order)
    }

    /// Returns the open orders of an account, the oldest first.
    pub fn open(&self, account: usize) -> impl DoubleEndedIterator<Item = &DeskOrder> {
        let ids = self.accounts.get(account).into_iter().flat_map(|account| &account.open);
        ids.filter_map(|id| self.records.get(id)).map(|record| &record.order)
    }
}
