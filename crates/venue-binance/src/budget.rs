//! The exchange's limits, kept before it refuses: it counts in fixed intervals, and a window that slides over them never
//! has more requests than the limit in any of them.
//!
//! ```text
//!             slots of a tenth of the interval
//!   window   [ 3 | 0 | 7 | … | 1 | now ]       ten whole slots and the present one: never more than the limit
//! ```

use tickpath_clock::Calibration;

use crate::config::RequestLimits;

const SECOND_NS: u64 = 1_000_000_000;
/// Slots of a window: an interval in tenths, and the present slot.
const SLOTS: usize = 11;

/// Urgency of a request: the less urgent, the more weight it leaves to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Leaves a fifth of the weight.
    Query,
    /// Leaves a tenth of the weight.
    Order,
    /// Leaves nothing.
    Cancel,
}

/// A limit that leaves no room for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsedUp {
    /// The number of new orders. A cancel may leave.
    Orders,
    /// The weight that orders may use. A cancel may leave.
    Weight,
    /// Nothing may leave.
    All,
}

/// Cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestCost {
    pub(crate) urgency: Urgency,
    pub(crate) weight: u32,
    /// Orders that it may place.
    pub(crate) orders: u32,
}

/// Budget of requests. It outlasts a connection, because the exchange counts by account and address.
pub(crate) struct RequestBudget {
    weight: RateWindow,
    /// Orders of ten seconds, and of a day.
    orders: [RateWindow; 2],
    /// Ends of the pauses that the exchange demands, in ticks: of all requests, and of new orders.
    blocked_until: u64,
    orders_blocked_until: u64,
}

/// Amounts that were spent in the last interval.
struct RateWindow {
    limit: u32,
    slot_ticks: u64,
    /// Number of the present slot, counted from tick zero.
    slot: u64,
    used: [u32; SLOTS],
    total: u32,
}

impl RequestCost {
    /// Returns the cost of a request that places no order.
    pub(crate) const fn weight(urgency: Urgency, weight: u32) -> Self {
        Self { urgency, weight, orders: 0 }
    }
}

impl RequestBudget {
    pub(crate) fn new(limits: &RequestLimits, calibration: &Calibration, now: u64) -> Self {
        let window = |limit, interval_ns| RateWindow::new(limit, calibration.ticks_of_ns(interval_ns), now);
        Self {
            weight: window(limits.weight_per_minute, 60 * SECOND_NS),
            orders: [
                window(limits.orders_per_10_s, 10 * SECOND_NS),
                window(limits.orders_per_day, 24 * 3600 * SECOND_NS),
            ],
            blocked_until: 0,
            orders_blocked_until: 0,
        }
    }

    /// Returns the limit that keeps an order, or a change of an order, from leaving now.
    #[inline]
    pub(crate) fn used_up(&mut self, cost: RequestCost, now: u64) -> Option<UsedUp> {
        if self.has_room(cost, now) {
            return None;
        }
        let cancel = RequestCost::weight(Urgency::Cancel, 1);
        Some(match self.has_room(cancel, now) {
            false => UsedUp::All,
            true if self.has_room(RequestCost { orders: 0, ..cost }, now) => UsedUp::Orders,
            true => UsedUp::Weight,
        })
    }

    /// Returns whether a request may leave now.
    #[inline]
    pub(crate) fn has_room(&mut self, cost: RequestCost, now: u64) -> bool {
        let reserve = match cost.urgency {
            Urgency::Query => self.weight.limit / 5,
            Urgency::Order => self.weight.limit / 10,
            Urgency::Cancel => 0,
        };
        let may_go = now >= self.blocked_until && (cost.orders == 0 || now >= self.orders_blocked_until);
        may_go
            && self.weight.has_room(cost.weight + reserve, now)
            && (cost.orders == 0 || self.orders.iter_mut().all(|window| window.has_room(cost.orders, now)))
    }

    /// Counts a request that leaves now.
    #[inline]
    pub(crate) fn spend(&mut self, cost: RequestCost, now: u64) {
        self.weight.spend(cost.weight, now);
        if cost.orders > 0 {
            self.orders.iter_mut().for_each(|window| window.spend(cost.orders, now));
        }
    }

    /// Keeps all requests back until these ticks.
    pub(crate) fn block(&mut self, until: u64) {
        self.blocked_until = self.blocked_until.max(until);
    }

    /// Keeps new orders back until these ticks.
    pub(crate) fn block_orders(&mut self, until: u64) {
        self.orders_blocked_until = self.orders_blocked_until.max(until);
    }

