//! The end of good-till-date orders: no venue knows their end time, so the OMS cancels them when it has come. Design:
//! `docs/design/order-extensions.md`.
//!
//! The shell, which has the time, reports it by an input. An order that still waits in the OMS is withdrawn; any other
//! is canceled at its venue, whose cancel is reported as the order's expiry. While a venue is down the cancel waits,
//! like any cancel. A cancel that was refused or lost is sent again until the order has ended.

use tickpath_market::{ClientOrderId, ExecType, ExtendedOrder};

use crate::core::{At, Core};
use crate::order::{END_TIME_PASSED, NONE, PendingRequest};
use crate::state::OrderPhase;
use crate::{Denial, Outputs};

/// Time after which the end of an order that is still open is tried again, in nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;

impl Core {
    /// Returns whether an [`ExpiryTimer`](crate::ExpiryTimer) at this moment would try to end an order.
    pub fn needs_expiry_timer(&self, stamp: u64) -> bool {
        self.extensions.next_due().is_some_and(|due_ns| due_ns <= self.clock.utc_ns_at(stamp))
    }

    /// Checks that the end time of a good-till-date order is in the future.
    pub(crate) fn check_end_time(&self, at: At, extended: &ExtendedOrder) -> Result<(), Denial> {
        let has_passed = extended.is_dated() && extended.expire_ns <= self.clock.utc_ns_at(at.stamp);
        if has_passed { Err(Denial::EndTimePassed) } else { Ok(()) }
    }

    /// Returns whether the end time of an order has come.
    pub(crate) fn is_past_end(&self, at: At, order: u64) -> bool {
        let expire_ns = self.extensions.of_order(order).map_or(0, |extension| extension.expire_ns);
        expire_ns != 0 && expire_ns <= self.clock.utc_ns_at(at.stamp)
    }

    /// Ends the orders whose end time has come.
    pub(crate) fn end_due_orders(&mut self, at: At, out: &mut Outputs) -> bool {
        let now_ns = self.clock.utc_ns_at(at.stamp);
        let due: Vec<u64> = std::iter::from_fn(|| self.extensions.take_due(now_ns)).collect();
        for id in due {
            let Some(slot) = self.orders.find(id) else { continue };
            self.end_order(at, slot, out);
            if self.orders.get(slot).is_open() {
                self.extensions.set_due(id, now_ns.saturating_add(RETRY_NS));
            }
        }
        true
    }

    fn end_order(&mut self, at: At, slot: u32, out: &mut Outputs) {
        let order = *self.orders.get(slot);
        let is_unknown = order.phase.is_unknown();
        let has_rest = order.leaves() > 0 || is_unknown;
        // The cancel of an unknown order may be lost, unless it still waits in the OMS.
        let is_canceling = order.cancel != NONE && (!is_unknown || self.orders.waits(order.cancel));
        if !order.is_open() || !has_rest || is_canceling {
            return;
        }
        if matches!(order.phase, OrderPhase::Queued | OrderPhase::Armed) {
            return self.withdraw(slot, ClientOrderId(order.client), ExecType::Expired, out);
        }
        self.orders.get_mut(slot).marks |= END_TIME_PASSED;
        let (id, client, session) = (self.id(at), order.client, order.session);
        let cancel = PendingRequest { id, client, session, ..PendingRequest::EMPTY };
        let pending = self.orders.add_pending_unindexed(cancel);
        self.request_cancel(at, slot, pending, 0, at.stamp, out);
    }

    /// Schedules the end of an order that is open again, because a fill was busted or a report contradicts its end.
    #[cold]
    pub(crate) fn reschedule_end(&mut self, id: u64) {
        if let Some(expire_ns) = self.extensions.of_order(id).map(|extension| extension.expire_ns) {
            self.extensions.set_due(id, expire_ns);
        }
    }
}
