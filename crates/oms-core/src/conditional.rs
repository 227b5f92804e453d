//! Conditional orders, which wait in the OMS for their trigger.
//!
//! ```text
//!   Conditional ──rights, form──> Armed ──Fired──> all checks ──> Sent or Queued: an order like any
//!                                   │ │                └────────> Denied
//!                                   │ └─ replace: at once, because no venue has received it
//!                                   └─── cancel, mass cancel, kill, lost session, day's end: at once
//! ```
//!
//! The core compares no prices: the shell, which receives the ticks, reports a fired trigger by an input. An armed
//! order counts among its account's open orders, but adds nothing to positions and credit: it may never leave.
//!
//! After another boot of the host an armed order may have fired in the tail that the journal lost. The order is then in
//! doubt like any other that may have left, and is armed again once its venue reports that it has no such order. There
//! is no doubt for sessions whose outputs leave only after the disk has their input.

use tickpath_market::{
    ClientOrderId, ConditionalOrder, ExecType, ExecutionReport, NewOrder, OrderId, OrderType, Price, Quantity,
    ReplaceConditional, ReplaceOrder, Request, Trigger,
};
use tickpath_oms_records::TriggerFired;
use tickpath_oms_risk::{Breach, RiskFacts, check};

use crate::client_reports::report_output;
use crate::core::{At, Core};
use crate::order::{MAY_HAVE_RETRIED, NONE, Order};
use crate::report_class::is_unknown_at_venue;
use crate::requests::facts;
use crate::state::{OrderEvent, OrderPhase, next_phase};
use crate::trading_config::unknown_symbol;
use crate::triggers::PendingTrigger;
use crate::{Denial, Envelope, Outputs};

/// Order that waits for its trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmedOrder {
    /// Id of the order.
    pub order: OrderId,
    /// Condition that fires the order.
    pub trigger: Trigger,
    /// Id of the request that brought the trigger; a new trigger comes with a new id.
    pub request_id: u64,
    /// Time of that request, in ticks; zero if it was in another boot of the host.
    pub since: u64,
}

/// New terms of an armed order, as a client requests them.
struct ArmedReplace {
    client: ClientOrderId,
    price: Price,
    quantity: i64,
    /// The new trigger; none keeps the present one.
    trigger: Option<Trigger>,
}