    /// Returns the end of the pause of all requests, in ticks, if it is not over.
    pub(crate) fn blocked_until(&self, now: u64) -> Option<u64> {
        (now < self.blocked_until).then_some(self.blocked_until)
    }
}

impl RateWindow {
    fn new(limit: u32, interval_ticks: u64, now: u64) -> Self {
        let slot_ticks = (interval_ticks / (SLOTS as u64 - 1)).max(1);
        Self { limit, slot_ticks, slot: now / slot_ticks, used: [0; SLOTS], total: 0 }
    }

    #[inline]
    fn has_room(&mut self, amount: u32, now: u64) -> bool {
        self.advance(now);
        self.total.saturating_add(amount) <= self.limit
    }

    #[inline]
    fn spend(&mut self, amount: u32, now: u64) {
        self.advance(now);
        self.used[(self.slot % SLOTS as u64) as usize] += amount;
        self.total += amount;
    }

    /// Empties the slots that have left the window.
    #[inline]
    fn advance(&mut self, now: u64) {
        let slot = now / self.slot_ticks;
        for passed in 1..=slot.saturating_sub(self.slot).min(SLOTS as u64) {
            let used = &mut self.used[((self.slot + passed) % SLOTS as u64) as usize];
            self.total -= std::mem::take(used);
        }
        self.slot = self.slot.max(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn budget(orders_per_10_s: u32, weight_per_minute: u32) -> RequestBudget {
        let limits = RequestLimits { orders_per_10_s, orders_per_day: 1_000, weight_per_minute };
        RequestBudget::new(&limits, &Calibration::nanoseconds(), 0)
    }

    #[test]
    fn no_ten_seconds_have_more_orders_than_the_limit() {
        let mut budget = budget(7, 100_000);
        let place = RequestCost { urgency: Urgency::Order, weight: 1, orders: 1 };
        let mut sent = Vec::new();
        for now in (0..60_000).map(|turn| turn * MS + turn % 7 * MS / 10) {
            if budget.has_room(place, now) {
                budget.spend(place, now);
                sent.push(now);
            }
        }
        assert!(sent.windows(8).all(|eight| eight[7] - eight[0] >= 10_000 * MS), "{sent:?}");
        assert!(sent.len() >= 35, "{} in a minute", sent.len());
    }

    #[test]
    fn cancels_have_weight_left_that_orders_and_queries_leave() {
        let mut budget = budget(1_000, 100);
        let mut spent = Vec::new();
        for urgency in [Urgency::Query, Urgency::Order, Urgency::Cancel] {
            let cost = RequestCost::weight(urgency, 1);
            let mut passed = 0;
            while budget.has_room(cost, 0) {
                budget.spend(cost, 0);
                passed += 1;
            }
            spent.push(passed);
        }
        assert_eq!(spent, [80, 10, 10]);
    }

    #[test]
    fn orders_find_the_weight_used_up_while_cancels_still_leave() {
        let mut budget = budget(1_000, 100);
        let (place, cancel) =
            (RequestCost { urgency: Urgency::Order, weight: 1, orders: 1 }, RequestCost::weight(Urgency::Cancel, 1));
        budget.spend(RequestCost::weight(Urgency::Query, 90), 0);
        assert_eq!((budget.used_up(place, 0), budget.has_room(cancel, 0)), (Some(UsedUp::Weight), true));
        budget.spend(RequestCost::weight(Urgency::Cancel, 10), 0);
        assert_eq!((budget.used_up(place, 0), budget.has_room(cancel, 0)), (Some(UsedUp::All), false));
    }

    #[test]
    fn a_pause_of_orders_lets_cancels_pass() {
        let mut budget = budget(10, 100);
        let place = RequestCost { urgency: Urgency::Order, weight: 1, orders: 1 };
        let cancel = RequestCost::weight(Urgency::Cancel, 1);
        budget.block_orders(50);
        assert_eq!([budget.has_room(place, 49), budget.has_room(cancel, 49)], [false, true]);
        assert_eq!([budget.used_up(place, 49), budget.used_up(place, 50)], [Some(UsedUp::Orders), None]);
        budget.block(60);
        assert_eq!([budget.has_room(place, 59), budget.has_room(cancel, 59)], [false, false]);
        assert_eq!(budget.used_up(place, 59), Some(UsedUp::All));
        assert_eq!((budget.blocked_until(59), budget.blocked_until(60)), (Some(60), None));
        assert!(budget.has_room(place, 60));
    }
}
