//! Orders in memory with their pending requests, their fills and the used client ids, and the indexes that find them.
//!
//! ```text
//!   order id ─────────────────────> by_id ─────────> Order ──cancel, replace──> PendingRequest
//!   session, client id ───────────> by_client ─────> Order, PendingRequest or UsedClientId
//!   order slot, execution id ─────> by_execution ──> Fill
//!   session, account, symbol ─────> open ──────────> the open orders
//! ```
//!
//! A slot is the number of an item in its list, in the order of arrival. Ids of orders rise with their slots.

use std::collections::HashMap;

use tickpath_oms_slots::{Index, Pages, SnapshotError, SnapshotReader, SnapshotWriter, tag};

use crate::open_orders::{CancelFilter, ORDERS_PER_PAGE, OpenOrders, OrderLink, OrderTable};
use crate::order::{CLIENT_ID_FREED, Fill, MANUAL_FILL, NONE, Order, PendingRequest, UsedClientId};
use crate::spare_page::SparePage;

/// Cancels and replaces, or used client ids, in one page.
const REQUESTS_PER_PAGE: usize = 1024;
/// Marks in the index of client ids: the slot is in `pending` ([`PENDING_MARK`]) or `used_ids` ([`USED_MARK`]), not in
/// `orders`.
const PENDING_MARK: u32 = 1 << 31;
const USED_MARK: u32 = 1 << 30;
/// Max orders that the tables are pre-sized for; more orders still find room.
const MAX_EXPECTED: usize = 1 << 26;

/// Memory layout of a core. It changes no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Secret seed of the id indexes, so that clients cannot choose ids that collide. Best a random number.
    pub key: u64,
}

pub(crate) struct OrderStore {
    pub(crate) config: Config,
    orders: OrderTable,
    pending: Pages<PendingRequest, REQUESTS_PER_PAGE>,
    fills: Pages<Fill, ORDERS_PER_PAGE>,
    used_ids: Pages<UsedClientId, REQUESTS_PER_PAGE>,
    by_id: Index,
    by_client: Index,
    by_execution: Index,
    pub(crate) open: OpenOrders,
}

/// Orders.
impl OrderStore {
    pub(crate) fn new(config: Config) -> Self {
        let expected = config.expected_orders.min(MAX_EXPECTED);
        Self {
            config,
            orders: OrderTable::new(Order::EMPTY, OrderLink::EMPTY, expected),
            pending: Pages::new(PendingRequest::EMPTY, expected),
            fills: Pages::new(Fill::EMPTY, expected),
            used_ids: Pages::new(UsedClientId::EMPTY, 0),
            by_id: Index::with_expected(expected),
            by_client: Index::with_expected(expected),
            by_execution: Index::with_expected(expected),
            open: OpenOrders::with_expected(expected),
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Order {
        self.orders.get(slot)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Order {
        self.orders.get_mut(slot)
    }

    /// Returns the number of orders; the slots of all orders are below it.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.orders.len()
    }

    /// Returns all orders, open or done, by ascending slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Order> {
        (0..self.len()).map(move |slot| self.get(slot))
    }

    #[inline]
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        self.by_id.find(self.tag(0, id), |slot| self.get(slot).id == id)
    }

    /// Returns the slot of the order with this client id, if the id belongs to a new order.
    pub(crate) fn find_by_client(&self, session: u16, client: u64) -> Option<u32> {
        self.find_client_id(session, client).filter(|slot| slot & (PENDING_MARK | USED_MARK) == 0)
    }

    /// Returns whether a request of this session has used a client id.
    #[inline]
    pub(crate) fn has_client_id(&self, session: u16, client: u64) -> bool {
        self.find_client_id(session, client).is_some()
    }

    /// Returns the slot of the request that used a client id, marked with [`PENDING_MARK`] or [`USED_MARK`] if the
    /// request is no order.
    fn find_client_id(&self, session: u16, client: u64) -> Option<u32> {
        self.by_client.find(self.tag(session.into(), client), |slot| {
            let used = if slot & PENDING_MARK != 0 {
                let pending = self.pending.get(slot & !PENDING_MARK);
                (pending.client, pending.session)
            } else if slot & USED_MARK != 0 {
                let used = self.used_ids.get(slot & !USED_MARK);
                (used.client, used.session)
            } else {
                let order = self.orders.get(slot);
                (order.client, order.session)
            };
            used == (client, session)
        })
    }

