//! Index of open orders by session, account and symbol: a mass cancel visits the orders that it cancels, and no others.
//!
//! ```text
//!   session ──> pair (session, account) ──> the session's next pair ──> ...
//!                 └──> group (session, account, symbol) ──> the pair's next group with orders in it ──> ...
//!                        └──> order <──> order <──> order     open, and no cancel of it is outstanding
//! ```
//!
//! Each order has a [`OrderLink`] beside it, in the cache lines that a new order writes anyhow. The hot path writes the
//! link, its neighbour's link and the group; a session that stays with one account and symbol finds that group without
//! a hash. Orders with an outstanding cancel are counted in their group but in no list, so that a second mass cancel
//! costs nothing. A mass cancel unchains the empty groups that it visits: a new order has paid for each such visit.
//!
//! The lists are unordered: [`OpenOrders::find_cancelable`] sorts the slots that it finds, because outputs are in the
//! order of slots. A set of the open slots serves visits of all orders in that order. A snapshot holds the set only;
//! a loaded core builds the lists anew.

use std::hint::black_box;

use tickpath_market::{AccountId, SymbolId};
use tickpath_oms_slots::{BitSet, Index, Linked, LinkedPages, SnapshotError, SnapshotReader, SnapshotWriter, tag};

use crate::order::{NONE, Order};

/// [`OrderLink::prev`] of an order that is counted in its group but not in the list.
const UNLISTED: u32 = u32::MAX - 1;
/// [`OrderLink::prev`] of an order that is not open.
const NOT_OPEN: u32 = u32::MAX - 2;

/// Position of an order in the list of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderLink {
    /// Slot of the next order; [`NONE`] after the last one.
    next: u32,
    /// Slot of the previous order; [`NONE`] before the first one, [`UNLISTED`] or [`NOT_OPEN`].
    prev: u32,
}

impl OrderLink {
    pub(crate) const EMPTY: Self = Self { next: NONE, prev: NOT_OPEN };
}

/// Orders by slot, each in two cache lines with its link.
pub(crate) type OrderTable = LinkedPages<Order, OrderLink, ORDERS_PER_PAGE>;

/// Orders, or fills, in one page.
pub(crate) const ORDERS_PER_PAGE: usize = 4096;

const _: () = assert!(size_of::<Linked<Order, OrderLink>>() == 128);

/// Orders of one session, account and symbol.
struct OrderGroup {
    session: u16,
    /// Whether the group is in the chain of its pair.
    is_chained: bool,
    account: AccountId,
    symbol: SymbolId,
    /// Slot of the position of account and symbol.
    position: u32,
    pair: u32,
    /// Slot of the first order of the list.
    first: u32,
    /// Open orders, in the list or not.
    open: u32,
    /// The next group of the chain.
    next: u32,
}

/// Orders of one session and account.
struct AccountGroup {
    session: u16,
    account: AccountId,
    /// Open orders of all its groups.
    open: u32,
    /// The first group of the chain.
    first: u32,
    /// The next pair of the session.
    next: u32,
}

/// The group of a session's latest order, and the session's first pair.
#[derive(Clone, Copy)]
struct SessionGroups {
    latest: u32,
    pairs: u32,
}

/// Scope of a mass cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelFilter {
    /// All orders of a session for an account.
    Account {
        session: u16,
        account: AccountId,
    },
    /// All orders of a session in one symbol, by the slot of the position; [`NONE`] if there is no position.
    Position {
        session: u16,
        position: u32,
    },
    /// All orders of a session.
    Session(u32),
    /// The orders of all sessions for an account.
    AllOfAccount(AccountId),
    /// The orders of all sessions in a symbol.
    AllOfSymbol(SymbolId),
    All,
}

