//! Open orders as a list, in pages: each costs the core's thread the same, however many orders are open.

use tickpath_market::{AccountId, OrderId};

use crate::OrderView;
use crate::core::Core;

/// Open orders that one page looks at, whether or not the user may see them.
const LOOKED_AT: usize = 1024;
/// Slots that one page searches for open orders: a kilobyte of bits for each 8192.
const SEARCHED: u32 = 1 << 18;

/// Some of the open orders, by ascending id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPage {
    /// The orders.
    pub orders: Vec<OrderView>,
    /// The order behind which the next page begins; none if this page is the last one.
    pub next: Option<OrderId>,
    /// Open orders that the page has looked at, at most 1024.
    pub visited: usize,
}

impl Core {
    /// The open orders, by ascending id.
    pub fn live(&self) -> impl Iterator<Item = OrderView> + '_ {
        self.live_slots().map(|slot| self.orders.get(slot).view())
    }

    /// All orders that are kept, open or done, by ascending id.
    pub fn kept_orders(&self) -> impl Iterator<Item = OrderView> + '_ {
        (0..self.orders.len()).map(|slot| self.orders.get(slot).view())
    }

    /// The next page of the open orders whose accounts `sees` lets through: at most `most` behind the order `after`, or
    /// from the first one. It may hold fewer, or none, and still not be the last page.
    ///
    /// An order keeps its place in the list while others come and go, also over the end of a day.
    pub fn open_page(&self, after: Option<OrderId>, most: usize, sees: impl Fn(AccountId) -> bool) -> OpenPage {
        let (end, most) = (self.orders.len(), most.max(1));
        let mut from = after.map_or(0, |order| self.slot_behind(order.0));
        let until = from.saturating_add(SEARCHED).min(end);
        let (mut orders, mut visited, mut latest) = (Vec::with_capacity(most.min(LOOKED_AT)), 0, None);
        while orders.len() < most && visited < LOOKED_AT {
            let Some(slot) = self.live.next_before(from, until) else {
                from = until;
                break;
            };
            (from, visited) = (slot + 1, visited + 1);
            let order = self.orders.get(slot);
            // Orders that follow each other are often of one account.
            let is_seen = match latest {
                Some((account, is_seen)) if account == order.account => is_seen,
                _ => sees(order.account),
            };
            latest = Some((order.account, is_seen));
            if is_seen {
                orders.push(order.view());
            }
        }
        let next = (from < end).then(|| from.checked_sub(1)).flatten().map(|slot| OrderId(self.orders.get(slot).id));
        OpenPage { orders, next, visited }
    }

    /// Orders, groups of orders and accounts that cancels of many have visited since this core was made: what such
    /// cancels have cost. It is no part of the state.
    pub fn visited(&self) -> u64 {
        self.open.visited()
    }

    /// The slots of the open orders, ascending.
    pub(crate) fn live_slots(&self) -> impl Iterator<Item = u32> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let slot = self.live.next(from)?;
            from = slot + 1;
            Some(slot)
        })
    }

    /// Files the open orders of a core that has just been laid out or loaded.
    pub(crate) fn file_open(&mut self) {
        let end = self.orders.len();
        self.open.empty();
        let mut from = 0;
        while let Some(slot) = self.live.next_before(from, end) {
            from = slot + 1;
            self.open.enter(&mut self.orders, slot);
        }
    }

    /// The first slot behind an order. Ids rise with slots, so an order that is forgotten has a place as well.
    fn slot_behind(&self, id: u64) -> u32 {
        if let Some(slot) = self.find_order(id) {
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
}
