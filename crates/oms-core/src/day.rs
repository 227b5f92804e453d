//! The end of a trading day: day orders expire and done orders are dropped, so that memory does not grow with history.
//!
//! A venue ends its day first, and its report of an order's end is the one that counts. An order without such a report
//! is expired here anyway and stays known for one more day, so that a fill in flight still finds it.

use std::collections::HashMap;

use tickpath_market::{ClientOrderId, ExecType, TimeInForce};

use crate::Outputs;
use crate::core::{Core, Counts};
use crate::order::{GAPPED, NAMELESS, NONE, Order};
use crate::requests::{answer, told_as};
use crate::state::{Event, Phase, step};
use crate::waiting::Waiting;

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
                (_, Phase::Lost | Phase::Unknown) => drop(self.armed.remove(&slot)),
                (_, Phase::Queued | Phase::Armed) => {
                    self.withdraw(slot, ClientOrderId(order.client), ExecType::Expired, out)
                }
                _ => {
                    let phase = step(order.phase, Event::Expired).unwrap_or(order.phase);
                    let marks = order.marks | NAMELESS;
                    let ended = Order { phase, marks, cancel: NONE, replace: NONE, ..order };
                    self.settle(slot, &ended);
                    expired.push(slot);
                    out.push(answer(&ended, ExecType::Expired, ClientOrderId(order.client)));
                    self.tell_decided(&order, &ended, out, |client| told_as(&ended, ExecType::Expired, client));
                }
            }
        }
        self.forget_done(&expired);
        true
    }

    /// Rebuilds the core from the kept orders and those that just `expired`, in the order of slots. Positions stay;
    /// client ids and credit begin anew.
    fn forget_done(&mut self, expired: &[u32]) {
        let mut fresh = Core::new(self.config);
        let has_expired = |slot: u32| expired.binary_search(&slot).is_ok();
        let is_kept = |order: &Order| order.is_open() || order.exposure(0) > 0;
        let is_left = |&slot: &u32| is_kept(self.orders.get(slot)) || has_expired(slot);
        let slots: Vec<u32> = (0..self.orders.len()).filter(is_left).collect();
        let mut moved = HashMap::with_capacity(slots.len());
        std::mem::swap(&mut fresh.desk, &mut self.desk);
        std::mem::swap(&mut fresh.positions, &mut self.positions);
        std::mem::swap(&mut fresh.routes, &mut self.routes);
        fresh.desk.recount(true);
        fresh.positions.begin_day(|symbol| fresh.desk.price(symbol));
        for &slot in &slots {
            let order = *self.orders.get(slot);
            let place = fresh.orders.push(Order { cancel: NONE, replace: NONE, ..order });
            moved.insert(slot, place);
            fresh.by_id.insert(fresh.tag(0, order.id), place);
            if order.marks & NAMELESS == 0 {
                fresh.by_client.insert(fresh.tag(order.session.into(), order.client), place);
            }
            fresh.live.set(place, order.is_open());
            for (ask, is_cancel) in [(order.cancel, true), (order.replace, false)] {
                let Some(&ask) = self.ask(ask) else { continue };
                // A cancel that no client requested has the client id of its order.
                let ask = match fresh.find_client(ask.session, ask.client) {
                    None => fresh.keep_ask(ask),
                    Some(_) => fresh.asks.push(ask),
                };
                let kept = fresh.orders.get_mut(place);
                match is_cancel {
                    true => kept.cancel = ask,
                    false => kept.replace = ask,
                }
            }
            let kept = *fresh.orders.get(place);
            *fresh.counts.stand(&kept) += 1;
            let (quantity, price) = fresh.replacing(&kept);
            fresh.hold(None, Some((&kept, quantity, price)));
        }
        fresh.count_own();
        fresh.file_open();
        for place in 0..self.fills.len() {
            let fill = *self.fills.get(place);
            if let Some(&order) = moved.get(&fill.order) {
                fresh.keep_fill(crate::order::Fill { order, ..fill });
            }
        }
        for route in fresh.routes.iter_mut() {
            let kept = |waiting: Waiting| Some(Waiting { order: *moved.get(&waiting.order)?, ..waiting });
            route.waiting = route.waiting.take().filter_map(kept).collect();
        }
        for &(slot, since) in &self.gapped {
            match moved.get(&slot) {
                Some(&place) => fresh.gapped.push((place, since)),
                None => self.orders.get_mut(slot).marks &= !GAPPED,
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
        let Counts { queued, sending, working, done, rejected, withdrawn, unknown, .. } = fresh.counts;
        fresh.counts = Counts { queued, sending, working, done, rejected, withdrawn, unknown, ..self.counts };
        (fresh.last_request, fresh.epoch, fresh.boot_id) = (self.last_request, self.epoch, self.boot_id);
        (fresh.rate, fresh.booted, fresh.tally) = (self.rate, self.booted, self.tally);
        fresh.has_unpriced = self.has_unpriced;
        let is_known = |id| fresh.find_order(id).is_some();
        self.again.end_day(is_known);
        self.names.end_day(is_known);
        self.foreign.end_day();
        fresh.again = std::mem::take(&mut self.again);
        fresh.names = std::mem::take(&mut self.names);
        fresh.foreign = std::mem::take(&mut self.foreign);
        *self = fresh;
    }
}
