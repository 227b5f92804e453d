//! The end of a trading day: day orders expire and done orders are dropped, so that memory does not grow with history.
//!
//! A venue ends its day first, and its report of an order's end is the one that counts. An order without such a report
//! is expired here anyway and stays known for one more day, so that a fill in flight still finds it.

use tickpath_market::{ClientOrderId, ExecType, TimeInForce};

use crate::Outputs;
use crate::core::Core;
use crate::order::{CLIENT_ID_FREED, NONE, Order, SequenceGap};
use crate::state::{OrderEvent, OrderPhase};
use crate::triggers::PendingTrigger;
use crate::venue_queue::QueuedRequest;

impl Core {
    /// Expires day orders and drops done orders. It keeps open orders (good-till-cancel, good-till-date, or in doubt)
    /// and orders that miss fills, whose exposure leaves the position with those fills.
    pub(crate) fn end_day(&mut self, out: &mut Outputs) -> bool {
        let (mut from, mut expired) = (0, Vec::new());
        while let Some(slot) = self.orders.next_open(from, u32::MAX) {
            from = slot + 1;
            let order = *self.orders.get(slot);
            let client = ClientOrderId(order.client);
            match (order.time_in_force, order.phase) {
                (TimeInForce::GoodTillCancel | TimeInForce::GoodTillDate, _) => {}
                // The order's day is over, so it is not armed again even if its venue does not have it.
                (_, OrderPhase::Lost | OrderPhase::Unknown) => drop(self.triggers.remove(&slot)),
                (_, OrderPhase::Queued | OrderPhase::Armed) => self.withdraw(slot, client, ExecType::Expired, out),
                _ => {
                    let (phase, marks) = (order.phase.after(OrderEvent::Expired), order.marks | CLIENT_ID_FREED);
                    let ended = Order { phase, marks, cancel: NONE, replace: NONE, ..order };
                    self.update_order(slot, &ended);
                    expired.push(slot);
                    self.report_change(&order, &ended, ExecType::Expired, client, out);
                }
            }
        }
        self.drop_done_orders(&expired);
        true
    }

    /// Keeps only open orders, orders that miss fills and those that just `expired`, at new slots in the same order.
    /// Positions stay; client ids and credit begin anew.
    fn drop_done_orders(&mut self, expired: &[u32]) {
        let is_kept = |slot: &u32| {
            let order = self.orders.get(*slot);
            order.is_open() || order.exposure(0) > 0 || expired.binary_search(slot).is_ok()
        };
        let slots: Vec<u32> = (0..self.orders.len()).filter(is_kept).collect();
        let moved = self.orders.retain(&slots);
        let orders = &self.orders;
        let new_slot = |slot: u32| moved.get(&slot).copied();
        let triggers = std::mem::take(&mut self.triggers).into_values().filter_map(|trigger| {
            let slot = new_slot(trigger.slot).filter(|&slot| orders.get(slot).is_open())?;
            Some((slot, PendingTrigger { slot, ..trigger }))
        });
        self.triggers = triggers.collect();
        let gaps = std::mem::take(&mut self.gaps).into_iter();
        self.gaps = gaps.filter_map(|gap| Some(SequenceGap { slot: new_slot(gap.slot)?, ..gap })).collect();
        for venue in self.venues.iter_mut() {
            let kept = |waiting: QueuedRequest| Some(QueuedRequest { order: new_slot(waiting.order)?, ..waiting });
            venue.waiting = venue.waiting.drain().filter_map(kept).collect();
        }
        let is_known = |id| orders.find(id).is_some();
        self.retries.retain_known(is_known);
        self.aliases.retain_known(is_known);
        self.extensions.retain_known(is_known);
        self.unknown_reports.end_day();
        // Alarm counts cover all days.
        self.counts = self.counts.without_orders();
        self.orders.iter().for_each(|order| *self.counts.counter_of(order) += 1);
        self.positions.begin_day(|symbol| self.trading.price(symbol));
        self.recount(true);
    }
}