    /// Returns the first slot after an order. Ids rise with slots, so a dropped order has a position as well.
    pub(crate) fn slot_after(&self, id: u64) -> u32 {
        if let Some(slot) = self.find(id) {
            return slot + 1;
        }
        let (mut low, mut high) = (0, self.orders.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.orders.get(middle).id <= id {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Adds a new order, which is open, and indexes it. Returns its slot.
    #[inline]
    pub(crate) fn insert(&mut self, order: Order) -> u32 {
        let slot = self.orders.push(order);
        self.by_id.insert(self.tag(0, order.id), slot);
        self.by_client.insert(self.tag(order.session.into(), order.client), slot);
        self.open.add(&mut self.orders, slot);
        slot
    }

    /// Updates the index of open orders for an order whose cancel has become outstanding, or has been decided.
    pub(crate) fn note_cancel(&mut self, slot: u32, is_outstanding: bool) {
        self.open.note_cancel(&mut self.orders, slot, is_outstanding);
    }

    /// Updates the index of open orders for an order whose state has changed.
    #[inline]
    pub(crate) fn note_change(&mut self, slot: u32, before: &Order, after: &Order) {
        let is_outstanding = after.cancel != NONE;
        match (before.is_open(), after.is_open()) {
            (false, true) => self.open.insert(&mut self.orders, slot),
            (true, false) => self.open.remove(&mut self.orders, slot),
            (true, true) if (before.cancel != NONE) != is_outstanding => self.note_cancel(slot, is_outstanding),
            _ => {}
        }
    }

    #[inline]
    fn tag(&self, group: u64, id: u64) -> u32 {
        tag(self.config.key, group, id)
    }
}

/// Open orders.
impl OrderStore {
    /// Returns the slot of the first open order from the slot `from` on and before the slot `until`.
    #[inline]
    pub(crate) fn next_open(&self, from: u32, until: u32) -> Option<u32> {
        self.open.next_before(from, until)
    }

    /// Returns the open orders, by ascending slot.
    pub(crate) fn open_orders(&self) -> impl Iterator<Item = &Order> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let slot = self.next_open(from, u32::MAX)?;
            from = slot + 1;
            Some(self.get(slot))
        })
    }

    /// Returns the slots of the open orders in scope without an outstanding cancel, ascending.
    pub(crate) fn find_cancelable(&mut self, filter: CancelFilter) -> Vec<u32> {
        self.open.find_cancelable(&self.orders, filter)
    }
}

/// Pending requests and used client ids.
impl OrderStore {
    /// Returns the pending request in a slot; none for [`NONE`].
    #[inline]
    pub(crate) fn pending(&self, slot: u32) -> Option<&PendingRequest> {
        (slot != NONE).then(|| self.pending.get(slot))
    }

    #[inline]
    pub(crate) fn pending_mut(&mut self, slot: u32) -> &mut PendingRequest {
        self.pending.get_mut(slot)
    }

    /// Returns the total and the price that an order's pending replace asks for; zeros without a pending replace.
    #[inline]
    pub(crate) fn pending_replace(&self, order: &Order) -> (i64, i64) {
        self.pending(order.replace).map_or((0, 0), |replace| (replace.quantity, replace.price))
    }

    pub(crate) fn is_pending(&self, slot: u32, id: u64) -> bool {
        self.pending(slot).is_some_and(|pending| pending.id == id)
    }

    /// Returns whether the pending request in a slot waits in the OMS for its venue.
    pub(crate) fn waits(&self, slot: u32) -> bool {
        self.pending(slot).is_some_and(|pending| pending.waits != 0)
    }

    /// Adds a cancel or a replace that was sent or waits, and uses up its client id.
    pub(crate) fn add_pending(&mut self, request: PendingRequest) -> u32 {
        let slot = self.pending.push(request);
        self.by_client.insert(self.tag(request.session.into(), request.client), slot | PENDING_MARK);
        slot
    }

    /// Adds a cancel whose client id belongs to another request: the cancels of a mass cancel share its id.
    pub(crate) fn add_pending_unindexed(&mut self, request: PendingRequest) -> u32 {
        self.pending.push(request)
    }

    /// Uses up the client id of a request that is stored nowhere else.
    pub(crate) fn add_used_id(&mut self, session: u16, client: u64) {
        let slot = self.used_ids.push(UsedClientId { client, session, reserved: [0; 6] });
        self.by_client.insert(self.tag(session.into(), client), slot | USED_MARK);
    }

    /// Uses up the client id of a request if its checks have failed.
    #[inline]
    pub(crate) fn use_up_if_denied<T, E>(&mut self, session: u16, client: u64, checked: Result<T, E>) -> Result<T, E> {
        checked.inspect_err(|_| self.add_used_id(session, client))
    }

    /// Returns a client id that a session has used up by a request that is no order.
    pub(crate) fn used_client_id(&self, session: u16) -> Option<u64> {
        let pending = (0..self.pending.len()).map(|slot| self.pending.get(slot)).find(|id| id.session == session);
        let used = || (0..self.used_ids.len()).map(|slot| self.used_ids.get(slot)).find(|id| id.session == session);
        pending.map(|pending| pending.client).or_else(|| used().map(|used| used.client))
    }
}

/// Fills.
impl OrderStore {
    /// Finds a fill by order and execution id, because a venue may give both sides of a trade the same execution id.
    pub(crate) fn find_fill(&self, order: u32, execution: u64) -> Option<u32> {
        self.by_execution.find(self.tag(order.into(), execution), |slot| {
            let fill = self.fills.get(slot);
            fill.order == order && fill.exec == execution
        })
    }

    /// Returns the fill in a slot that [`Self::find_fill`] has found.
    pub(crate) fn fill(&self, slot: u32) -> &Fill {
        self.fills.get(slot)
    }