#[derive(Default)]
pub(crate) struct OpenOrders {
    /// Slots of the open orders. After a direct change [`Self::rebuild_groups`] builds the groups.
    pub(crate) slots: BitSet,
    groups: Vec<OrderGroup>,
    pairs: Vec<AccountGroup>,
    sessions: Vec<SessionGroups>,
    /// Groups by session and position.
    by_position: Index,
    /// Pairs by session and account.
    by_account: Index,
    /// Number of orders and groups that mass cancels have visited.
    pub(crate) visited: u64,
}

impl OpenOrders {
    /// Creates an empty index with room for the expected number of orders.
    pub(crate) fn with_expected(orders: usize) -> Self {
        Self { slots: BitSet::with_expected(orders), ..Self::default() }
    }

    /// Counts and lists a new order, which is open and has no outstanding cancel.
    #[inline]
    pub(crate) fn add(&mut self, orders: &mut OrderTable, slot: u32) {
        debug_assert_eq!(orders.get(slot).cancel, NONE, "a new order has no cancel");
        self.slots.set(slot, true);
        let group = self.count(orders.get(slot));
        self.list(orders, slot, group);
    }

    /// Counts an order as open, and lists it if it has no outstanding cancel.
    pub(crate) fn insert(&mut self, orders: &mut OrderTable, slot: u32) {
        self.slots.set(slot, true);
        if orders.link(slot).prev != NOT_OPEN {
            return;
        }
        let group = self.count(orders.get(slot));
        orders.link_mut(slot).prev = UNLISTED;
        if orders.get(slot).cancel == NONE {
            self.list(orders, slot, group);
        }
    }

    /// Removes an order that is not open any more.
    #[inline]
    pub(crate) fn remove(&mut self, orders: &mut OrderTable, slot: u32) {
        self.slots.set(slot, false);
        if orders.link(slot).prev == NOT_OPEN {
            return;
        }
        let group = self.group_of(orders.get(slot));
        self.unlist(orders, slot, group);
        *orders.link_mut(slot) = OrderLink::EMPTY;
        let row = &mut self.groups[group as usize];
        row.open -= 1;
        self.pairs[row.pair as usize].open -= 1;
    }

    /// Updates the list for an open order whose cancel has become outstanding, or has been decided.
    pub(crate) fn note_cancel(&mut self, orders: &mut OrderTable, slot: u32, is_outstanding: bool) {
        let group = self.group_of(orders.get(slot));
        match (is_outstanding, orders.link(slot).prev) {
            (_, NOT_OPEN) => {}
            (true, _) => self.unlist(orders, slot, group),
            (false, UNLISTED) => self.list(orders, slot, group),
            (false, _) => {}
        }
    }

    /// Returns the first open slot from `from` on and before `until`.
    #[inline]
    pub(crate) fn next_before(&self, from: u32, until: u32) -> Option<u32> {
        self.slots.next_before(from, until)
    }

    /// Returns the slots of the open orders in scope without an outstanding cancel, ascending. The cost grows with
    /// their number; scopes that no client can name (an account or symbol in all sessions, or all) visit every group.
    pub(crate) fn find_cancelable(&mut self, orders: &OrderTable, filter: CancelFilter) -> Vec<u32> {
        let mut slots = Vec::new();
        match filter {
            CancelFilter::Position { session, position } => {
                if let Some(group) = self.find_group(session, position) {
                    self.visit_group(orders, group, &mut slots);
                }
            }
            CancelFilter::Account { session, account } => {
                if let Some(pair) = self.find_pair(session, account) {
                    self.visit_pair(orders, pair, &mut slots);
                }
            }
            CancelFilter::Session(session) => {
                let mut pair = self.first_pair(session);
                while pair != NONE {
                    self.visited += 1;
                    self.visit_pair(orders, pair, &mut slots);
                    pair = self.pairs[pair as usize].next;
                }
            }
            CancelFilter::AllOfAccount(_) | CancelFilter::AllOfSymbol(_) | CancelFilter::All => {
                for group in 0..self.groups.len() as u32 {
                    self.visited += 1;
                    if self.groups[group as usize].is_in_scope(filter) {
                        self.visit_group(orders, group, &mut slots);
                    }
                }
            }
        }
        slots.sort_unstable();
        slots
    }