impl Core {
    /// Returns the orders that wait for their trigger.
    pub fn armed_orders(&self) -> impl Iterator<Item = ArmedOrder> + '_ {
        self.triggers.values().filter(|pending| self.is_armed(pending.slot)).map(|pending| self.armed_view(pending))
    }

    /// Returns an order that waits for its trigger; none if it does not.
    pub fn armed_order(&self, id: OrderId) -> Option<ArmedOrder> {
        let slot = self.orders.find(id.0).filter(|&slot| self.is_armed(slot))?;
        self.triggers.get(&slot).map(|pending| self.armed_view(pending))
    }

    /// Returns an upper bound of the number of armed orders, which includes those that may have fired.
    pub fn armed_upper_bound(&self) -> usize {
        self.triggers.len()
    }

    /// Accepts a conditional order, or denies it.
    pub(crate) fn arm(
        &mut self,
        at: At,
        envelope: &Envelope,
        new: &ConditionalOrder,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        let mut order = self.build_order(at, envelope, &new.order)?;
        if new.trigger.check().is_err() {
            return Err(Denial::Malformed.into());
        }
        let checked = self.check_new_armed(at, envelope, &mut order, &new.trigger);
        self.orders.use_up_if_denied(order.session, order.client, checked)?;
        let slot = self.add_order(order);
        let NewOrder { client_order_id, cause, position_effect, instructions, self_trade_mode, trade_mode, .. } =
            new.order;
        let (request_id, since, trigger) = (order.id, at.stamp, new.trigger);
        let pending = PendingTrigger {
            slot,
            position_effect,
            instructions,
            self_trade_mode,
            trade_mode,
            cause,
            request_id,
            since,
            trigger,
        };
        self.triggers.insert(slot, pending);
        out.push(report_output(&order, ExecType::PendingNew, client_order_id));
        Ok(())
    }

    fn check_new_armed(
        &mut self,
        at: At,
        envelope: &Envelope,
        order: &mut Order,
        trigger: &Trigger,
    ) -> Result<(), Breach> {
        order.venue = self.trading.context(order.account, order.symbol)?.instrument.venue;
        self.check_trigger(envelope, trigger)?;
        order.position = self.positions.find_or_create(order.account, order.symbol);
        order.phase = OrderPhase::Armed;
        self.check_armed_terms(at, envelope, order, 1)
    }

    /// Checks that the trigger can fire: the OMS receives ticks, and all its symbols are defined.
    fn check_trigger(&self, envelope: &Envelope, trigger: &Trigger) -> Result<(), Breach> {
        if envelope.no_ticks != 0 {
            return Err(Denial::NoTicks.into());
        }
        let unknown = trigger.conditions().find(|condition| self.trading.instrument_of(condition.symbol).is_none());
        unknown.map_or(Ok(()), |condition| Err(unknown_symbol(condition.symbol)))
    }

    /// Checks an armed order as if the market stood at its price and no other order worked; all checks run when it
    /// fires. It counts among the open orders, to which it adds `more`.
    fn check_armed_terms(&self, at: At, envelope: &Envelope, order: &Order, more: u32) -> Result<(), Breach> {
        let entry = self.trading.context(order.account, order.symbol)?;
        check(&RiskFacts {
            reference_price: if order.price == 0 { 1 } else { order.price },
            reference_age_ns: 0,
            request_age_ns: self.clock.ns(at.stamp.saturating_sub(envelope.sent)),
            open_orders: entry.open.orders.saturating_add(more),
            ..facts(&entry, envelope, order)
        })
    }

    /// Replaces price, quantity and trigger of an armed order.
    pub(crate) fn replace_conditional(
        &mut self,
        at: At,
        envelope: &Envelope,
        replace: &ReplaceConditional,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        replace.trigger.check().map_err(|_| Denial::Malformed)?;
        let (session, client) = (envelope.session, replace.client_order_id);
        let named =
            self.find_named(envelope, replace.account, replace.original).and_then(|slot| match self.is_armed(slot) {
                true => Ok(slot),
                false => Err(next_phase(self.orders.get(slot).phase, OrderEvent::Replace)
                    .err()
                    .unwrap_or(Denial::NotArmed)
                    .into()),
            });
        let (price, quantity, trigger) = (replace.price, replace.quantity.0, Some(replace.trigger));
        self.orders.add_used_id(session, client.0);
        self.rearm(at, envelope, named?, &ArmedReplace { client, price, quantity, trigger }, out)
    }

    /// Replaces price and quantity of an armed order; none if the request names no armed order.
    pub(crate) fn replace_armed(
        &mut self,
        at: At,
        envelope: &Envelope,
        replace: &ReplaceOrder,
        out: &mut Outputs,
    ) -> Option<Result<(), Breach>> {
        let named = self.find_named(envelope, replace.account, replace.original).ok();
        let slot = named.filter(|&slot| self.is_armed(slot))?;
        let (session, client) = (envelope.session, replace.client_order_id);
        let (price, quantity) = (replace.price, replace.quantity.0);
        self.orders.add_used_id(session, client.0);
        Some(self.rearm(at, envelope, slot, &ArmedReplace { client, price, quantity, trigger: None }, out))
    }

    fn rearm(
        &mut self,
        at: At,
        envelope: &Envelope,
        slot: u32,
        rearm: &ArmedReplace,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        let order = *self.orders.get(slot);
        let (price, valued) = match order.order_type {
            OrderType::Limit => (rearm.price.0, rearm.price.0),
            OrderType::Market => (order.price, order.valuation_price),
        };
        let next = Order { price, valuation_price: valued, quantity: rearm.quantity, ..order };
        if let Some(trigger) = &rearm.trigger {
            self.check_trigger(envelope, trigger)?;
        }
        self.check_armed_terms(at, envelope, &next, 0)?;
        self.update_order(slot, &next);
        let request_id = self.id(at);
        if let Some((pending, trigger)) = self.triggers.get_mut(&slot).zip(rearm.trigger) {
            *pending = PendingTrigger { trigger, request_id, since: at.stamp, ..*pending };
        }
        out.push(report_output(&next, ExecType::Replaced, rearm.client));
        Ok(())
    }

    /// Runs all checks on an order whose trigger has fired, and sends or denies it. Returns false if it is not armed.
    pub(crate) fn apply_trigger(&mut self, at: At, fired: &TriggerFired, out: &mut Outputs) -> bool {
        let Some(slot) = self.orders.find(fired.order).filter(|&slot| self.is_armed(slot)) else { return false };
        let Some(pending) = self.triggers.remove(&slot) else { return false };
        let order = *self.orders.get(slot);
        let new = NewOrder {
            client_order_id: ClientOrderId(order.id),
            price: Price(order.price),
            quantity: Quantity(order.quantity),
            cause: if pending.cause == 0 { fired.tick } else { pending.cause },
            symbol: order.symbol,
            account: order.account,
            side: order.side.code(),
            order_type: order.order_type.code(),
            time_in_force: order.time_in_force.code(),
            position_effect: pending.position_effect,
            instructions: pending.instructions,
            self_trade_mode: pending.self_trade_mode,
            trade_mode: pending.trade_mode,
            reserved: 0,
        };
        let request = Request::New(new);
        match self.check_fired(at, fired, &order, &request) {
            Ok(next) => {
                self.update_order(slot, &next);
                if !self.retries.rules.is_empty() {
                    self.retries.track(&next, new, at.stamp);
                }
                self.send(slot, next.session, request, at.stamp, out);
                out.push(report_output(&next, ExecType::Triggered, ClientOrderId(next.client)));
            }
            Err(refusal) => self.deny_armed(slot, refusal, out),
        }
        true
    }

    /// Returns the order as it leaves, if all checks pass. The order counts among the open orders already.
    fn check_fired(&mut self, at: At, fired: &TriggerFired, order: &Order, request: &Request) -> Result<Order, Breach> {
        let envelope = Envelope {
            reference_price: fired.reference_price,
            reference_age_ns: fired.reference_age_ns,
            session: order.session,
            ..Envelope::default()
        };
        let entry = self.trading.context(order.account, order.symbol)?;
        let venue = entry.instrument.venue;
        self.check_rights(order.session, order.account, request)?;
        let facts = RiskFacts {
            increase: order.quantity,
            worst_position: self.positions.get(order.position).worst_position(order.side),
            // Its message was counted on arrival.
            messages: 0,
            open_orders: entry.open.orders,
            added_quantity: order.quantity,
            ..facts(&entry, &envelope, order)
        };
        check(&facts)?;
        self.check_optional(&entry, &facts, order, at.stamp, true)?;
        let valuation_price = match order.order_type {
            OrderType::Limit => order.price,
            OrderType::Market => fired.reference_price.0,
        };
        let state = self.venues.get(venue);
        state.check_queue_room()?;
        let sends_at_once = state.sends_at_once();
        let phase = if sends_at_once { order.phase.after(OrderEvent::Released) } else { OrderPhase::Queued };
        Ok(Order { phase, valuation_price, venue, ..*order })
    }

    /// Denies all armed orders at once after a disk failure, like all waiting orders: they never leave.
    pub(crate) fn deny_all_armed(&mut self, out: &mut Outputs) {
        let slots: Vec<u32> = self.triggers.keys().copied().filter(|&slot| self.is_armed(slot)).collect();
        for slot in slots {
            self.triggers.remove(&slot);
            self.deny_armed(slot, Breach { denial: Denial::DiskFailed, limit: 0, value: 1 }, out);
        }
    }

    fn deny_armed(&mut self, slot: u32, refusal: Breach, out: &mut Outputs) {
        let order = *self.orders.get(slot);
        self.update_order(slot, &Order { phase: order.phase.after(OrderEvent::Denied), ..order });
        self.deny(order.id, order.session, ClientOrderId(order.client), (order.account, order.symbol), refusal, out);
    }

    /// Puts armed orders in doubt after another boot of the host: they may have fired in the journal's lost tail,
    /// unless their session's outputs wait for the disk. Clears the earlier boot's stamps, which mean nothing any more.
    pub(crate) fn doubt_armed_orders(&mut self) {
        self.triggers.values_mut().for_each(|trigger| trigger.since = 0);
        let slots: Vec<u32> = self.triggers.keys().copied().filter(|&slot| self.is_armed(slot)).collect();
        for slot in slots {
            let order = *self.orders.get(slot);
            if self.trading.rules(order.session).level == 0 {
                self.update_order(slot, &Order { phase: order.phase.after(OrderEvent::Released), ..order });
            }
        }
    }

    /// Returns the order after its venue's status answer, for an order that may have fired. An order that the venue
    /// does not have is armed again if the answer is to a status request since the last doubt, and stays as it is
    /// otherwise. After any other answer the order has left.
    #[cold]
    pub(crate) fn resolve_armed_status(&mut self, slot: u32, report: &ExecutionReport, next: Order) -> Option<Order> {
        let order = *self.orders.get(slot);
        let has_left = next.phase != OrderPhase::Rejected || !is_unknown_at_venue(report) || order.cancel != NONE;
        if has_left || !self.triggers.contains_key(&slot) {
            self.triggers.remove(&slot);
            return Some(next);
        }
        let last_loss = self.venues.get(order.venue).last_loss;
        let marks = order.marks & !MAY_HAVE_RETRIED;
        (report.client_order_id.0 >= last_loss).then_some(Order { phase: OrderPhase::Armed, marks, ..order })
    }

    pub(crate) fn is_armed(&self, slot: u32) -> bool {
        self.orders.get(slot).phase == OrderPhase::Armed
    }

    fn armed_view(&self, pending: &PendingTrigger) -> ArmedOrder {
        let PendingTrigger { trigger, request_id, since, .. } = *pending;
        ArmedOrder { order: OrderId(self.orders.get(pending.slot).id), trigger, request_id, since }
    }
}