    /// Replaces the fill in a slot; without a slot adds a fill.
    pub(crate) fn put_fill(&mut self, slot: Option<u32>, fill: Fill) {
        match slot {
            Some(slot) => *self.fills.get_mut(slot) = fill,
            None => self.add_fill(fill),
        }
    }

    /// Books the filled quantity that an operator has entered, or takes part of it back.
    pub(crate) fn book_manual_fill(&mut self, order: u32, change: i64) {
        match self.find_fill(order, MANUAL_FILL) {
            Some(slot) => {
                let fill = self.fills.get_mut(slot);
                fill.quantity = fill.quantity.saturating_add(change);
            }
            None if change != 0 => self.add_fill(Fill { exec: MANUAL_FILL, quantity: change, order, changed: 0 }),
            None => {}
        }
    }

    fn add_fill(&mut self, fill: Fill) {
        let slot = self.fills.push(fill);
        self.by_execution.insert(self.tag(fill.order.into(), fill.exec), slot);
    }
}

/// Memory, snapshots and the end of a day.
impl OrderStore {
    /// Returns the number of orders, cancels, replaces, fills and denied ids.
    pub(crate) fn item_count(&self) -> u64 {
        [self.orders.len(), self.pending.len(), self.fills.len(), self.used_ids.len()].into_iter().map(u64::from).sum()
    }

    /// Returns whether the store will need a [`SparePage`] soon.
    pub(crate) fn needs_page(&self) -> bool {
        self.orders.needs_page()
    }

    pub(crate) fn add_page(&mut self, page: SparePage) {
        self.orders.add_page(page.orders);
        self.fills.add_page(page.fills);
        for (turn, buckets) in page.buckets.into_iter().enumerate() {
            match turn % 3 {
                0 => self.by_id.add_page(buckets),
                1 => self.by_client.add_page(buckets),
                _ => self.by_execution.add_page(buckets),
            }
        }
    }

    /// Reads the memory that the next order of a session would need, to warm the cache.
    pub(crate) fn prefetch(&self, id: u64, session: u16, client: u64) {
        self.orders.prefetch_next();
        self.by_id.prefetch(self.tag(0, id));
        self.by_client.prefetch(self.tag(session.into(), client));
        std::hint::black_box(self.find_client_id(session, client));
        self.open.prefetch(&self.orders, session);
    }

    /// Removes everything; the memory stays allocated.
    pub(crate) fn clear(&mut self) {
        self.orders.clear();
        self.pending.clear();
        self.fills.clear();
        self.used_ids.clear();
        for index in [&mut self.by_id, &mut self.by_client, &mut self.by_execution] {
            index.clear();
        }
        self.open.clear();
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        self.orders.save(save);
        self.pending.save(save);
        self.fills.save(save);
        self.used_ids.save(save);
        self.by_id.save(save);
        self.by_client.save(save);
        self.by_execution.save(save);
        self.open.save(save);
    }

    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.orders.load(load)?;
        self.pending.load(load)?;
        self.fills.load(load)?;
        self.used_ids.load(load)?;
        self.by_id.load(load)?;
        self.by_client.load(load)?;
        self.by_execution.load(load)?;
        self.open.load(load)?;
        self.open.rebuild_groups(&mut self.orders);
        Ok(())
    }

    /// Drops all orders but those in these ascending slots, which keep their pending requests and fills, and all used
    /// client ids but theirs. Returns the new slot of each kept order.
    pub(crate) fn retain(&mut self, slots: &[u32]) -> HashMap<u32, u32> {
        let mut kept = Self::new(self.config);
        let mut moved = HashMap::with_capacity(slots.len());
        for &slot in slots {
            moved.insert(slot, kept.copy_order(self, slot));
        }
        kept.open.rebuild_groups(&mut kept.orders);
        for slot in 0..self.fills.len() {
            let fill = *self.fills.get(slot);
            if let Some(&order) = moved.get(&fill.order) {
                kept.add_fill(Fill { order, ..fill });
            }
        }
        *self = kept;
        moved
    }

    /// Copies an order with its pending requests from another store, without its client id if the order's day is over.
    fn copy_order(&mut self, other: &Self, slot: u32) -> u32 {
        let order = *other.get(slot);
        let new_slot = self.orders.push(Order { cancel: NONE, replace: NONE, ..order });
        self.by_id.insert(self.tag(0, order.id), new_slot);
        if order.marks & CLIENT_ID_FREED == 0 {
            self.by_client.insert(self.tag(order.session.into(), order.client), new_slot);
        }
        self.open.slots.set(new_slot, order.is_open());
        let cancel = self.copy_pending(other, order.cancel);
        let replace = self.copy_pending(other, order.replace);
        let copy = self.orders.get_mut(new_slot);
        (copy.cancel, copy.replace) = (cancel, replace);
        new_slot
    }

    fn copy_pending(&mut self, other: &Self, slot: u32) -> u32 {
        let Some(&request) = other.pending(slot) else { return NONE };
        // A cancel that no client requested has the client id of its order.
        match self.has_client_id(request.session, request.client) {
            true => self.add_pending_unindexed(request),
            false => self.add_pending(request),
        }
    }
}
