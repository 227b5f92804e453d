//! Open orders as a list, in pages. A page costs the core's thread the same for any number of open orders.

use tickpath_market::{AccountId, OrderId};

use crate::OrderView;
use crate::core::Core;

/// Max open orders that one page visits, whether or not the user may see them.
const MAX_VISITED: usize = 1024;
/// Max slots that one page searches for open orders, at 8192 slots per kilobyte of bits.
const MAX_SEARCHED_SLOTS: u32 = 1 << 18;

/// Page of the open orders, by ascending id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPage {
    /// The orders.
    pub orders: Vec<OrderView>,
    /// The order after which the next page begins; none on the last page.
    pub next: Option<OrderId>,
    /// Number of open orders that the page visited, at most 1024.
    pub visited: usize,
}

impl Core {
    /// Returns the open orders, by ascending id.
    pub fn open_orders(&self) -> impl Iterator<Item = OrderView> + '_ {
        self.open_slots().map(|slot| self.orders.get(slot).view())
    }

    /// Returns all orders in memory, open or done, by ascending id.
    pub fn all_orders(&self) -> impl Iterator<Item = OrderView> + '_ {
        (0..self.orders.len()).map(|slot| self.orders.get(slot).view())
    }

    /// Returns the next page of the open orders whose accounts `sees` accepts: at most `most` after the order `after`,
    /// or from the first one. A page may hold fewer orders, or none, without being the last.
    ///
    /// An order keeps its place in the list while other orders come and go, even over the end of a day.
    pub fn open_page(&self, after: Option<OrderId>, most: usize, sees: impl Fn(AccountId) -> bool) -> OpenPage {
        let (end, most) = (self.orders.len(), most.max(1));
        let mut from = after.map_or(0, |order| self.slot_after(order.0));
        let until = from.saturating_add(MAX_SEARCHED_SLOTS).min(end);
        let (mut orders, mut visited, mut latest) = (Vec::with_capacity(most.min(MAX_VISITED)), 0, None);
        while orders.len() < most && visited < MAX_VISITED {
            let Some(slot) = self.live.next_before(from, until) else {
                from = until;
                break;
            };
            (from, visited) = (slot + 1, visited + 1);
            let order = self.orders.get(slot);
            // Consecutive orders often have the same account.
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

    /// Returns the number of orders, groups and accounts that mass cancels have visited since this core was created:
    /// the cost of those cancels. The count is no part of the state.
    pub fn mass_cancel_visits(&self) -> u64 {
        self.open.visited()
    }

    /// Returns the slots of the open orders, ascending.
    pub(crate) fn open_slots(&self) -> impl Iterator<Item = u32> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let slot = self.live.next(from)?;
            from = slot + 1;
            Some(slot)
        })
    }

    /// Builds the index of open orders, for a core that was just rebuilt or loaded.
    pub(crate) fn rebuild_open_orders(&mut self) {
        let end = self.orders.len();
        self.open.clear();
        let mut from = 0;
        while let Some(slot) = self.live.next_before(from, end) {
            from = slot + 1;
            self.open.insert(&mut self.orders, slot);
        }
    }

    /// Returns the first slot after an order. Ids rise with slots, so a dropped order has a place as well.
    fn slot_after(&self, id: u64) -> u32 {
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