    /// Returns whether the scope has any open order, with or without an outstanding cancel.
    pub(crate) fn has_open(&self, filter: CancelFilter) -> bool {
        match filter {
            CancelFilter::Position { session, position } => {
                self.find_group(session, position).is_some_and(|group| self.groups[group as usize].open > 0)
            }
            CancelFilter::Account { session, account } => {
                self.find_pair(session, account).is_some_and(|pair| self.pairs[pair as usize].open > 0)
            }
            CancelFilter::Session(_)
            | CancelFilter::AllOfAccount(_)
            | CancelFilter::AllOfSymbol(_)
            | CancelFilter::All => self.groups.iter().any(|group| group.open > 0 && group.is_in_scope(filter)),
        }
    }

    /// Removes all orders and groups; the memory stays allocated.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.clear_groups();
    }

    fn clear_groups(&mut self) {
        self.groups.clear();
        self.pairs.clear();
        self.sessions.clear();
        self.by_position.clear();
        self.by_account.clear();
    }

    /// Builds the groups of the open orders anew. No order of the table has a link yet.
    pub(crate) fn rebuild_groups(&mut self, orders: &mut OrderTable) {
        self.clear_groups();
        let (mut from, end) = (0, orders.len());
        while let Some(slot) = self.slots.next_before(from, end) {
            from = slot + 1;
            self.insert(orders, slot);
        }
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        self.slots.save(save);
    }

    /// Loads the slots; [`Self::rebuild_groups`] builds the rest.
    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.slots.load(load)
    }

    /// Reads the memory that the next order of a session would need, to warm the cache.
    pub(crate) fn prefetch(&self, orders: &OrderTable, session: u16) {
        black_box(self.slots.next_before(orders.len(), u32::MAX));
        let Some(row) = self.sessions.get(usize::from(session)) else { return };
        let Some(group) = self.groups.get(row.latest as usize) else { return };
        black_box((group.position, group.open, group.next, self.pairs[group.pair as usize].open));
        if group.first != NONE {
            black_box(*orders.link(group.first));
        }
    }

    /// Counts an order in its group, and returns the group.
    #[inline]
    fn count(&mut self, order: &Order) -> u32 {
        let group = self.group_of(order);
        let row = &mut self.groups[group as usize];
        row.open += 1;
        self.pairs[row.pair as usize].open += 1;
        group
    }

    #[inline]
    fn group_of(&mut self, order: &Order) -> u32 {
        let latest = self.sessions.get(usize::from(order.session)).map_or(NONE, |row| row.latest);
        match self.groups.get(latest as usize) {
            Some(group) if group.position == order.position => latest,
            _ => self.other_group(order),
        }
    }

    /// Finds or adds the group of an order outside its session's latest group, and makes it the latest.
    fn other_group(&mut self, order: &Order) -> u32 {
        let group = match self.find_group(order.session, order.position) {
            Some(group) => group,
            None => self.add_group(order),
        };
        self.sessions[usize::from(order.session)].latest = group;
        group
    }

    #[cold]
    fn add_group(&mut self, order: &Order) -> u32 {
        let pair = match self.find_pair(order.session, order.account) {
            Some(pair) => pair,
            None => self.add_pair(order.session, order.account),
        };
        let group = self.groups.len() as u32;
        self.groups.push(OrderGroup {
            session: order.session,
            is_chained: false,
            account: order.account,
            symbol: order.symbol,
            position: order.position,
            pair,
            first: NONE,
            open: 0,
            next: NONE,
        });
        self.by_position.insert(tag(0, order.session.into(), order.position.into()), group);
        group
    }

    fn add_pair(&mut self, session: u16, account: AccountId) -> u32 {
        let pair = self.pairs.len() as u32;
        let index = usize::from(session);
        if index >= self.sessions.len() {
            self.sessions.resize(index + 1, SessionGroups { latest: NONE, pairs: NONE });
        }
        let next = std::mem::replace(&mut self.sessions[index].pairs, pair);
        self.pairs.push(AccountGroup { session, account, open: 0, first: NONE, next });
        self.by_account.insert(tag(0, session.into(), account.0.into()), pair);
        pair
    }

    fn find_group(&self, session: u16, position: u32) -> Option<u32> {
        self.by_position.find(tag(0, session.into(), position.into()), |group| {
            let row = &self.groups[group as usize];
            (row.session, row.position) == (session, position)
        })
    }

    fn find_pair(&self, session: u16, account: AccountId) -> Option<u32> {
        self.by_account.find(tag(0, session.into(), account.0.into()), |pair| {
            let row = &self.pairs[pair as usize];
            (row.session, row.account) == (session, account)
        })
    }

    fn first_pair(&self, session: u32) -> u32 {
        self.sessions.get(session as usize).map_or(NONE, |row| row.pairs)
    }

    /// Adds the slots of a group's list.
    fn visit_group(&mut self, orders: &OrderTable, group: u32, slots: &mut Vec<u32>) {
        let mut slot = self.groups[group as usize].first;
        while slot != NONE {
            self.visited += 1;
            slots.push(slot);
            slot = orders.link(slot).next;
        }
    }

    /// Adds the slots of all groups of a pair, and unchains its groups with empty lists.
    fn visit_pair(&mut self, orders: &OrderTable, pair: u32, slots: &mut Vec<u32>) {
        let (mut group, mut before) = (self.pairs[pair as usize].first, NONE);
        while group != NONE {
            self.visited += 1;
            let row = &mut self.groups[group as usize];
            let next = row.next;
            if row.first == NONE {
                (row.is_chained, row.next) = (false, NONE);
                match before {
                    NONE => self.pairs[pair as usize].first = next,
                    before => self.groups[before as usize].next = next,
                }
            } else {
                self.visit_group(orders, group, slots);
                before = group;
            }
            group = next;
        }
    }

    /// Puts a counted order at the front of its group's list.
    #[inline]
    fn list(&mut self, orders: &mut OrderTable, slot: u32, group: u32) {
        let row = &mut self.groups[group as usize];
        let next = std::mem::replace(&mut row.first, slot);
        if !row.is_chained {
            row.is_chained = true;
            row.next = std::mem::replace(&mut self.pairs[row.pair as usize].first, group);
        }
        *orders.link_mut(slot) = OrderLink { next, prev: NONE };
        if next != NONE {
            orders.link_mut(next).prev = slot;
        }
    }

    /// Takes an order out of its group's list, if it is listed; it stays counted.
    #[inline]
    fn unlist(&mut self, orders: &mut OrderTable, slot: u32, group: u32) {
        let link = *orders.link(slot);
        match link.prev {
            UNLISTED | NOT_OPEN => return,
            NONE => self.groups[group as usize].first = link.next,
            prev => orders.link_mut(prev).next = link.next,
        }
        if link.next != NONE {
            orders.link_mut(link.next).prev = link.prev;
        }
        *orders.link_mut(slot) = OrderLink { next: NONE, prev: UNLISTED };
    }
}

impl OrderGroup {
    fn is_in_scope(&self, filter: CancelFilter) -> bool {
        filter.covers(self.session, self.account, self.symbol, self.position)
    }
}

impl CancelFilter {
    pub(crate) fn covers_order(self, order: &Order) -> bool {
        self.covers(order.session, order.account, order.symbol, order.position)
    }

    fn covers(self, of_session: u16, of_account: AccountId, of_symbol: SymbolId, of_position: u32) -> bool {
        match self {
            Self::Account { session, account } => (of_session, of_account) == (session, account),
            Self::Position { session, position } => (of_session, of_position) == (session, position),
            Self::Session(session) => u32::from(of_session) == session,
            Self::AllOfAccount(account) => of_account == account,
            Self::AllOfSymbol(symbol) => of_symbol == symbol,
            Self::All => true,
        }
    }
}
