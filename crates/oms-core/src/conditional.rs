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
    ReplaceConditional, ReplaceOrder, Request, Trigger, VenueId,
};
use tickpath_oms_risk::{Facts, Refusal, check};
use tickpath_oms_slots::{Load, Save, SnapshotError};

use crate::control::Fired;
use crate::core::{At, Core};
use crate::order::{ASTRAY, Arming, NONE, Order};
use crate::reports::is_never_heard;
use crate::requests::{answer, denied, facts, may_wait, undefined};
use crate::state::{Event, Phase, step};
use crate::{Denial, Envelope, Outputs};

/// Order that waits for its trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    /// Id of the order.
    pub order: OrderId,
    /// Condition that fires the order.
    pub trigger: Trigger,
    /// Id of the request that brought the trigger; a new trigger comes with a new id.
    pub by: u64,
    /// Time of that request, in ticks; zero if it was in another boot of the host.
    pub since: u64,
}

/// New terms of an armed order, as a client requests them.
struct Rearm {
    client: ClientOrderId,
    price: Price,
    quantity: i64,
    /// The new trigger; none keeps the present one.
    trigger: Option<Trigger>,
}

impl Core {
    /// Returns the orders that wait for their trigger.
    pub fn armed(&self) -> impl Iterator<Item = Armed> + '_ {
        self.armed.values().filter(|arming| self.is_armed(arming.slot)).map(|arming| self.armed_view(arming))
    }

    /// Returns an order that waits for its trigger; none if it does not.
    pub fn armed_order(&self, id: OrderId) -> Option<Armed> {
        let slot = self.find_order(id.0).filter(|&slot| self.is_armed(slot))?;
        self.armed.get(&slot).map(|arming| self.armed_view(arming))
    }

    /// Returns an upper bound of the number of armed orders, which includes those that may have fired.
    pub fn armed_at_most(&self) -> usize {
        self.armed.len()
    }

    /// Accepts a conditional order, or denies it.
    pub(crate) fn arm(
        &mut self,
        at: At,
        envelope: &Envelope,
        new: &ConditionalOrder,
        out: &mut Outputs,
    ) -> Result<(), Refusal> {
        let mut order = self.asked_for(at, envelope, &new.order)?;
        if new.trigger.check().is_err() {
            return Err(Denial::Malformed.into());
        }
        if let Err(refusal) = self.check_new_armed(at, envelope, &mut order, &new.trigger) {
            self.keep_denied(order.session, order.client);
            return Err(refusal);
        }
        let slot = self.keep_order(order);
        let NewOrder { client_order_id, cause, position_effect, .. } = new.order;
        let (by, since, trigger) = (order.id, at.stamp, new.trigger);
        self.armed.insert(slot, Arming { slot, position_effect, reserved: [0; 3], cause, by, since, trigger });
        out.push(answer(&order, ExecType::PendingNew, client_order_id));
        Ok(())
    }

    fn check_new_armed(
        &mut self,
        at: At,
        envelope: &Envelope,
        order: &mut Order,
        trigger: &Trigger,
    ) -> Result<(), Refusal> {
        let venue = self.desk.entry(order.account, order.symbol).map(|entry| entry.instrument.venue);
        order.route = venue.map_err(|denial| undefined(denial, order))?.0;
        self.check_trigger(envelope, trigger)?;
        order.position = self.positions.open(order.account, order.symbol);
        order.phase = Phase::Armed;
        self.check_form(at, envelope, order, 1)
    }

    /// Checks that the trigger can fire: the OMS receives ticks, and all its symbols are defined.
    fn check_trigger(&self, envelope: &Envelope, trigger: &Trigger) -> Result<(), Refusal> {
        if envelope.no_ticks != 0 {
            return Err(Denial::NoTicks.into());
        }
        let unknown = trigger.conditions().find(|condition| self.desk.instrument_of(condition.symbol).is_none());
        let refusal = unknown.map(|condition| Refusal {
            denial: Denial::UnknownSymbol,
            limit: 0,
            value: condition.symbol.0.into(),
        });
        refusal.map_or(Ok(()), Err)
    }

    /// Checks an armed order as if the market stood at its price and no other order worked; all checks run when it
    /// fires. It counts among the open orders, to which it adds `more`.
    fn check_form(&self, at: At, envelope: &Envelope, order: &Order, more: u32) -> Result<(), Refusal> {
        let entry = self.desk.entry(order.account, order.symbol).map_err(|denial| undefined(denial, order))?;
        check(&Facts {
            price: order.price,
            quantity: order.quantity,
            minimum: 1,
            reference_price: if order.price == 0 { 1 } else { order.price },
            reference_age_ns: 0,
            request_age_ns: self.rate.ns(at.stamp.saturating_sub(envelope.sent)),
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
    ) -> Result<(), Refusal> {
        replace.trigger.check().map_err(|_| Denial::Malformed)?;
        let (session, client) = (envelope.session, replace.client_order_id);
        let named =
            self.named(envelope, replace.account, replace.original).and_then(|slot| match self.is_armed(slot) {
                true => Ok(slot),
                false => {
                    Err(step(self.orders.get(slot).phase, Event::Replace).err().unwrap_or(Denial::NotArmed).into())
                }
            });
        let (price, quantity, trigger) = (replace.price, replace.quantity.0, Some(replace.trigger));
        let rearm = Rearm { client, price, quantity, trigger };
        self.keep_denied(session, client.0);
        self.rearm(at, envelope, named?, &rearm, out)
    }

    /// Replaces price and quantity of an armed order; none if the request names no armed order.
    pub(crate) fn replace_armed(
        &mut self,
        at: At,
        envelope: &Envelope,
        replace: &ReplaceOrder,
        out: &mut Outputs,
    ) -> Option<Result<(), Refusal>> {
        let named = self.named(envelope, replace.account, replace.original).ok();
        let slot = named.filter(|&slot| self.is_armed(slot))?;
        let (session, client) = (envelope.session, replace.client_order_id);
        let (price, quantity) = (replace.price, replace.quantity.0);
        self.keep_denied(session, client.0);
        Some(self.rearm(at, envelope, slot, &Rearm { client, price, quantity, trigger: None }, out))
    }

    fn rearm(
        &mut self,
        at: At,
        envelope: &Envelope,
        slot: u32,
        rearm: &Rearm,
        out: &mut Outputs,
    ) -> Result<(), Refusal> {
        let order = *self.orders.get(slot);
        let (price, valued) = match order.order_type {
            OrderType::Limit => (rearm.price.0, rearm.price.0),
            OrderType::Market => (order.price, order.valued),
        };
        let next = Order { price, valued, quantity: rearm.quantity, ..order };
        if let Some(trigger) = &rearm.trigger {
            self.check_trigger(envelope, trigger)?;
        }
        self.check_form(at, envelope, &next, 0)?;
        self.settle(slot, &next);
        let by = self.id(at);
        if let Some((arming, trigger)) = self.armed.get_mut(&slot).zip(rearm.trigger) {
            *arming = Arming { trigger, by, since: at.stamp, ..*arming };
        }
        out.push(answer(&next, ExecType::Replaced, rearm.client));
        Ok(())
    }

    /// Runs all checks on an order whose trigger has fired, and sends or denies it. Returns false if it is not armed.
    pub(crate) fn fire(&mut self, at: At, fired: &Fired, out: &mut Outputs) -> bool {
        let Some(slot) = self.find_order(fired.order).filter(|&slot| self.is_armed(slot)) else { return false };
        let Some(arming) = self.armed.remove(&slot) else { return false };
        let order = *self.orders.get(slot);
        let new = NewOrder {
            client_order_id: ClientOrderId(order.id),
            price: Price(order.price),
            quantity: Quantity(order.quantity),
            cause: if arming.cause == 0 { fired.tick } else { arming.cause },
            symbol: order.symbol,
            account: order.account,
            side: order.side.code(),
            order_type: order.order_type.code(),
            time_in_force: order.time_in_force.code(),
            position_effect: arming.position_effect,
            reserved: [0; 4],
        };
        let request = Request::New(new);
        match self.check_fired(at, fired, &order, &request) {
            Ok(next) => {
                self.settle(slot, &next);
                if !self.again.has_no_rules() {
                    self.again.keep(&next, new, at.stamp);
                }
                self.send(slot, next.session, request, at.stamp, out);
                out.push(answer(&next, ExecType::Triggered, ClientOrderId(next.client)));
            }
            Err(refusal) => self.deny_armed(slot, refusal, out),
        }
        true
    }

    /// Returns the order as it leaves, if all checks pass. The order counts among the open orders already.
    fn check_fired(&mut self, at: At, fired: &Fired, order: &Order, request: &Request) -> Result<Order, Refusal> {
        let envelope = Envelope {
            reference_price: fired.reference_price,
            reference_age_ns: fired.reference_age_ns,
            session: order.session,
            ..Envelope::default()
        };
        let entry = self.desk.entry(order.account, order.symbol).map_err(|denial| undefined(denial, order))?;
        let venue = entry.instrument.venue;
        self.may_still(order.session, order.account, request)?;
        let facts = Facts {
            price: order.price,
            quantity: order.quantity,
            minimum: 1,
            increase: order.quantity,
            reach: self.reach(order.position, order.side),
            // Its message was counted on arrival.
            messages: 0,
            open_orders: entry.open.orders,
            adds: order.quantity,
            ..facts(&entry, &envelope, order)
        };
        check(&facts)?;
        self.check_rare(&entry, &facts, order, at.stamp, true)?;
        let valued = match order.order_type {
            OrderType::Limit => order.price,
            OrderType::Market => fired.reference_price.0,
        };
        let route = self.routes.get(venue);
        may_wait(route)?;
        let phase = step(order.phase, Event::Released).unwrap_or(order.phase);
        let phase = if route.is_clear() { phase } else { Phase::Queued };
        Ok(Order { phase, valued, route: venue.0, ..*order })
    }

    /// Denies all armed orders at once after a disk failure, like all waiting orders: they never leave.
    pub(crate) fn refuse_armed(&mut self, out: &mut Outputs) {
        let slots: Vec<u32> = self.armed.keys().copied().filter(|&slot| self.is_armed(slot)).collect();
        for slot in slots {
            self.armed.remove(&slot);
            self.deny_armed(slot, Refusal { denial: Denial::DiskFailed, limit: 0, value: 1 }, out);
        }
    }

    fn deny_armed(&mut self, slot: u32, refusal: Refusal, out: &mut Outputs) {
        let order = *self.orders.get(slot);
        let phase = step(order.phase, Event::Denied).unwrap_or(order.phase);
        self.settle(slot, &Order { phase, ..order });
        self.counts.denied_requests += 1;
        out.push(denied(order.id, order.session, ClientOrderId(order.client), order.account, refusal));
    }

    /// Puts armed orders in doubt after another boot of the host: they may have fired in the journal's lost tail,
    /// unless their session's outputs wait for the disk. Clears the earlier boot's stamps, which mean nothing any more.
    pub(crate) fn doubt_armed(&mut self) {
        let slots: Vec<u32> = self.armed.keys().copied().collect();
        for slot in slots {
            if let Some(arming) = self.armed.get_mut(&slot) {
                arming.since = 0;
            }
            let order = *self.orders.get(slot);
            if order.phase == Phase::Armed && self.desk.rules(order.session).level == 0 {
                let phase = step(order.phase, Event::Released).unwrap_or(order.phase);
                self.settle(slot, &Order { phase, ..order });
            }
        }
    }

    /// Returns the order after its venue's status answer, for an order that may have fired. An order that the venue
    /// does not have is armed again if the answer is to a status request since the last doubt, and stays as it is
    /// otherwise. After any other answer the order has left.
    #[cold]
    pub(crate) fn stands_armed(&mut self, slot: u32, report: &ExecutionReport, next: Order) -> Option<Order> {
        let order = *self.orders.get(slot);
        let has_heard = next.phase != Phase::Rejected || !is_never_heard(report) || order.cancel != NONE;
        if has_heard || !self.armed.contains_key(&slot) {
            self.armed.remove(&slot);
            return Some(next);
        }
        let doubted = self.routes.get(VenueId(order.route)).doubted;
        let marks = order.marks & !ASTRAY;
        (report.client_order_id.0 >= doubted).then_some(Order { phase: Phase::Armed, marks, ..order })
    }

    pub(crate) fn is_armed(&self, slot: u32) -> bool {
        self.orders.get(slot).phase == Phase::Armed
    }

    fn armed_view(&self, arming: &Arming) -> Armed {
        let Arming { trigger, by, since, .. } = *arming;
        Armed { order: OrderId(self.orders.get(arming.slot).id), trigger, by, since }
    }

    pub(crate) fn save_armed(&self, save: &mut Save<'_>) {
        save.list(&self.armed.values().copied().collect::<Vec<_>>());
    }

    pub(crate) fn load_armed(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        self.armed = load.list::<Arming>()?.into_iter().map(|arming| (arming.slot, arming)).collect();
        Ok(())
    }
}
