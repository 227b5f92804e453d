//! The end of a trading day: day orders expire and done orders are dropped, so that memory does not grow with history.
//!
//! A venue ends its day first, and its report of an order's end is the one that counts. An order without such a report
//! is expired here anyway and stays known for one more day, so that a fill in flight still finds it.

use std::collections::HashMap;

use tickpath_market::{ClientOrderId, ExecType, TimeInForce};

use crate::Outputs;
use crate::core::{Core, CoreCounts};
use crate::order::{CLIENT_ID_FREED, HAS_GAP, NONE, Order};
use crate::requests::{report_as, report_output};
use crate::state::{OrderEvent, OrderPhase, next_phase};
use crate::venue_queue::QueuedRequest;

impl Core {
    /// Expires day orders and drops done orders. It keeps open orders (good-till-cancel, or in doubt) and orders that
    /// miss fills, whose exposure leaves the position with those fills.
    pub(crate) fn end_day(&mut self, out: &mut Outputs) -> bool {
        let (mut from, mut expired) = (0, Vec::new());
        while let Some(slot) = self.live.next(from) {
            from = slot + 1;
            let order = *self.orders.get(slot);
            match (order.time_in_force, order.phase) {
                (TimeInForce::GoodTillCancel, _) => {}
                // The order's day is over, so it is not armed again even if its venue does not have it.
                (_, OrderPhase::Lost | OrderPhase::Unknown) => drop(self.armed.remove(&slot)),
                (_, OrderPhase::Queued | OrderPhase::Armed) => {
                    self.withdraw(slot, ClientOrderId(order.client), ExecType::Expired, out)
                }
                _ => {
                    let phase = next_phase(order.phase, OrderEvent::Expired).unwrap_or(order.phase);
                    let marks = order.marks | CLIENT_ID_FREED;
                    let ended = Order { phase, marks, cancel: NONE, replace: NONE, ..order };
                    self.update_order(slot, &ended);
                    expired.push(slot);
                    out.push(report_output(&ended, ExecType::Expired, ClientOrderId(order.client)));
                    self.notify_if_decided(&order, &ended, out, |client| report_as(&ended, ExecType::Expired, client));
                }
            }
        }
        self.drop_done_orders(&expired);
        true
    }

    /// Rebuilds the core from the kept orders and those that just `expired`, in the order of slots. Positions stay;
    /// client ids and credit begin anew.
    fn drop_done_orders(&mut self, expired: &[u32]) {
        let mut fresh = Core::new(self.config);
        let has_expired = |slot: u32| expired.binary_search(&slot).is_ok();
        let is_kept = |order: &Order| order.is_open() || order.exposure(0) > 0;
        let is_left = |&slot: &u32| is_kept(self.orders.get(slot)) || has_expired(slot);
        let slots: Vec<u32> = (0..self.orders.len()).filter(is_left).collect();
        let mut moved = HashMap::with_capacity(slots.len());
        std::mem::swap(&mut fresh.trading, &mut self.trading);
        std::mem::swap(&mut fresh.positions, &mut self.positions);
        std::mem::swap(&mut fresh.routes, &mut self.routes);
        fresh.trading.reset_totals(true);
        fresh.positions.begin_day(|symbol| fresh.trading.price(symbol));
        for &slot in &slots {
            let order = *self.orders.get(slot);
            let place = fresh.orders.push(Order { cancel: NONE, replace: NONE, ..order });
            moved.insert(slot, place);
            fresh.by_id.insert(fresh.tag(0, order.id), place);
            if order.marks & CLIENT_ID_FREED == 0 {
                fresh.by_client.insert(fresh.tag(order.session.into(), order.client), place);
            }
            fresh.live.set(place, order.is_open());
            for (ask, is_cancel) in [(order.cancel, true), (order.replace, false)] {
                let Some(&ask) = self.pending_request(ask) else { continue };
                // A cancel that no client requested has the client id of its order.
                let ask = match fresh.find_client(ask.session, ask.client) {
                    None => fresh.add_pending(ask),
                    Some(_) => fresh.pending.push(ask),
                };
                let kept = fresh.orders.get_mut(place);
                match is_cancel {
                    true => kept.cancel = ask,
                    false => kept.replace = ask,
                }
            }
            let kept = *fresh.orders.get(place);
            *fresh.counts.counter_of(&kept) += 1;
            let (quantity, price) = fresh.pending_replace(&kept);
            fresh.update_open_value(None, Some((&kept, quantity, price)));
        }
        fresh.rebuild_self_match();
        fresh.rebuild_open_orders();
        for place in 0..self.fills.len() {
            let fill = *self.fills.get(place);
            if let Some(&order) = moved.get(&fill.order) {
                fresh.add_fill(crate::order::Fill { order, ..fill });
            }
        }
        for route in fresh.routes.iter_mut() {
            let kept = |waiting: QueuedRequest| Some(QueuedRequest { order: *moved.get(&waiting.order)?, ..waiting });
            route.waiting = route.waiting.drain().filter_map(kept).collect();
        }
        for &(slot, since) in &self.gapped {
            match moved.get(&slot) {
                Some(&place) => fresh.gapped.push((place, since)),
                None => self.orders.get_mut(slot).marks &= !HAS_GAP,
            }
        }
        for arming in self.armed.values() {
            if let Some(&slot) = moved.get(&arming.slot).filter(|&&slot| fresh.orders.get(slot).is_open()) {
                let mut arming = *arming;
                arming.slot = slot;
                fresh.armed.insert(slot, arming);
            }
        }
        // The orders that stay were counted above; alarm counts cover all days.
        let CoreCounts { queued, sending, working, done, rejected, withdrawn, unknown, .. } = fresh.counts;
        fresh.counts = CoreCounts { queued, sending, working, done, rejected, withdrawn, unknown, ..self.counts };
        (fresh.last_request, fresh.epoch, fresh.boot_id) = (self.last_request, self.epoch, self.boot_id);
        (fresh.rate, fresh.booted, fresh.output_digest) = (self.rate, self.booted, self.output_digest);
        fresh.has_unpriced = self.has_unpriced;
        let is_known = |id| fresh.find_order(id).is_some();
        self.retries.retain_known(is_known);
        self.aliases.retain_known(is_known);
        self.unknown_reports.end_day();
        fresh.retries = std::mem::take(&mut self.retries);
        fresh.aliases = std::mem::take(&mut self.aliases);
        fresh.unknown_reports = std::mem::take(&mut self.unknown_reports);
        *self = fresh;
    }
}
